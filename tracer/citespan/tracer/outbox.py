"""The outbox: ended spans wait here for the network, never for longer than memory allows.

The SDK's batch processor bounds the number of spans, not their size: 2,048 spans of 5 MB are 10 GB beside a
dead endpoint. The outbox counts bytes too, sends a batch in pieces that servers accept, and lets a program
end although nobody answers.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator, Sequence

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from citespan.tracer.faults import warn_once

__all__ = ["MAX_BYTES", "Outbox"]

MAX_BYTES = 64 * 1024 * 1024
"""Most bytes of attributes that wait; spans that end beyond that are dropped, and one warning says so."""

SHUTDOWN_SECONDS = 5.0
"""How long a program's end waits for a server that does not answer."""

_SPAN_BYTES = 600


class Outbox(SpanProcessor):
    """Hands ended spans to an exporter in the background; `on_end` never waits."""

    def __init__(self, exporter: SpanExporter, *, max_bytes: int = MAX_BYTES, max_message_bytes: int) -> None:
        """Start the background thread.

        Args:
            exporter: Where spans go.
            max_bytes: Most bytes of attributes that wait.
            max_message_bytes: Most bytes of attributes in one export; a larger span goes alone.
        """
        self._pending = _Pending(max_bytes)
        self._exporter = _Sender(exporter, self._pending, max_message_bytes)
        self._batches = BatchSpanProcessor(self._exporter)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Do nothing: only ended spans are sent."""

    def on_end(self, span: ReadableSpan) -> None:
        """Queue the span, or drop it where memory would not hold it."""
        if span.context is None or not span.context.trace_flags.sampled:
            return
        if self._pending.add(_size(span)):
            self._batches.on_end(span)
        else:
            warn_once("outbox_full", "the collector is too slow or down: spans are dropped")

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what waits; return whether everything was handed to the exporter in time."""
        sent = threading.Thread(target=self._batches.force_flush, name="citespan-flush", daemon=True)
        sent.start()
        sent.join(timeout_millis / 1000)
        return not sent.is_alive()

    def shutdown(self) -> None:
        """Send what waits, for at most `SHUTDOWN_SECONDS`, and stop."""
        timer = threading.Timer(SHUTDOWN_SECONDS, self._exporter.abandon)
        timer.daemon = True
        timer.start()
        self._batches.shutdown()  # type: ignore[no-untyped-call]
        timer.cancel()


class _Pending:
    """Bytes that wait, counted by the threads that end spans and the one that sends them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            reset = weakref.WeakMethod(self._reset)
            os.register_at_fork(after_in_child=lambda: (reset() or _nothing)())

    def add(self, size: int) -> bool:
        with self._lock:
            if self._bytes and self._bytes + size > self._limit:
                return False
            self._bytes += size
            return True

    def remove(self, size: int) -> None:
        with self._lock:
            self._bytes = max(0, self._bytes - size)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._bytes = 0


class _Sender(SpanExporter):
    """Sends a batch in pieces of bounded size, and nothing after it was told to give up."""

    def __init__(self, exporter: SpanExporter, pending: _Pending, max_message_bytes: int) -> None:
        self._exporter = exporter
        self._pending = pending
        self._max_message_bytes = max_message_bytes
        self._is_abandoned = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = SpanExportResult.SUCCESS
        for piece, size in _pieces(spans, self._max_message_bytes):
            try:
                if self._is_abandoned or self._exporter.export(piece) is not SpanExportResult.SUCCESS:
                    result = SpanExportResult.FAILURE
            finally:
                self._pending.remove(size)
        return result

    def abandon(self) -> None:
        """Stop sending: the exporter's own shutdown ends a retry that is under way."""
        self._is_abandoned = True
        self._exporter.shutdown()

    def shutdown(self) -> None:
        if not self._is_abandoned:
            self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def _pieces(spans: Sequence[ReadableSpan], limit: int) -> Iterator[tuple[list[ReadableSpan], int]]:
    piece: list[ReadableSpan] = []
    total = 0
    for span in spans:
        size = _size(span)
        if piece and total + size > limit:
            yield piece, total
            piece, total = [], 0
        piece.append(span)
        total += size
    if piece:
        yield piece, total


def _size(span: ReadableSpan) -> int:
    """Return roughly how many bytes the span takes: its texts, and a fixed share for the rest."""
    total = _SPAN_BYTES
    for value in (span.attributes or {}).values():
        if type(value) is str:
            total += len(value)
    return total


def _nothing() -> None:
    return None
