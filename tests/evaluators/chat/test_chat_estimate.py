"""What verdicts of a chat model would cost is told beforehand, and nothing is sent for that."""

from __future__ import annotations

import httpx
import pytest

from citespan.evaluators.judges.cached import CachedJudge
from citespan.evaluators.judges.cascade import Band, CascadeJudge
from citespan.evaluators.judges.chat.judge import ChatJudge
from citespan.evaluators.judges.chat.options import ChatOptions
from citespan.evaluators.judges.chat.prompt import PROMPT, estimate_tokens
from citespan.evaluators.judges.judge import JudgeRequest, estimate_of
from citespan.evaluators.judges.registry import load_judge
from citespan.tracer import Passage


def _judge(**options: object) -> ChatJudge:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise AssertionError("an estimate sends nothing")

    given = {"model": "m", "base_url": "http://chat.test/v1", **options}
    return ChatJudge(ChatOptions.model_validate(given), transport=httpx.MockTransport(refuse))


def _requests(count: int) -> list[JudgeRequest]:
    passage = Passage(id="a", text="Refunds take five days. " * 100)
    return [JudgeRequest(f"Claim {n}.", (passage,), run_id="run") for n in range(count)]


def test_an_estimate_counts_a_passage_once_a_call_and_prices_both_ways() -> None:
    judge = _judge(input_usd_per_million=1.0, output_usd_per_million=10.0, claims_per_call=2)
    one, four = judge.estimate(_requests(1)), judge.estimate(_requests(4))
    # Four claims are two calls, each with the prompt and the passage of some 2,400 bytes.
    fixed = estimate_tokens(PROMPT.text) + 800
    assert fixed < one.prompt_tokens < fixed + 100
    assert 2 * fixed < four.prompt_tokens < 2 * fixed + 300
    # Room for two replies: 200 tokens each, and 400 for each of the four verdicts.
    assert four.completion_tokens == 2000
    assert four.cost_usd == pytest.approx((four.prompt_tokens + 10 * 2000) / 1_000_000)
    assert four.is_estimated


def test_an_unknown_price_is_not_zero() -> None:
    assert _judge().estimate(_requests(1)).cost_usd is None
    assert estimate_of(load_judge("lexical"), _requests(1)) is not None


def test_a_store_and_a_cascade_pass_the_estimate_on(tmp_path: object) -> None:
    judge = _judge(input_usd_per_million=1.0, output_usd_per_million=10.0)
    expected = judge.estimate(_requests(3))
    assert CachedJudge(judge, f"{tmp_path}/verdicts").estimate(_requests(3)) == expected
    cascade = CascadeJudge([load_judge("lexical"), judge], Band(low=0.2, high=0.8)).estimate(_requests(3))
    # The embedded judge costs nothing, and may pass all three on.
    assert cascade is not None
    assert (cascade.prompt_tokens, cascade.cost_usd) == (expected.prompt_tokens, expected.cost_usd)
