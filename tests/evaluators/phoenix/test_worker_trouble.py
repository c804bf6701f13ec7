"""A worker through Phoenix's failures: a server in trouble is waited out, a trace at fault is set aside."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
import pytest

from citespan.evaluators.errors import Unavailable
from citespan.evaluators.judges.chat.clock import Clock
from citespan.evaluators.judges.judge import JudgeCard, JudgeRequest
from citespan.evaluators.periodic.loop import Worker
from citespan.evaluators.periodic.plan import Plan
from citespan.evaluators.periodic.state import MemoryState, Position
from citespan.evaluators.periodic.stopping import Stop
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.verdicts import Label, Usage, Verdict

if TYPE_CHECKING:
    from tests.evaluators.phoenix.conftest import FakePhoenix

Answer = Callable[[httpx.Request], httpx.Response | None]


class PricedJudge:
    """Supports every claim for a quarter of a dollar."""

    card = JudgeCard(name="priced", version="1", sends_text_to="judge.test")

    def __init__(self, on_call: Callable[[], None] = lambda: None) -> None:
        self.on_call = on_call

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        self.on_call()
        usage = Usage(prompt_tokens=100, completion_tokens=10, cost_usd=0.25)
        return [Verdict(label=Label.SUPPORTED, score=1.0, reason="Fine.", usage=usage) for _ in requests]


@dataclass
class Bench:
    """A worker on the Phoenix in memory, and a clock that the test moves."""

    phoenix: FakePhoenix
    client: PhoenixClient
    now: float = 0.0

    def __post_init__(self) -> None:
        self.answer_with(lambda _: None)

    def answer_with(self, answer: Answer) -> None:
        """Let `answer` answer in Phoenix's place, where it does."""

        def answer_or_project(request: httpx.Request) -> httpx.Response | None:
            if (given := answer(request)) is not None:
                return given
            is_project = request.method == "GET" and request.url.path.endswith("/projects/demo")
            project = {"data": {"id": "UHJvamVjdDox", "name": "demo"}}
            return httpx.Response(200, json=project) if is_project else None

        self.phoenix.fail = answer_or_project

    def worker(self, **more: object) -> Worker:
        """Make a worker that takes traces at once."""
        plan = Plan(project="demo", settle_seconds=0, claim_spans_per_second=None, most_tries=2)
        given = {"judge": PricedJudge(), "state": MemoryState(), "plan": plan, "clock": self.clock, **more}
        return Worker(self.client, **given)  # type: ignore[arg-type]  # what a test gives instead

    @property
    def clock(self) -> Clock:
        return Clock(monotonic=lambda: self.now, wall=lambda: 1e9 + self.now, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def add_run(self, trace: int, answer: str = "All is well [1].") -> None:
        record = {"schema": 1, "passage_count": 1, "passages": [{"id": "a", "label": "1", "sha256": None}]}
        documents = {
            "retrieval__documents__0__document__id": "a",
            "retrieval__documents__0__document__content": "All is well today.",
        }
        self.phoenix.add(trace, 10 * trace + 1, parent=10 * trace, kind="RETRIEVER", **documents)
        run = {"input__value": "How?", "output__value": answer, "citespan__run": json.dumps(record)}
        self.phoenix.add(trace, 10 * trace, **run)

    @property
    def done(self) -> list[int]:
        """The traces that are done, in order."""
        return sorted(int(target, 16) for target, name, _ in self.phoenix.rows if name == "cite_state")


@pytest.fixture
def bench(phoenix: FakePhoenix, client: PhoenixClient) -> Bench:
    return Bench(phoenix, client)


def test_a_trace_that_phoenix_fails_on_is_set_aside_and_the_others_are_done(bench: Bench) -> None:
    for trace in range(1, 31):
        bench.add_run(trace)
    bench.answer_with(lambda request: httpx.Response(500) if _is_read_of(request, 7) else None)
    worker = bench.worker()
    report = worker.one_pass()
    assert list(report.failed) == [f"{7:032x}"]
    assert bench.done == [n for n in range(1, 31) if n != 7]
    bench.now += 10
    bench.add_run(31)
    assert worker.one_pass().skipped["set_aside"] == 1
    assert worker.one_pass().pending == 0


def _is_read_of(request: httpx.Request, trace: int) -> bool:
    return request.method == "GET" and f"{trace:032x}" in request.url.params.get_list("trace_id")


def test_a_phoenix_that_fails_on_every_trace_blames_none(bench: Bench) -> None:
    for trace in range(1, 31):
        bench.add_run(trace)
    bench.answer_with(lambda request: httpx.Response(500) if request.method == "POST" else None)
    worker = bench.worker()
    for _ in range(3):
        with pytest.raises(Unavailable):
            worker.one_pass()
        bench.now += 3600
    bench.answer_with(lambda _: None)
    report = worker.one_pass()
    assert (report.failed, report.pending) == ({}, 0)
    assert bench.done == list(range(1, 31))


def test_a_single_trace_that_phoenix_fails_on_is_not_blamed_while_it_may_be_the_server(bench: Bench) -> None:
    bench.add_run(1)
    bench.answer_with(lambda request: httpx.Response(500) if _is_read_of(request, 1) else None)
    worker = bench.worker()
    with pytest.raises(Unavailable):
        worker.one_pass()
    bench.answer_with(lambda _: None)
    bench.now += 30
    assert worker.one_pass().failed == {}
    assert bench.done == [1]


def test_traces_that_phoenix_fails_on_do_not_hold_up_those_behind_them(bench: Bench) -> None:
    for trace in range(1, 31):
        bench.add_run(trace)
    bad = (1, 2, 3, 4)
    bench.answer_with(
        lambda request: httpx.Response(500) if any(_is_read_of(request, n) for n in bad) else None
    )
    worker = bench.worker()
    with pytest.raises(Unavailable):  # so far it may be the server
        worker.one_pass()
    worker.one_pass()
    assert bench.done == list(range(5, 31))


def test_an_answer_that_breaks_off_is_waited_out(bench: Bench) -> None:
    bench.add_run(1)
    bench.answer_with(lambda request: httpx.Response(200, content=b'{"data": [{"id": "U3'))
    worker = bench.worker()
    with pytest.raises(Unavailable):
        worker.one_pass()
    bench.answer_with(lambda _: None)
    worker.one_pass()
    assert bench.done == [1]


def test_a_loop_goes_on_after_trouble_and_waits_longer_each_time(bench: Bench) -> None:
    bench.add_run(1)
    stop = Stop()
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            bench.answer_with(lambda _: None)
        if len(waits) == 4:
            stop()

    bench.answer_with(lambda _: httpx.Response(503))
    worker = bench.worker(stop=stop, clock=Clock(monotonic=lambda: bench.now, sleep=sleep))
    worker.run(7.0)
    assert bench.done == [1]
    # Half to all of 1, 2 and 4 seconds after each failure, then the interval.
    assert 0.5 <= waits[0] <= 1.0 <= waits[1] <= 2.0 <= waits[2] <= 4.0
    assert waits[3] == 7.0
    text = worker.metrics.text().decode()
    assert 'citespan_phoenix_errors_total{error="Unavailable"} 3.0' in text
    assert 'citespan_passes_total{end="error"} 3.0' in text
    assert 'citespan_passes_total{end="done"} 1.0' in text
    assert worker.health.not_ready is None


def test_an_outage_is_logged_once_and_its_end_too(bench: Bench) -> None:
    bench.add_run(1)
    stop = Stop()
    events: list[str] = []
    naps = 0

    def sleep(seconds: float) -> None:
        nonlocal naps
        naps += 1
        # Six passes without a key that is let in, then three that go through.
        if naps == 6:
            bench.answer_with(lambda _: None)
        if naps == 9:
            stop()

    bench.answer_with(lambda _: httpx.Response(401))
    clock = Clock(monotonic=lambda: bench.now, sleep=sleep)
    bench.worker(stop=stop, clock=clock, log=lambda event, *_, **__: events.append(event)).run(7.0)
    assert [event for event in events if event.startswith("phoenix")] == [
        "phoenix_trouble",
        "phoenix_works_again",
    ]


def test_a_stop_while_judging_leaves_nothing_half_written(bench: Bench) -> None:
    for trace in range(1, 31):
        bench.add_run(trace)
    stop = Stop()
    calls = 0

    def stop_at_the_25th() -> None:
        nonlocal calls
        calls += 1
        if calls == 25:
            stop()

    worker = bench.worker(stop=stop, judge=PricedJudge(stop_at_the_25th))
    report = worker.one_pass()
    assert report.ended_by == "stop"
    # The first 20 were written together; of the next 10 nothing was.
    assert bench.done == list(range(1, 21))
    claims = [span for span in bench.phoenix.spans if span["span_kind"] == "EVALUATOR"]
    assert {int(span["context"]["trace_id"], 16) for span in claims} == set(range(1, 21))


def test_a_stop_ends_runs_that_are_judged_at_once(bench: Bench) -> None:
    class ManyJudge(PricedJudge):
        concurrency = 4

    for trace in range(1, 31):
        bench.add_run(trace)
    stop, calls = Stop(), itertools.count(1)

    def stop_at_the_25th() -> None:
        if next(calls) == 25:
            stop()

    worker = bench.worker(stop=stop, judge=ManyJudge(stop_at_the_25th))
    assert worker.one_pass().ended_by == "stop"
    assert bench.done == list(range(1, 21))
    # Four were under way; no call began after them.
    assert next(calls) <= 25 + 4


def test_a_state_that_cannot_be_saved_stops_nothing(bench: Bench) -> None:
    class FullDisk(MemoryState):
        def save(self, scope: str, position: Position) -> None:
            raise sqlite3.OperationalError("database or disk is full")

    events: list[str] = []
    worker = bench.worker(state=FullDisk(), log=lambda event, *_, **__: events.append(event))
    bench.add_run(1)
    worker.one_pass()
    assert bench.done == [1]
    assert events.count("state_not_saved") == 1  # the metric counts each time
    assert "citespan_state_errors_total 2.0" in worker.metrics.text().decode()


def test_metrics_count_what_was_done_and_what_it_cost(bench: Bench) -> None:
    for trace in (1, 2):
        bench.add_run(trace, "All is well [1]. Nothing is cited here at all.")
    worker = bench.worker()
    worker.one_pass()
    text = worker.metrics.text().decode()
    # Two traces with one cited and one uncited claim each: coverage 2/4, support 2/2; two verdicts at $0.25.
    for line in (
        "citespan_traces_seen_total 2.0",
        "citespan_traces_taken_total 2.0",
        "citespan_runs_evaluated_total 2.0",
        'citespan_claims_total{label="supported"} 2.0',
        'citespan_claims_total{label="uncited"} 2.0',
        'citespan_measure_ratio{measure="coverage"} 0.5',
        'citespan_measure_ratio{measure="support"} 1.0',
        'citespan_measure_denominator_total{measure="coverage"} 4.0',
        "citespan_judge_cost_usd_total 0.5",
        'citespan_judge_tokens_total{direction="sent"} 200.0',
        "citespan_traces_pending 0.0",
        "citespan_judge_duration_seconds_count",
    ):
        assert line in text, line
    worker.one_pass()
    assert "citespan_runs_evaluated_total 2.0" in worker.metrics.text().decode()


def test_an_idle_pass_makes_few_requests(bench: Bench) -> None:
    for trace in range(1, 101):
        bench.add_run(trace)
    worker = bench.worker()
    worker.one_pass()
    assert len(bench.done) == 100
    bench.phoenix.requests.clear()
    worker.one_pass()
    # The project, and the window of the last spans in one to a few pages.
    assert len(bench.phoenix.requests) <= 5


def test_a_worker_that_meets_another_goes_on_elsewhere(bench: Bench) -> None:
    for trace in range(1, 101):
        bench.add_run(trace)
    other, is_alone = bench.worker(), True

    def let_the_other_work() -> None:
        nonlocal is_alone
        if is_alone:  # the other does everything while this one judges its first trace
            is_alone = False
            other.one_pass()

    worker = bench.worker(judge=PricedJudge(let_the_other_work))
    report = worker.one_pass()
    # The batch under way is done twice, the rest is only read.
    assert (report.runs_evaluated, report.runs_unchanged) == (20, 80)
    assert "citespan_runs_doubled_total 20.0" in worker.metrics.text().decode()
    assert bench.done == list(range(1, 101))
