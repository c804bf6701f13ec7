from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citespan.evaluators.claims import Certainty, Claim, ResolvedCitation
from citespan.evaluators.findings import Attachment, JudgedClaim, Need, combine
from citespan.evaluators.measures import MEASURES, Mean, Ratio, means, measure, pattern, pool, unmeasured
from citespan.evaluators.verdicts import Label, StrictLabel, Verdict

YES, PARTLY, NO = Label.SUPPORTED, Label.PARTLY_SUPPORTED, Label.UNSUPPORTED
CONTRADICTED, UNKNOWN, UNCITED = Label.CONTRADICTED, Label.UNJUDGED, Label.UNCITED


def citation(
    n: int, passage_id: str | None = "p1", *claims: int, certainty: Certainty = Certainty.CERTAIN
) -> ResolvedCitation:
    return ResolvedCitation(n, f"[{n}]", n, n + 1, str(n), passage_id, certainty, claims)


def verdict(label: Label, score: float | None = None) -> Verdict:
    return Verdict.unjudged("timeout") if label is UNKNOWN else Verdict(label=label, score=score, reason="-")


def judged(
    label: Label, *attachments: Attachment, material: bool = True, union: Label | None = None
) -> JudgedClaim:
    claim = Claim(0, "A claim.", 0, 8, "A claim.", material, None if material else "opinion")
    return JudgedClaim(
        claim, label, None, "-", attachments, union=None if union is None else verdict(union, 0.5)
    )


def attached(label: Label | None = YES, need: Need | None = None, *, n: int = 1) -> Attachment:
    """One citation on a claim: its passage's own label, `None` for a dangling one."""
    if label is None:
        return Attachment(citation(n, None), None)
    return Attachment(citation(n), verdict(label, 0.5), need)


# The answer used below: six claims.
# 0 supported, one needed citation            3 uncited, material
# 1 unsupported, its one citation dangles     4 uncited, not material
# 2 partly, two citations, one irrelevant     5 unjudged
CLAIMS = [
    judged(YES, attached(YES, Need.NEEDED), union=YES),
    judged(NO, attached(None)),
    judged(PARTLY, attached(PARTLY, Need.NEEDED, n=1), attached(NO, Need.IRRELEVANT, n=2), union=YES),
    judged(UNCITED),
    judged(UNCITED, material=False),
    judged(UNKNOWN, attached(UNKNOWN)),
]
CITATIONS = [
    citation(1, "p1", 0),
    citation(2, None, 1),
    citation(3, "p1", 2),
    citation(4, "p2", 2),
    citation(5),
]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("coverage", "4/6 claims"),  # 0, 1, 2 and the unjudged 5 are cited
        ("completeness", "4/5 material claims"),  # all but 4 are material
        ("support", "1/3 judged cited claims"),  # 0, 1 and 2 are judged and cited
        ("support_resolved", "1/2 judged cited claims with a resolved citation"),  # 1 has none
        ("partly_supported", "1/3 judged cited claims"),
        ("contradicted", "0/3 judged cited claims"),
        ("validity", "4/5 citations"),  # the second dangles; the fifth is attached to no claim and counts
        ("link_validity", "not measured (links were not checked)"),
        ("citation_precision", "2/3 judged attachments"),  # dangling and unjudged ones are left out
        ("citation_recall", "2/5 claims"),  # 0 and 2 by their union; 5 is unjudged
    ],
)
def test_each_measure_counts_what_its_formula_says(name: str, expected: str) -> None:
    assert str(measure(CLAIMS, CITATIONS)[name]) == expected


def test_every_measure_over_nothing_is_none_and_never_zero() -> None:
    for name, ratio in measure([], []).items():
        assert ratio.value is None, name
        assert ratio.to_dict()["value"] is None, name


@pytest.mark.parametrize("name", ["support", "support_resolved", "partly_supported", "contradicted"])
def test_measures_that_need_a_judge_are_over_nothing_when_nothing_was_judged(name: str) -> None:
    ratio = measure([judged(UNKNOWN, attached(UNKNOWN)), judged(UNCITED)], [citation(1)])[name]
    assert (ratio.numerator, ratio.denominator, ratio.value) == (0, 0, None)


def test_coverage_completeness_and_validity_keep_unjudged_claims() -> None:
    measures = measure([judged(UNKNOWN, attached(UNKNOWN))], [citation(1)])
    assert [measures[name].value for name in ("coverage", "completeness", "validity")] == [1.0, 1.0, 1.0]


def test_partly_supported_never_counts_as_supported() -> None:
    assert PARTLY.strict is StrictLabel.UNSUPPORTED
    measures = measure([judged(PARTLY, attached(PARTLY))], [citation(1)])
    assert measures["support"].value == 0.0
    assert measures["partly_supported"].value == 1.0


def test_candidates_of_an_ambiguous_citation_count_once_and_back_the_claim_if_one_does() -> None:
    candidates = [citation(1, p, 0, certainty=Certainty.AMBIGUOUS) for p in ("p1", "p2")]
    claim = judged(
        YES,
        Attachment(candidates[0], verdict(YES, 0.9), Need.NEEDED),
        Attachment(candidates[1], verdict(NO, 0.1), Need.IRRELEVANT),
    )
    measures = measure([claim], candidates)
    assert str(measures["validity"]) == "1/1 citations"
    assert str(measures["citation_precision"]) == "1/1 judged attachments"


