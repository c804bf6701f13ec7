"""For tests of apps that record runs: what would have been sent, in memory, the same every time.

::

    from citespan.tracer.testing import record_in_memory

    def test_every_answer_says_what_the_model_was_shown():
        with record_in_memory() as recorded:
            ask("What is the baggage limit?")
        assert [passage.label for passage in recorded.run().passages] == ["1", "2"]
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import INVALID_SPAN_CONTEXT, format_span_id, format_trace_id

from citespan.tracer.attributes import RUN, RunRecord
from citespan.tracer.redaction import Redaction
from citespan.tracer.settings import SPAN_ATTRIBUTE_LIMIT, TracerSettings
from citespan.tracer.tracing import Tracing, adopt, configured_tracing, set_tracing

__all__ = ["FIRST_NANOSECOND", "RecordedSpans", "record_in_memory"]

FIRST_NANOSECOND = 1_767_225_600_000_000_000
"""Where the clock starts: 1 January 2026, 00:00 UTC."""

_TICK_NANOSECONDS = 1_000_000


class RecordedSpans:
    """The spans that ended inside `record_in_memory()`, in the order in which they ended."""

    def __init__(self, provider: TracerProvider, exporter: InMemorySpanExporter) -> None:
        """Read from `exporter`."""
        self.provider = provider
        """Give it to other instrumentors, so that their spans are kept too."""
        self._exporter = exporter

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """Every ended span."""
        return self._exporter.get_finished_spans()

    def named(self, name: str) -> ReadableSpan:
        """Return the one span of that name.

        Raises:
            LookupError: There is none, or more than one.
        """
        found = [span for span in self.spans if span.name == name]
        if len(found) != 1:
            names = [span.name for span in self.spans]
            raise LookupError(f"{len(found)} spans are named {name!r}: expected one among {names}")
        return found[0]

    def kinds(self) -> list[str]:
        """Return the OpenInference kind of each span."""
        return [str((span.attributes or {}).get("openinference.span.kind")) for span in self.spans]

    def runs(self) -> list[RunRecord]:
        """Return the record of each run."""
        records = [(span.attributes or {}).get(RUN) for span in self.spans]
        return [RunRecord.from_json(record) for record in records if record is not None]

    def run(self) -> RunRecord:
        """Return the record of the only run.

        Raises:
            LookupError: There is none, or more than one.
        """
        runs = self.runs()
        if len(runs) != 1:
            raise LookupError(f"{len(runs)} runs were recorded: expected one")
        return runs[0]

    def dump(self) -> list[Mapping[str, object]]:
        """Return the spans as plain values, as a span file for `citespan inspect` and `evaluate` holds them."""
        return [_span_dict(span) for span in self.spans]


@contextmanager
def record_in_memory(
    *, redaction: Redaction | None = None, attribute_limit: int = SPAN_ATTRIBUTE_LIMIT
) -> Generator[RecordedSpans]:
    """Record runs in memory inside the block, whatever `configure()` said, with fixed ids and a fixed clock.

    Args:
        redaction: What is kept out of the spans.
        attribute_limit: How many attributes the provider's spans may have.
    """
    exporter = InMemorySpanExporter()
    provider = TracerProvider(
        id_generator=_CountingIds(),
        span_limits=SpanLimits(max_span_attributes=attribute_limit),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    ticks = itertools.count(FIRST_NANOSECOND, _TICK_NANOSECONDS)
    tracing: Tracing = adopt(provider, redaction or Redaction(), TracerSettings())
    before = configured_tracing()
    set_tracing(replace(tracing, clock=lambda: next(ticks)))
    try:
        yield RecordedSpans(provider, exporter)
    finally:
        set_tracing(before)


class _CountingIds(IdGenerator):
    """Ids 1, 2, 3."""

    def __init__(self) -> None:
        self._trace_ids = itertools.count(1)
        self._span_ids = itertools.count(1)

    def generate_span_id(self) -> int:
        return next(self._span_ids)

    def generate_trace_id(self) -> int:
        return next(self._trace_ids)


def _span_dict(span: ReadableSpan) -> Mapping[str, object]:
    context = span.get_span_context() or INVALID_SPAN_CONTEXT
    return {
        "name": span.name,
        "trace_id": format_trace_id(context.trace_id),
        "span_id": format_span_id(context.span_id),
        "parent_id": None if span.parent is None else format_span_id(span.parent.span_id),
        "kind": span.kind.name,
        "start": span.start_time,
        "end": span.end_time,
        "status": span.status.status_code.name,
        "scope": None if span.instrumentation_scope is None else span.instrumentation_scope.name,
        "attributes": dict(span.attributes or {}),
    }
