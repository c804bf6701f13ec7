"""Traces of one Phoenix project, read over its REST API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from citespan.evaluators.errors import NotFound
from citespan.evaluators.phoenix.client import PhoenixClient, row_of, trace_id_of
from citespan.evaluators.phoenix.paging import PageSize
from citespan.evaluators.phoenix.records import Project, SpanPage
from citespan.evaluators.sources.source import Span, Trace
from citespan.evaluators.sources.span_json import group_traces, span_from_json

__all__ = ["APP_KINDS", "CLAIM", "PhoenixSource", "is_claim_span"]

CLAIM = "citespan.claim"
"""Attribute that marks a span as citespan's own: the claim span it is, as one JSON string."""

APP_KINDS = (
    "AGENT",
    "CHAIN",
    "DECISION",
    "EMBEDDING",
    "GUARDRAIL",
    "LLM",
    "PROMPT",
    "RERANKER",
    "RETRIEVER",
    "TOOL",
    "UNKNOWN",
)
"""Every kind but EVALUATOR: claim spans carry whole passages, so they are never downloaded to be dropped."""

_TRACES_PER_REQUEST = 50
"""Most trace ids in one request."""


def is_claim_span(data: Mapping[str, object]) -> bool:
    """Return whether a span in Phoenix's JSON is one of citespan's own."""
    attributes = data.get("attributes")
    return isinstance(attributes, Mapping) and CLAIM in attributes


class PhoenixSource:
    """Yields the traces of a project, oldest arrival first, each with every span that Phoenix has of it.

    Spans are listed by the order in which Phoenix stored them, so a span that arrives late is seen however old it is;
    the list ends where it ended when the reading began. citespan's own spans are left out, and so are
    traces that an evaluator made.
    """

    def __init__(
        self,
        client: PhoenixClient,
        project: Project,
        *,
        trace_ids: Sequence[str] = (),
    ) -> None:
        """Describe what to read.

        Args:
            client: The server.
            project: The project.
            trace_ids: Only these traces.
        """
        self._client = client
        self._project = project
        self._trace_ids = trace_ids
        self._batch_size = PageSize(most=_TRACES_PER_REQUEST)
        self.skipped: Counter[str] = Counter()
        """How many traces were not yielded, by reason: `evaluator_trace`."""
        self.last_rows: dict[str, int] = {}
        """Of traces asked for by id: the number, in order of arrival, of the last span read."""

    def traces(self) -> Iterator[Trace]:
        """Yield the traces.

        Raises:
            NotFound: A trace that was asked for by id is not in the project.
            ServerError: Phoenix cannot be reached or refuses.
        """
        return self._named() if self._trace_ids else self._listed()

    def _named(self) -> Iterator[Trace]:
        wanted = list(dict.fromkeys(trace_id.lower() for trace_id in self._trace_ids))
        missing: list[str] = []
        while wanted:
            size = self._batch_size.value
            batch, wanted = wanted[:size], wanted[size:]
            traces, rows = self._fetch(batch)
            self.last_rows |= rows
            missing += set(batch) - {trace.trace_id for trace in traces} if len(traces) < len(batch) else []
            yield from self._without_evaluators(traces)
        if missing:
            base = self._client.connection.base_url
            raise NotFound(
                f"Phoenix at {base} has no trace {', '.join(sorted(missing))} in project {self._project.name!r}",
                url=base,
                status=404,
            )

    def _listed(self) -> Iterator[Trace]:
        """Yield traces as the list of spans names them.

        `read` remembers a trace only until the list has passed the last of the spans it was read with.
        """
        newest = self._client.newest_span(self._project, APP_KINDS)
        if newest is None:
            return
        last, read = row_of(newest), dict[str, int]()
        for page in self._client.span_pages(self._project, kinds=APP_KINDS):
            waiting = self._unread(page, read, last)
            while waiting:
                size = self._batch_size.value
                batch, waiting = waiting[:size], waiting[size:]
                traces, rows = self._fetch(batch)
                read.update(rows)
                yield from self._without_evaluators(traces)
            if not page.spans or (row := row_of(page.spans[-1])) >= last:
                return
            read = {trace_id: end for trace_id, end in read.items() if end > row}

    def _unread(self, page: SpanPage, read: Mapping[str, int], last: int) -> list[str]:
        """Return the ids of the page's traces to read now."""
        ids = [trace_id_of(data) for data in page.spans if row_of(data) <= last]
        return list(dict.fromkeys(trace_id for trace_id in ids if trace_id not in read))

    def _fetch(self, trace_ids: Sequence[str]) -> tuple[list[Trace], dict[str, int]]:
        """Return the traces that exist, and by trace id the row of its last span."""
        spans: list[Span] = []
        rows: dict[str, int] = {}
        size_bytes = 0
        for page in self._pages(trace_ids, APP_KINDS):
            size_bytes += page.size_bytes
            for data in page.spans:
                span = self._span(data)
                spans.append(span)
                rows[span.trace_id] = max(row_of(data), rows.get(span.trace_id, 0))
        self._batch_size.learn(len(rows), size_bytes)
        return [self._with_url(trace) for trace in group_traces(spans)], rows

    def _without_evaluators(self, traces: Sequence[Trace]) -> Iterator[Trace]:
        """Yield the traces that an app made; one with a parent missing may hang under an evaluator's span."""
        doubtful = [trace.trace_id for trace in traces if _has_missing_parent(trace)]
        parents: list[Span] = []
        if doubtful:
            for page in self._pages(doubtful, ("EVALUATOR",)):
                parents += [self._span(data) for data in page.spans if not is_claim_span(data)]
        for trace in traces:
            own = [span for span in parents if span.trace_id == trace.trace_id]
            whole = self._with_url(group_traces([*trace.spans, *own])[0]) if own else trace
            if _is_made_by_evaluator(whole):
                self.skipped["evaluator_trace"] += 1
            else:
                yield whole

    def _pages(self, trace_ids: Sequence[str], kinds: Sequence[str]) -> Iterator[SpanPage]:
        return self._client.span_pages(self._project, trace_ids=trace_ids, kinds=kinds)

    def _span(self, data: Mapping[str, object]) -> Span:
        return span_from_json(data, f"span {data.get('id')} of Phoenix project {self._project.name!r}")

    def _with_url(self, trace: Trace) -> Trace:
        return replace(trace, url=self._client.trace_url(self._project, trace.trace_id))


def _is_made_by_evaluator(trace: Trace) -> bool:
    known = {span.span_id for span in trace.spans}
    tops = [span for span in trace.spans if span.parent_id not in known]
    return all(span.kind == "EVALUATOR" for span in tops)


def _has_missing_parent(trace: Trace) -> bool:
    known = {span.span_id for span in trace.spans}
    return any(span.parent_id is not None and span.parent_id not in known for span in trace.spans)
