"""Both worked examples of DESIGN.md, traced, judged and written back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from citespan.evaluators.annotate.rows import MEASURE_ROWS
from citespan.evaluators.runs import Run

if TYPE_CHECKING:
    from tests.phoenix.conftest import Workbench

pytestmark = pytest.mark.phoenix


def test_both_examples_come_out_of_phoenix_as_designed(
    bench: Workbench, worked_examples: Mapping[str, Run]
) -> None:
    sync = bench.recorder.replay(worked_examples["sync"])
    refunds = bench.recorder.replay(worked_examples["refunds"])
    summary = bench.evaluate()
    assert (summary.traces, summary.runs_evaluated, summary.set_aside) == (2, 2, {})
    snapshot = bench.snapshot()
    verdicts = _labels_by_claim(snapshot)
    assert verdicts[sync] == ["supported", "supported", "partly_supported", "supported", "unsupported"]
    assert verdicts[refunds] == ["partly_supported", "contradicted", "uncited"]
    figures = {
        trace_id: {name: snapshot.rows[trace_id, name, "citespan"].annotation for name in MEASURE_ROWS}
        for trace_id in (sync, refunds)
    }
    # sync: all 5 claims are cited, 3 of them supported, all 5 markers resolve, all 5 claims are material.
    assert {name: row.label for name, row in figures[sync].items()} == {
        "cite_cov": "5/5",
        "cite_sup": "3/5",
        "cite_valid": "5/5",
        "cite_compl": "5/5",
    }
    # refunds: 2 of 3 claims are cited, none of the 2 is supported, both markers resolve.
    assert {name: row.label for name, row in figures[refunds].items()} == {
        "cite_cov": "2/3",
        "cite_sup": "0/2",
        "cite_valid": "2/2",
        "cite_compl": "2/3",
    }
    assert figures[sync]["cite_sup"].score == pytest.approx(0.6)
    assert figures[refunds]["cite_sup"].score == 0.0
    assert set(snapshot.labels("citations").values()) == {
        "3/5 supported, 1 partly supported, 1 unsupported",
        "0/2 supported, 1 contradicted, 1 partly supported, 1 uncited",
    }
    assert set(snapshot.labels("cite_state").values()) == {"evaluated"}


def test_claim_span_shows_claim_and_passage_and_keeps_the_latency(
    bench: Workbench, worked_examples: Mapping[str, Run]
) -> None:
    bench.recorder.replay(worked_examples["refunds"])
    before = bench.spans()
    (root,) = [span for span in before.values() if span["parent_id"] is None]
    bench.evaluate()
    claims = sorted(bench.snapshot().claim_spans.values(), key=lambda span: str(span["name"]))
    assert [span["name"] for span in claims] == ["claim 1", "claim 2", "claim 3"]
    attributes = claims[0]["attributes"]
    assert isinstance(attributes, dict)
    assert attributes["input.value"] == (
        "CLAIM\nRefunds are issued within five days.\n\n"
        "CITES [1] terms\nRefunds are issued within five business days of the request."
    )
    times = [(str(span["start_time"]), str(span["end_time"])) for span in claims]
    assert times == sorted(times)
    assert all(str(root["start_time"]) <= start <= end <= str(root["end_time"]) for start, end in times)
    assert {span["parent_id"] for span in claims} == {root["context"]["span_id"]}  # type: ignore[index]


def _labels_by_claim(snapshot) -> dict[str, list[str | None]]:  # type: ignore[no-untyped-def]
    """Return the verdicts of each trace in claim order."""
    found: dict[str, dict[str, str | None]] = {}
    for span_id, span in snapshot.claim_spans.items():
        row = snapshot.rows[span_id, "verdict", "citespan"].annotation
        found.setdefault(span["context"]["trace_id"], {})[span["name"]] = row.label
    return {trace_id: [labels[name] for name in sorted(labels)] for trace_id, labels in found.items()}
