"""What a verdict costs, by prices given and by those that the package genai-prices lists."""

from __future__ import annotations

import json
import sys
from typing import Any

import httpx
import pytest

from citespan.evaluators.errors import UsageError
from citespan.evaluators.judges.chat import ChatJudge, ChatOptions
from citespan.evaluators.judges.notes import notes_of
from citespan.evaluators.judges.registry import load_judge

pytest.importorskip("genai_prices", reason="not installed: pip install 'citespan[prices]'")


def judge_of(model: str, base_url: str, **options: Any) -> ChatJudge:
    """Return a judge whose every call is answered with verdicts on two claims, for 1,000 tokens in and 100 out."""

    def answer(request: httpx.Request) -> httpx.Response:
        claims = json.loads(json.loads(request.content)["messages"][-1]["content"])["claims"]
        verdicts = [{"n": claim["n"], "label": "unsupported", "reason": "No."} for claim in claims]
        message = {"content": json.dumps({"verdicts": verdicts})}
        usage = {"prompt_tokens": 1_000, "completion_tokens": 100}
        body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
        return httpx.Response(200, json=body)

    chosen = ChatOptions.model_validate({"model": model, "base_url": base_url, **options})
    return ChatJudge(chosen, transport=httpx.MockTransport(answer))


OPENAI = "https://api.openai.com/v1"


def test_a_model_on_the_list_costs_its_price_shared_among_the_verdicts(ask: Any) -> None:
    judge = judge_of("gpt-4o-mini", OPENAI)
    verdicts = judge.judge([ask("A.", "B."), ask("C.", "B.")])
    # $0.15 for a million tokens in, $0.60 for a million out: 1,000 * .15 / 1e6 + 100 * .60 / 1e6 = $0.00021, halved.
    assert [verdict.usage.cost_usd for verdict in verdicts if verdict.usage] == pytest.approx([0.000105] * 2)
    assert judge.spend.cost_usd == pytest.approx(0.00021)
    assert notes_of(judge)[0].endswith("1,000 tokens out and 100 back, for $0.0002")


def test_a_price_that_is_given_wins_over_the_list(ask: Any) -> None:
    prices = {"input_usd_per_million": 3.0, "output_usd_per_million": 0.0}
    (verdict,) = judge_of("gpt-4o-mini", OPENAI, **prices).judge([ask("A.", "B.")])
    # 1,000 * $3/M; a price of nothing for what comes back is a price.
    assert verdict.usage is not None
    assert verdict.usage.cost_usd == pytest.approx(0.003)


@pytest.mark.parametrize(
    ("model", "base_url"),
    [
        ("no-such-model", OPENAI),
        ("gpt-4o-mini", "http://localhost:4000/v1"),  # whoever answers there has a price of their own
        ("llama3.1", "http://localhost:11434/v1"),
    ],
)
def test_an_unknown_price_is_unknown_and_never_nothing(ask: Any, model: str, base_url: str) -> None:
    judge = judge_of(model, base_url)
    (verdict,) = judge.judge([ask("A.", "B.")])
    assert verdict.usage is not None
    assert (verdict.usage.prompt_tokens, verdict.usage.cost_usd) == (1_000, None)
    assert judge.spend.cost_usd is None
    assert notes_of(judge)[0].endswith("1,000 tokens out and 100 back, at an unknown price")


def test_a_budget_in_dollars_without_a_price_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "chat:tiny,base_url=http://localhost:9/v1"
    with pytest.raises(UsageError) as raised:
        load_judge(f"{name},budget_usd=2")
    assert str(raised.value) == (
        "a budget in US dollars needs a price, and none is known for 'tiny' at http://localhost:9/v1: "
        "give input_usd_per_million and output_usd_per_million, or budget_tokens"
    )
    # The budget may come from the environment, and the list may not be installed.
    monkeypatch.setenv("CITESPAN_CHAT_BUDGET_USD", "2")
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(UsageError, match=r"or pip install 'citespan\[prices\]', which knows many models"):
        load_judge(name)
    with pytest.raises(UsageError, match="a price has two parts: give both input_usd_per_million and"):
        load_judge(f"{name},input_usd_per_million=1")
    assert load_judge(f"{name},input_usd_per_million=1,output_usd_per_million=2").card.name == "chat:tiny"


def test_a_budget_in_dollars_by_the_list_ends_the_job(ask: Any) -> None:
    # A call is set aside at some 1,100 tokens in and 600 out, .15 and .60 a million: $0.00053; it costs $0.00021.
    # The third could end at 2 * .00021 + .00053 = $0.00095.
    judge = judge_of("gpt-4o-mini", OPENAI, budget_usd=0.0008)
    verdicts = judge.judge([ask("A.", "B.", run_id=str(n)) for n in range(5)])
    assert [verdict.rule for verdict in verdicts] == ["chat"] * 2 + ["budget_exhausted"] * 3
    assert "Raise budget_tokens or budget_usd." in verdicts[-1].reason
    assert judge.spend.cost_usd == pytest.approx(0.00042)
