"""Keep calls within a server's rate, and wait as long as it asks."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from citespan.evaluators.judges.chat.clock import Clock

__all__ = ["Throttle"]


class Throttle:
    """Spaces calls evenly over each minute and bounds how many are under way; safe between threads.

    Args:
        clock: Tells the time and waits.
        requests_per_minute: Calls started in any minute; `None` is no limit.
        tokens_per_minute: Tokens of those calls, by estimate; `None` is no limit.
        most_at_once: Calls under way at once.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        most_at_once: int = 4,
    ) -> None:
        self._clock = clock
        self._per_request = 60 / requests_per_minute if requests_per_minute else 0.0
        self._per_token = 60 / tokens_per_minute if tokens_per_minute else 0.0
        self._places = threading.BoundedSemaphore(most_at_once)
        self._lock = threading.Lock()
        self._next = 0.0
        self._held_until = 0.0

    @contextmanager
    def turn(self, tokens: int) -> Generator[None]:
        """Wait for a turn to make a call of `tokens`, and hold a place until it has ended."""
        with self._lock:
            now = self._clock.monotonic()
            starts = max(now, self._next)
            self._next = starts + max(self._per_request, tokens * self._per_token)
        while (wait := max(starts, self._held_until) - self._clock.monotonic()) > 0:
            self._clock.sleep(wait)
        with self._places:
            yield

    def hold_back(self, seconds: float) -> None:
        """Start no call for `seconds`: the server asked every caller to wait, not only the one that it told."""
        with self._lock:
            self._held_until = max(self._held_until, self._clock.monotonic() + seconds)
