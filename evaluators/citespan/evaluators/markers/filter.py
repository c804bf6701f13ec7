"""Decide which of the texts that look like markers are citations.

The run's labels are the main filter; the house style of the answer's resolved markers is the second, so
that `[9]` of eight sources stays an invalid citation while `[km/h]` and `[2024 report]` are prose.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from citespan.evaluators.markers.grammar import Trust
from citespan.evaluators.markers.names import MarkerName
from citespan.evaluators.markers.passage_names import PassageNames
from citespan.evaluators.markers.places import Candidate, ends_clause, is_other_notation, is_spaced

__all__ = ["HouseStyle", "select_citations", "shape_of"]


@dataclass(slots=True)
class HouseStyle:
    """How the answer's resolved markers look, and the labels that they could name."""

    names: PassageNames
    """What the run's passages are called."""

    styles: set[str] = field(default_factory=set[str])
    """Styles of the markers that resolve."""

    shapes: set[str] = field(default_factory=set[str])
    """Shapes of their labels, and of all labels of the run."""

    are_spaced: bool = False
    """Whether markers that resolve stand apart from the word before them."""

    def learn(self, candidate: Candidate) -> None:
        """Take a resolved marker as an example."""
        self.styles.add(candidate.style)
        self.shapes.update(shape_of(name.label) for name in candidate.names if name.is_known)


_YEAR = re.compile(r"(?:1[5-9]|20|21)\d\d")
_DATE_OR_TIME = re.compile(
    r"\d{1,4}[-/.]\d{1,2}(?:[-/.]\d{1,4})?|\d{1,2}:\d{2}(?::\d{2})?(?:[,.]\d+)?|[+-]?\d*\.\d+|[+-]\d+"
)
_MEASURE = re.compile(r"\d+(?:[.,]\d+)?[^\W\d_]*[^\W\d_a-f][^\W\d_]*", re.IGNORECASE)
_FORMULA = re.compile(r"(?:[A-Z][a-z]?\d*)+[+-]?")
_FILE = re.compile(r".+\.[a-z]{2,4}[a-z0-9]?(?:#.*)?", re.IGNORECASE)
_STRONG_ID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f-]{15,40}|(?=[a-f]*\d)[0-9a-f]{8,64}"
    r"|(?=\D*\d)(?=.*[^\W\d_])(?!(?:\w-\w)+$)[^\W_][\w.]*(?:[-_:#/][\w.]+)+",
    re.IGNORECASE,
)
_WEAK_ID = re.compile(r"(?=\D*\d)(?=[^a-z]*[a-z])[\w.:#/-]{2,40}", re.IGNORECASE)
_DISTINCT = re.compile(r"(?=.*\d)(?=.*[^\W\d_]).{3,}|.+[-_.:#/].+")
_CITING_TAGS = ("cite", "citation", "co", "doc", "document", "inref", "ref", "reference", "source")


def shape_of(label: str) -> str:
    """Return the shape of a label: `doc-99` and `doc-1` share one, numbers another, file names a third."""
    text = label.casefold()
    if text.isdigit():
        return "0"
    if len(text) == 1:
        return "letter"
    if _FILE.fullmatch(text):
        return "file"
    tokens = re.split(r"([-_:.#/])", text)
    shapes = [
        "x" if re.fullmatch(r"(?=[a-f]*\d)[0-9a-f]{6,}", token) else re.sub(r"\d+", "0", token)
        for token in tokens
    ]
    return "".join([shapes[0], *("a" if shape.isalpha() and shape != "x" else shape for shape in shapes[1:])])


def select_citations(answer: str, candidates: Sequence[Candidate], names: PassageNames) -> list[Candidate]:
    """Return the candidates that cite, in order; of two that overlap, the one whose form comes first in the table.

    The bracket of a Markdown link is no marker of its own: either the link cites or nothing does.
    """
    taken = bytearray(len(answer))
    for candidate in candidates:
        if candidate.form.name == "link":
            taken[candidate.start : candidate.end] = b"\1" * (candidate.end - candidate.start)
    style = HouseStyle(
        names,
        shapes={shape_of(label) for label in names.labels},
        are_spaced=any(c.is_known and is_spaced(answer, c) and ends_clause(answer, c) for c in candidates),
    )
    accepted: list[Candidate] = []
    for wants_sure in (True, False):
        for candidate in candidates:
            room = 1 if candidate.form.name in ("link", "double_link") else 0
            is_sure = candidate.is_known or candidate.form.trust is Trust.FORM
            if is_sure is not wants_sure or max(taken[candidate.start : candidate.end]) > room:
                continue
            if _cites(answer, candidate, style):
                accepted.append(candidate)
                taken[candidate.start : candidate.end] = b"\2" * (candidate.end - candidate.start)
                if candidate.is_partly_known:
                    style.learn(candidate)
    return sorted(accepted, key=lambda candidate: candidate.start)


def _cites(answer: str, candidate: Candidate, style: HouseStyle) -> bool:
    if not candidate.names or is_other_notation(answer, candidate, are_spaced=style.are_spaced):
        return False
    if candidate.form.trust is Trust.FORM:
        return True
    if candidate.is_known:
        return candidate.form.trust is Trust.HOUSE or _is_distinct(answer, candidate, style.names)
    at_end = ends_clause(answer, candidate)
    unknown = [name for name in candidate.names if not name.is_known]
    return all(_could_be_label(name, candidate, style, at_end=at_end) for name in unknown)


def _is_distinct(answer: str, candidate: Candidate, names: PassageNames) -> bool:
    """Return whether known labels in a form that prose uses too can be meant as nothing else."""
    match candidate.form.name:
        case "round":
            is_plain = names.are_in_parentheses
        case "braces":
            is_plain = answer.startswith("{{", candidate.start)
        case _:
            is_plain = True
    return is_plain or all(name.is_led or _DISTINCT.fullmatch(name.label) for name in candidate.names)


def _could_be_label(name: MarkerName, candidate: Candidate, style: HouseStyle, *, at_end: bool) -> bool:
    """Return whether a name that no passage has was meant as a label all the same."""
    label = name.label
    is_number = label.isdigit()
    if _DATE_OR_TIME.fullmatch(label) or (_YEAR.fullmatch(label) and not name.is_led):
        return False
    is_house = candidate.style in style.styles
    is_alike = shape_of(label) in style.shapes or (is_number and style.names.has_numbers)
    is_strong = _STRONG_ID.fullmatch(label) is not None or _FILE.fullmatch(label) is not None
    match candidate.form.name:
        case "square" | "double_link" | "nested" | "caret_bracket":
            if name.is_led or is_alike:
                return True
            if is_number or is_strong:
                return at_end
            is_plain = _FORMULA.fullmatch(label) or _MEASURE.fullmatch(label)
            return is_house and at_end and _WEAK_ID.fullmatch(label) is not None and not is_plain
        case "link":
            return is_house and (is_alike or name.is_led)
        case "special_token":
            return is_house or is_alike
        case "tag":
            tag = candidate.style.partition(" ")[2]
            return is_house or (tag in _CITING_TAGS and (is_alike or is_strong))
        case _:
            return is_house and is_alike
