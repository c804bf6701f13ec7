from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from citespan.evaluators.errors import UsageError
from citespan.evaluators.judges.notes import notes_of
from citespan.evaluators.testing import check_judge
from citespan.evaluators.verdicts import Label

REFUNDS = "Refunds are issued within five business days. Ask support for one."
SYNC = "Sync runs are logged locally."


def test_a_chat_judge_keeps_the_contract_of_judges(make_judge: Any) -> None:
    check_judge(make_judge(claims_per_call=1))
    check_judge(make_judge())


def test_all_claims_of_an_answer_go_in_one_call_and_each_passage_once(
    server: Any, make_judge: Any, ask: Any
) -> None:
    requests = [
        ask("Ask support for one.", REFUNDS, question="How?"),
        ask("Sync runs are logged locally.", SYNC, question="How?"),
        ask("Refunds take a month.", REFUNDS, question="How?"),
        ask("Sync runs are logged locally.", REFUNDS, SYNC, question="How?"),
    ]
    verdicts = make_judge().judge(requests)
    assert [verdict.label for verdict in verdicts] == ["supported", "supported", "unsupported", "supported"]
    (document,) = server.documents
    assert document["question"] == "How?"
    assert document["passages"] == {"p1": REFUNDS, "p2": SYNC}
    assert [claim["passages"] for claim in document["claims"]] == [["p1"], ["p2"], ["p1"], ["p1", "p2"]]
    assert verdicts[3].evidence == SYNC
    assert verdicts[3].evidence_passage_id == "doc-2"


def test_claims_of_different_runs_never_share_a_call(server: Any, make_judge: Any, ask: Any) -> None:
    runs = ["a", "b", "a", "", ""]
    make_judge().judge([ask(f"Claim {n}.", REFUNDS, run_id=run) for n, run in enumerate(runs)])
    claims = [[claim["claim"] for claim in document["claims"]] for document in server.documents]
    # The two of run a together, b alone; a request that names no run stands alone.
    assert claims == [["Claim 0.", "Claim 2."], ["Claim 1."], ["Claim 3."], ["Claim 4."]]


def test_claims_with_another_question_never_share_a_call(server: Any, make_judge: Any, ask: Any) -> None:
    make_judge().judge([ask(f"Claim {n}.", REFUNDS, question=q) for n, q in enumerate(("A?", "B?", "A?"))])
    assert [(d["question"], len(d["claims"])) for d in server.documents] == [("A?", 2), ("B?", 1)]


def test_more_claims_than_a_call_may_hold_are_spread_over_calls_in_order(
    server: Any, make_judge: Any, ask: Any
) -> None:
    verdicts = make_judge(claims_per_call=2).judge([ask(f"Claim {n}.", f"Claim {n}.") for n in range(5)])
    assert [len(document["claims"]) for document in server.documents] == [2, 2, 1]
    assert [verdict.evidence for verdict in verdicts] == [f"Claim {n}." for n in range(5)]


def test_claims_that_do_not_fit_the_context_together_are_spread_over_calls(
    server: Any, make_judge: Any, ask: Any
) -> None:
    # Each passage is about 2,000 tokens by estimate (6,000 bytes / 3); with instructions and replies three fit.
    requests = [ask(f"Claim {n}.", f"{n} " + "x" * 5_998) for n in range(4)]
    verdicts = make_judge(context_tokens=9_500).judge(requests)
    assert {verdict.label for verdict in verdicts} == {Label.UNSUPPORTED}
    assert len(server.documents) == 2
    assert sum(len(document["passages"]) for document in server.documents) == 4


def test_the_request_asks_for_a_schema_at_temperature_zero_with_a_seed(
    server: Any, make_judge: Any, ask: Any
) -> None:
    make_judge(api_key="k-1").judge([ask("A.", "A.")])
    (request,) = server.requests
    assert request["model"] == "tiny"
    assert (request["temperature"], request["seed"]) == (0, 0)
    assert request["response_format"]["json_schema"]["strict"] is True
    assert server.headers[0]["authorization"] == "Bearer k-1"
    assert server.paths == ["/v1/chat/completions"]


def test_azure_keeps_its_query_and_takes_its_key_in_its_own_header() -> None:
    from citespan.evaluators.judges.chat import ChatOptions

    options = ChatOptions.model_validate(
        {
            "model": "m",
            "base_url": "https://x.openai.azure.com/openai/deployments/m?api-version=2024-10-21",
            "api_key": "k",
        }
    )
    assert options.url == (
        "https://x.openai.azure.com/openai/deployments/m/chat/completions?api-version=2024-10-21"
    )
    assert options.headers == {"api-key": "k"}
    assert options.host == "x.openai.azure.com"


