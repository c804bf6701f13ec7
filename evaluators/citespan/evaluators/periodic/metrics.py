"""What Prometheus can ask of a worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.findings import JudgedClaim
from citespan.evaluators.judges.judge import Judge, JudgeCard, JudgeRequest
from citespan.evaluators.measures import MEASURES, Ratio, pool
from citespan.evaluators.verdicts import Label, Usage, Verdict

__all__ = ["TimedJudge", "WorkerMetrics", "usage_of"]

_JUDGE_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


class WorkerMetrics:
    """Counters since the start of the process, and gauges as of the last pass."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.seen = self._counter("traces_seen", "Traces of which a first span was seen.")
        self.taken = self._counter("traces_taken", "Traces read to be evaluated.")
        self.skipped = self._counter("traces_skipped", "Traces not evaluated, by reason.", "reason")
        self.runs = self._counter("runs_evaluated", "Runs judged and written.")
        self.unchanged = self._counter("runs_unchanged", "Runs read that were evaluated already.")
        self.states = self._counter("runs_with_state", "Runs that were not judged as usual.", "state")
        self.claims = self._counter("claims", "Claims by label.", "label")
        self.unjudged = self._counter(
            "claims_unjudged", "Claims that could not be judged, by reason.", "reason"
        )
        self.failures = self._counter("trace_failures", "Tries to evaluate a trace that failed.", "reason")
        self.errors = self._counter("server_errors", "Passes that Phoenix broke off, by error.", "error")
        self.state_errors = self._counter("state_errors", "Times that the state file could not be used.")
        self.rewinds = self._counter("rewinds", "Times that the project was read anew from its first span.")
        self.waits = self._counter(
            "phoenix_waits", "Times that claim spans waited because Phoenix was behind."
        )
        self.human_kept = self._counter("human_rows_kept", "Rows of people that were written beside.")
        self.rows = self._counter("rows_written", "Annotations written.")
        self.claim_spans = self._counter("claim_spans_written", "Claim spans written.")
        self.tokens = self._counter("judge_tokens", "Tokens of the judge.", "direction")
        self.usd = self._counter("judge_usd", "US dollars of the judge, where the price is known.")
        self.unpriced = self._counter("judge_unpriced_runs", "Runs whose judge has no known price.")
        self.parts = self._counter(
            "measure_parts", "Numerators and denominators of the measures, to divide once.", "measure", "part"
        )
        self.pooled = self._gauge("measure_ratio", "Pooled measures since the start.", "measure")
        self.pending = self._gauge("traces_pending", "Traces that were seen and are not finished.")
        self.set_aside = self._gauge("traces_set_aside", "Traces that failed too often.")
        self.lag = self._gauge("lag_seconds", "How long the trace that waits longest has waited.")
        self.visible = self._gauge(
            "claim_span_visible_seconds", "From POST to visible, the last claim spans."
        )
        self.last_pass = self._gauge("last_pass_timestamp_seconds", "When the last whole pass ended.")
        self.judge_seconds = Histogram(
            "citespan_judge_seconds",
            "Time of one call of the judge.",
            registry=self.registry,
            buckets=_JUDGE_SECONDS,
        )
        self._ratios: dict[str, Ratio] = {}

    def text(self) -> bytes:
        """Return everything in Prometheus's text format."""
        return generate_latest(self.registry)

    def add(self, evaluation: Evaluation) -> None:
        """Count one evaluation that was written."""
        if evaluation.run.state is not None:
            self.states.labels(evaluation.run.state).inc()
        if not evaluation.is_evaluated:
            return
        self.runs.inc()
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
                self.parts.labels(name, "numerator").inc(ratio.numerator)
                self.parts.labels(name, "denominator").inc(ratio.denominator)
            pooled = self._ratios[name].value
            if pooled is not None:
                self.pooled.labels(name).set(pooled)

    def _add_usage(self, usage: Usage | None) -> None:
        if usage is None:
            return
        self.tokens.labels("sent").inc(usage.prompt_tokens)
        self.tokens.labels("received").inc(usage.completion_tokens)
        if usage.cost_usd is None:
            self.unpriced.inc()
        else:
            self.usd.inc(usage.cost_usd)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"citespan_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"citespan_{name}", text, labels, registry=self.registry)


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
    rule = None if claim.deciding is None else claim.deciding.rule
    return rule or "unknown"
