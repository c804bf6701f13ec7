"""Write claim spans without pushing the app's own out of the way.

Claim spans share Phoenix's queue with the spans of the app. So they are sent a few at a time, the next few only
when Phoenix has stored the last; and when that takes long, or Phoenix is full, the writer waits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from citespan.evaluators.errors import Unavailable
from citespan.evaluators.judges.chat.clock import Clock
from citespan.evaluators.phoenix.client import span_id_of
from citespan.evaluators.phoenix.span_writer import SpanSink

__all__ = ["Backoff", "PacedSpans"]

SLOW_SECONDS = 5.0
"""Phoenix is behind if a span takes longer than this from POST to visible."""

_FIRST_WAIT_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 60.0
_SPANS_PER_POST = 100


class Backoff:
    """How long to wait after one trouble after another: doubling, with a random share, up to a minute."""

    def __init__(
        self,
        *,
        first_seconds: float = _FIRST_WAIT_SECONDS,
        longest_seconds: float = _LONGEST_WAIT_SECONDS,
        share: Callable[[], float] = random.random,
    ) -> None:
        """Prepare to wait; `share` gives a number from 0 to 1."""
        self._first_seconds = first_seconds
        self._longest_seconds = longest_seconds
        self._share = share
        self._troubles = 0

    def next_seconds(self) -> float:
        """Count a trouble and return how long to wait after it."""
        longest = min(self._first_seconds * 2.0**self._troubles, self._longest_seconds)
        self._troubles = min(self._troubles + 1, 30)
        return longest * (1 + self._share()) / 2

    def reset(self) -> None:
        """Forget the troubles, after a success."""
        self._troubles = 0


class PacedSpans:
    """A `SpanSink` that keeps to a rate and yields to the app's spans."""

    def __init__(
        self,
        spans: SpanSink,
        *,
        per_second: float | None,
        clock: Clock,
        is_hurried: Callable[[], bool] = lambda: False,
        backoff: Backoff | None = None,
    ) -> None:
        """Prepare to write.

        Args:
            spans: Writes and waits.
            per_second: Most spans a second; `None` is no limit.
            clock: Tells the time and waits.
            is_hurried: Whether what is under way has to end now, without keeping to the rate.
            backoff: How long to wait while Phoenix is behind.
        """
        self._spans = spans
        self._per_second = per_second
        self._clock = clock
        self._is_hurried = is_hurried
        self._backoff = backoff or Backoff()
        self._free_at = clock.monotonic()
        self._unseen: set[str] = set()
        self.waits = 0
        """How often it waited because Phoenix was full or behind."""
        self.last_visible_seconds = 0.0
        """How long the last spans took from POST to visible."""

    def add(self, spans: Sequence[Mapping[str, object]]) -> dict[str, str]:
        """Send spans and wait for each few of them; return, by span id, why Phoenix does not take one.

        Raises:
            Unavailable: Phoenix is full (503); what was not sent can be sent again later.
        """
        refused: dict[str, str] = {}
        size = _SPANS_PER_POST
        if self._per_second is not None:
            size = max(1, min(size, int(self._per_second)))
        for start in range(0, len(spans), size):
            some = spans[start : start + size]
            self._keep_pace(len(some))
            refused.update(self._send(some))
        return refused

    def wait(self, span_ids: Sequence[str]) -> set[str]:
        """Return those of these spans that did not become visible in time when they were sent."""
        unseen = self._unseen & set(span_ids)
        self._unseen -= unseen
        return unseen - self.visible(sorted(unseen)) if unseen else set()

    def visible(self, span_ids: Sequence[str]) -> set[str]:
        """Return those of these spans that Phoenix has stored in the project."""
        return self._spans.visible(span_ids)

    def take_back(self, span_ids: Sequence[str]) -> None:
        """Delete spans that were sent, those too that Phoenix stores only now."""
        self._spans.take_back(span_ids)

    def _send(self, spans: Sequence[Mapping[str, object]]) -> dict[str, str]:
        sent_at = self._clock.monotonic()
        try:
            refused = self._spans.add(spans)
        except Unavailable as error:
            if error.status in (429, 503):
                self._yield()
            raise
        self._unseen |= self._spans.wait([s for span in spans if (s := span_id_of(span)) not in refused])
        self.last_visible_seconds = self._clock.monotonic() - sent_at
        if self.last_visible_seconds > SLOW_SECONDS:
            self._yield()
        else:
            self._backoff.reset()
        return refused

    def _keep_pace(self, count: int) -> None:
        """Wait for the turn of `count` spans."""
        now = self._clock.monotonic()
        if self._free_at > now and not self._is_hurried():
            self._clock.sleep(self._free_at - now)
        if self._per_second is not None:
            self._free_at = max(self._free_at, self._clock.monotonic()) + count / self._per_second

    def _yield(self) -> None:
        self.waits += 1
        self._free_at = self._clock.monotonic() + self._backoff.next_seconds()
