"""When a trace is taken, on a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from citespan.evaluators.periodic.arrivals import Arrival
from citespan.evaluators.periodic.settling import Settling

if TYPE_CHECKING:
    from tests.evaluators.periodic.conftest import FakeTime

Arrive = Callable[..., Arrival]


@pytest.fixture
def settling(time: FakeTime) -> Settling:
    return Settling(settle_seconds=60, settle_max_seconds=900, monotonic=lambda: time.now)


def _settled(settling: Settling) -> list[str]:
    return [trace.trace_id for trace in settling.settled()]


def test_a_whole_trace_is_taken_after_a_quiet_minute(
    settling: Settling, time: FakeTime, arrival: Arrive
) -> None:
    settling.notice(arrival(1, "t", "child", "root"))
    settling.notice(arrival(2, "t", "root"))
    time.now += 59.9
    assert _settled(settling) == []
    time.now += 0.1
    assert _settled(settling) == ["t"]


def test_a_new_span_begins_the_quiet_anew_and_one_seen_before_does_not(
    settling: Settling, time: FakeTime, arrival: Arrive
) -> None:
    settling.notice(arrival(1, "t", "root"))
    time.now += 40
    settling.notice(arrival(1, "t", "root"))
    time.now += 20
    assert _settled(settling) == ["t"]
    settling.notice(arrival(2, "t", "child", "root"))
    assert _settled(settling) == []


def test_a_trace_with_a_parent_missing_waits_for_the_longest_time(
    settling: Settling, time: FakeTime, arrival: Arrive
) -> None:
    settling.notice(arrival(1, "t", "child", "root"))
    time.now += 899
    assert _settled(settling) == []
    time.now += 1
    assert _settled(settling) == ["t"]


def test_a_late_root_makes_a_trace_whole(settling: Settling, time: FakeTime, arrival: Arrive) -> None:
    settling.notice(arrival(1, "t", "child", "root"))
    time.now += 300
    settling.notice(arrival(9, "t", "root"))
    time.now += 60
    assert _settled(settling) == ["t"]


def test_a_trace_that_never_falls_quiet_is_taken_after_the_longest_time(
    settling: Settling, time: FakeTime, arrival: Arrive
) -> None:
    settling.notice(arrival(1, "t", "root"))
    for row in range(2, 31):  # 29 spans, one each half a minute: 870 s
        time.now += 30
        assert _settled(settling) == []
        settling.notice(arrival(row, "t", f"child-{row}", "root"))
    time.now += 30
    assert _settled(settling) == ["t"]


def test_traces_are_taken_in_order_of_arrival(settling: Settling, time: FakeTime, arrival: Arrive) -> None:
    for row, trace in enumerate(("c", "a", "b"), start=1):
        settling.notice(arrival(row, trace, f"root-{trace}"))
    time.now += 60
    assert _settled(settling) == ["c", "a", "b"]


def test_the_low_water_mark_is_the_lowest_row_of_a_trace_that_waits(
    settling: Settling, arrival: Arrive
) -> None:
    settling.notice(arrival(3, "a", "root-a"))
    settling.notice(arrival(4, "b", "root-b"))
    settling.notice(arrival(5, "a", "child", "root-a"))
    assert settling.first_row(6) == 3
    settling.finish("a")
    assert settling.first_row(6) == 4
    settling.finish("b")
    assert settling.first_row(6) == 6


def test_a_trace_that_failed_is_left_alone_for_a_while(
    settling: Settling, time: FakeTime, arrival: Arrive
) -> None:
    settling.notice(arrival(1, "t", "root"))
    time.now += 60
    settling.retry_later("t", 10)
    assert _settled(settling) == []
    time.now += 10
    assert _settled(settling) == ["t"]


def test_a_trace_that_is_asked_for_need_not_be_quiet(settling: Settling) -> None:
    settling.force("t", first_row=7)
    assert _settled(settling) == ["t"]


def test_in_a_single_pass_a_trace_that_ended_long_ago_does_not_wait_for_its_parent(
    time: FakeTime, arrival: Arrive
) -> None:
    single = Settling(
        settle_seconds=60, settle_max_seconds=900, monotonic=lambda: time.now, wall=time.clock.wall
    )
    now_ns = int(time.clock.wall() * 1e9)
    single.notice(arrival(1, "old", "child-1", "root-1", end_ns=now_ns - 841 * 10**9))
    single.notice(arrival(2, "new", "child-2", "root-2", end_ns=now_ns - 839 * 10**9))
    time.now += 60
    # 841 + 60 s is beyond the 900 s, 839 + 60 s is not.
    assert _settled(single) == ["old"]
