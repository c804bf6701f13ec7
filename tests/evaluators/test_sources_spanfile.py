"""Span files: JSON Lines or one document, as span dumps, as Phoenix or as the OpenTelemetry SDK writes spans."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from citespan import tracer
from citespan.evaluators.errors import InputError
from citespan.evaluators.sources.source import Trace
from citespan.evaluators.sources.spanfile import SpanFile

DUMP: Mapping[str, Any] = {
    "name": "answer",
    "trace_id": "0af7651916cd43dd8448eb211c80319c",
    "span_id": "b7ad6b7169203331",
    "parent_id": None,
    "kind": "INTERNAL",
    "start": 1795973864137686315,
    "end": 1795973864138028722,
    "status": "OK",
    "scope": "app",
    "attributes": {"openinference.span.kind": "CHAIN", "output.value": "Yes [1]."},
    "events": [],
}
PHOENIX: Mapping[str, Any] = {
    "id": "U3Bhbjox",
    "name": "answer",
    "context": {"trace_id": DUMP["trace_id"], "span_id": DUMP["span_id"]},
    "span_kind": "CHAIN",
    "parent_id": None,
    "start_time": "2026-11-29T10:00:00.000001+00:00",
    "end_time": "2026-11-29T10:00:01.123456+00:00",
    "status_code": "OK",
    "status_message": "",
    "attributes": {"output.value": "Yes [1]."},
    "events": [],
}


def _read(path: Path, text: str | bytes) -> list[Trace]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(SpanFile(path).traces())


def test_a_span_dump_comes_back_as_it_was(tmp_path: Path) -> None:
    (trace,) = _read(tmp_path / "spans.json", json.dumps([DUMP]))
    (span,) = trace.spans
    assert (span.trace_id, span.span_id, span.parent_id) == (DUMP["trace_id"], DUMP["span_id"], None)
    assert (span.name, span.kind, span.status, span.scope) == ("answer", "CHAIN", "OK", "app")
    assert (span.start_ns, span.end_ns) == (DUMP["start"], DUMP["end"])
    assert span.attributes == {"output.value": "Yes [1]."}


def test_phoenix_json_comes_back_to_the_microsecond(tmp_path: Path) -> None:
    (trace,) = _read(tmp_path / "spans.jsonl", json.dumps(PHOENIX))
    (span,) = trace.spans
    assert span.kind == "CHAIN"
    # 2026-11-29T10:00:00Z is 1,795,946,400 s after the epoch.
    assert span.start_ns == 1_795_946_400_000_001_000
    assert span.end_ns == 1_795_946_401_123_456_000


def test_what_the_sdk_prints_can_be_read(tmp_path: Path) -> None:
    exporter = InMemorySpanExporter()
    tracer.configure(exporter=exporter, batch=False)
    with tracer.run("Why?") as recorded:
        recorded.answer("Because.")
    tracer.shutdown()
    (printed,) = exporter.get_finished_spans()
    (trace,) = _read(tmp_path / "spans.jsonl", printed.to_json(indent=None))
    (span,) = trace.spans
    assert (span.kind, span.status, span.attributes["output.value"]) == ("CHAIN", "UNSET", "Because.")
    assert (span.trace_id, span.span_id) == (recorded.trace_id, recorded.span_id)


@pytest.mark.parametrize("indent", [None, 2])
def test_lists_pages_and_single_spans_are_all_read(tmp_path: Path, indent: int | None) -> None:
    other = {**DUMP, "trace_id": "1" * 32}
    for content in ([DUMP, other], {"data": [DUMP, other], "next_cursor": None}):
        traces = _read(tmp_path / "spans.json", json.dumps(content, indent=indent))
        assert [trace.trace_id for trace in traces] == [DUMP["trace_id"], "1" * 32]
    (alone,) = _read(tmp_path / "span.json", json.dumps(DUMP, indent=indent))
    assert alone.trace_id == DUMP["trace_id"]


def test_mixed_lines_make_whole_traces_in_order_of_first_appearance(tmp_path: Path) -> None:
    lines = [
        {**DUMP, "trace_id": f"{trace:032x}", "span_id": f"{span:016x}", "start": start}
        for trace, span, start in [(2, 21, 5), (1, 11, 9), (2, 22, 1), (1, 12, 3)]
    ]
    text = "\n\n".join(json.dumps(line) for line in lines) + "\n"
    traces = _read(tmp_path / "spans.jsonl", text)
    ids = [[int(span.span_id, 16) for span in trace.spans] for trace in traces]
    assert ids == [[22, 21], [12, 11]]  # each in start order


def test_a_span_written_twice_counts_once(tmp_path: Path) -> None:
    (trace,) = _read(tmp_path / "spans.jsonl", f"{json.dumps(DUMP)}\n{json.dumps(DUMP)}\n")
    assert len(trace.spans) == 1


def test_an_empty_list_holds_no_spans(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no spans"):
        _read(tmp_path / "spans.json", "[]")


def test_a_byte_order_mark_is_no_trouble(tmp_path: Path) -> None:
    assert len(_read(tmp_path / "spans.json", b"\xef\xbb\xbf" + json.dumps([DUMP]).encode())) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "neither JSON nor JSON Lines"),
        ("hello", "neither JSON nor JSON Lines"),
        ("3", "holds int: expected a list of spans"),
        (json.dumps([1]), "span 1 is int: expected an object"),
        (json.dumps([{**DUMP, "trace_id": "xyz"}]), "span 1: trace_id is 'xyz': expected 32 hexadecimal"),
        (json.dumps([{**DUMP, "start": "yesterday"}]), "span 1: start_time is 'yesterday'"),
        (f"{json.dumps(DUMP)}\n{{broken\n", "line 2 is no JSON"),
        (f"{json.dumps(DUMP)}\n{json.dumps({**DUMP, 'span_id': None})}\n", "line 2: span_id is None"),
    ],
)
def test_what_is_no_span_is_named_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        _read(tmp_path / "spans.jsonl", text)
    assert str(tmp_path / "spans.jsonl") in str(caught.value)
    assert words in str(caught.value)


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        list(SpanFile(tmp_path / "nowhere.jsonl").traces())


def test_memory_does_not_grow_with_the_number_of_traces(tmp_path: Path) -> None:
    import tracemalloc

    def peak(traces: int) -> int:
        path = tmp_path / f"{traces}.jsonl"
        text = "x" * 2_000
        with path.open("w") as file:
            for n in range(traces):
                line = {**DUMP, "trace_id": f"{n:032x}", "attributes": {"output.value": text}}
                file.write(json.dumps(line) + "\n")
        tracemalloc.start()
        for _ in SpanFile(path).traces():
            pass
        _, high = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return high

    # The index takes some 200 bytes a trace; the 2,000 bytes of its text must not stay.
    assert peak(2_000) - peak(200) < 1_800 * 500
