"""Take traces that have settled: leave out what is not wanted, evaluate the rest, and know which trace is at fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from citespan.evaluators.annotate import Annotator
from citespan.evaluators.errors import NotFound, Refused, ServerError, Unavailable, UsageError
from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.judges.judge import Judge
from citespan.evaluators.periodic.plan import PassReport, Plan
from citespan.evaluators.periodic.settling import PendingTrace
from citespan.evaluators.periodic.share import Share
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.sources.phoenix import PhoenixSource
from citespan.evaluators.sources.source import Trace
from citespan.evaluators.worker import EvaluatedRun, PassSummary, run_pass

__all__ = ["Taker"]

_NS = 1_000_000_000
_LATER_SECONDS = 30.0
_NOT_STORED = "claim_spans_not_stored_in_time"
_GONE = "trace_deleted"


class Taker:
    """Evaluates the traces of one pass over one share."""

    def __init__(
        self,
        client: PhoenixClient,
        share: Share,
        plan: Plan,
        judge: Judge,
        annotator: Annotator,
        report: PassReport,
        *,
        wall: Callable[[], float],
        on_evaluation: Callable[[Evaluation], None],
        on_summary: Callable[[PassSummary], None],
    ) -> None:
        """Prepare to take.

        Args:
            client: The server.
            share: Keeps account of what is finished.
            plan: What is wanted.
            judge: Who judges.
            annotator: Writes back.
            report: What the pass did.
            wall: Seconds since 1970.
            on_evaluation: Called with each evaluation that was written.
            on_summary: Called with what was written for each few traces.
        """
        self._client = client
        self._share = share
        self._plan = plan
        self._judge = judge
        self._annotator = annotator
        self._report = report
        self._wall = wall
        self._on_evaluation = on_evaluation
        self._on_summary = on_summary
        self._suspects: dict[str, ServerError] = {}
        self._has_written = False

    def take(self, traces: Sequence[PendingTrace]) -> None:
        """Take a few traces; each is finished, or waits for another try.

        Raises:
            UsageError: Phoenix does not understand the filter.
            ServerError: Phoenix cannot be reached or refuses; the traces wait.
        """
        wanted = self._young(self._passing(traces))
        if wanted:
            self._report.taken += len(wanted)
            self._evaluate([trace.trace_id for trace in wanted])

    def settle_suspicions(self) -> None:
        """Blame each trace that Phoenix failed on, if it did not fail on all of them.

        Raises:
            ServerError: It failed on all of them, so it is the server that fails.
        """
        if self._suspects and not self._has_written:
            raise next(iter(self._suspects.values()))
        for trace_id, error in self._suspects.items():
            self._fail(trace_id, f"phoenix_failed: {error}")
        self._suspects.clear()

    def _passing(self, traces: Sequence[PendingTrace]) -> list[PendingTrace]:
        """Return the traces that pass the filter."""
        if self._plan.filter is None or not traces:
            return list(traces)
        ids = [trace.trace_id for trace in traces if not trace.is_forced]
        try:
            passing = set(self._client.matching_traces(self._share.project, self._plan.filter, trace_ids=ids))
        except Refused as error:
            raise UsageError(f"--filter {self._plan.filter!r}: {error}") from error
        for trace_id in ids:
            if trace_id not in passing:
                self._skip(trace_id, "filtered")
        return [trace for trace in traces if trace.is_forced or trace.trace_id in passing]

    def _young(self, traces: Sequence[PendingTrace]) -> list[PendingTrace]:
        """Return the traces but for those that are older than the lookback and have been evaluated."""
        if self._plan.is_reevaluating:
            return list(traces)
        start_ns = (self._wall() - self._plan.lookback_seconds) * _NS
        old = [trace.trace_id for trace in traces if trace.start_ns < start_ns and not trace.is_forced]
        done = self._annotator.marks(old) if old else {}
        for trace_id in done:
            self._skip(trace_id, "older_than_lookback")
        return [trace for trace in traces if trace.trace_id not in done]

    def _evaluate(self, trace_ids: Sequence[str]) -> None:
        """Evaluate traces; where that fails, in halves, down to the trace that is the reason."""
        try:
            self._run(trace_ids)
        except Exception as error:
            if isinstance(error, ServerError) and not _may_be_a_trace(error):
                raise
            if len(trace_ids) > 1:
                middle = len(trace_ids) // 2
                self._evaluate(trace_ids[:middle])
                self._evaluate(trace_ids[middle:])
            elif isinstance(error, ServerError):
                self._suspect(trace_ids[0], error)
            else:
                self._fail(trace_ids[0], f"not_evaluated: {type(error).__name__}: {error}")

    def _run(self, trace_ids: Sequence[str]) -> None:
        source = _Existing(self._client, self._share, trace_ids)
        evaluations: list[Evaluation] = []

        def keep(run: EvaluatedRun) -> None:
            evaluations.append(run.evaluation)

        summary = run_pass(
            source,
            self._judge,
            annotator=self._annotator,
            options=self._plan.options,
            rules=self._plan.rules,
            on_run=keep,
        )
        self._has_written = self._has_written or len(summary.set_aside) < len(source.found)
        self._on_summary(summary)
        self._report.runs_evaluated += summary.runs_evaluated
        self._report.runs_unchanged += summary.runs_unchanged
        for evaluation in evaluations:
            origin = evaluation.run.origin
            if origin is not None and origin.trace_id not in summary.set_aside:
                self._on_evaluation(evaluation)
        for trace_id in trace_ids:
            self._conclude(trace_id, source, summary)

    def _conclude(self, trace_id: str, source: _Existing, summary: PassSummary) -> None:
        reason = summary.set_aside.get(trace_id)
        if reason == _GONE:
            self._skip(trace_id, _GONE)
        elif reason == _NOT_STORED:  # Phoenix is behind: no fault of the trace
            self._report.failed[trace_id] = reason
            self._share.settling.retry_later(trace_id, _LATER_SECONDS)
        elif reason is not None:
            self._fail(trace_id, reason)
        elif trace_id not in source.found:
            self._skip(trace_id, "evaluator_trace" if trace_id in source.present else _GONE)
        else:
            self._finish(trace_id)

    def _suspect(self, trace_id: str, error: ServerError) -> None:
        self._suspects[trace_id] = error
        self._share.settling.retry_later(trace_id, _LATER_SECONDS)  # the others first
        # Halving 20 traces down to one fails five times; three such traces in a row are the server's doing.
        if len(self._suspects) >= 3 and not self._has_written:
            raise error

    def _fail(self, trace_id: str, reason: str) -> None:
        self._report.failed[trace_id] = reason
        wait_seconds = self._share.failures.add(trace_id, reason)
        if wait_seconds is None:
            self._share.settling.finish(trace_id)
            self._report.skipped["set_aside"] += 1
        else:
            self._share.settling.retry_later(trace_id, wait_seconds)

    def _skip(self, trace_id: str, reason: str) -> None:
        self._report.skipped[reason] += 1
        self._finish(trace_id)

    def _finish(self, trace_id: str) -> None:
        self._share.settling.finish(trace_id)
        self._share.failures.solve(trace_id)


class _Existing:
    """Those of some traces that still exist."""

    def __init__(self, client: PhoenixClient, share: Share, trace_ids: Sequence[str]) -> None:
        self._source = PhoenixSource(client, share.project, trace_ids=trace_ids)
        self._base_url = client.connection.base_url
        self._trace_ids = trace_ids
        self._missing = ""
        self.found: set[str] = set()

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
