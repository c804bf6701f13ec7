"""One pass over a project, as `citespan evaluate` does it: each trace once, what waits is counted, limits hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import httpx
import pytest

from citespan.evaluators.errors import NotFound
from citespan.evaluators.judges.chat.clock import Clock
from citespan.evaluators.judges.judge import JudgeCard, JudgeRequest
from citespan.evaluators.periodic.budget import Limits
from citespan.evaluators.periodic.loop import Worker
from citespan.evaluators.periodic.plan import PassReport, Plan
from citespan.evaluators.periodic.sampling import Sampling
from citespan.evaluators.periodic.state import MemoryState
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.verdicts import Label, Usage, Verdict

if TYPE_CHECKING:
    from tests.evaluators.phoenix.conftest import FakePhoenix

DAY_OF_THE_SPANS = 1_795_946_400.0
"""2026-11-29T10:00:00Z, when the Phoenix in memory says that its spans began."""


class PricedJudge:
    """Supports every claim for a quarter of a dollar."""

    card = JudgeCard(name="priced", version="1")

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        usage = Usage(prompt_tokens=100, completion_tokens=10, cost_usd=0.25)
        return [Verdict(label=Label.SUPPORTED, score=1.0, reason="Fine.", usage=usage) for _ in requests]


@dataclass
class Desk:
    """A project in memory, and single passes over it."""

    phoenix: FakePhoenix
    client: PhoenixClient
    age_seconds: float = 3600.0
    """How long ago the spans ended."""
    shown: list[int] = field(default_factory=list)

    def run_once(self, state: MemoryState | None = None, **plan: object) -> PassReport:
        """Do a pass; the numbers of the traces shown are kept in `shown`."""
        given = {"settle_seconds": 0.0, "claim_spans_per_second": None, "lookback_seconds": None, **plan}
        self.shown = []

        def show(run: object) -> None:
            origin = run.evaluation.run.origin  # type: ignore[attr-defined]  # an EvaluatedRun
            self.shown.append(int(origin.trace_id, 16))

        now = DAY_OF_THE_SPANS + self.age_seconds
        worker = Worker(
            self.client,
            Plan(project="demo", is_single_pass=True, **given),  # type: ignore[arg-type]  # what a test gives
            PricedJudge(),
            state or MemoryState(),
            clock=Clock(wall=lambda: now, sleep=lambda _: None),
            on_run=show,
        )
        return worker.run_once()

    def add_run(self, trace: int) -> None:
        self.add_retrieval(trace)
        record = {"schema": 1, "passage_count": 1, "passages": [{"id": "a", "label": "1", "sha256": None}]}
        run = {
            "input__value": "How?",
            "output__value": "All is well [1].",
            "citespan__run": json.dumps(record),
        }
        self.phoenix.add(trace, 10 * trace, **run)

    def add_retrieval(self, trace: int) -> None:
        """Store the part of a run whose root is not there yet."""
        documents = {
            "retrieval__documents__0__document__id": "a",
            "retrieval__documents__0__document__content": "All is well today.",
        }
        self.phoenix.add(trace, 10 * trace + 1, parent=10 * trace, kind="RETRIEVER", **documents)

    @property
    def marks(self) -> dict[int, dict[str, object]]:
        """By trace, what `cite_state` keeps."""
        return {
            int(target, 16): row["metadata"]
            for (target, name, _), row in self.phoenix.rows.items()
            if name == "cite_state"
        }


@pytest.fixture
def desk(phoenix: FakePhoenix, client: PhoenixClient) -> Desk:
    def answer(request: httpx.Request) -> httpx.Response | None:
        is_project = request.method == "GET" and request.url.path.endswith("/projects/demo")
        project = {"data": {"id": "UHJvamVjdDox", "name": "demo"}}
        return httpx.Response(200, json=project) if is_project else None

    phoenix.fail = answer
    return Desk(phoenix, client)


def test_what_is_there_is_judged_at_once_and_left_alone_the_next_time(desk: Desk) -> None:
    desk.age_seconds = 0.0
    for trace in (1, 2):
        desk.add_run(trace)
    first = desk.run_once()
    assert (first.done.traces, first.runs_evaluated, first.pending) == (2, 2, 0)
    again = desk.run_once()
    assert (again.runs_evaluated, again.runs_unchanged, desk.shown) == (0, 2, [])
    desk.run_once(shows_unchanged=True)
    assert desk.shown == [1, 2]


def test_a_trace_whose_root_may_still_come_is_counted_and_left_for_later(desk: Desk) -> None:
    desk.add_run(1)
    desk.add_retrieval(2)
    desk.age_seconds = 899.0  # a second before the longest wait of 15 minutes
    report = desk.run_once()
    assert (report.runs_evaluated, report.pending, dict(report.skipped)) == (1, 1, {"not_settled": 1})
    desk.age_seconds = 900.0
    report = desk.run_once()
    assert (report.taken, report.pending, dict(report.skipped)) == (2, 0, {})
    assert set(desk.marks) == {1, 2}


def test_a_trace_asked_for_by_name_is_taken_whatever_is_missing(desk: Desk) -> None:
    desk.age_seconds = 0.0
    desk.add_run(1)
    desk.add_retrieval(2)
    report = desk.run_once(trace_ids=(f"{2:032x}",))
    assert (report.taken, list(desk.marks)) == (1, [2])
    assert desk.marks[2]["sampling"] == {"rate": 1.0, "rule": "named"}


def test_a_name_that_no_trace_has_is_told_after_the_others_are_done(desk: Desk) -> None:
    desk.add_run(1)
    with pytest.raises(NotFound, match=f"has no trace {9:032x} in project 'demo'"):
        desk.run_once(trace_ids=(f"{1:032x}", f"{9:032x}"))
    assert list(desk.marks) == [1]


def test_a_share_of_the_traces_is_taken_and_says_so(desk: Desk) -> None:
    for trace in range(1, 21):
        desk.add_run(trace)
    report = desk.run_once(sampling=Sampling(0.5))
    taken = [trace for trace in range(1, 21) if Sampling(0.5).holds(f"{trace:032x}")]
    assert sorted(desk.marks) == taken
    assert report.skipped["not_sampled"] == 20 - len(taken)
    assert desk.marks[taken[0]]["sampling"] == {"rate": 0.5, "rule": "rate"}


def test_every_trace_of_a_long_list_is_taken_once_though_the_list_is_read_in_steps(desk: Desk) -> None:
    # 1000 traces that wait are taken before more is read; the page that ends the step splits a trace.
    for trace in range(1, 1102):
        desk.add_run(trace)
    report = desk.run_once(is_dry_run=True)
    assert (report.done.traces, report.runs_evaluated) == (1101, 1101)
    assert desk.shown == list(range(1, 1102))
    assert desk.phoenix.rows == {}


@pytest.mark.parametrize(
    ("limits", "ended_by", "taken"),
    [
        (Limits(traces=30), "traces", 30),
        # A batch is 20 traces of one claim at $0.25: $5 after the first, $10 after the second.
        (Limits(usd=6.0), "usd", 40),
        (Limits(seconds=0.0), "seconds", 20),
    ],
)
def test_a_limit_ends_the_pass_cleanly(desk: Desk, limits: Limits, ended_by: str, taken: int) -> None:
    for trace in range(1, 61):
        desk.add_run(trace)
    report = desk.run_once(limits=limits)
    assert (report.ended_by, report.taken, report.pending) == (ended_by, taken, 60 - taken)
    assert sorted(desk.marks) == list(range(1, taken + 1))


def test_a_state_makes_the_next_pass_go_on_where_a_limit_ended_the_last(desk: Desk) -> None:
    for trace in range(1, 61):
        desk.add_run(trace)
    state, limits = MemoryState(), Limits(traces=25)
    assert [desk.run_once(state, limits=limits).runs_evaluated for _ in range(3)] == [25, 25, 10]
    report = desk.run_once(state, limits=limits)
    assert (report.taken, report.pending) == (0, 0)


def test_only_what_began_since_then_is_read(desk: Desk) -> None:
    desk.add_run(1)
    report = desk.run_once(since=datetime(2026, 11, 29, 10, 0, 1, tzinfo=UTC))
    assert (report.seen, report.taken) == (0, 0)
    assert desk.run_once(since=datetime(2026, 11, 29, 10, 0, 0, tzinfo=UTC)).taken == 1
