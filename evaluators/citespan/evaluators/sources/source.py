"""Where traces come from: spans as plain values, and the protocol of a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["Source", "Span", "Trace"]


@dataclass(frozen=True, slots=True)
class Span:
    """One span, whatever store it came from."""

    trace_id: str
    """32 lower-case hex digits."""

    span_id: str
    """16 lower-case hex digits."""

    parent_id: str | None
    """Span id of the parent; `None` for a root."""

    name: str
    """Span name."""

    kind: str
    """OpenInference span kind in upper case, or `UNKNOWN`."""

    start_ns: int
    """Start, Unix nanoseconds."""

    end_ns: int
    """End, Unix nanoseconds."""

    attributes: Mapping[str, object]
    """Attributes under flat dotted keys; values as the store gave them (JSON strings are left as strings)."""

    status: str = "UNSET"
    """`OK`, `ERROR` or `UNSET`."""

    scope: str | None = None
    """Instrumentation scope, where the store tells it."""

    dropped_attributes: int = 0
    """How many attributes the SDK says it dropped, where the store tells it."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The spans of one trace that the store has, in start order."""

    trace_id: str
    """32 lower-case hex digits."""

    spans: tuple[Span, ...]
    """At least one span."""

    url: str | None = None
    """Where a person can look at it."""

    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    """What else the store says of the trace."""


class Source(Protocol):
    """Yields whole traces, oldest first, one at a time: memory does not grow with their number."""

    def traces(self) -> Iterator[Trace]:
        """Yield the traces.

        Raises:
            ServerError: The store cannot be reached or refuses.
            InputError: A file cannot be read as spans.
        """
        ...
