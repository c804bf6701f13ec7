"""Workers in processes of their own on a real Phoenix: killed, doubled, divided, and beside a busy app.

After each storm every trace is evaluated exactly once, and nothing that a person wrote has changed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from citespan.evaluators.annotate.trace_mark import TraceMark
from citespan.evaluators.errors import ServerError
from citespan.evaluators.phoenix.client import PhoenixClient, span_id_of
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.records import Annotation, Kind, StoredAnnotation, Target
from citespan.evaluators.sources.phoenix import is_claim_span
from citespan.tracer import Passage

if TYPE_CHECKING:
    from tests.phoenix.conftest import Workbench

pytestmark = [pytest.mark.phoenix, pytest.mark.timeout(480)]

STORM = 300
FACTS = ("Refunds take five days.", "Exports take two hours.", "Backups are kept for nine weeks.")


def _storm(bench: Workbench, count: int) -> list[str]:
    """Record runs of one to three claims each, and return their trace ids."""
    passages = [Passage(id=f"kb-{n}", text=fact, label=str(n)) for n, fact in enumerate(FACTS, start=1)]
    return [
        bench.recorder.ask(
            f"Question {number}?",
            " ".join(f"{fact[:-1]} [{n}]." for n, fact in enumerate(FACTS[: 1 + number % 3], start=1)),
            passages,
        )
        for number in range(count)
    ]


def _command(bench: Workbench, state: Path, *options: str) -> list[str]:
    return [
        *(sys.executable, "-m", "citespan", "worker", "--endpoint", bench.client.connection.base_url),
        *("--project", bench.name, "--state", str(state), "--settle", "1", "--interval", "0.5"),
        *("--claim-rate", "0", *options),
    ]


@dataclass(frozen=True, slots=True)
class RunningWorker:
    """A worker in a process of its own, and where its log goes."""

    process: subprocess.Popen[bytes]
    log_path: Path

    @property
    def log(self) -> str:
        return self.log_path.read_text()


@contextmanager
def _worker(bench: Workbench, state: Path, *options: str) -> Iterator[RunningWorker]:
    """Run a worker during the block; it is killed at the end if it still runs."""
    log_path = state.with_name(f"{uuid.uuid4().hex}.log")
    with log_path.open("wb") as log:
        process = subprocess.Popen(_command(bench, state, *options), stderr=log)
    try:
        yield RunningWorker(process, log_path)
    finally:
        process.kill()
        process.wait()


def _events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def _once(bench: Workbench, state: Path, *options: str) -> dict[str, Any]:
    """Let a worker do one pass, and return what it says at its end."""
    command = _command(bench, state, "--once", *options)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    return _events(done.stderr)[-1]


def _state_rows(bench: Workbench, trace_ids: Sequence[str]) -> list[StoredAnnotation]:
    found = bench.client.annotations(bench.project, Target.TRACE, target_ids=trace_ids, names=["cite_state"])
    return list(found)


def _wait_for_rows(bench: Workbench, trace_ids: Sequence[str], count: int, worker: RunningWorker) -> None:
    """Wait until so many traces are done; a busy machine evaluates a few traces a second."""
    deadline = time.monotonic() + 150
    while (found := len(_state_rows(bench, trace_ids))) < count:
        assert worker.process.poll() is None, f"the worker ended:\n{worker.log}"
        assert time.monotonic() < deadline, f"{found} of {count} traces are done in time:\n{worker.log}"
        time.sleep(0.1)


def _assert_each_evaluated_once(bench: Workbench, trace_ids: Sequence[str]) -> None:
    """Check rows as Phoenix lists them, so that a doubled one would show, and the fingerprints by a second pass."""
    states = _state_rows(bench, trace_ids)
    assert Counter(row.annotation.target_id for row in states) == Counter(trace_ids)
    expected: set[str] = set()
    for row in states:
        mark = TraceMark.read(row.annotation.metadata)
        assert mark is not None
        for run in mark.runs:
            expected |= run.claim_span_ids(row.annotation.target_id)
    claims = [span_id for span_id, data in bench.spans().items() if is_claim_span(data)]
    assert sorted(claims) == sorted(expected)
    verdicts = bench.client.annotations(bench.project, Target.SPAN, target_ids=claims, names=["verdict"])
    of_citespan = [row for row in verdicts if row.annotation.kind is not Kind.HUMAN]
    assert Counter(row.annotation.target_id for row in of_citespan) == Counter(expected)
    again = bench.evaluate()
    assert (again.runs_evaluated, again.runs_unchanged) == (0, len(trace_ids))


def _write_by_hand(bench: Workbench, trace_ids: Sequence[str]) -> list[Annotation]:
    """Let a person take over the answer's row of some traces before they are evaluated."""
    roots = {
        str(data["context"]["trace_id"]): span_id  # type: ignore[index]  # JSON
        for span_id, data in bench.spans().items()
        if data.get("parent_id") is None
    }
    rows = [
        Annotation(roots[trace_id], "citations", "citespan", kind=Kind.HUMAN, label="looks wrong to me")
        for trace_id in trace_ids
    ]
    bench.client.annotate(Target.SPAN, rows)
    return rows


def _by_hand(bench: Workbench, rows: Sequence[Annotation]) -> list[Annotation]:
    """Return what Phoenix has in the place of these rows."""
    stored = bench.client.annotations(
        bench.project, Target.SPAN, target_ids=[row.target_id for row in rows], names=["citations"]
    )
    by_key = {row.key: row.annotation for row in stored}
    return [by_key[row.key] for row in rows]


