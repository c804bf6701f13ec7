"""The Ray engine on a real local cluster of two actors gives what the local engine gives, also when an actor dies."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from citespan.evaluators.command.judging import judging
from citespan.evaluators.periodic.loop import Worker
from citespan.evaluators.periodic.plan import PassReport, Plan
from citespan.evaluators.periodic.state import MemoryState
from citespan.evaluators.phoenix.purge import purge
from citespan.evaluators.runs import Run
from citespan.evaluators.worker import EvaluatedRun
from citespan.tracer import Passage

if TYPE_CHECKING:
    from tests.phoenix.conftest import Workbench

ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")

from citespan.evaluators.engines.ray_cluster import RayCluster  # noqa: E402 - only where Ray is installed

pytestmark = [
    pytest.mark.phoenix,
    pytest.mark.timeout(240),
]

FACTS = ("Refunds take five days.", "Exports take two hours.", "Backups are kept for nine weeks.")
TRACES = 110
"""More than two actors with three batches of 20 ahead take at once, so that they are given more later."""


@pytest.fixture(scope="module")
def two_processes() -> Iterator[None]:
    """A Ray cluster of two processes, which every test of this module uses."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=100 * 1024 * 1024,
    )
    yield
    ray.shutdown()


@pytest.fixture
def filled(bench: Workbench, worked_examples: Mapping[str, Run]) -> Workbench:
    """A project of both worked examples, and many runs of one to three claims."""
    for example in worked_examples.values():
        bench.recorder.replay(example)
    passages = [Passage(id=f"kb-{n}", text=fact, label=str(n)) for n, fact in enumerate(FACTS, start=1)]
    for number in range(TRACES - len(worked_examples)):
        answer = " ".join(f"{fact[:-1]} [{n}]." for n, fact in enumerate(FACTS[: 1 + number % 3], start=1))
        bench.recorder.ask(f"Question {number}?", answer, passages)
    return bench


def _plan(bench: Workbench) -> Plan:
    return Plan(
        project=bench.project.name,
        settle_seconds=0.0,
        lookback_seconds=None,
        claim_spans_per_second=None,
        is_single_pass=True,
    )


def _pass(
    bench: Workbench, cluster: RayCluster | None, on_run: Callable[[EvaluatedRun], None] = lambda _: None
) -> tuple[PassReport, list[dict[str, Any]]]:
    """Evaluate the project once, and return what was done and each run as `--json` shows it."""
    shown: list[dict[str, Any]] = []

    def show(run: EvaluatedRun) -> None:
        shown.append(run.evaluation.run_to_dict())
        on_run(run)

    with judging("lexical") as judge:
        worker = Worker(
            bench.client,
            _plan(bench),
            judge if cluster is None else cluster.judge,
            MemoryState(),
            engine=None if cluster is None else cluster.engine,
            on_run=show,
        )
        return worker.run_once(), shown


def _cluster(bench: Workbench) -> RayCluster:
    return RayCluster(bench.client.connection, _plan(bench), partial(judging, "lexical"), actors=2)


@pytest.mark.usefixtures("two_processes")
def test_two_actors_write_what_one_process_writes(filled: Workbench) -> None:
    local, shown = _pass(filled, None)
    expected = filled.snapshot().content()
    purge(filled.client, filled.project)
    assert filled.snapshot().rows == {}
    with _cluster(filled) as cluster:
        assert len({os.getpid(), *cluster.process_ids}) == 3
        there, shown_there = _pass(filled, cluster)
    # Same claim spans, same rows with the same labels, measures, fingerprints and reasons of sampling.
    assert filled.snapshot().content() == expected
    # Same runs in the same order, same labels and measures.
    assert shown_there == shown
    assert there.to_dict() == local.to_dict()
    assert (there.runs_evaluated, there.done.claim_spans_written) == (TRACES, local.done.claim_spans_written)


@pytest.mark.usefixtures("two_processes")
def test_an_actor_that_is_killed_costs_no_trace_and_doubles_none(filled: Workbench) -> None:
    with _cluster(filled) as cluster:
        before = cluster.process_ids

        def kill_first(_: EvaluatedRun) -> None:
            if before:
                os.kill(before.pop(0), signal.SIGKILL)
                os.kill(before.pop(0), 0)  # the other lives
                before.clear()

        report, shown = _pass(filled, cluster, kill_first)
        assert len(set(cluster.process_ids)) == 2
    assert (report.failed, report.pending, len(shown)) == ({}, 0, TRACES)
    states = filled.snapshot().labels("cite_state")
    assert states == {(trace_id, "citespan"): "evaluated" for trace_id in filled.recorder.trace_ids}
    claims = len(filled.snapshot().claim_spans)
    again, _ = _pass(filled, None)
    assert (again.runs_evaluated, again.runs_unchanged) == (0, TRACES)
    assert len(filled.snapshot().claim_spans) == claims


def test_the_command_prints_the_same_from_either_engine(
    bench: Workbench, worked_examples: Mapping[str, Run]
) -> None:
    for example in worked_examples.values():
        bench.recorder.replay(example)
    assert bench.project.name == bench.name
    results = [_command(bench, "--series", engine, "--engine", engine) for engine in ("local", "ray")]
    local, there = results
    assert there["runs"] == local["runs"]
    assert there["pooled"] == local["pooled"]
    assert there["judge"] == local["judge"]
    seconds = {"read_seconds", "judge_seconds", "write_seconds"}
    of_passes = [
        {key: value for key, value in data["pass"].items() if key not in seconds} for data in results
    ]
    # The claim spans of the first series are those of the second.
    assert [done.pop("claim_spans_written") for done in of_passes] == [8, 0]
    assert of_passes[0] == of_passes[1]


def _command(bench: Workbench, *options: str) -> dict[str, Any]:
    """Run `citespan evaluate --json` in a process of its own; Ray starts and ends with it."""
    command = [
        *(sys.executable, "-m", "citespan", "evaluate", "--json", "-p", bench.name),
        *("--endpoint", bench.client.connection.base_url, *options),
        *(("--actors", "2") if "ray" in options else ()),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]
