"""Candidates for markers, and the places in which a bracket is an index, an interval, a checkbox or an exponent."""

from __future__ import annotations

import re
from dataclasses import dataclass

from citespan.evaluators.markers.grammar import MarkerForm
from citespan.evaluators.markers.names import MarkerName

__all__ = ["Candidate", "ends_clause", "is_other_notation", "is_spaced"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text of the answer that has the form of a marker."""

    form: MarkerForm
    """Its form."""

    start: int
    """First code point in the answer."""

    end: int
    """One past its last code point."""

    names: tuple[MarkerName, ...]
    """What it names; empty if its content is no list of names."""

    style: str
    """The form, and for a tag its name: what a house style is made of."""

    words: tuple[int, int] | None = None
    """The part of it that still reads as the answer's words."""

    @property
    def is_known(self) -> bool:
        """Whether everything it names is a passage of the run."""
        return bool(self.names) and all(name.is_known for name in self.names)

    @property
    def is_partly_known(self) -> bool:
        """Whether anything it names is a passage of the run."""
        return any(name.is_known for name in self.names)


_CLAUSE_END = re.compile(
    r"(?:[ \t]*\[[^\[\]\n]{1,60}\]){0,10}[ \t]*[\"'”’»*_)\]]{0,4}(?:\Z|[\r\n.,;:!?|。，、；：！？۔؟।…—])"
)
_BRACKETS = ("square", "escaped", "footnote", "nested", "caret_bracket", "double_link", "link", "dagger")
_CHECKBOX = re.compile(r"(?:^|\n)[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+$")
_INTERVAL_WORD = re.compile(
    r"(?:\b(?:interval|range|domain|between|bounds|intervall|bereich|intervalo)|[∈∉])[ \t]*$|\b[a-z] in $",
    re.IGNORECASE,
)
_EXPONENT = re.compile(
    r"(?:[\d)\]}²³⁻⁺]|(?<![^\W\d_])(?:[^\W\d_]|[kcmdnµμ]m|ft|in|yd|mi|sec|sq|cu))$", re.IGNORECASE
)
_INDEXED_NAMES = frozenset(("args", "argv", "arr", "buf", "dp", "idx", "kwargs", "ptr", "tmp", "vec"))
_SUBSCRIPT = re.compile(r"\w\[[a-z_'\"][\w'\"]{0,30}\]|\w\([^()\n]{0,60}\)")
_AFTER_INDEX = re.compile(r"\[[a-z_'\"]|[ \t]?(?:[-+*/%]?=|\+|\*|[ \t][<>][ \t])[ \t]?\w|\.[a-z_]+\(")

_BEFORE = 80
"""How far back a candidate's context is read."""


def ends_clause(answer: str, candidate: Candidate) -> bool:
    """Return whether a stop, a line's end or another bracket follows: the place of most citations."""
    return _CLAUSE_END.match(answer, candidate.end) is not None


def is_spaced(answer: str, candidate: Candidate) -> bool:
    """Return whether a bracket stands apart from the word before it: `word [1]`."""
    return candidate.form.name == "square" and answer[candidate.start - 1 : candidate.start] == " "


def is_other_notation(answer: str, candidate: Candidate, *, are_spaced: bool) -> bool:
    """Return whether the place says that it is an index, an interval, a checkbox or an exponent.

    Args:
        answer: The answer, folded.
        candidate: The candidate.
        are_spaced: Whether the answer's citations stand apart from the word before them: then a number
            attached to a word amid a clause (`values[1] holds`) is an index.
    """
    before = answer[max(0, candidate.start - _BEFORE) : candidate.start]
    if candidate.form.name == "superscript":
        return _EXPONENT.search(before) is not None
    if candidate.form.name not in _BRACKETS:
        return False
    labels = [name.label for name in candidate.names]
    unknown = [name.label for name in candidate.names if not name.is_known]
    if labels[0] in ("x", "X") and _CHECKBOX.search(before):
        return True
    if len(labels) == 2 and all(label.isdigit() for label in labels):
        return "0" in unknown or _INTERVAL_WORD.search(before) is not None
    is_attached = bool(before) and (before[-1].isalnum() or before[-1] in "_])")
    if not is_attached or len(labels) > 1 or not labels[0].isdigit():
        return False
    if are_spaced and before[-1] not in "])" and ("0" in unknown or not ends_clause(answer, candidate)):
        return True
    return _is_indexed(before) or _AFTER_INDEX.match(answer, candidate.end) is not None


def _is_indexed(before: str) -> bool:
    """Return whether a bracket right behind this text is an index: `arr[`, `row_sums[`, `dp[i][`, `f(x)[`."""
    if before[-1] in "])":
        opener = before.rfind("[" if before[-1] == "]" else "(")
        return opener > 0 and _SUBSCRIPT.fullmatch(before, opener - 1) is not None
    start = len(before)
    while start > 0 and (before[start - 1].isalnum() or before[start - 1] == "_"):
        start -= 1
    word = before[start:]
    is_variable = len(word) == 1 and word.islower() and word.isascii()
    return is_variable or "_" in word.strip("_") or word in _INDEXED_NAMES
