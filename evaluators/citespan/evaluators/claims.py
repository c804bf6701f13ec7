"""Claims of an answer and the citations attached to them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Certainty", "Claim", "Marker", "ResolvedCitation"]


class Certainty(StrEnum):
    """How sure it is that a citation names this passage."""

    CERTAIN = "certain"
    """The label or id names exactly one passage."""

    AMBIGUOUS = "ambiguous"
    """Several passages carry the label: each candidate is an entry, the marker counts once."""

    LOW = "low"
    """Only the passage's position in retrieval order suggests it."""


@dataclass(frozen=True, slots=True)
class Marker:
    """One place in the answer that cites: a bracket such as `[1, 2]`, or a provider's range."""

    text: str
    """The marker as written in the answer; empty for a range without one."""

    start: int
    """First code point of the marker in the answer (for a range: of the text that it covers)."""

    end: int
    """One past its last code point."""

    labels: tuple[str, ...]
    """The labels or ids it names, in order: `("1", "2")` for `[1, 2]`; none for a closing tag, which cites nothing."""

    origin: str = "marker"
    """`marker` for one found in the text; else who recorded the range (`app`, `anthropic`, ...)."""

    words: tuple[int, int] | None = None
    """The part of it that still reads as the answer's words (the text of a link); `None` for most."""

    covers: tuple[int, int] | None = None
    """The range it covers where that is known: by its tags, or by a record; `None` if only its place tells."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The smallest part of an answer that can be judged alone."""

    index: int
    """0-based position among the answer's claims."""

    text: str
    """The claim to judge; it may restate a subject that its sentence shares between parts."""

    start: int
    """First code point of the claim's own words in the answer."""

    end: int
    """One past the last code point of its own words, marker excluded."""

    sentence: str
    """The sentence it came from, without markers: the context for a claim led by a pronoun.

    For a table row: its cells, each led by its column's name.
    """

    material: bool
    """Whether it asserts something a reader could check."""

    material_reason: str | None
    """The rule that made it not material (`question`, `greeting`, ...); `None` if it is material."""


@dataclass(frozen=True, slots=True)
class ResolvedCitation:
    """One (marker occurrence, target) pair and the passage it names.

    Candidates of an ambiguous citation are entries of their own that share `n`.
    """

    n: int
    """1-based number of the citation in the answer, in order of appearance."""

    marker: str
    """The marker as written, or the recorded target where the citation has no marker in the text."""

    start: int
    """First code point of the marker (or covered range) in the answer."""

    end: int
    """One past its last code point."""

    label: str
    """The one label or id of the marker that this citation is about."""

    passage_id: str | None
    """Id of the passage it names; `None` if it dangles."""

    certainty: Certainty
    """How sure the resolution is."""

    claims: tuple[int, ...]
    """Indices of the claims it is attached to."""

    reason: str | None = None
    """Why it dangles (`unknown_label`, `out_of_range`), or how it was resolved if that was not plain."""

    paragraph_claims: tuple[int, ...] = ()
    """Earlier uncited claims of its paragraph that it covers only under the scope `paragraph`."""

    @property
    def is_resolved(self) -> bool:
        """Whether it names a passage of the run."""
        return self.passage_id is not None
