from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from citespan.evaluators.judges.judge import concurrency_of
from citespan.evaluators.overlap import overlapped
from citespan.evaluators.testing import ScriptedJudge


class PatientJudge(ScriptedJudge):
    """A judge that says how many may ask at once."""

    def __init__(self, concurrency: int) -> None:
        super().__init__()
        self.concurrency = concurrency


def test_a_judge_that_does_not_say_is_asked_by_one_thread_at_a_time() -> None:
    assert concurrency_of(ScriptedJudge()) == 1
    assert concurrency_of(PatientJudge(4)) == 4
    threads = list(overlapped(ScriptedJudge(), lambda _: threading.current_thread(), range(3)))
    assert threads == [threading.current_thread()] * 3


def test_results_come_in_order_whichever_is_done_first() -> None:
    # Four at once: item 0 cannot end before item 3 has begun, so they do overlap and 0 is not the first to end.
    begun = [threading.Event() for _ in range(12)]

    def work(n: int) -> int:
        begun[n].set()
        if n % 4 == 0:
            assert begun[n + 3].wait(10)
        return n

    assert list(overlapped(PatientJudge(4), work, range(12))) == list(range(12))


def test_items_are_read_no_further_ahead_than_twice_the_threads() -> None:
    read: list[int] = []

    def items() -> Iterator[int]:
        for n in range(100):
            read.append(n)
            yield n

    results = overlapped(PatientJudge(3), lambda n: n, items())
    assert next(results) == 0
    # Three threads: six items are taken before the first result is given.
    assert read == list(range(6))
    results.close()  # type: ignore[attr-defined]  # it is a generator
    assert len(read) == 6


def test_what_the_work_raises_is_raised_in_its_turn() -> None:
    def work(n: int) -> int:
        if n == 2:
            raise ValueError("two")
        return n

    results = overlapped(PatientJudge(2), work, range(10))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match="two"):
        next(results)