def test_a_quote_not_in_the_passage_is_asked_for_once_more_then_unjudged(
    server: Any, make_judge: Any, ask: Any, say: Any
) -> None:
    server.script = [
        say((1, "supported", "Refunds come quickly."), (2, "supported", SYNC)),
        say((1, "supported", "refunds are issued within  five Business days")),
        say((1, "supported", "Made up."), (2, "supported", SYNC)),
        say((1, "supported", "Made up again.")),
    ]
    requests = [ask("Refunds are quick.", REFUNDS), ask("Sync runs are logged.", SYNC)]
    judge = make_judge()
    first, second = judge.judge(requests)
    # The repair names the one claim that failed and why; the passage's own words are kept.
    assert server.documents[1]["claims"][0]["problem"] == (
        "the quote 'Refunds come quickly.' is in none of the claim's passages"
    )
    assert len(server.documents[1]["claims"]) == 1
    assert first.evidence == "Refunds are issued within five business days"
    assert second.evidence == SYNC
    first, second = judge.judge(requests)
    assert (first.label, first.rule) == (Label.UNJUDGED, "quote_not_found")
    assert "Made up again." in first.reason
    assert second.label is Label.SUPPORTED
    assert len(server.requests) == 4


def test_contradicted_and_partly_need_a_quote_and_unsupported_needs_none(
    server: Any, make_judge: Any, ask: Any, say: Any
) -> None:
    server.script = [
        say(
            (1, "contradicted", "nowhere"), (2, "partly_supported", "nowhere"), (3, "unsupported", "nowhere")
        ),
        say((1, "contradicted", "nowhere"), (2, "partly_supported", "five business days")),
    ]
    verdicts = make_judge().judge([ask(f"Claim {n}.", REFUNDS) for n in range(3)])
    assert [verdict.label for verdict in verdicts] == ["unjudged", "partly_supported", "unsupported"]
    assert [verdict.evidence for verdict in verdicts] == [None, "five business days", None]


def test_one_bad_entry_voids_no_other(server: Any, make_judge: Any, ask: Any, answer_text: Any) -> None:
    good = {"n": 2, "quote": "", "passage": "", "reason": "No.", "label": "unsupported", "probability": 2}
    bad = {**good, "n": 1, "label": "perhaps"}
    server.script = [answer_text(json.dumps({"verdicts": [bad, good]})), answer_text("I cannot say.")]
    verdicts = make_judge().judge([ask(f"Claim {n}.", REFUNDS) for n in range(3)])
    assert [verdict.label for verdict in verdicts] == ["unjudged", "unsupported", "unjudged"]
    assert [verdict.rule for verdict in verdicts] == ["invalid_reply", "chat", "invalid_reply"]
    assert [claim["problem"] for claim in server.documents[1]["claims"]] == [
        "label: Input should be 'supported', 'partly_supported', 'contradicted' or 'unsupported'",
        "the reply held no verdict on this claim",
    ]


@pytest.mark.parametrize(
    "wrapped",
    [
        "```json\n%s\n```",
        "<think>[1] is odd, {maybe}</think>\nHere you are: %s Anything else?",
        "%s",
    ],
)
def test_json_is_found_inside_fences_and_chatter(
    server: Any, make_judge: Any, ask: Any, answer_text: Any, wrapped: str
) -> None:
    entry = {"n": "1", "quote": "", "passage": "", "reason": "No.", "label": "Unsupported", "probability": 2}
    server.script = [answer_text(wrapped % json.dumps({"verdicts": [entry]}))]
    (verdict,) = make_judge().judge([ask("Claim.", REFUNDS)])
    assert (verdict.label, verdict.score) == (Label.UNSUPPORTED, 0.02)


@pytest.mark.parametrize(
    ("probability", "label", "score"),
    [(95, "supported", 0.95), (0.95, "supported", 0.95), (1, "supported", 1.0), (1, "unsupported", 0.01)],
)
def test_a_probability_is_read_in_per_cent_and_as_a_fraction(
    server: Any, make_judge: Any, ask: Any, answer_text: Any, probability: float, label: str, score: float
) -> None:
    entry = {"n": 1, "quote": SYNC, "reason": "So.", "label": label, "probability": probability}
    server.script = [answer_text(json.dumps({"verdicts": [entry]}))]
    (verdict,) = make_judge().judge([ask("Claim.", SYNC)])
    assert verdict.score == pytest.approx(score)
    assert not verdict.is_low_confidence


