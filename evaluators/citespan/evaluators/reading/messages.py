"""Chat messages as spans hold them: OpenInference, OTel GenAI, LangChain, OpenAI, Anthropic, Haystack."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from citespan.evaluators.reading.values import (
    MAX_DEPTH,
    fields,
    is_list,
    is_object,
    items,
    parse_json,
    repr_text,
    text_at,
)

__all__ = ["Message", "ToolCall", "last_assistant_text", "read_message", "read_messages"]

_ROLES = {
    "human": "user",
    "user": "user",
    "humanmessage": "user",
    "humanmessagechunk": "user",
    "ai": "assistant",
    "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "assistant": "assistant",
    "chatbot": "assistant",
    "model": "assistant",
    "system": "system",
    "systemmessage": "system",
    "developer": "system",
    "tool": "tool",
    "toolmessage": "tool",
    "function": "tool",
    "functionmessage": "tool",
    "tool-call": "assistant",
    "tool-response": "tool",
    "user_message": "user",
    "agent_message": "assistant",
}
"""What instrumentors call the four roles, in lower case."""

_TEXT_TYPES = frozenset(["text", "output_text", "input_text", "text_delta", "paragraph"])
_SILENT_TYPES = frozenset(["thinking", "reasoning", "redacted_thinking", "refusal_delta"])


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool that a model asked for."""

    name: str
    """Name of the tool."""

    arguments: object
    """Its arguments, parsed."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: str
    """`user`, `assistant`, `system`, `tool`, or whatever else the span says."""

    texts: tuple[str, ...]
    """Its text blocks in order, without reasoning."""

    tool_calls: tuple[ToolCall, ...] = ()
    """The tools it calls."""

    blocks: tuple[Mapping[str, object], ...] = ()
    """Blocks that are no plain text: documents, search results, tool results, citations."""

    @property
    def text(self) -> str:
        """The text blocks joined as the provider splits them: with nothing between."""
        return "".join(self.texts)


def read_messages(value: object, depth: int = 0) -> tuple[Message, ...]:
    """Return the messages that a value holds: a list of them, or one list inside another; else nothing."""
    if depth >= MAX_DEPTH:
        return ()
    entries = items(value)
    if len(entries) == 2 and all(isinstance(entry, str) for entry in entries):
        message = _pair(entries)
        return () if message is None else (message,)
    found: list[Message] = []
    for entry in entries:
        if is_list(entry):
            found += read_messages(entry, depth + 1)
        elif (message := read_message(entry)) is not None:
            found.append(message)
        elif isinstance(entry, str) and "_role=" in entry[:64]:
            found += _haystack_repr(entry)
    return tuple(found)


def _pair(entries: Sequence[object]) -> Message | None:
    """Return the message of LangChain's short form `["human", "..."]`."""
    role = _ROLES.get(str(entries[0]).lower())
    return None if role is None else Message(role, (str(entries[1]),))


def read_message(value: object, depth: int = 0) -> Message | None:
    """Return the message that an object is, or `None` if it is no message."""
    entry = fields(value)
    if not entry or depth >= MAX_DEPTH:
        return None
    for wrapper in ("kwargs", "data", "message"):
        inner = entry.get(wrapper)
        if is_object(inner) and ("content" in inner or "role" in inner or "contents" in inner):
            wrapped = dict(inner)
            if "role" not in wrapped and "type" not in wrapped:
                wrapped["type"] = entry.get("type")
            return read_message(wrapped, depth + 1)
    role = _role(entry)
    if role is None:
        return None
    parts = _Parts()
    parts.add(entry.get("contents"))
    parts.add(entry.get("parts"))
    content = entry.get("content")
    if not isinstance(content, str) or content.split() != "".join(parts.texts).split():
        parts.add(content)
    for call in items(entry.get("tool_calls")):
        parts.add_call(call)
    if "tool_call_id" in entry and role != "assistant":
        role = "tool"
    return Message(
        "tool" if parts.results and len(parts.results) == len(parts.texts) else role,
        tuple(parts.texts),
        tuple(parts.calls),
        tuple(parts.blocks),
    )


