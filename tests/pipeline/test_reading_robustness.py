"""Whatever a trace holds, it is read as a run or a state, in time that grows with its size."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from citespan.evaluators.reading.inspection import inspection_to_dict
from citespan.evaluators.reading.label_forms import find_tokens
from citespan.evaluators.reading.reader import read_runs
from citespan.evaluators.sources.source import Span, Trace
from citespan.evaluators.sources.spanfile import SpanFile

DUMPS = sorted((Path(__file__).parents[1] / "data" / "spans").glob("*.json"))
TRACE_ID = "0" * 31 + "1"

KEYS = (
    "input.value",
    "output.value",
    "output.mime_type",
    "retrieval.documents",
    "retrieval.documents.0.document.content",
    "retrieval.documents.7.document.id",
    "reranker.output_documents.0.document.content",
    "llm.input_messages",
    "llm.input_messages.0.message.content",
    "llm.input_messages.0.message.role",
    "llm.output_messages.0.message.content",
    "llm.output_messages.0.message.contents.0.message_content.text",
    "llm.prompt_template.variables",
    "llm.prompts",
    "gen_ai.operation.name",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.retrieval.documents",
    "metadata",
    "metadata.citations",
    "crew_tasks",
    "session.id",
    "openinference.span.kind",
    "",
    ".",
)
NAMES = [
    "answer",
    "content",
    "text",
    "messages",
    "role",
    "type",
    "documents",
    "id",
    "page_content",
    "metadata",
    "choices",
    "message",
    "citations",
    "output",
    "annotations",
    "start_index",
    "end_index",
    "parts",
    "candidates",
    "grounding_metadata",
    "grounding_supports",
    "segment",
    "kwargs",
    "data",
    "0",
    "1",
    "document",
    "source",
    "citationsContent",
    "reference_ids",
    "sources",
    "results",
    "score",
    "url",
    "context",
    "query",
    "question",
    "tool_calls",
    "function",
    "arguments",
    "usage",
]
TEXTS = (
    "[1] Tea is dried in the sun.",
    "Tea is dried in the sun [1].",
    "Source 1:\nTea is dried.\nSource 2:\nInk is made.",
    '<source id="1">Tea is dried</source>',
    '{"answer": "x [1]"}',
    "[[",
    '{"a":',
    "__REDACTED__",
    "<generator object",
)

texts = st.text(max_size=30) | st.sampled_from(TEXTS)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | texts
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=25,
)
attributes = st.dictionaries(
    st.sampled_from(KEYS) | st.text(max_size=12), trees | trees.map(json.dumps), max_size=8
)
span_ids = st.integers(1, 5).map(lambda n: f"{n:016x}")
kinds = st.sampled_from(
    ["LLM", "CHAIN", "RETRIEVER", "TOOL", "AGENT", "UNKNOWN", "EVALUATOR", "RERANKER", "EMBEDDING", "PROMPT"]
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    spans = [
        Span(
            trace_id=TRACE_ID,
            span_id=f"{n:016x}",
            parent_id=draw(st.none() | span_ids),
            name=draw(st.text(max_size=8)),
            kind=draw(kinds),
            start_ns=draw(st.integers(0, 100)),
            end_ns=draw(st.integers(0, 200)),
            attributes=draw(attributes),
        )
        for n in range(1, draw(st.integers(1, 5)) + 1)
    ]
    return Trace(TRACE_ID, tuple(spans))


def assert_sound(trace: Trace) -> None:
    """Read the trace and check what holds of every run."""
    for run in read_runs(trace):
        ids = [passage.id for passage in run.passages]
        assert len(set(ids)) == len(ids)
        assert run.state is None or run.reasons
        for citation in run.citations:
            if citation.start is not None and citation.end is not None:
                assert 0 <= citation.start < citation.end <= len(run.answer or "")
        json.dumps(inspection_to_dict(run))


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(traces())
def test_any_attributes_give_a_run_or_a_state(trace: Trace) -> None:
    assert_sound(trace)


def test_damaged_dumps_give_a_run_or_a_state() -> None:
    """Spans lost, values cut, masked, emptied, of another type; the seed keeps the damage the same."""
    source = random.Random(7)

    def damage(value: object) -> object:
        kind = source.random()
        if kind < 0.4:
            return value[: source.randint(0, len(value))] if isinstance(value, str) else None
        return source.choice([0, True, 1.5, "", "[", "__REDACTED__", [value], {"x": value}])

    for _ in range(400):
        for trace in SpanFile(source.choice(DUMPS)).traces():
            spans = [
                replace(
                    span,
                    attributes={
                        key: damage(value) if source.random() < 0.1 else value
                        for key, value in span.attributes.items()
                        if source.random() > 0.05
                    },
                )
                for span in trace.spans
                if source.random() > 0.1
            ]
            if spans:
                assert_sound(replace(trace, spans=tuple(spans)))


@pytest.mark.parametrize(
    "value", ["[" * 100_000, '{"a":' * 50_000, "[1]" * 5_000, '"' * 100_000, "\ud800\x00" * 100]
)
def test_odd_strings_are_read(value: str) -> None:
    keys = (
        "input.value",
        "output.value",
        "llm.input_messages.0.message.content",
        "llm.output_messages",
        "metadata",
    )
    assert_sound(
        Trace(TRACE_ID, (Span(TRACE_ID, "1".zfill(16), None, "s", "LLM", 0, 1, dict.fromkeys(keys, value)),))
    )


def test_deeply_nested_keys_and_values_are_read() -> None:
    deep: object = "x"
    for _ in range(2000):
        deep = {"answer": deep}
    attributes = {"output.value": deep, ".".join("a" * 2000): "x", "input.value": [[[[[["Why?"]]]]]]}
    assert_sound(Trace(TRACE_ID, (Span(TRACE_ID, "1".zfill(16), None, "s", "CHAIN", 0, 1, attributes),)))


def large_trace(steps: int, passages: int) -> Trace:
    texts = [f"Passage {n} tells of craft number {n * 7} in the valley. " * 4 for n in range(passages)]
    documents = {f"retrieval.documents.{n}.document.content": text for n, text in enumerate(texts)}
    call = {
        "llm.model_name": "m",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "\n".join(f"[{n}] {t}" for n, t in enumerate(texts, start=1)),
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "One [1]. Two [2].",
    }
    root = {"input.value": "Why?", "output.value": "One [1]. Two [2]."}
    step = {"input.value": json.dumps({"x": "y" * 200}), "output.value": "a step"}
    spans = [
        Span(TRACE_ID, f"{1:016x}", None, "root", "CHAIN", 0, 10**6, root),
        Span(TRACE_ID, f"{2:016x}", f"{1:016x}", "retrieve", "RETRIEVER", 1, 2, documents),
        Span(TRACE_ID, f"{3:016x}", f"{1:016x}", "call", "LLM", 5, 6, call),
    ]
    spans += [
        Span(
            TRACE_ID,
            f"{n + 10:016x}",
            f"{n + 9 if n else 1:016x}",
            "step",
            "LLM" if n % 3 else "CHAIN",
            7,
            8,
            step,
        )
        for n in range(steps)
    ]
    return Trace(TRACE_ID, tuple(spans))


def seconds_to_read(trace: Trace) -> float:
    return min(_timed(lambda: read_runs(trace)) for _ in range(3))


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@pytest.mark.parametrize(
    ("small", "large"), [((500, 20), (4000, 20)), ((10, 100), (10, 800))], ids=["spans", "passages"]
)
def test_reading_time_grows_with_the_size_of_the_trace(
    small: tuple[int, int], large: tuple[int, int]
) -> None:
    first, second = large_trace(*small), large_trace(*large)
    assert len(read_runs(second)[0].passages) == large[1]
    # Eight times the size may take thirty times as long on a busy machine; what is quadratic takes 64 times.
    assert seconds_to_read(second) < 30 * seconds_to_read(first) + 0.2


@pytest.mark.parametrize(
    "text", ["-" * 200_000, "source" + " " * 200_000, "[[[[[" * 40_000, "<source " * 30_000, "a." * 100_000]
)
def test_labels_of_any_text_are_found_in_linear_time(text: str) -> None:
    assert _timed(lambda: find_tokens(text)) < 2.0
