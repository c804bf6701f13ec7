"""Several runs at once through one chat judge: the same results in the same order, within its limits."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from citespan.evaluators.evaluate import evaluate, evaluate_all
from citespan.evaluators.judges.cached import CachedJudge
from citespan.evaluators.judges.cascade import Band, CascadeJudge
from citespan.evaluators.judges.judge import Judge, JudgeRequest, concurrency_of
from citespan.evaluators.overlap import overlapped
from citespan.evaluators.runs import Run
from citespan.evaluators.testing import ScriptedJudge
from citespan.evaluators.verdicts import Label, Verdict

CALL_SECONDS = 0.05


def make_run(n: int) -> Run:
    """Return a run of two claims: the first is in its passage, the second in none, so that it takes two calls."""
    passages = [{"id": str(m), "text": f"Limit {n} is {m} GB. It never changes."} for m in (1, 2)]
    answer = f"Limit {n} is 1 GB. [1] Limit {n} is 9 GB. [2]"
    return Run.from_dict({"id": f"run-{n}", "answer": answer, "passages": passages})


RUNS = [make_run(n) for n in range(12)]


@pytest.fixture
def slow(server: Any) -> Any:
    whole = server.always

    def slowly(body: dict[str, Any]) -> Any:
        reply = whole(body)
        reply.delay_seconds = CALL_SECONDS
        return reply

    server.always = slowly
    return server


def side_by_side(judge: Judge) -> list[dict[str, object]]:
    return [result.to_dict() for result in evaluate_all(RUNS, judge)]


def one_by_one(judge: Judge) -> list[dict[str, object]]:
    return [evaluate(run, judge).to_dict() for run in RUNS]


def test_runs_overlap_up_to_the_judges_concurrency_and_their_results_are_the_same(
    slow: Any, make_judge: Any
) -> None:
    expected = one_by_one(make_judge())
    assert (slow.most_at_once, len(slow.requests)) == (1, 24)
    started = time.monotonic()
    found = side_by_side(make_judge(concurrency=4))
    seconds = time.monotonic() - started
    assert found == expected
    assert (slow.most_at_once, len(slow.requests)) == (4, 48)
    # 24 calls of 50 ms are 1.2 s one at a time, and .3 s four at a time.
    assert seconds < 24 * CALL_SECONDS


def test_more_threads_than_the_concurrency_keep_to_it(slow: Any, make_judge: Any) -> None:
    judge = make_judge(concurrency=3)
    with ThreadPoolExecutor(12) as threads:
        results = list(threads.map(lambda run: evaluate(run, judge), RUNS))
    assert slow.most_at_once == 3
    assert [result.run.id for result in results] == [run.id for run in RUNS]


def test_an_executor_for_the_calls_of_one_run_is_no_way_round_the_concurrency(
    slow: Any, make_judge: Any
) -> None:
    with ThreadPoolExecutor(8) as calls:
        side_by_side(make_judge(concurrency=4, claims_per_call=1, executor=calls))
    assert slow.most_at_once == 4


def test_calls_of_several_runs_keep_to_one_rate(make_judge: Any, time_passes: Any) -> None:
    judge = make_judge(concurrency=4, requests_per_minute=60)
    list(overlapped(judge, lambda run: evaluate(run, judge), RUNS))
    # 24 calls, one every second, the first at once: the last starts 23 s after the first, whoever makes it.
    assert time_passes.now - 1_000.0 >= 23.0
    assert judge.spend.calls == 24


def test_tokens_of_runs_side_by_side_add_up(make_judge: Any) -> None:
    judge = make_judge(concurrency=8)
    usages = [
        attachment.verdict.usage
        for result in overlapped(judge, lambda run: evaluate(run, judge), RUNS)
        for item in result.claims
        for attachment in item.attachments
        if attachment.verdict is not None
    ]
    first_calls = sum(usage.completion_tokens for usage in usages if usage is not None)
    # Two cited claims a run at 60 tokens of reply each; the search among other passages costs 60 more a run.
    assert first_calls == 12 * 2 * 60
    assert judge.spend.completion_tokens == 12 * (2 * 60 + 60)


def test_runs_side_by_side_cannot_overrun_a_budget_together(slow: Any, make_judge: Any) -> None:
    judge = make_judge(concurrency=8, budget_tokens=9_000)
    results = list(overlapped(judge, lambda run: evaluate(run, judge), RUNS))
    assert judge.spend.prompt_tokens + judge.spend.completion_tokens <= 9_000
    rules = {item.reason.split(":")[0] for result in results for item in result.claims}
    assert "budget_exhausted" in rules


def test_a_dialect_found_by_several_threads_at_once_is_the_same(
    slow: Any, make_judge: Any, reply: Any
) -> None:
    taken = slow.always

    def old_server(body: dict[str, Any]) -> Any:
        for name in ("seed", "max_tokens", "response_format"):
            if name in body:
                return reply(400, {"error": {"message": f"Unsupported parameter: '{name}'", "param": name}})
        return taken(body)

    slow.always = old_server
    judge = make_judge(concurrency=4)
    results = list(overlapped(judge, lambda run: evaluate(run, judge), RUNS))
    assert {item.label for result in results for item in result.claims} == {
        Label.SUPPORTED,
        Label.UNSUPPORTED,
    }
    asked = len(slow.requests)
    evaluate(RUNS[0], judge)
    # Once known, nothing is refused any more.
    assert len(slow.requests) == asked + 2


def test_a_cached_chat_judge_side_by_side_asks_each_claim_once(
    slow: Any, make_judge: Any, tmp_path: Path
) -> None:
    judge = CachedJudge(make_judge(concurrency=6), tmp_path / "verdicts.sqlite")
    assert concurrency_of(judge) == 6
    same = [make_run(1)] * 12
    results = [r.to_dict() for r in overlapped(judge, lambda run: evaluate(run, judge), same)]
    assert results == [results[0]] * 12
    # Twelve runs alike: one pair of calls, the rest is found, or waited for.
    assert len(slow.requests) == 2
    assert judge.report.asked == 12 * 3
    assert judge.report.found == 11 * 3


class CallersAtOnce(ScriptedJudge):
    """A judge that is not made for threads, and counts how many are in it."""

    def __init__(self) -> None:
        super().__init__(default=Verdict(label=Label.SUPPORTED, score=0.5, reason="Perhaps."))
        self.inside = self.most = 0
        self.counting = threading.Lock()

    def judge(self, requests: Any) -> list[Verdict]:
        with self.counting:
            self.inside += 1
            self.most = max(self.most, self.inside)
        time.sleep(0.002)
        with self.counting:
            self.inside -= 1
        return super().judge(requests)


def test_a_cascade_side_by_side_lets_one_thread_at_a_time_into_a_judge_that_takes_one(
    slow: Any, make_judge: Any
) -> None:
    first = CallersAtOnce()
    judge = CascadeJudge([first, make_judge(concurrency=4)], Band())
    assert concurrency_of(judge) == 4
    expected = one_by_one(CascadeJudge([CallersAtOnce(), make_judge()], Band()))
    assert side_by_side(judge) == expected
    assert first.most == 1
    assert slow.most_at_once == 4
    # Two cited claims and one other passage a run, all of them borderline.
    assert judge.report.asked == (36, 36)


def test_closing_the_judge_ends_every_thread_that_waits(server: Any, make_judge: Any, reply: Any) -> None:
    from citespan.evaluators.judges.chat.clock import SYSTEM_CLOCK

    server.always = lambda _: reply(429, "", {"retry-after": "60"})
    judge = make_judge(concurrency=4, clock=SYSTEM_CLOCK)
    timer = threading.Timer(0.3, judge.close)
    timer.start()
    started = time.monotonic()
    results = list(overlapped(judge, lambda run: evaluate(run, judge), RUNS))
    assert time.monotonic() - started < 10
    assert {item.label for result in results for item in result.claims} == {Label.UNJUDGED}
    timer.join()


def test_a_thread_that_waits_for_another_asks_itself_where_that_one_failed(tmp_path: Path, ask: Any) -> None:
    begun, go = threading.Event(), threading.Event()

    class FailsFirst(ScriptedJudge):
        concurrency = 2

        def judge(self, requests: list[JudgeRequest]) -> list[Verdict]:  # type: ignore[override]
            if not begun.is_set():
                begun.set()
                go.wait(10)
                self.batches.append(len(requests))
                return [Verdict.unjudged("timeout") for _ in requests]
            return super().judge(requests)

    inner = FailsFirst()
    judge = CachedJudge(inner, tmp_path / "v.sqlite")
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(judge.judge, [ask("A.", "A.")])
        begun.wait(10)
        second = threads.submit(judge.judge, [ask("A.", "A."), ask("B.", "B.")])
        go.set()
        assert first.result(10)[0].rule == "timeout"
        assert [verdict.label for verdict in second.result(10)] == ["unsupported", "unsupported"]
    # B was the second thread's own to ask; A once more, since the first thread's answer was none.
    assert inner.batches == [1, 1, 1]
