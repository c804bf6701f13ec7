"""Measure the worker on a real Phoenix: traces a second, where the time goes, requests, memory, and idle passes.

::

    python bench/worker.py [--json] [--sizes 1000 20000] [--claims spans] [--claim-rate 0] [--workers 1]

Phoenix (SQLite) is started here, one for each size. One trace has five passages of 500 characters and three or four
claims. The traces are stored before the clock starts; settling is switched off, since it is waiting and not work.
The worker is a process of its own, so that its peak memory is its own. Of the time of the pass, `citespan` is the share
that its processor time takes, `phoenix` that of requests that Phoenix answers, `pacing` that of keeping to the claim
rate, and `waiting` the rest: mostly until Phoenix shows claim spans that it has taken.

`restarted`, `state_lost...` are first passes of workers that begin on the evaluated project: with the saved state, and
without one, where traces are all older than the lookback (their marks are looked at) or all younger (they are read too).

With `--workers 2` two workers without `--shard` begin at the same time on the same traces: `doubled` is how many runs
one judged that the other had finished meanwhile.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import httpx
from evaluate_throughput import GROWTH, record_runs, send_spans

from citespan.evaluators.judges.chat.clock import Clock
from citespan.evaluators.judges.registry import load_judge
from citespan.evaluators.periodic.loop import Worker
from citespan.evaluators.periodic.plan import Plan
from citespan.evaluators.periodic.state import SqliteState
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.server import PhoenixServer
from citespan.evaluators.settings import ClaimsMode

PROJECT = "bench-worker"
LOOKBACK_SECONDS = 48 * 3600.0
TRACES_PER_STEP = 1000


@dataclass
class Meter(httpx.BaseTransport):
    """Counts requests and the time until they are answered."""

    inner: httpx.HTTPTransport = field(default_factory=httpx.HTTPTransport)
    requests: int = 0
    seconds: float = 0.0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return Phoenix's answer."""
        start = time.perf_counter()
        response = self.inner.handle_request(request)
        response.read()
        self.seconds += time.perf_counter() - start
        self.requests += 1
        return response

    def reset(self) -> None:
        """Begin to count anew."""
        self.requests, self.seconds = 0, 0.0


@dataclass
class Waiting:
    """A clock that adds up what was waited."""

    seconds: float = 0.0

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.seconds += seconds
        time.sleep(seconds)

    @property
    def clock(self) -> Clock:
        """The clock to hand in."""
        return Clock(sleep=self.sleep)


def evaluate(url: str, claims: ClaimsMode, claim_rate: float, state: str) -> dict[str, object]:
    """Return the figures of one worker's passes until nothing is left, in this process."""
    meter, waiting = Meter(), Waiting()
    with PhoenixClient(Connection(url), http=meter) as client:
        worker = _worker(client, claims, claim_rate, state, waiting.clock)
        start, started_cpu = time.perf_counter(), time.process_time()
        report = worker.one_pass()
        taken, evaluated = report.taken, report.runs_evaluated
        while report.has_more or report.pending:
            report = worker.one_pass()
            taken, evaluated = taken + report.taken, evaluated + report.runs_evaluated
        seconds, cpu = time.perf_counter() - start, time.process_time() - started_cpu
        return {
            "taken": taken,
            "evaluated": evaluated,
            "doubled": worker.metrics.value("citespan_runs_doubled_total"),
            "seconds": round(seconds, 2),
            "traces_per_second": round(evaluated / seconds, 1),
            "share": {
                "citespan": round(cpu / seconds, 3),
                "phoenix": round(meter.seconds / seconds, 3),
                "pacing": round(waiting.seconds / seconds, 3),
                "waiting": round(1 - (cpu + meter.seconds + waiting.seconds) / seconds, 3),
            },
            "requests_per_100_traces": round(100 * meter.requests / max(1, taken), 1),
            "peak_memory_mb": _peak_memory_mb(),
            "idle_pass": timed(worker, meter),
        }


def idle(url: str, claims: ClaimsMode, lookback_seconds: float, state: str) -> dict[str, object]:
    """Return the figures of the first pass of a worker that begins on an evaluated project."""
    meter = Meter()
    with PhoenixClient(Connection(url), http=meter) as client:
        worker = _worker(client, claims, 0.0, state, Clock(), lookback_seconds)
        return {**timed(worker, meter), "peak_memory_mb": _peak_memory_mb()}


def _worker(
    client: PhoenixClient,
    claims: ClaimsMode,
    claim_rate: float,
    state: str,
    clock: Clock,
    lookback_seconds: float = LOOKBACK_SECONDS,
) -> Worker:
    plan = Plan(
        project=PROJECT,
        claims_mode=claims,
        settle_seconds=0.0,
        lookback_seconds=lookback_seconds,
        claim_spans_per_second=claim_rate or None,
    )
    return Worker(client, plan, load_judge("lexical"), SqliteState(Path(state)), clock=clock)


