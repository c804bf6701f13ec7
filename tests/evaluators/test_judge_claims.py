from __future__ import annotations

from collections.abc import Sequence

import pytest

from citespan.evaluators.claims import Certainty, Claim, ResolvedCitation
from citespan.evaluators.findings import JudgedClaim
from citespan.evaluators.judge_claims import ask, judge_claims
from citespan.evaluators.judges.judge import JudgeRequest
from citespan.evaluators.options import LabelPolicy
from citespan.evaluators.runs import Run
from citespan.evaluators.testing import ScriptedJudge
from citespan.evaluators.verdicts import Label, Verdict
from citespan.tracer.passages import Passage

C = "The cap is 5 GB."
PASSAGES = tuple(Passage(id=f"p{n}", text=f"Passage {n}.") for n in range(1, 4))


def judge_one(
    script: dict[tuple[str, ...], Label | Verdict],
    *citations: tuple[int, str | None],
    passages: tuple[Passage, ...] = PASSAGES,
) -> tuple[JudgedClaim, ScriptedJudge]:
    """Judge one claim with these citations: number and passage."""
    judge = ScriptedJudge({(C, *ids): said for ids, said in script.items()})
    resolved = [
        ResolvedCitation(n, f"[{n}]", n, n + 1, str(n), passage_id, Certainty.CERTAIN, (0,))
        for n, passage_id in citations
    ]
    run = Run(id="r", question="How large?", answer=C, passages=passages)
    claim = Claim(0, C, 0, len(C), f"{C} It resets.", True, None)
    (item,) = judge_claims(run, [claim], resolved, judge, policy=LabelPolicy.ANY)
    return item, judge


def test_each_cited_passage_is_read_on_its_own_with_the_claims_context() -> None:
    item, judge = judge_one({}, (1, "p1"), (2, "p2"))
    assert judge.batches == [2]
    assert judge.asked[0] == JudgeRequest(C, (PASSAGES[0],), f"{C} It resets.", "How large?", "r")
    assert [attachment.verdict.label for attachment in item.attachments if attachment.verdict] == [
        "unsupported"
    ] * 2


@pytest.mark.parametrize(
    ("first", "second", "label"),
    [
        (Label.SUPPORTED, Label.CONTRADICTED, Label.SUPPORTED),
        (Label.UNJUDGED, Label.CONTRADICTED, Label.UNJUDGED),
        (Label.PARTLY_SUPPORTED, Label.CONTRADICTED, Label.CONTRADICTED),
        (Label.UNSUPPORTED, Label.PARTLY_SUPPORTED, Label.PARTLY_SUPPORTED),
    ],
)
def test_the_claim_takes_the_first_label_that_holds(first: Label, second: Label, label: Label) -> None:
    item, _ = judge_one({("p1",): first, ("p2",): second}, (1, "p1"), (2, "p2"))
    assert item.label is label


def test_a_supported_claim_that_another_cited_passage_contradicts_is_a_conflict() -> None:
    item, _ = judge_one({("p1",): Label.SUPPORTED, ("p2",): Label.CONTRADICTED}, (1, "p1"), (2, "p2"))
    assert (item.label, item.conflict, item.deciding_passage_id) == (Label.SUPPORTED, True, "p1")
    item, _ = judge_one({("p1",): Label.CONTRADICTED}, (1, "p1"), (2, "p2"))
    assert (item.label, item.conflict) == (Label.CONTRADICTED, False)


def test_a_claim_whose_citations_all_dangle_is_unsupported_without_asking() -> None:
    item, judge = judge_one({}, (1, None), (2, None))
    assert (item.label, item.score, item.reason) == (
        Label.UNSUPPORTED,
        None,
        "[1], [2] names no passage of this run.",
    )
    assert judge.asked == []


def test_an_uncited_claim_is_uncited_and_never_asked_about() -> None:
    item, judge = judge_one({})
    assert item.label is Label.UNCITED
    assert judge.asked == []


@pytest.mark.parametrize("text", [None, "", " \n\t"])
def test_a_passage_without_text_is_unjudged_and_never_sent(text: str | None) -> None:
    item, judge = judge_one({}, (1, "p1"), passages=(Passage(id="p1", text=text),))
    assert item.label is Label.UNJUDGED
    assert item.reason.startswith("passage_text_not_recorded:")
    assert judge.asked == []


def test_a_judge_that_returns_another_number_of_verdicts_is_an_error_and_no_shift() -> None:
    class Short(ScriptedJudge):
        def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
            return super().judge(requests)[1:]

    requests = [JudgeRequest(C, (passage,)) for passage in PASSAGES]
    with pytest.raises(RuntimeError, match="judge 'scripted' returned 2 verdicts for 3 requests"):
        ask(Short(), requests)
