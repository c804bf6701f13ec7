"""The engine of `citespan worker`: look, take what has settled, remember, wait, look again."""

from __future__ import annotations

from collections.abc import Callable

from citespan.evaluators.annotate import Annotator
from citespan.evaluators.errors import NotFound, ServerError
from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.judges.chat.clock import Clock
from citespan.evaluators.judges.judge import Judge
from citespan.evaluators.periodic.budget import PassBudget
from citespan.evaluators.periodic.health import Health
from citespan.evaluators.periodic.logs import Log, no_log
from citespan.evaluators.periodic.metrics import TimedJudge, WorkerMetrics, usage_of
from citespan.evaluators.periodic.pacing import Backoff, PacedSpans
from citespan.evaluators.periodic.plan import PassReport, Plan
from citespan.evaluators.periodic.share import Share
from citespan.evaluators.periodic.state import State
from citespan.evaluators.periodic.stopping import Stop, Stopped
from citespan.evaluators.periodic.taking import Taker
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.records import Project
from citespan.evaluators.phoenix.span_writer import SpanWriter

__all__ = ["Worker"]

TRACES_PER_BATCH = 20
"""Traces evaluated and written together: some 100 claim spans, and as many verdicts."""

_SIGN_OF_LIFE_SECONDS = 60.0


