"""Measure how many answers a second citespan evaluates, and that its memory does not grow with their number.

::

    python bench/evaluate_throughput.py [--json] [--sizes 500 5000] [--only spans|phoenix]

One answer has five passages of 500 characters and three or four claims with markers. `spans` reads a file
of spans and writes nothing; `phoenix` reads traces from a real Phoenix (SQLite, started here) and writes
claim spans, verdicts and measures back. Each size is measured in a process of its own, so that its peak
memory is its own; the time is that of the pass, without starting Python or Phoenix and without
recording the traces.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

from citespan.evaluators.annotate import Annotator
from citespan.evaluators.errors import NotFound
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.records import Project
from citespan.evaluators.phoenix.server import PhoenixServer
from citespan.evaluators.sources.phoenix import PhoenixSource
from citespan.evaluators.sources.source import Source
from citespan.evaluators.sources.spanfile import SpanFile
from citespan.evaluators.worker import EvaluatedRun, run_pass
from citespan.tracer import Passage, run
from citespan.tracer.testing import record_in_memory

TOPICS = ["Refunds", "Exports", "Invoices", "Backups", "Reports", "Sessions", "Uploads", "Searches"]
VERBS = ["are finished within", "may take up to", "are kept for", "are repeated after"]
UNITS = ["minutes", "hours", "days", "weeks"]
FILLER = "The team reviews this page every quarter and notes each change in the log below. "
SPANS_PER_REQUEST = 500
GROWTH = 1.1
"""Most that peak memory may grow from the smallest to the largest size."""


def record_runs(count: int) -> Sequence[Mapping[str, object]]:
    """Return the spans of `count` recorded runs, the same every time."""
    chance = random.Random(7)
    with record_in_memory() as recorded:
        for _ in range(count):
            facts = [
                f"{topic} {chance.choice(VERBS)} {chance.randint(2, 90)} {chance.choice(UNITS)}."
                for topic in chance.sample(TOPICS, 5)
            ]
            passages = [
                Passage(id=f"kb-{n}", text=f"{fact} {FILLER * 7}"[:500], label=str(n))
                for n, fact in enumerate(facts, start=1)
            ]
            said = [f"{fact[:-1]} [{n}]." for n, fact in enumerate(facts[:3], start=1)]
            said += ["Nothing else is known [5]."] if chance.random() < 0.5 else []
            with run(f"What about {facts[0].split()[0]}?") as one:
                one.retrieved(passages)
                one.answer(" ".join(said))
        return recorded.dump()


def write_spans(spans: Sequence[Mapping[str, object]], path: Path) -> None:
    """Write a span file."""
    with path.open("w") as file:
        for span in spans:
            file.write(json.dumps(span) + "\n")


def send_spans(spans: Sequence[Mapping[str, object]], client: PhoenixClient, name: str, offset: int) -> None:
    """Store spans in a project and wait until Phoenix has them all."""
    data = [_phoenix_span(span, offset) for span in spans]
    for start in range(0, len(data), SPANS_PER_REQUEST):
        _post(client, name, data[start : start + SPANS_PER_REQUEST])
        _wait_for(client, name, data[: start + SPANS_PER_REQUEST][-1])


def _post(client: PhoenixClient, name: str, spans: Sequence[Mapping[str, object]]) -> None:
    client.add_spans(Project(id=name, name=name), spans)  # Phoenix takes a name where the id is not known yet


def _wait_for(client: PhoenixClient, name: str, span: Mapping[str, object]) -> None:
    span_id = str(cast("Mapping[str, object]", span["context"])["span_id"])
    for _ in range(600):
        try:
            project = client.project(name)
            if any(page.spans for page in client.span_pages(project, span_ids=[span_id])):
                return
        except NotFound:
            pass
        time.sleep(0.1)
    raise SystemExit(f"Phoenix did not store span {span_id} within a minute")


def _phoenix_span(span: Mapping[str, object], offset: int) -> Mapping[str, object]:
    """Return a recorded span as Phoenix's REST API takes it, ids moved on so that no two projects share them."""

    def moved(value: object, digits: int) -> str | None:
        return None if value is None else f"{int(str(value), 16) + offset:0{digits}x}"

    attributes = dict(cast("Mapping[str, object]", span["attributes"]))
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    start, end = (epoch + timedelta(microseconds=cast("int", span[key]) // 1000) for key in ("start", "end"))
    return {
        "name": span["name"],
        "context": {"trace_id": moved(span["trace_id"], 32), "span_id": moved(span["span_id"], 16)},
        "parent_id": moved(span["parent_id"], 16),
        "span_kind": attributes.pop("openinference.span.kind"),
        "start_time": start.isoformat(),
        "end_time": end.isoformat(),
        "status_code": span["status"],
        "attributes": attributes,
    }


def measure_pass(source: Source, annotator: Annotator | None) -> dict[str, object]:
    """Return answers and claims a second of one pass in this process, and its peak memory."""
    claims = 0

    def count(evaluated: EvaluatedRun) -> None:
        nonlocal claims
        claims += len(evaluated.evaluation.claims)

    start = time.perf_counter()
    summary = run_pass(source, annotator=annotator, on_run=count)
    seconds = time.perf_counter() - start
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "answers": summary.runs_evaluated,
        "claims": claims,
        "rows_written": summary.rows_written,
        "seconds": round(seconds, 2),
        "answers_per_second": round(summary.runs_evaluated / seconds, 1),
        "peak_memory_mb": round(kilobytes / 1024, 1),
        "set_aside": len(summary.set_aside),
    }


def do_here(task: str, *arguments: str) -> dict[str, object]:
    """Do what the parent process asks for."""
    if task == "write":
        write_spans(record_runs(int(arguments[1])), Path(arguments[0]))
        return {}
    if task == "spans":
        return measure_pass(SpanFile(Path(arguments[0])), None)
    with PhoenixClient(Connection(arguments[0])) as client:
        if task == "send":
            send_spans(record_runs(int(arguments[2])), client, arguments[1], int(arguments[3]))
            return {}
        project = client.project(arguments[1])
        return measure_pass(PhoenixSource(client, project), Annotator(client, project))


def do_apart(*arguments: object) -> dict[str, object]:
    """Do one task in a process of its own.

    Linux counts the memory of the process that starts another into the other's peak, so this one stays small.
    """
    command = [sys.executable, __file__, "--here", *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return cast("dict[str, object]", json.loads(done.stdout))


def measure_all(sizes: Sequence[int], kinds: Sequence[str], folder: Path) -> Iterator[dict[str, object]]:
    """Yield the figures of each kind of source and each size."""
    for size in sizes if "spans" in kinds else ():
        path = folder / f"{size}.jsonl"
        do_apart("write", path, size)
        yield {"source": "spans", "traces": size, **do_apart("spans", path)}
    if "phoenix" not in kinds:
        return
    with PhoenixServer(folder / "phoenix") as server:
        for n, size in enumerate(sizes, start=1):
            do_apart("send", server.url, f"bench-{size}", size, n << 32)
            yield {"source": "phoenix", "traces": size, **do_apart("phoenix", server.url, f"bench-{size}")}


def growth(rows: Sequence[Mapping[str, object]]) -> float:
    """Return by what factor peak memory grew from the smallest to the largest size."""
    by_size = sorted(rows, key=lambda row: cast("int", row["traces"]))
    return cast("float", by_size[-1]["peak_memory_mb"]) / cast("float", by_size[0]["peak_memory_mb"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 5000], help="numbers of traces")
    parser.add_argument("--only", choices=["spans", "phoenix"], help="measure one source alone")
    parser.add_argument("--here", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        print(json.dumps(do_here(*given.here)))
        return
    kinds = [given.only] if given.only else ["spans", "phoenix"]
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for row in measure_all(given.sizes, kinds, Path(folder)):
            rows.append(row)
            if not given.json:
                print(
                    f"{row['source']:8} {row['traces']:>6} traces  {row['answers_per_second']:>7} answers/s  "
                    f"{row['claims']:>6} claims  peak memory {row['peak_memory_mb']} MB"
                )
    grown = {kind: round(growth([row for row in rows if row["source"] == kind]), 3) for kind in kinds}
    if given.json:
        print(json.dumps({"runs": rows, "memory_growth": grown}))
        return
    for kind, factor in grown.items():
        verdict = "flat" if factor <= GROWTH else "NOT FLAT"
        print(
            f"{kind}: peak memory grows by a factor of {factor} from {min(given.sizes)} to {max(given.sizes)}: {verdict}"
        )


if __name__ == "__main__":
    main()
