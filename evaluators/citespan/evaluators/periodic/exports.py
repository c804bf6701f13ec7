"""What a worker sends besides its results, where it is asked to: its own spans, and evaluations as events."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TypeVar

from opentelemetry.trace import Tracer

from citespan.evaluators.errors import UsageError
from citespan.evaluators.judges.chat.clock import Clock
from citespan.evaluators.periodic.logs import Log
from citespan.evaluators.periodic.metrics import WorkerMetrics
from citespan.evaluators.periodic.outbox import OtlpMessage, Outbox
from citespan.evaluators.periodic.plan import Plan
from citespan.evaluators.periodic.tracing import SILENT, make_tracer
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.worker import EvaluatedRun

__all__ = ["Exports", "ExportsWanted", "exporting"]

_Item = TypeVar("_Item")

_CLOSING_SECONDS = 2.0
"""How long the worker's end waits for a receiver: a stop has ten seconds for everything."""


@dataclass(frozen=True, slots=True)
class ExportsWanted:
    """What is to be sent, and where."""

    trace_project: str | None = None
    """Phoenix project for the worker's own spans; `None` records none."""

    events_endpoint: str | None = None
    """OTLP receiver of evaluation events; `None` sends none."""

    events_headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Sent with every message of events."""

    with_claims: bool = False
    """Whether each claim's verdict is an event too."""


@dataclass(frozen=True, slots=True)
class Exports:
    """What a worker is handed."""

    tracer: Tracer = SILENT
    """Records its spans."""

    on_run: Callable[[EvaluatedRun], None] | None = None
    """Takes every run that was written."""


@contextmanager
def exporting(
    wanted: ExportsWanted,
    plan: Plan,
    connection: Connection,
    metrics: WorkerMetrics,
    *,
    log: Log,
    clock: Clock,
) -> Generator[Exports]:
    """Send what is wanted during the block, and what still waits at its end, but not for long.

    Raises:
        UsageError: The worker's own spans would go into the project that it evaluates.
    """
    if wanted.trace_project == plan.project:
        raise UsageError(
            f"--trace-project {wanted.trace_project!r} is the project that is evaluated: the worker's own spans "
            "need one of their own"
        )
    with ExitStack() as stack:

        def outbox(
            url: str,
            headers: Mapping[str, str],
            pack: Callable[[Sequence[_Item]], OtlpMessage],
            signal: str,
        ) -> Outbox[_Item]:
            box = Outbox(url, headers, pack, metrics.exports(signal), log=log, clock=clock)
            stack.callback(box.close, within_seconds=_CLOSING_SECONDS)
            return box

        tracer: Tracer = SILENT
        on_run: Callable[[EvaluatedRun], None] | None = None
        citespan = version("citespan")
        if wanted.trace_project is not None:
            from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

            spans = outbox(f"{connection.base_url}/v1/traces", connection.headers, encode_spans, "spans")
            about = {"citespan.project": plan.project, "citespan.shard": str(plan.shard)}
            tracer = make_tracer(wanted.trace_project, citespan, spans.put, about)
        if wanted.events_endpoint is not None:
            from citespan.evaluators.periodic.events import EvaluationEvents, logs_url, pack_events

            url = logs_url(wanted.events_endpoint)
            records = outbox(url, wanted.events_headers, pack_events(citespan), "events")
            on_run = EvaluationEvents(records.put, wall=clock.wall, with_claims=wanted.with_claims).add
        yield Exports(tracer, on_run)
