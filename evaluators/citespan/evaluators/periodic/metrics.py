"""What Prometheus can ask of a worker; docs/worker.md lists the metrics."""

from __future__ import annotations

import math
import re
from collections import Counter as Counts
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.findings import JudgedClaim
from citespan.evaluators.judges.chat.clock import SYSTEM_CLOCK, Clock
from citespan.evaluators.judges.judge import Judge, JudgeCard, JudgeRequest, concurrency_of
from citespan.evaluators.measures import MEASURES, Ratio, pool
from citespan.evaluators.periodic.plan import PassReport, Plan
from citespan.evaluators.verdicts import Label, Usage, Verdict
from citespan.evaluators.worker import PassSummary

__all__ = ["ExportCounts", "TimedJudge", "WorkerMetrics", "usage_of"]

_JUDGE_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
_PASS_SECONDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)
_DELAY_SECONDS = (30.0, 60.0, 90.0, 120.0, 300.0, 900.0, 1800.0, 3600.0, 6 * 3600.0, 24 * 3600.0)
_NS = 1_000_000_000

SKIP_REASONS = (
    "evaluator_trace",
    "filtered",
    "not_sampled",
    "older_than_lookback",
    "other_shard",
    "set_aside",
    "trace_deleted",
    "unreadable_span",
)
"""Why a trace is not evaluated."""

PASS_ENDS = ("done", "traces", "seconds", "usd", "price_unknown", "stop", "error")
"""How a pass ends: with nothing left to take, at a limit, by a stop, or broken off."""

_ABOUT = ("version", "project", "shard", "judge", "judge_fingerprint")
_MACHINE_READABLE = re.compile(r"[a-z][a-z0-9_]{0,59}")
_UNKNOWN = math.nan
"""Value of a gauge before anything was measured: it compares as neither above nor below a threshold."""


