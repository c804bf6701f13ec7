"""What other instrumentors have recorded of a run's passages, so that nothing is recorded twice.

Beside OpenInference's LangChain or LlamaIndex instrumentors, a retriever's span with all its texts has ended by
the time the app says which labels they were shown under.
"""

from __future__ import annotations

import threading

from openinference.semconv.trace import DocumentAttributes, OpenInferenceSpanKindValues, SpanAttributes
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from citespan.tracer.text import text_hash

__all__ = ["Witness"]

_KINDS = frozenset({OpenInferenceSpanKindValues.RETRIEVER.value, OpenInferenceSpanKindValues.RERANKER.value})
_MAX_TRACES = 4096
"""Most traces watched at once: runs that are never finished are forgotten in the end."""

_CONTENT = f".{DocumentAttributes.DOCUMENT_CONTENT}"


class Witness(SpanProcessor):
    """Remembers the texts that retrievers' spans hold, for traces in which a run is under way."""

    def __init__(self, own_scope: str) -> None:
        """Watch nothing yet; spans of `own_scope` are not looked at."""
        self._own_scope = own_scope
        self._runs: dict[int, int] = {}
        self._texts: dict[int, set[str]] = {}
        self._lock = threading.Lock()

    def watch(self, trace_id: int) -> None:
        """Begin to remember the texts of a trace; each call wants one `forget`."""
        with self._lock:
            self._runs[trace_id] = self._runs.get(trace_id, 0) + 1
            if len(self._runs) > _MAX_TRACES:
                oldest = next(iter(self._runs))
                del self._runs[oldest]
                self._texts.pop(oldest, None)

    def forget(self, trace_id: int) -> None:
        """Remember the trace for one run less."""
        with self._lock:
            left = self._runs.pop(trace_id, 1) - 1
            if left:
                self._runs[trace_id] = left
            else:
                self._texts.pop(trace_id, None)

    def texts(self, trace_id: int) -> set[str]:
        """Return the hashes of the texts that others have recorded in a trace so far."""
        return self._texts.get(trace_id, _NONE)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Do nothing: a retriever's texts are there when its span ends."""

    def on_end(self, span: ReadableSpan) -> None:
        """Remember the texts of a retriever's span."""
        scope = span.instrumentation_scope
        if scope is not None and scope.name == self._own_scope:
            return
        context, attributes = span.context, span.attributes
        if context is None or context.trace_id not in self._runs or attributes is None:
            return
        if attributes.get(SpanAttributes.OPENINFERENCE_SPAN_KIND) not in _KINDS:
            return
        texts = {text_hash(v) for k, v in attributes.items() if k.endswith(_CONTENT) and isinstance(v, str)}
        with self._lock:
            if context.trace_id in self._runs:
                self._texts.setdefault(context.trace_id, set()).update(texts)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Return that nothing waits."""
        return True


_NONE: set[str] = set()
