"""Read runs that the app recorded with `citespan.tracer`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from citespan.evaluators.reading.documents import Document, documents_of, metadata_of
from citespan.evaluators.runs import Run, RunOrigin, RunState
from citespan.evaluators.sources.source import Span, Trace
from citespan.tracer.attributes import RUN, RecordedPassage, RunRecord
from citespan.tracer.errors import RecordError
from citespan.tracer.passages import Passage
from citespan.tracer.redaction import HIDDEN
from citespan.tracer.text import clean_text, text_hash

__all__ = ["read_explicit_runs"]


def read_explicit_runs(trace: Trace) -> tuple[Run, ...]:
    """Return the runs whose spans carry a `citespan.run` record, in start order.

    A record that cannot be read gives a run in the state `incomplete`, with the reason that `RecordError` names.
    """
    spans = _Spans(trace)
    return tuple(_read(span, spans) for span in trace.spans if RUN in span.attributes)


class _Spans:
    """The spans of one trace as a tree."""

    def __init__(self, trace: Trace) -> None:
        self.all = trace.spans
        self._by_id = {span.span_id: span for span in trace.spans}
        self._children: dict[str | None, list[Span]] = {}
        for span in trace.spans:
            self._children.setdefault(span.parent_id, []).append(span)

    def top_of(self, span: Span) -> Span:
        """Return the topmost span above `span` that the trace has."""
        seen = {span.span_id}
        while span.parent_id in self._by_id and span.parent_id not in seen:
            span = self._by_id[span.parent_id]
            seen.add(span.span_id)
        return span

    def under(self, span: Span) -> Iterator[Span]:
        """Yield `span` and everything under it."""
        waiting, seen = [span], {span.span_id}
        while waiting:
            current = waiting.pop()
            yield current
            children = [c for c in self._children.get(current.span_id, ()) if c.span_id not in seen]
            seen.update(child.span_id for child in children)
            waiting += children


def _read(span: Span, spans: _Spans) -> Run:
    root = spans.top_of(span)
    origin = RunOrigin(
        trace_id=span.trace_id,
        root_span_id=root.span_id,
        answer_span_id=span.span_id,
        answer_start_ns=span.start_ns,
        answer_end_ns=span.end_ns,
        is_parent_missing=root.parent_id is not None,
        session_id=_text(root, "session.id") or _text(span, "session.id"),
    )
    run = Run(
        id=f"{span.trace_id}:{span.span_id}",
        question=_text(span, "input.value"),
        answer=_text(span, "output.value"),
        passages=(),
        origin=origin,
        reasons=("parent_not_in_phoenix",) if origin.is_parent_missing else (),
        metadata=metadata_of(span.attributes),
    )
    try:
        record = RunRecord.from_json(span.attributes[RUN])
    except RecordError as error:
        return replace(run, state=RunState.INCOMPLETE, reasons=(*run.reasons, error.reason))
    return _with_record(run, record, span, spans)


def _with_record(run: Run, record: RunRecord, span: Span, spans: _Spans) -> Run:
    near = [document for child in spans.under(span) for document in documents_of(child)]
    texts = _Texts(near, [document for other in spans.all for document in documents_of(other)])
    passages: list[Passage] = []
    span_ids: dict[str, str] = {}
    reasons = list(run.reasons)
    for recorded in record.passages:
        is_hidden = "passages" in record.hidden or f"passage:{recorded.id}" in record.hidden
        is_cut = "passages" in record.cut or f"passage:{recorded.id}" in record.cut
        found = texts.find(recorded, is_hidden=is_hidden, is_cut=is_cut)
        passages.append(found.passage)
        reasons += [found.reason] if found.reason else []
        if found.span_id is not None:
            span_ids[recorded.id] = found.span_id
    reasons += ["question_hidden"] if "question" in record.hidden else []
    reasons += ["answer_cut"] if "answer" in record.cut else []
    lost = max(0, record.passage_count - len(passages))
    retrieved = any(child.kind == "RETRIEVER" for child in spans.under(span))
    read = replace(
        run,
        question=None if "question" in record.hidden else run.question,
        answer=None if "answer" in record.hidden else run.answer,
        passages=tuple(passages),
        citations=record.citations,
        passages_lost=lost,
        origin=None if run.origin is None else replace(run.origin, passage_span_ids=span_ids),
    )
    state, why = _state(read, record, has_failed=span.status == "ERROR", retrieved=retrieved)
    return replace(read, state=state, reasons=(*why, *reasons))


def _state(
    run: Run, record: RunRecord, *, has_failed: bool, retrieved: bool
) -> tuple[RunState | None, tuple[str, ...]]:
    if "answer" in record.hidden:
        return RunState.CONTENT_HIDDEN, ("answer_hidden",)
    if run.answer is None or not run.answer.strip():
        why = "answer_not_recorded" if run.answer is None else "answer_empty"
        return RunState.NO_ANSWER_RECORDED, (why, "run_failed") if has_failed else (why,)
    if not record.passage_count and not retrieved:
        return RunState.NOT_RAG, ("no_retrieval_recorded",)
    unread = [passage for passage in run.passages if not (passage.text or "").strip()]
    hidden = [passage for passage in unread if _is_hidden(passage, record)]
    if run.passages and len(unread) == len(run.passages):
        if hidden:
            return RunState.CONTENT_HIDDEN, ("passages_hidden",)
        return RunState.PASSAGES_WITHOUT_TEXT, ("no_passage_text_recorded",)
    if run.passages_lost:
        return RunState.PASSAGES_TRUNCATED, (f"passages_lost:{run.passages_lost}",)
    if len(unread) > len(hidden):
        return RunState.PASSAGES_TRUNCATED, (f"passage_texts_lost:{len(unread) - len(hidden)}",)
    return None, ()


def _is_hidden(passage: Passage, record: RunRecord) -> bool:
    return "passages" in record.hidden or f"passage:{passage.id}" in record.hidden


@dataclass(frozen=True, slots=True)
class _Found:
    """A passage as far as the trace has it."""

    passage: Passage
    """The passage; without text if that is hidden or lost."""

    span_id: str | None
    """The span that has its text."""

    reason: str | None
    """Why the text is not what the model saw; `None` if it is."""


class _Texts:
    """The documents of a trace, to be found by id or by the hash of their text."""

    def __init__(self, near: Sequence[Document], everywhere: Sequence[Document]) -> None:
        self._by_id: dict[str, list[Document]] = {}
        self._by_hash: dict[str, Document] = {}
        for document in near:
            if document.id is not None:
                self._by_id.setdefault(document.id, []).append(document)
        for document in (*near, *everywhere):
            if document.content is not None:
                self._by_hash.setdefault(text_hash(document.content), document)

    def find(self, recorded: RecordedPassage, *, is_hidden: bool, is_cut: bool) -> _Found:
        """Return the passage that the record names.

        Its text is the document with its id and the hash recorded; else any document of the trace with that
        hash; else the document with its id, known to differ.
        """
        document, reason = self._choose(recorded, self._by_id.get(recorded.id, []))
        about = document or Document(recorded.id, None)
        if is_hidden or about.content == HIDDEN:
            text, reason = None, f"passage_hidden:{recorded.id}"
        elif about.content is None:
            text, reason = None, f"passage_text_lost:{recorded.id}"
        else:
            text = clean_text(about.content)
            reason = f"passage_cut:{recorded.id}" if is_cut else reason
        passage = Passage(
            id=recorded.id,
            text=text,
            label=recorded.label,
            title=recorded.title,
            url=recorded.url,
            score=about.score,
            metadata=about.metadata,
            sha256=recorded.sha256,
            is_cut=text is not None and reason is not None,
        )
        return _Found(passage, about.span_id, reason)

    def _choose(
        self, recorded: RecordedPassage, same_id: Sequence[Document]
    ) -> tuple[Document | None, str | None]:
        if recorded.sha256 is None:
            return (same_id[0], None) if same_id else (None, None)
        matching = (d for d in same_id if d.content is not None and text_hash(d.content) == recorded.sha256)
        document = next(matching, None) or self._by_hash.get(recorded.sha256)
        if document is not None:
            return document, None
        with_text = next((d for d in same_id if d.content is not None), None)
        return with_text, None if with_text is None else f"passage_text_differs:{recorded.id}"


def _text(span: Span, key: str) -> str | None:
    value = span.attributes.get(key)
    return clean_text(value) if isinstance(value, str) else None
