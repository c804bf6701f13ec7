"""Evaluations as OpenTelemetry events, for back ends other than Phoenix.

One event `gen_ai.evaluation.result` for each measure of a run and, if asked for, for the verdict on each claim, linked by
trace id and span id to the span whose output is the answer. The names are those of OpenTelemetry's semantic conventions
for generative AI; what they have no name for begins with `citespan.`.

An event is sent after the run was written to Phoenix. A run that is evaluated again, as with another judge or after a
crash, is sent again: a receiver that wants the last word takes the newest event of a span, name and claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.findings import JudgedClaim
from citespan.evaluators.measures import Ratio
from citespan.evaluators.verdicts import Label
from citespan.evaluators.worker import EvaluatedRun
from citespan.tracer.text import clean_text

if TYPE_CHECKING:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

__all__ = ["EVENT", "EvaluationEvents", "Event", "logs_url", "pack_events"]

EVENT = "gen_ai.evaluation.result"
"""Name of the event."""

NAME = "gen_ai.evaluation.name"
SCORE = "gen_ai.evaluation.score.value"
LABEL = "gen_ai.evaluation.score.label"
EXPLANATION = "gen_ai.evaluation.explanation"
ERROR = "error.type"

MEASURES = ("coverage", "support", "completeness", "validity")
"""The measures that get an event: those that Phoenix's table of traces shows."""

_SERVICE = "citespan-worker"
_NS = 1_000_000_000

Value = str | int | float | None


@dataclass(frozen=True, slots=True)
class Event:
    """One result, before it is put into OpenTelemetry's form."""

    trace_id: str
    """Trace that was evaluated."""

    span_id: str
    """The span whose output is the answer."""

    wall: float
    """When, seconds since 1970."""

    attributes: Mapping[str, Value]
    """Attributes by name; those without a value are left out."""


class EvaluationEvents:
    """Makes events of evaluations and hands them on."""

    def __init__(
        self, put: Callable[[Event], None], *, wall: Callable[[], float], with_claims: bool = False
    ) -> None:
        """Prepare to make events.

        Args:
            put: Takes an event, and returns at once.
            wall: Seconds since 1970.
            with_claims: Whether each claim's verdict gets an event too; it holds the claim's text.
        """
        self._put = put
        self._wall = wall
        self._with_claims = with_claims

    def add(self, evaluated: EvaluatedRun) -> None:
        """Hand on the events of one run that was read from a trace."""
        evaluation = evaluated.evaluation
        origin = evaluation.run.origin
        if origin is None:
            return
        for attributes in self._results(evaluation):
            judge = {
                "citespan.judge.name": evaluation.judge.name,
                "citespan.judge.fingerprint": evaluation.judge.fingerprint,
            }
            self._put(Event(origin.trace_id, origin.answer_span_id, self._wall(), {**attributes, **judge}))

    def _results(self, evaluation: Evaluation) -> Iterator[dict[str, Value]]:
        run = evaluation.run
        if not evaluation.is_evaluated:
            because = ", ".join(run.reasons)
            yield {NAME: "citation_state", LABEL: run.state, EXPLANATION: because or None}
            return
        for name in MEASURES:
            yield _measured(name, evaluation.measures[name])
        if self._with_claims:
            yield from map(_judged, evaluation.claims)


def _measured(name: str, ratio: Ratio) -> dict[str, Value]:
    """Return a measure; one over nothing has no score, which is not 0, and says what there was none of."""
    explanation = str(ratio) if ratio.value is not None else f"{ratio}: nothing to measure"
    return {
        NAME: f"citation_{name}",
        SCORE: ratio.value,
        LABEL: None if ratio.numerator is None else f"{ratio.numerator}/{ratio.denominator}",
        EXPLANATION: explanation,
        "citespan.numerator": ratio.numerator,
        "citespan.denominator": ratio.denominator,
    }


def _judged(claim: JudgedClaim) -> dict[str, Value]:
    """Return a verdict; one that could not be given has an error instead of a score."""
    is_unjudged = claim.label is Label.UNJUDGED
    rule = None if claim.deciding is None else claim.deciding.rule
    return {
        NAME: "citation_verdict",
        SCORE: claim.score,
        LABEL: claim.label.value,
        EXPLANATION: claim.reason,
        ERROR: (rule or claim.reason.partition(":")[0]) if is_unjudged else None,
        "citespan.claim.index": claim.claim.index,
        "citespan.claim.text": claim.claim.text,
    }


def pack_events(version: str) -> Callable[[Sequence[Event]], ExportLogsServiceRequest]:
    """Return what makes a message of events; `version` is that of citespan."""
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
    from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs, ScopeLogs
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource

    about = {"service.name": _SERVICE, "service.version": version}
    resource = Resource(attributes=list(_pairs(about)))
    scope = InstrumentationScope(name="citespan.worker", version=version)

    def pack(events: Sequence[Event]) -> ExportLogsServiceRequest:
        records = ScopeLogs(scope=scope, log_records=[_record(event) for event in events])
        return ExportLogsServiceRequest(resource_logs=[ResourceLogs(resource=resource, scope_logs=[records])])

    return pack


def _record(event: Event) -> LogRecord:
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber

    moment = int(event.wall * _NS)
    is_failure = event.attributes.get(ERROR) is not None
    severity = SeverityNumber.SEVERITY_NUMBER_WARN if is_failure else SeverityNumber.SEVERITY_NUMBER_INFO
    return LogRecord(
        time_unix_nano=moment,
        observed_time_unix_nano=moment,
        severity_number=severity,
        event_name=EVENT,
        trace_id=bytes.fromhex(event.trace_id),
        span_id=bytes.fromhex(event.span_id),
        attributes=list(_pairs(event.attributes)),
    )


def logs_url(endpoint: str) -> str:
    """Return where events are posted: a base URL gets the usual path, a URL with a path stays."""
    return endpoint if urlsplit(endpoint).path.strip("/") else f"{endpoint.rstrip('/')}/v1/logs"


def _pairs(attributes: Mapping[str, Value]) -> Iterator[KeyValue]:
    """Yield the attributes that have a value."""
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue

    for key, value in attributes.items():
        if value is not None:
            yield KeyValue(key=key, value=_any(value))


def _any(value: str | float) -> AnyValue:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue

    if isinstance(value, str):
        return AnyValue(string_value=clean_text(value))
    return AnyValue(int_value=value) if isinstance(value, int) else AnyValue(double_value=value)
