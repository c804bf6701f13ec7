"""The worker's own spans, where they are asked for: one trace for each pass that did something.

::

    pass
      look                  what was new
      take batch            some traces evaluated and written together
        read  judge  write

A pass that found nothing to do leaves no trace, and the calls of the judge for one batch share one span, so that there is
about one span for five traces evaluated. Every span is of the kind EVALUATOR, as claim spans are: no worker lists such
spans, so none evaluates these, whatever project it is pointed at.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager

from openinference.semconv.resource import ResourceAttributes
from openinference.semconv.trace import OpenInferenceSpanKindValues, SpanAttributes
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import NoOpTracer, Span, StatusCode, Tracer, set_span_in_context

from citespan.evaluators.engines.engine import BatchResult
from citespan.evaluators.judges.chat.clock import Clock
from citespan.evaluators.judges.judge import JudgeCard
from citespan.evaluators.periodic.metrics import usage_of
from citespan.evaluators.periodic.plan import PassReport
from citespan.evaluators.verdicts import Label, Usage

__all__ = ["SILENT", "PassTrace", "make_tracer", "traced_pass"]

SERVICE = "citespan-worker"

SILENT: Tracer = NoOpTracer()
"""Records nothing."""

_MOST_FAILURES = 20
"""Failed traces named on one span; all of them are counted."""

_NS = 1_000_000_000


def make_tracer(
    project: str, version: str, put: Callable[[ReadableSpan], None], about: Mapping[str, str]
) -> Tracer:
    """Return a tracer that records for a Phoenix project.

    Args:
        project: The project; never the one that is evaluated.
        version: Of citespan.
        put: Takes a span that has ended, and returns at once.
        about: More attributes of the resource.
    """
    resource = Resource.create(
        {
            "service.name": SERVICE,
            "service.version": version,
            ResourceAttributes.PROJECT_NAME: project,
            **about,
        }
    )
    provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(_Handing(put))
    return provider.get_tracer("citespan.worker", version)


class _Handing(SpanProcessor):
    def __init__(self, put: Callable[[ReadableSpan], None]) -> None:
        self._put = put

    def on_end(self, span: ReadableSpan) -> None:
        self._put(span)


class PassTrace:
    """The trace of one pass under way; see the module for its spans."""

    def __init__(self, tracer: Tracer, report: PassReport, judge: JudgeCard, clock: Clock) -> None:
        self._tracer = tracer
        self._report = report
        self._judge = judge
        self._clock = clock
        self._began = clock.monotonic(), clock.wall()
        self._pass = self._start("pass", self.now_ns)
        self._look = self._start("look", self.now_ns, self._pass)
        self._looked_ns: int | None = None
        self._batch_ns = self.now_ns

    @property
    def now_ns(self) -> int:
        """Now, in nanoseconds since 1970: a clock that is set meanwhile bends no span."""
        monotonic, wall = self._began
        return int((wall + self._clock.monotonic() - monotonic) * _NS)

    def looked(self) -> None:
        """Take note that the look has ended."""
        self._look.set_attributes({"citespan.traces.seen": self._report.seen, **_skipped(self._report)})
        self._looked_ns = self._batch_ns = self.now_ns

    def took(self, result: BatchResult) -> None:
        """Record a batch that was worked on since the look or the batch before, or longer."""
        end, summary = self.now_ns, result.summary
        worked = summary.read_seconds + summary.judge_seconds + summary.write_seconds
        start = min(
            self._batch_ns, end - int(worked * _NS)
        )  # on a cluster, batches are worked on side by side
        batch = self._start("take batch", start, self._pass)
        batch.set_attributes(
            {
                "citespan.traces.finished": len(result.finished),
                "citespan.traces.failed": len(summary.set_aside) + len(result.suspects),
                "citespan.runs.evaluated": summary.runs_evaluated,
                "citespan.runs.unchanged": summary.runs_unchanged,
            }
        )
        for trace_id, reason in _failures(result)[:_MOST_FAILURES]:
            batch.add_event("trace failed", {"citespan.trace_id": trace_id, "citespan.reason": reason}, end)
        read_ns = start + int(summary.read_seconds * _NS)
        judge_ns = read_ns + int(summary.judge_seconds * _NS)
        self._add("read", start, read_ns, batch, {"citespan.traces.read": summary.traces})
        if summary.runs_evaluated:
            self._add("judge", read_ns, judge_ns, batch, self._judged(result))
            written = {
                "citespan.rows.written": summary.rows_written,
                "citespan.claim_spans.written": summary.claim_spans_written,
                "citespan.human_rows.kept": summary.human_rows_kept,
                "citespan.phoenix.waits": result.phoenix_waits,
            }
            self._add("write", judge_ns, judge_ns + int(summary.write_seconds * _NS), batch, written)
        if result.error is not None:
            _record(batch, result.error, end)
        batch.end(end)
        self._batch_ns = end

    def end(self, error: BaseException | None = None) -> None:
        """End the trace; one of a pass that did nothing is never sent."""
        report, end = self._report, self.now_ns
        if error is None and not (report.taken or report.failed):
            return
        self._look.end(self._looked_ns or end)
        self._pass.set_attributes(
            {
                "citespan.traces.seen": report.seen,
                "citespan.traces.taken": report.taken,
                "citespan.traces.failed": len(report.failed),
                "citespan.traces.pending": report.pending,
                "citespan.runs.evaluated": report.runs_evaluated,
                "citespan.pass.end": "error" if error is not None else report.ended_by or "done",
                **_skipped(report),
            }
        )
        if error is not None:
            _record(self._pass, error, end)
        self._pass.end(end)

    def _judged(self, result: BatchResult) -> dict[str, str | int | float]:
        """Return what is known of the judge's calls, in OpenTelemetry's words where it has some."""
        card = self._judge
        claims = [claim for run in result.runs for claim in run.evaluation.claims]
        found: dict[str, str | int | float] = {
            "citespan.judge.name": card.name,
            "citespan.judge.fingerprint": card.fingerprint,
            "citespan.claims": len(claims),
            "citespan.claims.unjudged": sum(claim.label is Label.UNJUDGED for claim in claims),
        }
        if card.sends_text_to is not None:
            found["server.address"] = card.sends_text_to
        if isinstance(model := card.parameters.get("model"), str):
            found["gen_ai.request.model"] = model
        used = [usage for run in result.runs if (usage := usage_of(run.evaluation)) is not None]
        if used:
            total: Usage = sum(used[1:], used[0])
            found["gen_ai.usage.input_tokens"] = total.prompt_tokens
            found["gen_ai.usage.output_tokens"] = total.completion_tokens
            if total.cost_usd is not None:
                found["citespan.judge.cost_usd"] = total.cost_usd
        return found

    def _add(
        self, name: str, start: int, end: int, parent: Span, attributes: Mapping[str, str | int | float]
    ) -> None:
        span = self._start(name, start, parent)
        span.set_attributes(attributes)
        span.end(end)

    def _start(self, name: str, start: int, parent: Span | None = None) -> Span:
        kind = {SpanAttributes.OPENINFERENCE_SPAN_KIND: OpenInferenceSpanKindValues.EVALUATOR.value}
        # Nothing of the process that the worker may run in is a parent.
        context = Context() if parent is None else set_span_in_context(parent, Context())
        return self._tracer.start_span(name, context, attributes=kind, start_time=start)


@contextmanager
def traced_pass(tracer: Tracer, report: PassReport, judge: JudgeCard, clock: Clock) -> Generator[PassTrace]:
    """Trace the pass that the block does; an error is recorded and raised on."""
    trace = PassTrace(tracer, report, judge, clock)
    try:
        yield trace
    except Exception as error:
        trace.end(error)
        raise
    trace.end()


def _skipped(report: PassReport) -> dict[str, int]:
    return {f"citespan.traces.skipped.{reason}": count for reason, count in report.skipped.items() if count}


def _failures(result: BatchResult) -> Sequence[tuple[str, str]]:
    suspects = {trace_id: f"phoenix_failed: {error}" for trace_id, error in result.suspects.items()}
    return list({**result.summary.set_aside, **suspects}.items())


def _record(span: Span, error: BaseException, moment: int) -> None:
    span.record_exception(error, timestamp=moment)
    span.set_attribute("error.type", type(error).__name__)
    span.set_status(StatusCode.ERROR, str(error))
