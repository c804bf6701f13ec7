"""Read the names in a text, and who does what to whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from citespan.evaluators.judges.lexical.words import MONTHS, Text

__all__ = ["Entity", "is_found", "read_entities"]

_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_NEVER_NAMES = frozenset(
    [
        "i",
        "i'm",
        "i've",
        "i'd",
        "i'll",
        "the",
        "a",
        "an",
        "this",
        "that",
        "these",
        "those",
        "it",
        "he",
        "she",
        "they",
        "we",
        "you",
        "in",
        "on",
        "at",
        "of",
        "for",
        "and",
        "or",
        "but",
        "ok",
        "yes",
        "no",
        "oh",
        "well",
        "mr",
        "mrs",
        "ms",
        "dr",
        "sir",
        "prof",
    ]
)
_CONNECTORS = frozenset(["of", "the", "de", "la", "van", "von", "du", "da", "di", "al", "bin", "and"])


@dataclass(frozen=True, slots=True)
class Entity:
    """A name: a run of capitalised words."""

    first: int
    """Index of its first word."""

    last: int
    """Index after its last word."""

    is_at_start: bool
    """Whether it opens a sentence, where any word is capitalised."""


def read_entities(read: Text) -> list[Entity]:
    """Return the names of `read` in order; a capitalised month or weekday is a date, not a name."""
    found: list[Entity] = []
    starts = {sentence.first for sentence in read.sentences}
    index = 0
    while index < len(read.words):
        if not _is_capitalised(read, index) or (index in starts and not read.keys[index]):
            index += 1
            continue
        last = index + 1
        while last < len(read.words) and last not in starts and read.gap(last - 1) in (" ", "-", ". ", " & "):
            if _is_capitalised(read, last):
                last += 1
            elif read.words[last] in _CONNECTORS and _joins(read, last):
                last += 2
            else:
                break
        found.append(Entity(index, last, index in starts))
        index = last
    return found


def _joins(read: Text, index: int) -> bool:
    return (
        index + 1 < len(read.words)
        and read.words[index] != "and"
        and read.gap(index - 1) == " "
        and read.gap(index) == " "
        and _is_capitalised(read, index + 1)
    )


def _is_capitalised(read: Text, index: int) -> bool:
    word = read.words[index]
    if word in _NEVER_NAMES or word in MONTHS or word in _DAYS:
        return False
    written = read.shown(index)
    return written[0].isupper() or any(letter.isupper() for letter in written[1:])


def is_found(read: Text, entity: Entity, keys: Sequence[str], found: Sequence[bool]) -> bool:
    """Return whether the passages name the entity: any of its content words, the last name above all.

    Args:
        read: The claim.
        entity: A name in it.
        keys: The claim's distinct keys.
        found: Whether each of them is in the passages.
    """
    number = {key: n for n, key in enumerate(keys)}
    words = [read.keys[index] for index in range(entity.first, entity.last) if read.keys[index]]
    return not words or any(found[number[key]] for key in words)