def test_a_label_that_its_own_probability_denies_is_low_confidence(
    server: Any, make_judge: Any, ask: Any, answer_text: Any
) -> None:
    entry = {"n": 1, "quote": SYNC, "reason": "So.", "label": "supported", "probability": 20}
    server.script = [answer_text(json.dumps({"verdicts": [entry]}))]
    (verdict,) = make_judge().judge([ask("Claim.", SYNC)])
    assert verdict.is_low_confidence


def test_a_servers_missing_features_are_found_out_once(
    server: Any, make_judge: Any, ask: Any, reply: Any
) -> None:
    def refuse(name: str) -> Any:
        return reply(400, {"error": {"message": f"Unsupported parameter: '{name}'", "param": name}})

    server.script = [
        refuse("temperature"),
        refuse("seed"),
        refuse("max_tokens"),
        reply(
            422, {"detail": [{"loc": ["body", "response_format", "type"], "msg": "should be 'json_object'"}]}
        ),
        refuse("response_format.schema"),
        refuse("response_format"),
    ]
    judge = make_judge()
    assert judge.judge([ask("A.", "A.")])[0].label is Label.SUPPORTED
    assert judge.judge([ask("A.", "A.")])[0].label is Label.SUPPORTED
    kinds = [request.get("response_format", {}).get("type") for request in server.requests]
    assert kinds == [*["json_schema"] * 4, "json_object", "json_object", None, None]
    assert set(server.requests[-1]) == {"model", "messages", "max_completion_tokens"}


def test_a_configured_format_is_never_loosened(server: Any, make_judge: Any, ask: Any, reply: Any) -> None:
    server.always = lambda _: reply(400, {"error": {"message": "response_format is not supported"}})
    (verdict,) = make_judge(reply_format="json_schema").judge([ask("A.", "A.")])
    assert (verdict.rule, len(server.requests)) == ("refused", 1)


def test_tokens_and_cost_are_shared_among_the_verdicts_and_add_up(
    server: Any, make_judge: Any, ask: Any, say: Any
) -> None:
    server.script = [
        say((1, "unsupported", ""), (2, "supported", "Made up."), (3, "unsupported", "")),
        say((1, "supported", SYNC)),
    ]
    judge = make_judge(input_usd_per_million=1.0, output_usd_per_million=10.0)
    verdicts = judge.judge([ask(f"Claim {n}.", SYNC) for n in range(3)])
    used = [verdict.usage for verdict in verdicts]
    # Two calls of 1000 and 100 tokens: thirds of the first (334, 333, 333; 34, 33, 33), the repair for the second.
    assert [usage.prompt_tokens for usage in used] == [334, 1333, 333]
    assert [usage.completion_tokens for usage in used] == [34, 133, 33]
    # A call costs 1000 * $1/M + 100 * $10/M = $0.002.
    assert sum(usage.cost_usd for usage in used) == pytest.approx(0.004)
    assert (judge.spend.calls, judge.spend.prompt_tokens, judge.spend.completion_tokens) == (2, 2000, 200)
    assert judge.spend.cost_usd == pytest.approx(0.004)


def test_a_chat_judge_notes_what_it_sent_where_and_what_that_cost(
    server: Any, make_judge: Any, ask: Any, say: Any
) -> None:
    server.script = [say((1, "unsupported", ""))]
    judge = make_judge(input_usd_per_million=1.0, output_usd_per_million=10.0)
    host = server.url.split("/")[2]
    assert notes_of(judge) == (f"chat:tiny sent nothing to {host}",)
    judge.judge([ask("A.", "A.")])
    assert notes_of(judge) == (f"chat:tiny asked {host} 1 times: 1,000 tokens out and 100 back, for $0.0020",)


def test_without_a_known_price_the_cost_is_unknown_and_not_zero(make_judge: Any, ask: Any) -> None:
    judge = make_judge()
    (verdict,) = judge.judge([ask("A.", "A.")])
    assert verdict.usage.cost_usd is None
    assert judge.spend.cost_usd is None


