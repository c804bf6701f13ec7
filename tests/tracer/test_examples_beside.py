"""The examples beside LangChain and LlamaIndex run, and nothing in their traces is there twice.

Each is a process of its own: instrumentors patch libraries for the whole process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from citespan.tracer.attributes import RunRecord
from citespan.tracer.text import text_hash

EXAMPLES = Path(__file__).parents[2] / "examples"

RECORD = """
import json, sys
sys.path.insert(0, sys.argv[1])
from citespan.tracer.testing import record_in_memory
with record_in_memory() as recorded:
    {code}
print(json.dumps(recorded.dump()))
"""
LANGCHAIN = """
    import beside_langchain as example
    example.LangChainInstrumentor().instrument(tracer_provider=recorded.provider)
    example.ask("At how many degrees is tea steeped?")
"""
LLAMAINDEX = """
    import beside_llamaindex as example
    example.LlamaIndexInstrumentor().instrument(tracer_provider=recorded.provider)
    example.ask(example.build_engine(), "At how many degrees is tea steeped?")
"""

Span = Mapping[str, Any]


def record(code: str) -> list[Span]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RECORD.format(code=code.strip()), str(EXAMPLES)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    spans: list[Span] = json.loads(done.stdout.splitlines()[-1])
    return spans


def documents(spans: list[Span]) -> Counter[str]:
    """Count how often each text stands in a retriever's span."""
    return Counter(
        value
        for span in spans
        for key, value in span["attributes"].items()
        if key.startswith("retrieval.documents.") and key.endswith(".document.content")
    )


def run_of(spans: list[Span]) -> tuple[Span, RunRecord]:
    (span,) = [span for span in spans if "citespan.run" in span["attributes"]]
    return span, RunRecord.from_json(span["attributes"]["citespan.run"])


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("openinference.instrumentation.langchain", LANGCHAIN),
        ("openinference.instrumentation.llama_index", LLAMAINDEX),
    ],
)
def test_the_run_adds_ids_and_labels_to_the_trace_and_doubles_nothing(module: str, code: str) -> None:
    pytest.importorskip(module)
    spans = record(code)
    run, found = run_of(spans)
    assert run["attributes"]["input.value"] == "At how many degrees is tea steeped?"
    assert (
        run["attributes"]["output.value"] == "Green tea wants 80 degrees [1], black tea wants 95 degrees [2]."
    )
    assert run["parent_id"] is None
    assert {
        span["trace_id"] for span in spans if span["attributes"].get("openinference.span.kind") == "LLM"
    } == {run["trace_id"]}
    in_retrievers = documents(spans)
    assert set(in_retrievers.values()) == {1}
    # What the record names is found in the instrumentor's spans by its hash.
    assert [p.label for p in found.passages[:2]] == ["1", "2"]
    assert {p.sha256 for p in found.passages} <= {text_hash(text) for text in in_retrievers}


def test_langchain_s_document_ids_are_recorded_which_its_instrumentor_leaves_out() -> None:
    pytest.importorskip("openinference.instrumentation.langchain")
    _, found = run_of(record(LANGCHAIN))
    assert [(p.id, p.label) for p in found.passages] == [("tea-1", "1"), ("tea-2", "2"), ("coffee-1", "3")]
