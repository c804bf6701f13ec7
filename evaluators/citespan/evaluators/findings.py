"""What was found on each claim: label, the citations behind it, where it failed and what would mend it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from citespan.evaluators.claims import Claim, ResolvedCitation
from citespan.evaluators.verdicts import Label, Verdict

__all__ = ["Attachment", "Failure", "JudgedClaim", "Need", "combine"]


class Need(StrEnum):
    """What one cited passage does for its claim."""

    NEEDED = "needed"
    """The union entails the claim and stops doing so without this passage."""

    REDUNDANT = "redundant"
    """It entails the claim alone, and so do the others without it."""

    IRRELEVANT = "irrelevant"
    """It neither entails alone nor is missed by the union."""


class Failure(StrEnum):
    """Where a claim failed; the first that holds."""

    BROKEN_CITATION = "broken_citation"
    """All its citations dangle."""

    WRONG_PASSAGE = "wrong_passage"
    """Another passage of the run entails it."""

    CONTRADICTED = "contradicted"
    """A cited passage says something different."""

    OVERSTATED = "overstated"
    """Partly supported: the wording says more than the passage."""

    NOT_IN_PASSAGES = "not_in_passages"
    """Nothing retrieved supports it: a retrieval gap or an invention."""

    MISSING_CITATION = "missing_citation"
    """A material claim without a citation."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """One citation attached to one claim, with its passage's own verdict."""

    citation: ResolvedCitation
    """The citation."""

    verdict: Verdict | None
    """The verdict on its passage read on its own; `None` if it dangles."""

    need: Need | None = None
    """What it does for the claim; `None` if it dangles, or where sets were not judged."""


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim and everything found on it."""

    claim: Claim
    """The claim."""

    label: Label
    """Its one label."""

    score: float | None
    """Score of the verdict that made the label; `None` for uncited, dangling and unjudged claims."""

    reason: str
    """Why it has this label, in one plain sentence."""

    attachments: tuple[Attachment, ...]
    """Its citations in order of appearance."""

    deciding: Verdict | None = None
    """The verdict that made the label; `None` where no judge was asked."""

    deciding_passage_id: str | None = None
    """The passage that the deciding verdict is about."""

    union: Verdict | None = None
    """The verdict on all its cited passages joined; `None` if not judged, as where one of them entails it alone."""

    conflict: bool = False
    """Whether it is supported while another cited passage contradicts it."""

    failure: Failure | None = None
    """Where it failed; `None` if it did not."""

    fix: str | None = None
    """What would mend it, for a person."""

    fix_passage_id: str | None = None
    """The passage of the run that would support it, if one does."""

    covered_by_paragraph: bool = False
    """Whether an uncited claim stands before a paragraph-final marker that may have been meant for it too."""

    @property
    def is_cited(self) -> bool:
        """Whether at least one citation is attached."""
        return bool(self.attachments)

    @property
    def has_resolved_citation(self) -> bool:
        """Whether at least one of its citations resolves."""
        return any(attachment.citation.is_resolved for attachment in self.attachments)

    @property
    def is_entailed_by_union(self) -> bool:
        """Whether its cited passages, joined or one alone, entail it."""
        return self.label is Label.SUPPORTED or (
            self.union is not None and self.union.label is Label.SUPPORTED
        )

    @property
    def is_union_unknown(self) -> bool:
        """Whether it is open if its cited passages entail it: they, or one that may, could not be judged."""
        if self.label is Label.UNJUDGED:
            return True
        is_union_unjudged = self.union is not None and self.union.label is Label.UNJUDGED
        return is_union_unjudged and self.label is not Label.SUPPORTED

    @property
    def evidence(self) -> str | None:
        """The quote the deciding verdict leans on."""
        return None if self.deciding is None else self.deciding.evidence


_ORDER = (Label.SUPPORTED, Label.UNJUDGED, Label.CONTRADICTED, Label.PARTLY_SUPPORTED, Label.UNSUPPORTED)


def combine(verdicts: list[Verdict]) -> int:
    """Return the index of the verdict that makes the claim's label.

    The first that holds: supported, unjudged (support cannot be ruled out), contradicted,
    partly supported, unsupported; among equals the highest score, then the first.

    Raises:
        ValueError: `verdicts` is empty.
    """
    return min(
        range(len(verdicts)),
        key=lambda n: (_ORDER.index(verdicts[n].label), -(verdicts[n].score or 0.0), n),
    )
