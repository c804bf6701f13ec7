"""The steps of a run: a retrieval (RETRIEVER span) and a generation (LLM span), each a `with` block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from openinference.semconv.trace import MessageAttributes, OpenInferenceSpanKindValues, SpanAttributes
from opentelemetry import trace
from opentelemetry.trace import INVALID_SPAN, Span

from citespan.tracer.adapt import as_passages
from citespan.tracer.faults import log_fault
from citespan.tracer.passage_log import LoggedPassage, document_attributes
from citespan.tracer.redaction import Rule, redacted_text
from citespan.tracer.spans import SpanBlock, now, record_error
from citespan.tracer.text import clean_text

if TYPE_CHECKING:
    from citespan.tracer.capture import Run

__all__ = ["Generation", "Prompt", "Retrieval", "record_retrieval"]

_KIND = SpanAttributes.OPENINFERENCE_SPAN_KIND
_CHAIN = OpenInferenceSpanKindValues.CHAIN.value
_RETRIEVER = OpenInferenceSpanKindValues.RETRIEVER.value
_LLM = OpenInferenceSpanKindValues.LLM.value
_OUTPUT_ROLE = f"{SpanAttributes.LLM_OUTPUT_MESSAGES}.0.{MessageAttributes.MESSAGE_ROLE}"
_OUTPUT_CONTENT = f"{SpanAttributes.LLM_OUTPUT_MESSAGES}.0.{MessageAttributes.MESSAGE_CONTENT}"

Prompt = str | Sequence[Mapping[str, object]]
"""A prompt: text, or messages with `role` and `content`."""

Attributes = dict[str, str | float]
"""Attributes of a step's span."""


class StepSpan:
    """The span of one step: under the run, current inside the block, never an error for the host."""

    __slots__ = ("_block", "_run", "span")

    def __init__(self, run: Run) -> None:
        """Prepare a step of `run`."""
        self._run = run
        self._block: SpanBlock | None = None
        self.span: Span = INVALID_SPAN
        """The step's span, once started."""

    def start(self, name: str) -> None:
        """Start the span and make it current."""
        run = self._run
        if not run.is_recording:
            return
        try:
            parent = run.step_parent()
            self.span = run.tracing.tracer.start_span(name, context=parent, start_time=now(run.tracing))
            self._block = SpanBlock(trace.set_span_in_context(self.span, parent))
            self._block.enter()
        except Exception as error:
            log_fault("the start of a step", error)

    def end(self, attributes: Attributes, error: BaseException | None) -> None:
        """Write the attributes and end the span."""
        if self._block is not None:
            self._block.exit()
        try:
            self.span.set_attributes(attributes)
            if error is not None:
                record_error(self.span, error, hides_text=self._run.tracing.redaction.is_active)
            self.span.end(now(self._run.tracing))
        except Exception as fault:
            log_fault("the end of a step", fault)


