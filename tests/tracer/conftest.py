"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from citespan.tracer.faults import forget_faults
from citespan.tracer.testing import RecordedSpans, record_in_memory


@pytest.fixture
def recorded() -> Iterator[RecordedSpans]:
    """The spans that the test records, in memory."""
    with record_in_memory() as spans:
        yield spans


@pytest.fixture
def attributes() -> Callable[[ReadableSpan], Mapping[str, object]]:
    """Read a span's attributes."""
    return lambda span: dict(span.attributes or {})


@pytest.fixture
def faults_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> pytest.LogCaptureFixture:
    """Log errors inside the tracer, as in production, instead of raising them."""
    monkeypatch.setenv("CITESPAN_INTERNAL_ERRORS", "log")
    forget_faults()
    return caplog
