"""What can go wrong between this machine and a model, told apart."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import cast

from citespan.evaluators.verdicts import Usage

__all__ = ["ChatFault", "FaultKind", "read_fault"]


class FaultKind(StrEnum):
    """Why a call gave no answer; the machine-readable reason of the verdicts it would have made."""

    AUTH = "auth"
    """401 or 403: the key is missing, wrong or may not do this."""

    NOT_FOUND = "not_found"
    """404: no such model, or the base URL is wrong."""

    QUOTA = "quota"
    """The account has no credit left; waiting does not help."""

    RATE_LIMITED = "rate_limited"
    """429 after every retry, or the server asks for a longer wait than allowed."""

    CONTEXT_LENGTH = "context_length"
    """The request is longer than the model reads, or the server read only a part of it."""

    CONTENT_FILTER = "content_filter"
    """The provider refused the text, or the model refused to answer."""

    REPLY_CUT = "reply_cut"
    """The reply reached the token limit before it ended, or the limit asked for is more than the model may write."""

    REFUSED = "refused"
    """Another 4xx, or a redirect."""

    SERVER_ERROR = "server_error"
    """5xx after every retry."""

    BAD_REPLY = "bad_reply"
    """A 200 that is not what the API promises, after every retry."""

    TIMEOUT = "timeout"
    """No answer in time, after every retry."""

    UNREACHABLE = "unreachable"
    """No connection, or it broke, after every retry."""

    BUDGET_EXHAUSTED = "budget_exhausted"
    """The budget has no room for the call."""

    CLOSED = "closed"
    """The judge was closed while the call waited."""

    @property
    def is_passing(self) -> bool:
        """Whether the same call may do better later."""
        return self in _PASSING

    @property
    def is_outage(self) -> bool:
        """Whether it says that the endpoint does not work at all."""
        return self in (FaultKind.SERVER_ERROR, FaultKind.TIMEOUT, FaultKind.UNREACHABLE)

    @property
    def advice(self) -> str:
        """What to do about it, one sentence; empty where the fault says so itself."""
        return _ADVICE.get(self, "")

    @property
    def is_about_size(self) -> bool:
        """Whether fewer claims in a call may do better."""
        return self in (FaultKind.CONTEXT_LENGTH, FaultKind.CONTENT_FILTER, FaultKind.REPLY_CUT)


_PASSING = frozenset(
    {
        FaultKind.RATE_LIMITED,
        FaultKind.SERVER_ERROR,
        FaultKind.BAD_REPLY,
        FaultKind.TIMEOUT,
        FaultKind.UNREACHABLE,
    }
)

_ADVICE = {
    FaultKind.AUTH: "Set the endpoint's key in OPENAI_API_KEY, and check what it may do.",
    FaultKind.NOT_FOUND: "Check the model's name and base_url.",
    FaultKind.QUOTA: "Add credit to the account, or name another endpoint by base_url.",
    FaultKind.RATE_LIMITED: "Set requests_per_minute or tokens_per_minute, or a smaller concurrency.",
    FaultKind.CONTEXT_LENGTH: "Set context_tokens to what the server reads.",
    FaultKind.SERVER_ERROR: "Look at the server's log, or try again later.",
    FaultKind.BAD_REPLY: "Check that base_url names a chat-completions API.",
    FaultKind.TIMEOUT: "Raise timeout_seconds, or ask for less at once by claims_per_call.",
    FaultKind.UNREACHABLE: "Check that the server runs and that base_url names it.",
    FaultKind.BUDGET_EXHAUSTED: "Raise budget_tokens or budget_usd.",
}


class ChatFault(Exception):
    """A call that gave no answer.

    Attributes:
        kind: Why.
        status: HTTP status, or `None` when there was no answer.
        wait_seconds: How long the server asks to wait, if it does.
        usage: What the call cost, where an answer came with the fault.
    """

    def __init__(
        self,
        kind: FaultKind,
        detail: str,
        *,
        status: int | None = None,
        wait_seconds: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.status = status
        self.wait_seconds = wait_seconds
        self.usage = usage

    def with_usage(self, usage: Usage) -> ChatFault:
        """Return the fault of an answer that cost this much."""
        return ChatFault(self.kind, str(self), status=self.status, usage=usage)

    def after_asking(self, wait_seconds: float) -> ChatFault:
        """Return the fault of a call that is given up because its next try is too far off."""
        asked = "the server asked to wait" if self.wait_seconds is not None else "the next try would wait"
        return ChatFault(self.kind, f"{self}; {asked} {wait_seconds:.0f} s", status=self.status)

    def without(self, secrets: Sequence[str]) -> ChatFault:
        """Return the fault with every secret hidden: some servers repeat the key in what they say."""
        detail = str(self)
        for secret in secrets:
            detail = detail.replace(secret, "***")
        return ChatFault(self.kind, detail, status=self.status, wait_seconds=self.wait_seconds)


_CONTEXT = re.compile(
    r"context[ _-]?(length|window|size)|maximum context|max_model_len|too many tokens"
    r"|(prompt|input|request|message)s? (is|are) too (long|large)|exceeds? the (maximum|available|model)"
    r"|reduce the length",
    re.IGNORECASE,
)
_FILTER = re.compile(
    r"content[ _-]?(filter|management|policy)|usage polic|safety|moderation|blocked", re.IGNORECASE
)
_QUOTA = re.compile(r"insufficient_quota|credit balance|out of credits?", re.IGNORECASE)
_QUOTA_OR_RATE = re.compile(r"exceeded your current quota", re.IGNORECASE)
"""OpenAI says so of an account without credit, Gemini of a minute's limit too: then it names a wait."""

