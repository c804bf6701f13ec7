"""The done mark of a trace: what `cite_state` keeps, so that nothing is judged or written twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.fingerprints import claim_span_id, generation, run_fingerprint
from citespan.evaluators.judges.judge import JudgeCard
from citespan.evaluators.options import EvaluateOptions
from citespan.evaluators.runs import Run, RunOrigin, RunState
from citespan.evaluators.settings import ClaimsMode

__all__ = ["MarkedRun", "TraceMark", "origin_of", "shows_claim_spans"]

SCHEMA = 1
"""Version of the mark written here; readers accept every earlier one."""


class MarkedRun(BaseModel):
    """What the mark says of one run."""

    model_config = ConfigDict(frozen=True)

    root_span_id: str
    """The trace's root, or the topmost span that was there."""

    answer_span_id: str
    """The span whose output is the answer."""

    state: RunState | None
    """Why it was not judged as usual."""

    reasons: tuple[str, ...] = ()
    """Reasons of the state, and of how the run was read."""

    resolution: str = "explicit"
    """`explicit` or `inferred`."""

    generation: str
    """The reading of the answer that its claim spans belong to."""

    run_fingerprint: str
    """Changes whenever the evaluation could."""

    judge: str
    """Name of the judge."""

    judge_fingerprint: str
    """Everything that can change the judge's verdicts."""

    claims: int
    """How many claims it has."""

    has_claim_spans: bool
    """Whether each of them has a claim span."""

    def claim_span_ids(self, trace_id: str) -> set[str]:
        """Return the ids of the run's claim spans."""
        if not self.has_claim_spans:
            return set()
        return {
            claim_span_id(trace_id, self.answer_span_id, self.generation, index)
            for index in range(self.claims)
        }


class TraceMark(BaseModel):
    """What `cite_state` keeps of one evaluation of one trace."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_version: int = Field(default=SCHEMA, alias="schema", ge=1, le=SCHEMA)
    """Version of the mark."""

    claims_mode: ClaimsMode
    """How claims were asked to be shown."""

    runs: tuple[MarkedRun, ...]
    """The trace's runs, in start order."""

    @classmethod
    def of(cls, evaluations: Sequence[Evaluation], claims_mode: ClaimsMode) -> Self:
        """Return the mark of a trace whose runs were evaluated."""
        return cls(
            claims_mode=claims_mode,
            runs=tuple(_marked_run(evaluation, claims_mode) for evaluation in evaluations),
        )

    @classmethod
    def read(cls, metadata: Mapping[str, object]) -> Self | None:
        """Return the mark that a row's metadata holds; `None` if it holds none that this version reads."""
        try:
            return cls.model_validate(metadata)
        except ValidationError:
            return None

    def covers(self, runs: Sequence[Run], judge: JudgeCard, options: EvaluateOptions) -> bool:
        """Return whether exactly these runs, as they are read now, were evaluated by this judge."""
        marked = [(run.root_span_id, run.answer_span_id, run.run_fingerprint) for run in self.runs]
        found: list[tuple[str, str, str]] = []
        for run in runs:
            origin = origin_of(run)
            fingerprint = run_fingerprint(run, judge, options)
            found.append((origin.root_span_id, origin.answer_span_id, fingerprint))
        return marked == found


def shows_claim_spans(evaluation: Evaluation, claims_mode: ClaimsMode) -> bool:
    """Return whether the claims of an evaluation get a span each."""
    if claims_mode == "findings":
        return any(claim.failure is not None or claim.conflict for claim in evaluation.claims)
    return claims_mode == "spans"


def origin_of(run: Run) -> RunOrigin:
    """Return where the run was read from.

    Raises:
        ValueError: It was read from no trace.
    """
    if run.origin is None:
        raise ValueError(f"run {run.id!r} was read from no trace: it cannot be annotated")
    return run.origin


def _marked_run(evaluation: Evaluation, claims_mode: ClaimsMode) -> MarkedRun:
    run, origin = evaluation.run, origin_of(evaluation.run)
    return MarkedRun(
        root_span_id=origin.root_span_id,
        answer_span_id=origin.answer_span_id,
        state=run.state,
        reasons=run.reasons,
        resolution=run.resolution,
        generation=generation(run, evaluation.options),
        run_fingerprint=run_fingerprint(run, evaluation.judge, evaluation.options),
        judge=evaluation.judge.name,
        judge_fingerprint=evaluation.judge.fingerprint,
        claims=len(evaluation.claims),
        has_claim_spans=shows_claim_spans(evaluation, claims_mode),
    )
