"""The evaluation of one run, and its stable JSON form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from citespan.evaluators.claims import ResolvedCitation
from citespan.evaluators.findings import Attachment, JudgedClaim
from citespan.evaluators.judges.judge import JudgeCard
from citespan.evaluators.measures import Ratio, measure, pool
from citespan.evaluators.options import EvaluateOptions
from citespan.evaluators.runs import Run

__all__ = ["SCHEMA", "Evaluation", "report_to_dict"]

SCHEMA = 1
"""Version of the JSON forms written here; readers accept every earlier one."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Everything found on one run."""

    run: Run
    """The run as it was read."""

    claims: tuple[JudgedClaim, ...]
    """Its claims in order; none if the run's state stopped judging."""

    citations: tuple[ResolvedCitation, ...]
    """Its citations in order of appearance, attached to a claim or not."""

    measures: Mapping[str, Ratio]
    """Every measure by name."""

    judge: JudgeCard
    """The judge that was asked."""

    options: EvaluateOptions
    """How it was evaluated."""

    @classmethod
    def stopped(cls, run: Run, judge: JudgeCard, options: EvaluateOptions) -> Evaluation:
        """Return the evaluation of a run whose state stops judging: no claims, every measure over nothing."""
        return cls(run, (), (), measure((), ()), judge, options)

    @property
    def is_evaluated(self) -> bool:
        """Whether the run was judged, so that it counts in pooled figures."""
        return self.run.state is None or not self.run.state.stops_judging

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object of one run, pooled figures and judge: what `citespan score --json` prints."""
        return report_to_dict([self])

    def run_to_dict(self) -> dict[str, object]:
        """Return the JSON object of the run alone: one entry of `runs` in `to_dict`."""
        return _run_to_dict(self)


def report_to_dict(evaluations: Iterable[Evaluation]) -> dict[str, object]:
    """Return the stable JSON form of several evaluations by one judge.

    Raises:
        ValueError: There are no evaluations, so there is no judge to name.
    """
    evaluations = list(evaluations)
    if not evaluations:
        raise ValueError("a report needs at least one evaluation: there is none")
    judge = evaluations[0].judge
    pooled = pool(evaluation.measures for evaluation in evaluations if evaluation.is_evaluated)
    return {
        "schema": SCHEMA,
        "runs": [_run_to_dict(evaluation) for evaluation in evaluations],
        "pooled": {name: ratio.to_dict() for name, ratio in pooled.items()},
        "judge": {"name": judge.name, "fingerprint": judge.fingerprint},
    }


def _run_to_dict(evaluation: Evaluation) -> dict[str, object]:
    run = evaluation.run
    return {
        "id": run.id,
        "state": run.state,
        "reasons": list(run.reasons),
        "citations": [_citation_to_dict(citation) for citation in evaluation.citations],
        "claims": [_claim_to_dict(judged) for judged in evaluation.claims],
        "measures": {name: ratio.to_dict() for name, ratio in evaluation.measures.items()},
    }


def _citation_to_dict(citation: ResolvedCitation) -> dict[str, object]:
    return {
        "n": citation.n,
        "marker": citation.marker,
        "start": citation.start,
        "end": citation.end,
        "passage_id": citation.passage_id,
        "certainty": citation.certainty,
        "reason": citation.reason,
        "claims": list(citation.claims),
    }


def _claim_to_dict(judged: JudgedClaim) -> dict[str, object]:
    claim = judged.claim
    return {
        "text": claim.text,
        "start": claim.start,
        "end": claim.end,
        "material": claim.material,
        "material_reason": claim.material_reason,
        "label": judged.label,
        "score": judged.score,
        "reason": judged.reason,
        "evidence": judged.evidence,
        "conflict": judged.conflict,
        "failure": judged.failure,
        "fix": judged.fix,
        "covered_by_paragraph": judged.covered_by_paragraph,
        "citations": [_attachment_to_dict(attachment) for attachment in judged.attachments],
    }


def _attachment_to_dict(attachment: Attachment) -> dict[str, object]:
    citation, verdict = attachment.citation, attachment.verdict
    return {
        "n": citation.n,
        "marker": citation.marker,
        "passage_id": citation.passage_id,
        "label": None if verdict is None else verdict.label,
        "need": attachment.need,
    }
