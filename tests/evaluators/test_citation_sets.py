from __future__ import annotations

import pytest

from citespan.evaluators.citation_sets import judge_sets
from citespan.evaluators.claims import Certainty, Claim, ResolvedCitation
from citespan.evaluators.findings import JudgedClaim, Need
from citespan.evaluators.judge_claims import judge_claims
from citespan.evaluators.measures import measure
from citespan.evaluators.options import LabelPolicy
from citespan.evaluators.runs import Run
from citespan.evaluators.testing import ScriptedJudge
from citespan.evaluators.verdicts import Label
from citespan.tracer.passages import Passage

YES, PARTLY, NO, UNKNOWN = Label.SUPPORTED, Label.PARTLY_SUPPORTED, Label.UNSUPPORTED, Label.UNJUDGED
C = "The cap is 5 GB and resets monthly."


def cite(n: int, passage_id: str | None, *, reason: str | None = None) -> ResolvedCitation:
    return ResolvedCitation(n, f"[{n}]", 40 + n, 41 + n, str(n), passage_id, Certainty.CERTAIN, (0,), reason)


def run_judge(
    script: dict[tuple[str, ...], Label],
    *passage_ids: str | None,
    policy: LabelPolicy = LabelPolicy.ANY,
    lost: tuple[int, ...] = (),
) -> tuple[JudgedClaim, ScriptedJudge, list[ResolvedCitation]]:
    """Judge one claim citing these passages; `script` says what each set of passages entails."""
    judge = ScriptedJudge({(C, *ids): label for ids, label in script.items()})
    passages = tuple(Passage(id=f"p{n}", text=f"Passage {n}.") for n in range(1, 5))
    run = Run(id="r", question=None, answer=C, passages=passages)
    citations = [
        cite(n, passage_id, reason="passage_lost" if n in lost else None)
        for n, passage_id in enumerate(passage_ids, start=1)
    ]
    claim = Claim(0, C, 0, len(C), C, True, None)
    (item,) = judge_sets(run, judge_claims(run, [claim], citations, judge, policy=policy), judge)
    return item, judge, citations


def needs(item: JudgedClaim) -> list[Need | None]:
    return [attachment.need for attachment in item.attachments]


def asked(judge: ScriptedJudge) -> list[tuple[str, ...]]:
    return [tuple(passage.id for passage in request.passages) for request in judge.asked]


def figures(item: JudgedClaim, citations: list[ResolvedCitation]) -> tuple[str, str]:
    measures = measure([item], citations)
    return str(measures["citation_precision"]), str(measures["citation_recall"])


def test_a_claim_that_cites_one_passage_is_asked_about_once() -> None:
    item, judge, citations = run_judge({("p1",): YES}, "p1")
    assert asked(judge) == [("p1",)]
    assert needs(item) == [Need.NEEDED]
    assert item.union is item.attachments[0].verdict
    assert figures(item, citations) == ("1/1 judged attachments", "1/1 claims")


def test_of_two_passages_the_one_that_entails_is_needed_and_the_other_irrelevant() -> None:
    item, judge, citations = run_judge({("p1",): YES, ("p2",): NO}, "p1", "p2")
    # What is left without p1 is p2, known already; what entails alone entails in any company.
    assert asked(judge) == [("p1",), ("p2",)]
    assert needs(item) == [Need.NEEDED, Need.IRRELEVANT]
    assert figures(item, citations) == ("1/2 judged attachments", "1/1 claims")


def test_two_passages_that_each_entail_are_both_redundant() -> None:
    item, judge, citations = run_judge({("p1",): YES, ("p2",): YES}, "p1", "p2")
    assert asked(judge) == [("p1",), ("p2",)]
    assert needs(item) == [Need.REDUNDANT, Need.REDUNDANT]
    assert figures(item, citations) == ("2/2 judged attachments", "1/1 claims")


def test_two_halves_that_entail_only_together_are_both_needed() -> None:
    item, judge, citations = run_judge({("p1",): PARTLY, ("p2",): PARTLY, ("p1", "p2"): YES}, "p1", "p2")
    assert asked(judge) == [("p1",), ("p2",), ("p1", "p2")]
    assert item.label is PARTLY  # policy any: support is all or nothing, by one passage
    assert needs(item) == [Need.NEEDED, Need.NEEDED]
    assert figures(item, citations) == ("2/2 judged attachments", "1/1 claims")


def test_of_three_passages_that_entail_together_the_one_not_missed_is_irrelevant() -> None:
    script = {("p1", "p2", "p3"): YES, ("p1", "p2"): YES, ("p1", "p3"): NO, ("p2", "p3"): NO}
    item, judge, citations = run_judge(script, "p1", "p2", "p3")
    # 3 alone, 1 union, 3 leave-one-out sets.
    assert len(judge.asked) == 7
    assert needs(item) == [Need.NEEDED, Need.NEEDED, Need.IRRELEVANT]
    assert figures(item, citations) == ("2/3 judged attachments", "1/1 claims")


