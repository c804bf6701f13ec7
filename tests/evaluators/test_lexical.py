from __future__ import annotations

import time

import pytest

from citespan.evaluators.judges.judge import JudgeRequest
from citespan.evaluators.judges.lexical import LexicalJudge
from citespan.evaluators.judges.registry import load_judge
from citespan.evaluators.verdicts import Label, Verdict
from citespan.tracer.passages import Passage

RETRIES = "The sync client retries transient network failures up to five times with exponential backoff."
PERMANENT = "Permanent errors, such as authentication failures, are not retried and surface immediately to the caller."
AUDIT = "Sync runs are logged to the local audit file for later inspection."
REFUNDS = "Refunds are issued within five business days of the request."
PRICING = "Pricing. Premium support is available as a paid add-on for all plans."
CONFIGURABLE = "The client supports configurable retry behavior for transient failures."


def judge_one(claim: str, *passages: str, question: str | None = None) -> Verdict:
    numbered = tuple(Passage(str(n), text) for n, text in enumerate(passages, start=1))
    return LexicalJudge().judge([JudgeRequest(claim, numbered, question=question)])[0]


@pytest.mark.parametrize(
    ("claim", "passage", "label"),
    [
        ("The sync client retries transient failures up to five times.", RETRIES, "supported"),
        ("Retries use exponential backoff.", RETRIES, "supported"),
        ("Authentication failures are never retried.", PERMANENT, "partly_supported"),
        ("Sync runs are logged locally.", AUDIT, "supported"),
        ("The default retry limit can be raised through configuration.", RETRIES, "unsupported"),
        ("The default retry limit can be raised through configuration.", PERMANENT, "unsupported"),
        ("The default retry limit can be raised through configuration.", AUDIT, "unsupported"),
        ("Authentication failures surface immediately.", PERMANENT, "supported"),
        ("Authentication failures are retried.", PERMANENT, "contradicted"),
        ("The retry limit defaults to five attempts.", CONFIGURABLE, "unsupported"),
        ("Refunds are issued within five days.", REFUNDS, "partly_supported"),
        ("Refunds are issued within 5 business days.", REFUNDS, "supported"),
        ("Premium support is included at no charge.", PRICING, "contradicted"),
        ("Premium support is available as a paid add-on.", PRICING, "supported"),
    ],
)
def test_worked_examples_come_out_as_the_design_states(claim: str, passage: str, label: str) -> None:
    assert judge_one(claim, passage).label == Label(label)


