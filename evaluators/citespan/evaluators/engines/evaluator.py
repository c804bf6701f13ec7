"""Evaluate and write one batch of traces, and know which trace is at fault when that fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from citespan.evaluators.annotate import Annotator
from citespan.evaluators.engines.engine import Batch, BatchResult
from citespan.evaluators.errors import NotFound, Refused, ServerError, Unavailable
from citespan.evaluators.judges.judge import Judge
from citespan.evaluators.periodic.pacing import PacedSpans
from citespan.evaluators.periodic.plan import Plan
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.records import Project
from citespan.evaluators.sources.phoenix import PhoenixSource
from citespan.evaluators.sources.source import Trace
from citespan.evaluators.worker import EvaluatedRun, run_pass

__all__ = ["GONE", "BatchEvaluator", "LocalEngine"]

GONE = "trace_deleted"
"""Reason of a trace that is not there any more."""

_MOST_SUSPECTS = 3
"""Halving 20 traces down to one fails five times; so many such traces in a row are the server's doing."""


class BatchEvaluator:
    """What one process needs to evaluate batches of one project: a client, a judge and an annotator."""

    def __init__(
        self, client: PhoenixClient, project: Project, plan: Plan, judge: Judge, spans: PacedSpans
    ) -> None:
        """Prepare to evaluate.

        Args:
            client: The server.
            project: The project.
            plan: How runs are read, judged and shown.
            judge: Who judges.
            spans: Writes claim spans.
        """
        self._client = client
        self._project = project
        self._plan = plan
        self._judge = judge
        self._spans = spans
        self._notes: Mapping[str, Mapping[str, object]] = {}
        self._annotator = (
            None
            if plan.is_dry_run
            else Annotator(
                client,
                project,
                series=plan.series,
                claims_mode=plan.claims_mode,
                spans=spans,
                notes=lambda trace_id: self._notes[trace_id],
            )
        )

    def evaluate(self, batch: Batch) -> BatchResult:
        """Evaluate and write a batch; trouble is part of the result.

        Raises:
            Stopped: The judge was told to stop; nothing of the batch is half written.
        """
        self._notes = batch.notes
        result = BatchResult(has_written=batch.trusts_phoenix)
        try:
            self._halve(batch.trace_ids, result)
        except ServerError as error:
            result.error = error
        result.phoenix_waits, self._spans.waits = self._spans.waits, 0
        result.visible_seconds = self._spans.last_visible_seconds
        return result

    def _halve(self, trace_ids: Sequence[str], result: BatchResult) -> None:
        """Evaluate traces; where that fails, in halves, down to the trace that is the reason."""
        try:
            self._run(trace_ids, result)
        except Exception as error:
            if isinstance(error, ServerError) and not _may_be_a_trace(error):
                raise
            if len(trace_ids) > 1:
                middle = len(trace_ids) // 2
                self._halve(trace_ids[:middle], result)
                self._halve(trace_ids[middle:], result)
            elif isinstance(error, ServerError):
                result.suspects[trace_ids[0]] = error
                if len(result.suspects) >= _MOST_SUSPECTS and not result.has_written:
                    raise
            else:
                result.summary.set_aside[trace_ids[0]] = f"not_evaluated: {type(error).__name__}: {error}"

    def _run(self, trace_ids: Sequence[str], result: BatchResult) -> None:
        source = _Existing(self._client, self._project, trace_ids)
        runs: list[EvaluatedRun] = []
        summary = run_pass(
            source,
            self._judge,
            annotator=self._annotator,
            options=self._plan.options,
            rules=self._plan.rules,
            show_unchanged=self._plan.shows_unchanged,
            with_human_labels=self._plan.with_human_labels,
            on_run=runs.append,
        )
        result.has_written = result.has_written or len(summary.set_aside) < len(source.found)
        for trace_id in trace_ids:
            if summary.set_aside.get(trace_id) == GONE or trace_id not in source.present:
                summary.set_aside.pop(trace_id, None)
                result.skipped[trace_id] = GONE
            elif trace_id not in source.found:
                result.skipped[trace_id] = "evaluator_trace"
            elif trace_id not in summary.set_aside:
                result.finished[trace_id] = source.last_rows[trace_id]
        for run in runs:
            origin = run.evaluation.run.origin
            if origin is not None and origin.trace_id in result.finished:
                result.runs.append(run)
        result.summary.add(summary)


class LocalEngine:
    """Evaluates batches in this process, one after the other."""

    def __init__(self, evaluator: BatchEvaluator) -> None:
        self._evaluator = evaluator

    def evaluate(self, batches: Iterable[Batch]) -> Iterator[BatchResult]:
        """Yield what became of each batch, in order.

        Raises:
            Stopped: The judge was told to stop.
        """
        return map(self._evaluator.evaluate, batches)


class _Existing:
    """Those of some traces that still exist."""

    def __init__(self, client: PhoenixClient, project: Project, trace_ids: Sequence[str]) -> None:
        self._source = PhoenixSource(client, project, trace_ids=trace_ids)
        self._base_url = client.connection.base_url
        self._trace_ids = trace_ids
        self._missing = ""
        self.found: set[str] = set()

    @property
    def last_rows(self) -> Mapping[str, int]:
        """By trace id, the number of its last span, in order of arrival."""
        return self._source.last_rows

    @property
    def present(self) -> set[str]:
        """Those that Phoenix has, evaluators' own traces too."""
        return {trace_id for trace_id in self._trace_ids if trace_id not in self._missing}

    def traces(self) -> Iterator[Trace]:
        """Yield the traces that an app made."""
        try:
            for trace in self._source.traces():
                self.found.add(trace.trace_id)
                yield trace
        except NotFound as error:
            if error.url != self._base_url:  # the project is gone, not a trace
                raise
            self._missing = str(error)


def _may_be_a_trace(error: ServerError) -> bool:
    """Return whether one trace can be the reason of a server's failure, rather than its load or its absence."""
    if isinstance(error, Refused):
        return error.status not in (408, 429)
    return isinstance(error, Unavailable) and error.status in (200, 500)
