from __future__ import annotations

from collections.abc import Sequence

import pytest

from citespan.evaluators.analysis.labeltable import rows_of
from citespan.evaluators.analysis.report import Report, Setup, Tally, report_to_text
from citespan.evaluators.evaluate import evaluate
from citespan.evaluators.options import DEFAULT_OPTIONS, CitationScope, EvaluateOptions
from citespan.evaluators.runs import Run
from citespan.evaluators.testing import ScriptedJudge
from citespan.evaluators.verdicts import Label

TEA = {
    "id": "tea",
    "answer": "Tea is green [1]. Milk is white [2]. Ink is blue.",
    "passages": [{"id": "a", "text": "Tea."}, {"id": "b", "text": "Milk."}],
}
JUDGE = ScriptedJudge({("Tea is green.", "a"): Label.SUPPORTED}, default=Label.CONTRADICTED)


def report(
    runs: Sequence[dict[str, object]],
    judge: ScriptedJudge = JUDGE,
    options: EvaluateOptions = DEFAULT_OPTIONS,
) -> Report:
    tally = Tally(setup=Setup.of(judge.card, options), limits="It is scripted.")
    for data in runs:
        evaluation = evaluate(Run.from_dict(data), judge, options)
        tally.add(rows_of(evaluation), evaluation.measures)
    return tally.report()


def flat(text: str) -> str:
    return " ".join(text.split())


def test_counts_are_pooled_and_the_mean_of_per_answer_ratios_stands_beside() -> None:
    # Tea: coverage 2/3, support 1/2. One claim, cited and supported: coverage 1/1, support 1/1.
    # Pooled support 2/3 = 0.67; mean of 0.5 and 1 = 0.75.
    short = {**TEA, "id": "short", "answer": "Tea is green [1]."}
    found = report([TEA, short])
    assert str(found.pooled["support"]) == "2/3 judged cited claims"
    assert (found.means["support"].value, found.means["support"].answers) == (0.75, 2)
    text = flat(report_to_text(found))
    assert "support 0.67 2/3 judged cited claims 0.75 (2 answers)" in text
    assert "mean of per-answer ratios" in text


def test_the_pair_is_shown_with_gap_and_pattern() -> None:
    # Coverage 2/3 = 0.67, support 1/2 = 0.50, gap 0.17.
    assert "coverage 0.67, support 0.50 · gap +0.17 · ungrounded and unmarked" in flat(
        report_to_text(report([TEA]))
    )


def test_a_state_is_counted_and_leaves_the_figures_alone() -> None:
    found = report([TEA, {**TEA, "id": "none", "answer": None}, {**TEA, "id": "empty", "answer": " "}])
    assert (found.runs, found.evaluated) == (3, 1)
    assert found.states == {"no_answer_recorded": 2}
    assert str(found.pooled["coverage"]) == "2/3 claims"
    assert "2 no_answer_recorded (never counted as 0)" in report_to_text(found)


def test_a_measure_over_nothing_is_no_number() -> None:
    found = report([{**TEA, "answer": None}])
    assert found.pooled["support"].value is None
    assert found.pattern is None
    text = flat(report_to_text(found))
    assert "coverage over nothing, support over nothing" in text
    assert "No run could be judged" in text


def test_unjudged_claims_are_counted_by_reason_and_warned_of_above_5_percent() -> None:
    judge = ScriptedJudge({("Tea is green.", "a"): Label.SUPPORTED}, default=Label.UNJUDGED)
    found = report([TEA], judge)
    # Two cited claims, one of them unjudged: 50 %.
    assert str(found.unjudged) == "1/2 cited claims"
    assert found.unjudged_reasons == {"scripted": 1}
    assert "1/2 cited claims are unjudged, more than 5%" in flat(report_to_text(found))


@pytest.mark.parametrize(("supported", "warns"), [(19, False), (18, True)])
def test_exactly_5_percent_unjudged_is_no_warning(supported: int, warns: bool) -> None:
    # 1 unjudged of 20 is 5 %; 1 of 19 is 5.3 %.
    answer = " ".join(["Milk is white [2]."] + ["Tea is green [1]."] * supported)
    judge = ScriptedJudge({("Tea is green.", "a"): Label.SUPPORTED}, default=Label.UNJUDGED)
    assert report([{**TEA, "answer": answer}], judge).has_too_many_unjudged is warns


def test_scope_splitting_judge_and_limits_are_printed() -> None:
    options = EvaluateOptions(citation_scope=CitationScope.PARAGRAPH)
    text = flat(report_to_text(report([TEA], options=options)))
    assert f"judge scripted ({JUDGE.card.fingerprint})" in text
    assert "citation scope paragraph · splitting atomic · label policy any" in text
    assert "It is scripted." in text
    assert "neither correctness" in text
    assert "nor faithfulness" in text


def test_runs_evaluated_in_different_ways_are_warned_of() -> None:
    tally = Tally()
    for options in (DEFAULT_OPTIONS, EvaluateOptions(citation_scope=CitationScope.PARAGRAPH)):
        evaluation = evaluate(Run.from_dict(TEA), JUDGE, options)
        tally.add(rows_of(evaluation), evaluation.measures)
    assert "evaluated in different ways" in flat(report_to_text(tally.report()))


def test_labels_are_counted_in_both_schemes() -> None:
    text = flat(report_to_text(report([TEA])))
    assert (
        "1 supported · 0 partly_supported · 0 unsupported · 1 contradicted · 1 uncited · 0 unjudged" in text
    )
    assert "1 SUPPORTED · 1 UNSUPPORTED · 1 UNCITED" in text


def test_a_report_fits_80_columns_and_its_json_holds_the_same_counts() -> None:
    found = report([TEA])
    assert max(map(len, report_to_text(found).splitlines())) <= 80
    data = found.to_dict()
    assert data["labels"] == {
        "supported": 1,
        "partly_supported": 0,
        "unsupported": 0,
        "contradicted": 1,
        "uncited": 1,
        "unjudged": 0,
    }


def test_a_report_over_no_runs_is_over_nothing() -> None:
    found = Tally().report()
    assert found.runs == 0
    assert all(ratio.value is None for ratio in found.pooled.values())
    assert "Measures over 0 of 0 runs" in report_to_text(found)