@pytest.mark.parametrize(
    ("claim", "passage", "label", "rule"),
    [
        # figures
        (
            "The cache stores up to 1,200,000 entries.",
            "The cache holds up to 1.2 million entries.",
            "supported",
            None,
        ),
        ("The scheduler runs every ten minutes.", "The scheduler runs every 10 minutes.", "supported", None),
        ("The meeting lasts 90 minutes.", "The meeting lasts 1.5 hours.", "supported", None),
        ("Shipping takes 3 to 5 days.", "Shipping takes between three and five days.", "supported", None),
        ("Admissions fell by 40 percent.", "In the trial, admissions fell by 40%.", "supported", None),
        (
            "The Basic plan costs $15.",
            "The Basic plan costs $12 and includes storage.",
            "contradicted",
            "number",
        ),
        ("Delivery takes 3 hours.", "Delivery takes 3 days.", "contradicted", "number"),
        (
            "The bridge opened in 1934.",
            "The bridge opened to traffic in March 1932.",
            "contradicted",
            "number",
        ),
        (
            "Shipping takes three days.",
            "Shipping takes at least three days.",
            "partly_supported",
            "qualifier",
        ),
        # signs
        ("The API supports pagination.", "The API does not support pagination.", "contradicted", "negation"),
        ("The API does not support pagination.", "The API supports pagination.", "contradicted", "negation"),
        (
            "The warranty covers water damage.",
            "The warranty covers manufacturing defects. It does not cover water damage.",
            "contradicted",
            "negation",
        ),
        (
            "The warranty does not cover water damage.",
            "The warranty covers manufacturing defects. It does not cover water damage.",
            "supported",
            None,
        ),
        ("Version 3 removed support for XML.", "Version 3 added support for XML.", "contradicted", "antonym"),
        ("Sales rose in the second quarter.", "Sales fell in the second quarter.", "contradicted", "antonym"),
        (
            "Data export is free.",
            "Data export is available for an additional fee.",
            "contradicted",
            "antonym",
        ),
        (
            "The museum is closed on Mondays.",
            "The museum is open on Mondays and closed on Tuesdays.",
            "contradicted",
            "antonym",
        ),
        # strength
        (
            "Backups always run at night.",
            "Backups usually run at night.",
            "partly_supported",
            "strengthening",
        ),
        (
            "The service must restart after an update.",
            "The service may restart after an update.",
            "partly_supported",
            "strengthening",
        ),
        (
            "Only managers can approve overtime.",
            "Managers can approve overtime.",
            "partly_supported",
            "strengthening",
        ),
        ("Not all refunds are paid.", "Some refunds are not paid.", "supported", None),
        # names and parts
        ("Acme acquired Globex.", "Globex acquired Acme in 2019.", "contradicted", "entity"),
        ("Globex was acquired by Acme.", "Acme acquired Globex in 2019.", "supported", None),
        ("Anna Berg married Carl Holm.", "Carl Holm married Anna Berg in May.", "supported", None),
        ("Lyon is smaller than Paris.", "Paris is larger than Lyon.", "supported", None),
        (
            "Acme was acquired by Globex.",
            "Acme acquired Globex in 2019.",
            "contradicted",
            "entity",
        ),
        (
            "Acme was acquired by Globex.",
            "Globex was acquired by Acme in 2019.",
            "contradicted",
            "entity",
        ),
        ("Acme acquired Globex.", "Globex was acquired by Acme in 2019.", "supported", None),
        (
            "Denmark exports fish to Norway.",
            "Norway exports fish to Denmark.",
            "contradicted",
            "entity",
        ),
        (
            "The harbor bridge was designed by Carl Holm.",
            "The harbor bridge was designed by Ada Lindqvist and opened by Carl Holm.",
            "partly_supported",
            "entity",
        ),
        (
            "The harbor bridge was opened by Carl Holm.",
            "The harbor bridge was designed by Ada Lindqvist and opened by Carl Holm.",
            "supported",
            None,
        ),
        (
            "The plant in Bergen makes turbines.",
            "The plant in Oslo makes turbines, and the office in Bergen sells them.",
            "partly_supported",
            "entity",
        ),
        # spelling
        ("FGF21 lowers blood sugar.", "Fibroblast growth factor 21 lowers blood sugar.", "supported", None),
        (
            "The fibroblast growth factor lowers blood sugar.",
            "In mice, FGF lowers the blood sugar.",
            "supported",
            None,
        ),
        ("Birth weight predicts height.", "Birthweight predicts height.", "supported", None),
        ("Noncoding regions are long.", "Non-coding regions are long.", "supported", None),
        ("PKCz binds α-catenin.", "PKCζ binds alpha catenin.", "supported", None),
        # matter
        (
            "Oslo is the capital of Norway.",
            "The company has offices in Oslo and Bergen.",
            "unsupported",
            "coverage",
        ),
        ("Turnover fell by a third.", "The office is located near the station.", "unsupported", "coverage"),
        (
            "Employees accrue two days of leave.",
            "Employees accrue two days of paid leave.",
            "supported",
            None,
        ),
    ],
)
def test_general_rules_hold_in_other_domains(claim: str, passage: str, label: str, rule: str | None) -> None:
    verdict = judge_one(claim, passage)
    assert verdict.label == Label(label), verdict.reason
    if rule is not None:
        assert verdict.rule == rule


def test_reason_names_the_words_that_differ() -> None:
    verdict = judge_one("Refunds are issued within five days.", REFUNDS)
    assert verdict.reason == 'The passage says "five business days"; the claim says "five days".'


def test_evidence_is_the_sentence_that_shows_the_difference() -> None:
    passage = "The warranty covers manufacturing defects. It does not cover water damage."
    verdict = judge_one("The warranty covers water damage.", passage)
    assert verdict.evidence == "It does not cover water damage."


def test_passages_are_read_together_and_the_evidence_says_which() -> None:
    verdict = judge_one("Sync runs are logged locally.", RETRIES, AUDIT)
    assert (verdict.label, verdict.evidence_passage_id, verdict.evidence) == (Label.SUPPORTED, "2", AUDIT)


def test_reason_names_who_has_the_part_that_the_claim_gives_to_another() -> None:
    passage = "The plant in Oslo makes turbines, and the office in Bergen sells them."
    verdict = judge_one("The plant in Bergen makes turbines.", passage)
    assert verdict.reason == 'The passage speaks of "Oslo" here; the claim names "Bergen".'


def test_tags_and_author_year_references_are_no_words_of_a_claim() -> None:
    plain = judge_one("Sync runs are logged locally.", AUDIT)
    marked = judge_one("<p>Sync runs are logged locally (Berg et al., 2016).</p>", AUDIT)
    assert (marked.label, marked.score) == (plain.label, plain.score)


