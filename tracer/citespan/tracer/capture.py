"""A run while it is being recorded: one CHAIN span, with RETRIEVER and LLM spans under it.

Everything is kept in the `Run` and written when its span ends, the record last but for the span kind:
a span that lost attributes lost the oldest, and never what tells that it did.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

from openinference.semconv.trace import OpenInferenceSpanKindValues, SpanAttributes
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span

from citespan.tracer.adapt import as_citations, as_passages
from citespan.tracer.attributes import RUN, write_record
from citespan.tracer.citations import Citation
from citespan.tracer.faults import log_fault
from citespan.tracer.passage_log import LoggedPassage, PassageLog, redacted_passages
from citespan.tracer.passages import Passage
from citespan.tracer.providers import read_answer
from citespan.tracer.providers.ranges import only_place
from citespan.tracer.redaction import Redaction, RedactionNotes, common_length, redact
from citespan.tracer.spans import SpanBlock, now, record_error, run_in, with_run
from citespan.tracer.steps import Generation, Prompt, Retrieval, record_retrieval
from citespan.tracer.text import clean_text
from citespan.tracer.tracing import Tracing

__all__ = ["Citations", "Labels", "Passages", "Run"]

_CHAIN = OpenInferenceSpanKindValues.CHAIN.value
_IDENTITY = (
    SpanAttributes.SESSION_ID,
    SpanAttributes.USER_ID,
    SpanAttributes.METADATA,
    SpanAttributes.TAG_TAGS,
)

Passages = Iterable[object]
"""Passages, dicts, strings, LangChain or Haystack documents, LlamaIndex nodes."""

Labels = Sequence[object] | str
"""One label per passage, or a form such as `"{n}"` or `"P{n}"` that numbers them from 1."""

Citations = Iterable["Citation | Mapping[str, object] | str"]
"""Citations, dicts `{"passage_id", "start"?, "end"?, "quote"?}`, or passage ids alone."""


class Run:
    """One question being answered.

    Its methods never raise and may be called from any thread.
    """

    __slots__ = (
        "_answer",
        "_chunks",
        "_citations",
        "_identity",
        "_is_answer_cut",
        "_is_answer_said",
        "_outer",
        "_question",
        "context",
        "is_finished",
        "log",
        "parent_context",
        "span",
        "tracing",
    )

    def __init__(self, tracing: Tracing, span: Span, parent: Context) -> None:
        """Begin to record on `span`; apps use `run()` or `start_run()`."""
        self.tracing = tracing
        """How it is recorded."""
        self.span = span
        """The run's span."""
        self.parent_context = parent
        """OpenTelemetry's context as it was before the run."""
        self.context = with_run(parent, span, self)
        """OpenTelemetry's context with the run in it."""
        self.is_finished = False
        """Whether the run's span has ended."""
        self.log = PassageLog(tracing.redaction.passages)
        """What was retrieved and shown."""
        self._question: str | None = None
        self._answer: str | None = None
        self._chunks: list[str] = []
        self._citations: tuple[Citation, ...] = ()
        self._identity: dict[str, str | list[str]] = {}
        self._is_answer_said = False
        self._is_answer_cut = False
        self._outer: Run | None = None

    @classmethod
    def joining(cls, outer: Run) -> Run:
        """Return a run that records into `outer`, the one it happens in: nothing is recorded twice."""
        joined = cls(outer.tracing, outer.span, outer.parent_context)
        joined.context = otel_context.get_current()
        joined.log = outer.log
        joined._outer = outer
        return joined

    @property
    def trace_id(self) -> str:
        """The trace's id, 32 lower-case hex digits: keep it to link user feedback."""
        return trace.format_trace_id(self.span.get_span_context().trace_id)

    @property
    def span_id(self) -> str:
        """The id of the run's span, 16 lower-case hex digits."""
        return trace.format_span_id(self.span.get_span_context().span_id)

    @property
    def is_recording(self) -> bool:
        """Whether anything is recorded: the trace is sampled and the run is not finished."""
        return self.span.is_recording()

    def retrieved(
        self, passages: Passages, *, query: str | None = None, labels: Labels | None = None
    ) -> None:
        """Record what a retrieval returned.

        Args:
            passages: What came back, best first.
            query: What was searched for, where it is not the question.
            labels: The labels the passages are shown to the model under, where they do not carry them.
        """
        try:
            if self.is_recording:
                entries = self.log.retrieve(as_passages(passages, labels))
                record_retrieval(self, "retrieval", query, entries)
        except Exception as fault:
            log_fault("Run.retrieved", fault)

    def shown(self, passages: Passages, *, labels: Labels | None = None) -> None:
        """Say which passages the prompt holds, in order, where that is not simply what was retrieved.

        After a reranker or a cut, markers such as `[2]` refer to this order and these labels.
        Texts that no retrieval recorded are recorded here. The last call counts.
        """
        try:
            if self.is_recording and (unrecorded := self.log.show(as_passages(passages, labels))):
                record_retrieval(self, "shown", None, unrecorded)
        except Exception as fault:
            log_fault("Run.shown", fault)

    def retrieval(self, query: str | None = None, *, name: str = "retrieval") -> Retrieval:
        """Return a `with` block round a retrieval, which records its time too."""
        return Retrieval(self, name, query)

    def generation(
        self,
        *,
        model: str | None = None,
        provider: str | None = None,
        prompt: Prompt | None = None,
        name: str = "generation",
    ) -> Generation:
        """Return a `with` block round a model call, where no other instrumentor records it.

        Args:
            model: The model's name.
            provider: Who runs it, for example `openai`.
            prompt: The prompt, as text or as messages with `role` and `content`.
            name: Name of the span.
        """
        return Generation(self, name, model=model, provider=provider, prompt=prompt)

    def answer(self, text: str, citations: Citations = ()) -> None:
        """Record the answer; the last call counts.

        Args:
            text: The answer as the user sees it, with its markers.
            citations: What the app or the provider says it leans on, beside the markers in the text.
        """
        if self._outer is not None:
            self._outer.answer(text, citations)
            return
        try:
            if self.is_recording:
                self._answer = clean_text(text)
                self._is_answer_said = True
                self._citations = as_citations(citations, len(text)) if citations else ()
        except Exception as fault:
            log_fault("Run.answer", fault)

    def answer_from(self, response: object, *, text: str | None = None) -> None:
        """Record the answer of a provider's response, with its citations and the passages that it carries.

        Args:
            response: The SDK's response object, its JSON, or the list of its stream's events; from OpenAI,
                Azure, Perplexity, Anthropic, Cohere, Gemini, Bedrock, Mistral, or LangChain.
            text: The answer as the user sees it, where the app changed it.
        """
        try:
            if self.is_recording:
                self._record_response(response, text)
        except Exception as fault:
            log_fault("Run.answer_from", fault)

    def _record_response(self, response: object, text: str | None) -> None:
        given = [Passage(p.id, p.text, label=p.label, url=p.url) for p in self.log.shown]
        found = read_answer(response, given)
        if found is None:
            if text is not None:
                self.answer(text)
            raise TypeError(f"{type(response).__name__} is no provider's response that citespan knows")
        ids, new = self.log.carry(found.passages)
        if new:
            record_retrieval(self, "carried by the response", None, new)
        shown = found.text if text is None else text
        self.answer(shown, [_moved(citation, ids, found.text, shown) for citation in found.citations])

    def answer_chunk(self, text: str) -> None:
        """Record the next part of a streamed answer; `answer()` replaces what the parts make."""
        if self._outer is not None:
            self._outer.answer_chunk(text)
            return
        try:
            if self.is_recording:
                self._chunks.append(clean_text(text))
        except Exception as fault:
            log_fault("Run.answer_chunk", fault)

    def returned(self, text: str, *, is_cut: bool = False) -> None:
        """Record a function's result as the answer, unless the app says what the answer is.

        Args:
            text: The result, or what of it was streamed.
            is_cut: Whether the reader of the stream left before its end.
        """
        if self._outer is not None:
            self._outer.returned(text, is_cut=is_cut)
        elif not self._is_answer_said:
            self._answer = clean_text(text)
            self._is_answer_cut = is_cut

    def finish(self, error: BaseException | None = None) -> None:
        """Write everything and end the run's span; later calls, and those inside another run, do nothing.

        Args:
            error: The exception that ended the run, if one did.
        """
        if self.is_finished or self._outer is not None:
            return
        try:
            if self.is_recording:
                if error is not None:
                    record_error(self.span, error, hides_text=self.tracing.redaction.is_active)
                self.span.set_attributes(self._final_attributes())
        except Exception as fault:
            self.span.set_attribute(SpanAttributes.OPENINFERENCE_SPAN_KIND, _CHAIN)
            log_fault("Run.finish", fault)
        finally:
            self.is_finished = True
            if self.tracing.tap is not None:
                self.tracing.tap.forget(self.span.get_span_context().trace_id)
            self.context = self.parent_context  # the context holds the run: left alone, a cycle
            self.span.end(now(self.tracing))

    @contextmanager
    def active(self) -> Generator[Run]:
        """Make a run from `start_run()` current in a block, so that other instrumentors' spans join it."""
        block = SpanBlock(self.context)
        block.enter()
        try:
            yield self
        finally:
            block.exit()

    def ask(self, question: str) -> None:
        """Record the question."""
        try:
            self._question = clean_text(question)
        except Exception as fault:
            log_fault("the question of a run", fault)

    def unrecorded(self, entries: Sequence[LoggedPassage]) -> Sequence[LoggedPassage]:
        """Return those of the passages whose text no other instrumentor has recorded in this trace."""
        tap = self.tracing.tap
        texts = None if tap is None else tap.texts(self.span.get_span_context().trace_id)
        return [entry for entry in entries if entry.identity not in texts] if texts else entries

    def step_parent(self) -> Context:
        """Return the context a new step belongs under: the current one inside the run, else the run's own."""
        current = otel_context.get_current()
        return current if run_in(current) is (self._outer or self) else self.context

    def identify(
        self,
        session_id: str | None,
        user_id: str | None,
        metadata: Mapping[str, object] | None,
        tags: Sequence[str] | None,
    ) -> None:
        """Say whose run it is, and hand the session on to other instrumentors inside it.

        What is not given is taken from OpenInference's `using_session()`, `using_user()` and their like.
        """
        if not self.parent_context and session_id is None is user_id and metadata is None is tags:
            return
        try:
            given: tuple[str | list[str] | None, ...] = (
                session_id,
                user_id,
                None if metadata is None else json.dumps(dict(metadata), ensure_ascii=False, default=str),
                None if tags is None else [clean_text(tag) for tag in tags],
            )
            for key, value in zip(_IDENTITY, given, strict=True):
                self._identify(key, value)
        except Exception as fault:
            log_fault("who asks", fault)

    def _identify(self, key: str, value: str | list[str] | None) -> None:
        if value is not None:
            self._identity[key] = clean_text(value) if isinstance(value, str) else value
            self.context = otel_context.set_value(key, self._identity[key], self.context)
            return
        inherited = self.parent_context.get(key)
        if isinstance(inherited, str):
            self._identity[key] = inherited
        elif isinstance(inherited, list | tuple):
            self._identity[key] = [str(tag) for tag in cast("Sequence[object]", inherited)]

    def _final_attributes(self) -> dict[str, str | list[str]]:
        redaction = self.tracing.redaction
        attributes = self._identity
        passages = self.log.shown
        notes = RedactionNotes(*redacted_passages(passages))
        if self._question is not None:
            question = notes.recorded(redaction.question, self._question, "question")
            attributes[SpanAttributes.INPUT_VALUE] = question
        citations = self._citations
        answer = self._final_answer()
        if answer is not None:
            recorded = notes.recorded(redaction.answer, answer, "answer", is_cut=self._is_answer_cut)
            attributes[SpanAttributes.OUTPUT_VALUE] = recorded
            citations = _within(citations, common_length(answer, recorded), redaction) if citations else ()
        attributes[RUN] = write_record(
            passages, passage_count=len(passages), citations=citations, hidden=notes.hidden, cut=notes.cut
        )
        attributes[SpanAttributes.OPENINFERENCE_SPAN_KIND] = _CHAIN
        return attributes

    def _final_answer(self) -> str | None:
        if self._chunks and not self._is_answer_said:
            return "".join(self._chunks)
        return self._answer


def _moved(citation: Citation, ids: Mapping[str, str], text: str, shown: str) -> Citation:
    """Return a citation of `text` as one of the text shown: by the run's ids, where the same words stand."""
    start, end = citation.start, citation.end
    if start is not None and end is not None and shown[start:end] != text[start:end]:
        start, end = only_place(shown, text[start:end]) or (None, None)
    passage_id = ids.get(citation.passage_id, citation.passage_id)
    return replace(citation, passage_id=passage_id, start=start, end=end)


def _within(citations: tuple[Citation, ...], length: int, redaction: Redaction) -> tuple[Citation, ...]:
    """Return the citations without ranges that no longer fit what is recorded of the answer."""
    return tuple(
        Citation(
            passage_id=citation.passage_id,
            start=citation.start if (citation.end or 0) <= length else None,
            end=citation.end if (citation.end or 0) <= length else None,
            origin=citation.origin,
            quote=None if citation.quote is None else redact(redaction.passages, citation.quote).text,
        )
        for citation in citations
    )
