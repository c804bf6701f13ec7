"""The routes of Phoenix's API that citespan uses, as typed methods."""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self, cast
from urllib.parse import quote

import httpx

from citespan.evaluators.errors import NotFound, Refused, Unavailable
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.paging import PageSize
from citespan.evaluators.phoenix.records import (
    Annotation,
    Kind,
    Project,
    SpanPage,
    StoredAnnotation,
    Target,
)
from citespan.evaluators.phoenix.transport import Query, Transport

__all__ = ["PhoenixClient", "row_of", "span_id_of", "trace_id_of"]

_IDS_PER_REQUEST = 100
"""Ids in one query string: 100 of 32 digits make 4 kB, well under what servers and proxies accept."""

_ROWS_PER_PAGE = 1000
_SPANS_PER_PAGE = 250
"""Most spans on a page: as quick as pages of 1,000, and a quarter of their memory."""

_TRACES_PER_PAGE = 50
_PATH_BREAKERS = frozenset("/?#")
"""A project name with one of these cannot stand in a path; its id can."""


class PhoenixClient:
    """Talks to one Phoenix server. Every method raises a `ServerError` whose text says what to do."""

    def __init__(
        self,
        connection: Connection,
        *,
        retries: int = 3,
        http: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self.connection = connection
        self._transport = Transport(connection, retries=retries, http=http, sleep=sleep or time.sleep)
        self._page_size = PageSize(most=_SPANS_PER_PAGE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    # The server and its projects

    def version(self) -> str:
        """Return the server's version, for example `20.26.1`; asked without authentication."""
        response = self._transport.send("GET", "/arize_phoenix_version")
        text = response.text.strip().strip('"')
        if not text[:1].isdigit():
            raise self._transport.not_phoenix(response)
        return text

    def projects(self) -> Iterator[Project]:
        """Yield every project."""
        for data in self._pages("/v1/projects", {"limit": 100}):
            yield Project(_text(data, "id"), _text(data, "name"))

    def project(self, name: str) -> Project:
        """Return the project called `name`.

        Raises:
            NotFound: There is none; the message lists those that exist.
        """
        if not _PATH_BREAKERS & set(name):
            try:
                reply = self._transport.json("GET", f"/v1/projects/{quote(name, safe='')}")
            except NotFound:
                pass
            else:
                data = _object(reply.data.get("data"))
                return Project(_text(data, "id"), _text(data, "name"))
        names: list[str] = []
        for project in self.projects():
            if project.name == name:
                return project
            names.append(project.name)
        base = self.connection.base_url
        shown = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
        raise NotFound(
            f"Phoenix at {base} has no project {name!r}: a project begins with its first span; "
            f"there are {shown or 'none'}",
            url=base,
            status=404,
        )

    def trace_url(self, project: Project, trace_id: str) -> str:
        """Return where a person can look at a trace."""
        return f"{self.connection.base_url}/projects/{project.id}/traces/{trace_id}"

    # Spans

    def span_pages(
        self,
        project: Project,
        *,
        trace_ids: Sequence[str] = (),
        span_ids: Sequence[str] = (),
        kinds: Sequence[str] = (),
        start_time: datetime | None = None,
        from_row: int = 0,
    ) -> Iterator[SpanPage]:
        """Yield the project's spans page by page in order of arrival; a page has about `PAGE_BYTES`.

        Args:
            project: The project.
            trace_ids: Only spans of these traces.
            span_ids: Only these spans.
            kinds: Only spans of these kinds.
            start_time: Only spans that started then or later.
            from_row: Only spans whose number in order of arrival, see `row_of`, is not lower.
        """
        query: dict[str, str | int | Sequence[str]] = {
            "sort": "id",
            "order": "asc",
            "trace_id": trace_ids,
            "span_id": span_ids,
            "span_kind": kinds,
        }
        if start_time is not None:
            query["start_time"] = start_time.isoformat()
        if from_row:
            query["cursor"] = base64.b64encode(f"Span:{from_row}".encode()).decode()
        while True:
            page = self._span_page(project, {**query, "limit": self._page_size.value})
            self._page_size.learn(len(page.spans), page.size_bytes)
            yield page
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor

    def newest_span(self, project: Project, kinds: Sequence[str] = ()) -> Mapping[str, object] | None:
        """Return the span that was stored last, or `None` if there is none."""
        query: Query = {"sort": "id", "order": "desc", "limit": 1, "span_kind": kinds}
        return next(iter(self._span_page(project, query).spans), None)

    def _span_page(self, project: Project, query: Query) -> SpanPage:
        reply = self._transport.json("GET", f"/v1/projects/{project.id}/spans", query=query)
        return SpanPage(tuple(_objects(reply.data)), _cursor(reply.data), reply.size_bytes)

    def span_ids_by_trace(self, project: Project) -> Iterator[dict[str, list[str]]]:
        """Yield the ids of every trace's spans, a batch of traces at a time, oldest first."""
        query: dict[str, str | int | Sequence[str]] = {
            "include_spans": "true",
            "order": "asc",
            "limit": _TRACES_PER_PAGE,
        }
        while True:
            page = self._transport.json("GET", f"/v1/projects/{project.id}/traces", query=query).data
            yield {
                _text(trace, "trace_id"): [_text(span, "span_id") for span in _objects(trace, "spans")]
                for trace in _objects(page)
            }
            cursor = _cursor(page)
            if cursor is None:
                return
            query["cursor"] = cursor

    def matching_traces(
        self,
        project: Project,
        expression: str,
        *,
        trace_ids: Sequence[str] = (),
        since: datetime | None = None,
    ) -> Iterator[str]:
        """Yield the ids of the traces that Phoenix's trace filter `expression` lets through, oldest first.

        Args:
            project: The project.
            expression: As typed into the page's bar above the table of traces.
            trace_ids: Only these traces.
            since: Only traces that started then or later.

        Raises:
            Refused: Phoenix does not understand the expression; the message says why.
        """
        query: dict[str, str | int | Sequence[str]] = {"order": "asc", "limit": _ROWS_PER_PAGE}
        if since is not None:
            query["start_time"] = since.isoformat()
        path = f"/v1/projects/{project.id}/traces"
        for start in range(0, len(trace_ids) or 1, _IDS_PER_REQUEST):
            some = list(trace_ids[start : start + _IDS_PER_REQUEST])
            query["filter"] = f"({expression}) and trace_id in {some}" if some else expression
            for data in self._pages(path, query):
                yield _text(data, "trace_id")

    def add_spans(self, project: Project, spans: Sequence[Mapping[str, object]]) -> None:
        """Queue spans for storing; one whose id Phoenix has already stays as it is.

        Raises:
            Refused: Phoenix says that a span is invalid.
        """
        left = list(spans)
        while left:
            path = f"/v1/projects/{project.id}/spans"
            response = self._transport.send("POST", path, body={"data": left}, accept=frozenset({400}))
            if response.is_success:
                break
            duplicates = _duplicates(response)
            if not duplicates:
                raise self._transport.error_of(response)
            left = [span for span in left if span_id_of(span) not in duplicates]

    def delete_span(self, span_id: str) -> bool:
        """Delete one span and its annotations; return whether it was there."""
        try:
            self._transport.send("DELETE", f"/v1/spans/{span_id}")
        except NotFound:
            return False
        return True

    # Annotations

    def annotations(
        self,
        project: Project,
        target: Target,
        *,
        target_ids: Sequence[str] | None = None,
        identifier: str | None = None,
        names: Sequence[str] = (),
    ) -> Iterator[StoredAnnotation]:
        """Yield the annotations on these targets, or all that carry an identifier.

        Args:
            project: The project.
            target: Whether spans or traces are meant.
            target_ids: Only those on these spans or traces; unknown ones have none.
            identifier: Only those with this identifier.
            names: Only those with these names.
        """
        query: dict[str, str | int | Sequence[str]] = {
            "limit": _ROWS_PER_PAGE,
            "include_annotation_names": names,
        }
        if identifier is not None:
            query["identifier"] = identifier
        path = f"/v1/projects/{project.id}/{target}_annotations"
        if target_ids is None:
            yield from self._stored(path, query, target)
            return
        for start in range(0, len(target_ids), _IDS_PER_REQUEST):
            query[f"{target}_ids"] = target_ids[start : start + _IDS_PER_REQUEST]
            try:
                yield from self._stored(path, query, target)
            except NotFound:  # none of the ids exists, which Phoenix answers with 404
                continue

    def annotate(self, target: Target, annotations: Sequence[Annotation]) -> None:
        """Write annotations at once: each one that has its target, name and identifier is replaced.

        Raises:
            NotFound: A target does not exist; then none was written.
        """
        body = {"data": [annotation.to_json(target) for annotation in annotations]}
        # Only Phoenix's own answer says that they are written: the mark that a trace is done depends on it.
        _objects(
            self._transport.json("POST", f"/v1/{target}_annotations", query={"sync": "true"}, body=body).data
        )

    def delete_stored(self, target: Target, stored: Sequence[StoredAnnotation]) -> None:
        """Delete these rows; the REST API cannot name single rows, so this is GraphQL.

        Raises:
            Refused: A row is gone, or belongs to the owner of another API key.
        """
        if not stored:
            return
        mutation = f"delete{target.capitalize()}Annotations"
        body = {
            "query": f"mutation($ids: [ID!]!) {{ {mutation}(input: {{annotationIds: $ids}}) {{ __typename }} }}",
            "variables": {"ids": [row.id for row in stored]},
        }
        errors = self._transport.json("POST", "/graphql", body=body, retry=False).data.get("errors")
        if errors:
            url = f"{self.connection.base_url}/graphql"
            raise Refused(f"Phoenix refused to delete annotations at {url}: {json.dumps(errors)}", url=url)

    # The form in which people label

    def ensure_label_form(
        self, project: Project, name: str, description: str, labels: Mapping[str, float | None]
    ) -> None:
        """Create the form that lets people annotate with `labels`, unless it exists, and show it in the project."""
        body = {
            "name": name,
            "type": "CATEGORICAL",
            "description": description,
            "optimization_direction": "MAXIMIZE",
            "values": [{"label": label, "score": score} for label, score in labels.items()],
        }
        conflict = frozenset({409})  # it exists; what its owners made of it stays
        self._transport.send("POST", "/v1/annotation_configs", body=body, accept=conflict)
        self._transport.send("PUT", f"/v1/projects/{project.id}/annotation_configs/{quote(name, safe='')}")

    def check_write(self, project: Project) -> None:
        """Ask Phoenix to store nothing, which it refuses to whoever may not write.

        Raises:
            Unauthorized: The API key may not write.
        """
        self._transport.send("POST", f"/v1/projects/{project.id}/spans", body={"data": []})
        self.annotate(Target.SPAN, [])

    def _stored(self, path: str, query: Query, target: Target) -> Iterator[StoredAnnotation]:
        for data in self._pages(path, query):
            yield _stored_annotation(data, target)

    def _pages(self, path: str, query: Query) -> Iterator[Mapping[str, object]]:
        cursor: str | None = None
        while True:
            asked = query if cursor is None else {**query, "cursor": cursor}
            page = self._transport.json("GET", path, query=asked).data
            yield from _objects(page)
            cursor = _cursor(page)
            if cursor is None:
                return


def _duplicates(response: httpx.Response) -> set[str]:
    """Return the span ids that a refusal of spans lists as stored already; none if it refuses for another reason."""
    try:
        data: object = json.loads(response.content)
        detail = _object(data)
        if detail.get("invalid_spans"):
            return set()
        return {_text(item, "span_id") for item in _objects(detail, "duplicate_spans")}
    except (ValueError, Unavailable):
        return set()


def span_id_of(span: Mapping[str, object]) -> str:
    """Return the OpenTelemetry span id of a span in Phoenix's JSON."""
    return _text(_object(span.get("context")), "span_id")


def trace_id_of(span: Mapping[str, object]) -> str:
    """Return the OpenTelemetry trace id of a span in Phoenix's JSON."""
    return _text(_object(span.get("context")), "trace_id")


def row_of(span: Mapping[str, object]) -> int:
    """Return the number that orders spans by arrival: Phoenix's id of a span is base64 of `Span:<row>`."""
    try:
        return int(base64.b64decode(str(span.get("id")), validate=True).rpartition(b":")[2])
    except (binascii.Error, ValueError) as error:
        raise Unavailable(
            f"Phoenix gave a span the id {span.get('id')!r}: expected Span:<n>", url=""
        ) from error


def _stored_annotation(data: Mapping[str, object], target: Target) -> StoredAnnotation:
    result = _object(data.get("result") or {})
    score = result.get("score")
    return StoredAnnotation(
        id=_text(data, "id"),
        annotation=Annotation(
            target_id=_text(data, f"{target}_id"),
            name=_text(data, "name"),
            identifier=_text(data, "identifier"),
            kind=Kind(_text(data, "annotator_kind")),
            label=_optional(result, "label"),
            score=float(score) if isinstance(score, int | float) else None,
            explanation=_optional(result, "explanation"),
            metadata=_object(data.get("metadata") or {}),
        ),
    )


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise Unavailable(f"Phoenix answered {type(value).__name__} where an object was expected", url="")
    return cast("Mapping[str, object]", value)


def _objects(data: Mapping[str, object], key: str = "data") -> list[Mapping[str, object]]:
    value = data.get(key)
    if not isinstance(value, list):
        raise Unavailable(f"Phoenix's answer has no list {key!r}", url="")
    return [_object(item) for item in cast("list[object]", value)]


def _cursor(data: Mapping[str, object]) -> str | None:
    return _optional(data, "next_cursor")


def _optional(data: Mapping[str, object], key: str) -> str | None:
    value = data.get(key)
    return value if isinstance(value, str) else None


def _text(data: Mapping[str, object], key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        raise Unavailable(f"Phoenix's answer has no text {key!r}", url="")
    return value
