"""Settings of the evaluators: argument, else environment variable, else default.

This is the only module of the evaluators that reads `os.environ`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from citespan.evaluators.errors import UsageError
from citespan.evaluators.options import CitationScope, EvaluateOptions, LabelPolicy, Splitting
from citespan.evaluators.reading.rules import ReadingRules, load_rules

__all__ = ["CHAT_VARIABLES", "VARIABLES", "ChatSettings", "ClaimsMode", "Settings", "set_missing_variables"]

ClaimsMode = Literal["spans", "annotations", "findings"]
"""How claims are shown in Phoenix: a span each, rows on the answer's span, or spans only where something is wrong."""

DEFAULT_PORT = 6006
"""Port on which Phoenix serves page, REST API and OTLP over HTTP unless told otherwise."""

VARIABLES: Mapping[str, tuple[str, ...]] = {
    "endpoint": ("PHOENIX_ENDPOINT", "PHOENIX_COLLECTOR_ENDPOINT", "PHOENIX_BASE_URL"),
    "api_key": ("PHOENIX_API_KEY",),
    "headers": ("PHOENIX_CLIENT_HEADERS",),
    "project": ("CITESPAN_PROJECT", "PHOENIX_PROJECT", "PHOENIX_PROJECT_NAME"),
    "timeout_seconds": ("CITESPAN_TIMEOUT_SECONDS",),
    "judge": ("CITESPAN_JUDGE",),
    "citation_scope": ("CITESPAN_CITATION_SCOPE",),
    "splitting": ("CITESPAN_SPLITTING",),
    "label_policy": ("CITESPAN_LABEL_POLICY",),
    "series": ("CITESPAN_SERIES",),
    "claims": ("CITESPAN_CLAIMS",),
    "reading_rules": ("CITESPAN_READING_RULES",),
    "home": ("CITESPAN_HOME",),
    "ray_address": ("RAY_ADDRESS",),
    "trace_project": ("CITESPAN_TRACE_PROJECT",),
    "events": ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",),
    "events_headers": ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"),
}
"""Variables that set each field, the first one that is set wins; one that is empty counts as unset.

Without an endpoint, `PHOENIX_HOST`, `PHOENIX_PORT` and `PHOENIX_HOST_ROOT_PATH` make one, as for Phoenix itself.
"""


class Settings(BaseModel):
    """Where Phoenix is and how runs are evaluated."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    endpoint: str = f"http://localhost:{DEFAULT_PORT}"
    """URL of Phoenix, with its root path if it has one, without `/v1/traces` and without a final slash."""

    api_key: SecretStr | None = None
    """Key sent as `Authorization: Bearer`."""

    headers: Mapping[str, SecretStr] = Field(default_factory=dict[str, SecretStr])
    """Headers sent with every request to Phoenix, names in lower case."""

    project: Annotated[str, Field(min_length=1)] = "default"
    """Name of the Phoenix project."""

    timeout_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30.0
    """Longest wait for one reply of Phoenix."""

    judge: Annotated[str, Field(min_length=1)] = "lexical"
    """Name of the judge, with its argument: `lexical`, `chat:gpt-4o-mini`."""

    citation_scope: CitationScope = CitationScope.SENTENCE
    """What a paragraph-final marker covers."""

    splitting: Splitting = Splitting.ATOMIC
    """How finely an answer is split into claims."""

    label_policy: LabelPolicy = LabelPolicy.ANY
    """How the cited passages of one claim make its label."""

    series: str | None = None
    """Name of a second evaluation kept beside the main one; `None` is the main one."""

    claims: ClaimsMode = "spans"
    """How claims are shown in Phoenix."""

    reading_rules: str | None = None
    """File that names where an app's spans keep answer, question and passages; see `reading.rules`."""

    home: str = ".citespan"
    """Folder of what citespan keeps on this machine, such as the database of a local Phoenix."""

    ray_address: str | None = None
    """A Ray cluster that runs; without one, one is started where Ray is asked for."""

    trace_project: str | None = None
    """Phoenix project for the worker's own spans; `None` records none."""

    events: str | None = None
    """OTLP receiver over HTTP to which a worker sends evaluations as events; `None` sends none."""

    events_headers: Mapping[str, SecretStr] = Field(default_factory=dict[str, SecretStr])
    """Headers sent with these events."""

    origins: Mapping[str, str] = Field(default_factory=dict[str, str])
    """Where each field that is no default came from: `argument`, or the name of a variable."""

    @classmethod
    def load(cls, *, environ: Mapping[str, str] | None = None, **arguments: object) -> Settings:
        """Return the settings that arguments and environment make.

        Args:
            environ: Variables to read instead of the process's own.
            **arguments: Fields by name; `None` means not given.

        Raises:
            UsageError: A value is not usable; the message names the argument or variable, and no secret.
        """
        environ = os.environ if environ is None else environ
        values = {name: value for name, value in arguments.items() if value is not None}
        origins = dict.fromkeys(values, "argument")
        for name, variables in VARIABLES.items():
            variable = next((v for v in variables if environ.get(v, "").strip()), None)
            if name not in values and variable is not None:
                values[name], origins[name] = environ[variable].strip(), variable
        if "endpoint" not in values and (endpoint := _endpoint_from_host(environ)) is not None:
            values["endpoint"], origins["endpoint"] = endpoint, "PHOENIX_HOST, PHOENIX_PORT"
        if "endpoint" in values:
            values["endpoint"] = _endpoint(str(values["endpoint"]), _say(origins["endpoint"], "endpoint"))
        if "events" in values:
            values["events"] = _url(str(values["events"]), _say(origins["events"], "events"))
        else:  # OTEL_EXPORTER_OTLP_HEADERS is also there for others
            values.pop("events_headers", None)
        for name in ("headers", "events_headers"):
            if isinstance(headers := values.get(name), str):
                values[name] = _headers(headers, _say(origins[name], name))
        try:
            return cls.model_validate({**values, "origins": origins})
        except ValidationError as error:
            raise _usage_error(error, origins) from None

    @property
    def request_headers(self) -> dict[str, str]:
        """The headers to send to Phoenix, key included; a header given by name wins over the key."""
        headers = {name: value.get_secret_value() for name, value in self.headers.items()}
        if self.api_key is not None:
            headers.setdefault("authorization", f"Bearer {self.api_key.get_secret_value()}")
        return headers

    @property
    def events_request_headers(self) -> dict[str, str]:
        """The headers to send with events."""
        return {name: value.get_secret_value() for name, value in self.events_headers.items()}

    @property
    def options(self) -> EvaluateOptions:
        """How runs are evaluated."""
        return EvaluateOptions(
            splitting=self.splitting, citation_scope=self.citation_scope, label_policy=self.label_policy
        )

    @property
    def rules(self) -> ReadingRules | None:
        """Where an app keeps what is read, if a file says so.

        Raises:
            UsageError: The file cannot be read, or holds no rules.
        """
        return None if self.reading_rules is None else load_rules(Path(self.reading_rules))

    def describe_endpoint(self) -> str:
        """Return the endpoint and who set it, for messages."""
        return f"{self.endpoint} ({self.origins.get('endpoint', 'default')})"


