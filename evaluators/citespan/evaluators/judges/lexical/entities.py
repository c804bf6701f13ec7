"""Read the names in a text: runs of capitalised words."""

from __future__ import annotations

from dataclasses import dataclass

from citespan.evaluators.judges.lexical.lexicon import read_word_set
from citespan.evaluators.judges.lexical.words import Text

__all__ = ["Entity", "is_abbreviated", "read_entities"]

_NOT_NAMES = read_word_set("not_names")
_CONNECTORS = frozenset(["of", "the", "de", "la", "van", "von", "du", "da", "di", "al", "bin"])


@dataclass(frozen=True, slots=True)
class Entity:
    """A name: a run of capitalised words."""

    first: int
    """Index of its first word."""

    last: int
    """Index after its last word."""

    opens_sentence: bool
    """Whether it opens a sentence, where any word is capitalised."""


def read_entities(read: Text, first: int, last: int) -> list[Entity]:
    """Return the names between two word indexes; a capitalised month or weekday is a date, not a name."""
    found: list[Entity] = []
    index = first
    while index < last:
        if not read.keys[index] or not _is_capitalised(read, index):
            index += 1
            continue
        end = index + 1
        while end < last and read.gap(end - 1) in (" ", "-", ". ", " & ") and not _opens_sentence(read, end):
            if _is_capitalised(read, end):
                end += 1
            elif _joins(read, end, last):
                end += 2
            else:
                break
        found.append(Entity(index, end, _opens_sentence(read, index)))
        index = end
    return found


def _opens_sentence(read: Text, index: int) -> bool:
    if index == 0:
        return True
    gap = read.gap(index - 1)
    if not any(mark in gap for mark in ".!?:\n*•"):
        return False
    return not (gap == ". " and len(read.words[index - 1]) <= 2)


def _joins(read: Text, index: int, last: int) -> bool:
    return (
        read.words[index] in _CONNECTORS
        and index + 1 < last
        and read.gap(index - 1) == " "
        and read.gap(index) == " "
        and _is_capitalised(read, index + 1)
    )


def _is_capitalised(read: Text, index: int) -> bool:
    written = read.shown(index)
    return written != written.lower() and read.words[index] not in _NOT_NAMES


def is_abbreviated(read: Text, name: Entity, short: str | None = None) -> bool:
    """Return whether `read` spells out a name written as capitals: "Marburg Virus Disease" for "MVD".

    Args:
        read: The text to look in.
        name: A name, of `read` itself unless `short` is given.
        short: The name as written, where it stands in another text.
    """
    written = read.quote(name.first, name.last) if short is None else short
    letters = written.replace(".", "").lower()
    if not (2 <= len(letters) <= 6 and written.isupper()):
        return False
    initials = "".join(word[0] for word, key in zip(read.words, read.keys, strict=True) if key)
    return letters in initials
