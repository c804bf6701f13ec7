"""Span mechanics that every recorded step needs: context, clock, errors."""

from __future__ import annotations

from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, cast

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, Status, StatusCode

if TYPE_CHECKING:
    from citespan.tracer.capture import Run
    from citespan.tracer.tracing import Tracing

__all__ = ["SpanBlock", "base_context", "now", "record_error", "run_in", "with_run"]

_RUN_KEY = otel_context.create_key("citespan-run")


def run_in(context: Context) -> Run | None:
    """Return the unfinished run that `context` holds, if any."""
    run = cast("Run | None", context.get(_RUN_KEY))
    return None if run is None or run.is_finished else run


def with_run(context: Context, span: Span, run: Run) -> Context:
    """Return `context` with the run and its span current."""
    return otel_context.set_value(_RUN_KEY, run, trace.set_span_in_context(span, context))


def base_context() -> Context:
    """Return the current context without finished runs, whose traces nothing new belongs to.

    Such a context stays behind where generators end out of order, or in tasks that outlive a run.
    """
    context = otel_context.get_current()
    while (run := cast("Run | None", context.get(_RUN_KEY))) is not None and run.is_finished:
        context = run.parent_context
    return context


def now(tracing: Tracing) -> int | None:
    """Return the time for a span's start or end, or `None` for the SDK's own clock."""
    return None if tracing.clock is None else tracing.clock()


def record_error(span: Span, error: BaseException, *, hides_text: bool) -> None:
    """Give the span ERROR status and the exception.

    Args:
        span: The span that failed.
        error: What the host raised.
        hides_text: Leave out message and stack trace, which may repeat what redaction keeps out.
    """
    kind = type(error).__qualname__
    if hides_text:
        span.add_event("exception", {"exception.type": kind})
        span.set_status(Status(StatusCode.ERROR, kind))
    else:
        span.record_exception(error)
        span.set_status(Status(StatusCode.ERROR, f"{kind}: {error}"))


class SpanBlock:
    """Makes a context current from `enter` to `exit`, or in a `with` block."""

    __slots__ = ("_context", "_token")

    def __init__(self, context: Context) -> None:
        """Prepare to make `context` current."""
        self._context = context
        self._token: Token[Context] | None = None

    def enter(self) -> None:
        """Make the context current."""
        self._token = otel_context.attach(self._context)

    def exit(self) -> None:
        """Put back what was current, if this context still is: another thread's or task's is left alone."""
        if self._token is not None and otel_context.get_current() is self._context:
            otel_context.detach(self._token)
        self._token = None

    def __enter__(self) -> SpanBlock:
        """Make the context current."""
        self.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put back what was current."""
        self.exit()
