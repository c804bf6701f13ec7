"""One worker's share of one project: which of its traces wait, and how far it was read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from citespan.evaluators.errors import Refused, ServerError, UsageError
from citespan.evaluators.judges.chat.clock import Clock
from citespan.evaluators.judges.judge import JudgeCard
from citespan.evaluators.periodic.arrivals import Arrival, Arrivals
from citespan.evaluators.periodic.failures import Failures
from citespan.evaluators.periodic.logs import Log
from citespan.evaluators.periodic.plan import PassReport, Plan
from citespan.evaluators.periodic.settling import PendingTrace, Settling
from citespan.evaluators.periodic.state import Position, State
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.records import Project
from citespan.evaluators.phoenix.span_writer import SpanWriter

__all__ = ["Share"]

MOST_PENDING = 20_000
"""Traces that may wait at once: a longer backlog is read in steps, so that memory stays flat."""

MOST_DUE = 1_000
"""Traces that may wait only to be taken; beyond that they are taken before more is read."""

_EVALUATED = "trace_annotations['cite_state']"
"""Phoenix trace filter that lets through what was evaluated, in whatever series."""

_REMEMBER_SECONDS = 3600.0


class Share:
    """Reads what is new and keeps account of what is not finished."""

    def __init__(
        self,
        client: PhoenixClient,
        project: Project,
        plan: Plan,
        judge: JudgeCard,
        state: State,
        *,
        clock: Clock,
        log: Log,
    ) -> None:
        """Go on where the state says, or begin with the project's first span."""
        self.project = project
        self._client = client
        self._plan = plan
        self._state = state
        self._clock = clock
        self._log = log
        self._scope = plan.scope(client.connection.base_url, project.id)
        self._setup = plan.setup(judge)
        self._spans = SpanWriter(client, project)
        self._adopted: dict[str, str] = {}
        self._remember_at = clock.monotonic()
        self._read_ahead: dict[str, int] = {}
        self._named = plan.trace_ids
        self.state_errors = 0
        self._is_state_failing = False
        self.failures = Failures(
            state, self._scope, most_tries=plan.most_tries, wall=clock.wall, on_error=self.note_state_error
        )
        self.settling = Settling(
            settle_seconds=plan.settle_seconds,
            settle_max_seconds=plan.settle_max_seconds,
            monotonic=clock.monotonic,
            wall=clock.wall if plan.is_single_pass else None,
        )
        position = self._position()
        self.arrivals = (
            Arrivals(client, project, start=plan.since)
            if position is None
            else Arrivals(
                client,
                project,
                low_water=position.low_water,
                window=position.window,
                unfinished=position.unfinished,
                start=plan.since,
            )
        )
        self._older_start = plan.since if plan.is_reevaluating else self._lookback_start()
        is_to_list_older = position is not None and (plan.is_reevaluating or position.setup != self._setup)
        self._older = self.arrivals.since(self._older_start) if is_to_list_older else None

    def read(self, report: PassReport, on_page: Callable[[], None]) -> None:
        """Take note of what has arrived, and of what a person or a rule wants taken.

        Raises:
            UsageError: Phoenix does not understand a filter of the plan.
            NotFound: The project is gone.
            ServerError: Phoenix cannot be reached or refuses.
        """
        if self._plan.trace_ids:
            self._force(self._named)
            report.seen, self._named = len(self._named), ()
            return
        self._remember_adopted()
        report.has_more = self._read_pages(self.arrivals.new(), report, on_page)
        if self._older is not None and not report.has_more:
            try:
                report.has_more = self._read_pages(self._older, report, on_page)
            except (
                ServerError
            ):  # a generator that has raised has ended: it would look as if nothing were left
                self._older = self.arrivals.since(self._older_start)
                raise
            self._older = self._older if report.has_more else None
        self._force(self.failures.wanted())
        self._adopt(report)
        self._find_parents()
        next_row = self.arrivals.next_row
        self._read_ahead = {trace_id: row for trace_id, row in self._read_ahead.items() if row >= next_row}
        if self.arrivals.unreadable:
            report.skipped["unreadable_span"] += self.arrivals.unreadable
            self.arrivals.unreadable = 0

    def rule_of(self, trace_id: str) -> str:
        """Return why a trace is taken: `all`, `rate`, `always: <filter>`, or `named`."""
        if self._plan.trace_ids:
            return "named"
        if trace_id in self._adopted:
            return f"always: {self._adopted[trace_id]}"
        return "all" if self._plan.sampling.rate >= 1 else "rate"

    def finish(self, trace_id: str, *, last_row: int = 0) -> None:
        """A trace is done; its spans up to `last_row` are no news when the list comes to them."""
        self.settling.finish(trace_id)
        self.failures.solve(trace_id)
        if last_row >= self.arrivals.next_row:
            self._read_ahead[trace_id] = last_row

    def settled(self) -> list[PendingTrace]:
        """Return the traces to take now."""
        return self.settling.settled()

    def save(self) -> None:
        """Save how far the project was read; a state that cannot be saved costs a re-scan later."""
        window = self.arrivals.window
        # While older traces are still being listed, the next start has to list them again.
        position = Position(
            setup=self._setup if self._older is None else "unfinished",
            low_water=self.settling.first_row(self.arrivals.next_row),
            window=window,
            unfinished=tuple(sorted({s.trace_id for s in window if s.trace_id in self.settling})),
            pending=len(self.settling),
            saved_at=self._clock.wall(),
        )
        try:
            self._state.save(self._scope, position)
        except sqlite3.Error as error:
            self.note_state_error(error)
        else:
            self._is_state_failing = False

    def note_state_error(self, error: Exception) -> None:
        """Take note that the state could not be saved; in the log once, until it can be."""
        self.state_errors += 1
        if self._is_state_failing:
            return
        self._is_state_failing = True
        self._log("state_not_saved", {"error": f"{type(error).__name__}: {error}"}, level="warning")

    def _position(self) -> Position | None:
        try:
            return self._state.position(self._scope)
        except sqlite3.Error as error:
            self.note_state_error(error)
            return None

    def _force(self, trace_ids: Sequence[str]) -> None:
        for trace_id in trace_ids:
            self.settling.force(trace_id, first_row=self.arrivals.next_row)

    def _lookback_start(self) -> datetime | None:
        """Return when the traces begin that are evaluated again when that could differ; `None` for any time."""
        if self._plan.lookback_seconds is None:
            return self._plan.since
        start = datetime.fromtimestamp(max(0.0, self._clock.wall() - self._plan.lookback_seconds), UTC)
        return start if self._plan.since is None else max(start, self._plan.since)

    def _read_pages(
        self, pages: Iterator[list[Arrival]], report: PassReport, on_page: Callable[[], None]
    ) -> bool:
        """Take note of pages until too many traces wait; return whether there may be more."""
        if self._is_full:
            return True
        for page in pages:
            on_page()
            for arrival in page:
                self._notice(arrival, report)
            if self._is_full:
                return True
        return False

    @property
    def _is_full(self) -> bool:
        return len(self.settling) >= MOST_PENDING or len(self.settled()) >= MOST_DUE

    def _notice(self, arrival: Arrival, report: PassReport) -> None:
        trace_id = arrival.trace_id
        if arrival.row <= self._read_ahead.get(trace_id, 0):
            return
        reason = None if trace_id in self._adopted else self._plan.leaves_out(trace_id)
        if reason is None:
            report.seen += self.settling.notice(arrival)
        else:
            report.skipped[reason] += arrival.parent_id is None

    def _remember_adopted(self) -> None:
        """Know again the traces that a rule had evaluated, at the start and once an hour: late spans of theirs count.

        Those that are older than the lookback are forgotten.
        """
        now = self._clock.monotonic()
        if not self._plan.always or now < self._remember_at:
            return
        self._remember_at = now + _REMEMBER_SECONDS
        known: dict[str, str] = {}
        for rule in self._plan.always:
            # The filter knows no series: in one, each start looks again at every trace that passes a rule.
            if self._plan.series:
                found = [i for i in self._passing(rule, rule) if i in self._adopted]
            else:
                found = list(self._passing(rule, f"({rule}) and {_EVALUATED}"))
            known.update(dict.fromkeys(found, rule))
        waiting = {i: rule for i, rule in self._adopted.items() if i in self.settling}
        self._adopted = {**known, **waiting}

    def _adopt(self, report: PassReport) -> None:
        """Let traces wait that are not sampled, and that a rule wants all the same."""
        for rule in self._plan.always:
            expression = rule if self._plan.series else f"({rule}) and not {_EVALUATED}"
            for trace_id in self._passing(rule, expression):
                if trace_id not in self._adopted and not self.failures.is_set_aside(trace_id):
                    self._adopted[trace_id] = rule
                    self.settling.watch(trace_id, first_row=self.arrivals.next_row)
                    report.seen += 1

    def _passing(self, rule: str, expression: str) -> Iterator[str]:
        """Yield the young traces that an expression lets through and that only a rule can have taken."""
        try:
            for trace_id in self._client.matching_traces(
                self.project, expression, since=self._lookback_start()
            ):
                if self._plan.leaves_out(trace_id) == "not_sampled":
                    yield trace_id
        except Refused as error:
            raise UsageError(f"--always {rule!r}: {error}") from error

    def _find_parents(self) -> None:
        """Look for the parents that were not among the spans read: those of a late span were read long ago."""
        waiting = [trace for trace in self.settling.quiet() if trace.missing_parents and not trace.is_forced]
        if waiting:
            missing = sorted({span_id for trace in waiting for span_id in trace.missing_parents})
            found = self._spans.visible(missing)
            for trace in waiting:
                for span_id in trace.missing_parents & found:
                    trace.see(span_id)
