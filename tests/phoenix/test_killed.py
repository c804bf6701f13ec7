"""An evaluation killed at any write and run again gives what one run gives."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from citespan.evaluators.phoenix.purge import purge
from citespan.evaluators.runs import Run

if TYPE_CHECKING:
    from tests.phoenix.conftest import Workbench

pytestmark = pytest.mark.phoenix

SCRIPT = Path(__file__).with_name("killed_pass.py")

WRITES = ("label form", "its assignment", "claim spans", "verdicts", "measures", "sums", "cite_state")
"""The writes of a pass over one batch, in order."""


def test_killed_and_run_again_equals_one_run(bench: Workbench, worked_examples: Mapping[str, Run]) -> None:
    for given in worked_examples.values():
        bench.recorder.replay(given)
    bench.evaluate()
    expected = bench.snapshot().content()
    points = [("before", WRITES.index("claim spans")), *(("after", n) for n in range(2, len(WRITES)))]
    for when, write in points:
        purge(bench.client, bench.project)
        assert bench.snapshot().rows == {}
        killed = _evaluate_until(bench, write + 1, when)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        bench.evaluate()
        assert bench.snapshot().content() == expected, f"killed {when} {WRITES[write]}"


def test_a_pass_makes_as_many_writes_as_are_killed_at(
    bench: Workbench, worked_examples: Mapping[str, Run]
) -> None:
    bench.recorder.replay(worked_examples["refunds"])
    assert bench.project.name == bench.name
    done = _evaluate_until(bench, len(WRITES) + 1, "before")
    assert done.returncode == 0, done.stderr


def _evaluate_until(bench: Workbench, write: int, when: str) -> subprocess.CompletedProcess[str]:
    """Evaluate the project in a process that dies before or after its n-th write."""
    arguments = [bench.client.connection.base_url, bench.name, str(write), when]
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, check=False, timeout=60, capture_output=True, text=True)