CHAT_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "base_url": ("CITESPAN_CHAT_BASE_URL", "OPENAI_BASE_URL"),
    "api_key": ("CITESPAN_CHAT_API_KEY", "OPENAI_API_KEY"),
    "budget_usd": ("CITESPAN_CHAT_BUDGET_USD",),
    "budget_tokens": ("CITESPAN_CHAT_BUDGET_TOKENS",),
}
"""Variables of a chat judge that is named explicitly; none of them makes a chat model the judge."""


class ChatSettings(BaseModel):
    """What the environment says of the chat model that judges, as it says it: options of the judge win over it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: str | None = None
    """URL up to `/chat/completions`."""

    api_key: SecretStr | None = None
    """Key of the endpoint."""

    budget_usd: str | None = None
    """US dollars that the judge may spend."""

    budget_tokens: str | None = None
    """Tokens that the judge may spend."""

    @classmethod
    def load(cls, *, environ: Mapping[str, str] | None = None) -> ChatSettings:
        """Return what the environment says; a variable that is empty counts as unset."""
        environ = os.environ if environ is None else environ
        found = {
            name: next((value for v in variables if (value := environ.get(v, "").strip())), None)
            for name, variables in CHAT_VARIABLES.items()
        }
        return cls.model_validate(found)


def set_missing_variables(variables: Mapping[str, str]) -> None:
    """Set the environment variables of this process that are not set: for Ray, and for judges in its processes."""
    for name, value in variables.items():
        os.environ.setdefault(name, value)


def _say(origin: str, field: str) -> str:
    return f"--{field.replace('_', '-')}" if origin == "argument" else origin


def _endpoint_from_host(environ: Mapping[str, str]) -> str | None:
    host, port = environ.get("PHOENIX_HOST", "").strip(), environ.get("PHOENIX_PORT", "").strip()
    root = environ.get("PHOENIX_HOST_ROOT_PATH", "").strip().strip("/")
    if not (host or port or root):
        return None
    if host in ("", "0.0.0.0", "::"):  # noqa: S104  # the address that a server binds is none to call
        host = "localhost"
    if "://" not in host:
        host = f"http://[{host}]" if ":" in host else f"http://{host}"
    return f"{host}:{port or DEFAULT_PORT}" + (f"/{root}" if root else "")


def _endpoint(text: str, origin: str) -> str:
    """Return the URL of Phoenix that `text` means: a collector's `/v1/traces` is no part of it."""
    return _url(text, origin).rstrip("/").removesuffix("/v1/traces").rstrip("/")


def _url(text: str, origin: str) -> str:
    """Return the URL that `text` means; without a scheme it is http."""
    given = text
    text = text if "://" in text else f"http://{text}"
    try:
        url = urlsplit(text)
        is_url = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        is_plain = not url.query and not url.fragment
    except ValueError:
        is_url = is_plain = False
    if not (is_url and is_plain):
        raise UsageError(f"{origin} is {given!r}: expected a URL such as http://localhost:{DEFAULT_PORT}")
    return text


def _headers(text: str, origin: str) -> dict[str, str]:
    """Read `name=value,name=value`, values percent-encoded, as OpenTelemetry writes headers in a variable."""
    headers: dict[str, str] = {}
    for n, part in enumerate(text.split(","), start=1):
        name, separator, value = part.partition("=")
        if not part.strip():
            continue
        if not separator or not name.strip():
            raise UsageError(
                f"{origin}: entry {n} is not name=value: separate headers by commas, percent-encode the values"
            )
        headers[unquote(name.strip()).lower()] = unquote(value.strip())
    return headers


def _usage_error(error: ValidationError, origins: Mapping[str, str]) -> UsageError:
    """Return the first complaint as one line that names where the value came from."""
    detail = error.errors(include_url=False)[0]
    field = str(detail["loc"][0]) if detail["loc"] else "settings"
    is_secret = field in ("api_key", "headers", "events_headers")
    shown = "" if is_secret else f" is {detail['input']!r}"
    return UsageError(f"{_say(origins.get(field, 'argument'), field)}{shown}: {detail['msg']}")
