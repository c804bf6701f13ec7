"""What evaluating a project again would take, told before it begins: traces, claims, and dollars at most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from citespan.evaluators.annotate.rows import STATE
from citespan.evaluators.annotate.series import identifier_of
from citespan.evaluators.annotate.trace_mark import TraceMark
from citespan.evaluators.errors import NotFound
from citespan.evaluators.evaluate import evaluate
from citespan.evaluators.judges.judge import Judge, JudgeCard, JudgeRequest, estimate_of
from citespan.evaluators.judges.registry import load_judge
from citespan.evaluators.periodic.plan import Plan
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.records import Project, Target
from citespan.evaluators.reading.reader import read_runs
from citespan.evaluators.sources.phoenix import PhoenixSource
from citespan.evaluators.sources.source import Trace
from citespan.evaluators.verdicts import Usage, Verdict

__all__ = ["Forecast", "forecast"]

SAMPLE = 20
"""Traces that are read for the estimate."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is about to be evaluated again."""

    traces: int
    """Traces that another judge, or the same with other options, evaluated."""

    claims: int
    """Their claims, as they were split then."""

    sampled_claims: int
    """Claims of the traces that were read for the estimate."""

    sampled: Usage | None
    """What judging those would cost at most; `None` if the judge cannot say."""

    sends_text_to: str | None
    """Host that receives the claims and passages; `None` for a judge on this machine."""

    @property
    def cost_usd(self) -> float | None:
        """US dollars at most; `None` where no price is known, which is not zero."""
        if self.sends_text_to is None or not self.traces:
            return 0.0
        if self.sampled is None or self.sampled.cost_usd is None or not self.sampled_claims:
            return None
        return self.sampled.cost_usd * self.claims / self.sampled_claims

    @property
    def tokens(self) -> int | None:
        """Tokens sent and received at most; `None` if the judge cannot say."""
        if self.sends_text_to is None or not self.traces:
            return 0
        if self.sampled is None or not self.sampled_claims:
            return None
        used = self.sampled.prompt_tokens + self.sampled.completion_tokens
        return round(used * self.claims / self.sampled_claims)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form, and the cost in words."""
        cost = self.cost_usd
        if self.sends_text_to is None:
            words = "nothing: the judge runs on this machine"
        elif cost is None:
            words = f"unknown: no price is known of what {self.sends_text_to} asks"
        else:
            words = f"about ${cost:.2f} at most, estimated from {self.sampled_claims} claims"
        return {
            "traces": self.traces,
            "claims": self.claims,
            "tokens": self.tokens,
            "cost_usd": None if cost is None else round(cost, 4),
            "cost": words,
        }


def forecast(client: PhoenixClient, plan: Plan, judge: Judge) -> Forecast:
    """Return what `--reevaluate` is about to take; nothing is judged and nothing is sent to a judge.

    Claims come from the marks of the earlier evaluation, and tokens per claim from the requests that some of those
    traces would make.

    Raises:
        ServerError: Phoenix cannot be reached or refuses.
    """
    project = client.project(plan.project)
    card = judge.card
    claims: dict[str, int] = {}
    same: dict[str, int] = {}
    some_same: dict[str, TraceMark] = {}
    for trace_id, mark in _marks(client, project, plan):
        is_same = all(run.judge_fingerprint == card.fingerprint for run in mark.runs)
        (same if is_same else claims)[trace_id] = sum(run.claims for run in mark.runs)
        if is_same and len(some_same) < SAMPLE:
            some_same[trace_id] = mark
    if _are_outdated(client, project, plan, card, some_same):
        claims |= same
    sample = _spread([trace_id for trace_id, count in claims.items() if count])
    asking = _Asking(judge)
    sampled_claims = 0
    for trace in _existing(client, project, sample) if card.sends_text_to is not None else ():
        for run in read_runs(trace, plan.rules):
            sampled_claims += len(evaluate(run, asking, plan.options).claims)
    sampled = estimate_of(judge, asking.requests) if sampled_claims else None
    return Forecast(len(claims), sum(claims.values()), sampled_claims, sampled, card.sends_text_to)


def _are_outdated(
    client: PhoenixClient, project: Project, plan: Plan, judge: JudgeCard, marks: Mapping[str, TraceMark]
) -> bool:
    """Return whether most of these traces would be evaluated again: the same judge evaluated them, with other options."""
    traces = list(_existing(client, project, list(marks)))
    outdated = [
        trace
        for trace in traces
        if not marks[trace.trace_id].covers(read_runs(trace, plan.rules), judge, plan.options)
    ]
    return len(outdated) * 2 > len(traces)


class _Asking:
    """Stands in for a judge: keeps what it would be asked, and answers as the embedded judge does."""

    def __init__(self, judge: Judge) -> None:
        self._card = judge.card
        self._stand_in = load_judge("lexical")
        self.requests: list[JudgeRequest] = []

    @property
    def card(self) -> JudgeCard:
        """What the judge is that it stands in for."""
        return self._card

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Return one verdict per request, in the same order."""
        self.requests += requests
        return self._stand_in.judge(requests)


def _marks(client: PhoenixClient, project: Project, plan: Plan) -> Iterator[tuple[str, TraceMark]]:
    """Yield the marks of the plan's series on the traces that the plan takes."""
    rows = client.annotations(project, Target.TRACE, identifier=identifier_of(plan.series), names=[STATE])
    for row in rows:
        trace_id = row.annotation.target_id
        mark = TraceMark.read(row.annotation.metadata)
        if mark is not None and plan.leaves_out(trace_id) is None:
            yield trace_id, mark


def _spread(trace_ids: Sequence[str]) -> list[str]:
    """Return a few of the traces, from all over the list."""
    step = max(1, len(trace_ids) // SAMPLE)
    return list(trace_ids[::step][:SAMPLE])


def _existing(client: PhoenixClient, project: Project, trace_ids: Sequence[str]) -> Iterator[Trace]:
    """Yield the traces; one that was deleted meanwhile is no trouble."""
    if not trace_ids:
        return
    try:
        yield from PhoenixSource(client, project, trace_ids=trace_ids).traces()
    except NotFound:
        return
