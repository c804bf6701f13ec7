"""Traces from a file of spans: JSON Lines, one span a line, or one JSON document."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from citespan.evaluators.errors import InputError
from citespan.evaluators.sources.source import Span, Trace
from citespan.evaluators.sources.span_json import group_traces, span_from_json

__all__ = ["SpanFile"]


class SpanFile:
    """Reads spans as Phoenix's REST API gives them, or as span dumps have them.

    JSON Lines are read twice, first for where each trace's lines are, so that memory holds one trace at a
    time however their lines are mixed. A JSON document (a list of spans, or `{"data": [...]}`) is read whole.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def traces(self) -> Iterator[Trace]:
        """Yield the traces in order of first appearance.

        Raises:
            InputError: The file cannot be read, or a span in it cannot, or it holds none; the message says where.
        """
        is_empty = True
        try:
            with self.path.open("rb") as file:
                for trace in self._lines(file) if _is_json_lines(file) else self._document(file):
                    is_empty = False
                    yield trace
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror or error}") from error
        if is_empty:
            raise InputError(f"{self.path} holds no spans: expected JSON Lines or a JSON list, one span each")

    def _document(self, file: BinaryIO) -> Iterator[Trace]:
        try:
            data: object = json.loads(file.read().decode("utf-8-sig"))
        except ValueError as error:
            raise InputError(f"{self.path} is neither JSON nor JSON Lines: {error}") from error
        if isinstance(data, dict):
            fields = cast("dict[str, object]", data)
            data = fields.get("data", [fields])
        if not isinstance(data, list):
            raise InputError(f"{self.path} holds {type(data).__name__}: expected a list of spans")
        items = cast("list[object]", data)
        yield from group_traces(
            span_from_json(item, f"{self.path}, span {n}") for n, item in enumerate(items, start=1)
        )

    def _lines(self, file: BinaryIO) -> Iterator[Trace]:
        offsets: dict[str, array[int]] = {}
        for offset, number, line in _nonempty_lines(file):
            trace_id = self._span(line, number).trace_id
            offsets.setdefault(trace_id, array("Q")).extend((offset, number))
        for places in offsets.values():
            yield from group_traces(self._spans_at(file, places))

    def _spans_at(self, file: BinaryIO, places: array[int]) -> Iterator[Span]:
        for n in range(0, len(places), 2):
            file.seek(places[n])
            yield self._span(file.readline(), places[n + 1])

    def _span(self, line: bytes, number: int) -> Span:
        where = f"{self.path}, line {number}"
        try:
            data: object = json.loads(line)
        except ValueError as error:
            raise InputError(f"{where} is no JSON: {error}") from error
        return span_from_json(data, where)


def _is_json_lines(file: BinaryIO) -> bool:
    """Return whether the first line is a whole JSON object that is itself a span."""
    first = next((line for _, _, line in _nonempty_lines(file)), b"")
    file.seek(0)
    try:
        data: object = json.loads(first)
    except ValueError:
        return False
    return isinstance(data, dict) and "data" not in data


def _nonempty_lines(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """Yield offset, 1-based number and bytes of each line that holds more than white space."""
    offset = 0
    for number, line in enumerate(file, start=1):
        if line.strip():
            yield offset, number, line
        offset += len(line)
