"""Settings of the tracer, and the only reader of the environment: argument > variable > default."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from citespan.tracer.errors import ConfigurationError

__all__ = ["GRPC", "HTTP", "SPAN_ATTRIBUTE_LIMIT", "TracerSettings", "read_settings", "traces_url"]

HTTP = "http/protobuf"
"""OTLP over HTTP, the default: a batch may be larger than gRPC's 4 MiB."""

GRPC = "grpc"
"""OTLP over gRPC."""

SPAN_ATTRIBUTE_LIMIT = 10_000
"""Attributes a span may have; OpenTelemetry's default of 128 drops the oldest ones silently."""

DEFAULT_URL = "http://localhost:6006"
"""Where a local Phoenix listens."""

_GRPC_PORT = 4317
_TRACES_PATH = "/v1/traces"
_TRUE = frozenset({"1", "true", "yes", "on"})


@dataclass(frozen=True, slots=True)
class TracerSettings:
    """What the environment says; `configure()` puts its arguments before it."""

    url: str = DEFAULT_URL + _TRACES_PATH
    """Where spans go, whole.

    From `PHOENIX_COLLECTOR_ENDPOINT` (a base, also with a path, or already whole), else
    `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` (whole), else `OTEL_EXPORTER_OTLP_ENDPOINT` (a base).
    """

    protocol: str = HTTP
    """`OTEL_EXPORTER_OTLP_TRACES_PROTOCOL`, else `OTEL_EXPORTER_OTLP_PROTOCOL`; gRPC for port 4317."""

    headers: Mapping[str, str] | None = None
    """`OTEL_EXPORTER_OTLP_HEADERS` or `OTEL_EXPORTER_OTLP_TRACES_HEADERS`, then `authorization` from
    `PHOENIX_API_KEY`, then `PHOENIX_CLIENT_HEADERS`; what comes later counts.
    """

    project: str | None = None
    """`PHOENIX_PROJECT`, else `PHOENIX_PROJECT_NAME`; Phoenix calls it `default` where none is given."""

    is_export_off: bool = False
    """`OTEL_TRACES_EXPORTER=none`: record, send nothing."""

    attribute_limit: int = SPAN_ATTRIBUTE_LIMIT
    """`OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT`, else `OTEL_ATTRIBUTE_COUNT_LIMIT`, where somebody set one."""

    text_limit: int | None = None
    """`OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT`, else `OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT`, in code points."""

    waiting_spans: int = 2048
    """`OTEL_BSP_MAX_QUEUE_SIZE`: most spans that wait for the network."""

    message_spans: int = 512
    """`OTEL_BSP_MAX_EXPORT_BATCH_SIZE`: most spans in one message."""

    delay_seconds: float = 5.0
    """`OTEL_BSP_SCHEDULE_DELAY`, there in milliseconds: how long a span waits for others."""

    hides_inputs: bool = False
    """`OPENINFERENCE_HIDE_INPUTS` or `OPENINFERENCE_HIDE_INPUT_TEXT`: hide question and prompt."""

    hides_outputs: bool = False
    """`OPENINFERENCE_HIDE_OUTPUTS` or `OPENINFERENCE_HIDE_OUTPUT_TEXT`: hide answer and passages."""

    raises_internal_errors: bool = False
    """`CITESPAN_INTERNAL_ERRORS`, `raise` or `log`; without it `raise` under pytest, else `log`."""


