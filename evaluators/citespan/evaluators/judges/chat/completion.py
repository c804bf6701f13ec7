"""The body of a chat completion, reduced to what matters here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from citespan.evaluators.judges.chat.faults import ChatFault, FaultKind, read_fault

__all__ = ["Completion"]


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered."""

    text: str
    """The message; empty if there is none."""

    finish_reason: str
    """Why it ended: `stop`, `length`, `content_filter` ...; empty if the server does not say."""

    refusal: str
    """What the model said instead of answering; empty if it answered."""

    prompt_tokens: int | None
    """Tokens read; `None` if the server does not say."""

    completion_tokens: int | None
    """Tokens written; `None` if the server does not say."""

    @classmethod
    def from_json(cls, content: bytes) -> Completion:
        """Read the body of a 200.

        Raises:
            ChatFault: It is no chat completion; some gateways put an error there.
        """
        try:
            body = _held(json.loads(content))
        except ValueError as error:
            raise ChatFault(FaultKind.BAD_REPLY, f"the answer is no JSON: {error}") from error
        if body.get("error"):
            code = _held(body["error"]).get("code")
            status = code if isinstance(code, int) and 400 <= code < 600 else 400
            raise read_fault(status, content)
        choices = body.get("choices")
        if not isinstance(choices, list) or not choices:
            raise ChatFault(FaultKind.BAD_REPLY, "the answer holds no choices")
        choice = _held(cast("list[object]", choices)[0])
        message, usage = _held(choice.get("message")), _held(body.get("usage"))
        return cls(
            text=_text(message.get("content")),
            finish_reason=str(choice.get("finish_reason") or ""),
            refusal=str(message.get("refusal") or ""),
            prompt_tokens=_count(usage.get("prompt_tokens")),
            completion_tokens=_count(usage.get("completion_tokens")),
        )

    def fault(self, messages: Sequence[Mapping[str, str]]) -> ChatFault | None:
        """Return why this is no answer to `messages`, or `None` if it is one."""
        if self.finish_reason == "length":
            return ChatFault(FaultKind.REPLY_CUT, "the reply reached the token limit: raise reply_tokens")
        if self.finish_reason == "content_filter" or (self.refusal and not self.text):
            said = self.refusal or "the provider's filter stopped the reply"
            return ChatFault(FaultKind.CONTENT_FILTER, said)
        return self._cut_prompt(sum(len(message["content"].split()) for message in messages))

    def _cut_prompt(self, words: int) -> ChatFault | None:
        """Return the fault of a server that silently read only a part of the prompt, as Ollama does past `num_ctx`.

        Hardly a tokenizer makes fewer tokens than words: a count under half of the words says that words were dropped.
        """
        if not self.prompt_tokens or self.prompt_tokens * 2 >= words:
            return None
        return ChatFault(
            FaultKind.CONTEXT_LENGTH,
            f"the server read {self.prompt_tokens} tokens of a prompt of {words} words: raise its context length",
        )


def _held(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _text(content: object) -> str:
    """Return the message's text; some servers answer in parts."""
    if isinstance(content, str):
        return content
    parts = cast("list[object]", content) if isinstance(content, list) else []
    return "".join(str(_held(part).get("text") or "") for part in parts)
