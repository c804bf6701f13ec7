"""Spans in the order in which Phoenix stored them: each one is seen, late ones too, and none twice.

Phoenix numbers spans as they arrive. The number of a span that was deleted can be given again (SQLite), and
numbers can appear out of order (Postgres). So each look begins a window of rows before the end of the last one, and
when nothing in that window is as it was, everything is read anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from citespan.evaluators.errors import InputError
from citespan.evaluators.phoenix.client import PhoenixClient, row_of, span_id_of, trace_id_of
from citespan.evaluators.phoenix.records import Project
from citespan.evaluators.sources.phoenix import APP_KINDS
from citespan.evaluators.sources.span_json import span_from_json

__all__ = ["Arrival", "Arrivals", "SeenSpan"]

WINDOW = 500
"""How many of the last spans are read again at each look."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One span that an app recorded and Phoenix has stored."""

    row: int
    """Its number in order of arrival."""

    trace_id: str
    """32 lower-case hex digits."""

    span_id: str
    """16 lower-case hex digits."""

    parent_id: str | None
    """Span id of the parent; `None` for a root."""

    start_ns: int
    """Start on the app's clock, Unix nanoseconds."""

    end_ns: int
    """End on the app's clock, Unix nanoseconds."""


@dataclass(frozen=True, slots=True)
class SeenSpan:
    """A span of the window."""

    row: int
    """Its number in order of arrival."""

    span_id: str
    """Which span had this number."""

    trace_id: str
    """Its trace."""


class Arrivals:
    """Reads what has arrived since the last look."""

    def __init__(
        self,
        client: PhoenixClient,
        project: Project,
        *,
        low_water: int = 0,
        window: Iterable[SeenSpan] = (),
        unfinished: Iterable[str] = (),
        start: datetime | None = None,
    ) -> None:
        """Go on where a position was saved; without one, begin with the project's first span.

        Args:
            client: The server.
            project: The project.
            low_water: Lowest row of any trace that was not finished.
            window: The last spans seen.
            unfinished: Traces of the window whose spans are to be given again.
            start: Only spans that started then or later.
        """
        self._client = client
        self._project = project
        self._next = low_water
        self._window = {span.row: span for span in window}
        self._again = set(unfinished)
        self._start = start
        self.rewinds = 0
        """How often everything had to be read anew."""
        self.unreadable = 0
        """How many spans had ids or times that cannot be read."""

    @property
    def next_row(self) -> int:
        """The row after the last one seen."""
        return self._next

    @property
    def window(self) -> tuple[SeenSpan, ...]:
        """The last spans seen, in order of arrival."""
        return tuple(self._window[row] for row in sorted(self._window))

    def new(self) -> Iterator[list[Arrival]]:
        """Yield the spans that were not seen before, page by page; the caller may stop after any page.

        Raises:
            NotFound: The project is gone.
            ServerError: Phoenix cannot be reached or refuses.
        """
        known = dict(self._window)
        is_known_list, last_known = not known, max(known, default=0)
        for page in self._client.span_pages(
            self._project, kinds=APP_KINDS, start_time=self._start, from_row=min([self._next, *known])
        ):
            fresh: list[Arrival] = []
            for data in page.spans:
                row, span_id = row_of(data), span_id_of(data)
                seen = known.get(row)
                if seen is not None and seen.span_id == span_id:
                    is_known_list = True
                    if seen.trace_id not in self._again:
                        continue
                if (arrival := self._see(row, data)) is not None:
                    fresh.append(arrival)
            has_passed_window = page.next_cursor is None or (
                bool(page.spans) and row_of(page.spans[-1]) >= last_known
            )
            if has_passed_window and not is_known_list:
                self.rewind()
                yield from self.new()
                return
            if has_passed_window:
                self._again.clear()
            self._trim()
            yield fresh

    def since(self, start: datetime | None) -> Iterator[list[Arrival]]:
        """Yield spans that were seen before and started at `start` or later; all of them for `None`."""
        end = self._next
        for page in self._client.span_pages(self._project, kinds=APP_KINDS, start_time=start):
            arrivals = (self._arrival(data) for data in page.spans if row_of(data) < end)
            yield [arrival for arrival in arrivals if arrival is not None]
            if page.spans and row_of(page.spans[-1]) >= end:
                return

    def rewind(self) -> None:
        """Forget everything: the next look begins with the project's first span."""
        self._next = 0
        self._window.clear()
        self._again.clear()
        self.rewinds += 1

    def _see(self, row: int, data: Mapping[str, object]) -> Arrival | None:
        arrival = self._arrival(data)
        self._window[row] = SeenSpan(row, span_id_of(data), trace_id_of(data))
        self._next = max(self._next, row + 1)
        return arrival

    def _trim(self) -> None:
        for row in sorted(self._window)[:-WINDOW]:
            del self._window[row]

    def _arrival(self, data: Mapping[str, object]) -> Arrival | None:
        """Return the arrival of a span; `None` for one whose ids or times no SDK writes, which stops nothing."""
        try:
            span = span_from_json({**data, "attributes": {}}, f"span {data.get('id')}")
        except InputError:
            self.unreadable += 1
            return None
        return Arrival(
            row_of(data), trace_id_of(data), span.span_id, span.parent_id, span.start_ns, span.end_ns
        )