_REPLY_LIMIT = re.compile(
    r"max_(completion_|output_)?tokens\b.{0,80}(too large|at most|less than or equal|greater than|maximum|limited|range)"
    r"|range of max_tokens",
    re.IGNORECASE | re.DOTALL,
)
"""A model that writes less than is asked for; OpenAI, Anthropic, DeepSeek and Qwen each have their own words for it."""

_KEY = re.compile(
    r"api[ _-]?key (is )?(not (valid|found)|invalid|expired)|(invalid|incorrect) api[ _-]?key|api_key_invalid"
    r"|no_db_connection",
    re.IGNORECASE,
)
"""A wrong key behind a 400: Gemini's words, and those of a LiteLLM proxy without a database."""

_MODEL = re.compile(
    r"(invalid|unknown|unsupported) model|model_not_found|\bmodel\b.{0,120}(not found|not exist)",
    re.IGNORECASE,
)
"""A wrong model behind a 400, as a LiteLLM proxy answers."""

_TOO_LARGE = re.compile(r"request too large|tokens must be reduced", re.IGNORECASE)
"""A call that alone exceeds what a minute allows: OpenAI answers it with 429, and waiting does not help."""

_RETRY_IN = re.compile(
    rb"(?:(?:retry|try again) in |retryDelay\\*\"\s*:\s*\\*\")(?:(\d+)m(?!s))?([\d.]+)(m?s)\b", re.IGNORECASE
)
"""The wait that a body asks for: Gemini's `Please retry in 47.4s` and `retryDelay`, OpenAI's `try again in 1m12s`."""

_PARAMETER = re.compile(r"response_format|json_schema|\b(temperature|seed|max_tokens)\b")
"""What a refusal is about that a lesser request mends; llama-cpp-python answers so with 500 to a format."""

_BY_STATUS = {
    401: FaultKind.AUTH,
    402: FaultKind.QUOTA,
    403: FaultKind.AUTH,
    404: FaultKind.NOT_FOUND,
    408: FaultKind.TIMEOUT,
    413: FaultKind.CONTEXT_LENGTH,
    425: FaultKind.SERVER_ERROR,
    429: FaultKind.RATE_LIMITED,
}


def _kind(status: int, message: str, wait_seconds: float | None) -> FaultKind:
    kind = _BY_STATUS.get(status, FaultKind.SERVER_ERROR if status >= 500 else FaultKind.REFUSED)
    if kind is FaultKind.RATE_LIMITED and _TOO_LARGE.search(message):
        return FaultKind.CONTEXT_LENGTH
    if kind is FaultKind.RATE_LIMITED and (
        _QUOTA.search(message) or (wait_seconds is None and _QUOTA_OR_RATE.search(message))
    ):
        return FaultKind.QUOTA
    if status not in (400, 422) and status < 500:
        return kind
    if _CONTEXT.search(message):
        return FaultKind.CONTEXT_LENGTH
    if _REPLY_LIMIT.search(message):
        return FaultKind.REPLY_CUT
    if _PARAMETER.search(message):
        return FaultKind.REFUSED
    if status >= 500:
        return kind
    kinds = {_FILTER: FaultKind.CONTENT_FILTER, _KEY: FaultKind.AUTH, _MODEL: FaultKind.NOT_FOUND}
    return next((found for words, found in kinds.items() if words.search(message)), kind)


def read_fault(status: int, content: bytes, *, url: str = "", wait_seconds: float | None = None) -> ChatFault:
    """Return the fault that an HTTP status other than 200 and its body mean, whoever the provider is."""
    message = _message(content)
    detail = f"HTTP {status}" + (f" from {url}" if url else "") + (f": {message}" if message else "")
    if wait_seconds is None and status in (429, 503):
        wait_seconds = _asked_wait(content)
    kind = _kind(status, message, wait_seconds)
    return ChatFault(kind, detail, status=status, wait_seconds=wait_seconds)


def _asked_wait(content: bytes) -> float | None:
    found = _RETRY_IN.search(content[:20_000])
    if found is None:
        return None
    minutes, amount, unit = found.groups()
    try:
        seconds = float(amount) / (1000 if unit.lower() == b"ms" else 1)
    except ValueError:
        return None
    return seconds + 60 * int(minutes or 0)


def _message(content: bytes, limit: int = 400) -> str:
    """Return the error's code and message on one line, whichever of the usual shapes it has."""
    text = content[:20_000].decode("utf-8", errors="replace")
    try:
        body: object = json.loads(text)
    except ValueError:
        body = text
    if isinstance(body, list) and body:
        body = cast("list[object]", body)[0]
    if isinstance(body, dict):
        held = cast("Mapping[str, object]", body)
        error = held.get("error", held.get("detail", held))
        if isinstance(error, dict):
            fields = cast("Mapping[str, object]", error)
            found = [fields.get(name) for name in ("code", "type", "param", "message", "status")]
            error = " ".join(str(value) for value in found if value not in (None, ""))
        text = error if isinstance(error, str) else json.dumps(error)
    plain = " ".join(text.split())
    return plain if len(plain) <= limit else f"{plain[:limit]} …"
