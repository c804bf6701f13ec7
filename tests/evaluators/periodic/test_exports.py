"""What a worker sends besides its results: spans and events reach a receiver, and one that is down costs nothing."""

from __future__ import annotations

import json
import threading
import time as real_time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from citespan.evaluators.engines.engine import BatchResult
from citespan.evaluators.errors import Unavailable, UsageError
from citespan.evaluators.evaluate import evaluate
from citespan.evaluators.judges.chat.clock import SYSTEM_CLOCK, Clock
from citespan.evaluators.judges.judge import JudgeCard, JudgeRequest
from citespan.evaluators.periodic.events import EvaluationEvents, logs_url, pack_events
from citespan.evaluators.periodic.exports import ExportsWanted, exporting
from citespan.evaluators.periodic.logs import no_log
from citespan.evaluators.periodic.metrics import WorkerMetrics
from citespan.evaluators.periodic.outbox import Outbox
from citespan.evaluators.periodic.plan import PassReport, Plan
from citespan.evaluators.periodic.tracing import make_tracer, traced_pass
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.runs import Run, RunOrigin, RunState
from citespan.evaluators.settings import Settings
from citespan.evaluators.verdicts import Label, Verdict
from citespan.evaluators.worker import EvaluatedRun, PassSummary
from citespan.tracer import Passage

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@dataclass
class Receiver:
    """A real OTLP receiver over HTTP."""

    url: str = ""
    bodies: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    status: int = 200

    def results(self) -> list[dict[str, Any]]:
        """Return the events received, as plain values."""
        found: list[dict[str, Any]] = []
        for _, _, body in self.bodies:
            for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
                for record in resource.scope_logs[0].log_records:
                    values = {p.key: _value(p.value) for p in record.attributes}
                    ids = {"trace": record.trace_id.hex(), "span": record.span_id.hex()}
                    found.append({"event": record.event_name, **ids, **values})
        return found


def _value(value: Any) -> object:
    return getattr(value, value.WhichOneof("value"))


