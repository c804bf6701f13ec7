"""Where and how a chat model is asked."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from citespan.evaluators.judges.chat.dialect import ReplyFormat

__all__ = ["ChatOptions"]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]

_AZURE = (".azure.com", ".azure.us", ".azure.cn")
"""Hosts that want the key alone in a header of its own."""


class ChatOptions(BaseModel):
    """Where and how a chat model is asked; values may be text, as in a judge's name on the command line."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Annotated[str, Field(min_length=1)]
    """The model as the server calls it."""

    base_url: str = "https://api.openai.com/v1"
    """URL up to `/chat/completions`; a query, such as Azure's `?api-version=`, is kept."""

    api_key: SecretStr | None = None
    """Key; `None` for a server that asks for none."""

    api_key_header: str = ""
    """Header that carries the key alone; empty for `Authorization: Bearer`, on Azure hosts for `api-key`."""

    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Sampling temperature; left out for models that refuse it."""

    seed: int = 0
    """Sampling seed; left out for servers that refuse it."""

    reply_format: Literal["auto", "json_schema", "json_object_schema", "json_object", "text"] = "auto"
    """How JSON is asked for; `auto` starts with a schema and steps down where the server refuses."""

    claims_per_call: Count = 20
    """Claims of one answer in one call at most; 1 judges each in a call of its own."""

    context_tokens: Annotated[int, Field(ge=1000)] = 32_000
    """Tokens of prompt and reply in one call at most, by an estimate that errs upwards."""

    reply_tokens: Annotated[int, Field(ge=50)] = 400
    """Tokens reserved for each claim's verdict; raise it for a model that thinks before it answers."""

    timeout_seconds: Positive = 60.0
    """Longest wait for one answer."""

    retries: Annotated[int, Field(ge=0, le=20)] = 5
    """Further tries after a fault that may pass."""

    most_wait_seconds: Positive = 120.0
    """Longest time in which a call is tried again, waits that the server asks for included."""

    concurrency: Count = 4
    """Calls under way at once, over all threads."""

    requests_per_minute: Positive | None = None
    """Calls started in a minute at most."""

    tokens_per_minute: Positive | None = None
    """Tokens, by estimate, of the calls started in a minute at most."""

    budget_tokens: Count | None = None
    """Tokens that may be spent; then every verdict is `unjudged: budget_exhausted`."""

    budget_usd: Positive | None = None
    """US dollars that may be spent; needs a known price."""

    input_usd_per_million: Annotated[float, Field(ge=0)] | None = None
    """Price of a million tokens sent; without it the package `genai-prices` is asked, if it is installed."""

    output_usd_per_million: Annotated[float, Field(ge=0)] | None = None
    """Price of a million tokens received."""

    @field_validator("model")
    @classmethod
    def _is_no_url(cls, value: str) -> str:
        if "://" in value:
            raise ValueError("expected the model's name alone; the endpoint is an option: base_url=URL")
        return value

    @field_validator("base_url")
    @classmethod
    def _is_url(cls, value: str) -> str:
        url = urlsplit(value)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError("expected a URL such as http://localhost:8000/v1")
        return value

    @model_validator(mode="after")
    def _has_both_prices(self) -> ChatOptions:
        if (self.input_usd_per_million is None) != (self.output_usd_per_million is None):
            raise ValueError(
                "a price has two parts: give both input_usd_per_million and output_usd_per_million"
            )
        return self

    @field_validator("api_key")
    @classmethod
    def _is_header_value(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not (
            value.get_secret_value().isascii() and value.get_secret_value().isprintable()
        ):
            raise ValueError("a key is printable ASCII")
        return value

    @property
    def host(self) -> str:
        """Host (and port) that receives the text."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    @property
    def url(self) -> str:
        """Where calls are sent."""
        parts = urlsplit(self.base_url)
        path = parts.path.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"
        return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))

    @property
    def shown_url(self) -> str:
        """Where calls are sent, without user, password and query: for messages."""
        return f"{self.endpoint.removesuffix('/chat/completions')}/chat/completions"

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every call."""
        if self.api_key is None:
            return {}
        key = self.api_key.get_secret_value()
        header = self.api_key_header or ("api-key" if self.host.endswith(_AZURE) else "authorization")
        return {header: f"Bearer {key}" if header.lower() == "authorization" else key}

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may repeat."""
        return () if self.api_key is None else (self.api_key.get_secret_value(),)

    @property
    def sampling(self) -> dict[str, object]:
        """What makes answers repeat."""
        return {"temperature": self.temperature, "seed": self.seed}

    @property
    def first_format(self) -> ReplyFormat:
        """The format that is tried first."""
        return ReplyFormat.JSON_SCHEMA if self.reply_format == "auto" else ReplyFormat(self.reply_format)

    @property
    def is_format_fixed(self) -> bool:
        """Whether no looser format is tried."""
        return self.reply_format != "auto"

    @property
    def endpoint(self) -> str:
        """The base URL without user, password and query: what the fingerprint says of where the model runs."""
        parts = urlsplit(self.base_url)
        return urlunsplit((parts.scheme, self.host, parts.path.rstrip("/"), "", ""))
