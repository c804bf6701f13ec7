"""Record RAG runs, their passages and their citations as OpenTelemetry spans."""

from __future__ import annotations

from citespan.tracer.adapt import number_passages
from citespan.tracer.capture import Run
from citespan.tracer.citations import Citation
from citespan.tracer.current import answer, answer_from, current_run, retrieved, shown, start_run
from citespan.tracer.errors import CitespanTracerError, ConfigurationError, RecordError
from citespan.tracer.export import configure, shutdown
from citespan.tracer.passages import Passage
from citespan.tracer.redaction import Hash, Hide, Redacted, Redaction, Truncate
from citespan.tracer.scope import run
from citespan.tracer.tracing import Tracing

__all__ = [
    "Citation",
    "CitespanTracerError",
    "ConfigurationError",
    "Hash",
    "Hide",
    "Passage",
    "RecordError",
    "Redacted",
    "Redaction",
    "Run",
    "Tracing",
    "Truncate",
    "answer",
    "answer_from",
    "configure",
    "current_run",
    "number_passages",
    "retrieved",
    "run",
    "shown",
    "shutdown",
    "start_run",
]
