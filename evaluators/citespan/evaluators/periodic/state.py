"""What a worker remembers between two starts, in one SQLite file; losing it costs a re-scan, never a result."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from citespan.evaluators.errors import UsageError
from citespan.evaluators.periodic.arrivals import SeenSpan

__all__ = ["FailedTrace", "MemoryState", "Position", "SqliteState", "State"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS positions (
    scope TEXT PRIMARY KEY, setup TEXT NOT NULL, low_water INTEGER NOT NULL, seen TEXT NOT NULL,
    unfinished TEXT NOT NULL, pending INTEGER NOT NULL, saved_at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS failures (
    scope TEXT NOT NULL, trace_id TEXT NOT NULL, tries INTEGER NOT NULL, reason TEXT NOT NULL,
    is_aside INTEGER NOT NULL, is_wanted INTEGER NOT NULL, failed_at REAL NOT NULL,
    PRIMARY KEY (scope, trace_id));
"""
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Position:
    """How far a worker has read."""

    setup: str
    """What the worker was told to do; another judge or rate means that traces may have to be taken again."""

    low_water: int
    """Lowest row of any trace that is not finished, else the row after the last one seen."""

    window: tuple[SeenSpan, ...] = ()
    """The last spans seen."""

    unfinished: tuple[str, ...] = ()
    """Traces of the window that are not finished."""

    pending: int = 0
    """How many traces waited."""

    saved_at: float = 0.0
    """When this was saved, seconds since 1970."""


@dataclass(frozen=True, slots=True)
class FailedTrace:
    """A trace that could not be evaluated."""

    trace_id: str
    """The trace."""

    tries: int
    """How often it was tried."""

    reason: str
    """Why the last try failed; begins with the machine-readable reason."""

    is_set_aside: bool
    """Whether it is not tried again by itself."""

    is_wanted: bool
    """Whether a person asked for another try."""

    failed_at: float
    """When it was last tried, seconds since 1970."""


class State(Protocol):
    """Where a worker keeps its positions and failures; a scope is one worker's share of one project."""

    def position(self, scope: str) -> Position | None:
        """Return the position saved last."""
        ...

    def save(self, scope: str, position: Position) -> None:
        """Save a position, whole or not at all."""
        ...

    def failures(self, scope: str) -> list[FailedTrace]:
        """Return the failures, oldest first."""
        ...

    def put_failure(self, scope: str, failure: FailedTrace) -> None:
        """Save a failure in the place of an earlier one of the same trace."""
        ...

    def drop_failure(self, scope: str, trace_id: str) -> None:
        """Forget a failure."""
        ...


class MemoryState:
    """Remembers until the process ends: a start re-scans the project."""

    def __init__(self) -> None:
        self._positions: dict[str, Position] = {}
        self._failures: dict[str, dict[str, FailedTrace]] = {}

    def position(self, scope: str) -> Position | None:
        """Return the position saved last."""
        return self._positions.get(scope)

    def save(self, scope: str, position: Position) -> None:
        """Save a position."""
        self._positions[scope] = position

    def failures(self, scope: str) -> list[FailedTrace]:
        """Return the failures, oldest first."""
        return sorted(self._failures.get(scope, {}).values(), key=lambda failure: failure.failed_at)

    def put_failure(self, scope: str, failure: FailedTrace) -> None:
        """Save a failure in the place of an earlier one of the same trace."""
        self._failures.setdefault(scope, {})[failure.trace_id] = failure

    def drop_failure(self, scope: str, trace_id: str) -> None:
        """Forget a failure."""
        self._failures.get(scope, {}).pop(trace_id, None)


class SqliteState:
    """One file; several workers and commands may use it at once."""

    def __init__(self, path: Path) -> None:
        """Open the file, or create it with its folder.

        Raises:
            UsageError: It cannot be written, or is something else.
        """
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._connected() as database:
                version = cast("int", database.execute("PRAGMA user_version").fetchone()[0])
                if version > _VERSION:
                    raise UsageError(
                        f"{path} was written by a newer citespan: give another file with --state"
                    )
                database.executescript(_SCHEMA)
                database.execute(f"PRAGMA user_version = {_VERSION}")
        except (OSError, sqlite3.Error) as error:
            raise UsageError(
                f"cannot keep the worker's state in {path} ({error}): mend or delete the file (that costs a "
                "re-scan, no result), or give another with --state"
            ) from error

    def position(self, scope: str) -> Position | None:
        """Return the position saved last; `None` if there is none that can be read."""
        query = "SELECT setup, low_water, seen, unfinished, pending, saved_at FROM positions WHERE scope = ?"
        with self._connected() as database:
            row = database.execute(query, (scope,)).fetchone()
        return None if row is None else _position(*row)

    def scopes(self) -> list[str]:
        """Return the scopes that have a position or a failure."""
        with self._connected() as database:
            rows = database.execute("SELECT scope FROM positions UNION SELECT scope FROM failures ORDER BY 1")
            return [cast("str", row[0]) for row in rows]

    def save(self, scope: str, position: Position) -> None:
        """Save a position, whole or not at all.

        Raises:
            sqlite3.Error: The file cannot be written, as on a full disk.
        """
        seen = json.dumps([[span.row, span.span_id, span.trace_id] for span in position.window])
        values = (
            scope,
            position.setup,
            position.low_water,
            seen,
            json.dumps(position.unfinished),
            position.pending,
            position.saved_at,
        )
        with self._connected() as database:
            database.execute("INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def failures(self, scope: str) -> list[FailedTrace]:
        """Return the failures, oldest first."""
        query = (
            "SELECT trace_id, tries, reason, is_aside, is_wanted, failed_at FROM failures "
            "WHERE scope = ? ORDER BY failed_at, trace_id"
        )
        with self._connected() as database:
            rows = cast(
                "list[tuple[str, int, str, int, int, float]]", database.execute(query, (scope,)).fetchall()
            )
        return [
            FailedTrace(t, tries, why, bool(aside), bool(wanted), at)
            for t, tries, why, aside, wanted, at in rows
        ]

    def put_failure(self, scope: str, failure: FailedTrace) -> None:
        """Save a failure in the place of an earlier one of the same trace.

        Raises:
            sqlite3.Error: The file cannot be written.
        """
        values = (
            scope,
            failure.trace_id,
            failure.tries,
            failure.reason,
            failure.is_set_aside,
            failure.is_wanted,
            failure.failed_at,
        )
        with self._connected() as database:
            database.execute("INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def drop_failure(self, scope: str, trace_id: str) -> None:
        """Forget a failure.

        Raises:
            sqlite3.Error: The file cannot be written.
        """
        with self._connected() as database:
            database.execute("DELETE FROM failures WHERE scope = ? AND trace_id = ?", (scope, trace_id))

    @contextmanager
    def _connected(self) -> Generator[sqlite3.Connection]:
        """Provide a connection for one transaction: none is held, so another process can always write."""
        with closing(sqlite3.connect(self._path, timeout=10.0)) as database, database:
            yield database


def _position(
    setup: str, low_water: int, seen: str, unfinished: str, pending: int, saved_at: float
) -> Position | None:
    try:
        window = cast("Sequence[tuple[int, str, str]]", json.loads(seen))
        spans = tuple(SeenSpan(int(row), str(span_id), str(trace_id)) for row, span_id, trace_id in window)
        names = tuple(cast("list[str]", json.loads(unfinished)))
    except (TypeError, ValueError):
        return None
    return Position(setup, low_water, spans, names, pending, saved_at)
