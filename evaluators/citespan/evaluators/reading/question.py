"""The question of a run: what the user asked, without the passages that the app put beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from citespan.evaluators.reading.document_values import read_documents
from citespan.evaluators.reading.generation import Generation, own_sections
from citespan.evaluators.reading.label_forms import find_tokens
from citespan.evaluators.reading.messages import Message, read_message, read_messages
from citespan.evaluators.reading.normalise import SpanView
from citespan.evaluators.reading.tree import SpanTree
from citespan.evaluators.reading.values import (
    MAX_DEPTH,
    fields,
    is_hidden,
    is_list,
    is_object,
    items,
    parse_json,
)

__all__ = ["Question", "find_question"]

_KEYS = (
    "question",
    "query",
    "query_str",
    "user_question",
    "user_query",
    "user_input",
    "user_msg",
    "user_message",
    "user_prompt",
    "task",
    "request",
    "input",
    "inputs",
    "message",
    "messages",
    "prompt",
    "q",
    "text",
    "content",
    "contents",
    "parts",
    "query_bundle",
    "data",
    "kwargs",
    "args",
    "body",
)
"""Keys under which apps keep a question, the likeliest first."""

_TASK_KEYS = ("crew_tasks",)
"""Attributes that hold the tasks of a crew: the last one's description is what was asked."""

_CUE = re.compile(
    r"(?:^|\n)[ \t]{0,8}[*#> ]{0,6}(?:user )?(?:question|query|q|request|frage|pregunta|问题|質問)\*{0,2}[ \t]{0,4}[:：]\**[ \t]*"
    r"(?P<question>[^\n]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Question:
    """What the user asked."""

    text: str | None
    """The question; `None` if it is not recorded."""

    reason: str | None = None
    """Why it is not, or where it was found if not in the trace's own input."""


def find_question(
    tree: SpanTree,
    root: SpanView,
    generation: Generation | None,
    retrievals: Sequence[SpanView],
    texts: Sequence[str],
) -> Question:
    """Return the question of the run.

    Args:
        tree: The trace.
        root: Its root.
        generation: The call that wrote the answer, if known.
        retrievals: The spans that retrieved, in start order: their query may be a rewrite.
        texts: The retrieved texts, to be taken out of a prompt.
    """
    views = _path(tree, root, generation)
    for view in views:
        if view.kind != "LLM" and (text := question_in(view.input)) is not None:
            return Question(text)
    for view in views:
        if (text := _task(view)) is not None:
            return Question(text, "question_from_task")
    if generation is not None and (text := _asked(generation.view, texts)) is not None:
        is_own = generation.view.id == root.id
        return Question(text, None if is_own else "question_from_prompt")
    for view in retrievals:
        text = question_in(view.input) or question_in(view.at("gen_ai.retrieval.query.text"))
        if text is not None:
            return Question(text, None if view.id == root.id else "question_from_retrieval")
    return Question(
        None, "question_hidden" if any(_is_masked(view) for view in views) else "question_not_recorded"
    )


def _path(tree: SpanTree, root: SpanView, generation: Generation | None) -> list[SpanView]:
    """Return the spans from the root down to the generation."""
    if generation is None:
        return [root] if root.span.parent_id is None else []
    path = [generation.view, *tree.above(generation.view)]
    return path[::-1] if path[-1].id == root.id else [root, *path[::-1]]


def _is_masked(view: SpanView) -> bool:
    return is_hidden(view.input) or any(is_hidden(text) for m in view.input_messages for text in m.texts)


def _task(view: SpanView) -> str | None:
    for key in _TASK_KEYS:
        tasks = items(view.at(key))
        description = fields(tasks[-1]).get("description") if tasks else None
        if isinstance(description, str) and description.strip():
            return description
    return None


def question_in(value: object, depth: int = 0) -> str | None:
    """Return the question in a span's input, or `None` if it holds none."""
    if depth >= MAX_DEPTH:
        return None
    value = parse_json(value)
    if isinstance(value, str):
        stripped = value.strip()
        is_text = stripped and not is_hidden(stripped) and not stripped.startswith(("<", '{"', '[{"'))
        return value if is_text else None
    if is_list(value):
        return _in_list(value, depth)
    return _in_object(value, depth) if is_object(value) else None


def _in_list(entries: Sequence[object], depth: int) -> str | None:
    messages = read_messages(entries)
    if messages:
        return _last_user_text(messages)
    if len(entries) == 1 and not read_documents(entries):
        return question_in(entries[0], depth + 1)
    return None


def _in_object(entry: Mapping[str, object], depth: int) -> str | None:
    message = read_message(entry)
    if message is not None:
        return _last_user_text([message])
    for key in _KEYS:
        if entry.get(key) is not None and (text := question_in(entry[key], depth + 1)) is not None:
            return text
    nested = [item for key, item in entry.items() if key not in _KEYS and is_object(item)]
    found = dict.fromkeys(text for item in nested if (text := _in_object_of(item, depth)) is not None)
    return next(iter(found)) if len(found) == 1 else None


def _in_object_of(item: object, depth: int) -> str | None:
    return question_in(item, depth + 1)


def _last_user_text(messages: Sequence[Message]) -> str | None:
    for message in reversed(messages):
        if message.role == "user" and (texts := [text for text in message.texts if text.strip()]):
            return None if is_hidden(texts[-1]) else texts[-1]
    return None


def _asked(view: SpanView, texts: Sequence[str]) -> str | None:
    """Return the last message of the user to the model, without the passages in it."""
    messages = (
        view.input_messages or read_messages(fields(view.input).get("messages")) or read_messages(view.input)
    )
    text = _last_user_text(messages) if messages else _last_user_section(view)
    if text is None:
        return None
    cues = list(_CUE.finditer(text))
    if cues:
        return cues[-1]["question"].strip()
    return _without_passages(text, texts)


def _last_user_section(view: SpanView) -> str | None:
    """Return the user's last turn in a prompt written as one text; a tool's observation is none."""
    turns = [section.text for section in own_sections(view) if section.role == "user"]
    asked = [text for text in turns if not text.lstrip().startswith("Observation:")]
    return asked[-1].strip() if asked else None


def _without_passages(text: str, texts: Sequence[str]) -> str | None:
    """Return the paragraphs of a prompt that hold no passage, or the whole where none does."""
    paragraphs = list(_paragraphs(text))
    kept = [p for p in paragraphs if not find_tokens(p) and not any(t and t.strip() in p for t in texts)]
    asking = [paragraph for paragraph in kept if paragraph.rstrip().endswith(("?", "？", "؟"))]
    if len(kept) == len(paragraphs):
        return text
    if asking:
        return asking[-1].strip()
    return "\n\n".join(kept).strip() or None


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text):
        if paragraph.strip():
            yield paragraph
