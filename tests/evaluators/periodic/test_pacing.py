"""Claim spans keep to a rate and yield to the app's own, on a clock that only moves when somebody waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

from citespan.evaluators.errors import Unavailable
from citespan.evaluators.periodic.pacing import Backoff, PacedSpans

if TYPE_CHECKING:
    from tests.evaluators.periodic.conftest import FakeTime


class FakeSink:
    """Stores spans after `delay` seconds, or refuses them all."""

    def __init__(self, time: FakeTime) -> None:
        self.time = time
        self.delay = 0.0
        self.status: int | None = None
        self.posts: list[tuple[float, int]] = []
        self.unseen: set[str] = set()

    def add(self, spans: Sequence[Mapping[str, object]]) -> dict[str, str]:
        if self.status is not None:
            raise Unavailable("full", url="", status=self.status)
        self.posts.append((self.time.now, len(spans)))
        return {}

    def wait(self, span_ids: Sequence[str]) -> set[str]:
        self.time.now += self.delay
        return self.unseen & set(span_ids)

    def visible(self, span_ids: Sequence[str]) -> set[str]:
        return set(span_ids) - self.unseen

    def take_back(self, span_ids: Sequence[str]) -> None:
        raise AssertionError("nothing is taken back here")


def _spans(count: int) -> list[Mapping[str, object]]:
    return [{"context": {"trace_id": "t", "span_id": str(n)}} for n in range(count)]


def _paced(sink: FakeSink, per_second: float | None, *, is_hurried: bool = False) -> PacedSpans:
    return PacedSpans(
        sink,
        per_second=per_second,
        clock=sink.time.clock,
        is_hurried=lambda: is_hurried,
        backoff=Backoff(share=lambda: 1.0),
    )


@pytest.fixture
def sink(time: FakeTime) -> FakeSink:
    return FakeSink(time)


def test_no_more_spans_are_sent_than_the_rate_allows(sink: FakeSink) -> None:
    _paced(sink, 20).add(_spans(50))
    # 20 at once, 20 a second later, 10 another second later.
    assert sink.posts == [(1000.0, 20), (1001.0, 20), (1002.0, 10)]


def test_the_rate_holds_over_several_batches(sink: FakeSink) -> None:
    paced = _paced(sink, 10)
    paced.add(_spans(10))
    paced.add(_spans(10))
    assert [moment for moment, _ in sink.posts] == [1000.0, 1001.0]


def test_a_rate_below_one_sends_single_spans(sink: FakeSink) -> None:
    _paced(sink, 0.5).add(_spans(2))
    assert sink.posts == [(1000.0, 1), (1002.0, 1)]


def test_without_a_rate_a_hundred_are_sent_at_a_time(sink: FakeSink) -> None:
    _paced(sink, None).add(_spans(250))
    assert sink.posts == [(1000.0, 100), (1000.0, 100), (1000.0, 50)]


def test_spans_that_are_slow_to_be_seen_make_the_writer_wait_longer_and_longer(sink: FakeSink) -> None:
    sink.delay = 6.0
    paced = _paced(sink, None)
    paced.add(_spans(300))
    # Each post takes 6 s, more than 5: then a wait of 1 s, then one of 2 s.
    assert [moment for moment, _ in sink.posts] == [1000.0, 1007.0, 1015.0]
    assert paced.waits == 3
    assert paced.last_visible_seconds == 6.0


def test_spans_that_are_seen_in_time_make_nobody_wait(sink: FakeSink) -> None:
    sink.delay = 4.9
    paced = _paced(sink, None)
    paced.add(_spans(200))
    assert [moment for moment, _ in sink.posts] == [1000.0, 1004.9]
    assert paced.waits == 0


def test_after_spans_that_were_seen_in_time_the_waits_begin_anew(sink: FakeSink) -> None:
    paced = _paced(sink, None)
    for delay in (6.0, 0.0, 6.0, 0.0):
        sink.delay = delay
        paced.add(_spans(1))
    # After each slow post a wait of 1 s: 6 + 1, nothing, 6 + 1.
    assert [moment for moment, _ in sink.posts] == [1000.0, 1007.0, 1007.0, 1014.0]


def test_a_full_server_is_left_alone_for_a_while(sink: FakeSink) -> None:
    paced = _paced(sink, None)
    sink.status = 503
    with pytest.raises(Unavailable):
        paced.add(_spans(1))
    sink.status = None
    paced.add(_spans(1))
    assert sink.posts == [(1001.0, 1)]


def test_after_a_stop_what_is_under_way_is_written_at_once(sink: FakeSink) -> None:
    _paced(sink, 20, is_hurried=True).add(_spans(60))
    assert {moment for moment, _ in sink.posts} == {1000.0}


def test_spans_that_were_not_seen_in_time_are_named(sink: FakeSink) -> None:
    sink.unseen = {"3"}
    paced = _paced(sink, None)
    paced.add(_spans(5))
    assert paced.wait(["1", "2", "3"]) == {"3"}


def test_waits_double_up_to_a_minute_and_begin_anew_after_a_success() -> None:
    backoff = Backoff(share=lambda: 0.0)
    # The random share is 0: half of 1, 2, 4 ... 32, then of the longest, 60.
    assert [backoff.next_seconds() for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    backoff.reset()
    assert backoff.next_seconds() == 0.5