def timed(worker: Worker, meter: Meter) -> dict[str, object]:
    """Return time, requests and work of one pass, and of those that follow it at once."""
    meter.reset()
    start = time.perf_counter()
    reports = [worker.one_pass()]
    while reports[-1].has_more:
        reports.append(worker.one_pass())
    return {
        "seconds": round(time.perf_counter() - start, 2),
        "requests": meter.requests,
        "taken": sum(report.taken for report in reports),
        "evaluated": sum(report.runs_evaluated for report in reports),
    }


def _peak_memory_mb() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def store(url: str, traces: int) -> dict[str, object]:
    """Store traces, some at a time."""
    with PhoenixClient(Connection(url)) as client:
        for n, start in enumerate(range(0, traces, TRACES_PER_STEP)):
            spans = _moved_to_now(record_runs(min(TRACES_PER_STEP, traces - start)))
            send_spans(spans, client, PROJECT, n << 32)
    return {}


def _moved_to_now(spans: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Return spans of which the last has just ended: the recorder's clock is fixed."""
    later = time.time_ns() - max(cast("int", span["end"]) for span in spans)
    return [
        {**span, "start": cast("int", span["start"]) + later, "end": cast("int", span["end"]) + later}
        for span in spans
    ]


def do_here(task: str, *arguments: str) -> dict[str, object]:
    """Do what the parent process asks for."""
    if task == "store":
        return store(arguments[0], int(arguments[1]))
    claims = cast("ClaimsMode", arguments[1])
    if task == "evaluate":
        return evaluate(arguments[0], claims, float(arguments[3]), arguments[2])
    return idle(arguments[0], claims, float(arguments[3]), arguments[2])


def start_apart(*arguments: object) -> subprocess.Popen[str]:
    """Begin one task in a process of its own."""
    command = [sys.executable, __file__, "--here", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def result_of(process: subprocess.Popen[str]) -> dict[str, object]:
    """Return what a task found."""
    text, _ = process.communicate()
    if process.returncode:
        raise SystemExit(process.returncode)
    return cast("dict[str, object]", json.loads(text))


def measure(traces: int, claims: ClaimsMode, claim_rate: float, workers: int) -> dict[str, object]:
    """Return the figures of one size, on a Phoenix of its own."""
    with tempfile.TemporaryDirectory() as name, PhoenixServer(Path(name) / "phoenix") as server:
        result_of(start_apart("store", server.url, traces))
        states = [f"{name}/state-{n}" for n in range(workers)]
        tasks = [start_apart("evaluate", server.url, claims, state, claim_rate) for state in states]
        found = [result_of(task) for task in tasks]
        return {
            "traces": traces,
            "claims": claims,
            **(found[0] if workers == 1 else _together(found)),
            "restarted": _begun(server.url, claims, states[0], LOOKBACK_SECONDS),
            "state_lost_traces_older_than_lookback": _begun(server.url, claims, f"{name}/lost-1", 0.0),
            "state_lost": _begun(server.url, claims, f"{name}/lost-2", LOOKBACK_SECONDS),
        }


def _begun(url: str, claims: ClaimsMode, state: str, lookback_seconds: float) -> dict[str, object]:
    return result_of(start_apart("idle", url, claims, state, lookback_seconds))


def _together(found: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return what several workers did on the same traces."""
    total = {key: sum(cast("int", one[key]) for one in found) for key in ("taken", "evaluated", "doubled")}
    return {**total, "seconds": max(cast("float", one["seconds"]) for one in found), "each": list(found)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000], help="numbers of traces")
    parser.add_argument("--claims", choices=["spans", "annotations", "findings"], default="spans")
    parser.add_argument("--claim-rate", type=float, default=0.0, help="claim spans a second; 0 is no limit")
    parser.add_argument("--workers", type=int, default=1, help="unsharded workers on the same traces")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--here", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        print(json.dumps(do_here(*given.here)))
        return
    rows: list[dict[str, object]] = []
    for size in given.sizes:
        rows.append(measure(size, given.claims, given.claim_rate, given.workers))
        if not given.json:
            print("\n".join(_lines(rows[-1])), flush=True)
    figures: dict[str, object] = {"runs": rows}
    if given.workers == 1 and len(rows) > 1:
        memory = [cast("float", row["peak_memory_mb"]) for row in rows]
        figures["memory_growth"] = round(memory[-1] / memory[0], 3)
    if given.json:
        print(json.dumps(figures))
    elif "memory_growth" in figures:
        verdict = "flat" if cast("float", figures["memory_growth"]) <= GROWTH else "NOT FLAT"
        print(f"peak memory grows by a factor of {figures['memory_growth']}: {verdict}")


def _lines(row: Mapping[str, object]) -> Iterator[str]:
    for key, value in row.items():
        yield f"{key:26} {value}"


if __name__ == "__main__":
    main()