def test_one_entailing_passage_is_redundant_where_the_others_entail_together() -> None:
    script = {("p1",): YES, ("p2", "p3"): YES}
    item, judge, citations = run_judge(script, "p1", "p2", "p3")
    assert asked(judge) == [("p1",), ("p2",), ("p3",), ("p2", "p3")]
    assert needs(item) == [Need.REDUNDANT, Need.IRRELEVANT, Need.IRRELEVANT]
    assert figures(item, citations) == ("1/3 judged attachments", "1/1 claims")


def test_without_entailment_by_the_union_every_citation_is_irrelevant() -> None:
    item, judge, citations = run_judge({("p1",): PARTLY}, "p1", "p2")
    assert asked(judge) == [("p1",), ("p2",), ("p1", "p2")]
    assert needs(item) == [Need.IRRELEVANT, Need.IRRELEVANT]
    assert figures(item, citations) == ("0/2 judged attachments", "0/1 claims")


def test_an_unjudged_union_leaves_need_precision_and_recall_unknown() -> None:
    item, _, citations = run_judge({("p1", "p2"): UNKNOWN}, "p1", "p2")
    assert needs(item) == [None, None]
    assert figures(item, citations) == ("0/0 judged attachments", "0/0 claims")


def test_an_unjudged_rest_leaves_open_only_what_does_not_entail_alone() -> None:
    script = {("p1", "p2", "p3"): YES, ("p1", "p2"): UNKNOWN, ("p1", "p3"): NO, ("p2", "p3"): NO}
    item, _, citations = run_judge(script, "p1", "p2", "p3")
    assert needs(item) == [Need.NEEDED, Need.NEEDED, None]
    assert figures(item, citations) == ("2/2 judged attachments", "1/1 claims")


def test_an_unjudged_passage_makes_the_claim_unjudged_and_asks_no_sets() -> None:
    item, judge, citations = run_judge({("p1",): UNKNOWN}, "p1", "p2")
    assert item.label is UNKNOWN
    assert asked(judge) == [("p1",), ("p2",)]
    assert needs(item) == [None, None]
    assert figures(item, citations) == ("0/0 judged attachments", "0/0 claims")


def test_a_supported_claim_stays_in_precision_beside_an_unjudged_passage() -> None:
    item, _, citations = run_judge({("p1",): YES, ("p2",): UNKNOWN}, "p1", "p2")
    # Whether p2 entails too is unknown, so p1 is at least backing the claim; p2 is left out.
    assert needs(item) == [Need.REDUNDANT, None]
    assert figures(item, citations) == ("1/1 judged attachments", "1/1 claims")


def test_a_dangling_citation_has_no_need_and_leaves_precision() -> None:
    item, judge, citations = run_judge({("p1",): YES}, "p1", None)
    assert asked(judge) == [("p1",)]
    assert needs(item) == [Need.NEEDED, None]
    assert figures(item, citations) == ("1/1 judged attachments", "1/1 claims")


def test_a_passage_cited_twice_is_judged_once_and_both_attachments_count() -> None:
    item, judge, citations = run_judge({("p1",): YES}, "p1", "p1")
    assert asked(judge) == [("p1",)]
    assert needs(item) == [Need.NEEDED, Need.NEEDED]
    assert figures(item, citations) == ("2/2 judged attachments", "1/1 claims")


def test_policy_union_labels_by_the_joined_passages_and_keeps_each_passages_verdict() -> None:
    script = {("p1",): PARTLY, ("p2",): PARTLY, ("p1", "p2"): YES}
    item, judge, citations = run_judge(script, "p1", "p2", policy=LabelPolicy.UNION)
    assert asked(judge) == [("p1",), ("p2",), ("p1", "p2")]
    assert item.label is YES
    assert [a.verdict.label for a in item.attachments if a.verdict] == [PARTLY, PARTLY]
    assert needs(item) == [Need.NEEDED, Need.NEEDED]
    assert figures(item, citations) == ("2/2 judged attachments", "1/1 claims")


@pytest.mark.parametrize("policy", list(LabelPolicy))
def test_a_lost_passage_leaves_the_claim_unjudged_unless_the_others_entail(policy: LabelPolicy) -> None:
    item, _, _ = run_judge({}, "p1", "p2", None, policy=policy, lost=(3,))
    assert item.label is UNKNOWN
    assert item.reason.startswith("passage_lost:")
    item, _, _ = run_judge({("p1",): YES, ("p1", "p2"): YES}, "p1", "p2", None, policy=policy, lost=(3,))
    assert item.label is YES