def test_a_citation_attached_to_two_claims_counts_once_for_validity_and_twice_as_attachment() -> None:
    one = citation(1, "p1", 0, 1)
    claims = [judged(YES, Attachment(one, verdict(YES, 0.9), Need.NEEDED)) for _ in range(2)]
    measures = measure(claims, [one])
    assert str(measures["validity"]) == "1/1 citations"
    assert str(measures["citation_precision"]) == "2/2 judged attachments"


def test_an_unknown_need_leaves_precision_and_an_unknown_union_leaves_recall() -> None:
    measures = measure([judged(NO, attached(NO, None), attached(NO, None, n=2), union=UNKNOWN)], [])
    assert str(measures["citation_precision"]) == "0/0 judged attachments"
    assert str(measures["citation_recall"]) == "0/0 claims"


def test_precision_and_recall_say_why_they_were_not_measured() -> None:
    measures = measure(CLAIMS, CITATIONS, sets_reason="citation sets were not judged")
    for name in ("citation_precision", "citation_recall"):
        assert measures[name].to_dict() == {
            "numerator": None,
            "denominator": None,
            "unit": {"citation_precision": "judged attachments", "citation_recall": "claims"}[name],
            "value": None,
            "reason": "citation sets were not judged",
        }


def test_pooling_adds_the_counts_and_divides_once_beside_the_mean_of_ratios() -> None:
    rows = [
        measure([judged(YES, attached(YES))], []),
        measure([judged(NO, attached(NO)), judged(NO, attached(NO)), judged(YES, attached(YES))], []),
        measure([], []),
    ]
    # Pooled (1 + 1) / (1 + 3) = .5; the mean of 1/1 and 1/3 is 2/3; the third answer is over nothing.
    assert str(pool(rows)["support"]) == "2/4 judged cited claims"
    assert pool(rows)["support"].value == 0.5
    assert means(rows)["support"] == Mean(pytest.approx(2 / 3), 2)
    assert means(rows)["link_validity"] == Mean(None, 0)


def test_pooling_nothing_is_over_nothing_with_its_units() -> None:
    pooled = pool([])
    assert pooled == measure([], [])
    assert pooled["support"] == Ratio(0, 0, "judged cited claims")


def test_pooling_over_a_run_that_did_not_measure_is_not_measured() -> None:
    rows = [measure(CLAIMS, CITATIONS), measure(CLAIMS, CITATIONS, sets_reason="not asked for")]
    assert pool(rows)["citation_precision"] == unmeasured("judged attachments", "not asked for")
    assert str(pool(rows)["coverage"]) == "8/12 claims"


labels = st.sampled_from(list(Label))


@given(st.lists(st.lists(labels, max_size=6), max_size=5))
def test_the_pool_of_runs_is_the_measure_of_their_claims_together(answers: list[list[Label]]) -> None:
    def claims(found: list[Label]) -> list[JudgedClaim]:
        return [judged(label, *(() if label is UNCITED else (attached(label),))) for label in found]

    pooled = pool(measure(claims(found), []) for found in answers)
    together = measure(claims([label for found in answers for label in found]), [])
    assert pooled == together
    assert all(ratio.value is None or 0.0 <= ratio.value <= 1.0 for ratio in pooled.values())


def test_every_measure_of_the_design_is_there_in_its_order() -> None:
    assert list(MEASURES) == [
        "coverage",
        "completeness",
        "support",
        "support_resolved",
        "partly_supported",
        "contradicted",
        "validity",
        "link_validity",
        "citation_precision",
        "citation_recall",
    ]


def test_the_first_label_that_holds_makes_the_claims() -> None:
    order = [YES, UNKNOWN, CONTRADICTED, PARTLY, NO]
    for first, second in itertools.combinations(order, 2):
        pair = [verdict(second, 0.9), verdict(first, 0.1)]
        assert combine(pair) == 1, (first, second)


def test_among_equal_labels_the_highest_score_decides_then_the_first() -> None:
    assert combine([verdict(YES, 0.7), verdict(YES, 0.9), verdict(YES, 0.9)]) == 1
    assert combine([verdict(UNKNOWN), verdict(UNKNOWN)]) == 0
    with pytest.raises(ValueError, match="empty"):
        combine([])


@pytest.mark.parametrize(
    ("covered", "supported", "name", "gap"),
    [
        (Ratio(5, 5, ""), Ratio(0, 5, ""), "cites everything and verifies nothing", 1.0),
        (Ratio(5, 5, ""), Ratio(3, 5, ""), "cites more than it verifies", 0.4),
        (Ratio(1, 5, ""), Ratio(1, 1, ""), "honest but under-cites", -0.8),
        (Ratio(4, 5, ""), Ratio(4, 4, ""), "good hygiene, not proof of truth", -0.2),
        (Ratio(1, 5, ""), Ratio(0, 1, ""), "ungrounded and unmarked", 0.2),
        (Ratio(0, 5, ""), Ratio(0, 0, ""), "ungrounded and unmarked", 0.0),
    ],
)
def test_coverage_and_support_make_a_pattern_with_its_gap(
    covered: Ratio, supported: Ratio, name: str, gap: float
) -> None:
    found = pattern({"coverage": covered, "support": supported})
    assert found is not None
    assert (found.name, found.gap) == (name, pytest.approx(gap))


def test_there_is_no_pattern_without_claims_or_when_what_is_cited_could_not_be_judged() -> None:
    assert pattern({"coverage": Ratio(0, 0, ""), "support": Ratio(0, 0, "")}) is None
    assert pattern({"coverage": Ratio(2, 5, ""), "support": Ratio(0, 0, "")}) is None
