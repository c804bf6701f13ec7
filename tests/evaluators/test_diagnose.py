from __future__ import annotations

from citespan.evaluators.claims import Certainty, Claim, ResolvedCitation
from citespan.evaluators.diagnose import diagnose
from citespan.evaluators.findings import Failure, JudgedClaim
from citespan.evaluators.judge_claims import judge_claims
from citespan.evaluators.judges.judge import JudgeCard
from citespan.evaluators.options import LabelPolicy
from citespan.evaluators.runs import Run
from citespan.evaluators.shortlist import shortlist
from citespan.evaluators.testing import ScriptedJudge
from citespan.evaluators.verdicts import Label, Verdict
from citespan.tracer.passages import Passage

YES, PARTLY, NO = Label.SUPPORTED, Label.PARTLY_SUPPORTED, Label.UNSUPPORTED
CONTRADICTED, UNKNOWN = Label.CONTRADICTED, Label.UNJUDGED
C = "The cap is 5 GB."

PLAIN = tuple(Passage(id=f"p{n}", text=f"Passage {n}.", label=str(n)) for n in range(1, 5))


def find(
    script: dict[tuple[str, ...], Label],
    *cited: str | None,
    passages: tuple[Passage, ...] = PLAIN,
    others_tried: int = 20,
    try_others: bool = True,
    material: bool = True,
) -> tuple[JudgedClaim, ScriptedJudge]:
    """Diagnose one claim that cites these passages."""
    judge = ScriptedJudge(
        {(C, *ids): label for ids, label in script.items()},
        card=JudgeCard(name="scripted", version="1", others_tried=others_tried),
    )
    run = Run(id="r", question=None, answer=C, passages=passages)
    citations = [
        ResolvedCitation(n, f"[{n}]", 20 + n, 21 + n, str(n), passage_id, Certainty.CERTAIN, (0,))
        for n, passage_id in enumerate(cited, start=1)
    ]
    claim = Claim(0, C, 0, len(C), C, material, None if material else "opinion")
    judged = judge_claims(run, [claim], citations, judge, policy=LabelPolicy.ANY)
    (item,) = diagnose(run, judged, judge, try_others=try_others)
    return item, judge


def test_a_supported_claim_has_no_failure_and_asks_nothing_more() -> None:
    item, judge = find({("p1",): YES}, "p1")
    assert (item.failure, item.fix) == (None, None)
    assert len(judge.asked) == 1


def test_an_unjudged_claim_has_no_failure() -> None:
    item, judge = find({("p1",): UNKNOWN}, "p1")
    assert (item.label, item.failure) == (UNKNOWN, None)
    assert len(judge.asked) == 1


def test_a_claim_whose_citations_all_dangle_is_a_broken_citation_though_a_passage_entails_it() -> None:
    item, _ = find({("p2",): YES}, None)
    assert item.failure is Failure.BROKEN_CITATION
    assert item.fix == "Cite [2]: it supports the claim."
    assert item.fix_passage_id == "p2"


def test_a_dangling_citation_beside_a_resolving_one_is_no_broken_citation() -> None:
    item, _ = find({}, None, "p1")
    assert item.failure is Failure.NOT_IN_PASSAGES


def test_another_passage_that_entails_comes_before_contradicted_and_overstated() -> None:
    for label in (CONTRADICTED, PARTLY, NO):
        item, _ = find({("p1",): label, ("p3",): YES}, "p1")
        assert item.failure is Failure.WRONG_PASSAGE
        assert item.fix == "Cite [3] instead: it supports the claim."
        assert item.fix_passage_id == "p3"


def test_contradicted_partly_and_unsupported_have_each_their_failure_and_fix() -> None:
    found = " No other passage of the run supports it."
    item, _ = find({("p1",): CONTRADICTED}, "p1")
    assert item.failure is Failure.CONTRADICTED
    assert item.fix == "Correct the claim to what the cited passage says." + found
    item, _ = find({("p1",): PARTLY}, "p1")
    assert item.failure is Failure.OVERSTATED
    assert item.fix == "Tighten the wording to what the cited passage says." + found
    item, _ = find({("p1",): NO}, "p1")
    assert item.failure is Failure.NOT_IN_PASSAGES
    assert item.fix == "Remove the claim or retrieve a source for it." + found


def test_an_uncited_material_claim_misses_a_citation_and_the_passage_that_entails_it_is_named() -> None:
    item, _ = find({("p4",): YES})
    assert (item.label, item.failure) == (Label.UNCITED, Failure.MISSING_CITATION)
    assert item.fix == "Cite [4]: it supports the claim."
    item, _ = find({})
    assert item.fix == "Add a citation, or remove the claim. No other passage of the run supports it."


