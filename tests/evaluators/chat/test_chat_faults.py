from __future__ import annotations

import logging
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from citespan.evaluators.judges.cached import CachedJudge
from citespan.evaluators.judges.cascade import Band, CascadeJudge
from citespan.evaluators.judges.chat import ChatJudge, ChatOptions
from citespan.evaluators.judges.chat.faults import FaultKind, read_fault
from citespan.evaluators.testing import ScriptedJudge
from citespan.evaluators.verdicts import Label


def error(message: str, **fields: object) -> dict[str, object]:
    return {"error": {"message": message, **fields}}


@pytest.mark.parametrize(
    ("status", "body", "rule"),
    [
        (401, error("Incorrect API key provided"), "auth"),
        (403, error("Country not supported"), "auth"),
        (404, error("The model `x` does not exist", code="model_not_found"), "not_found"),
        (402, error("Payment required"), "quota"),
        (429, error("You exceeded your current quota", code="insufficient_quota"), "quota"),
        (
            400,
            error("maximum context length is 512 tokens", code="context_length_exceeded"),
            "context_length",
        ),
        (413, "Payload too large", "context_length"),
        (
            400,
            {"type": "error", "error": {"message": "prompt is too long: 210000 tokens > 200000"}},
            "context_length",
        ),
        (400, error("The response was filtered", code="content_filter"), "content_filter"),
        (400, [{"error": {"message": "Invalid argument", "status": "INVALID_ARGUMENT"}}], "refused"),
        (307, "", "refused"),
    ],
)
def test_faults_that_do_not_pass_are_told_apart_and_asked_once(
    server: Any, make_judge: Any, ask: Any, reply: Any, status: int, body: object, rule: str
) -> None:
    server.always = lambda _: reply(status, body, {"location": "http://127.0.0.1:9/v1"})
    (verdict,) = make_judge(reply_format="text").judge([ask("A.", "A.")])
    assert (verdict.label, verdict.rule) == (Label.UNJUDGED, rule)
    assert verdict.reason.startswith(f"{rule}: HTTP {status}")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "body", "rule"),
    [
        (429, error("Rate limit reached; see https://example.com/account/billing"), "rate_limited"),
        (500, error("boom"), "server_error"),
        (503, "<html>busy</html>", "server_error"),
        (529, error("Overloaded", type="overloaded_error"), "server_error"),
        (200, "not json", "bad_reply"),
        (200, {"choices": []}, "bad_reply"),
        (200, error("upstream failed", code=502), "server_error"),
    ],
)
def test_faults_that_may_pass_are_tried_again_with_growing_waits(
    server: Any, make_judge: Any, ask: Any, reply: Any, time_passes: Any, status: int, body: object, rule: str
) -> None:
    server.always = lambda _: reply(status, body)
    (verdict,) = make_judge(retries=3).judge([ask("A.", "A.")])
    assert (verdict.label, verdict.rule) == (Label.UNJUDGED, rule)
    assert len(server.requests) == 4
    # Waits are drawn from [.25, .5], [.5, 1] and [1, 2].
    assert [low <= wait <= 2 * low for wait, low in zip(time_passes.slept, (0.25, 0.5, 1.0), strict=True)]


def test_a_fault_that_passes_costs_nothing_but_time(
    server: Any, make_judge: Any, ask: Any, reply: Any
) -> None:
    server.script = [reply(500, ""), reply(200, "{"), reply(429, "")]
    (verdict,) = make_judge().judge([ask("A.", "A.")])
    assert verdict.label is Label.SUPPORTED


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        # The clock's wall time is 1,700,001,000 s after 1970, which is 22:30:00.
        ({"retry-after": "Tue, 14 Nov 2023 22:30:20 GMT"}, 20.0),
    ],
)
def test_the_wait_that_a_server_asks_for_is_kept(
    server: Any,
    make_judge: Any,
    ask: Any,
    reply: Any,
    time_passes: Any,
    header: dict[str, str],
    seconds: float,
) -> None:
    server.script = [reply(429, "", header)]
    (verdict,) = make_judge().judge([ask("A.", "A.")])
    assert verdict.label is Label.SUPPORTED
    assert time_passes.slept == [pytest.approx(seconds)]


