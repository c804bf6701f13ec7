"""What a worker in a process of its own sends besides its results, to a real Phoenix and a real receiver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from citespan.evaluators.errors import NotFound
from citespan.evaluators.judges.registry import load_judge
from citespan.evaluators.periodic.loop import Worker
from citespan.evaluators.periodic.plan import Plan
from citespan.evaluators.periodic.state import MemoryState
from citespan.evaluators.phoenix.records import Target
from citespan.tracer import Passage

if TYPE_CHECKING:
    from tests.phoenix.conftest import Workbench

pytestmark = pytest.mark.phoenix

FACT = Passage(id="kb", text="Refunds take five days.", label="1")


@dataclass
class Events:
    """A real OTLP receiver over HTTP and what it was sent."""

    url: str = ""
    records: list[Any] = field(default_factory=list)


@pytest.fixture
def receiver() -> Iterator[Events]:
    events = Events()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
                events.records += resource.scope_logs[0].log_records
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is inherited
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    events.url = f"http://127.0.0.1:{server.server_port}"
    yield events
    server.shutdown()
    server.server_close()
    thread.join()


def _once(
    bench: Workbench, folder: Path, *options: str, environ: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Let a worker do one pass, and return its log."""
    command = [
        *(sys.executable, "-m", "citespan", "worker", "--endpoint", bench.client.connection.base_url),
        *("--project", bench.name, "--state", str(folder / "state"), "--settle", "0", "--once", *options),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env={**os.environ, **(environ or {})},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stderr.splitlines()]


def _spans_of(bench: Workbench, project: str) -> list[dict[str, Any]]:
    """Wait for a pass in a project and return the project's spans."""
    deadline = time.monotonic() + 60
    while True:
        try:
            found = bench.client.project(project)
            spans = [dict(data) for page in bench.client.span_pages(found) for data in page.spans]
            if any(span["name"] == "pass" for span in spans):
                return spans
        except NotFound:
            pass
        assert time.monotonic() < deadline, f"no pass in {project}"
        time.sleep(0.1)


def test_a_pass_is_one_trace_in_the_project_that_was_named(bench: Workbench, tmp_path: Path) -> None:
    own = f"worker-{uuid.uuid4().hex[:8]}"
    for _ in range(3):
        bench.recorder.ask("How long?", "Refunds take five days [1].", [FACT])
    assert bench.project
    _once(bench, tmp_path, "--trace-project", own)
    spans = {span["name"]: span for span in _spans_of(bench, own)}
    assert set(spans) == {"pass", "look", "take batch", "read", "judge", "write"}
    assert spans["pass"]["attributes"]["citespan.traces.taken"] == 3
    assert spans["judge"]["attributes"]["citespan.judge.name"] == "lexical"
    # The next pass has nothing to do, and leaves no trace.
    _once(bench, tmp_path, "--trace-project", own)
    assert len(_spans_of(bench, own)) == 6
    # A worker that is pointed at that project sees nothing to evaluate.
    plan = Plan(project=own, settle_seconds=0, is_single_pass=True)
    report = Worker(bench.client, plan, load_judge("lexical"), MemoryState()).run_once()
    assert (report.seen, report.taken) == (0, 0)
    trace_id = spans["pass"]["context"]["trace_id"]
    rows = bench.client.annotations(bench.client.project(own), Target.TRACE, target_ids=[trace_id])
    assert list(rows) == []


def test_evaluations_reach_a_receiver_that_the_usual_variable_names(
    bench: Workbench, tmp_path: Path, receiver: Events
) -> None:
    trace_id = bench.recorder.ask("How long?", "Refunds take five days [1].", [FACT])
    assert bench.project
    _once(
        bench,
        tmp_path,
        "--event-claims",
        environ={"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": f"{receiver.url}/v1/logs"},
    )
    assert {record.event_name for record in receiver.records} == {"gen_ai.evaluation.result"}
    assert {record.trace_id.hex() for record in receiver.records} == {trace_id}
    assert {record.span_id.hex() for record in receiver.records} == {bench.recorder.last_span_ids[trace_id]}
    names = [
        pair.value.string_value
        for record in receiver.records
        for pair in record.attributes
        if pair.key == "gen_ai.evaluation.name"
    ]
    assert names == [
        "citation_coverage",
        "citation_support",
        "citation_completeness",
        "citation_validity",
        "citation_verdict",
    ]


def test_a_receiver_that_is_down_breaks_nothing(bench: Workbench, tmp_path: Path) -> None:
    bench.recorder.ask("How long?", "Refunds take five days [1].", [FACT])
    assert bench.project
    log = {line["event"]: line for line in _once(bench, tmp_path, "--events", "http://127.0.0.1:9")}
    assert (log["done"]["taken"], log["done"]["failed"]) == (1, {})
    assert "ConnectError" in log["telemetry_trouble"]["error"]


def test_the_evaluated_project_cannot_take_the_workers_own_spans(bench: Workbench, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "citespan", "worker", "--endpoint", bench.client.connection.base_url]
    command += ["--project", bench.name, "--trace-project", bench.name, "--state", str(tmp_path / "state")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "need one of their own" in done.stderr
