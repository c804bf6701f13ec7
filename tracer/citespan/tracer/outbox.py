"""The outbox: ended spans wait here for the network, never for longer than memory allows.

The SDK's batch processor bounds how many spans wait, not how large they are: 2,048 spans of 5 MB are 10 GB
beside a dead endpoint. The outbox bounds bytes too, sends in pieces that servers accept, and lets a program
end although nobody answers.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from dataclasses import dataclass
from itertools import islice
from operator import length_hint
from typing import cast

from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter

from citespan.tracer.faults import logger, warn_once

__all__ = ["Outbox", "OutboxLimits"]

_SPAN_BYTES = 600
_MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class OutboxLimits:
    """How much waits, and for how long."""

    waiting_spans: int = 2048
    """Most spans that wait (`OTEL_BSP_MAX_QUEUE_SIZE`); those that end beyond that are dropped."""

    waiting_bytes: int = 64 * _MEBIBYTE
    """Most bytes of text that wait; likewise."""

    message_spans: int = 512
    """Most spans in one message (`OTEL_BSP_MAX_EXPORT_BATCH_SIZE`)."""

    message_bytes: int = 8 * _MEBIBYTE
    """Most bytes of text in one message; a larger span goes alone."""

    delay_seconds: float = 5.0
    """How long a span waits for others to share a message (`OTEL_BSP_SCHEDULE_DELAY`)."""

    shutdown_seconds: float = 5.0
    """How long a program's end waits for a server that does not answer."""


class Outbox(SpanProcessor):
    """Hands ended spans to an exporter in a background thread; `on_end` never waits for it."""

    def __init__(self, exporter: SpanExporter, limits: OutboxLimits) -> None:
        """Start the thread."""
        self._exporter = exporter
        self._limits = limits
        self._is_closed = False
        self._is_abandoned = False
        self._lock = threading.Lock()
        self._queue: deque[ReadableSpan] = deque()
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._flushes: list[threading.Event] = []
        self._wake = threading.Event()
        self._thread = self._start_thread()
        if hasattr(os, "register_at_fork"):
            restart = weakref.WeakMethod(self._restart)
            os.register_at_fork(after_in_child=lambda: (restart() or _nothing)())

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Do nothing: only ended spans are sent."""

    def on_end(self, span: ReadableSpan) -> None:
        """Queue the span, or drop it where memory would not hold it."""
        context = span.context
        if context is None or not context.trace_flags.sampled or self._is_closed:
            return
        size = _size(span)
        limits = self._limits
        with self._lock:
            waiting = self._bytes + size
            has_room = waiting <= limits.waiting_bytes or not self._queue
            if has_room := has_room and len(self._queue) < limits.waiting_spans:
                self._queue.append(span)
                self._sizes.append(size)
                self._bytes = waiting
            is_due = len(self._queue) >= limits.message_spans or waiting >= limits.message_bytes
        if is_due and not self._wake.is_set():
            self._wake.set()
        if not has_room:
            warn_once("outbox_full", "the collector is down or too slow: spans are dropped")

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what waits; return whether everything was handed to the exporter in time."""
        flushed = threading.Event()
        with self._lock:
            self._flushes.append(flushed)
        self._wake.set()
        return self._is_closed or flushed.wait(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Send what waits, for at most `shutdown_seconds`, and stop."""
        if self._is_closed:
            return
        self._is_closed = True
        self._wake.set()
        self._thread.join(self._limits.shutdown_seconds)
        self._is_abandoned = True
        self._exporter.shutdown()  # ends a retry that is under way
        self._thread.join(1.0)

    def _start_thread(self) -> threading.Thread:
        thread = threading.Thread(target=self._work, name="citespan-outbox", daemon=True)
        thread.start()
        return thread

    def _restart(self) -> None:
        """Start again in a forked child, which has no thread and leaves the queue to its parent."""
        self._lock = threading.Lock()
        self._queue.clear()
        self._sizes.clear()
        self._bytes = 0
        self._flushes = []
        self._wake = threading.Event()
        self._thread = self._start_thread()

    def _work(self) -> None:
        suppressed = otel_context.set_value(otel_context._SUPPRESS_INSTRUMENTATION_KEY, True)  # pyright: ignore[reportPrivateUsage] # instrumented HTTP clients would trace the export itself
        otel_context.attach(suppressed)
        while True:
            self._wake.wait(self._limits.delay_seconds)
            self._wake.clear()
            is_last = self._is_closed
            with self._lock:
                flushes, self._flushes = self._flushes, []
            while not self._is_abandoned and (message := self._next_message()):
                self._send(message)
            for flushed in flushes:
                flushed.set()
            if is_last:
                return

    def _next_message(self) -> list[ReadableSpan]:
        """Take the oldest spans that fit into one message."""
        with self._lock:
            count, total = 0, 0
            for size in islice(self._sizes, self._limits.message_spans):
                if count and total + size > self._limits.message_bytes:
                    break
                count += 1
                total += size
            self._bytes -= total
            for _ in range(count):
                self._sizes.popleft()
            return [self._queue.popleft() for _ in range(count)]

    def _send(self, message: list[ReadableSpan]) -> None:
        try:
            self._exporter.export(message)
        except Exception:
            logger.exception("the exporter failed: %d spans are lost", len(message))


def _size(span: ReadableSpan) -> int:
    """Return roughly how many bytes the span takes: its texts, and a fixed share for the rest."""
    attributes = span.attributes
    if attributes is None:
        return _SPAN_BYTES
    # A copy because the SDK's own mapping is an order of magnitude slower to go through.
    values = cast("dict[str, object]", attributes).copy().values()
    return _SPAN_BYTES + sum(map(length_hint, values))


def _nothing() -> None:
    return None
