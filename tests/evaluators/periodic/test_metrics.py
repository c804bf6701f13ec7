"""What Prometheus is told: as the docs list it, counted once, and unknown where nothing was measured."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from citespan.evaluators.evaluate import evaluate
from citespan.evaluators.judges.judge import JudgeCard, JudgeRequest
from citespan.evaluators.periodic.metrics import WorkerMetrics
from citespan.evaluators.periodic.plan import PassReport
from citespan.evaluators.runs import Run
from citespan.evaluators.verdicts import Label, Usage, Verdict
from citespan.tracer import Passage

DOCS = Path(__file__).parents[3] / "docs" / "worker.md"


class SupportingJudge:
    """Supports every claim, for some tokens."""

    card = JudgeCard(name="supporting", version="1")

    def __init__(self, usage: Usage | None = None) -> None:
        self._usage = usage

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        return [Verdict(label=Label.SUPPORTED, score=1.0, reason="Yes.", usage=self._usage) for _ in requests]


@pytest.fixture
def metrics() -> WorkerMetrics:
    return WorkerMetrics()


def _families(metrics: WorkerMetrics) -> dict[str, tuple[str, set[str]]]:
    """Return type and labels of each metric, counters as they are asked for."""
    found: dict[str, tuple[str, set[str]]] = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        if family.name.startswith("citespan_") and not family.name.endswith("_created"):
            labels = {label for sample in family.samples for label in sample.labels} - {"le"}
            suffix = "_total" if family.type == "counter" else ""
            found[family.name + suffix] = (family.type, labels)
    return found


def _value(metrics: WorkerMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def _add(metrics: WorkerMetrics, answer: str, usage: Usage | None = None, *, lost: bool = False) -> None:
    passages = (Passage(id="a", text="All is well.", label="1"),)
    run = Run(id="r", question=None, answer=answer, passages=passages, passages_lost=2 if lost else 0)
    metrics.add(evaluate(run, SupportingJudge(usage)))


def test_the_docs_list_every_metric_with_its_type_and_labels(metrics: WorkerMetrics) -> None:
    rows = re.findall(r"^\| `(citespan_\w+)` \| (\w+) \|([^|]*)\|", DOCS.read_text(), re.MULTILINE)
    documented = {name: kind for name, kind, _ in rows}
    assert {name: kind for name, (kind, _) in _families(metrics).items()} == documented
    for name, (_, labels) in _families(metrics).items():
        text = next(text for found, _, text in rows if found == name)
        assert all(f"`{label}`" in text for label in labels), name


def test_what_was_not_measured_yet_is_neither_high_nor_low(metrics: WorkerMetrics) -> None:
    for name in (
        "citespan_lag_seconds",
        "citespan_last_pass_timestamp_seconds",
        "citespan_coverage_support_gap_ratio",
        "citespan_claim_span_visible_seconds",
        "citespan_traces_set_aside",
    ):
        value = _value(metrics, name)
        assert value is not None
        assert math.isnan(value), name
    assert _value(metrics, "citespan_measure_ratio", measure="support") is None


def test_measures_are_pooled_counts_and_not_means(metrics: WorkerMetrics) -> None:
    _add(metrics, "All is well [1].")
    _add(metrics, "All is well. It is dry. It is warm [1].")
    # Coverage 1/1 and 1/3 pool to 2/4, support to 2/2; their means would be 2/3 and 1.
    assert _value(metrics, "citespan_measure_numerator_total", measure="coverage") == 2
    assert _value(metrics, "citespan_measure_denominator_total", measure="coverage") == 4
    assert _value(metrics, "citespan_measure_ratio", measure="coverage") == 0.5
    assert _value(metrics, "citespan_coverage_support_gap_ratio") == -0.5


def test_an_unknown_price_is_counted_and_adds_no_dollars(metrics: WorkerMetrics) -> None:
    _add(metrics, "All is well [1].", Usage(prompt_tokens=10, completion_tokens=2, cost_usd=0.5))
    _add(metrics, "All is well [1].", Usage(prompt_tokens=10, completion_tokens=2))
    assert _value(metrics, "citespan_judge_cost_usd_total") == 0.5
    assert _value(metrics, "citespan_judge_unpriced_runs_total") == 1
    assert _value(metrics, "citespan_judge_tokens_total", direction="sent") == 20


def test_a_claim_of_a_lost_passage_is_unjudged_for_that_reason(metrics: WorkerMetrics) -> None:
    _add(metrics, "All is well [2].", lost=True)
    assert _value(metrics, "citespan_claims_unjudged_total", reason="passage_lost") == 1


def test_what_a_pass_does_is_counted_while_it_runs_and_once(metrics: WorkerMetrics) -> None:
    for _ in range(2):
        report = PassReport()
        with metrics.timed_pass(report):
            report.seen, report.taken = 3, 1
            metrics.note(report)
            assert _value(metrics, "citespan_traces_taken_total") in (1, 4)
            report.taken = 3
            report.skipped["filtered"] += 2
            report.failed = {"a": "not_readable: odd", "b": "An error that is prose"}
            metrics.note(report)
            metrics.note(report)
    assert _value(metrics, "citespan_traces_seen_total") == 6
    assert _value(metrics, "citespan_traces_taken_total") == 6
    assert _value(metrics, "citespan_traces_skipped_total", reason="filtered") == 4
    # Prose would make a new label each time.
    assert _value(metrics, "citespan_trace_failures_total", reason="not_readable") == 2
    assert _value(metrics, "citespan_trace_failures_total", reason="other") == 2
    assert _value(metrics, "citespan_passes_total", end="done") == 2


def test_a_pass_that_is_broken_off_is_an_error_and_no_last_pass(metrics: WorkerMetrics) -> None:
    with pytest.raises(ZeroDivisionError), metrics.timed_pass(PassReport()):
        raise ZeroDivisionError
    assert _value(metrics, "citespan_passes_total", end="error") == 1
    last = _value(metrics, "citespan_last_pass_timestamp_seconds")
    assert last is not None
    assert math.isnan(last)
