"""When a trace is taken: once it has been quiet and is whole, or once it has waited long enough."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from citespan.evaluators.periodic.arrivals import Arrival

__all__ = ["PendingTrace", "Settling"]

_NS = 1_000_000_000
_YOUNG = 2**63 - 1


@dataclass(slots=True)
class PendingTrace:
    """A trace that was seen and is not finished."""

    trace_id: str
    """The trace."""

    first_row: int
    """Lowest row of its spans seen; a saved position never passes it."""

    first_seen: float
    """When its first span was seen, monotonic seconds."""

    last_new: float
    """When a new span of it was last seen, monotonic seconds."""

    start_ns: int
    """Earliest start of its spans seen, on the app's clock."""

    end_ns: int
    """Latest end of its spans seen, on the app's clock."""

    is_forced: bool = False
    """Whether it was asked for, so that it need not be quiet."""

    retry_at: float = 0.0
    """Not before this moment, after a failure; monotonic seconds."""

    spans: array[int] = field(default_factory=lambda: array("Q"))
    """Ids of the spans seen, as numbers: thousands of traces may wait, most with a few spans each."""

    parents: array[int] = field(default_factory=lambda: array("Q"))
    """Ids of the spans that spans seen hang under."""

    @property
    def missing_parents(self) -> set[str]:
        """Parents that were not seen."""
        return {f"{span_id:016x}" for span_id in self.parents if span_id not in self.spans}

    def see(self, span_id: str, parent_id: str | None = None) -> bool:
        """Take note of a span; return whether it was not seen before."""
        is_new = _add(self.spans, span_id)
        if parent_id is not None:
            _add(self.parents, parent_id)
        return is_new


def _add(ids: array[int], span_id: str) -> bool:
    number = int(span_id, 16)
    if number in ids:
        return False
    ids.append(number)
    return True


class Settling:
    """The traces that wait to be taken, in order of arrival."""

    def __init__(
        self,
        *,
        settle_seconds: float,
        settle_max_seconds: float,
        monotonic: Callable[[], float],
        wall: Callable[[], float] | None = None,
    ) -> None:
        """Prepare to wait.

        Args:
            settle_seconds: How long no new span may have been seen.
            settle_max_seconds: How long a trace waits whatever comes or is missing.
            monotonic: Seconds on a clock that is never set.
            wall: Seconds since 1970, for a single pass, which cannot wait: there a quiet trace whose last span ended
                longer than `settle_max_seconds` ago has waited long enough.
        """
        self._settle_seconds = settle_seconds
        self._settle_max_seconds = settle_max_seconds
        self._monotonic = monotonic
        self._wall = wall
        self._pending: dict[str, PendingTrace] = {}

    def __len__(self) -> int:
        """Return how many traces wait."""
        return len(self._pending)

    def __iter__(self) -> Iterator[PendingTrace]:
        """Iterate over the traces that wait."""
        return iter(list(self._pending.values()))

    def __contains__(self, trace_id: str) -> bool:
        """Return whether a trace waits."""
        return trace_id in self._pending

    def notice(self, arrival: Arrival) -> bool:
        """Take note of a span; return whether its trace is new here."""
        now = self._monotonic()
        trace = self._pending.get(arrival.trace_id)
        is_new = trace is None
        if trace is None:
            trace = PendingTrace(arrival.trace_id, arrival.row, now, now, arrival.start_ns, arrival.end_ns)
            self._pending[arrival.trace_id] = trace
        if trace.see(arrival.span_id, arrival.parent_id):
            trace.last_new = now
        trace.first_row = min(trace.first_row, arrival.row)
        trace.start_ns = min(trace.start_ns, arrival.start_ns)
        trace.end_ns = max(trace.end_ns, arrival.end_ns)
        return is_new

    def watch(self, trace_id: str, *, first_row: int) -> PendingTrace:
        """Let a trace wait of which no span was seen here."""
        now = self._monotonic()
        # Its age is not known: it counts as young, so that it is not left out for being old.
        trace = PendingTrace(trace_id, first_row, now, now, start_ns=_YOUNG, end_ns=0)
        return self._pending.setdefault(trace_id, trace)

    def force(self, trace_id: str, *, first_row: int) -> None:
        """Take a trace at the next look, whatever was seen of it."""
        self.watch(trace_id, first_row=first_row).is_forced = True

    def quiet(self) -> list[PendingTrace]:
        """Return the traces that have been quiet, whole or not, and may be tried."""
        now = self._monotonic()
        return [
            trace
            for trace in self._pending.values()
            if now >= trace.retry_at and (trace.is_forced or now - trace.last_new >= self._settle_seconds)
        ]

    def settled(self) -> list[PendingTrace]:
        """Return the traces to take now."""
        now = self._monotonic()
        quiet = [trace for trace in self.quiet() if self._is_whole_or_late(trace)]
        known = {trace.trace_id for trace in quiet}
        noisy = [
            trace
            for trace in self._pending.values()
            if trace.trace_id not in known
            and now >= trace.retry_at
            and now - trace.first_seen >= self._settle_max_seconds
        ]
        return [*quiet, *noisy]

    def finish(self, trace_id: str) -> None:
        """A trace is done; a span that comes later begins anew."""
        self._pending.pop(trace_id, None)

    def retry_later(self, trace_id: str, seconds: float) -> None:
        """Leave a trace alone for so long."""
        if trace_id in self._pending:
            self._pending[trace_id].retry_at = self._monotonic() + seconds

    def first_row(self, next_row: int) -> int:
        """Return the low-water mark: the lowest row of any trace that waits, else `next_row`."""
        return min((trace.first_row for trace in self._pending.values()), default=next_row)

    def oldest_seconds(self) -> float:
        """Return how long the trace that waits longest has waited; 0 if none does."""
        now = self._monotonic()
        return max((now - trace.first_seen for trace in self._pending.values()), default=0.0)

    def _is_whole_or_late(self, trace: PendingTrace) -> bool:
        if trace.is_forced or not trace.missing_parents:
            return True
        return self._wall is not None and self._wall() - trace.end_ns / _NS >= self._settle_max_seconds
