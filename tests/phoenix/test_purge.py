"""Purging removes what citespan wrote, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from citespan.evaluators.errors import NotFound
from citespan.evaluators.options import EvaluateOptions, Splitting
from citespan.evaluators.phoenix.purge import Purged, purge
from citespan.evaluators.phoenix.records import Annotation, Kind, Target
from citespan.tracer import Passage

if TYPE_CHECKING:
    from tests.phoenix.conftest import Workbench

pytestmark = pytest.mark.phoenix

PASSAGES = [
    Passage(id="a", text="Refunds are issued within five business days of the request.", label="1"),
    Passage(id="b", text="Support answers within one hour on weekdays.", label="2"),
]
ANSWER = "Refunds are issued within five business days [1]. Support answers within one hour [2]."


def test_purge_leaves_the_project_as_it_was(bench: Workbench) -> None:
    bench.recorder.ask("How long?", ANSWER, PASSAGES)
    before = bench.spans()
    (root,) = [span_id for span_id, span in before.items() if span["parent_id"] is None]
    foreign = Annotation(root, "toxicity", "citespan", label="none")
    theirs = Annotation(root, "verdict", "", Kind.HUMAN, label="fine")
    bench.client.annotate(Target.SPAN, [foreign, theirs])
    untouched = bench.snapshot().rows
    bench.evaluate()
    bench.evaluate(series="trial", claims_mode="annotations")
    purged = purge(bench.client, bench.project)
    # 2 claim spans. Rows elsewhere: 4 measures, sum and state of each of two series, 2 verdicts of the second.
    assert purged == Purged(traces=1, claim_spans=2, rows=14)
    assert bench.spans() == before
    assert bench.snapshot().rows == untouched


def test_dry_run_counts_and_removes_nothing(bench: Workbench) -> None:
    bench.recorder.ask("How long?", ANSWER, PASSAGES)
    bench.evaluate()
    before = bench.snapshot()
    counted = purge(bench.client, bench.project, dry_run=True)
    assert bench.snapshot() == before
    assert purge(bench.client, bench.project) == counted


def test_what_people_wrote_stays_unless_asked_for(bench: Workbench) -> None:
    bench.recorder.ask("How long?", ANSWER, PASSAGES)
    bench.evaluate()
    first, second = sorted(bench.snapshot().claim_spans)
    label = Annotation(first, "verdict_human", "", Kind.HUMAN, label="supported")
    over = Annotation(second, "verdict", "citespan", Kind.HUMAN, label="supported")
    bench.client.annotate(Target.SPAN, [label, over])
    kept = purge(bench.client, bench.project)
    assert (kept.claim_spans, kept.claim_spans_kept, kept.rows_kept) == (0, 2, 1)
    assert bench.snapshot().rows.keys() == {label.key, over.key}
    gone = purge(bench.client, bench.project, with_human=True)
    assert (gone.claim_spans, gone.claim_spans_kept) == (2, 0)
    assert bench.snapshot().rows == {}
    assert bench.snapshot().claim_spans == {}


def test_one_trace_alone_can_be_purged(bench: Workbench) -> None:
    one = bench.recorder.ask("How long?", ANSWER, PASSAGES)
    other = bench.recorder.ask("How long?", ANSWER, PASSAGES)
    bench.evaluate()
    purge(bench.client, bench.project, trace_id=one)
    assert {target for target, _ in bench.snapshot().labels("cite_state")} == {other}
    assert bench.evaluate().runs_evaluated == 1


def test_one_series_alone_can_be_purged(bench: Workbench) -> None:
    bench.recorder.ask("How long?", ANSWER, PASSAGES)
    bench.evaluate()
    main = bench.snapshot()
    bench.evaluate(series="same")
    bench.evaluate(series="sentences", options=EvaluateOptions(splitting=Splitting.SENTENCE))
    for series in ("same", "sentences"):
        purge(bench.client, bench.project, series=series)
    assert bench.snapshot() == main


def test_a_trace_that_is_not_there_is_an_error(bench: Workbench) -> None:
    bench.recorder.ask("How long?", ANSWER, PASSAGES)
    with pytest.raises(NotFound, match="has no trace 0f0f"):
        purge(bench.client, bench.project, trace_id="0f" * 16)
