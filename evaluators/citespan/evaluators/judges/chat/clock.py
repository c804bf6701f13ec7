"""Time, as the parts that wait see it; tests hand in their own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["SYSTEM_CLOCK", "Clock"]


@dataclass(frozen=True, slots=True)
class Clock:
    """How to tell the time and how to wait."""

    monotonic: Callable[[], float] = time.monotonic
    """Seconds on a clock that is never set."""

    wall: Callable[[], float] = time.time
    """Seconds since 1970, for dates that a server sends."""

    sleep: Callable[[float], object] = time.sleep
    """Wait this many seconds; it may return early."""


SYSTEM_CLOCK = Clock()
"""The machine's own."""
