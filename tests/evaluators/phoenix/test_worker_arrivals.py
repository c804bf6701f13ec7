"""What has arrived is seen once, whatever Phoenix does with the numbers of its spans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from citespan.evaluators.periodic.arrivals import WINDOW, Arrivals
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.records import Project

if TYPE_CHECKING:
    from tests.evaluators.phoenix.conftest import FakePhoenix


@pytest.fixture
def arrivals(client: PhoenixClient, project: Project) -> Arrivals:
    return Arrivals(client, project)


def _new(arrivals: Arrivals) -> list[int]:
    """Return the span ids of what is new."""
    return [int(arrival.span_id, 16) for page in arrivals.new() for arrival in page]


def test_a_span_is_new_once(phoenix: FakePhoenix, arrivals: Arrivals) -> None:
    phoenix.add(1, 10)
    phoenix.add(1, 11, parent=10)
    assert _new(arrivals) == [10, 11]
    assert _new(arrivals) == []
    phoenix.add(2, 20, seconds=-3600)  # started long ago, arrived now
    assert _new(arrivals) == [20]
    assert arrivals.next_row == 4


def test_spans_of_an_evaluator_are_not_read(phoenix: FakePhoenix, arrivals: Arrivals) -> None:
    phoenix.add(1, 10)
    phoenix.add(1, 11, parent=10, kind="EVALUATOR")
    assert _new(arrivals) == [10]


def test_a_number_that_appears_late_is_seen(phoenix: FakePhoenix, arrivals: Arrivals) -> None:
    for n in range(1, 6):
        phoenix.add(n, 10 * n)
    late = phoenix.spans.pop(2)  # stored under its number only after the others are visible
    assert _new(arrivals) == [10, 20, 40, 50]
    phoenix.spans.append(late)
    assert _new(arrivals) == [30]


def test_numbers_given_again_to_other_spans_are_seen(phoenix: FakePhoenix, arrivals: Arrivals) -> None:
    for n in range(1, 6):
        phoenix.add(n, 10 * n)
    assert _new(arrivals) == [10, 20, 30, 40, 50]
    del phoenix.spans[2:]
    phoenix.add(6, 60)  # gets the number that span 30 had
    assert _new(arrivals) == [60]
    assert arrivals.rewinds == 0


def test_when_nothing_is_as_it_was_everything_is_read_anew(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    for n in range(1, WINDOW + 101):
        phoenix.add(n, n)
    arrivals = Arrivals(client, project)
    assert len(_new(arrivals)) == WINDOW + 100
    # The last 550 spans go, more than the window; 5 others get the first of their numbers.
    del phoenix.spans[50:]
    for n in range(1, 6):
        phoenix.add(5000 + n, 5000 + n)
    assert set(_new(arrivals)) >= {5001, 5002, 5003, 5004, 5005}
    assert arrivals.rewinds == 1
    assert arrivals.next_row == 56
    assert _new(arrivals) == []


def test_after_a_restart_only_what_was_not_finished_is_given_again(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project, arrivals: Arrivals
) -> None:
    for n in (1, 2, 3):
        phoenix.add(n, 10 * n)
        phoenix.add(n, 10 * n + 1, parent=10 * n)
    assert len(_new(arrivals)) == 6
    # Trace 2, whose first span has the number 3, still waited.
    again = Arrivals(client, project, low_water=3, window=arrivals.window, unfinished=[f"{2:032x}"])
    assert _new(again) == [20, 21]
    assert _new(again) == []


def test_a_position_beyond_the_end_of_the_list_rewinds(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project, arrivals: Arrivals
) -> None:
    for n in range(1, 4):
        phoenix.add(n, 10 * n)
    assert len(_new(arrivals)) == 3
    window = arrivals.window
    phoenix.spans.clear()
    phoenix.add(7, 70)
    again = Arrivals(client, project, low_water=4, window=window)
    assert _new(again) == [70]
    assert (again.rewinds, again.next_row) == (1, 2)


def test_the_window_does_not_grow(phoenix: FakePhoenix, arrivals: Arrivals) -> None:
    for n in range(1, WINDOW + 50):
        phoenix.add(n, n)
    _new(arrivals)
    assert len(arrivals.window) == WINDOW
    assert arrivals.window[0].row == 50
    phoenix.requests.clear()
    _new(arrivals)
    assert len(phoenix.requests) <= 3


def test_a_span_with_ids_that_no_sdk_writes_stops_nothing(phoenix: FakePhoenix, arrivals: Arrivals) -> None:
    phoenix.add(1, 10)
    phoenix.add(2, 20)
    phoenix.add(3, 30)
    phoenix.spans[1]["context"]["span_id"] = "not hexadecimal"
    assert _new(arrivals) == [10, 30]
    assert _new(arrivals) == []
    assert arrivals.unreadable == 1
