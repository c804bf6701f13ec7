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
        arguments = [bench.client.connection.base_url, bench.name, str(write + 1), when]
        killed = subprocess.run([sys.executable, str(SCRIPT), *arguments], check=False, timeout=60)
        assert killed.returncode == -signal.SIGKILL, f"{WRITES[write]}: the pass was not killed"
        bench.evaluate()
        assert bench.snapshot().content() == expected, f"killed {when} {WRITES[write]}"


def test_a_pass_makes_as_many_writes_as_are_killed_at(
    bench: Workbench, worked_examples: Mapping[str, Run]
) -> None:
    bench.recorder.replay(worked_examples["refunds"])
    arguments = [bench.client.connection.base_url, bench.name, str(len(WRITES) + 1), "before"]
    done = subprocess.run([sys.executable, str(SCRIPT), *arguments], check=False, timeout=60)
    assert done.returncode == 0
