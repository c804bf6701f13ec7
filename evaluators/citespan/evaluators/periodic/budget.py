"""What one pass may do before it ends cleanly; the rest waits for the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Limits", "PassBudget"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one pass; `None` is no limit."""

    traces: int | None = None
    """Traces taken."""

    seconds: float | None = None
    """Time."""

    usd: float | None = None
    """US dollars spent by the judge."""


class PassBudget:
    """Counts what a pass has used."""

    def __init__(self, limits: Limits, monotonic: Callable[[], float]) -> None:
        self._limits = limits
        self._monotonic = monotonic
        self._started = monotonic()
        self._traces = 0
        self._usd: float | None = 0.0

    def add(self, *, traces: int, usd: float | None) -> None:
        """Count traces taken and dollars spent; `None` is an unknown price, which is not zero."""
        self._traces += traces
        self._usd = None if self._usd is None or usd is None else self._usd + usd

    @property
    def traces_left(self) -> int | None:
        """How many traces may still be taken."""
        return None if self._limits.traces is None else max(0, self._limits.traces - self._traces)

    @property
    def ended_by(self) -> str | None:
        """Why the pass has to end: `traces`, `seconds`, `usd` or `price_unknown`; `None` if it may go on."""
        limits = self._limits
        if self.traces_left == 0:
            return "traces"
        if limits.seconds is not None and self._monotonic() - self._started >= limits.seconds:
            return "seconds"
        if limits.usd is None:
            return None
        if self._usd is None:
            return "price_unknown"
        return "usd" if self._usd >= limits.usd else None