@contextmanager
def _receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if receiver.status == 200:
                receiver.bodies.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(receiver.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is inherited
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with _receiving() as started:
        yield started


class OneByOneJudge:
    """Supports a claim unless it says what to answer."""

    card = JudgeCard(name="one", version="1")

    def judge(self, requests: Any) -> list[Verdict]:
        return [_verdict(request) for request in requests]


def _verdict(request: JudgeRequest) -> Verdict:
    if "silence" in request.claim:
        return Verdict.unjudged("timeout", "no reply in time")
    return Verdict(label=Label.SUPPORTED, score=0.9, reason="The passage says so.")


def _evaluated(answer: str, state: RunState | None = None) -> EvaluatedRun:
    run = Run(
        id="run",
        question="How?",
        answer=answer,
        passages=(Passage(id="a", text="All is well today.", label="1"),),
        state=state,
        reasons=("no_retrieval",) if state is not None else (),
        origin=RunOrigin(
            trace_id=TRACE,
            root_span_id=SPAN,
            answer_span_id=SPAN,
            answer_start_ns=0,
            answer_end_ns=1,
            passage_span_ids={},
        ),
    )
    return EvaluatedRun(None, evaluate(run, OneByOneJudge()))


def _sent_events(receiver: Receiver, *runs: EvaluatedRun, with_claims: bool = False) -> WorkerMetrics:
    wanted = ExportsWanted(
        events_endpoint=receiver.url, events_headers={"x-key": "secret"}, with_claims=with_claims
    )
    metrics = WorkerMetrics()
    plan, connection = Plan(project="app"), Connection("http://phoenix.test")
    with exporting(wanted, plan, connection, metrics, log=no_log, clock=SYSTEM_CLOCK) as exports:
        assert exports.on_run is not None
        for run in runs:
            exports.on_run(run)
    return metrics


def test_each_measure_of_a_run_is_an_event_on_the_span_of_its_answer(receiver: Receiver) -> None:
    metrics = _sent_events(receiver, _evaluated("All is well [1]. All is well and dry."))
    results = {result["gen_ai.evaluation.name"]: result for result in receiver.results()}
    assert list(results) == [
        "citation_coverage",
        "citation_support",
        "citation_completeness",
        "citation_validity",
    ]
    # One of two claims is cited; the cited one is supported.
    assert results["citation_coverage"] == {
        "event": "gen_ai.evaluation.result",
        "trace": TRACE,
        "span": SPAN,
        "gen_ai.evaluation.name": "citation_coverage",
        "gen_ai.evaluation.score.value": 0.5,
        "gen_ai.evaluation.score.label": "1/2",
        "gen_ai.evaluation.explanation": "1/2 claims",
        "citespan.numerator": 1,
        "citespan.denominator": 2,
        "citespan.judge.name": "one",
        "citespan.judge.fingerprint": OneByOneJudge.card.fingerprint,
    }
    assert results["citation_support"]["gen_ai.evaluation.score.value"] == 1.0
    path, headers, _ = receiver.bodies[0]
    assert (path, headers["content-type"], headers["x-key"]) == (
        "/v1/logs",
        "application/x-protobuf",
        "secret",
    )
    assert 'citespan_telemetry_sent_total{signal="events"} 4.0' in metrics.text().decode()


def test_a_measure_over_nothing_has_no_score_and_says_why(receiver: Receiver) -> None:
    _sent_events(receiver, _evaluated("Nothing is cited here at all."))
    support = next(r for r in receiver.results() if r["gen_ai.evaluation.name"] == "citation_support")
    assert "gen_ai.evaluation.score.value" not in support
    assert support["gen_ai.evaluation.explanation"] == "0/0 judged cited claims: nothing to measure"


def test_a_verdict_on_a_claim_is_an_event_where_it_is_asked_for(receiver: Receiver) -> None:
    _sent_events(receiver, _evaluated("All is well [1]. There is silence [1]."), with_claims=True)
    first, second = (r for r in receiver.results() if r["gen_ai.evaluation.name"] == "citation_verdict")
    assert (first["gen_ai.evaluation.score.label"], first["gen_ai.evaluation.score.value"]) == (
        "supported",
        0.9,
    )
    assert (first["citespan.claim.index"], first["citespan.claim.text"]) == (0, "All is well.")
    # A claim that could not be judged has an error and no score.
    assert (second["gen_ai.evaluation.score.label"], second["error.type"]) == ("unjudged", "timeout")
    assert "gen_ai.evaluation.score.value" not in second


def test_a_run_that_was_not_judged_is_one_event_with_its_state(receiver: Receiver) -> None:
    _sent_events(receiver, _evaluated("Hello.", RunState.NOT_RAG))
    (result,) = receiver.results()
    assert result["gen_ai.evaluation.name"] == "citation_state"
    assert result["gen_ai.evaluation.score.label"] == "not_rag"
    assert result["gen_ai.evaluation.explanation"] == "no_retrieval"


def test_a_base_url_gets_the_usual_path_and_another_stays() -> None:
    assert logs_url("http://collector:4318") == "http://collector:4318/v1/logs"
    assert logs_url("http://collector:4318/") == "http://collector:4318/v1/logs"
    assert logs_url("https://otlp.test/custom/logs") == "https://otlp.test/custom/logs"


def test_a_receiver_that_is_down_delays_nothing_and_is_counted() -> None:
    with _receiving() as gone:
        pass  # nobody listens on its port any more
    start = real_time.monotonic()
    metrics = _sent_events(gone, *[_evaluated("All is well [1].") for _ in range(50)])
    assert real_time.monotonic() - start < 5
    # Four measures of fifty runs.
    assert 'citespan_telemetry_dropped_total{signal="events"} 200.0' in metrics.text().decode()


def _outbox(receiver: Receiver, metrics: WorkerMetrics, **more: Any) -> Outbox[Any]:
    given = {"delay_seconds": 0.01, **more}
    return Outbox(f"{receiver.url}/v1/logs", {}, pack_events("1"), metrics.exports("events"), **given)


def _events(count: int) -> list[Any]:
    found: list[Any] = []
    events = EvaluationEvents(found.append, wall=lambda: 1.0)
    while len(found) < count:
        events.add(_evaluated("All is well [1]."))
    return found[:count]


def test_a_receiver_that_is_full_is_asked_again_and_nothing_is_lost(receiver: Receiver) -> None:
    metrics = WorkerMetrics()
    receiver.status = 503
    troubles: list[str] = []
    outbox = _outbox(receiver, metrics, log=lambda event, *_, **__: troubles.append(event))
    for event in _events(8):
        outbox.put(event)
    _wait(lambda: bool(troubles))
    receiver.status = 200
    _wait(lambda: len(receiver.results()) == 8)
    outbox.close(within_seconds=2)
    assert troubles == ["telemetry_trouble"]
    assert 'citespan_telemetry_dropped_total{signal="events"} 0.0' in metrics.text().decode()


def test_what_a_receiver_refuses_is_dropped_and_the_rest_goes_on(receiver: Receiver) -> None:
    metrics = WorkerMetrics()
    receiver.status = 400
    outbox = _outbox(receiver, metrics)
    outbox.put(_events(1)[0])
    _wait(lambda: 'dropped_total{signal="events"} 1.0' in metrics.text().decode())
    receiver.status = 200
    outbox.put(_events(1)[0])
    _wait(lambda: len(receiver.results()) == 1)
    outbox.close(within_seconds=2)


def test_what_does_not_fit_the_queue_is_dropped_and_counted() -> None:
    metrics = WorkerMetrics()
    release = threading.Event()

    def hang(request: httpx.Request) -> httpx.Response:
        release.wait(10)
        return httpx.Response(200)

    outbox: Outbox[Any] = Outbox(
        "http://receiver.test/v1/logs",
        {},
        pack_events("1"),
        metrics.exports("events"),
        http=httpx.MockTransport(hang),
        most_waiting=10,
        delay_seconds=0.01,
    )
    for event in _events(15):
        outbox.put(event)
    text = metrics.text().decode()
    assert 'citespan_telemetry_dropped_total{signal="events"} 5.0' in text
    release.set()
    outbox.close(within_seconds=5)
    assert 'citespan_telemetry_sent_total{signal="events"} 10.0' in metrics.text().decode()


def _wait(is_done: Callable[[], bool]) -> None:
    deadline = real_time.monotonic() + 20
    while not is_done():
        assert real_time.monotonic() < deadline
        real_time.sleep(0.02)


# The worker's own spans


def _spans(receiver: Receiver) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for _, _, body in receiver.bodies:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            about = {pair.key: _value(pair.value) for pair in resource.resource.attributes}
            for span in resource.scope_spans[0].spans:
                values = {pair.key: _value(pair.value) for pair in span.attributes}
                found.append(
                    {
                        "name": span.name,
                        "project": about["openinference.project.name"],
                        "id": span.span_id.hex(),
                        "parent": span.parent_span_id.hex(),
                        "trace": span.trace_id.hex(),
                        "seconds": (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
                        "status": span.status.code,
                        "events": [event.name for event in span.events],
                        **values,
                    }
                )
    return found


def _trace_passes(receiver: Receiver, *passes: Callable[[Any, PassReport, Moving], None]) -> None:
    moving = Moving()
    metrics = WorkerMetrics()
    wanted, plan = ExportsWanted(trace_project="own"), Plan(project="app")
    connection = Connection(receiver.url, {"authorization": "Bearer key"})
    with exporting(wanted, plan, connection, metrics, log=no_log, clock=SYSTEM_CLOCK) as exports:
        for work in passes:
            report = PassReport()
            try:
                with traced_pass(exports.tracer, report, JUDGE, moving.clock) as trace:
                    work(trace, report, moving)
            except Unavailable:
                continue


JUDGE = JudgeCard(name="chat:m", version="1", parameters={"model": "m"}, sends_text_to="judge.test")


@dataclass
class Moving:
    """A clock that the test moves."""

    now: float = 0.0

    @property
    def clock(self) -> Clock:
        return Clock(monotonic=lambda: self.now, wall=lambda: 1_800_000_000 + self.now)


def _one_batch(trace: Any, report: PassReport, moving: Moving) -> None:
    moving.now += 1
    report.seen = 2
    trace.looked()
    moving.now += 10
    report.taken = 2
    summary = PassSummary(traces=2, runs_evaluated=1, read_seconds=2, judge_seconds=3, write_seconds=4)
    summary.set_aside["f" * 32] = "not_readable: odd"
    trace.took(BatchResult(summary, runs=[_evaluated("All is well [1].")], finished=["0" * 32]))


def test_a_pass_that_did_something_is_one_trace(receiver: Receiver) -> None:
    _trace_passes(receiver, _one_batch)
    spans = {span["name"]: span for span in _spans(receiver)}
    assert {name: span["seconds"] for name, span in spans.items()} == {
        "pass": 11,
        "look": 1,
        "take batch": 10,
        "read": 2,
        "judge": 3,
        "write": 4,
    }
    assert len({span["trace"] for span in spans.values()}) == 1
    parents = {name: _name_of(spans, span["parent"]) for name, span in spans.items()}
    assert parents == {
        "pass": None,
        "look": "pass",
        "take batch": "pass",
        "read": "take batch",
        "judge": "take batch",
        "write": "take batch",
    }
    assert {span["project"] for span in spans.values()} == {"own"}
    assert {span["openinference.span.kind"] for span in spans.values()} == {"EVALUATOR"}
    assert spans["judge"]["gen_ai.request.model"] == "m"
    assert spans["judge"]["server.address"] == "judge.test"
    assert (spans["pass"]["citespan.traces.taken"], spans["pass"]["citespan.pass.end"]) == (2, "done")
    assert spans["take batch"]["events"] == ["trace failed"]
    assert receiver.bodies[0][1]["authorization"] == "Bearer key"


def _name_of(spans: dict[str, dict[str, Any]], span_id: str) -> str | None:
    return next((name for name, span in spans.items() if span["id"] == span_id), None)


def test_a_pass_that_found_nothing_leaves_no_trace(receiver: Receiver) -> None:
    _trace_passes(receiver, lambda trace, *_: trace.looked())
    assert receiver.bodies == []


def test_an_error_is_recorded_on_the_pass(receiver: Receiver) -> None:
    def fail(*_: object) -> None:
        raise Unavailable("Phoenix is full", url="http://phoenix.test", status=503)

    _trace_passes(receiver, fail)
    spans = {span["name"]: span for span in _spans(receiver)}
    assert (spans["pass"]["status"], spans["pass"]["error.type"]) == (2, "Unavailable")
    assert (spans["pass"]["events"], spans["pass"]["citespan.pass.end"]) == (["exception"], "error")


def test_the_worker_does_not_write_its_own_spans_into_the_project_it_evaluates() -> None:
    wanted, connection = ExportsWanted(trace_project="app"), Connection("http://phoenix.test")
    given = exporting(
        wanted, Plan(project="app"), connection, WorkerMetrics(), log=no_log, clock=SYSTEM_CLOCK
    )
    with pytest.raises(UsageError, match="need one of their own"), given:
        pass


def test_no_span_of_the_process_is_the_parent_of_a_pass() -> None:
    ended: list[Any] = []
    tracer = make_tracer("own", "1", ended.append, {})
    with tracer.start_as_current_span("host"):
        report = PassReport(taken=1)
        with traced_pass(tracer, report, JUDGE, SYSTEM_CLOCK):
            pass
    passes = [span for span in ended if span.name == "pass"]
    assert [span.parent for span in passes] == [None]
    assert json.loads(passes[0].to_json())["attributes"]["citespan.pass.end"] == "done"


# Settings


def test_the_usual_variables_name_the_receiver_of_events() -> None:
    settings = Settings.load(
        environ={
            "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "https://otlp.test/v1/logs",
            "OTEL_EXPORTER_OTLP_HEADERS": "X-Key=a%20b",
        }
    )
    assert settings.events == "https://otlp.test/v1/logs"
    assert settings.events_request_headers == {"x-key": "a b"}
    assert "a b" not in repr(settings)


def test_headers_of_other_signals_disturb_nobody_who_sends_no_events() -> None:
    settings = Settings.load(environ={"OTEL_EXPORTER_OTLP_HEADERS": "no headers at all"})
    assert (settings.events, settings.events_request_headers) == (None, {})


def test_a_receiver_that_is_no_url_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="--events is 'http://'"):
        Settings.load(environ={}, events="http://")
