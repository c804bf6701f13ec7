"""Limits end a pass, and an unknown price is not zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citespan.evaluators.periodic.budget import Limits, PassBudget

if TYPE_CHECKING:
    from tests.evaluators.periodic.conftest import FakeTime


def _budget(time: FakeTime, limits: Limits) -> PassBudget:
    return PassBudget(limits, time.clock.monotonic)


def test_without_limits_nothing_ends_a_pass(time: FakeTime) -> None:
    budget = _budget(time, Limits())
    budget.add(traces=10**6, usd=None)
    time.now += 10**6
    assert (budget.ended_by, budget.traces_left) == (None, None)


def test_traces_end_a_pass(time: FakeTime) -> None:
    budget = _budget(time, Limits(traces=30))
    budget.add(traces=20, usd=0.0)
    assert (budget.ended_by, budget.traces_left) == (None, 10)
    budget.add(traces=10, usd=0.0)
    assert (budget.ended_by, budget.traces_left) == ("traces", 0)


def test_time_ends_a_pass(time: FakeTime) -> None:
    budget = _budget(time, Limits(seconds=60))
    time.now += 59
    assert budget.ended_by is None
    time.now += 1
    assert budget.ended_by == "seconds"


def test_money_ends_a_pass(time: FakeTime) -> None:
    budget = _budget(time, Limits(usd=0.5))
    budget.add(traces=0, usd=0.25)
    assert budget.ended_by is None
    budget.add(traces=0, usd=0.25)
    assert budget.ended_by == "usd"


def test_an_unknown_price_ends_a_pass_that_has_a_limit_in_dollars(time: FakeTime) -> None:
    budget = _budget(time, Limits(usd=0.5))
    budget.add(traces=0, usd=None)
    budget.add(traces=0, usd=0.0)
    assert budget.ended_by == "price_unknown"
