"""Traces that cannot be evaluated: tried a few times, later each time, then set aside with the reason."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace

from citespan.evaluators.periodic.state import FailedTrace, State

__all__ = ["Failures", "ask_again"]

_FIRST_WAIT_SECONDS = 10.0
_LONGEST_WAIT_SECONDS = 600.0


class Failures:
    """The failures of one scope."""

    def __init__(
        self,
        state: State,
        scope: str,
        *,
        most_tries: int,
        wall: Callable[[], float],
        on_error: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        """Begin with the failures that the state knows.

        Args:
            state: Where failures are kept.
            scope: Whose they are.
            most_tries: After so many tries a trace is set aside.
            wall: Seconds since 1970.
            on_error: Called when the state cannot be written; the failure is then known until the process ends.
        """
        self._state = state
        self._scope = scope
        self._most_tries = most_tries
        self._wall = wall
        self._on_error = on_error
        self._known: dict[str, FailedTrace] = {}
        self._load()

    def add(self, trace_id: str, reason: str) -> float | None:
        """Count a failed try; return after how many seconds to try again, `None` if the trace is set aside."""
        before = self._known.get(trace_id)
        tries = 1 if before is None or before.is_wanted else before.tries + 1
        failure = FailedTrace(trace_id, tries, reason, tries >= self._most_tries, False, self._wall())
        self._known[trace_id] = failure
        try:
            self._state.put_failure(self._scope, failure)
        except sqlite3.Error as error:
            self._on_error(error)
        if failure.is_set_aside:
            return None
        return float(min(_FIRST_WAIT_SECONDS * 2 ** (tries - 1), _LONGEST_WAIT_SECONDS))

    def solve(self, trace_id: str) -> None:
        """A trace is done after all."""
        if self._known.pop(trace_id, None) is not None:
            try:
                self._state.drop_failure(self._scope, trace_id)
            except sqlite3.Error as error:
                self._on_error(error)

    def wanted(self) -> list[str]:
        """Return the traces that a person asked to be tried again."""
        self._load()
        return [failure.trace_id for failure in self._known.values() if failure.is_wanted]

    def is_set_aside(self, trace_id: str) -> bool:
        """Return whether a trace is not tried again by itself."""
        failure = self._known.get(trace_id)
        return failure is not None and failure.is_set_aside

    def _load(self) -> None:
        try:
            self._known.update((failure.trace_id, failure) for failure in self._state.failures(self._scope))
        except sqlite3.Error as error:
            self._on_error(error)

    @property
    def set_aside_count(self) -> int:
        """How many traces are not tried again by themselves."""
        return sum(failure.is_set_aside for failure in self._known.values())


def ask_again(state: State, scope: str, trace_ids: list[str]) -> int:
    """Ask for another try of the traces set aside, all of them for an empty list; return of how many."""
    asked = [
        failure
        for failure in state.failures(scope)
        if failure.is_set_aside and (not trace_ids or failure.trace_id in trace_ids)
    ]
    for failure in asked:
        state.put_failure(scope, replace(failure, is_set_aside=False, is_wanted=True))
    return len(asked)
