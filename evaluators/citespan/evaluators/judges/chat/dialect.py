"""Which parts of the chat-completions API a server takes, found out by asking."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from citespan.evaluators.judges.chat.faults import ChatFault, FaultKind

__all__ = ["Dialect", "ReplyFormat"]


class ReplyFormat(StrEnum):
    """How the server is told to answer in JSON, from the strictest down."""

    JSON_SCHEMA = "json_schema"
    """Strict structured output."""

    JSON_OBJECT_SCHEMA = "json_object_schema"
    """JSON mode with a schema beside it, as llama-cpp-python takes it."""

    JSON_OBJECT = "json_object"
    """JSON mode: some object."""

    TEXT = "text"
    """Nothing: the instructions alone ask for JSON."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server is sent."""

    reply_format: ReplyFormat = ReplyFormat.JSON_SCHEMA
    """How JSON is asked for."""

    is_format_fixed: bool = False
    """Whether the format was configured, so that no looser one is tried."""

    token_limit: str = "max_tokens"  # noqa: S105  # the name of a parameter
    """Name of the parameter that bounds the reply."""

    dropped: frozenset[str] = frozenset()
    """Parameters that the server does not take."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the server does without, for whoever reads its verdicts; nothing if it takes all that it is sent."""
        notes: list[str] = []
        if self.dropped:
            left_out = " and ".join(sorted(self.dropped, reverse=True))
            notes.append(f"takes no {left_out}, so its answers may differ from one time to the next")
        if not self.is_format_fixed and self.reply_format is not ReplyFormat.JSON_SCHEMA:
            notes.append(f"takes no strict JSON schema: it was asked by reply_format={self.reply_format}")
        return tuple(notes)

    def body(
        self,
        messages: Sequence[Mapping[str, str]],
        schema: Mapping[str, object],
        *,
        model: str,
        reply_tokens: int,
        sampling: Mapping[str, object],
    ) -> dict[str, object]:
        """Return the request body."""
        body: dict[str, object] = {"model": model, "messages": list(messages), self.token_limit: reply_tokens}
        body |= {name: value for name, value in sampling.items() if name not in self.dropped}
        if self.reply_format is ReplyFormat.JSON_SCHEMA:
            named = {"name": "verdicts", "strict": True, "schema": dict(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        elif self.reply_format is ReplyFormat.JSON_OBJECT_SCHEMA:
            body["response_format"] = {"type": "json_object", "schema": dict(schema)}
        elif self.reply_format is ReplyFormat.JSON_OBJECT:
            body["response_format"] = {"type": "json_object"}
        return body

    def after(self, fault: ChatFault) -> Dialect | None:
        """Return what to try after the server refused a request in this dialect; `None` if nothing is left."""
        if fault.kind is not FaultKind.REFUSED or fault.status not in (400, 415, 422, 500, 501):
            return None
        message = str(fault)
        for name in ("temperature", "seed"):
            if re.search(rf"\b{name}\b", message) and name not in self.dropped:
                return replace(self, dropped=self.dropped | {name})
        if "max_tokens" in message and self.token_limit == "max_tokens":  # noqa: S105
            return replace(self, token_limit="max_completion_tokens")  # noqa: S106
        formats = list(ReplyFormat)
        looser = formats[formats.index(self.reply_format) + 1 :]
        if looser and not self.is_format_fixed:
            return replace(self, reply_format=looser[0])
        return None