class Retrieval:
    """A retrieval while it happens."""

    __slots__ = ("_entries", "_name", "_query", "_run", "_step")

    def __init__(self, run: Run, name: str, query: str | None) -> None:
        """Prepare the step; it starts with the `with` block."""
        self._run = run
        self._name = name
        self._query = query
        self._entries: list[LoggedPassage] = []
        self._step = StepSpan(run)

    def __enter__(self) -> Retrieval:
        """Start the span."""
        self._step.start(self._name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        """End the span; an exception of the block is recorded and goes on."""
        attributes: Attributes = {_KIND: _RETRIEVER}
        try:
            if self._run.is_recording:
                unrecorded = self._run.unrecorded(self._entries)
                attributes = _retrieval_attributes(self._run, self._query, unrecorded)
                if self._entries and not unrecorded:  # another retriever's span is inside this one
                    attributes[_KIND] = _CHAIN
        except Exception as fault:
            log_fault("the end of a retrieval", fault)
        finally:
            self._step.end(attributes, error)
        return False

    def retrieved(self, passages: Iterable[object], *, labels: Sequence[object] | str | None = None) -> None:
        """Record what came back; as `Run.retrieved`."""
        try:
            if self._run.is_recording:
                self._entries += self._run.log.retrieve(as_passages(passages, labels))
        except Exception as fault:
            log_fault("Retrieval.retrieved", fault)


def record_retrieval(run: Run, name: str, query: str | None, entries: Sequence[LoggedPassage]) -> None:
    """Record a retrieval that is over, as a span without duration.

    Texts that another instrumentor has recorded are left to it; a retrieval that found nothing is recorded.
    """
    if not (unrecorded := run.unrecorded(entries)) and entries:
        return
    tracing = run.tracing
    span = tracing.tracer.start_span(name, context=run.step_parent(), start_time=now(tracing))
    try:
        span.set_attributes(_retrieval_attributes(run, query, unrecorded))
    finally:
        span.end(now(tracing))


def _retrieval_attributes(run: Run, query: str | None, entries: Sequence[LoggedPassage]) -> Attributes:
    redaction = run.tracing.redaction
    attributes = document_attributes(entries, redaction.passages)
    if query is not None:
        attributes[SpanAttributes.INPUT_VALUE] = redacted_text(redaction.question, clean_text(query))
    attributes[_KIND] = _RETRIEVER
    return attributes


class Generation:
    """A model call while it happens."""

    __slots__ = ("_attributes", "_name", "_output", "_prompt", "_run", "_step")

    def __init__(
        self, run: Run, name: str, *, model: str | None, provider: str | None, prompt: Prompt | None
    ) -> None:
        """Prepare the step; it starts with the `with` block."""
        self._run = run
        self._name = name
        self._prompt = prompt
        self._output: str | None = None
        self._attributes: Attributes = {}
        if model is not None:
            self._attributes[SpanAttributes.LLM_MODEL_NAME] = model
        if provider is not None:
            self._attributes[SpanAttributes.LLM_PROVIDER] = provider
        self._step = StepSpan(run)

    def __enter__(self) -> Generation:
        """Start the span."""
        self._step.start(self._name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        """End the span; an exception of the block is recorded and goes on."""
        attributes: Attributes = {_KIND: _LLM}
        try:
            if self._run.is_recording:
                attributes = self._final_attributes()
        except Exception as fault:
            log_fault("the end of a generation", fault)
        finally:
            self._step.end(attributes, error)
        return False

    def output(self, text: str) -> None:
        """Record the text that the model returned."""
        self._output = text

    def tokens(self, *, prompt: int, completion: int) -> None:
        """Record how many tokens the provider counted."""
        self._attributes[SpanAttributes.LLM_TOKEN_COUNT_PROMPT] = prompt
        self._attributes[SpanAttributes.LLM_TOKEN_COUNT_COMPLETION] = completion
        self._attributes[SpanAttributes.LLM_TOKEN_COUNT_TOTAL] = prompt + completion

    def _final_attributes(self) -> Attributes:
        redaction = self._run.tracing.redaction
        attributes = self._attributes
        if self._prompt is not None:
            attributes |= _prompt_attributes(self._prompt, redaction.prompt_rule)
        if self._output is not None:
            output = redacted_text(redaction.answer, clean_text(self._output))
            attributes[_OUTPUT_ROLE] = "assistant"
            attributes[_OUTPUT_CONTENT] = output
            attributes[SpanAttributes.OUTPUT_VALUE] = output
        attributes[_KIND] = _LLM
        return attributes


def _prompt_attributes(prompt: Prompt, rule: Rule | None) -> Attributes:
    attributes: Attributes = {}
    messages: Sequence[Mapping[str, object]] = [{"content": prompt}] if isinstance(prompt, str) else prompt
    for n, message in enumerate(messages):
        prefix = f"{SpanAttributes.LLM_INPUT_MESSAGES}.{n}."
        content = redacted_text(rule, clean_text(str(message.get("content", ""))))
        attributes[prefix + MessageAttributes.MESSAGE_ROLE] = str(message.get("role", "user"))
        attributes[prefix + MessageAttributes.MESSAGE_CONTENT] = content
    return attributes
