"""The answer's text inside a span's output: a string, a message, a state with many keys, a list of blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from citespan.evaluators.reading.document_values import read_documents
from citespan.evaluators.reading.messages import last_assistant_text, read_message, read_messages
from citespan.evaluators.reading.values import (
    MAX_DEPTH,
    fields,
    is_hidden,
    is_list,
    is_object,
    merged,
    parse_json,
    repr_text,
    text_at,
)

__all__ = [
    "ANSWER_KEYS",
    "answer_in",
    "is_usable",
    "repr_answer_in",
    "repr_beginning_in",
    "structured_answer_in",
]

ANSWER_KEYS = (
    "answer",
    "final_answer",
    "final_result",
    "final_output",
    "output_text",
    "response",
    "response_txt",
    "output",
    "outputs",
    "result",
    "generation",
    "generated_text",
    "raw",
    "reply",
    "replies",
    "completion",
    "text",
    "content",
    "message",
    "messages",
    "choices",
    "candidates",
    "generations",
    "update",
    "data",
    "kwargs",
    "value",
)
"""Keys under which apps and instrumentors keep an answer, the likeliest first."""

_NO_ANSWER_KEYS = frozenset(
    ["arguments", "args", "function", "input", "inputs", "parameters", "metadata", "usage", "usage_metadata"]
)
"""Keys whose objects never hold the answer, whatever their own keys are called."""

_STRUCTURED_KEYS = ("answer", "final_answer", "response", "output", "result")
"""Keys of a tool call's arguments that make the call an answer; others make it a call."""

_UNREADABLE = re.compile(
    r"<(?:async_)?generator object\b|<coroutine object\b|<\w[\w.]*(?: object)? at 0x[0-9a-f]+>?"
    r"|<?[A-Za-z_]\w*\((?:\w+=|id\b)"
)
"""What the repr of an object begins with: a stream that was never joined, a list of nodes."""


_NO_ANSWER_REPR = re.compile(r"<?\w*(?:Node|Document|Chunk|Query|Tool|Prompt|Template)\w*\(")
"""What the repr of something retrieved, asked or called begins with."""


_REPR_ROLE = re.compile(r"role=<\w{0,20}Role\.(\w{1,20})")
"""Who said a message, in its repr."""


def is_usable(text: str) -> bool:
    """Return whether the text can be an answer: not blank, not a mask, not a repr, not JSON cut in two."""
    stripped = text.strip()
    if not stripped or is_hidden(stripped) or _UNREADABLE.match(stripped):
        return False
    return not (stripped.startswith(('{"', '[{"', "{'", '["')) and parse_json(stripped) is stripped)


def answer_in(value: object, depth: int = 0) -> str | None:
    """Return the text of the answer in a span's output, or `None` if it holds none."""
    if depth >= MAX_DEPTH:
        return None
    if isinstance(value, str):
        parsed = parse_json(value)
        if is_object(parsed) or (is_list(parsed) and not _is_plain(parsed)):
            return answer_in(parsed, depth + 1)
        return value if is_usable(value) else None
    if is_object(value):
        return _in_object(value, depth)
    if is_list(value):
        return _in_list(value, depth)
    return None


def _is_plain(value: Sequence[object]) -> bool:
    """Return whether a parsed list is the text `[1, 2]` itself rather than a container of texts."""
    return all(isinstance(item, int | float) for item in value)


def _in_object(entry: Mapping[str, object], depth: int) -> str | None:
    message = read_message(entry)
    if message is not None:
        text = message.text if message.role == "assistant" else ""
        if text.strip():
            return text if is_usable(text) else None
        calls = [structured_answer_in(call.arguments) for call in message.tool_calls]
        return next((answer for answer in calls if answer is not None), None)
    for key in ANSWER_KEYS:
        if entry.get(key) is not None:
            found = answer_in(entry[key], depth + 1)
            if found is not None:
                return found
    nested = [
        inner
        for key, item in entry.items()
        if key not in ANSWER_KEYS and key not in _NO_ANSWER_KEYS and is_object(inner := merged(item))
    ]
    texts = {answer for item in nested if (answer := answer_in(item, depth + 1)) is not None}
    return texts.pop() if len(texts) == 1 else None


def _in_list(entries: Sequence[object], depth: int) -> str | None:
    if not all(isinstance(entry, str) for entry in entries) and read_documents(entries):
        return None
    messages = read_messages(entries)
    if messages:
        said = last_assistant_text(messages)
        if said is not None:
            return said if is_usable(said) else None
        return _in_object(entries[-1], depth) if is_object(entries[-1]) else None
    if entries and all(_is_text_block(entry) for entry in entries):
        return "".join(text_at(entry, "text") or "" for entry in entries) or None
    if len(entries) == 1 or not all(isinstance(entry, str) for entry in entries):
        found = [text for entry in entries if (text := answer_in(entry, depth + 1)) is not None]
        return found[-1] if found else None
    return None


def _is_text_block(entry: object) -> bool:
    block = fields(entry)
    return isinstance(block.get("text"), str) and (
        block.get("type") in ("text", "output_text") or set(block) <= {"text", "type"}
    )


def structured_answer_in(arguments: object) -> str | None:
    """Return the answer that a model gave as the arguments of a call, or `None` if it is a plain call."""
    if not is_object(arguments):
        return None
    entry = arguments
    for key in _STRUCTURED_KEYS:
        value = entry.get(key)
        if isinstance(value, str) and is_usable(value):
            return value
        if is_object(value) and (text := structured_answer_in(value)) is not None:
            return text
    return None


_CUT_STRING = re.compile(
    r"""\b(?:data|text|content|response)=(['"])((?:(?!\1)[^\\]|\\.)*?)\.\.\.$""", re.DOTALL
)
_MIN_BEGINNING = 20
"""Shortest beginning of an answer, in code points, that tells it from another."""


def repr_beginning_in(value: object) -> str | None:
    """Return how the answer begins in a repr that was cut short with dots, or `None`."""
    if not isinstance(value, str) or not _UNREADABLE.match(value):
        return None
    cut = _CUT_STRING.search(value)
    beginning = None if cut is None else repr_text(f"text={cut[1]}{cut[2]}{cut[1]}", "text")
    return beginning if beginning is not None and len(beginning) >= _MIN_BEGINNING else None


def repr_answer_in(value: object, depth: int = 0) -> str | None:
    """Return the answer that is only inside a Python repr, as Haystack's `GeneratedAnswer(data='..')` is."""
    if depth >= MAX_DEPTH:
        return None
    if isinstance(value, str):
        role = _REPR_ROLE.search(value, 0, 200)
        is_said = role is None or role[1].lower() == "assistant"
        is_answer = is_said and _UNREADABLE.match(value) and not _NO_ANSWER_REPR.match(value)
        return repr_text(value, "data", "text", "content", "response") if is_answer else None
    nested: Iterable[object] = ()
    if is_object(value):
        nested = value.values()
    elif is_list(value):
        nested = value
    found = {text for item in nested if (text := repr_answer_in(item, depth + 1)) is not None}
    return found.pop() if len(found) == 1 else None
