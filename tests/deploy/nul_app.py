"""An app whose answers hold NUL, which PostgreSQL cannot store: as citespan records it, in JSON, and bare."""

from __future__ import annotations

import json
import os
import sys
import time

from openinference.semconv.resource import ResourceAttributes
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from citespan import tracer
from citespan.tracer import Passage

PASSAGE = "Refunds are issued within five business days of the request."
ANSWER = "Refunds are issued within five \x00 business days of the request [1]."


def record_with_citespan() -> str:
    """Record a run and return its trace id."""
    tracer.configure()
    with tracer.run("How long do refunds take?") as run:
        run.retrieved([Passage(id="refunds", text=PASSAGE + "\x00", label="1")])
        run.answer(ANSWER)
    tracer.shutdown()
    return run.trace_id


def record_with_opentelemetry(output: dict[str, str]) -> str:
    """Record a trace as another instrumentor would and return its id."""
    project = Resource.create({ResourceAttributes.PROJECT_NAME: os.environ["PHOENIX_PROJECT_NAME"]})
    provider = TracerProvider(resource=project)
    headers = {"authorization": f"Bearer {os.environ['PHOENIX_API_KEY']}"}
    endpoint = f"{os.environ['PHOENIX_COLLECTOR_ENDPOINT']}/v1/traces"
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint, headers=headers)))
    source = provider.get_tracer("another")
    with source.start_as_current_span("chain") as chain:
        with source.start_as_current_span("retrieve") as retriever:
            retriever.set_attributes(
                {
                    "openinference.span.kind": "RETRIEVER",
                    "retrieval.documents.0.document.id": "1",
                    "retrieval.documents.0.document.content": PASSAGE,
                }
            )
        time.sleep(0.01)
        chain.set_attributes(
            {
                "input.value": "How long do refunds take?",
                "openinference.span.kind": "CHAIN",
                **{f"output.{key}": value for key, value in output.items()},
            }
        )
    provider.shutdown()
    return f"{chain.get_span_context().trace_id:032x}"


RECORD = {
    "citespan": record_with_citespan,
    "json": lambda: record_with_opentelemetry(
        {"value": json.dumps({"answer": ANSWER}), "mime_type": "application/json"}
    ),
    "bare": lambda: record_with_opentelemetry({"value": ANSWER}),
}
"""Ways to record it, by name."""

if __name__ == "__main__":
    sys.stdout.write(json.dumps({name: RECORD[name]() for name in sys.argv[1:]}))