class WorkerMetrics:
    """Counters since the start of the process, and gauges as of the last look."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        """Begin to count."""
        self.registry = CollectorRegistry()
        self._clock = clock
        self._noted = Counts[tuple[str, str]]()
        self._ratios: dict[str, Ratio] = {}
        ProcessCollector(registry=self.registry)
        self.about = self._gauge("worker_info", "Always 1; the labels say which worker.", *_ABOUT)
        self._make_trace_metrics()
        self._make_result_metrics()
        self._make_judge_metrics()
        self._make_phoenix_metrics()

    def _make_trace_metrics(self) -> None:
        self.seen = self._counter("traces_seen", "Traces of this worker of which a first span was seen.")
        self.taken = self._counter("traces_taken", "Traces read to be evaluated.")
        self.skipped = self._counter("traces_skipped", "Traces not evaluated, by reason.", "reason")
        self.failures = self._counter("trace_failures", "Tries to evaluate a trace that failed.", "reason")
        self.pending = self._gauge("traces_pending", "Traces that were seen and are not finished.")
        self.set_aside = self._gauge("traces_set_aside", "Traces that failed too often.", unknown=True)
        self.lag = self._gauge(
            "lag_seconds", "How long the trace that waits longest has waited since it was seen.", unknown=True
        )
        self.delay = self._histogram(
            "evaluation_delay_seconds",
            "From the end of a run's answer until it was evaluated.",
            _DELAY_SECONDS,
        )
        self.passes = self._counter("passes", "Passes over the project, by how they ended.", "end")
        self.pass_seconds = self._histogram("pass_duration_seconds", "Time of one pass.", _PASS_SECONDS)
        self.last_pass = self._gauge(
            "last_pass_timestamp_seconds",
            "When the last pass ended that Phoenix did not break off.",
            unknown=True,
        )
        for reason in SKIP_REASONS:
            self.skipped.labels(reason)
        for end in PASS_ENDS:
            self.passes.labels(end)

    def _make_result_metrics(self) -> None:
        self.runs = self._counter("runs_evaluated", "Runs judged and written.")
        self.unchanged = self._counter("runs_unchanged", "Runs read that were evaluated already.")
        self.doubled = self._counter(
            "runs_doubled", "Runs judged here that another worker had finished meanwhile."
        )
        self.states = self._counter("runs_with_state", "Runs that were not judged as usual.", "state")
        self.claims = self._counter("claims", "Claims evaluated, by label.", "label")
        self.unjudged = self._counter(
            "claims_unjudged", "Claims that could not be judged, by reason.", "reason"
        )
        self.numerators = self._counter("measure_numerator", "Counts above the line, pooled.", "measure")
        self.denominators = self._counter("measure_denominator", "Counts below the line, pooled.", "measure")
        self.ratios = self._gauge(
            "measure_ratio", "Pooled measures since the start; none over nothing.", "measure"
        )
        self.gap = self._gauge(
            "coverage_support_gap_ratio",
            "Pooled coverage minus pooled support since the start.",
            unknown=True,
        )
        for label in Label:
            self.claims.labels(label)
        for name in MEASURES:
            self.numerators.labels(name)
            self.denominators.labels(name)

    def _make_judge_metrics(self) -> None:
        self.judge_seconds = self._histogram(
            "judge_duration_seconds", "Time of one call of the judge: the claims of one run.", _JUDGE_SECONDS
        )
        self.tokens = self._counter("judge_tokens", "Tokens of the judge.", "direction")
        self.usd = self._counter("judge_cost_usd", "US dollars of the judge, where its price is known.")
        self.unpriced = self._counter("judge_unpriced_runs", "Runs whose judge has no known price.")
        for direction in ("sent", "received"):
            self.tokens.labels(direction)

    def _make_phoenix_metrics(self) -> None:
        self.errors = self._counter("phoenix_errors", "Passes that Phoenix broke off, by error.", "error")
        self.waits = self._counter(
            "phoenix_waits", "Times that claim spans waited because Phoenix was behind."
        )
        self.visible = self._gauge(
            "claim_span_visible_seconds", "From POST to visible, the last claim spans.", unknown=True
        )
        self.rows = self._counter("rows_written", "Annotations written.")
        self.claim_spans = self._counter("claim_spans_written", "Claim spans written.")
        self.human_kept = self._counter("human_rows_kept", "Rows of people that were written beside.")
        self.state_errors = self._counter("state_errors", "Times that the state file could not be used.")
        self.rewinds = self._counter("rewinds", "Times that the project was read anew from its first span.")
        self.telemetry_sent = self._counter(
            "telemetry_sent", "The worker's own spans and events that were exported.", "signal"
        )
        self.telemetry_dropped = self._counter(
            "telemetry_dropped", "The worker's own spans and events that could not be exported.", "signal"
        )
        for signal in ("spans", "events"):
            self.telemetry_sent.labels(signal)
            self.telemetry_dropped.labels(signal)

    def show(self, version: str, plan: Plan, judge: JudgeCard) -> None:
        """Say which worker this is."""
        self.about.labels(version, plan.project, str(plan.shard), judge.name, judge.fingerprint).set(1)

    def text(self) -> bytes:
        """Return everything in Prometheus's text format."""
        return generate_latest(self.registry)

    def exports(self, signal: str) -> ExportCounts:
        """Return where to count what is exported of `spans` or `events`."""
        return ExportCounts(self.telemetry_sent.labels(signal), self.telemetry_dropped.labels(signal))

    def value(self, name: str) -> float:
        """Return the value of a metric without labels; 0 for one that there is not."""
        return self.registry.get_sample_value(name) or 0.0

    @contextmanager
    def timed_pass(self, report: PassReport) -> Generator[None]:
        """Count the pass that the block does; `report` is filled by it."""
        self._noted.clear()
        before, end = self._clock.monotonic(), "error"
        try:
            yield
            end = report.ended_by or "done"
            self.last_pass.set(self._clock.wall())
        finally:
            self.passes.labels(end).inc()
            self.pass_seconds.observe(self._clock.monotonic() - before)

    def note(self, report: PassReport) -> None:
        """Count what a pass has done so far; what was noted of it before counts once."""
        self._grow(self.seen, "seen", report.seen)
        self._grow(self.taken, "taken", report.taken)
        for reason, number in report.skipped.items():
            self._grow(self.skipped.labels(reason), "skipped", number, reason)
        failed = Counts(_machine_readable(reason) for reason in report.failed.values())
        for reason, number in failed.items():
            self._grow(self.failures.labels(reason), "failed", number, reason)

    def add_written(self, summary: PassSummary) -> None:
        """Count what a batch of traces wrote."""
        self.doubled.inc(summary.runs_doubled)
        self.unchanged.inc(summary.runs_unchanged)
        self.rows.inc(summary.rows_written)
        self.claim_spans.inc(summary.claim_spans_written)
        self.human_kept.inc(summary.human_rows_kept)

    def add(self, evaluation: Evaluation) -> None:
        """Count one evaluation that was written."""
        if evaluation.run.state is not None:
            self.states.labels(evaluation.run.state).inc()
        if not evaluation.is_evaluated:
            return
        self.runs.inc()
        if evaluation.run.origin is not None:
            self.delay.observe(max(0.0, self._clock.wall() - evaluation.run.origin.answer_end_ns / _NS))
        for claim in evaluation.claims:
            self.claims.labels(claim.label).inc()
            if claim.label is Label.UNJUDGED:
                self.unjudged.labels(_rule_of(claim)).inc()
        self._add_measures(evaluation.measures)
        self._add_usage(usage_of(evaluation))

    def _add_measures(self, measures: Mapping[str, Ratio]) -> None:
        self._ratios = dict(pool([self._ratios, measures])) if self._ratios else dict(measures)
        for name in MEASURES:
            ratio = measures[name]
            if ratio.numerator is not None and ratio.denominator is not None:
                self.numerators.labels(name).inc(ratio.numerator)
                self.denominators.labels(name).inc(ratio.denominator)
            pooled = self._ratios[name].value
            if pooled is not None:
                self.ratios.labels(name).set(pooled)
        coverage, support = self._ratios["coverage"].value, self._ratios["support"].value
        if coverage is not None and support is not None:
            self.gap.set(coverage - support)

    def _add_usage(self, usage: Usage | None) -> None:
        if usage is None:
            return
        self.tokens.labels("sent").inc(usage.prompt_tokens)
        self.tokens.labels("received").inc(usage.completion_tokens)
        if usage.cost_usd is None:
            self.unpriced.inc()
        else:
            self.usd.inc(usage.cost_usd)

    def _grow(self, counter: Counter, name: str, total: int, label: str = "") -> None:
        """Raise a counter by what a report's total has grown since it was last noted."""
        more = total - self._noted[name, label]
        if more > 0:
            counter.inc(more)
            self._noted[name, label] = total

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"citespan_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str, unknown: bool = False) -> Gauge:
        gauge = Gauge(f"citespan_{name}", text, labels, registry=self.registry)
        if unknown:
            gauge.set(_UNKNOWN)
        return gauge

    def _histogram(self, name: str, text: str, buckets: Sequence[float]) -> Histogram:
        return Histogram(f"citespan_{name}", text, registry=self.registry, buckets=buckets)


