from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citespan.evaluators.judges.cached import CachedJudge
from citespan.evaluators.judges.cascade import Band, CascadeJudge, CascadeReport, fit_band
from citespan.evaluators.judges.judge import JudgeCard, JudgeRequest
from citespan.evaluators.judges.notes import notes_of
from citespan.evaluators.testing import ScriptedJudge, check_judge
from citespan.evaluators.verdicts import Label, Usage, Verdict
from citespan.tracer.passages import Passage


def ask(claim: str) -> JudgeRequest:
    return JudgeRequest(claim=claim, passages=(Passage(id="p", text="A passage."),))


def say(label: Label, score: float | None, **fields: object) -> Verdict:
    return Verdict.model_validate({"label": label, "score": score, "reason": "Said.", **fields})


FIRST = {
    "clear yes": say(Label.SUPPORTED, 0.95),
    "clear no": say(Label.UNSUPPORTED, 0.05),
    "unsure yes": say(Label.SUPPORTED, 0.6),
    "unsure no": say(Label.UNSUPPORTED, 0.4),
    "doubtful": say(Label.CONTRADICTED, 0.01, is_low_confidence=True),
    "at odds": say(Label.UNSUPPORTED, 0.97),
    "failed": Verdict.unjudged("boom"),
}
PAID = Usage(prompt_tokens=100, completion_tokens=10, cost_usd=0.02)


def cascade(second: Verdict | None = None) -> tuple[CascadeJudge, ScriptedJudge, ScriptedJudge]:
    cheap = ScriptedJudge({(claim, "p"): verdict for claim, verdict in FIRST.items()})
    dear = ScriptedJudge(
        default=second or say(Label.SUPPORTED, 0.8, usage=PAID),
        card=JudgeCard(name="dear", version="1", sends_text_to="api.example.com", others_tried=3),
    )
    return CascadeJudge([cheap, dear], Band(low=0.2, high=0.9)), cheap, dear


def test_a_cascade_keeps_the_contract_of_judges() -> None:
    check_judge(cascade()[0])


def test_clear_verdicts_stand_and_borderline_ones_are_passed_on_in_one_batch() -> None:
    judge, cheap, dear = cascade()
    verdicts = judge.judge([ask(claim) for claim in FIRST])
    assert [request.claim for request in dear.asked] == [
        "unsure yes",
        "unsure no",
        "doubtful",
        "at odds",
        "failed",
    ]
    assert (cheap.batches, dear.batches) == ([7], [5])
    assert [verdict.label for verdict in verdicts] == ["supported", "unsupported", *["supported"] * 5]
    assert verdicts[0] == FIRST["clear yes"]
    assert verdicts[3].reason == "Said. (Passed on by scripted: unsupported 0.40.)"
    assert verdicts[6].reason == "Said. (Passed on by scripted: unjudged.)"


def test_a_later_judge_that_fails_leaves_its_claims_unjudged() -> None:
    judge, _, _ = cascade(Verdict.unjudged("budget_exhausted", "no room"))
    clear, unsure = judge.judge([ask("clear yes"), ask("unsure yes")])
    assert clear.label is Label.SUPPORTED
    assert (unsure.label, unsure.rule) == (Label.UNJUDGED, "budget_exhausted")
    assert unsure.reason.startswith("budget_exhausted: no room (Passed on by scripted: supported 0.60.)")


def test_the_report_says_who_decided_and_what_that_saved() -> None:
    judge, _, _ = cascade()
    judge.judge([ask(claim) for claim in FIRST])
    judge.judge([ask("clear yes"), ask("clear no"), ask("unsure no")])
    # 10 requests, 5 + 1 passed on at $0.02 each: the 4 spared would have cost 4 * $0.02.
    report = judge.report
    assert report.asked == (10, 6)
    assert report.escalated_share == 0.6
    assert report.cost_usd == (0.0, pytest.approx(0.12))
    assert report.saved_usd == pytest.approx(0.08)
    assert str(report) == "scripted decided 4 of 10 (60.0% escalated), saved about $0.08"


def test_a_cascade_notes_who_decided_and_what_its_judges_note(tmp_path: Path) -> None:
    _, cheap, dear = cascade()
    judge = CascadeJudge([cheap, CachedJudge(dear, tmp_path / "v.sqlite")], Band(low=0.2, high=0.9))
    for _ in range(2):
        judge.judge([ask("clear yes"), ask("unsure yes")])
    assert notes_of(judge) == (
        "scripted decided 2 of 4 (50.0% escalated), saved about $0.02",
        f"1 of 2 verdicts were found in {tmp_path / 'v.sqlite'}, which had cost $0.0200",
    )
    assert notes_of(cheap) == ()


