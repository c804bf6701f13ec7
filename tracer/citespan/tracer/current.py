"""The run that the calling code is part of, and how one starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opentelemetry import context as otel_context
from opentelemetry.trace import INVALID_SPAN

from citespan.tracer.capture import Citations, Labels, Passages, Run
from citespan.tracer.faults import log_fault, warn_once
from citespan.tracer.spans import base_context, now, run_in
from citespan.tracer.tracing import active_tracing

__all__ = ["answer", "answer_from", "current_run", "retrieved", "shown", "start_run"]


def start_run(
    question: str | None = None,
    *,
    name: str = "run",
    session_id: str | None = None,
    user_id: str | None = None,
    metadata: Mapping[str, object] | None = None,
    tags: Sequence[str] | None = None,
) -> Run:
    """Start a run that `finish()` ends: for streams and callbacks, where no `with` block can stand.

    Inside another run it records into that one, whose question, name and end are the ones that count.

    Args:
        question: What the user asked.
        name: Name of the run's span.
        session_id: The conversation it belongs to.
        user_id: Who asked.
        metadata: What reports may group by; JSON values.
        tags: Short words to filter by.
    """
    try:
        if (outer := current_run()) is not None:
            return Run.joining(outer)
        tracing = active_tracing()
        parent = base_context()
        span = tracing.tracer.start_span(name, context=parent, start_time=now(tracing))
        run = Run(tracing, span, parent)
    except Exception as fault:
        log_fault("start_run", fault)
        return Run(active_tracing(), INVALID_SPAN, otel_context.get_current())
    if span.is_recording():
        if tracing.tap is not None:
            tracing.tap.watch(span.get_span_context().trace_id)
        if question is not None:
            run.ask(question)
        run.identify(session_id, user_id, metadata, tags)
    return run


def current_run() -> Run | None:
    """Return the run that the calling code is part of, if any."""
    return run_in(otel_context.get_current())


def retrieved(passages: Passages, *, query: str | None = None, labels: Labels | None = None) -> None:
    """Record what a retrieval returned in the current run; as `Run.retrieved`."""
    if (run := _current_or_warn("retrieved")) is not None:
        run.retrieved(passages, query=query, labels=labels)


def shown(passages: Passages, *, labels: Labels | None = None) -> None:
    """Say which passages the prompt of the current run holds; as `Run.shown`."""
    if (run := _current_or_warn("shown")) is not None:
        run.shown(passages, labels=labels)


def answer(text: str, citations: Citations = ()) -> None:
    """Record the answer of the current run; as `Run.answer`."""
    if (run := _current_or_warn("answer")) is not None:
        run.answer(text, citations)


def answer_from(response: object, *, text: str | None = None) -> None:
    """Record the answer of a provider's response in the current run; as `Run.answer_from`."""
    if (run := _current_or_warn("answer_from")) is not None:
        run.answer_from(response, text=text)


def _current_or_warn(name: str) -> Run | None:
    run = current_run()
    if run is None:
        warn_once(f"no_run:{name}", f"citespan.tracer.{name}() was called outside a run: nothing is recorded")
    return run
