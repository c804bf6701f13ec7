"""The steps of a run: a retrieval (RETRIEVER span) and a generation (LLM span), each a `with` block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from openinference.semconv.trace import MessageAttributes, OpenInferenceSpanKindValues, SpanAttributes
from opentelemetry import trace
from opentelemetry.trace import INVALID_SPAN, Span

from citespan.tracer.adapt import as_passages
from citespan.tracer.faults import guarded
from citespan.tracer.passage_log import LoggedPassage, document_attributes
from citespan.tracer.redaction import redact
from citespan.tracer.spans import SpanBlock, now, record_error
from citespan.tracer.text import clean_text

if TYPE_CHECKING:
    from citespan.tracer.capture import Run

__all__ = ["Generation", "Retrieval"]

_KIND = SpanAttributes.OPENINFERENCE_SPAN_KIND
_RETRIEVER = OpenInferenceSpanKindValues.RETRIEVER.value
_LLM = OpenInferenceSpanKindValues.LLM.value


class StepSpan:
    """The span of one step: started under the run, current inside the block, never an error for the host."""

    __slots__ = ("_block", "_run", "span")

    def __init__(self, run: Run) -> None:
        """Prepare a step of `run`."""
        self._run = run
        self._block: SpanBlock | None = None
        self.span: Span = INVALID_SPAN
        """The step's span, once started."""

    @guarded(lambda: None)
    def start(self, name: str, *, is_current: bool) -> None:
        """Start the span, and make it current where code runs inside it."""
        run = self._run
        if not run.is_recording:
            return
        parent = run.step_parent()
        self.span = run.tracing.tracer.start_span(name, context=parent, start_time=now(run.tracing))
        if is_current:
            self._block = SpanBlock(trace.set_span_in_context(self.span, parent))
            self._block.enter()

    @guarded(lambda: None)
    def end(self, attributes: Mapping[str, str | float], error: BaseException | None) -> None:
        """Write the attributes and end the span."""
        if self._block is not None:
            self._block.exit()
        if not self.span.is_recording():
            return
        try:
            self.span.set_attributes(attributes)
            if error is not None:
                record_error(self.span, error, hides_text=self._run.tracing.redaction.is_active)
        finally:
            self.span.end(now(self._run.tracing))


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
        self._step.start(self._name, is_current=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        """End the span; an exception of the block is recorded and goes on."""
        self._end(error)
        return False

    @guarded(lambda: None)
    def retrieved(self, passages: Iterable[object], *, labels: Sequence[object] | str | None = None) -> None:
        """Record what came back; as `Run.retrieved`."""
        if self._run.is_recording:
            self._entries += self._run.log.retrieve(as_passages(passages, labels))

    def record(self, entries: Iterable[LoggedPassage]) -> None:
        """Write a retrieval that is over as a span without duration."""
        self._step.start(self._name, is_current=False)
        self._entries += entries
        self._end(None)

    @guarded(lambda: None)
    def _end(self, error: BaseException | None) -> None:
        if not self._step.span.is_recording():
            self._step.end({}, error)
            return
        redaction = self._run.tracing.redaction
        attributes: dict[str, str | float] = {}
        if self._query is not None:
            query = redact(redaction.question, clean_text(self._query))
            attributes[SpanAttributes.INPUT_VALUE] = query.text
        attributes |= document_attributes(self._entries, redaction.passages)
        attributes[_KIND] = _RETRIEVER
        self._step.end(attributes, error)


Prompt = str | Sequence[Mapping[str, object]]
"""A prompt: text, or messages with `role` and `content`."""


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
        self._attributes: dict[str, str | float] = {}
        if model is not None:
            self._attributes[SpanAttributes.LLM_MODEL_NAME] = model
        if provider is not None:
            self._attributes[SpanAttributes.LLM_PROVIDER] = provider
        self._step = StepSpan(run)

    def __enter__(self) -> Generation:
        """Start the span."""
        self._step.start(self._name, is_current=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        """End the span; an exception of the block is recorded and goes on."""
        self._end(error)
        return False

    def output(self, text: str) -> None:
        """Record the text that the model returned."""
        self._output = text

    def tokens(self, *, prompt: int, completion: int) -> None:
        """Record how many tokens the provider counted."""
        self._attributes[SpanAttributes.LLM_TOKEN_COUNT_PROMPT] = prompt
        self._attributes[SpanAttributes.LLM_TOKEN_COUNT_COMPLETION] = completion
        self._attributes[SpanAttributes.LLM_TOKEN_COUNT_TOTAL] = prompt + completion

    @guarded(lambda: None)
    def _end(self, error: BaseException | None) -> None:
        attributes: dict[str, str | float] = {}
        try:
            if self._step.span.is_recording():
                attributes = self._final_attributes()
        finally:
            self._step.end(attributes, error)

    def _final_attributes(self) -> dict[str, str | float]:
        redaction = self._run.tracing.redaction
        attributes = self._attributes
        if self._prompt is not None:
            messages = _messages(self._prompt)
            for n, (role, content) in enumerate(messages):
                prefix = f"{SpanAttributes.LLM_INPUT_MESSAGES}.{n}."
                attributes[prefix + MessageAttributes.MESSAGE_ROLE] = role
                attributes[prefix + MessageAttributes.MESSAGE_CONTENT] = redact(
                    redaction.prompt_rule, content
                ).text
        if self._output is not None:
            output = redact(redaction.answer, clean_text(self._output)).text
            prefix = f"{SpanAttributes.LLM_OUTPUT_MESSAGES}.0."
            attributes[prefix + MessageAttributes.MESSAGE_ROLE] = "assistant"
            attributes[prefix + MessageAttributes.MESSAGE_CONTENT] = output
            attributes[SpanAttributes.OUTPUT_VALUE] = output
        attributes[_KIND] = _LLM
        return attributes


def _messages(prompt: Prompt) -> list[tuple[str, str]]:
    if isinstance(prompt, str):
        return [("user", clean_text(prompt))]
    return [
        (str(message.get("role", "user")), clean_text(str(message.get("content", "")))) for message in prompt
    ]