def test_a_longer_wait_than_allowed_is_not_waited(
    server: Any, make_judge: Any, ask: Any, reply: Any, time_passes: Any
) -> None:
    server.script = [reply(429, error("slow down"), {"retry-after": "3600"})]
    (verdict,) = make_judge(most_wait_seconds=60).judge([ask("A.", "A.")])
    assert verdict.rule == "rate_limited"
    assert "asked to wait 3600 s" in verdict.reason
    assert time_passes.slept == []


def test_a_wait_that_one_call_is_told_holds_back_the_others(
    server: Any, make_judge: Any, ask: Any, reply: Any, time_passes: Any
) -> None:
    server.script = [reply(429, "", {"retry-after": "20"})]
    judge = make_judge(retries=0)
    assert judge.judge([ask("A.", "A.")])[0].rule == "rate_limited"
    assert time_passes.slept == []
    assert judge.judge([ask("B.", "B.")])[0].label is Label.SUPPORTED
    assert time_passes.slept == [20.0]


@pytest.mark.parametrize("cut", [0, 40])
def test_a_connection_that_breaks_is_tried_again(
    server: Any, make_judge: Any, ask: Any, reply: Any, cut: int
) -> None:
    server.script = [reply(200, {"choices": ["x" * 500]}, cut_to_bytes=cut)]
    (verdict,) = make_judge().judge([ask("A.", "A.")])
    assert verdict.label is Label.SUPPORTED
    server.always = lambda _: reply(200, {"choices": ["x" * 500]}, cut_to_bytes=cut)
    (verdict,) = make_judge(retries=1).judge([ask("A.", "A.")])
    assert verdict.rule == "unreachable"


def test_no_server_is_unreachable_and_names_the_host(time_passes: Any, ask: Any) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ChatOptions(model="m", base_url=f"http://127.0.0.1:{port}/v1", retries=1)
    judge = ChatJudge(options, clock=time_passes.clock)
    (verdict,) = judge.judge([ask("A.", "A.")])
    assert verdict.rule == "unreachable"
    assert f"127.0.0.1:{port}" in verdict.reason
    assert judge.spend.prompt_tokens == 0
    judge.close()


def test_a_silent_server_times_out(server: Any, make_judge: Any, ask: Any, reply: Any) -> None:
    server.always = lambda _: reply(200, "", delay_seconds=0.5)
    judge = make_judge(timeout_seconds=0.1, retries=1)
    (verdict,) = judge.judge([ask("A.", "A.")])
    assert verdict.rule == "timeout"
    # The prompt may have been read and charged, so it counts against the budget.
    assert judge.spend.prompt_tokens > 0
    assert judge.spend.calls == 2


def test_a_server_that_drips_is_cut_off_at_the_timeout(server: Any, ask: Any, answer_text: Any) -> None:
    slow = answer_text("x" * 2_000)
    slow.drip_seconds = 0.02
    server.always = lambda _: slow
    options = ChatOptions(model="m", base_url=server.url, timeout_seconds=0.3, retries=0)
    judge = ChatJudge(options)
    start = time.monotonic()
    (verdict,) = judge.judge([ask("A.", "A.")])
    assert verdict.rule == "timeout"
    assert time.monotonic() - start < 2
    judge.close()


def test_closing_ends_a_waiting_call_at_once(server: Any, ask: Any, reply: Any) -> None:
    server.always = lambda _: reply(429, "", {"retry-after": "60"})
    judge = ChatJudge(ChatOptions(model="m", base_url=server.url))
    timer = threading.Timer(0.2, judge.close)
    timer.start()
    start = time.monotonic()
    verdicts = judge.judge([ask("A.", "A."), ask("B.", "B.", run_id="other")])
    assert time.monotonic() - start < 5
    assert {verdict.rule for verdict in verdicts} == {"closed"}
    assert judge.judge([ask("A.", "A.")])[0].rule == "closed"
    timer.join()


def test_closing_a_cascade_or_a_cache_closes_the_judge_within(
    make_judge: Any, ask: Any, tmp_path: Path
) -> None:
    chat = make_judge()
    outer = CascadeJudge([ScriptedJudge(), CachedJudge(chat, tmp_path / "v.sqlite")], Band())
    outer.close()
    assert chat.judge([ask("A.", "A.")])[0].rule == "closed"


