"""Remove what citespan wrote into a project, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from citespan.evaluators.annotate.rows import CITATIONS, MEASURE_ROWS, STATE, VERDICT
from citespan.evaluators.annotate.series import identifier_of, series_of
from citespan.evaluators.annotate.trace_mark import TraceMark
from citespan.evaluators.errors import NotFound
from citespan.evaluators.phoenix.client import PhoenixClient, span_id_of, trace_id_of
from citespan.evaluators.phoenix.records import Project, StoredAnnotation, Target
from citespan.evaluators.sources.phoenix import is_claim_span

__all__ = ["Purged", "purge"]

_NAMES = frozenset({VERDICT, CITATIONS, STATE, *MEASURE_ROWS})
_ROWS_PER_REQUEST = 500


@dataclass(slots=True)
class Purged:
    """What was removed, or would be."""

    traces: int = 0
    """Traces that held something of citespan's."""

    claim_spans: int = 0
    """Claim spans removed, with every row on them."""

    rows: int = 0
    """Annotations removed from spans that stay and from traces."""

    claim_spans_kept: int = 0
    """Claim spans left because a person wrote on them."""

    rows_kept: int = 0
    """Rows under citespan's names left because a person made or changed them."""


def purge(
    client: PhoenixClient,
    project: Project,
    *,
    series: str | None = None,
    trace_id: str | None = None,
    dry_run: bool = False,
    with_human: bool = False,
    on_progress: Callable[[Purged], None] | None = None,
) -> Purged:
    """Remove citespan's claim spans and annotations from a project and return the counts.

    Args:
        client: The server.
        project: The project.
        series: Only what this series wrote; claim spans that another series shows too stay.
        trace_id: Only in this trace.
        dry_run: Count and remove nothing.
        with_human: Remove also what people made of citespan's rows, and claim spans with all that people wrote there.
        on_progress: Called with the counts after each batch of traces.

    Raises:
        NotFound: The trace is not in the project.
        UsageError: `series` is no name of a series.
        ServerError: Phoenix cannot be reached or refuses.
    """
    wanted = None if series is None else identifier_of(series)
    work = _Purge(client, project, wanted, dry_run=dry_run, with_human=with_human)
    for batch in _one_trace(client, project, trace_id) if trace_id else client.span_ids_by_trace(project):
        work.remove(batch)
        if on_progress is not None:
            on_progress(work.purged)
    return work.purged


def _one_trace(client: PhoenixClient, project: Project, trace_id: str) -> Iterator[dict[str, list[str]]]:
    pages = client.span_pages(project, trace_ids=[trace_id])
    span_ids = [span_id_of(data) for page in pages for data in page.spans]
    if not span_ids:
        base = client.connection.base_url
        raise NotFound(
            f"Phoenix at {base} has no trace {trace_id} in project {project.name!r}", url=base, status=404
        )
    yield {trace_id: span_ids}


class _Purge:
    """A purge under way."""

    def __init__(
        self, client: PhoenixClient, project: Project, series: str | None, *, dry_run: bool, with_human: bool
    ) -> None:
        self._client = client
        self._project = project
        self._series = series
        self._dry_run = dry_run
        self._with_human = with_human
        self.purged = Purged()

    def remove(self, batch: Mapping[str, Sequence[str]]) -> None:
        """Remove from a batch of traces, given with the ids of their spans."""
        claims = self._claim_spans(list(batch))
        others = [span_id for span_ids in batch.values() for span_id in span_ids if span_id not in claims]
        on_traces = self._read(Target.TRACE, list(batch), [STATE, *MEASURE_ROWS])
        on_claims = self._read(Target.SPAN, list(claims), ())
        on_spans = self._read(Target.SPAN, others, [VERDICT, CITATIONS])
        removed = self._spans_to_remove(claims, on_traces, on_claims)
        on_claims = [row for row in on_claims if row.annotation.target_id not in removed]
        traces = {claims[span_id] for span_id in removed} | {row.annotation.target_id for row in on_traces}
        self.purged.traces += len(traces)
        # The mark goes first: with it alone gone, the next evaluation mends what an interrupted purge left.
        for is_mark in (True, False):
            rows = [row for row in on_traces if (row.annotation.name == STATE) is is_mark]
            self._remove_rows(Target.TRACE, rows)
        self._remove_rows(Target.SPAN, [*on_claims, *on_spans])
        self._remove_spans(removed)

    def _claim_spans(self, trace_ids: Sequence[str]) -> dict[str, str]:
        """Return the trace of each claim span."""
        pages = self._client.span_pages(self._project, trace_ids=trace_ids, kinds=["EVALUATOR"])
        return {
            span_id_of(data): trace_id_of(data)
            for page in pages
            for data in page.spans
            if is_claim_span(data)
        }

    def _read(
        self, target: Target, target_ids: Sequence[str], names: Sequence[str]
    ) -> list[StoredAnnotation]:
        rows = self._client.annotations(self._project, target, target_ids=target_ids, names=names)
        return list(rows) if target_ids else []

    def _spans_to_remove(
        self,
        claims: Mapping[str, str],
        on_traces: Sequence[StoredAnnotation],
        on_claims: Sequence[StoredAnnotation],
    ) -> set[str]:
        shown = self._shown_by_other_series(on_traces)
        touched = {row.annotation.target_id for row in on_claims if row.is_human} - shown
        kept = set[str]() if self._with_human else touched
        self.purged.claim_spans_kept += len(kept)
        return set(claims) - shown - kept

    def _shown_by_other_series(self, on_traces: Sequence[StoredAnnotation]) -> set[str]:
        """Return the claim spans that belong to series that stay."""
        if self._series is None:
            return set()
        shown: set[str] = set()
        for row in on_traces:
            mark = TraceMark.read(row.annotation.metadata)
            if mark is not None and not self._is_ours(row):
                for run in mark.runs:
                    shown |= run.claim_span_ids(row.annotation.target_id)
        return shown

    def _is_ours(self, row: StoredAnnotation) -> bool:
        series = series_of(row.annotation.identifier)
        if series is None or row.annotation.name not in _NAMES:
            return False
        return self._series in (None, series)

    def _remove_rows(self, target: Target, rows: Sequence[StoredAnnotation]) -> None:
        ours = [row for row in rows if self._is_ours(row)]
        gone = [row for row in ours if self._with_human or not row.is_human]
        self.purged.rows_kept += len(ours) - len(gone)
        self.purged.rows += len(gone)
        if not self._dry_run:
            for start in range(0, len(gone), _ROWS_PER_REQUEST):
                self._client.delete_stored(target, gone[start : start + _ROWS_PER_REQUEST])

    def _remove_spans(self, span_ids: set[str]) -> None:
        self.purged.claim_spans += len(span_ids)
        if not self._dry_run:
            for span_id in sorted(span_ids):
                self._client.delete_span(span_id)
