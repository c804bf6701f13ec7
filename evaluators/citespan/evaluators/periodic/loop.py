"""What `citespan evaluate` does once and `citespan worker` again and again: look, take what has settled, remember."""

from __future__ import annotations

from collections.abc import Callable

from opentelemetry.trace import Tracer

from citespan.evaluators.engines.engine import BatchResult, Engine
from citespan.evaluators.engines.evaluator import BatchEvaluator, LocalEngine
from citespan.evaluators.errors import NotFound, ServerError
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
from citespan.evaluators.periodic.tracing import SILENT, PassTrace, traced_pass
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.records import Project
from citespan.evaluators.phoenix.span_writer import SpanWriter
from citespan.evaluators.worker import EvaluatedRun

__all__ = ["Worker"]

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
        engine: Callable[[Project], Engine] | None = None,
        on_run: Callable[[EvaluatedRun], None] | None = None,
        tracer: Tracer = SILENT,
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
            engine: Makes what evaluates the traces of a project; by default they are evaluated in this process.
            on_run: Called with every run evaluated, after it was written.
            tracer: Records the worker's own spans.
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
        self._open_engine = engine or self._local_engine
        self._on_run = on_run
        self._tracer = tracer
        self._trouble: tuple[str, int | None] | None = None
        self._share: Share | None = None
        self._engine: Engine | None = None

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
                self._note_recovery()
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
        budget = PassBudget(self._plan.limits, self._clock.monotonic)
        report = self.one_pass(budget)
        has_rested = self._plan.settle_seconds == 0  # then a trace that has not settled does not by waiting
        while report.ended_by is None and (report.has_more or (report.pending and not has_rested)):
            if (ended_by := budget.ended_by) is not None:
                report.ended_by = ended_by
                break
            if not (report.has_more and report.taken):
                seconds = self._plan.settle_seconds or 1.0
                self._log("settling", {"pending": report.pending, "seconds": seconds})
                self._rest(seconds)
                has_rested = not report.has_more
            earlier, report = report, self.one_pass(budget)
            report.follow(earlier)
        self._note_unfinished(report)
        return report

    def one_pass(self, budget: PassBudget | None = None) -> PassReport:
        """Look once, take what has settled, and return what was done.

        Args:
            budget: What this pass and others may do together; by default this one has the plan's limits for itself.

        Raises:
            UsageError: Phoenix does not understand a filter of the plan.
            NotFound: There is no such project.
            ServerError: Phoenix cannot be reached or refuses; what was written stays.
        """
        report = PassReport()
        budget = budget or PassBudget(self._plan.limits, self._clock.monotonic)
        judge = self._judge.card
        with (
            self.metrics.timed_pass(report),
            traced_pass(self._tracer, report, judge, self._clock) as trace,
        ):
            share = self._open()
            try:
                share.read(report, self._go_on)
                self.health.not_ready = None
                self._note_progress(share, report)
                trace.looked()
                self._take(share, report, budget, trace)
            except Stopped:
                report.ended_by = "stop"
            finally:
                share.save()
                self._note_progress(share, report)
                if report.taken or report.failed or report.ended_by:
                    self._log("pass", report.to_dict())
        return report

    def _take(self, share: Share, report: PassReport, budget: PassBudget, trace: PassTrace) -> None:
        assert self._engine is not None  # noqa: S101 - made with the share
        taker = Taker(
            self._client,
            share,
            self._plan,
            self._engine,
            report,
            budget,
            wall=self._clock.wall,
            is_stop_wanted=lambda: self._stop.is_wanted,
        )
        for result in taker.take():
            self._count(result, budget)
            share.save()
            self._note_progress(share, report)
            trace.took(result)

    def _count(self, result: BatchResult, budget: PassBudget) -> None:
        """Count what a batch did and cost, and show its runs."""
        self.metrics.add_written(result.summary)
        self.metrics.waits.inc(result.phoenix_waits)
        if result.visible_seconds:
            self.metrics.visible.set(result.visible_seconds)
        for run in result.runs:
            usage = usage_of(run.evaluation)
            budget.add(traces=0, usd=0.0 if usage is None else usage.cost_usd)
            self.metrics.add(run.evaluation)
            if self._on_run is not None:
                self._on_run(run)

    def _note_unfinished(self, report: PassReport) -> None:
        """Tell the traces that have not settled, and those that failed for good, from those that came right later."""
        share = self._share
        assert share is not None  # noqa: S101 - a pass has opened it
        report.failed = {
            trace_id: reason
            for trace_id, reason in report.failed.items()
            if trace_id in share.settling or share.failures.is_set_aside(trace_id)
        }
        ready = {trace.trace_id for trace in share.settled()} | report.failed.keys()
        if count := sum(trace.trace_id not in ready for trace in share.settling):
            report.skipped["not_settled"] = count

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
            self._engine = self._open_engine(project)
        return self._share

    def _local_engine(self, project: Project) -> Engine:
        spans = PacedSpans(
            # What is being written is finished even after a stop, so these waits do not end at one.
            SpanWriter(self._client, project),
            per_second=self._plan.claim_spans_per_second,
            clock=self._clock,
            is_hurried=lambda: self._stop.is_wanted,
        )
        return LocalEngine(BatchEvaluator(self._client, project, self._plan, self._judge, spans))

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

    def _note_trouble(self, error: ServerError, pause: float) -> None:
        kind = type(error).__name__
        self.health.beat()
        self.health.not_ready = f"{kind}: {error}"
        self.metrics.errors.labels(kind).inc()
        if (kind, error.status) != self._trouble:  # an outage is news once; the counter counts its passes
            self._trouble = (kind, error.status)
            event = "project_not_found" if isinstance(error, NotFound) else "phoenix_trouble"
            text = f"{kind}: {error}"
            self._log(event, {"error": text, "retry_in_seconds": round(pause, 1)}, level="warning")

    def _note_recovery(self) -> None:
        if self._trouble is not None:
            self._trouble = None
            self._log("phoenix_works_again")
