"""What a worker remembers, and what becomes of traces that fail."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from citespan.evaluators.errors import UsageError
from citespan.evaluators.periodic.arrivals import SeenSpan
from citespan.evaluators.periodic.failures import Failures, ask_again
from citespan.evaluators.periodic.state import FailedTrace, MemoryState, Position, SqliteState, State

POSITION = Position("setup", 7, (SeenSpan(8, "s8", "t"), SeenSpan(9, "s9", "u")), ("u",), 1, 123.5)


@pytest.fixture(params=["memory", "sqlite"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> State:
    return MemoryState() if request.param == "memory" else SqliteState(tmp_path / "new" / "worker.sqlite")


def test_a_position_is_given_back_as_it_was_saved(state: State) -> None:
    assert state.position("a") is None
    state.save("a", POSITION)
    state.save("b", Position("other", 1))
    assert state.position("a") == POSITION
    state.save("a", Position("setup", 8))
    assert state.position("a") == Position("setup", 8)


def test_the_file_outlives_the_process(tmp_path: Path) -> None:
    SqliteState(tmp_path / "w").save("a", POSITION)
    again = SqliteState(tmp_path / "w")
    assert again.position("a") == POSITION
    assert again.scopes() == ["a"]


def test_a_file_that_is_something_else_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "w"
    path.write_text("not a database, however long this text goes on" * 40)
    with pytest.raises(UsageError, match=r"w \(file is not a database\).*delete the file"):
        SqliteState(path)


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "w")
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(UsageError, match="newer citespan"):
        SqliteState(tmp_path / "w")


def test_a_position_that_cannot_be_read_costs_a_rescan(tmp_path: Path) -> None:
    state = SqliteState(tmp_path / "w")
    state.save("a", POSITION)
    with sqlite3.connect(tmp_path / "w") as database:
        database.execute("UPDATE positions SET seen = '[1, 2'")
    database.close()
    assert state.position("a") is None


def _failures(state: State, scope: str = "a") -> Failures:
    return Failures(state, scope, most_tries=3, wall=lambda: 5.0)


def test_a_trace_is_tried_later_each_time_and_then_set_aside(state: State) -> None:
    failures = _failures(state)
    # 10 s, twice that, then aside at the third failure.
    assert [failures.add("t", f"not_readable: {n}") for n in range(3)] == [10.0, 20.0, None]
    assert failures.is_set_aside("t")
    assert state.failures("a") == [FailedTrace("t", 3, "not_readable: 2", True, False, 5.0)]
    assert state.failures("b") == []


def test_tries_are_counted_over_restarts(state: State) -> None:
    _failures(state).add("t", "why")
    _failures(state).add("t", "why")
    assert _failures(state).add("t", "why") is None


def test_a_trace_that_is_done_after_all_is_forgotten(state: State) -> None:
    failures = _failures(state)
    failures.add("t", "why")
    failures.solve("t")
    assert state.failures("a") == []


def test_traces_set_aside_are_tried_again_when_a_person_asks(state: State) -> None:
    failures = _failures(state)
    for trace_id in ("t", "t", "t", "u", "u", "u", "v"):
        failures.add(trace_id, "why")
    assert ask_again(state, "a", ["t"]) == 1
    assert failures.wanted() == ["t"]
    # The count begins anew: another 10 s after the first failure.
    assert failures.add("t", "why") == 10.0
    assert failures.wanted() == []
    assert ask_again(state, "a", []) == 1  # u; t and v were not set aside


class FullDisk(MemoryState):
    """A state that cannot be written."""

    def put_failure(self, scope: str, failure: FailedTrace) -> None:
        raise sqlite3.OperationalError("database or disk is full")


def test_a_full_disk_stops_no_worker() -> None:
    errors: list[Exception] = []
    failures = Failures(FullDisk(), "a", most_tries=2, wall=lambda: 5.0, on_error=errors.append)
    assert failures.add("t", "why") == 10.0
    assert failures.add("t", "why") is None
    assert [str(error) for error in errors] == ["database or disk is full"] * 2
