"""Take traces that have settled: leave out what is not wanted, have the rest evaluated, keep account of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from citespan.evaluators.annotate import Annotator
from citespan.evaluators.engines.engine import Batch, BatchResult, Engine
from citespan.evaluators.engines.evaluator import GONE
from citespan.evaluators.errors import NotFound, Refused, ServerError, UsageError
from citespan.evaluators.periodic.budget import PassBudget
from citespan.evaluators.periodic.plan import PassReport, Plan
from citespan.evaluators.periodic.settling import PendingTrace
from citespan.evaluators.periodic.share import Share
from citespan.evaluators.phoenix.client import PhoenixClient

__all__ = ["Taker"]

TRACES_PER_BATCH = 20
"""Traces evaluated and written together: some 100 claim spans, and as many verdicts."""

_NS = 1_000_000_000
_LATER_SECONDS = 30.0
_NOT_STORED = "claim_spans_not_stored_in_time"


class Taker:
    """Takes the traces of one pass over one share."""

    def __init__(
        self,
        client: PhoenixClient,
        share: Share,
        plan: Plan,
        engine: Engine,
        report: PassReport,
        budget: PassBudget,
        *,
        wall: Callable[[], float],
        is_stop_wanted: Callable[[], bool],
    ) -> None:
        """Prepare to take.

        Args:
            client: The server.
            share: Keeps account of what is finished.
            plan: What is wanted.
            engine: Evaluates and writes.
            report: What the pass did.
            budget: What it may do.
            wall: Seconds since 1970.
            is_stop_wanted: Whether to take no more.
        """
        self._client = client
        self._share = share
        self._plan = plan
        self._engine = engine
        self._report = report
        self._budget = budget
        self._wall = wall
        self._is_stop_wanted = is_stop_wanted
        self._has_met_another = False
        self._marks = Annotator(client, share.project, series=plan.series, claims_mode=plan.claims_mode)
        self._suspects: dict[str, ServerError] = {}
        self._has_written = False
        self._missing: list[str] = []

    def take(self) -> Iterator[BatchResult]:
        """Take what has settled, and yield each batch once its traces are finished or wait for another try.

        Raises:
            UsageError: Phoenix does not understand the filter.
            NotFound: Phoenix lacks a trace that was asked for by name.
            ServerError: Phoenix cannot be reached or refuses, or fails on every trace; the traces wait.
        """
        for result in self._engine.evaluate(self._batches(self._share.settled())):
            self._conclude(result)
            yield result
            if result.error is not None:
                raise result.error
        self._settle_suspicions()
        if self._missing:
            base, name = self._client.connection.base_url, self._share.project.name
            raise NotFound(
                f"Phoenix at {base} has no trace {', '.join(sorted(self._missing))} in project {name!r}",
                url=base,
                status=404,
            )

    def _batches(self, waiting: Sequence[PendingTrace]) -> Iterator[Batch]:
        """Yield batches while the budget lasts and no stop is wanted; the first one in any case.

        Two workers without shards begin at the same place. Whoever finds that the other has just finished what
        it worked on leaves the first half of the rest to it: at equal speed they meet again when all is done.
        """
        is_first = True
        while waiting:
            if not is_first:
                self._report.ended_by = "stop" if self._is_stop_wanted() else self._budget.ended_by
            if self._report.ended_by is not None:
                return
            is_first = False
            if self._has_met_another:
                half = len(waiting) // 2
                waiting, self._has_met_another = [*waiting[half:], *waiting[:half]], False
            left = self._budget.traces_left
            size = TRACES_PER_BATCH if left is None else min(left, TRACES_PER_BATCH)
            wanted, waiting = self._young(self._passing(waiting[:size])), waiting[size:]
            self._report.taken += len(wanted)
            self._budget.add(traces=len(wanted), usd=0.0)
            if wanted:
                notes = {
                    trace.trace_id: self._plan.sampling.notes(self._share.rule_of(trace.trace_id))
                    for trace in wanted
                }
                yield Batch(notes, trusts_phoenix=self._has_written)

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
        if self._plan.is_reevaluating or self._plan.lookback_seconds is None:
            return list(traces)
        start_ns = (self._wall() - self._plan.lookback_seconds) * _NS
        old = [trace.trace_id for trace in traces if trace.start_ns < start_ns and not trace.is_forced]
        done = self._marks.marks(old) if old else {}
        for trace_id in done:
            self._skip(trace_id, "older_than_lookback")
        return [trace for trace in traces if trace.trace_id not in done]

    def _conclude(self, result: BatchResult) -> None:
        """Keep account of what became of each trace of a batch."""
        self._has_written = self._has_written or result.has_written
        self._has_met_another = self._has_met_another or result.summary.runs_doubled > 0
        self._report.done.add(result.summary)
        for trace_id, last_row in result.finished.items():
            self._share.finish(trace_id, last_row=last_row)
        for trace_id, reason in result.skipped.items():
            self._skip(trace_id, reason)
            if reason == GONE and trace_id in self._plan.trace_ids:
                self._missing.append(trace_id)
        for trace_id, reason in result.summary.set_aside.items():
            self._fail(trace_id, reason)
        for trace_id, error in result.suspects.items():
            self._suspects[trace_id] = error
            self._share.settling.retry_later(trace_id, _LATER_SECONDS)  # the others first

    def _settle_suspicions(self) -> None:
        """Blame each trace that Phoenix failed on, if it did not fail on all of them."""
        if self._suspects and not self._has_written:
            raise next(iter(self._suspects.values()))
        for trace_id, error in self._suspects.items():
            self._fail(trace_id, f"phoenix_failed: {error}")

    def _fail(self, trace_id: str, reason: str) -> None:
        self._report.failed[trace_id] = reason
        if reason == _NOT_STORED:  # Phoenix is behind: no fault of the trace
            self._share.settling.retry_later(trace_id, _LATER_SECONDS)
            return
        wait_seconds = self._share.failures.add(trace_id, reason)
        if wait_seconds is None:
            self._share.settling.finish(trace_id)
            self._report.skipped["set_aside"] += 1
        else:
            self._share.settling.retry_later(trace_id, wait_seconds)

    def _skip(self, trace_id: str, reason: str) -> None:
        self._report.skipped[reason] += 1
        self._share.finish(trace_id)
