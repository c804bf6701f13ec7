"""Where recorded spans go: `configure()` sets it up once per process."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace

from openinference.semconv.resource import ResourceAttributes
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter

from citespan.tracer.errors import ConfigurationError
from citespan.tracer.faults import warn_once
from citespan.tracer.outbox import Outbox, OutboxLimits
from citespan.tracer.redaction import Redaction
from citespan.tracer.settings import GRPC, HTTP, TracerSettings, protocol_for, read_settings, traces_url
from citespan.tracer.tap import Tap
from citespan.tracer.tracing import Tracing, adopt, set_tracing, tap_on

__all__ = ["configure", "shutdown"]

_GRPC_MESSAGE_BYTES = 3 * 1024 * 1024


def configure(
    *,
    endpoint: str | None = None,
    project: str | None = None,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    protocol: str | None = None,
    redaction: Redaction | None = None,
    batch: bool = True,
    max_waiting_bytes: int = 64 * 1024 * 1024,
    exporter: SpanExporter | None = None,
) -> Tracing:
    """Send recorded runs to Phoenix, or to any OpenTelemetry collector.

    Without a global tracer provider, one is made and set. With one (the app already traces), that one is
    used: spans go where it sends them, and also to `endpoint` or `exporter` where one is given.

    Args:
        endpoint: Base or whole URL; default `PHOENIX_COLLECTOR_ENDPOINT`, then `OTEL_EXPORTER_OTLP_*`, then
            a local Phoenix.
        project: Phoenix project; default `PHOENIX_PROJECT` or `PHOENIX_PROJECT_NAME`, then `default`.
        api_key: Sent as bearer token; default `PHOENIX_API_KEY`.
        headers: More headers; beside those of `PHOENIX_CLIENT_HEADERS` and `OTEL_EXPORTER_OTLP_HEADERS`.
        protocol: `http/protobuf` or `grpc`; default `OTEL_EXPORTER_OTLP_PROTOCOL`, then by port.
        redaction: What is kept out of the spans.
        batch: Whether spans are sent in the background; `False` only for scripts that must not lose any.
        max_waiting_bytes: Most bytes of text that wait for the network.
        exporter: Another exporter instead of OTLP.

    Returns:
        How runs are now recorded. Calling again replaces it and sends what waits.

    Raises:
        ConfigurationError: An argument or a variable cannot work; the message names it.
    """
    settings = _settings(endpoint, project, api_key, headers, protocol)
    if redaction is not None and not isinstance(redaction, Redaction):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(
            f"redaction is {type(redaction).__name__}: expected a citespan.tracer.Redaction"
        )
    if max_waiting_bytes <= 0:
        raise ConfigurationError(f"max_waiting_bytes is {max_waiting_bytes}: expected a positive number")
    with _lock:
        provider, is_ours = _provider(settings)
        is_sending = is_ours or endpoint is not None or exporter is not None
        is_sending = is_sending and (exporter is not None or not settings.is_export_off)
        if is_sending:
            exporter = exporter or _otlp_exporter(settings)
            processor: SpanProcessor = SimpleSpanProcessor(exporter)
            if batch:
                processor = Outbox(exporter, _limits(settings, max_waiting_bytes))
            _send(provider, processor)
        else:
            _send(None, None)
        tracing = adopt(provider, (redaction or Redaction()).under(settings), settings)
        tracing = replace(tracing, url=settings.url if is_sending else None)
        set_tracing(tracing)
    return tracing


def shutdown() -> None:
    """Send what waits and stop what `configure()` started; `configure()` may be called again."""
    with _lock:
        _send(None, None)
        set_tracing(None)


_lock = threading.Lock()
_sending: Tap | None = None
_own_provider: TracerProvider | None = None


def _send(provider: TracerProvider | None, processor: SpanProcessor | None) -> None:
    """Send the spans of `provider` to `processor` from now on, and those of an earlier one nowhere."""
    global _sending
    tap = None if provider is None else tap_on(provider)
    if _sending is not None and _sending is not tap:
        _sending.send_to(None)
    _sending = tap
    if tap is not None:
        tap.send_to(processor)


def _provider(settings: TracerSettings) -> tuple[TracerProvider, bool]:
    """Return the global provider and whether it is ours; make and set one where there is none."""
    global _own_provider
    current = trace.get_tracer_provider()
    if isinstance(current, TracerProvider):
        found = current.resource.attributes.get(ResourceAttributes.PROJECT_NAME)
        if settings.project is not None and found != settings.project:
            warn_once(
                f"project:{settings.project}",
                f"project {settings.project!r} has no effect: the tracer provider in use records to {found!r}",
            )
        return current, current is _own_provider
    resource = Resource.create(
        {ResourceAttributes.PROJECT_NAME: settings.project} if settings.project else {}
    )
    _own_provider = TracerProvider(
        resource=resource, span_limits=SpanLimits(max_span_attributes=settings.attribute_limit)
    )
    trace.set_tracer_provider(_own_provider)
    return _own_provider, True


def _limits(settings: TracerSettings, waiting_bytes: int) -> OutboxLimits:
    limits = OutboxLimits(
        waiting_spans=settings.waiting_spans,
        waiting_bytes=waiting_bytes,
        message_spans=settings.message_spans,
        delay_seconds=settings.delay_seconds,
    )
    return replace(limits, message_bytes=_GRPC_MESSAGE_BYTES) if settings.protocol == GRPC else limits


def _settings(
    endpoint: str | None,
    project: str | None,
    api_key: str | None,
    headers: Mapping[str, str] | None,
    protocol: str | None,
) -> TracerSettings:
    settings = read_settings()
    if protocol not in (None, HTTP, GRPC):
        raise ConfigurationError(f"protocol is {protocol!r}: expected {HTTP!r} or {GRPC!r}")
    for name, value in (("project", project), ("api_key", api_key)):
        if value is not None and not value.strip():
            raise ConfigurationError(f"{name} is empty: leave it out to use the default")
    if endpoint is not None:
        url = traces_url(endpoint, name="endpoint")
        settings = replace(settings, url=url, protocol=protocol or protocol_for(url))
    merged = dict(settings.headers or {})
    if api_key is not None:
        merged["authorization"] = f"Bearer {api_key}"
    merged |= {name.lower(): value for name, value in (headers or {}).items()}
    return replace(
        settings,
        protocol=protocol or settings.protocol,
        project=project or settings.project,
        headers=merged or None,
    )


def _otlp_exporter(settings: TracerSettings) -> SpanExporter:
    """Import and make the exporter here: the import costs half a second that only exporting needs."""
    headers = dict(settings.headers or {}) or None
    if settings.protocol == GRPC:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter

        target = settings.url.removesuffix("/v1/traces")
        return GrpcExporter(endpoint=target, insecure=target.startswith("http://"), headers=headers)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter

    return HttpExporter(endpoint=settings.url, headers=headers)