def test_contradiction_is_never_sure() -> None:
    assert judge_one("The API supports pagination.", "The API does not support pagination.").is_low_confidence


def test_answer_of_a_name_is_read_with_its_question() -> None:
    """A name alone is in every passage that mentions it; its question says what is claimed of it."""
    question = "Who designed the harbor bridge?"
    designer = "The harbor bridge was designed by Ada Lindqvist."
    visitor = "Ada Lindqvist visited the town hall on Friday."
    assert judge_one("Ada Lindqvist", designer, question=question).label is Label.SUPPORTED
    assert judge_one("Ada Lindqvist", visitor, question=question).label is not Label.SUPPORTED


@pytest.mark.parametrize("claim", ["", "   ", "…!?", "\u200b", "🙂🙂"])
def test_claim_without_words_is_unjudged_with_a_reason(claim: str) -> None:
    verdict = judge_one(claim, AUDIT)
    assert (verdict.label, verdict.rule) == (Label.UNJUDGED, "no_words")


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("Sync runs are logged.", ""),
        ("Sync runs are logged.", "🙂"),
        ("It is so.", AUDIT),
        ("x" * 10_000, AUDIT),
        ("7", "7 8 9"),
        ("§§ 4 ff. ¶", "§ 4"),
        ("a.b.c... 1,2,3,,4 $€% -5--6", "1..2 $5 %%"),
        ("İstanbul’da ŉ ß ﬁ", "ISTANBUL'DA"),
        ("The \ud800 value.".encode("utf-16", "surrogatepass").decode("utf-16", "replace"), "The value."),
    ],
)
def test_any_text_gets_a_verdict_with_evidence_from_the_passage(claim: str, passage: str) -> None:
    verdict = judge_one(claim, passage)
    assert verdict.rule != "judge_error", verdict.reason
    assert verdict.evidence is None or verdict.evidence in passage


@pytest.mark.parametrize(
    ("claim", "passage", "label"),
    [
        (
            "返金は五日以内に行われます。",
            "返金は申請から五日以内に行われます。手数料はかかりません。",
            Label.SUPPORTED,
        ),
        ("返金は五日以内に行われます。", "会社は東京にあります。", Label.UNSUPPORTED),
        (
            "Возврат производится в течение 5 дней.",
            "Возврат производится в течение 5 дней с запроса.",
            Label.SUPPORTED,
        ),
        (
            "Возврат производится в течение 9 дней.",
            "Возврат производится в течение 5 дней с запроса.",
            Label.PARTLY_SUPPORTED,
        ),
    ],
)
def test_other_scripts_are_compared_by_letters_in_doubt(claim: str, passage: str, label: Label) -> None:
    verdict = judge_one(claim, passage)
    assert (verdict.label, verdict.is_low_confidence) == (label, True)


def test_verdict_does_not_depend_on_what_else_is_in_the_batch() -> None:
    requests = [
        JudgeRequest("Sync runs are logged locally.", (Passage("1", AUDIT),)),
        JudgeRequest("Refunds are issued within five days.", (Passage("1", REFUNDS),)),
    ]
    judge = LexicalJudge()
    together = judge.judge(requests)
    assert together == [LexicalJudge().judge([request])[0] for request in requests]
    assert judge.judge(list(reversed(requests))) == list(reversed(together))


def test_megabyte_passage_is_judged_in_seconds() -> None:
    passage = "The tower was repainted, and nothing else was done that year. " * 16_000 + AUDIT
    assert len(passage) > 900_000
    started = time.perf_counter()
    verdict = judge_one("Sync runs are logged locally.", passage)
    assert time.perf_counter() - started < 20
    assert (verdict.label, verdict.evidence) == (Label.SUPPORTED, AUDIT)


def test_claim_of_many_names_is_judged_in_seconds() -> None:
    claim, passage = " saw the ".join(["Acme", "Globex"] * 60), " saw the ".join(["Globex", "Acme"] * 60)
    started = time.perf_counter()
    judge_one(claim, passage)
    assert time.perf_counter() - started < 10


def test_text_without_punctuation_is_still_cut_into_quotable_sentences() -> None:
    verdict = judge_one(
        "The lamp is green.", "menu home about " * 500 + "the lamp is green " + "login " * 500
    )
    assert verdict.evidence is not None
    assert len(verdict.evidence.split()) <= 90


def test_card_states_limits_and_changes_with_the_model() -> None:
    card = load_judge("lexical").card
    assert card.sends_text_to is None
    assert "contradicted" in card.limits
    assert set(card.parameters) == {"model", "threshold"}
