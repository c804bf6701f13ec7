"""The answer of a run: its text, the span that gives it, and the model call that wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from citespan.evaluators.reading.answer_text import (
    answer_in,
    is_usable,
    repr_answer_in,
    repr_beginning_in,
)
from citespan.evaluators.reading.generation import (
    Generation,
    find_generation,
    generated_text,
    is_same_answer,
    last_generation,
    model_calls,
)
from citespan.evaluators.reading.normalise import SpanView
from citespan.evaluators.reading.passages import Retrieval
from citespan.evaluators.reading.tree import SpanTree
from citespan.evaluators.reading.values import is_hidden, is_object, walk

__all__ = ["Answer", "choose_root", "find_answer"]

_SILENT_KINDS = frozenset(["RETRIEVER", "RERANKER", "EMBEDDING", "TOOL", "PROMPT", "GUARDRAIL"])
"""Kinds whose output is a step, never the answer; a retriever that also generates gives plain text."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a trace says of its answer."""

    text: str | None
    """The answer as the user got it; `None` if it is not recorded."""

    view: SpanView
    """The span whose output it is; the root where there is none."""

    generation: Generation | None
    """The model call that wrote it, if known."""

    reasons: tuple[str, ...] = ()
    """How it was found, or why it was not."""

    is_hidden: bool = False
    """Whether it was masked before it was recorded."""

    is_ambiguous: bool = False
    """Whether several model calls could have written it."""


def choose_root(tree: SpanTree) -> SpanView:
    """Return the span the run hangs from: a true root, then one with an answer, then the longest."""

    def rank(view: SpanView) -> tuple[bool, bool, int]:
        lasted = view.span.end_ns - view.span.start_ns
        return (view.span.parent_id is None, _own_text(view) is not None, lasted)

    return max(tree.roots, key=rank)


def _own_text(view: SpanView) -> str | None:
    """Return the answer in the span's own output, or `None`."""
    if view.kind == "LLM":
        return generated_text(view)
    if view.kind in _SILENT_KINDS:
        generates = view.kind == "RETRIEVER" and view.span.parent_id is None
        text = view.output if generates and isinstance(view.output, str) else ""
        return text if is_usable(text) else None
    return answer_in(view.output)


def find_answer(tree: SpanTree, root: SpanView, retrievals: Sequence[Retrieval]) -> Answer:
    """Return the answer of the trace: what its root gave, else what the model wrote last."""
    calls = model_calls(tree)
    for view in _entry(tree, root):
        text = _own_text(view)
        generation = None if text is None else find_generation(tree, calls, text)
        # The top of a torn trace may be any step, whose output is the answer only if a model wrote it.
        if text is not None and (generation is not None or root.span.parent_id is None):
            reasons = () if generation is not None or not calls else ("answer_not_found_in_model_output",)
            return Answer(text, view, generation, reasons)
    written = repr_answer_in(root.output)
    if written is not None and is_usable(written):
        return Answer(written, root, find_generation(tree, calls, written), ("answer_from_repr",))
    if any(is_hidden(view.output) for view in _entry(tree, root)):
        return Answer(None, root, None, ("answer_hidden",), is_hidden=True)
    return _from_calls(tree, root, calls, retrievals)


def _entry(tree: SpanTree, root: SpanView) -> Iterator[SpanView]:
    """Yield the root and, while a span says nothing and has one child, that child: servers wrap what they serve."""
    view = root
    while True:
        yield view
        children = tree.children.get(view.id, ())
        if view.output is not None or len(children) != 1 or children[0].kind in _SILENT_KINDS:
            return
        view = children[0]


def _from_calls(
    tree: SpanTree, root: SpanView, calls: Sequence[Generation], retrievals: Sequence[Retrieval]
) -> Answer:
    ended = max((retrieval.view.span.end_ns for retrieval in retrievals), default=0)
    texts = [
        document.content for retrieval in retrievals for document in retrieval.documents if document.content
    ]
    beginning = repr_beginning_in(root.output)
    begun = [call for call in calls if beginning is not None and beginning in call.text]
    generation = last_generation(tree, begun or calls, texts, ended)
    if generation is None:
        return _without_calls(tree, root, is_ambiguous=bool(calls))
    view, text = generation.view, generation.text
    for above in tree.above(generation.view):
        outer = _own_text(above) if above.kind != "LLM" else None
        if outer is not None and is_same_answer(generation.text, outer):
            view, text = above, outer
    if view is generation.view:
        text = _parsed(tree, generation) or text
    return Answer(text, view, generation, ("answer_from_model_output",))


def _parsed(tree: SpanTree, generation: Generation) -> str | None:
    """Return what a parser made of the model's text, such as the answer without the thought before it."""
    later = [v for v in tree.views if v.kind == "CHAIN" and v.span.start_ns >= generation.view.span.end_ns]
    for view in later:
        text = answer_in(view.output)
        if text is not None and text != generation.text and is_same_answer(generation.text, text):
            return text if text.strip() in generation.text else None
    return None


def _without_calls(tree: SpanTree, root: SpanView, *, is_ambiguous: bool) -> Answer:
    if is_ambiguous:
        return Answer(None, root, None, ("several_answers",), is_ambiguous=True)
    hidden = [view for view in tree.views if view.kind == "LLM" and _is_masked(view)]
    if hidden:
        return Answer(None, root, None, ("answer_hidden",), is_hidden=True)
    return Answer(None, root, None, tuple(_why_missing(tree, root)))


def _is_masked(view: SpanView) -> bool:
    return is_hidden(view.output) or any(is_hidden(text) for m in view.output_messages for text in m.texts)


def _why_missing(tree: SpanTree, root: SpanView) -> Iterator[str]:
    calls = [view for view in tree.views if view.kind == "LLM"]
    if _is_empty(root):
        yield "answer_empty"
    elif any(_is_stream(view) for view in tree.views):
        yield "stream_not_joined"
    elif calls and all(view.output is None and not view.output_messages for view in calls):
        yield "content_not_captured"
    elif not calls and root.kind == "RETRIEVER":
        yield "retrieval_only"
    else:
        yield "answer_not_recorded"
    if root.span.status == "ERROR":
        yield "run_failed"


def _is_empty(view: SpanView) -> bool:
    return isinstance(view.output, str) and not view.output.strip()


def _is_stream(view: SpanView) -> bool:
    outputs: list[object] = [view.output]
    if is_object(view.output):
        outputs += [value for node in walk(view.output) for value in node.values()]
    return any(isinstance(value, str) and value.startswith("<generator object") for value in outputs)