def _role(entry: Mapping[str, object]) -> str | None:
    for key in ("role", "_role", "type"):
        named = entry.get(key)
        if isinstance(named, str) and named:
            role = _ROLES.get(named.rpartition(".")[2].lower())
            if role is not None:
                return role
            if key == "role":
                return named.lower()
    return None


class _Parts:
    """Collects what the blocks of one message hold."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: list[ToolCall] = []
        self.blocks: list[Mapping[str, object]] = []
        self.results: list[str] = []

    def add(self, content: object) -> None:
        if isinstance(content, str):
            if content:
                self.texts.append(content)
            return
        if is_object(content) and not items(content):
            content = [content]
        for block in items(content):
            self._add_block(block)

    def _add_block(self, block: object) -> None:
        if isinstance(block, str):
            self.texts.append(repr_text(block, "text") or "" if _is_repr(block) else block)
            return
        entry = fields(block)
        entry = fields(entry.get("message_content")) or entry
        kind = str(entry.get("type") or "").lower()
        if kind in _SILENT_TYPES or entry.get("thought") is True:
            return
        if kind in ("tool_call", "tool_use", "function_call") or "tool_call" in entry:
            self.add_call(entry.get("tool_call") or entry)
            return
        if kind in ("tool_call_response", "tool_result", "function_call_output"):
            self._add_tool_result(entry)
            return
        for part in items(fields(entry.get("citationsContent")).get("content")):
            self.texts.append(text_at(fields(part), "text") or "")
        text = _block_text(entry, kind)
        if text is not None:
            self.texts.append(text)
        if kind not in _TEXT_TYPES or "citations" in entry or "annotations" in entry:
            self._add_other(entry, kind)

    def _add_other(self, entry: Mapping[str, object], kind: str) -> None:
        inner = fields(entry.get("text"))
        if inner and kind not in _TEXT_TYPES:
            self.blocks.append(inner)
        elif kind == "blob":
            text = _decoded(entry)
            if text is not None:
                self.blocks.append({"type": "document", "text": text})
        else:
            self.blocks.append(entry)

    def _add_tool_result(self, entry: Mapping[str, object]) -> None:
        for key in ("content", "result", "response", "output"):
            value = entry.get(key)
            if value is None or value == "":
                continue
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            self.results.append(text)
            self.texts.append(text)
            if not isinstance(value, str):
                self.blocks.append({"type": "tool_result", "content": value})
            return

    def add_call(self, call: object) -> None:
        entry = fields(call)
        entry = fields(entry.get("tool_call")) or entry
        function = fields(entry.get("function"))
        name = function.get("name") or entry.get("name")
        arguments = next(
            (
                part[key]
                for part in (function, entry)
                for key in ("arguments", "args", "input")
                if part.get(key) is not None
            ),
            None,
        )
        if isinstance(name, str):
            self.calls.append(ToolCall(name, parse_json(arguments)))


def _block_text(entry: Mapping[str, object], kind: str) -> str | None:
    """Return the text of a block that is text; a document's or result's JSON is none."""
    if kind and kind not in _TEXT_TYPES:
        return None
    for key in ("text", "content"):
        value = entry.get(key)
        if isinstance(value, str):
            return value
    return text_at(entry, "text", "value")


def _decoded(entry: Mapping[str, object]) -> str | None:
    """Return the text of an inline file: OTel writes a plain-text document as base64."""
    content = entry.get("content")
    if not isinstance(content, str) or not str(entry.get("mime_type") or "").startswith("text/"):
        return None
    try:
        return base64.b64decode(content, validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def _is_repr(text: str) -> bool:
    return text.startswith(("text=", "TextChunk(", "reference_ids=", "ReferenceChunk(", "TextBlock("))


def _haystack_repr(text: str) -> list[Message]:
    role = next((role for name, role in _ROLES.items() if f"_role=<ChatRole.{name.upper()}:" in text), None)
    if role is None:
        return []
    content = repr_text(text, "result" if role == "tool" else "text")
    return [Message(role, () if content is None else (content,))]


def last_assistant_text(messages: Sequence[Message]) -> str | None:
    """Return the text of the last message if the assistant wrote it, or the last it wrote before tools ran."""
    for message in reversed(messages):
        if message.role == "assistant" and message.text.strip():
            return message.text
        if message.role == "user":
            return None
    return None