def read_settings(environ: Mapping[str, str] = os.environ) -> TracerSettings:
    """Read the environment.

    Raises:
        ConfigurationError: A variable holds something that cannot work; the message names it.
    """
    url, protocol = _destination(environ)
    attribute_limit = _limit(environ, "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT")
    return TracerSettings(
        url=url,
        protocol=protocol,
        headers=_headers(environ),
        project=_first(environ, "PHOENIX_PROJECT", "PHOENIX_PROJECT_NAME"),
        is_export_off=environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none",
        attribute_limit=SPAN_ATTRIBUTE_LIMIT if attribute_limit is None else attribute_limit,
        text_limit=_limit(
            environ, "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"
        ),
        waiting_spans=_limit(environ, "OTEL_BSP_MAX_QUEUE_SIZE") or 2048,
        message_spans=_limit(environ, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE") or 512,
        delay_seconds=(_limit(environ, "OTEL_BSP_SCHEDULE_DELAY") or 5000) / 1000,
        hides_inputs=_is_true(environ, "OPENINFERENCE_HIDE_INPUTS", "OPENINFERENCE_HIDE_INPUT_TEXT"),
        hides_outputs=_is_true(environ, "OPENINFERENCE_HIDE_OUTPUTS", "OPENINFERENCE_HIDE_OUTPUT_TEXT"),
        raises_internal_errors=raises_internal_errors(environ),
    )


def raises_internal_errors(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether an error inside the tracer is raised; read alone because it must never fail."""
    chosen = environ.get("CITESPAN_INTERNAL_ERRORS", "").strip().lower()
    return chosen == "raise" if chosen else "PYTEST_VERSION" in environ


def traces_url(endpoint: str, *, name: str) -> str:
    """Return the whole URL for a base URL with or without a path; a whole one stays as it is.

    Args:
        endpoint: For example `http://localhost:6006`, or `https://host/root` behind a host root path.
        name: What the caller calls it, for the message.

    Raises:
        ConfigurationError: It is no http or https URL with a host.
    """
    parts = _http_parts(endpoint)
    if parts is None:
        raise ConfigurationError(
            f"{name} is {endpoint!r}: expected an http or https URL such as {DEFAULT_URL!r}"
        )
    path = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=path if path.endswith(_TRACES_PATH) else path + _TRACES_PATH))


def _http_parts(endpoint: str) -> SplitResult | None:
    try:
        parts = urlsplit(endpoint.strip())
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_usable else None


def protocol_for(url: str) -> str:
    """Return gRPC for the port that speaks nothing else, HTTP for any other."""
    return GRPC if urlsplit(url).port == _GRPC_PORT else HTTP


def parse_headers(value: str, *, name: str) -> dict[str, str]:
    """Return the headers of `a=1,b=2` (names and values URL-encoded, as in W3C Baggage).

    Raises:
        ConfigurationError: An entry has no `=`.
    """
    headers: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in value.split(","))):
        key, separator, content = entry.partition("=")
        if not separator or not key.strip():
            raise ConfigurationError(f"{name} has an entry that is not name=value: expected a=1,b=2")
        headers[unquote(key).strip().lower()] = unquote(content).strip()
    return headers


def _destination(environ: Mapping[str, str]) -> tuple[str, str]:
    chosen = _first(environ, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    if chosen not in (None, HTTP, GRPC):
        raise ConfigurationError(f"OTEL_EXPORTER_OTLP_PROTOCOL is {chosen!r}: expected {HTTP!r} or {GRPC!r}")
    whole = _first(environ, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    url = DEFAULT_URL + _TRACES_PATH
    for name in (
        "PHOENIX_COLLECTOR_ENDPOINT",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ):
        if endpoint := _first(environ, name):
            url = traces_url(endpoint, name=name)
            url = endpoint if endpoint == whole and name.endswith("TRACES_ENDPOINT") else url
            break
    return url, chosen or protocol_for(url)


def _headers(environ: Mapping[str, str]) -> Mapping[str, str] | None:
    headers: dict[str, str] = {}
    for name in ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"):
        if given := _first(environ, name):
            headers |= parse_headers(given, name=name)
    if key := _first(environ, "PHOENIX_API_KEY"):
        headers["authorization"] = f"Bearer {key}"
    if given := _first(environ, "PHOENIX_CLIENT_HEADERS"):
        headers |= parse_headers(given, name="PHOENIX_CLIENT_HEADERS")
    return headers or None


def _first(environ: Mapping[str, str], *names: str) -> str | None:
    return next((value for name in names if (value := environ.get(name, "").strip())), None)


def _is_true(environ: Mapping[str, str], *names: str) -> bool:
    return any(environ.get(name, "").strip().lower() in _TRUE for name in names)


def _limit(environ: Mapping[str, str], *names: str) -> int | None:
    for name in names:
        if value := environ.get(name, "").strip():
            if not value.isdecimal():
                raise ConfigurationError(f"{name} is {value!r}: expected a whole number")
            return int(value)
    return None