def test_a_storm_with_a_worker_killed_three_times_is_evaluated_once(bench: Workbench, tmp_path: Path) -> None:
    trace_ids = _storm(bench, STORM)
    human = _write_by_hand(bench, trace_ids[::30])
    chance = random.Random(5)
    for done in (30, 110, 190):
        with _worker(bench, tmp_path / "state") as worker:
            _wait_for_rows(bench, trace_ids, done, worker)
            time.sleep(chance.random() / 2)
            worker.process.send_signal(signal.SIGKILL)
            assert worker.process.wait(10) == -signal.SIGKILL
    _once(bench, tmp_path / "state")
    _assert_each_evaluated_once(bench, trace_ids)
    assert _by_hand(bench, human) == [replace(row, metadata={}) for row in human]


def test_a_worker_that_lost_its_state_finds_everything_done(bench: Workbench, tmp_path: Path) -> None:
    trace_ids = _storm(bench, 40)
    assert _once(bench, tmp_path / "first")["runs_evaluated"] == 40
    lost = _once(bench, tmp_path / "second")
    assert (lost["runs_evaluated"], lost["runs_unchanged"]) == (0, 40)
    kept = _once(bench, tmp_path / "first")
    assert (kept["taken"], kept["pending"]) == (0, 0)
    _assert_each_evaluated_once(bench, trace_ids)


def test_two_shards_divide_a_storm_and_double_nothing(bench: Workbench, tmp_path: Path) -> None:
    trace_ids = _storm(bench, STORM)
    results = _both(bench, tmp_path, ["--shard", "1/2"], ["--shard", "2/2"])
    evaluated = [result["runs_evaluated"] for result in results]
    assert sum(evaluated) == STORM
    assert min(evaluated) > STORM / 3
    _assert_each_evaluated_once(bench, trace_ids)


def test_two_workers_on_the_same_traces_write_what_one_writes(bench: Workbench, tmp_path: Path) -> None:
    trace_ids = _storm(bench, 100)
    results = _both(bench, tmp_path, [], [])
    judged = sum(result["runs_evaluated"] for result in results)
    # Work may be doubled, a result never is. They begin together, then divide what is left: 20 to 40 are doubled.
    assert 100 <= judged <= 160
    assert sum(result["runs_doubled"] for result in results) <= judged - 100
    _assert_each_evaluated_once(bench, trace_ids)


def _both(
    bench: Workbench, folder: Path, first: Sequence[str], second: Sequence[str]
) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    threads = [
        threading.Thread(
            target=lambda n=n, options=options: results.append(_once(bench, folder / str(n), *options))
        )
        for n, options in enumerate((first, second))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2
    return results


def test_sigterm_ends_a_worker_within_ten_seconds_and_leaves_nothing_half_written(
    bench: Workbench, tmp_path: Path
) -> None:
    trace_ids = _storm(bench, 120)
    with _worker(bench, tmp_path / "state", "--claim-rate", "20") as worker:
        _wait_for_rows(bench, trace_ids, 20, worker)
        started = time.monotonic()
        worker.process.send_signal(signal.SIGTERM)
        assert worker.process.wait(timeout=10) == 0
        assert time.monotonic() - started < 10
        assert _events(worker.log)[-1]["event"] == "stopped"
    done = {row.annotation.target_id for row in _state_rows(bench, trace_ids)}
    begun = {
        str(data["context"]["trace_id"])  # type: ignore[index]  # JSON
        for data in bench.spans().values()
        if is_claim_span(data)
    }
    assert begun == done
    assert 20 <= len(done) < 120


def test_no_span_of_the_app_is_refused_while_a_worker_writes(bench: Workbench, tmp_path: Path) -> None:
    trace_ids = _storm(bench, 60)
    project = bench.project
    refused: list[ServerError] = []
    sent: list[str] = []
    is_over = threading.Event()

    def be_busy() -> None:
        with PhoenixClient(Connection(bench.client.connection.base_url), retries=0) as app:
            while not is_over.wait(0.1):
                spans = [_app_span() for _ in range(5)]
                try:
                    app.add_spans(project, spans)
                    sent.extend(span_id_of(span) for span in spans)
                except ServerError as error:
                    refused.append(error)

    busy = threading.Thread(target=be_busy)
    busy.start()
    try:
        with _worker(bench, tmp_path / "state", "--claim-rate", "20") as worker:
            _wait_for_rows(bench, trace_ids, len(trace_ids), worker)
    finally:
        is_over.set()
        busy.join()
    assert refused == []
    assert len(sent) > 50
    deadline = time.monotonic() + 30
    while not set(sent) <= set(bench.spans()):
        assert time.monotonic() < deadline, "spans of the app were lost"
        time.sleep(0.2)


def _app_span() -> dict[str, Any]:
    """Return a span whose root is not there yet, so that no worker takes its trace."""
    moment = "2026-11-29T10:00:00+00:00"
    return {
        "name": "busy",
        "context": {"trace_id": uuid.uuid4().hex, "span_id": os.urandom(8).hex()},
        "parent_id": os.urandom(8).hex(),
        "span_kind": "CHAIN",
        "start_time": moment,
        "end_time": moment,
        "status_code": "OK",
        "attributes": {},
    }