def test_what_was_saved_is_unknown_without_a_price_or_a_call() -> None:
    assert CascadeReport(("a", "b"), (5, 0), (0.0, 0.0)).saved_usd is None
    assert CascadeReport(("a", "b"), (5, 1), (0.0, None)).saved_usd is None
    assert CascadeReport(("a", "b"), (0, 0), (0.0, 0.0)).escalated_share is None


def test_three_judges_each_take_what_the_one_before_left() -> None:
    _, cheap, dear = cascade()
    middle = ScriptedJudge(
        {("unsure no", "p"): say(Label.UNSUPPORTED, 0.01)}, default=say(Label.SUPPORTED, 0.5)
    )
    judge = CascadeJudge([cheap, middle, dear], [Band(low=0.2, high=0.9), Band(low=0.1, high=0.9)])
    verdicts = judge.judge([ask("clear yes"), ask("unsure no"), ask("unsure yes")])
    assert [len(asked.asked) for asked in (cheap, middle, dear)] == [3, 2, 1]
    assert [verdict.label for verdict in verdicts] == ["supported", "unsupported", "supported"]


def test_the_cost_of_all_stages_is_on_the_verdict() -> None:
    cheap = ScriptedJudge(default=say(Label.SUPPORTED, 0.5, usage=PAID))
    judge = CascadeJudge([cheap, cascade()[2]], Band())
    (verdict,) = judge.judge([ask("any")])
    assert verdict.usage == Usage(prompt_tokens=200, completion_tokens=20, cost_usd=0.04)


def test_the_card_names_both_judges_and_every_host_and_changes_with_thresholds() -> None:
    judge, cheap, dear = cascade()
    card = judge.card
    assert card.name == "cascade:scripted,dear"
    assert card.sends_text_to == "api.example.com"
    assert card.others_tried == 3
    assert [entry["fingerprint"] for entry in card.parameters["judges"]] == [  # type: ignore[attr-defined]
        cheap.card.fingerprint,
        dear.card.fingerprint,
    ]
    assert CascadeJudge([cheap, dear], Band(low=0.3)).card.fingerprint != card.fingerprint


def test_a_band_that_decides_nothing_passes_everything_on() -> None:
    _, cheap, dear = cascade()
    CascadeJudge([cheap, dear], Band(low=0, high=1)).judge([ask(claim) for claim in FIRST])
    assert len(dear.asked) == len(FIRST)


def test_thresholds_are_fitted_so_that_few_verdicts_outside_them_are_wrong() -> None:
    scored = [(0.1, False), (0.2, False), (0.3, False), (0.4, True), (0.5, False), (0.6, True), (0.7, True)]
    # From below, none of .1 .2 .3 is supported; the fourth is, and 1/4 or 1/5 is over 5 %: halfway to .4 is .35.
    # From above, .7 and .6 are right and .5 is wrong: halfway between .5 and .6 is .55.
    assert fit_band(scored) == Band(low=0.35, high=0.55)
    # Allowing one in four wrong: 1/5 of those up to .5, halfway to .6 is .55; 1/4 of those from .4 on, which is .35.
    # The edges have passed each other, so nothing is borderline and both are moved to the middle.
    band = fit_band(scored, most_wrong=0.25)
    assert (band.low, band.high) == (pytest.approx(0.45), pytest.approx(0.45))


def test_fitting_on_nothing_decides_nothing() -> None:
    assert fit_band([]) == Band(low=0.0, high=1.0)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=40),
    st.floats(0, 0.5),
)
def test_a_fitted_band_keeps_its_promise_on_its_own_data(
    scored: list[tuple[float, bool]], most_wrong: float
) -> None:
    band = fit_band(scored, most_wrong=most_wrong)
    assert 0 <= band.low <= band.high <= 1
    crossed = band.low == band.high  # both edges met: they were moved, so only their order is promised
    below = [label for score, label in scored if score < band.low]
    above = [label for score, label in scored if score > band.high]
    if not crossed:
        assert sum(below) <= most_wrong * len(below) + 1e-9
        assert sum(not label for label in above) <= most_wrong * len(above) + 1e-9
