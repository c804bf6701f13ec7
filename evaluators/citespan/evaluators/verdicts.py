"""Labels and verdicts: what a judge says of one claim on given passages."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Label", "StrictLabel", "Usage", "Verdict"]


class StrictLabel(StrEnum):
    """The three-way scheme in which partly supported is not supported."""

    SUPPORTED = "SUPPORTED"
    """A cited passage entails the claim as written."""

    UNSUPPORTED = "UNSUPPORTED"
    """Citations exist and none entails the claim as written."""

    UNCITED = "UNCITED"
    """No citation is attached."""


class Label(StrEnum):
    """What became of a claim's promise; exactly one per claim."""

    SUPPORTED = "supported"
    """At least one cited passage, read on its own, entails the claim as written."""

    PARTLY_SUPPORTED = "partly_supported"
    """A cited passage backs only a part, or a looser or narrower version."""

    UNSUPPORTED = "unsupported"
    """Citations exist and none entails any of it."""

    CONTRADICTED = "contradicted"
    """A cited passage says something different."""

    UNCITED = "uncited"
    """No citation is attached; never the word of a judge."""

    UNJUDGED = "unjudged"
    """Judging failed or was impossible; the reason says why."""

    @property
    def strict(self) -> StrictLabel | None:
        """The label in the strict scheme; `None` for `unjudged`, which is counted apart."""
        if self is Label.UNJUDGED:
            return None
        if self is Label.UNCITED:
            return StrictLabel.UNCITED
        return StrictLabel.SUPPORTED if self is Label.SUPPORTED else StrictLabel.UNSUPPORTED


class Usage(BaseModel):
    """What one verdict cost."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt_tokens: int = 0
    """Tokens sent, this verdict's share of the call."""

    completion_tokens: int = 0
    """Tokens received, this verdict's share of the call."""

    cost_usd: float | None = None
    """US dollars; `None` where the model has no known price."""

    is_estimated: bool = False
    """Whether the server counted no tokens, so that they were estimated from the texts' length."""

    def __add__(self, other: Usage) -> Usage:
        """Return both together; the cost in dollars is unknown if either is."""
        is_priced = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost_usd=(self.cost_usd or 0.0) + (other.cost_usd or 0.0) if is_priced else None,
            is_estimated=self.is_estimated or other.is_estimated,
        )


class Verdict(BaseModel):
    """A judge's word on one claim and the passages it was shown."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: Label
    """Any label but `uncited`."""

    score: float | None = Field(default=None, ge=0.0, le=1.0)
    """Calibrated probability that the passages entail the claim; `None` for `unjudged`."""

    reason: str
    """One plain sentence for the reviewer; for `unjudged` it begins with the machine-readable reason."""

    rule: str | None = None
    """The named rule that decided (`number`, `negation`, ...); for `unjudged` the machine-readable reason."""

    evidence: str | None = None
    """The sentence of the passage that the verdict leans on, exactly as the passage has it."""

    evidence_passage_id: str | None = None
    """Id of the passage that holds the evidence, where several were judged together."""

    is_low_confidence: bool = False
    """Whether the judge itself doubts the label."""

    usage: Usage | None = None
    """What the verdict cost; `None` for judges that cost nothing."""

    @classmethod
    def unjudged(cls, rule: str, detail: str = "") -> Verdict:
        """Return the verdict of a failure: `rule` is machine-readable, `detail` tells a person more."""
        return cls(label=Label.UNJUDGED, rule=rule, reason=f"{rule}: {detail}" if detail else rule)
