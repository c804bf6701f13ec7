"""citespan's one processor on a tracer provider: what ends there is noted, and passed on.

Noted is what other instrumentors record of a run's passages, so that nothing is recorded twice: beside
OpenInference's LangChain or LlamaIndex instrumentors, a retriever's span with all its texts has ended by the time
the app says which labels they were shown under. Passed on are all spans, to where `configure()` sends them.
"""

from __future__ import annotations

import threading

from openinference.semconv.trace import DocumentAttributes, OpenInferenceSpanKindValues, SpanAttributes
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from citespan.tracer.text import text_hash

__all__ = ["Tap"]

_KINDS = frozenset({OpenInferenceSpanKindValues.RETRIEVER.value, OpenInferenceSpanKindValues.RERANKER.value})
_CONTENT = f".{DocumentAttributes.DOCUMENT_CONTENT}"
_NONE: set[str] = set()

_MAX_TRACES = 4096
"""Most traces watched at once: runs that are never finished are forgotten in the end."""


class Tap(SpanProcessor):
    """Stays on its provider, which cannot drop a processor, while runs and destinations come and go."""

    def __init__(self, own_scope: str) -> None:
        """Watch nothing and pass nothing on; spans of `own_scope` need no noting."""
        self._own_scope = own_scope
        self._target: SpanProcessor | None = None
        self._runs: dict[int, int] = {}
        self._texts: dict[int, set[str]] = {}
        self._lock = threading.Lock()

    def send_to(self, target: SpanProcessor | None) -> None:
        """Pass ended spans on to `target` from now on; the former one sends what it has and stops."""
        former, self._target = self._target, target
        if former is not None:
            former.shutdown()

    def watch(self, trace_id: int) -> None:
        """Begin to note the texts of a trace; each call wants one `forget`."""
        with self._lock:
            self._runs[trace_id] = self._runs.get(trace_id, 0) + 1
            if len(self._runs) > _MAX_TRACES:
                oldest = next(iter(self._runs))
                del self._runs[oldest]
                self._texts.pop(oldest, None)

    def forget(self, trace_id: int) -> None:
        """Watch the trace for one run less."""
        with self._lock:
            left = self._runs.pop(trace_id, 1) - 1
            if left:
                self._runs[trace_id] = left
            elif self._texts:
                self._texts.pop(trace_id, None)

    def texts(self, trace_id: int) -> set[str]:
        """Return the hashes of the texts that others have recorded in a trace so far."""
        return self._texts.get(trace_id, _NONE)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Do nothing: what counts is there when a span ends."""

    def on_end(self, span: ReadableSpan) -> None:
        """Note the texts of a retriever's span, and pass any span on."""
        scope = span.instrumentation_scope
        if scope is None or scope.name != self._own_scope:
            self._note(span)
        if (target := self._target) is not None:
            target.on_end(span)

    def shutdown(self) -> None:
        """Send what waits and pass nothing on any more."""
        self.send_to(None)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what waits; return whether everything was handed over in time."""
        target = self._target
        return True if target is None else target.force_flush(timeout_millis)

    def _note(self, span: ReadableSpan) -> None:
        context, attributes = span.context, span.attributes
        if context is None or context.trace_id not in self._runs or attributes is None:
            return
        if attributes.get(SpanAttributes.OPENINFERENCE_SPAN_KIND) not in _KINDS:
            return
        texts = {text_hash(v) for k, v in attributes.items() if k.endswith(_CONTENT) and isinstance(v, str)}
        with self._lock:
            if context.trace_id in self._runs:
                self._texts.setdefault(context.trace_id, set()).update(texts)
