"""Traces that other instrumentors recorded are read as a person read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from citespan.evaluators.reading.inspection import inspection_to_dict
from citespan.evaluators.reading.reader import read_runs
from citespan.evaluators.reading.values import is_object, items, nest
from citespan.evaluators.runs import Run
from citespan.evaluators.sources.source import Trace
from citespan.evaluators.sources.spanfile import SpanFile

DATA = Path(__file__).parents[1] / "data"
DUMPS = sorted(path.stem for path in (DATA / "spans").glob("*.json"))
FROM_PHOENIX = DATA / "spans_from_phoenix.jsonl"

Expected = Callable[[str], list[Mapping[str, Any]]]


def traces_of(name: str) -> list[Trace]:
    return list(SpanFile(DATA / "spans" / f"{name}.json").traces())


def assert_read_as(run: Run, want: Mapping[str, Any]) -> None:
    found = inspection_to_dict(run)
    for part in ("state", "question", "answer", "passages"):
        assert found[part] == want[part], part
    assert run.resolution == "inferred"
    citations = sorted(found["citations"], key=_place)  # type: ignore[arg-type]  # the dict holds objects
    wanted = sorted(want["citations"], key=_place)
    assert [_compared(c, w) for c, w in zip(citations, wanted, strict=True)] == [
        _compared(w, w) for w in wanted
    ]


def _place(citation: Mapping[str, Any]) -> tuple[int, str]:
    return (citation["start"] or 0, citation["passage_id"] or "")


def _compared(citation: Mapping[str, Any], want: Mapping[str, Any]) -> list[object]:
    """Return what is compared: where the provider gives no range, where it is listed does not matter."""
    place = [citation["start"], citation["end"]] if want["start"] is not None else []
    return [*place, citation["passage_id"], citation["certainty"]]


def test_every_dump_has_an_expectation_written_by_hand() -> None:
    assert sorted(path.stem for path in (DATA / "expectations").glob("*.json")) == DUMPS


@pytest.mark.parametrize("name", DUMPS)
def test_dump_is_read_as_a_person_read_it(name: str, expected_runs: Expected) -> None:
    runs = [run for trace in traces_of(name) for run in read_runs(trace)]
    wanted = expected_runs(name)
    assert len(runs) == len(wanted)
    for run, want in zip(runs, wanted, strict=True):
        assert_read_as(run, want)


@pytest.mark.parametrize("name", DUMPS)
def test_dump_with_nested_attributes_is_read_alike(name: str, expected_runs: Expected) -> None:
    """Phoenix's dataframe gives nested objects where its REST API gives dotted keys."""
    for trace, want in zip(traces_of(name), expected_runs(name), strict=True):
        spans = tuple(replace(span, attributes=nest(span.attributes)) for span in trace.spans)
        assert_read_as(read_runs(replace(trace, spans=spans))[0], want)


@pytest.mark.parametrize("name", [name for name in DUMPS if name != "langchain_limits_plain80"])
def test_dump_with_lists_as_json_strings_is_read_alike(name: str, expected_runs: Expected) -> None:
    """A list as one JSON string cannot show gaps in its numbers, so the dump that has some is left out."""
    for trace, want in zip(traces_of(name), expected_runs(name), strict=True):
        spans = tuple(replace(span, attributes=_with_json_lists(span.attributes)) for span in trace.spans)
        assert_read_as(read_runs(replace(trace, spans=spans))[0], want)


def _with_json_lists(attributes: Mapping[str, object]) -> dict[str, object]:
    found = dict(attributes)
    for path in (
        "retrieval.documents",
        "llm.input_messages",
        "llm.output_messages",
        "reranker.output_documents",
    ):
        node: object = nest(attributes)
        for part in path.split("."):
            node = node.get(part) if is_object(node) else None
        if node is not None:
            found = {key: value for key, value in found.items() if not key.startswith(f"{path}.")}
            found[path] = json.dumps(items(node))
    return found


def test_traces_that_went_through_phoenix_are_read_alike(expected_runs: Expected) -> None:
    """Phoenix numbers documents anew, flattens metadata, converts `gen_ai` keys and drops scopes."""
    names = {
        json.loads((DATA / "spans" / f"{name}.json").read_text(encoding="utf-8"))[0]["trace_id"]: name
        for name in DUMPS
    }
    read = 0
    for trace in SpanFile(FROM_PHOENIX).traces():
        assert_read_as(read_runs(trace)[0], expected_runs(names[trace.trace_id])[0])
        read += 1
    # 13 traces were replayed into Phoenix 20.26.1 and listed over its REST API.
    assert read == 13


@pytest.mark.parametrize("name", DUMPS)
def test_origin_names_spans_of_the_trace(name: str) -> None:
    for trace in traces_of(name):
        spans = {span.span_id: span for span in trace.spans}
        origin = read_runs(trace)[0].origin
        assert origin is not None
        assert origin.trace_id == trace.trace_id
        assert {origin.root_span_id, origin.answer_span_id, *origin.passage_span_ids.values()} <= set(spans)
        assert origin.answer_end_ns == spans[origin.answer_span_id].end_ns


@pytest.mark.parametrize("name", ["langchain_lcel_ids", "llamaindex_query_engine", "langgraph_rag"])
def test_every_inferred_run_says_how_it_was_read(name: str) -> None:
    run = read_runs(traces_of(name)[0])[0]
    assert run.reasons
    assert all(reason.replace("_", "").replace(":", "").isalnum() for reason in run.reasons)


def test_spans_in_any_order_are_read_alike(expected_runs: Expected) -> None:
    trace = traces_of("langchain_lcel_ids")[0]
    spans: Sequence[Any] = sorted(trace.spans, key=lambda span: (span.start_ns, span.span_id))
    assert_read_as(read_runs(replace(trace, spans=tuple(spans)))[0], expected_runs("langchain_lcel_ids")[0])