def test_a_batch_too_large_for_the_model_is_halved_until_it_fits(
    server: Any, make_judge: Any, ask: Any, reply: Any
) -> None:
    whole = server.always

    def small_model(body: dict[str, Any]) -> Any:
        too_large = len(body["messages"][-1]["content"]) > 420
        return reply(400, error("maximum context length is 9 tokens")) if too_large else whole(body)

    server.always = small_model
    texts = [*(f"Claim {n}." for n in range(4)), "Long. " * 80]
    verdicts = make_judge().judge([ask(text, text) for text in texts])
    assert [verdict.evidence for verdict in verdicts[:4]] == texts[:4]
    assert verdicts[4].rule == "context_length"


def test_a_text_that_the_filter_stops_takes_no_other_claim_with_it(
    server: Any, make_judge: Any, ask: Any, answer_text: Any
) -> None:
    whole = server.always

    def prudish_model(body: dict[str, Any]) -> Any:
        if "forbidden" in body["messages"][-1]["content"]:
            return answer_text(
                "", finish_reason="content_filter", usage={"prompt_tokens": 900, "completion_tokens": 0}
            )
        return whole(body)

    server.always = prudish_model
    verdicts = make_judge().judge(
        [ask(text, text) for text in ("One.", "Two.", "A forbidden word.", "Four.")]
    )
    assert [verdict.rule for verdict in verdicts] == ["chat", "chat", "content_filter", "chat"]
    assert all(verdict.usage is not None and verdict.usage.prompt_tokens > 0 for verdict in verdicts)


def test_a_reply_that_was_cut_is_asked_for_in_halves(
    server: Any, make_judge: Any, ask: Any, answer_text: Any
) -> None:
    server.script = [answer_text('{"verdicts": [{"n": 1,', finish_reason="length")]
    verdicts = make_judge().judge([ask(f"Claim {n}.", f"Claim {n}.") for n in range(2)])
    assert [verdict.label for verdict in verdicts] == [Label.SUPPORTED] * 2
    assert len(server.requests) == 3
    server.always = lambda _: answer_text("{", finish_reason="length")
    assert make_judge().judge([ask("A.", "A.")])[0].rule == "reply_cut"


def test_a_prompt_that_the_server_silently_cut_is_not_judged_on_what_is_left(
    server: Any, make_judge: Any, ask: Any, answer_text: Any
) -> None:
    server.always = lambda _: answer_text("{}", usage={"prompt_tokens": 100, "completion_tokens": 5})
    (verdict,) = make_judge().judge([ask("A claim.", "A passage.")])
    assert verdict.rule == "context_length"
    assert "100 tokens of a prompt of" in verdict.reason
    assert "raise its context length" in verdict.reason


def test_a_refusal_is_a_content_filter(server: Any, make_judge: Any, ask: Any, reply: Any) -> None:
    message = {"role": "assistant", "content": None, "refusal": "I can't help with that."}
    server.always = lambda _: reply(200, {"choices": [{"message": message, "finish_reason": "stop"}]})
    (verdict,) = make_judge().judge([ask("A.", "A.")])
    assert verdict.rule == "content_filter"
    assert "I can't help" in verdict.reason


def test_one_runs_fault_leaves_the_other_runs_verdicts(
    server: Any, make_judge: Any, ask: Any, reply: Any
) -> None:
    server.script = [reply(404, error("no such model"))]
    verdicts = make_judge().judge([ask("A.", "A.", run_id="a"), ask("B.", "B.", run_id="b")])
    assert [verdict.rule for verdict in verdicts] == ["not_found", "chat"]


def test_the_key_is_in_no_reason_and_no_log(
    server: Any, make_judge: Any, ask: Any, reply: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="citespan")
    server.script = [
        reply(400, error("seed: bad for sk-12345")),
        reply(401, error("Incorrect API key provided: sk-12345")),
        reply(200, error("wrong key sk-12345", code=401)),
    ]
    judge = make_judge(api_key="sk-12345")
    for _ in range(2):
        assert "sk-12345" not in judge.judge([ask("A.", "A.")])[0].reason
    assert "sk-12345" not in caplog.text


def test_a_fault_reads_bodies_of_any_shape() -> None:
    for body in (
        b"",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"[1]",
        b'{"error": null}',
        b'{"error": {"message": 5}}',
        b"{",
    ):
        assert read_fault(400, body).kind is FaultKind.REFUSED
