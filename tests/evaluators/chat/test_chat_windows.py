"""Passages longer than a call are read window by window, and nothing of them is left out."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citespan.evaluators.judges.chat.prompt import text_tokens
from citespan.evaluators.judges.chat.windows import cut_windows
from citespan.evaluators.verdicts import Label
from citespan.tracer.passages import Passage

REFUNDS = "Refunds are issued within five business days."


def pages(count: int, start: int = 0) -> str:
    """Return so many sentences, all different, of 58 bytes each.

    One is 20 tokens by estimate: 58 bytes and two quotation marks by 3. A context of 8,000 tokens has windows of half
    of that: 4,000 / 20 = 200 sentences, of which neighbours share an eighth, 25, so each further one brings 175.
    """
    return "".join(
        f"Report {n:04} lists the offices, staff, travel of a region. " for n in range(start, start + count)
    )


LONG = pages(1_000)
"""1 + (1,000 - 200) / 175, rounded up: 6 windows."""


def test_a_passage_too_long_for_one_call_is_read_in_windows_until_one_supports(
    server: Any, make_judge: Any, ask: Any
) -> None:
    text = pages(300) + REFUNDS + " " + pages(700, 300)
    (verdict,) = make_judge(context_tokens=8_000).judge([ask(REFUNDS, text)])
    # 1,001 sentences are 6 windows; the 301st is in the second.
    assert verdict.label is Label.SUPPORTED
    assert verdict.reason == "It says so. (The text is too long for one call: 2 of 6 windows were read.)"
    assert (verdict.evidence, verdict.evidence_passage_id) == (REFUNDS, "doc-1")
    assert len(server.requests) == 2


def test_what_no_window_supports_is_unsupported_after_all_of_them(
    server: Any, make_judge: Any, ask: Any
) -> None:
    (verdict,) = make_judge(context_tokens=8_000).judge([ask(REFUNDS, LONG)])
    assert verdict.label is Label.UNSUPPORTED
    assert "6 of 6 windows were read" in verdict.reason
    shown = [document["passages"]["p1"] for document in server.documents]
    # Every window begins with the end of the one before, and together they are the passage.
    assert all(text.startswith(before[-25 * 58 :]) for before, text in itertools.pairwise(shown))
    assert shown[0] + "".join(text[25 * 58 :] for text in shown[1:]) == LONG


def test_cost_and_tokens_are_counted_over_all_windows(
    server: Any, make_judge: Any, ask: Any, say: Any
) -> None:
    server.always = lambda _: say((1, "unsupported", ""), prompt_tokens=4_000)
    judge = make_judge(context_tokens=8_000, input_usd_per_million=1.0, output_usd_per_million=10.0)
    (verdict,) = judge.judge([ask(REFUNDS, LONG)])
    # Six calls of 4,000 and 100 tokens, each 4,000 * $1/M + 100 * $10/M = $0.005.
    assert (verdict.usage.prompt_tokens, verdict.usage.completion_tokens) == (24_000, 600)
    assert verdict.usage.cost_usd == pytest.approx(0.03)
    assert (judge.spend.calls, judge.spend.prompt_tokens) == (6, 24_000)


@pytest.mark.parametrize(
    ("said", "label"),
    [
        (("unsupported", "contradicted", "partly_supported"), "contradicted"),
        (("unsupported", "partly_supported", "unsupported"), "partly_supported"),
        (("contradicted", "unsupported", "supported"), "supported"),
        (("contradicted", "nonsense", "partly_supported"), "unjudged"),
        (("contradicted", "nonsense", "supported"), "supported"),
    ],
)
def test_windows_are_combined_as_several_cited_passages_are(
    server: Any, make_judge: Any, ask: Any, say: Any, answer_text: Any, said: tuple[str, ...], label: str
) -> None:
    for one in said:
        quote = "" if one == "unsupported" else "staff, travel of a region"
        # What is no answer is asked for once more.
        server.script += (
            [answer_text("?")] * 2 if one == "nonsense" else [say((1, one, quote), prompt_tokens=4_000)]
        )
    # 200 + 2 * 175 = 550 sentences are three windows.
    (verdict,) = make_judge(context_tokens=8_000).judge([ask("Claim.", pages(550))])
    assert verdict.label == label
    assert "3 of 3 windows were read" in verdict.reason
    assert verdict.rule == ("invalid_reply" if label == "unjudged" else "chat")
    if label == "unjudged":
        assert verdict.reason.startswith("invalid_reply: ")


def test_claims_on_the_same_long_passage_share_its_windows(server: Any, make_judge: Any, ask: Any) -> None:
    text = pages(300) + REFUNDS + " " + pages(100, 300)
    claims = [REFUNDS, "Offices are closed.", "Report 0007 lists the offices, staff, travel of a region."]
    verdicts = make_judge(context_tokens=8_000).judge([ask(claim, text) for claim in claims])
    assert [verdict.label for verdict in verdicts] == ["supported", "unsupported", "supported"]
    # 401 sentences are three windows: all claims on the first, two on the second, one on the third.
    asked = [[claim["claim"] for claim in document["claims"]] for document in server.documents]
    assert asked == [claims, claims[:2], claims[1:2]]
    assert all(len(document["passages"]) == 1 for document in server.documents)


def test_a_short_passage_is_judged_whole_beside_a_long_one(server: Any, make_judge: Any, ask: Any) -> None:
    long, short = ask(REFUNDS, LONG), ask(REFUNDS, REFUNDS)
    verdicts = make_judge(context_tokens=8_000).judge([long, short])
    assert [verdict.label for verdict in verdicts] == ["unsupported", "supported"]
    assert "windows" not in verdicts[1].reason
    (alone,) = make_judge(context_tokens=8_000).judge([long])
    assert (alone.label, alone.reason) == (verdicts[0].label, verdicts[0].reason)


def test_a_union_too_long_for_one_call_is_read_in_order_and_the_evidence_names_its_passage(
    server: Any, make_judge: Any, ask: Any
) -> None:
    texts = (pages(150), "Short one. " + REFUNDS, pages(300, 150))
    (verdict,) = make_judge(context_tokens=8_000).judge([ask(REFUNDS, *texts)])
    assert (verdict.label, verdict.evidence_passage_id) == (Label.SUPPORTED, "doc-2")
    # 452 sentences are three windows; the first holds all of doc-1 and doc-2 and the beginning of doc-3.
    assert len(server.documents[0]["passages"]) == 3
    assert len(server.requests) == 1
    assert "1 of 3 windows were read" in verdict.reason


def test_evidence_is_quoted_from_the_window_that_decides_as_the_passage_has_it(
    make_judge: Any, ask: Any
) -> None:
    # The same words stand in the last window in other letters: the quote is of the second.
    loud = "REFUNDS ARE ISSUED  WITHIN FIVE BUSINESS DAYS."
    text = loud.replace("FIVE", "SIX") + " " + pages(300) + REFUNDS + " " + pages(100, 300) + loud
    (verdict,) = make_judge(context_tokens=8_000).judge([ask(REFUNDS, text)])
    assert verdict.evidence == REFUNDS


def test_a_redacted_passage_is_windowed_as_it_is_sent(server: Any, make_judge: Any, ask: Any) -> None:
    judge = make_judge(context_tokens=8_000, redact=lambda text: text.replace("offices", "[PLACES]"))
    (verdict,) = judge.judge([ask(REFUNDS, pages(400) + REFUNDS)])
    assert (verdict.label, verdict.evidence) == (Label.SUPPORTED, REFUNDS)
    assert "offices" not in json.dumps(server.requests)


def test_a_claim_that_leaves_no_room_is_too_long_and_nothing_is_sent(
    server: Any, make_judge: Any, ask: Any
) -> None:
    long, short = ask("word " * 12_000, LONG), ask(REFUNDS, REFUNDS)
    verdicts = make_judge(context_tokens=8_000).judge([long, short])
    assert [verdict.rule for verdict in verdicts] == ["too_long", "chat"]
    assert verdicts[0].reason == (
        "too_long: the claim leaves no room for a passage within context_tokens=8000"
    )
    assert len(server.requests) == 1


def test_a_server_that_reads_less_than_was_said_is_given_smaller_windows(
    server: Any, make_judge: Any, ask: Any, reply: Any
) -> None:
    whole = server.always

    def small_model(body: dict[str, Any]) -> Any:
        is_long = len(body["messages"][-1]["content"]) > 8_000
        return (
            reply(400, {"error": {"message": "maximum context length is 9 tokens"}})
            if is_long
            else whole(body)
        )

    server.always = small_model
    text = pages(226) + REFUNDS
    (verdict,) = make_judge(context_tokens=8_000).judge([ask(REFUNDS, text)])
    assert (verdict.label, verdict.evidence) == (Label.SUPPORTED, REFUNDS)
    # 226 sentences of 58 bytes are 4,370 tokens; half of them are 2,185, so windows of 2,000: 100 sentences, of which
    # 12 are shared (250 / 20): 1 + (227 - 100) / 88, rounded up, is 3.
    assert "3 of 3 windows were read" in verdict.reason
    assert len(server.requests) == 1 + 3


def test_a_model_too_small_for_any_window_is_asked_a_few_times_and_says_so(
    server: Any, make_judge: Any, ask: Any, reply: Any
) -> None:
    server.always = lambda _: reply(400, {"error": {"message": "maximum context length is 9 tokens"}})
    (verdict,) = make_judge().judge([ask(REFUNDS, pages(100))])
    # 1,934 tokens: whole, then a window of 500, the largest of 16,000, 8,000 ... under half of that. Half of 484 again
    # would be 125, under the least of 200, so the other windows are not tried.
    assert verdict.rule == "context_length"
    assert len(server.requests) == 2


@pytest.mark.parametrize(("status", "calls"), [(401, 1), (404, 1)])
def test_a_fault_that_every_window_would_meet_ends_the_reading(
    server: Any, make_judge: Any, ask: Any, reply: Any, status: int, calls: int
) -> None:
    server.always = lambda _: reply(status, {"error": {"message": "no"}})
    (verdict,) = make_judge(context_tokens=8_000).judge([ask(REFUNDS, LONG)])
    assert verdict.label is Label.UNJUDGED
    assert len(server.requests) == calls


def test_a_budget_that_ends_within_a_passage_leaves_the_claim_unjudged(
    server: Any, make_judge: Any, ask: Any
) -> None:
    judge = make_judge(context_tokens=8_000, budget_tokens=12_000)
    (verdict,) = judge.judge([ask(REFUNDS, LONG)])
    # A window is about 4,000 tokens, with the instructions some 5,500: two fit, the third could pass the budget.
    assert verdict.rule == "budget_exhausted"
    assert verdict.usage.prompt_tokens > 4_000
    assert judge.spend.prompt_tokens + judge.spend.completion_tokens <= 12_000


def test_a_window_that_the_filter_stops_does_not_hide_support_in_another(
    server: Any, make_judge: Any, ask: Any, answer_text: Any
) -> None:
    server.script = [answer_text("", finish_reason="content_filter")]
    (verdict,) = make_judge(context_tokens=8_000).judge([ask(REFUNDS, pages(400) + REFUNDS)])
    assert verdict.label is Label.SUPPORTED
    server.script = [answer_text("", finish_reason="content_filter")]
    (verdict,) = make_judge(context_tokens=8_000).judge([ask(REFUNDS, LONG)])
    assert verdict.rule == "content_filter"


def test_an_estimate_counts_every_window(make_judge: Any, ask: Any, server: Any) -> None:
    judge = make_judge(context_tokens=8_000)
    one, six = judge.estimate([ask(REFUNDS, pages(200))]), judge.estimate([ask(REFUNDS, LONG)])
    # Room for a reply is 600 tokens a call. Five windows are full, of 200 sentences; the last has 1,000 - 5 * 175.
    assert (one.completion_tokens, six.completion_tokens) == (600, 3_600)
    assert 5.5 * one.prompt_tokens < six.prompt_tokens < 6 * one.prompt_tokens
    assert server.requests == []
    judge.judge([ask(REFUNDS, LONG)])
    assert judge.spend.prompt_tokens <= six.prompt_tokens


def test_markup_that_is_escaped_counts_as_what_it_takes(server: Any, make_judge: Any, ask: Any) -> None:
    # `<` is sent as six bytes: 9,000 characters of markup are some 14,000 tokens by estimate, not 3,000.
    (verdict,) = make_judge(context_tokens=8_000).judge([ask("Claim.", "<b>" * 3_000)])
    assert "windows were read" in verdict.reason
    sent = [len(request["messages"][-1]["content"].encode()) / 3 for request in server.requests]
    assert max(sent) < 5_000


texts = st.text(alphabet=st.sampled_from('ab .!?\n。<"é\u200b'), max_size=2_000)


@given(st.lists(texts, min_size=1, max_size=3), st.integers(200, 400))
def test_windows_cover_every_character_in_order_and_keep_to_their_size(parts: list[str], size: int) -> None:
    passages = [Passage(id=str(n), text=text, label=f"L{n}") for n, text in enumerate(parts)]
    windows = cut_windows(passages, size)
    for passage in passages:
        text, reached = passage.text or "", 0
        for window in windows:
            for part in window:
                if part.id != passage.id:
                    continue
                assert part.label == passage.label
                at = text.rfind(part.text or "", 0, reached + len(part.text or ""))
                assert 0 <= at <= reached
                reached = max(reached, at + len(part.text or ""))
        assert reached == len(text)
    assert all(sum(text_tokens(part.text or "") for part in window) <= size for window in windows)


def test_windows_end_where_sentences_and_paragraphs_do() -> None:
    sentences = [f'Number {n} says "yes." ' for n in range(60)] + [f"Heading {n}\n\n" for n in range(60)]
    windows = cut_windows([Passage(id="p", text="".join(sentences))], 200)
    for (part,) in windows:
        text = part.text or ""
        assert text.startswith(("Number", "Heading"))
        assert text.endswith(('" ', "\n\n"))


def test_a_sentence_longer_than_a_window_is_cut_at_a_space() -> None:
    windows = cut_windows([Passage(id="p", text="word " * 1_000)], 200)
    assert len(windows) > 5
    assert all((part.text or "").endswith("word ") for (part,) in windows)
