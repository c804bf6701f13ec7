"""A state file that cannot be written, or is damaged: evaluation goes on, and losing the file costs a re-scan only."""

from __future__ import annotations

import random
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.conftest import Outcome, Trials
from tests.faults.rig import Site, WorkerProcess, wait_for, working

from citespan.evaluators.periodic.state import SqliteState
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.server import PhoenixServer

pytestmark = [pytest.mark.phoenix, pytest.mark.timeout(900)]

TRACES = 8


def _state_errors(worker: WorkerProcess) -> float:
    lines = worker.ask("/metrics").text.splitlines()
    return sum(float(line.split()[1]) for line in lines if line.startswith("citespan_state_errors_total "))


def _let_files_grow(worker: WorkerProcess, most_bytes: int) -> None:
    """Let no file of the worker's grow beyond this: to SQLite that is a disk that takes no more."""
    _, hard = resource.prlimit(worker.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(worker.process.pid, resource.RLIMIT_FSIZE, (most_bytes, hard))


def test_a_disk_that_fills_and_empties_again_loses_nothing(
    client: PhoenixClient, phoenix: PhoenixServer, trials: Trials, tmp_path: Path
) -> None:
    site, state = Site(client), tmp_path / "state"
    site.store(TRACES)
    site.let_people_write()
    with working(site, phoenix.url, state) as worker:
        assert site.wait_until_whole(worker).violations == ()

        def once(seed: int, is_spoiled: bool) -> Outcome:
            before = _state_errors(worker)
            if is_spoiled:
                _let_files_grow(worker, random.Random(seed).choice([1, 4096, 8192]))
            new = site.store(TRACES)
            result = site.wait_until_whole(worker, new)
            if is_spoiled:
                worker.wait_until(lambda: _state_errors(worker) > before, "noticed")
            _let_files_grow(worker, resource.RLIM_INFINITY)
            worker.wait_until(lambda: _saved_row(state) > 0, "saved again")
            return Outcome(result, len(new), {"no room": 1})

        trials.run("state: disk full", once, full=10)
        worker.kill()
    with working(site, phoenix.url, state) as worker:
        assert site.wait_until_whole(worker).violations == ()


def _saved_row(state: Path) -> int:
    kept = SqliteState(state)
    positions = [kept.position(scope) for scope in kept.scopes()]
    return max((position.low_water for position in positions if position is not None), default=0)


def test_a_state_folder_that_goes_away_stops_nothing(
    client: PhoenixClient, phoenix: PhoenixServer, trials: Trials, tmp_path: Path
) -> None:
    def once(seed: int, is_spoiled: bool) -> Outcome:
        site, folder = Site(client), tmp_path / f"{seed}{is_spoiled}"
        folder.mkdir()
        site.store(TRACES)
        with working(site, phoenix.url, folder / "state") as worker:
            worker.wait_until(lambda: site.done_count() > 0, "at work")
            if is_spoiled:
                shutil.rmtree(folder)
            new = site.store(TRACES)
            assert worker.process.poll() is None
            wait_for(lambda: site.done_count(new) == len(new), "done")
            result = site.examine()
            worker.process.terminate()
            assert worker.process.wait(10) == 0
        return Outcome(result, len(site.trace_ids), {"removed": 1})

    trials.run("state: folder removed", once, full=5)


def test_a_place_that_cannot_be_written_is_refused_at_the_start() -> None:
    command = [
        sys.executable,
        "-m",
        "citespan",
        "worker",
        "--project",
        "any",
        "--state",
        "/proc/citespan/state",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "/proc/citespan/state" in done.stderr
    assert "give another with --state" in done.stderr


def _damage(path: Path, chance: random.Random) -> str:
    data = bytearray(path.read_bytes())
    how = chance.choice(["cut", "emptied", "overwritten", "scribbled on"])
    if how == "cut":
        data = data[: chance.randrange(len(data))]
    elif how == "emptied":
        data.clear()
    elif how == "overwritten":
        data[:] = chance.randbytes(len(data))
    else:
        for _ in range(40):
            at = chance.randrange(len(data))
            data[at : at + 16] = chance.randbytes(16)
    path.write_bytes(data)
    return how


def test_a_damaged_state_file_is_named_or_read_anew(
    client: PhoenixClient, phoenix: PhoenixServer, trials: Trials, tmp_path: Path
) -> None:
    def once(seed: int, is_spoiled: bool) -> Outcome:
        chance, how = random.Random(seed), "nothing"
        site, state = Site(client), tmp_path / f"{seed}{is_spoiled}" / "state"
        site.store(TRACES)
        site.let_people_write()
        with working(site, phoenix.url, state) as worker:
            site.wait_until_whole(worker)
            if is_spoiled and seed % 2:  # under the worker's hands
                how = _damage(state, chance)
                site.store(TRACES)
                worker.wait_until(lambda: site.done_count() == len(site.trace_ids), "done")
            worker.kill()
        if is_spoiled and not seed % 2:  # between two starts
            how = _damage(state, chance)
            site.store(TRACES)
        with working(site, phoenix.url, state) as worker:
            wait_for(lambda: worker.process.poll() is not None or worker.named("started"), "started or ended")
            code = worker.process.poll()
            if code is None:
                return Outcome(site.wait_until_whole(worker), len(site.trace_ids), {how: 1})
        # It says at once what is to be done; losing the file is safe.
        assert code == 2, worker.log_tail
        assert "mend or delete the file" in worker.log_tail
        state.unlink()
        with working(site, phoenix.url, state) as worker:
            return Outcome(site.wait_until_whole(worker), len(site.trace_ids), {how: 1})

    trials.run("state: damaged", once, full=20)
