"""Being asked to stop: what is under way ends, nothing new begins."""

from __future__ import annotations

import threading

from citespan.evaluators.judges.chat.clock import Clock

__all__ = ["Stop", "Stopped"]


class Stopped(BaseException):
    """Work was given up because a stop was asked for; as `KeyboardInterrupt`, it is no failure of a trace."""


class Stop:
    """Set once, from a signal's handler or another thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def __call__(self) -> None:
        """Ask to stop."""
        self._event.set()

    @property
    def is_wanted(self) -> bool:
        """Whether a stop was asked for."""
        return self._event.is_set()

    def sleep(self, seconds: float) -> None:
        """Wait, but not beyond a stop."""
        self._event.wait(seconds)

    @property
    def clock(self) -> Clock:
        """The machine's clock, on which waiting ends at a stop."""
        return Clock(sleep=self.sleep)