class Worker:
    """Evaluates the traces of one project as they settle."""

    def __init__(
        self,
        client: PhoenixClient,
        plan: Plan,
        judge: Judge,
        state: State,
        *,
        stop: Stop | None = None,
        clock: Clock | None = None,
        metrics: WorkerMetrics | None = None,
        log: Log = no_log,
    ) -> None:
        """Prepare to work.

        Args:
            client: The server.
            plan: What to do.
            judge: Who judges.
            state: What is remembered.
            stop: Ends the work.
            clock: Tells the time and waits; by default the stop's, on which waiting ends at a stop.
            metrics: Where to count.
            log: Where to note what happens.
        """
        self._client = client
        self._plan = plan
        self._state = state
        self._stop = stop or Stop()
        self._clock = clock or self._stop.clock
        self.metrics = metrics or WorkerMetrics(self._clock)
        self._log = log
        self.health = Health(self._clock.monotonic)
        self._judge = TimedJudge(
            judge, self.metrics, before_call=self._go_on, monotonic=self._clock.monotonic
        )
        self._share: Share | None = None
        self._annotator: Annotator | None = None
        self._spans: PacedSpans | None = None

    def run(self, interval_seconds: float) -> None:
        """Work until a stop is asked for; trouble with Phoenix is waited out.

        Args:
            interval_seconds: How long to wait after a pass.

        Raises:
            UsageError: Phoenix does not understand a filter of the plan.
        """
        backoff = Backoff()
        while not self._stop.is_wanted:
            pause = interval_seconds
            try:
                report = self.one_pass()
            except ServerError as error:
                pause = backoff.next_seconds()
                self._note_trouble(error, pause)
            else:
                backoff.reset()
                pause = 0.0 if report.has_more and report.taken else pause
            self._rest(pause)
        self._log("stopped")

    def run_once(self) -> PassReport:
        """Do one whole pass, which watches what is new until it has settled, and return all that was done.

        Raises:
            UsageError: Phoenix does not understand a filter of the plan.
            NotFound: There is no such project.
            ServerError: Phoenix cannot be reached or refuses; what was written stays.
        """
        report = self.one_pass()
        has_rested = False
        while report.ended_by is None and (report.has_more or (report.pending and not has_rested)):
            if not (report.has_more and report.taken):
                self._rest(self._plan.settle_seconds)
                has_rested = not report.has_more
            earlier, report = report, self.one_pass()
            report.follow(earlier)
        return report

    def one_pass(self) -> PassReport:
        """Look once, take what has settled, and return what was done.

        Raises:
            UsageError: Phoenix does not understand a filter of the plan.
            NotFound: There is no such project.
            ServerError: Phoenix cannot be reached or refuses; what was written stays.
        """
        report = PassReport()
        budget = PassBudget(self._plan.limits, self._clock.monotonic)
        share = self._open()
        with self.metrics.timed_pass(report):
            try:
                share.read(report, self._go_on)
                self.health.not_ready = None
                self._note_progress(share, report)
                self._take(share, report, budget)
            except Stopped:
                report.ended_by = "stop"
            finally:
                share.save()
                self._note_progress(share, report)
                if report.taken or report.failed or report.ended_by:
                    self._log("pass", report.to_dict())
        return report

    def _take(self, share: Share, report: PassReport, budget: PassBudget) -> None:
        def count(evaluation: Evaluation) -> None:
            usage = usage_of(evaluation)
            budget.add(traces=0, usd=0.0 if usage is None else usage.cost_usd)
            self.metrics.add(evaluation)

        assert self._annotator is not None  # noqa: S101 - made with the share
        taker = Taker(
            self._client,
            share,
            self._plan,
            self._judge,
            self._annotator,
            report,
            wall=self._clock.wall,
            on_evaluation=count,
            on_summary=self.metrics.add_written,
        )
        waiting = share.settled()
        while waiting and report.ended_by is None:
            size = TRACES_PER_BATCH if budget.traces_left is None else budget.traces_left
            batch, waiting = waiting[: min(size, TRACES_PER_BATCH)], waiting[min(size, TRACES_PER_BATCH) :]
            before = report.taken
            taker.take(batch)
            budget.add(traces=report.taken - before, usd=0.0)
            share.save()
            self._note_progress(share, report)
            if waiting:
                report.ended_by = "stop" if self._stop.is_wanted else budget.ended_by
        taker.settle_suspicions()

    def _rest(self, seconds: float) -> None:
        """Wait, showing signs of life."""
        while seconds > 0 and not self._stop.is_wanted:
            self.health.beat()
            some = min(seconds, _SIGN_OF_LIFE_SECONDS)
            self._clock.sleep(some)
            seconds -= some

    def _go_on(self) -> None:
        self.health.beat()
        if self._stop.is_wanted:
            raise Stopped

    def _open(self) -> Share:
        """Return the share of the project that has the plan's name now; one made anew is another project."""
        project = self._client.project(self._plan.project)
        if self._share is None or self._share.project.id != project.id:
            self._share = Share(
                self._client,
                project,
                self._plan,
                self._judge.card,
                self._state,
                clock=self._clock,
                log=self._log,
            )
            self._spans = self._paced(project)
            self._annotator = Annotator(
                self._client,
                project,
                series=self._plan.series,
                claims_mode=self._plan.claims_mode,
                spans=self._spans,
                notes=self._notes(self._share),
            )
        return self._share

    def _paced(self, project: Project) -> PacedSpans:
        return PacedSpans(
            # What is being written is finished even after a stop, so these waits do not end at one.
            SpanWriter(self._client, project),
            per_second=self._plan.claim_spans_per_second,
            clock=self._clock,
            is_hurried=lambda: self._stop.is_wanted,
        )

    def _notes(self, share: Share) -> Callable[[str], dict[str, object]]:
        return lambda trace_id: self._plan.sampling.notes(share.rule_of(trace_id))

    def _note_progress(self, share: Share, report: PassReport) -> None:
        """Show that the work goes on, and how far it is."""
        self.health.beat()
        report.pending = len(share.settling)
        metrics = self.metrics
        metrics.note(report)
        metrics.pending.set(report.pending)
        metrics.set_aside.set(share.failures.set_aside_count)
        metrics.lag.set(share.settling.oldest_seconds())
        metrics.state_errors.inc(share.state_errors)
        share.state_errors = 0
        metrics.rewinds.inc(share.arrivals.rewinds)
        share.arrivals.rewinds = 0
        if self._spans is not None:
            if self._spans.last_visible_seconds:
                metrics.visible.set(self._spans.last_visible_seconds)
            metrics.waits.inc(self._spans.waits)
            self._spans.waits = 0

    def _note_trouble(self, error: ServerError, pause: float) -> None:
        kind = type(error).__name__
        self.health.beat()
        self.health.not_ready = f"{kind}: {error}"
        self.metrics.errors.labels(kind).inc()
        event = "project_not_found" if isinstance(error, NotFound) else "phoenix_trouble"
        self._log(event, {"error": f"{kind}: {error}", "retry_in_seconds": round(pause, 1)}, level="warning")
