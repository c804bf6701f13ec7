"""A Phoenix in memory: just enough of its API to show how citespan takes its answers and its failures."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.records import Project

PROJECT = Project("UHJvamVjdDox", "demo")
START = datetime(2026, 11, 29, 10, 0, 0, tzinfo=UTC)


@dataclass
class FakePhoenix:
    """Keeps spans and rows as Phoenix does; `fail` may answer a request in its place."""

    spans: list[dict[str, Any]] = field(default_factory=list)
    rows: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    requests: list[httpx.Request] = field(default_factory=list)
    fail: Callable[[httpx.Request], httpx.Response | None] = lambda request: None
    on_read: Callable[[], None] = lambda: None

    def add(
        self,
        trace: int,
        span: int,
        *,
        parent: int | None = None,
        kind: str = "CHAIN",
        seconds: float = 0,
        **attributes: object,
    ) -> None:
        """Store one span; attribute names are written with `__` for a dot."""
        moment = (START + timedelta(seconds=seconds)).isoformat()
        self.spans.append(
            {
                "id": base64.b64encode(f"Span:{len(self.spans) + 1}".encode()).decode(),
                "name": f"span {span}",
                "context": {"trace_id": f"{trace:032x}", "span_id": f"{span:016x}"},
                "parent_id": None if parent is None else f"{parent:016x}",
                "span_kind": kind,
                "start_time": moment,
                "end_time": moment,
                "status_code": "OK",
                "attributes": {name.replace("__", "."): value for name, value in attributes.items()},
                "events": [],
            }
        )

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if (answer := self.fail(request)) is not None:
            return answer
        path = request.url.path
        if path.endswith("/spans") and request.method == "GET":
            return self._list_spans(request.url.params)
        if path.endswith("/spans"):
            return self._add_spans(json.loads(request.content)["data"])
        if path.endswith("_annotations") and request.method == "GET":
            return self._list_rows(request.url.params)
        if path.endswith("_annotations"):
            return self._add_rows(json.loads(request.content)["data"])
        return httpx.Response(200, json={"data": {}})

    def _list_spans(self, query: httpx.QueryParams) -> httpx.Response:
        wanted = {
            "trace_id": query.get_list("trace_id"),
            "span_id": query.get_list("span_id"),
            "span_kind": query.get_list("span_kind"),
        }
        start = query.get("start_time")
        found = [
            span
            for span in self.spans
            if (not wanted["trace_id"] or span["context"]["trace_id"] in wanted["trace_id"])
            and (not wanted["span_id"] or span["context"]["span_id"] in wanted["span_id"])
            and (not wanted["span_kind"] or span["span_kind"] in wanted["span_kind"])
            and (start is None or span["start_time"] >= start)
        ]
        found.sort(key=_row, reverse=query["order"] == "desc")
        if (cursor := query.get("cursor")) is not None:
            found = [span for span in found if _row(span) >= _row({"id": cursor})]
        limit = int(query["limit"])
        rest = found[limit:]
        answer = {"data": found[:limit], "next_cursor": rest[0]["id"] if rest else None}
        response = httpx.Response(200, json=answer)
        self.on_read()
        return response

    def _add_spans(self, spans: list[dict[str, Any]]) -> httpx.Response:
        known = {span["context"]["span_id"] for span in self.spans}
        duplicates = [span["context"] for span in spans if span["context"]["span_id"] in known]
        if duplicates:
            return httpx.Response(400, text=json.dumps({"duplicate_spans": duplicates, "invalid_spans": []}))
        for span in spans:
            row = base64.b64encode(f"Span:{len(self.spans) + 1}".encode()).decode()
            self.spans.append({**span, "id": row})
        return httpx.Response(202, json={"total_received": len(spans), "total_queued": len(spans)})

    def _list_rows(self, query: httpx.QueryParams) -> httpx.Response:
        targets = query.get_list("span_ids") or query.get_list("trace_ids")
        names = query.get_list("include_annotation_names")
        rows = [
            row
            for (target, name, _), row in self.rows.items()
            if target in targets and (not names or name in names)
        ]
        return httpx.Response(200, json={"data": rows, "next_cursor": None})

    def _add_rows(self, rows: list[dict[str, Any]]) -> httpx.Response:
        known = {span["context"][key] for span in self.spans for key in ("span_id", "trace_id")}
        targets = [row.get("span_id") or row["trace_id"] for row in rows]
        if missing := set(targets) - known:
            return httpx.Response(404, text=f"{', '.join(missing)} do not exist.")
        for target, row in zip(targets, rows, strict=True):
            key = (target, row["name"], row["identifier"])
            self.rows[key] = {**row, "id": "-".join(key)}
        return httpx.Response(200, json={"data": []})


def _row(span: Mapping[str, Any]) -> int:
    return int(base64.b64decode(span["id"]).rpartition(b":")[2])


@pytest.fixture
def phoenix() -> FakePhoenix:
    return FakePhoenix()


@pytest.fixture
def client(phoenix: FakePhoenix) -> Iterator[PhoenixClient]:
    """A client of the Phoenix in memory that never really waits."""
    connection = Connection("http://phoenix.test/base")
    with PhoenixClient(connection, http=httpx.MockTransport(phoenix), sleep=lambda _: None) as made:
        yield made


@pytest.fixture
def project() -> Project:
    return PROJECT