@dataclass(frozen=True, slots=True)
class ExportCounts:
    """Counts what was sent of one signal, and what was dropped."""

    sent: Counter
    """Items that a receiver took."""

    dropped: Counter
    """Items that were lost."""


class TimedJudge:
    """A judge whose calls are timed, and announced before they begin."""

    def __init__(
        self,
        judge: Judge,
        metrics: WorkerMetrics,
        *,
        before_call: Callable[[], None],
        monotonic: Callable[[], float],
    ) -> None:
        """Prepare to judge; `before_call` may raise `Stopped`, while nothing of the batch is written yet."""
        self._judge = judge
        self._metrics = metrics
        self._before_call = before_call
        self._monotonic = monotonic

    @property
    def card(self) -> JudgeCard:
        """What the judge is."""
        return self._judge.card

    @property
    def concurrency(self) -> int:
        """How many threads may ask the judge at once."""
        return concurrency_of(self._judge)

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Return one verdict per request, in the same order."""
        self._before_call()
        before = self._monotonic()
        verdicts = self._judge.judge(requests)
        self._metrics.judge_seconds.observe(self._monotonic() - before)
        return verdicts


def usage_of(evaluation: Evaluation) -> Usage | None:
    """Return what judging a run cost; `None` for a judge that costs nothing."""
    used = [
        verdict.usage
        for claim in evaluation.claims
        for verdict in _verdicts(claim)
        if verdict.usage is not None
    ]
    return sum(used[1:], used[0]) if used else None


def _verdicts(claim: JudgedClaim) -> list[Verdict]:
    found = [attachment.verdict for attachment in claim.attachments] + [claim.union, claim.deciding]
    return list({id(verdict): verdict for verdict in found if verdict is not None}.values())


def _rule_of(claim: JudgedClaim) -> str:
    """Return the machine-readable reason why a claim is unjudged; a claim of lost passages has it in its reason."""
    rule = None if claim.deciding is None else claim.deciding.rule
    return rule or _machine_readable(claim.reason)


def _machine_readable(reason: str) -> str:
    """Return what stands before a reason's colon; `other` if that is prose, which would make labels without end."""
    found = _MACHINE_READABLE.fullmatch(reason.partition(":")[0])
    return "other" if found is None else found[0]
