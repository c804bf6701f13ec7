"""Small traces of foreign make, and the recorded ones with what a person read in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from citespan.evaluators.sources.source import Span, Trace

DATA = Path(__file__).parents[1] / "data"
TRACE_ID = "0" * 31 + "1"


@pytest.fixture(scope="session")
def expected_runs() -> Callable[[str], list[Mapping[str, Any]]]:
    """Return what was read by hand in the dump of a name: one entry per trace."""

    def read(name: str) -> list[Mapping[str, Any]]:
        text = (DATA / "expectations" / f"{name}.json").read_text(encoding="utf-8")
        runs: list[Mapping[str, Any]] = json.loads(text)["runs"]
        return runs

    return read


@pytest.fixture(scope="session")
def span() -> Callable[..., Span]:
    """Return a span; its id is its number, it lasts from `start` to `end`."""

    def make(
        number: int,
        kind: str = "CHAIN",
        attributes: Mapping[str, object] | None = None,
        *,
        parent: int | None = None,
        start: int = 0,
        end: int = 1000,
        name: str = "step",
        status: str = "OK",
    ) -> Span:
        return Span(
            trace_id=TRACE_ID,
            span_id=f"{number:016x}",
            parent_id=None if parent is None else f"{parent:016x}",
            name=name,
            kind=kind,
            start_ns=start,
            end_ns=end,
            attributes=attributes or {},
            status=status,
        )

    return make


@pytest.fixture(scope="session")
def rag_trace(span: Callable[..., Span]) -> Callable[..., Trace]:
    """Return a trace of one question: a root, a retriever with the passages, and a model call with the prompt."""

    def make(
        passages: Mapping[str, str],
        prompt: str | None,
        answer: str,
        *,
        written: str | None = None,
        root: Mapping[str, object] | None = None,
    ) -> Trace:
        documents: dict[str, object] = {"output.value": "documents"}
        for n, (passage_id, text) in enumerate(passages.items()):
            documents[f"retrieval.documents.{n}.document.id"] = passage_id
            documents[f"retrieval.documents.{n}.document.content"] = text
        call: dict[str, object] = {
            "llm.model_name": "m",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": written or answer,
        }
        if prompt is not None:
            call["llm.input_messages.0.message.role"] = "user"
            call["llm.input_messages.0.message.content"] = prompt
        return Trace(
            TRACE_ID,
            (
                span(1, "CHAIN", root or {"input.value": "Why?", "output.value": answer}),
                span(2, "RETRIEVER", documents, parent=1, start=1, end=10),
                span(3, "LLM", call, parent=1, start=20, end=30),
            ),
        )

    return make
