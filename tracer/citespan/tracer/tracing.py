"""How this process records: the tracer in use, and how it is taken from the app's own provider."""

from __future__ import annotations

import inspect
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, TracerProvider

from citespan.tracer.errors import ConfigurationError
from citespan.tracer.faults import log_fault, warn_once
from citespan.tracer.redaction import Redaction
from citespan.tracer.settings import TracerSettings, read_settings
from citespan.tracer.tap import Tap

__all__ = ["Tracing", "active_tracing", "adopt", "configured_tracing", "set_tracing", "tap_on"]

_SCOPE = "citespan.tracer"


@dataclass(frozen=True, slots=True)
class Tracing:
    """How this process records runs."""

    tracer: trace.Tracer
    """Makes citespan's spans."""

    provider: trace.TracerProvider
    """Give it to other instrumentors, so that their spans go the same way."""

    redaction: Redaction
    """What is kept out of the spans."""

    tap: Tap | None = None
    """citespan's processor on the provider; `None` where the provider takes none."""

    url: str | None = None
    """Where `configure()` sends spans; `None` where only the app's own provider does, or nobody."""

    clock: Callable[[], int] | None = None
    """Unix nanoseconds for citespan's spans; `None` for the SDK's own clock."""

    def flush(self, timeout_seconds: float = 10.0) -> bool:
        """Send what waits; return whether everything was handed over in time."""
        if isinstance(self.provider, TracerProvider):
            return self.provider.force_flush(int(timeout_seconds * 1000))
        return True


_lock = threading.Lock()
_configured: Tracing | None = None
_adopted: Tracing | None = None
_taps: weakref.WeakKeyDictionary[TracerProvider, Tap] = weakref.WeakKeyDictionary()


def active_tracing() -> Tracing:
    """Return how runs are recorded: as configured, else through the global provider as it stands."""
    if _configured is not None:
        return _configured
    provider = trace.get_tracer_provider()
    if _adopted is not None and _adopted.provider is provider:
        return _adopted
    return _adopt_global(provider)


def configured_tracing() -> Tracing | None:
    """Return what `configure()` set, if anything."""
    return _configured


def set_tracing(tracing: Tracing | None) -> None:
    """Record as `tracing` says from now on; `None` goes back to the global provider."""
    global _configured
    with _lock:
        _configured = tracing


def adopt(provider: trace.TracerProvider, redaction: Redaction, settings: TracerSettings) -> Tracing:
    """Return how to record through `provider`.

    Where its limits would lose passages (128 attributes a span by default) or cut the record in the middle,
    citespan's own spans get limits of their own; sampler, resource, ids and processors stay the provider's.
    """
    tracer = _own_tracer(provider, settings)
    return Tracing(
        tracer, provider, redaction, tap_on(provider) if isinstance(provider, TracerProvider) else None
    )


def _add_processor(provider: TracerProvider, processor: SpanProcessor) -> None:
    """Add a processor and leave the others alone.

    Phoenix's provider, unless told otherwise, takes an added processor for a replacement of its exporter.
    """
    if "replace_default_processor" in inspect.signature(provider.add_span_processor).parameters:
        provider.add_span_processor(processor, replace_default_processor=False)  # type: ignore[call-arg]
    else:
        provider.add_span_processor(processor)


def tap_on(provider: TracerProvider) -> Tap:
    """Return citespan's processor on a provider: one for its life."""
    tap = _taps.get(provider)
    if tap is None:
        tap = _taps[provider] = Tap(_SCOPE)
        _add_processor(provider, tap)
    return tap


def _adopt_global(provider: trace.TracerProvider) -> Tracing:
    global _adopted
    try:
        settings = read_settings()
    except ConfigurationError as error:
        log_fault("reading the environment", error)
        settings = TracerSettings(hides_inputs=True, hides_outputs=True)
    with _lock:
        _adopted = adopt(provider, Redaction().under(settings), settings)
        return _adopted


def _own_tracer(provider: trace.TracerProvider, settings: TracerSettings) -> trace.Tracer:
    limits: object = getattr(provider, "_span_limits", None)
    if not isinstance(provider, TracerProvider) or not isinstance(limits, SpanLimits):
        return provider.get_tracer(_SCOPE)
    wanted = settings.attribute_limit
    allowed = limits.max_span_attributes
    if (allowed is None or allowed >= wanted) and limits.max_span_attribute_length is None:
        return provider.get_tracer(_SCOPE)
    processors: object = getattr(provider, "_active_span_processor", None)
    if processors is None:
        warn_once("limits", f"the tracer provider keeps {allowed} attributes a span: passages may be lost")
        return provider.get_tracer(_SCOPE)
    return TracerProvider(
        sampler=provider.sampler,
        resource=provider.resource,
        shutdown_on_exit=False,
        active_span_processor=processors,  # type: ignore[arg-type]
        id_generator=provider.id_generator,
        # Long texts are cut by a redaction rule, visibly; the SDK would cut the record in the middle.
        span_limits=SpanLimits(max_span_attributes=wanted, max_span_attribute_length=SpanLimits.UNSET),
    ).get_tracer(_SCOPE)
