"""Measure what bounds a large deployment: Phoenix's write rates on its database, and passes by claims mode and engine.

::

    python bench/scaling.py [--json] [--database postgresql://user:password@host:port/name] [--traces 300] [--actors 0 2]

Phoenix is started here, on SQLite unless a database is given. One trace has two spans, five passages of 500
characters and three or four claims. `stored` is from the first POST until the last span is visible; `rows` are label
rows in synchronous batches; `passes` evaluate traces that are stored, with the lexical judge, no claim rate and no settling.
`actors 0` is the local engine; with actors the time does not hold the start of Ray.

Beside each rate stands the processor time, in milliseconds for each span, row or trace, that Phoenix and its database
(`server_ms`) and this process with its actors (`own_ms`) took: on a busy machine it says more than the rate. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast, get_args

from evaluate_throughput import record_runs, send_spans

from citespan.evaluators.command.judging import judging
from citespan.evaluators.engines.ray_cluster import RayCluster
from citespan.evaluators.periodic.loop import Worker
from citespan.evaluators.periodic.plan import PassReport, Plan
from citespan.evaluators.periodic.state import MemoryState
from citespan.evaluators.phoenix.client import PhoenixClient, span_id_of
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.records import Annotation, Kind, Project, Target
from citespan.evaluators.phoenix.server import PhoenixServer
from citespan.evaluators.phoenix.span_writer import SpanWriter
from citespan.evaluators.settings import ClaimsMode

ROWS = 2000
CLAIM_SPANS = 1000
SPANS_PER_POST = 100


@dataclass(frozen=True, slots=True)
class Bench:
    """A Phoenix, and the processes to watch."""

    client: PhoenixClient
    server_pids: tuple[int, ...]

    def timed(
        self, what: str, count: int, work: Callable[[], object], pids: Sequence[int] = ()
    ) -> dict[str, object]:
        """Return how many a second, and processor milliseconds of each."""
        own = (os.getpid(), *pids)
        before = [cpu_seconds(self.server_pids), cpu_seconds(own)]
        start = time.perf_counter()
        work()
        seconds = time.perf_counter() - start
        server, own_seconds = cpu_seconds(self.server_pids) - before[0], cpu_seconds(own) - before[1]
        return {
            f"{what}_per_second": round(count / seconds, 1),
            "server_ms": round(1000 * server / count, 2),
            "own_ms": round(1000 * own_seconds / count, 2),
        }


def cpu_seconds(pids: Sequence[int]) -> float:
    """Return the processor time of processes and of the children they have now."""
    ticks = 0
    for pid in pids:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for one in (pid, *map(int, children if pid != os.getpid() else ())):
            with suppress(FileNotFoundError):
                fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def phoenix(database: str | None, database_pid: int | None) -> Iterator[Bench]:
    """Provide a Phoenix on a database of its own, or on the one given."""
    variables = {} if database is None else {"PHOENIX_SQL_DATABASE_URL": database}
    with (
        tempfile.TemporaryDirectory() as name,
        PhoenixServer(Path(name), variables=variables) as server,
        PhoenixClient(Connection(server.url)) as client,
    ):
        pids = [pid for pid in (server.process_id, database_pid) if pid is not None]
        yield Bench(client, tuple(pids))


def fill(bench: Bench, name: str, traces: int) -> dict[str, object]:
    """Store traces in a project of their own, and return what a second of it did."""
    spans = record_runs(traces)
    offset = int.from_bytes(os.urandom(6), "big") << 16
    return bench.timed("spans", len(spans), lambda: send_spans(spans, bench.client, name, offset))


def store_claim_spans(client: PhoenixClient, project: Project) -> None:
    """Store spans as large as claim spans, the next few when the last are visible, as the worker does."""
    writer = SpanWriter(client, project)
    for _ in range(CLAIM_SPANS // SPANS_PER_POST):
        spans = [_claim_span() for _ in range(SPANS_PER_POST)]
        writer.add(spans)
        if writer.wait([span_id_of(span) for span in spans]):
            raise SystemExit("Phoenix did not store claim spans within a minute")


def _claim_span() -> dict[str, object]:
    moment = "2026-11-29T10:00:00+00:00"
    return {
        "name": "claim",
        "context": {"trace_id": os.urandom(16).hex(), "span_id": os.urandom(8).hex()},
        "parent_id": None,
        "span_kind": "EVALUATOR",
        "start_time": moment,
        "end_time": moment,
        "status_code": "OK",
        "attributes": {"input.value": "passage " * 250, "output.value": "supported"},
    }


def write_rows(client: PhoenixClient, targets: Sequence[str], size: int) -> None:
    """Write rows on the spans of a project in batches of `size`."""
    about = {"schema": 1, "passage": "text " * 100}
    rows = [
        Annotation(
            targets[n % len(targets)],
            "bench",
            f"{size}-{n}",
            kind=Kind.CODE,
            label="supported",
            explanation="Because.",
            metadata=about,
        )
        for n in range(ROWS)
    ]
    for first in range(0, len(rows), size):
        client.annotate(Target.SPAN, rows[first : first + size])


def one_pass(bench: Bench, claims: ClaimsMode, traces: int, actors: int) -> dict[str, object]:
    """Evaluate new traces once, and return what a second of it did."""
    client, name = bench.client, f"bench-{claims}-{actors}-{os.urandom(3).hex()}"
    fill(bench, name, traces)
    plan = Plan(
        project=name,
        claims_mode=claims,
        settle_seconds=0.0,
        lookback_seconds=None,
        claim_spans_per_second=None,
        is_single_pass=True,
    )
    with ExitStack() as stack:
        if not actors:
            judge, pids = stack.enter_context(judging("lexical")), []
            worker = Worker(client, plan, judge, MemoryState())
        else:
            opened = RayCluster(client.connection, plan, partial(judging, "lexical"), actors=actors)
            cluster = stack.enter_context(opened)
            worker, pids = (
                Worker(client, plan, cluster.judge, MemoryState(), engine=cluster.engine),
                cluster.process_ids,
            )
        reports: list[PassReport] = []
        figures = bench.timed("traces", traces, lambda: reports.append(worker.run_once()), pids)
    done = reports[0].done
    return {
        "claims": claims,
        "actors": actors,
        **figures,
        "claim_spans_per_trace": round(done.claim_spans_written / traces, 2),
        "rows_per_trace": round(done.rows_written / traces, 2),
        "judge_ms": round(1000 * done.judge_seconds / traces, 2),
        "set_aside": len(reports[0].failed),
    }


def measure(
    database: str | None, database_pid: int | None, traces: int, actors: Sequence[int]
) -> dict[str, object]:
    """Return every figure of one database."""
    modes: tuple[ClaimsMode, ...] = get_args(ClaimsMode)
    with phoenix(database, database_pid) as bench:
        client = bench.client
        stored = fill(bench, "bench-rates", 500)
        project = client.project("bench-rates")
        targets = [span_id_of(data) for page in client.span_pages(project) for data in page.spans]
        return {
            "database": "sqlite" if database is None else "postgresql",
            "app_spans": stored,
            "rows_in_100s": bench.timed("rows", ROWS, lambda: write_rows(client, targets, 100)),
            "rows_in_1000s": bench.timed("rows", ROWS, lambda: write_rows(client, targets, 1000)),
            "claim_spans": bench.timed("spans", CLAIM_SPANS, lambda: store_claim_spans(client, project)),
            "passes": [one_pass(bench, claims, traces, count) for claims in modes for count in actors],
        }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--database", help="URL of a PostgreSQL database for Phoenix alone")
    parser.add_argument("--database-pid", type=int, help="its main process, if it runs on this machine")
    parser.add_argument("--traces", type=int, default=300, help="traces of each pass")
    parser.add_argument("--actors", type=int, nargs="+", default=[0, 2], help="0 is the local engine")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    figures = measure(given.database, given.database_pid, given.traces, given.actors)
    if given.json:
        print(json.dumps(figures))
        return
    for key, value in figures.items():
        if key == "passes":
            for row in cast("list[Mapping[str, object]]", value):
                print("  ".join(f"{name} {number}" for name, number in row.items()))
        else:
            print(f"{key:32} {value}")


if __name__ == "__main__":
    main()
