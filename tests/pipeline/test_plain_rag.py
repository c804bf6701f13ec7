"""The example app, from its documents to the labels of its answers, without a server."""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from citespan import tracer
from citespan.evaluators import Evaluation, Run, RunState, evaluate
from citespan.evaluators.reading.reader import read_runs
from citespan.evaluators.sources.spanfile import SpanFile

EXAMPLE = Path(__file__).parents[2] / "examples" / "plain_rag.py"


@pytest.fixture(scope="module")
def app() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("plain_rag", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["plain_rag"] = module  # where its dataclasses look up their annotations
    spec.loader.exec_module(module)
    yield module
    del sys.modules["plain_rag"]


@pytest.fixture(scope="module")
def runs(app: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Run]:
    """Every scripted run as a reader finds it in the trace, by its question."""
    exporter = InMemorySpanExporter()
    tracer.configure(
        exporter=exporter, batch=False, redaction=tracer.Redaction(passages=app.hide_confidential)
    )
    scripted = app.read_questions(app.DATA / "scripted_answers.toml")
    library = app.Library(app.DATA / "documents")
    for question in scripted:
        app.ask(question, library, app.generate_by_script(scripted))
    tracer.shutdown()
    path = tmp_path_factory.mktemp("spans") / "spans.jsonl"
    path.write_text("\n".join(span.to_json(indent=None) for span in exporter.get_finished_spans()))
    found = [run for trace in SpanFile(path).traces() for run in read_runs(trace)]
    assert len(found) == len(scripted)
    return {run.question or "": run for run in found}


@pytest.fixture(scope="module")
def evaluations(runs: Mapping[str, Run]) -> Mapping[str, Evaluation]:
    return {question: evaluate(run) for question, run in runs.items()}


def _labels(evaluation: Evaluation) -> list[str]:
    return [judged.label.value for judged in evaluation.claims]


def test_the_sync_client_example_comes_out_as_designed(evaluations: Mapping[str, Evaluation]) -> None:
    found = evaluations["How does the sync client handle failures?"]
    assert [passage.label for passage in found.run.passages] == ["P1", "P2", "P3"]
    assert _labels(found) == ["supported", "supported", "partly_supported", "supported", "unsupported"]
    # five claims, each with one citation of P1, P2 or P3
    assert str(found.measures["coverage"]) == "5/5 claims"
    assert str(found.measures["support"]) == "3/5 judged cited claims"
    assert str(found.measures["validity"]) == "5/5 citations"


def test_the_refunds_example_comes_out_as_designed(evaluations: Mapping[str, Evaluation]) -> None:
    found = evaluations["When are refunds issued, and is premium support included?"]
    assert [passage.text for passage in found.run.passages] == [
        "Refunds are issued within five business days of the request.",
        "Pricing. Premium support is available as a paid add-on for all plans.",
    ]
    assert _labels(found) == ["partly_supported", "contradicted", "uncited"]
    # two citations, both of a passage of the run; the third claim has none
    assert str(found.measures["validity"]) == "2/2 citations"
    assert str(found.measures["support"]) == "0/2 judged cited claims"
    assert str(found.measures["coverage"]) == "2/3 claims"
    assert str(found.measures["completeness"]) == "2/3 material claims"


def test_the_questions_show_every_label_and_every_failure(evaluations: Mapping[str, Evaluation]) -> None:
    claims = [judged for evaluation in evaluations.values() for judged in evaluation.claims]
    assert {judged.label.value for judged in claims} == {
        "supported",
        "partly_supported",
        "unsupported",
        "contradicted",
        "uncited",
        "unjudged",
    }
    assert {judged.failure.value for judged in claims if judged.failure is not None} == {
        "broken_citation",
        "wrong_passage",
        "contradicted",
        "overstated",
        "not_in_passages",
        "missing_citation",
    }


def test_a_question_that_shares_no_word_with_the_documents_finds_nothing(runs: Mapping[str, Run]) -> None:
    run = runs["Is there parking nearby?"]
    assert run.passages == ()
    assert run.state is None


def test_a_confidential_passage_is_recorded_without_its_text(runs: Mapping[str, Run]) -> None:
    run = runs["Who decides on salary bands and promotions?"]
    assert [passage.text is None for passage in run.passages] == [True, False]
    assert run.state is not RunState.CONTENT_HIDDEN


def test_a_question_that_nobody_scripted_is_answered_with_the_best_passage(app: ModuleType) -> None:
    library = app.Library(app.DATA / "documents")
    question = app.Question("Can gift cards be refunded?")
    passages = library.search(question)
    assert app.generate_by_script([])(question, passages) == (
        "Gift cards and downloaded software cannot be refunded. [1]"
    )


class _ModelServer(BaseHTTPRequestHandler):
    """Answers like a server that speaks the OpenAI API, and keeps what it was asked."""

    asked: list[dict[str, Any]] = []  # noqa: RUF012 - a handler is made per request

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append({"path": self.path, **body})
        message = {"role": "assistant", "content": "No, gift cards cannot be refunded [1]."}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        reply = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(reply).encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def model_url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _ModelServer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def test_a_configured_model_writes_the_answer_from_labelled_passages(
    app: ModuleType, model_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", model_url)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    question = app.Question("Can gift cards be refunded?")
    passages = app.Library(app.DATA / "documents").search(question)
    assert app.has_model()
    assert app.generate_by_model(question, passages) == "No, gift cards cannot be refunded [1]."
    (asked,) = _ModelServer.asked
    assert asked["path"] == "/v1/chat/completions"
    prompt = asked["messages"][1]["content"]
    assert prompt.startswith("[1] Refunds\nGift cards and downloaded software cannot be refunded.")
    assert prompt.endswith("Question: Can gift cards be refunded?")
