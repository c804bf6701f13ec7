"""Measure the worker on a real Phoenix: traces a second, where the time goes, requests, and the cost of an idle pass.

::

    python bench/worker.py [--json] [--traces 1000] [--claim-rate 0]

Phoenix (SQLite) is started here. One trace has five passages of 500 characters and three or four claims. The traces
are stored before the clock starts; settling is switched off, since it is waiting and not work. `phoenix` is the share
of the pass spent waiting for Phoenix's answers, `pacing` that spent keeping to the claim rate, `citespan` the rest.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from evaluate_throughput import record_runs, send_spans

from citespan.evaluators.judges.chat.clock import Clock
from citespan.evaluators.judges.registry import load_judge
from citespan.evaluators.periodic.loop import Worker
from citespan.evaluators.periodic.plan import Plan
from citespan.evaluators.periodic.state import SqliteState
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.server import PhoenixServer

PROJECT = "bench-worker"


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


def measure(url: str, traces: int, claim_rate: float, folder: Path) -> dict[str, object]:
    """Return the figures of a full pass, an idle pass and one by a worker that lost its state."""
    meter, waiting = Meter(), Waiting()
    plan = Plan(project=PROJECT, settle_seconds=0.0, claim_spans_per_second=claim_rate or None)
    with PhoenixClient(Connection(url), http=meter) as client:

        def worker(state: str) -> Worker:
            judge = load_judge("lexical")
            return Worker(client, plan, judge, SqliteState(folder / state), clock=waiting.clock)

        first = worker("state")
        meter.reset()
        start = time.perf_counter()
        report = first.one_pass()
        while report.has_more:
            report = first.one_pass()
        seconds = time.perf_counter() - start
        requests, in_phoenix = meter.requests, meter.seconds
        idle = timed(first, meter)
        restarted = timed(worker("state"), meter)
        lost = timed(worker("lost"), meter)
    rest = seconds - in_phoenix - waiting.seconds
    return {
        "traces": traces,
        "seconds": round(seconds, 2),
        "traces_per_second": round(traces / seconds, 1),
        "share": {
            "phoenix": round(in_phoenix / seconds, 3),
            "pacing": round(waiting.seconds / seconds, 3),
            "citespan": round(rest / seconds, 3),
        },
        "requests_per_100_traces": round(100 * requests / traces, 1),
        "idle_pass": idle,
        "idle_pass_after_restart": restarted,
        "pass_after_lost_state": lost,
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def timed(worker: Worker, meter: Meter) -> dict[str, object]:
    """Return time, requests and work of one pass."""
    meter.reset()
    start = time.perf_counter()
    report = worker.one_pass()
    seconds = time.perf_counter() - start
    return {
        "seconds": round(seconds, 2),
        "requests": meter.requests,
        "taken": report.taken,
        "evaluated": report.runs_evaluated,
    }


def main() -> None:
    """Start Phoenix, store traces, measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--traces", type=int, default=1000, help="how many traces to store")
    parser.add_argument("--claim-rate", type=float, default=0.0, help="claim spans a second; 0 is no limit")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, PhoenixServer(Path(name) / "phoenix") as server:
        with PhoenixClient(Connection(server.url)) as client:
            send_spans(record_runs(arguments.traces), client, PROJECT, 0)
        figures = measure(server.url, arguments.traces, arguments.claim_rate, Path(name))
    if arguments.json:
        print(json.dumps(figures))
        return
    for key, value in figures.items():
        print(f"{key:26} {value}")


if __name__ == "__main__":
    main()
