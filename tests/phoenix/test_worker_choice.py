"""Which traces a worker takes from a real Phoenix, and when: on a clock that the test moves."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from citespan.evaluators.errors import NotFound, UsageError
from citespan.evaluators.judges.chat.clock import Clock
from citespan.evaluators.judges.judge import JudgeCard, JudgeRequest
from citespan.evaluators.judges.registry import load_judge
from citespan.evaluators.options import Splitting
from citespan.evaluators.periodic.budget import Limits
from citespan.evaluators.periodic.loop import Worker
from citespan.evaluators.periodic.plan import PassReport, Plan
from citespan.evaluators.periodic.reevaluation import Forecast, forecast
from citespan.evaluators.periodic.sampling import Sampling
from citespan.evaluators.periodic.state import MemoryState
from citespan.evaluators.phoenix.records import Annotation, Kind, Project, StoredAnnotation, Target
from citespan.evaluators.verdicts import Label, Usage, Verdict

if TYPE_CHECKING:
    from tests.phoenix.conftest import Workbench

    from citespan.evaluators.judges.judge import Judge

pytestmark = pytest.mark.phoenix


@dataclass
class FakeTime:
    """A monotonic clock that is moved by hand; the date is the real one."""

    now: float = 0.0

    @property
    def clock(self) -> Clock:
        return Clock(monotonic=lambda: self.now, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds


class BreakingJudge:
    """Breaks on a claim that says so."""

    card = JudgeCard(name="breaking", version="1")

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        if any("broken" in request.claim for request in requests):
            raise ZeroDivisionError("a bug of the judge")
        return [Verdict(label=Label.SUPPORTED, score=1.0, reason="Splendid.") for _ in requests]


class DearJudge(BreakingJudge):
    """Says beforehand that each request costs the same."""

    card = JudgeCard(name="dear", version="1", sends_text_to="judge.test")

    def __init__(self, each: Usage | None) -> None:
        self._each = each

    def estimate(self, requests: Sequence[JudgeRequest]) -> Usage | None:
        return None if self._each is None else sum([self._each] * (len(requests) - 1), self._each)


@dataclass
class Desk:
    """A project whose spans the test stores one by one, and workers on it."""

    bench: Workbench
    time: FakeTime = field(default_factory=FakeTime)
    state: MemoryState = field(default_factory=MemoryState)

    @property
    def project(self) -> Project:
        return self.bench.client.project(self.bench.name)

    def worker(self, judge: Judge | None = None, **plan: Any) -> Worker:
        given = Plan(project=self.bench.name, claim_spans_per_second=None, **plan)
        return Worker(
            self.bench.client, given, judge or load_judge("lexical"), self.state, clock=self.time.clock
        )

    def after(self, worker: Worker, seconds: float) -> PassReport:
        """Let time pass, then do one pass."""
        self.time.now += seconds
        return worker.one_pass()

    def add(self, trace: Trace, *names: str) -> None:
        """Store some spans of a trace and wait until Phoenix shows them."""
        spans = [trace.span(name) for name in names]
        self.bench.client.add_spans(Project(self.bench.name, self.bench.name), spans)
        wanted = [str(span["context"]["span_id"]) for span in spans]
        deadline = time.monotonic() + 30
        while True:
            try:
                pages = self.bench.client.span_pages(self.project, span_ids=wanted)
                if sum(len(page.spans) for page in pages) == len(wanted):
                    return
            except NotFound:
                pass
            assert time.monotonic() < deadline, f"{names} were not stored"
            time.sleep(0.05)

    def state_row(self, trace: Trace) -> StoredAnnotation | None:
        found = self.bench.client.annotations(
            self.project, Target.TRACE, target_ids=[trace.id], names=["cite_state"]
        )
        rows = list(found)
        assert len(rows) <= 1
        return rows[0] if rows else None


@dataclass
class Trace:
    """A run as an app without citespan records it: a root, its retrieval, its model call."""

    answer: str = "Refunds take five days [1]."
    age: timedelta = timedelta(0)
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    ids: dict[str, str] = field(default_factory=dict)

    def span(self, name: str) -> dict[str, Any]:
        ids = {each: self.ids.setdefault(each, os.urandom(8).hex()) for each in ("root", "retrieve", "note")}
        start = datetime.now(UTC) - self.age
        attributes: dict[str, object] = {}
        if name == "root":
            run = {"schema": 1, "passage_count": 1, "passages": [{"id": "a", "label": "1", "sha256": None}]}
            attributes = {
                "input.value": "How long?",
                "output.value": self.answer,
                "citespan.run": json.dumps(run),
            }
        elif name == "retrieve":
            attributes = {
                "retrieval.documents.0.document.id": "a",
                "retrieval.documents.0.document.content": "Refunds take five days.",
            }
        return {
            "name": name,
            "context": {"trace_id": self.id, "span_id": ids[name]},
            "parent_id": None if name == "root" else ids["root"],
            "span_kind": {"root": "CHAIN", "retrieve": "RETRIEVER", "note": "TOOL"}[name],
            "start_time": start.isoformat(),
            "end_time": (start + timedelta(milliseconds=5)).isoformat(),
            "status_code": "OK",
            "attributes": attributes,
        }


@pytest.fixture
def desk(bench: Workbench) -> Desk:
    return Desk(bench)


def test_a_trace_is_taken_once_it_has_settled_and_not_again(desk: Desk) -> None:
    trace, worker = Trace(), desk.worker()
    desk.add(trace, "root", "retrieve")
    assert (desk.after(worker, 0).taken, desk.after(worker, 59).taken) == (0, 0)
    assert desk.after(worker, 1).runs_evaluated == 1
    row = desk.state_row(trace)
    assert row is not None
    assert row.annotation.label == "evaluated"
    # Its claim spans are citespan's own: they are no change of the trace.
    later = desk.after(worker, 3600)
    assert (later.seen, later.taken, later.pending) == (0, 0, 0)


def test_a_late_span_that_changes_nothing_is_read_and_judged_no_more(desk: Desk) -> None:
    trace, worker = Trace(), desk.worker()
    desk.add(trace, "root", "retrieve")
    desk.after(worker, 0)
    assert desk.after(worker, 60).runs_evaluated == 1
    desk.add(trace, "note")
    desk.after(worker, 0)
    again = desk.after(worker, 60)
    assert (again.taken, again.runs_evaluated, again.runs_unchanged) == (1, 0, 1)


def test_a_late_passage_evaluates_the_trace_again(desk: Desk) -> None:
    trace, worker = Trace(), desk.worker()
    desk.add(trace, "root")
    desk.after(worker, 0)
    desk.after(worker, 60)
    before = desk.state_row(trace)
    desk.add(trace, "retrieve")
    desk.after(worker, 0)
    assert desk.after(worker, 60).runs_evaluated == 1
    after = desk.state_row(trace)
    assert before is not None
    assert after is not None
    assert before.annotation.metadata["runs"] != after.annotation.metadata["runs"]


def test_a_trace_whose_root_never_comes_is_taken_at_the_end_of_the_wait(desk: Desk) -> None:
    trace, worker = Trace(), desk.worker()
    desk.add(trace, "retrieve")
    desk.after(worker, 0)
    assert desk.after(worker, 899).taken == 0
    assert desk.after(worker, 1).taken == 1
    row = desk.state_row(trace)
    assert row is not None
    assert row.annotation.label == "incomplete"
    desk.add(trace, "root")
    desk.after(worker, 0)
    assert desk.after(worker, 60).runs_evaluated == 1
    row = desk.state_row(trace)
    assert row is not None
    assert row.annotation.label == "evaluated"


def test_a_state_that_was_saved_while_a_trace_waited_gives_it_again(desk: Desk) -> None:
    done, waiting = Trace(), Trace()
    desk.add(done, "root", "retrieve")
    first = desk.worker()
    desk.after(first, 0)
    desk.after(first, 60)
    desk.add(waiting, "root", "retrieve")
    assert desk.after(first, 0).pending == 1
    second = desk.worker()
    assert desk.after(second, 0).seen == 1
    report = desk.after(second, 60)
    assert (report.taken, report.runs_evaluated) == (1, 1)


def test_a_trace_deleted_while_it_waits_is_no_failure(desk: Desk) -> None:
    kept, gone, worker = Trace(), Trace(), desk.worker()
    for trace in (kept, gone):
        desk.add(trace, "root", "retrieve")
    desk.after(worker, 0)
    _delete(desk, f"traces/{gone.id}")
    report = desk.after(worker, 60)
    assert (report.runs_evaluated, dict(report.skipped), report.failed) == (1, {"trace_deleted": 1}, {})
    assert desk.state_row(gone) is None


def test_when_the_newest_traces_are_deleted_those_that_get_their_numbers_are_seen(desk: Desk) -> None:
    old, gone, worker = Trace(), Trace(), desk.worker()
    for trace in (old, gone):
        desk.add(trace, "root", "retrieve")
    desk.after(worker, 0)
    _delete(desk, f"traces/{gone.id}")
    desk.after(worker, 60)
    # SQLite gives the number of the last row that was deleted again.
    new = [Trace(), Trace()]
    for trace in new:
        desk.add(trace, "root", "retrieve")
    desk.after(worker, 0)
    desk.after(worker, 60)
    assert all(desk.state_row(trace) is not None for trace in new)


def test_a_project_deleted_and_made_anew_is_another_project(desk: Desk) -> None:
    before, after, worker = Trace(), Trace(), desk.worker()
    desk.add(before, "root", "retrieve")
    desk.after(worker, 0)
    _delete(desk, f"projects/{desk.project.id}")
    with pytest.raises(NotFound, match="no project"):
        desk.after(worker, 60)
    desk.add(after, "root", "retrieve")
    desk.after(worker, 0)
    assert desk.after(worker, 60).runs_evaluated == 1
    assert desk.state_row(after) is not None


def test_what_was_sampled_and_why_is_recorded(desk: Desk) -> None:
    taken, left = _sampled(True), _sampled(False)
    worker = desk.worker(sampling=Sampling(0.5))
    for trace in (taken, left):
        desk.add(trace, "root", "retrieve")
    desk.after(worker, 0)
    desk.after(worker, 60)
    row = desk.state_row(taken)
    assert row is not None
    assert row.annotation.metadata["sampling"] == {"rate": 0.5, "rule": "rate"}
    assert desk.state_row(left) is None


def test_bad_feedback_takes_a_trace_that_was_not_sampled(desk: Desk) -> None:
    trace = _sampled(False)
    rule = "trace_annotations['feedback'].label == 'bad'"
    worker = desk.worker(sampling=Sampling(0.5), always=(rule,))
    desk.add(trace, "root", "retrieve")
    desk.after(worker, 0)
    assert desk.after(worker, 60).taken == 0
    feedback = Annotation(trace.id, "feedback", "", kind=Kind.HUMAN, label="bad")
    desk.bench.client.annotate(Target.TRACE, [feedback])
    desk.after(worker, 0)
    assert desk.after(worker, 60).runs_evaluated == 1
    row = desk.state_row(trace)
    assert row is not None
    assert row.annotation.metadata["sampling"] == {"rate": 0.5, "rule": f"always: {rule}"}
    assert desk.after(worker, 60).taken == 0


def test_a_late_span_of_a_trace_that_a_rule_took_is_seen_after_a_restart(desk: Desk) -> None:
    trace, left = _sampled(False), _sampled(False)
    given: dict[str, Any] = {
        "sampling": Sampling(0.5),
        "always": ("trace_annotations['feedback'].label == 'bad'",),
    }
    for one in (trace, left):
        desk.add(one, "root")
    feedback = Annotation(trace.id, "feedback", "", kind=Kind.HUMAN, label="bad")
    desk.bench.client.annotate(Target.TRACE, [feedback])
    first = desk.worker(**given)
    desk.after(first, 0)
    assert desk.after(first, 60).taken == 1
    for one in (trace, left):
        desk.add(one, "retrieve")
    second = desk.worker(**given)
    desk.after(second, 0)
    report = desk.after(second, 60)
    assert (report.taken, report.runs_evaluated) == (1, 1)
    row = desk.state_row(trace)
    assert row is not None
    assert row.annotation.metadata["sampling"] == {
        "rate": 0.5,
        "rule": f"always: {given['always'][0]}",
    }
    assert desk.state_row(left) is None


def test_a_filter_leaves_traces_out(desk: Desk) -> None:
    trace = Trace()
    desk.add(trace, "root", "retrieve")
    worker = desk.worker(filter="num_spans > 2")
    desk.after(worker, 0)
    report = desk.after(worker, 60)
    assert (report.taken, dict(report.skipped), report.pending) == (0, {"filtered": 1}, 0)


def test_a_filter_that_phoenix_does_not_understand_is_wrong_usage(desk: Desk) -> None:
    desk.add(Trace(), "root", "retrieve")
    worker = desk.worker(filter="no_such_name > 2")
    desk.after(worker, 0)
    with pytest.raises(UsageError, match="--filter 'no_such_name > 2'"):
        desk.after(worker, 60)


def test_another_judge_judges_again_what_is_young_and_not_what_is_old(desk: Desk) -> None:
    young, old = Trace(), Trace(age=timedelta(hours=49))
    for trace in (young, old):
        desk.add(trace, "root", "retrieve")
    first = desk.worker()
    desk.after(first, 0)
    assert desk.after(first, 60).runs_evaluated == 2
    second = desk.worker(BreakingJudge())
    desk.after(second, 0)
    assert desk.after(second, 60).runs_evaluated == 1
    assert _judge_of(desk, young) == "breaking"
    assert _judge_of(desk, old) == "lexical"
    third = desk.worker(BreakingJudge(), is_reevaluating=True)
    desk.after(third, 0)
    report = desk.after(third, 60)
    assert (report.runs_evaluated, report.runs_unchanged) == (1, 1)
    assert _judge_of(desk, old) == "breaking"


def test_what_reevaluating_costs_is_told_before_it_begins(desk: Desk) -> None:
    traces = [Trace() for _ in range(3)]
    for trace in traces:
        desk.add(trace, "root", "retrieve")
    first = desk.worker()
    desk.after(first, 0)
    assert desk.after(first, 60).runs_evaluated == 3
    plan = Plan(project=desk.bench.name, is_reevaluating=True)

    def told(judge: Judge) -> Forecast:
        return forecast(desk.bench.client, plan, judge)

    same = told(load_judge("lexical"))
    assert (same.traces, same.claims, same.cost_usd) == (0, 0, 0.0)
    coarser = replace(plan, options=replace(plan.options, splitting=Splitting.SENTENCE))
    assert forecast(desk.bench.client, coarser, load_judge("lexical")).traces == 3
    local = told(BreakingJudge())
    assert (local.traces, local.claims, local.cost_usd) == (3, 3, 0.0)
    assert local.to_dict()["cost"] == "nothing: the judge runs on this machine"
    # A dollar a token sent and two a token received: 100 and 50 tokens for each of three claims.
    priced = told(DearJudge(Usage(prompt_tokens=100, completion_tokens=50, cost_usd=200.0)))
    assert (priced.traces, priced.tokens, priced.cost_usd) == (3, 450, 600.0)
    assert priced.to_dict()["cost"] == "about $600.00 at most, estimated from 3 claims"
    unpriced = told(DearJudge(Usage(prompt_tokens=100)))
    assert (unpriced.tokens, unpriced.cost_usd) == (300, None)
    assert unpriced.to_dict()["cost"] == "unknown: no price is known of what judge.test asks"
    silent = told(DearJudge(None))
    assert (silent.tokens, silent.cost_usd) == (None, None)


def test_an_old_trace_is_left_alone_though_the_state_is_lost(desk: Desk) -> None:
    old = Trace(age=timedelta(hours=49))
    desk.add(old, "root", "retrieve")
    first = desk.worker()
    desk.after(first, 0)
    desk.after(first, 60)
    second = replace(desk, state=MemoryState()).worker(BreakingJudge())
    desk.after(second, 0)
    report = desk.after(second, 60)
    assert (report.taken, dict(report.skipped)) == (0, {"older_than_lookback": 1})


def test_a_trace_that_breaks_the_judge_is_set_aside_and_tried_again_when_asked(desk: Desk) -> None:
    from citespan.evaluators.periodic.failures import ask_again

    bad, good = Trace(answer="Refunds are broken [1]."), Trace()
    worker = desk.worker(BreakingJudge(), most_tries=2)
    for trace in (bad, good):
        desk.add(trace, "root", "retrieve")
    desk.after(worker, 0)
    report = desk.after(worker, 60)
    assert (report.runs_evaluated, list(report.failed)) == (1, [bad.id])
    assert desk.after(worker, 9).taken == 0
    assert desk.after(worker, 1).skipped["set_aside"] == 1
    assert desk.after(worker, 3600).pending == 0
    (scope,) = [f"{desk.bench.client.connection.base_url} {desk.project.id} citespan 1/1"]
    (failure,) = desk.state.failures(scope)
    assert failure.reason == "not_evaluated: ZeroDivisionError: a bug of the judge"
    assert ask_again(desk.state, scope, []) == 1
    assert desk.after(worker, 0).taken == 1


def test_a_limit_ends_a_pass_and_the_next_goes_on(desk: Desk) -> None:
    worker = desk.worker(limits=Limits(traces=2))
    for _ in range(5):
        desk.add(Trace(), "root", "retrieve")
    desk.after(worker, 0)
    reports = [desk.after(worker, 60) for _ in range(3)]
    assert [(report.taken, report.ended_by, report.pending) for report in reports] == [
        (2, "traces", 3),
        (2, "traces", 1),
        (1, None, 0),
    ]


def test_one_pass_alone_watches_until_the_traces_have_settled(desk: Desk) -> None:
    desk.add(Trace(), "root", "retrieve")
    report = desk.worker(is_single_pass=True).run_once()
    assert (report.runs_evaluated, report.pending) == (1, 0)
    assert desk.time.now == 60.0


def _sampled(is_sampled: bool) -> Trace:
    """Return a trace that a rate of 0.5 takes, or one that it does not."""
    while True:
        trace = Trace()
        if Sampling(0.5).holds(trace.id) is is_sampled:
            return trace


def _judge_of(desk: Desk, trace: Trace) -> str:
    row = desk.state_row(trace)
    assert row is not None
    runs: Any = row.annotation.metadata["runs"]
    return str(runs[0]["judge"])


def _delete(desk: Desk, path: str) -> None:
    answer = httpx.delete(f"{desk.bench.client.connection.base_url}/v1/{path}", timeout=30)
    assert answer.is_success, answer.text
