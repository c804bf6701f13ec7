"""Measure what citespan costs an app: microseconds per run against the plain OpenTelemetry SDK.

::

    python bench/tracer_overhead.py [--json] [--blocks 200] [--runs 50]

One run is a question, five passages of 500 characters, a model call and an answer: three spans.
The plain side is written by hand against the SDK and writes the very same attributes, hashes and record
included. `constants` is the same with hashes and record ready-made, which no app has: the least that any
recorder of these attributes could cost.

`unsampled` is citespan in a trace that the sampler leaves out.

The sides run in one process, in turns, each through its own batch processor into an exporter that drops
everything. Ratios are taken block by block, so that a busy machine slows all sides alike; time is CPU time of
all threads.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import Tracer

from citespan import tracer
from citespan.tracer import Passage, Redaction
from citespan.tracer.settings import TracerSettings
from citespan.tracer.tracing import adopt, set_tracing

QUESTION = "How does the sync client handle failures?"
PROMPT = "Answer from the passages."
ANSWER = (
    "The sync client retries transient failures up to five times. [1] Retries use exponential backoff. [1]"
)
SENTENCE = "The sync client retries transient network failures up to five times with exponential backoff. "
PASSAGES = [
    Passage(id=f"kb-{n}", text=f"{n}. {SENTENCE * 6}"[:500], label=str(n), score=1 / n) for n in range(1, 6)
]
"""Five passages of 500 characters."""

TARGET = 1.3
"""Most that citespan may cost, as a multiple of the plain SDK."""


class Nowhere(SpanExporter):
    """Drops every span: what the network costs is the same on both sides."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Drop the spans."""
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Do nothing."""


def run_citespan() -> None:
    """Record one run with citespan."""
    with tracer.run(QUESTION) as run:
        run.retrieved(PASSAGES)
        with run.generation(model="model", prompt=PROMPT) as generation:
            generation.output(ANSWER)
        run.answer(ANSWER)


def make_record() -> str:
    """Return the record of the run as an app would make it by hand."""
    passages = [
        {"id": p.id, "label": p.label, "sha256": hashlib.sha256((p.text or "").encode()).hexdigest()}
        for p in PASSAGES
    ]
    record = {"schema": 1, "passages": passages, "passage_count": len(passages)}
    record |= {"citations": [], "hidden": [], "cut": []}
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def run_plain(otel: Tracer, record: Callable[[], str]) -> None:
    """Record the same run with the plain SDK."""
    with otel.start_as_current_span("run") as run:
        with otel.start_as_current_span("retrieval") as retrieval:
            documents: dict[str, str | float] = {}
            for n, passage in enumerate(PASSAGES):
                prefix = f"retrieval.documents.{n}.document"
                documents[f"{prefix}.id"] = passage.id
                documents[f"{prefix}.content"] = passage.text or ""
                documents[f"{prefix}.score"] = passage.score or 0.0
            documents["openinference.span.kind"] = "RETRIEVER"
            retrieval.set_attributes(documents)
        with otel.start_as_current_span("generation") as generation:
            generation.set_attributes(
                {
                    "llm.model_name": "model",
                    "llm.input_messages.0.message.role": "user",
                    "llm.input_messages.0.message.content": PROMPT,
                    "llm.output_messages.0.message.role": "assistant",
                    "llm.output_messages.0.message.content": ANSWER,
                    "output.value": ANSWER,
                    "openinference.span.kind": "LLM",
                }
            )
        run.set_attributes(
            {
                "input.value": QUESTION,
                "output.value": ANSWER,
                "citespan.run": record(),
                "openinference.span.kind": "CHAIN",
            }
        )


def attributes_of(record: Callable[[], None], spans: InMemorySpanExporter) -> list[Mapping[str, object]]:
    """Return what `record` writes, span by span."""
    spans.clear()
    record()
    return [dict(span.attributes or {}) for span in spans.get_finished_spans()]


def plain_tracer(exporter: SpanExporter) -> Tracer:
    """Return a plain SDK tracer that exports in batches."""
    provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=10_000))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider.get_tracer("plain")


def check_same() -> None:
    """Stop unless all sides write the same attributes."""
    spans = InMemorySpanExporter()
    tracer.configure(exporter=spans, batch=False)
    by_citespan = attributes_of(run_citespan, spans)
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    by_hand = attributes_of(lambda: run_plain(provider.get_tracer("plain"), make_record), spans)
    if by_citespan != by_hand:
        raise SystemExit(f"the sides do not write the same:\n{by_citespan}\n{by_hand}")


def microseconds(call: Callable[[], None], runs: int) -> float:
    """Return the time of one call, averaged over `runs`."""
    start = time.process_time_ns()
    for _ in range(runs):
        call()
    return (time.process_time_ns() - start) / runs / 1000


def measure(blocks: int, runs: int) -> dict[str, object]:
    """Time the sides in turns and return the figures."""
    check_same()
    provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=10_000))
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    otel = provider.get_tracer("plain")
    constant = make_record()
    tracer.configure(exporter=Nowhere())
    sides: dict[str, Callable[[], None]] = {
        "plain": lambda: run_plain(otel, make_record),
        "citespan": run_citespan,
        "constants": lambda: run_plain(otel, lambda: constant),
    }
    times: dict[str, list[float]] = {name: [] for name in sides}
    for call in sides.values():
        microseconds(call, 1000)
    for _ in range(blocks):
        for name, call in sides.items():
            times[name].append(microseconds(call, runs))
    tracer.shutdown()
    provider.shutdown()
    unsampled = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    set_tracing(adopt(unsampled, Redaction(), TracerSettings()))
    times["unsampled"] = [microseconds(run_citespan, runs) for _ in range(blocks)]
    return {
        "blocks": blocks,
        "runs_per_block": runs,
        "microseconds": {name: round(statistics.median(values), 1) for name, values in times.items()},
        "ratio": spread(times["citespan"], times["plain"]),
        "ratio_to_constants": spread(times["citespan"], times["constants"]),
        "target": TARGET,
    }


def spread(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """Return the median ratio of paired blocks, and the middle half of them."""
    low, median, high = statistics.quantiles([a / b for a, b in zip(ours, theirs, strict=True)], n=4)
    return {"median": round(median, 3), "q25": round(low, 3), "q75": round(high, 3)}


def main() -> None:
    """Print the figures; exit with 1 where the target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--blocks", type=int, default=200, help="how often the sides take turns")
    parser.add_argument("--runs", type=int, default=50, help="runs per turn")
    arguments = parser.parse_args()
    figures = measure(arguments.blocks, arguments.runs)
    if arguments.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:20} {value}")
    ratio = cast("dict[str, float]", figures["ratio"])
    raise SystemExit(0 if ratio["median"] <= TARGET else 1)


if __name__ == "__main__":
    main()
