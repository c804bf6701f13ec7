"""A clock that only moves when told to, and workers on the Phoenix in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from citespan.evaluators.judges.chat.clock import Clock
from citespan.evaluators.periodic.arrivals import Arrival


@dataclass
class FakeTime:
    """Seconds that pass when somebody waits, or by hand."""

    now: float = 1000.0
    epoch: float = 1_800_000_000.0
    waits: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    @property
    def clock(self) -> Clock:
        return Clock(monotonic=lambda: self.now, wall=lambda: self.epoch + self.now, sleep=self.sleep)


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def arrival() -> Callable[..., Arrival]:
    """Make a span that arrives: `arrival(row, trace, span, parent)`."""

    def make(
        row: int, trace: str, span: str, parent: str | None = None, *, start_ns: int = 0, end_ns: int = 0
    ) -> Arrival:
        return Arrival(row, trace, _id(span), None if parent is None else _id(parent), start_ns, end_ns)

    return make


def _id(name: str) -> str:
    """Return the span id of a name: 16 hexadecimal digits."""
    return f"{int.from_bytes(name.encode()):016x}"