def test_an_uncited_claim_that_is_not_material_has_no_failure() -> None:
    item, judge = find({("p4",): YES}, material=False)
    assert item.failure is None
    assert judge.asked == []


def test_among_entailing_passages_the_one_that_entails_best_is_named() -> None:
    sure = Verdict(label=YES, score=0.95, reason="Sure.")
    judge = ScriptedJudge({(C, "p2"): YES, (C, "p3"): sure, (C, "p4"): sure})
    run = Run(id="r", question=None, answer=C, passages=PLAIN)
    claim = JudgedClaim(Claim(0, C, 0, len(C), C, True, None), Label.UNCITED, None, "Uncited.", ())
    (item,) = diagnose(run, [claim], judge, try_others=True)
    # p3 and p4 have .95 each, p2 has .90: the first of the best.
    assert item.fix_passage_id == "p3"


def test_other_passages_of_all_claims_are_asked_in_one_batch() -> None:
    judge = ScriptedJudge()
    run = Run(id="r", question=None, answer=C, passages=PLAIN)
    claims = [
        JudgedClaim(Claim(n, f"Claim {n}.", 0, 5, "", True, None), Label.UNCITED, None, "Uncited.", ())
        for n in range(3)
    ]
    diagnose(run, claims, judge, try_others=True)
    assert judge.batches == [12]


def test_without_trying_others_the_fix_says_that_they_were_not_tried() -> None:
    item, judge = find({}, "p1", try_others=False)
    assert (
        item.fix == "Remove the claim or retrieve a source for it. Other passages of the run were not tried."
    )
    assert len(judge.asked) == 1


def test_a_run_with_no_other_passage_says_nothing_of_others() -> None:
    item, _ = find({}, "p1", passages=PLAIN[:1])
    assert item.fix == "Remove the claim or retrieve a source for it."


def test_a_costly_judge_is_asked_of_the_likeliest_passages_only_and_the_fix_says_so() -> None:
    passages = (
        Passage(id="cited", text="Nothing of the kind."),
        *(Passage(id=f"x{n}", text="Refunds take a week.") for n in range(6)),
        Passage(id="near", text="The storage cap is 5 GB."),
    )
    item, judge = find({}, "cited", passages=passages, others_tried=2)
    # "near" shares the, cap, is, 5 and gb; the six others share nothing, so the first of them comes along.
    assert [request.passages[0].id for request in judge.asked] == ["cited", "x0", "near"]
    assert item.fix == (
        "Remove the claim or retrieve a source for it. No other passage is known to support it: "
        "only the 2 of 7 that share most words with it were tried."
    )


def test_others_that_could_not_be_judged_are_counted_in_the_fix_with_their_reason() -> None:
    passages = (*PLAIN, Passage(id="p5", text=None))
    item, judge = find({("p2",): UNKNOWN, ("p3",): UNKNOWN}, "p1", passages=passages)
    assert item.fix == (
        "Remove the claim or retrieve a source for it. No other passage is known to support it: "
        "2 could not be judged (scripted); 1 could not be judged (passage_text_not_recorded)."
    )
    assert len(judge.asked) == 4


def test_a_cut_passage_is_never_faulted() -> None:
    passages = (Passage(id="p1", text="Only a part", is_cut=True), PLAIN[1])
    item, _ = find({("p1",): CONTRADICTED}, "p1", passages=passages)
    assert item.label is UNKNOWN
    assert item.reason.startswith("passage_cut:")


def test_the_shortlist_prefers_rare_shared_words_and_keeps_retrieval_order() -> None:
    texts = ["the plan is paid", "the plan has a cap", "the plan is new", "a cap of 5 gb in the plan"]
    passages = [Passage(id=str(n), text=text) for n, text in enumerate(texts)]
    # Claim words: the, plan, cap, 5, gb. "the" and "plan" are in all four (1/4 each), "cap" in two (1/2),
    # "5" and "gb" in one (1 each): passage 1 weighs 1.0, passage 3 weighs 3.0, the others .5.
    assert [p.id for p in shortlist("The plan cap: 5 GB", passages, 2)] == ["1", "3"]
    assert [p.id for p in shortlist("The plan cap: 5 GB", passages, 3)] == ["0", "1", "3"]
    assert shortlist("anything", passages, 4) == passages


def test_the_shortlist_reads_scripts_without_spaces() -> None:
    texts = ["料金は無料です。", "返金は五営業日以内です。", "ログは監査用です。"]
    passages = [Passage(id=str(n), text=text) for n, text in enumerate(texts)]
    assert [p.id for p in shortlist("返金は五日以内に行われます。", passages, 1)] == ["1"]
