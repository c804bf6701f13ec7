"""The fallback for texts whose words this judge does not know: shared stretches of letters and equal figures."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from citespan.evaluators.judges.lexical.readings import PassageReading
from citespan.evaluators.judges.lexical.words import Sentence, Text

__all__ = ["LetterMatch", "is_english", "match_letters"]

_FEW_WORDS = 6
"""Words from which an English sentence holds at least one word of grammar."""

_LETTERS_LOOKED_AT = 2000
_WORDS_LOOKED_AT = 200
_GRAMMAR_SHARE = 0.1
"""Share of words of grammar from which a passage is English; running text has some 40 %."""

_STRETCH = 3
"""Letters in a stretch; two where a script writes no spaces."""

_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class LetterMatch:
    """The sentences that share most letters with a claim."""

    passage: int
    """Index of the passage."""

    sentence: Sentence
    """The best single sentence."""

    share: float
    """Share of the claim's letter stretches in the best two sentences together."""

    missing_figure: str | None
    """A figure of the claim that no passage has."""


def is_english(claim: Text, passages: Sequence[PassageReading]) -> bool:
    """Return whether claim and passages can be read by English rules.

    They can if most letters are Latin and there are words of grammar: in the claim, or else in the passages,
    since a short claim may have none.
    """
    letters = [letter for letter in claim.text[:_LETTERS_LOOKED_AT] if letter.isalpha()]
    latin = sum(letter.isascii() or "LATIN" in unicodedata.name(letter, "") for letter in letters)
    if 2 * latin < len(letters):
        return False
    if len(claim.words) < _FEW_WORDS or "" in claim.keys:
        return True
    keys = [key for passage in passages for key in passage.text.keys[:_WORDS_LOOKED_AT]]
    return keys.count("") >= _GRAMMAR_SHARE * len(keys)


def match_letters(claim: str, passages: Sequence[PassageReading]) -> LetterMatch | None:
    """Return where the passages share most letters with `claim`; `None` if they are all empty."""
    size = 2 if " " not in claim.strip() else _STRETCH
    wanted = _stretches(claim, size)
    best: LetterMatch | None = None
    digits = set(_DIGITS.findall(" ".join(passage.text.text for passage in passages)))
    missing = next((figure for figure in _DIGITS.findall(claim) if figure not in digits), None)
    for number, passage in enumerate(passages):
        before: set[str] = set()
        for sentence in passage.text.sentences:
            here = _stretches(passage.text.text[sentence.start : sentence.end], size) & wanted
            share = len(here | before) / max(len(wanted), 1)
            if best is None or share > best.share:
                best = LetterMatch(number, sentence, share, missing)
            before = here
    return best


def _stretches(text: str, size: int) -> set[str]:
    kept = "".join(letter if letter.isalnum() else " " for letter in text.lower())
    packed = " ".join(kept.split())
    return {packed[at : at + size] for at in range(len(packed) - size + 1)}