def test_where_the_server_counts_no_tokens_they_are_estimated_and_said_to_be(
    server: Any, make_judge: Any, ask: Any, answer_text: Any
) -> None:
    text = json.dumps({"verdicts": [{"n": 1, "label": "unsupported", "reason": "No.", "probability": 1}]})
    server.script = [answer_text(text)]
    (verdict,) = make_judge().judge([ask("A.", "B.")])
    assert verdict.usage.is_estimated
    assert verdict.usage.completion_tokens == -(-len(text) // 3)


def test_a_token_budget_ends_the_job_cleanly(server: Any, make_judge: Any, ask: Any) -> None:
    judge = make_judge(claims_per_call=1, budget_tokens=4_000)
    verdicts = judge.judge([ask("A.", "A.") for _ in range(6)])
    # The first verdicts are real, the rest say why they are not; nothing more is sent.
    labels = [verdict.label for verdict in verdicts]
    assert labels == sorted(labels, key=lambda label: label is Label.UNJUDGED)
    assert {verdict.rule for verdict in verdicts} == {"chat", "budget_exhausted"}
    assert len(server.requests) == labels.count(Label.SUPPORTED)
    spent = judge.spend.prompt_tokens + judge.spend.completion_tokens
    assert spent <= 4_000
    assert judge.judge([ask("A.", "A.")])[0].rule == "budget_exhausted"


def test_calls_side_by_side_cannot_overrun_the_budget_together(make_judge: Any, ask: Any) -> None:
    with ThreadPoolExecutor(8) as executor:
        judge = make_judge(
            claims_per_call=1,
            budget_usd=0.01,
            input_usd_per_million=1.0,
            output_usd_per_million=1.0,
            executor=executor,
            concurrency=8,
        )
        verdicts = judge.judge([ask("A.", "A.") for _ in range(40)])
    assert judge.spend.cost_usd <= 0.01
    assert {verdict.rule for verdict in verdicts} == {"chat", "budget_exhausted"}


def test_a_money_budget_without_a_price_is_refused_at_the_start(make_judge: Any) -> None:
    with pytest.raises(UsageError, match="none is known for 'tiny'"):
        make_judge(budget_usd=1.0)


def test_no_more_calls_are_under_way_than_allowed(server: Any, make_judge: Any, ask: Any) -> None:
    with ThreadPoolExecutor(8) as executor:
        judge = make_judge(claims_per_call=1, concurrency=2, executor=executor)
        verdicts = judge.judge([ask(f"Claim {n}.", f"Claim {n}.") for n in range(12)])
    assert [verdict.evidence for verdict in verdicts] == [f"Claim {n}." for n in range(12)]
    assert server.most_at_once <= 2


def test_calls_are_spaced_to_the_rate(make_judge: Any, ask: Any, time_passes: Any) -> None:
    judge = make_judge(claims_per_call=1, requests_per_minute=30)
    judge.judge([ask("A.", "A.") for _ in range(4)])
    # 30 a minute is one every 2 s: the first goes at once.
    assert time_passes.slept == [2.0, 2.0, 2.0]


def test_calls_are_spaced_to_the_token_rate(make_judge: Any, ask: Any, time_passes: Any) -> None:
    judge = make_judge(claims_per_call=1, tokens_per_minute=60_000)
    judge.judge([ask("A.", "A.") for _ in range(2)])
    # 1,000 tokens a second; a call of one claim is between 1,000 and 2,500 by estimate.
    (waited,) = time_passes.slept
    assert 1.0 < waited < 2.5


def test_one_judge_serves_many_threads(make_judge: Any, ask: Any) -> None:
    judge = make_judge()
    wrong: list[str] = []

    def work(name: str) -> None:
        for n in range(5):
            text = f"Claim {n} of {name}."
            (verdict,) = judge.judge([ask(text, text, run_id=name)])
            if verdict.evidence != text:
                wrong.append(verdict.reason)

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_card_names_the_host_and_the_fingerprint_covers_what_can_change_a_verdict(
    server: Any, make_judge: Any
) -> None:
    card = make_judge(api_key="secret-key").card
    assert card.name == "chat:tiny"
    assert card.sends_text_to == server.url.split("/")[2]
    assert "secret-key" not in json.dumps(dict(card.parameters))
    same = make_judge(timeout_seconds=5, retries=1, concurrency=9, budget_tokens=5).card
    assert same.fingerprint == card.fingerprint
    changes: list[dict[str, Any]] = [
        {"model": "other"},
        {"seed": 7},
        {"temperature": 0.5},
        {"claims_per_call": 1},
        {"reply_format": "text"},
        {"base_url": "http://localhost:1/v1"},
        {"redact": str.upper},
    ]
    fingerprints = {make_judge(**change).card.fingerprint for change in changes}
    assert len(fingerprints | {card.fingerprint}) == len(changes) + 1


def test_the_prompt_is_a_versioned_file_whose_text_is_fingerprinted() -> None:
    from importlib import resources

    from citespan.evaluators.judges.chat.prompt import PROMPT, PROMPT_FILE

    folder = resources.files("citespan.evaluators.judges.chat").joinpath("prompts")
    assert folder.joinpath(PROMPT_FILE).read_text(encoding="utf-8") == PROMPT.text
    # A changed prompt is a new file: `judge-2.md`, and the old one stays for old fingerprints.
    known = {"judge-1.md": "a596c28e0814"}
    assert PROMPT.sha256.startswith(known[PROMPT_FILE])
