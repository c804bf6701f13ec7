"""Endpoints that call themselves OpenAI-compatible and are not quite: what each refuses, as it says it itself."""

from __future__ import annotations

from typing import Any

import pytest

from citespan.evaluators.judges.chat import ChatOptions
from citespan.evaluators.judges.notes import notes_of
from citespan.evaluators.verdicts import Label


def error(message: str, **fields: object) -> dict[str, object]:
    return {"error": {"message": message, **fields}}


def judged(judge: Any, ask: Any) -> Any:
    (verdict,) = judge.judge([ask("A.", "A.")])
    return verdict


def test_azures_deployment_path_keeps_its_api_version_and_key_header(
    server: Any, make_judge: Any, ask: Any
) -> None:
    base_url = server.url.replace("/v1", "/openai/deployments/judge?api-version=2024-10-21")
    judge = make_judge(base_url=base_url, api_key="k-1", api_key_header="api-key")
    assert judged(judge, ask).label is Label.SUPPORTED
    assert server.paths == ["/openai/deployments/judge/chat/completions?api-version=2024-10-21"]
    assert server.headers[0]["api-key"] == "k-1"
    assert "authorization" not in server.headers[0]


@pytest.mark.parametrize(
    ("base_url", "header"),
    [
        ("https://name.openai.azure.com/openai/v1", "api-key"),
        ("https://name.services.ai.azure.com/openai/v1", "api-key"),
        ("https://name.openai.azure.us/openai/v1", "api-key"),
        ("https://api.anthropic.com/v1", "authorization"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "authorization"),
        ("https://azure.com.example.org/v1", "authorization"),
    ],
)
def test_the_key_goes_where_the_host_wants_it(base_url: str, header: str) -> None:
    options = ChatOptions.model_validate({"model": "m", "base_url": base_url, "api_key": "k"})
    assert list(options.headers) == [header]
    assert options.url == f"{base_url}/chat/completions"


def test_an_azure_api_version_without_schemas_is_asked_without_one(
    server: Any, make_judge: Any, ask: Any, reply: Any
) -> None:
    message = (
        "response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later"
    )
    server.script = [reply(400, error(message, code="BadRequest"))]
    assert judged(make_judge(), ask).label is Label.SUPPORTED
    assert [request["response_format"]["type"] for request in server.requests] == [
        "json_schema",
        "json_object",
    ]


def test_a_reasoning_model_is_asked_without_what_it_refuses_and_a_note_says_so(
    server: Any, make_judge: Any, ask: Any, reply: Any
) -> None:
    server.script = [
        reply(
            400,
            error(
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
                "instead.",
                type="invalid_request_error",
                param="max_tokens",
                code="unsupported_parameter",
            ),
        ),
        reply(
            400,
            error(
                "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is "
                "supported.",
                param="temperature",
                code="unsupported_value",
            ),
        ),
        reply(400, error("Unsupported parameter: 'seed' is not supported with this model.", param="seed")),
    ]
    judge = make_judge()
    assert judged(judge, ask).label is Label.SUPPORTED
    last = server.requests[-1]
    assert last["max_completion_tokens"] == 600
    assert not {"max_tokens", "temperature", "seed"} & set(last)
    # The schema was never refused, so it stays.
    assert last["response_format"]["type"] == "json_schema"
    assert notes_of(judge)[1] == (
        "chat:tiny takes no temperature and seed, so its answers may differ from one time to the next"
    )
    assert notes_of(judge)[0].endswith("; 3 of the calls failed")


def test_a_server_that_takes_everything_leaves_no_note(make_judge: Any, ask: Any) -> None:
    judge = make_judge()
    judged(judge, ask)
    assert len(notes_of(judge)) == 1


def test_a_claude_that_takes_no_temperature_is_asked_without(
    server: Any, make_judge: Any, ask: Any, reply: Any
) -> None:
    server.script = [
        reply(400, error("`temperature` is deprecated for this model.", code="invalid_request_error"))
    ]
    assert judged(make_judge(), ask).label is Label.SUPPORTED
    assert "temperature" not in server.requests[-1]
    assert server.requests[-1]["seed"] == 0


def test_anthropics_route_ignores_the_schema_and_its_fenced_answer_is_read(
    server: Any, make_judge: Any, ask: Any, answer_text: Any
) -> None:
    # It answers in prose with a fence, since `response_format` is ignored there.
    text = '```json\n{"verdicts": [{"n": 1, "quote": "A.", "reason": "So.", "label": "supported", "probability": 97}]}\n```'
    server.script = [answer_text(f"Here is my judgement.\n\n{text}")]
    assert judged(make_judge(), ask).score == 0.97


def test_gemini_is_asked_without_a_seed(server: Any, make_judge: Any, ask: Any, reply: Any) -> None:
    message = 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'
    server.script = [reply(400, [error(message, code=400, status="INVALID_ARGUMENT")])]
    assert judged(make_judge(), ask).label is Label.SUPPORTED
    assert "seed" not in server.requests[-1]
    assert server.requests[-1]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("status", "body", "rule"),
    [
        # Gemini answers a wrong key with 400.
        (
            400,
            [error("API key not valid. Please pass a valid API key.", code=400, status="INVALID_ARGUMENT")],
            "auth",
        ),
        (
            401,
            error("Access denied due to invalid subscription key or wrong API endpoint.", code="401"),
            "auth",
        ),
        (
            401,
            {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}},
            "auth",
        ),
        (
            404,
            error("The API deployment for this resource does not exist.", code="DeploymentNotFound"),
            "not_found",
        ),
        (404, error('model "nope" not found, try pulling it first', type="not_found_error"), "not_found"),
        (404, {"object": "error", "message": "The model `nope` does not exist.", "code": 404}, "not_found"),
        # A LiteLLM proxy answers a wrong model with 400, and a wrong key too where it has no database.
        (
            400,
            error(
                "/chat/completions: Invalid model name passed in model=nope.", type="invalid_request_error"
            ),
            "not_found",
        ),
        (400, error("No connected db.", type="no_db_connection", code="400"), "auth"),
        (
            400,
            error(
                "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: "
                "OpenAIException - This model's maximum context length is 12032 tokens.",
                code="400",
            ),
            "context_length",
        ),
        (
            500,
            error("litellm.InternalServerError: InternalServerError: OpenAIException - Connection error."),
            "server_error",
        ),
        (500, "Internal Server Error", "server_error"),
        (
            400,
            error(
                "'max_tokens' or 'max_completion_tokens' is too large: 8200. This model's maximum context length is "
                "4096 tokens and your request has 3000 input tokens (8200 > 4096 - 3000).",
            ),
            "context_length",
        ),
        (
            400,
            error("The response was filtered due to the prompt triggering the content management policy."),
            "content_filter",
        ),
    ],
)
def test_what_an_endpoint_says_is_told_apart_whatever_its_status(
    server: Any, make_judge: Any, ask: Any, reply: Any, status: int, body: object, rule: str
) -> None:
    server.always = lambda _: reply(status, body)
    verdict = judged(make_judge(reply_format="text", retries=0), ask)
    assert verdict.rule == rule
    assert verdict.reason.startswith(f"{rule}: HTTP {status} from {server.url}/chat/completions: ")
    assert len(server.requests) == 1


GEMINI_429 = (
    "You exceeded your current quota, please check your plan and billing details. For more information on this error, "
    "head to: https://ai.google.dev/gemini-api/docs/rate-limits. \n* Quota exceeded for metric: generativelanguage."
    "googleapis.com/generate_content_paid_tier_input_token_count, limit: 4000000\nPlease retry in 47.5s."
)


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        # Gemini calls a limit of the minute a quota: that it names a wait tells it from an account without credit.
        ([error(GEMINI_429, code=429, status="RESOURCE_EXHAUSTED")], 47.5),
        ([error("Quota exceeded.", code=429, details=[{"retryDelay": "38s"}])], 38.0),
        (error('{\n "error": {"code": 429, "details": [{"retryDelay": "26s"}]}}', code=429), 26.0),
        (error("Rate limit reached on tokens per min (TPM): Limit 30000. Please try again in 644ms."), 0.644),
        (error("Rate limit reached on requests per day. Please try again in 1m12s."), 72.0),
    ],
)
def test_a_wait_that_only_the_body_asks_for_is_kept(
    server: Any, make_judge: Any, ask: Any, reply: Any, time_passes: Any, body: object, seconds: float
) -> None:
    server.script = [reply(429, body)]
    assert judged(make_judge(), ask).label is Label.SUPPORTED
    assert time_passes.slept == [pytest.approx(seconds)]


def test_an_account_without_credit_names_no_wait_and_is_not_asked_again(
    server: Any, make_judge: Any, ask: Any, reply: Any
) -> None:
    said = error("You exceeded your current quota, please check your plan and billing details.")
    server.always = lambda _: reply(429, said)
    assert judged(make_judge(), ask).rule == "quota"
    server.always = lambda _: reply(429, error("No.", code="insufficient_quota"), {"retry-after": "1"})
    assert judged(make_judge(), ask).rule == "quota"
    assert len(server.requests) == 2


def test_a_call_larger_than_a_minute_allows_is_split_and_not_repeated(
    server: Any, make_judge: Any, ask: Any, reply: Any, time_passes: Any
) -> None:
    whole = server.always
    message = (
        "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 30601. The input or output "
        "tokens must be reduced in order to run successfully."
    )

    def small_account(body: dict[str, Any]) -> Any:
        too_large = len(body["messages"][-1]["content"]) > 500
        return (
            reply(429, error(message, type="tokens", code="rate_limit_exceeded"))
            if too_large
            else whole(body)
        )

    server.always = small_account
    verdicts = make_judge().judge([ask(f"Claim {n}.", f"Claim {n}.") for n in range(8)])
    assert {verdict.label for verdict in verdicts} == {Label.SUPPORTED}
    assert time_passes.slept == []


def test_a_refused_parameter_is_no_wrong_model_whatever_else_the_message_says(
    server: Any, make_judge: Any, ask: Any, reply: Any
) -> None:
    server.script = [reply(400, error("Unsupported model for response_format json_schema: not found"))]
    assert judged(make_judge(), ask).label is Label.SUPPORTED


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: 8200. This model supports at most 4096 completion tokens, whereas you provided 8200.",
        "max_tokens: 8200 > 4096, which is the maximum allowed number of output tokens for the-model",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 4096]",
        "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 4096]",
    ],
)
def test_a_model_that_writes_less_than_a_call_asks_for_is_asked_about_fewer_claims(
    server: Any, make_judge: Any, ask: Any, reply: Any, message: str
) -> None:
    whole = server.always

    def short_writer(body: dict[str, Any]) -> Any:
        return reply(400, error(message)) if body["max_tokens"] > 4_096 else whole(body)

    server.always = short_writer
    verdicts = make_judge().judge([ask(f"Claim {n}.", f"Claim {n}.") for n in range(20)])
    assert {verdict.label for verdict in verdicts} == {Label.SUPPORTED}
    # 20 claims ask for 200 + 20 * 400 tokens, which is refused; 10 for 4,200, refused too; 5 for 2,200.
    assert [request["max_tokens"] for request in server.requests] == [
        8_200,
        4_200,
        2_200,
        2_200,
        4_200,
        2_200,
        2_200,
    ]
    assert server.requests[-1]["response_format"]["type"] == "json_schema"


def test_a_litellm_proxy_passes_on_the_refusal_of_the_server_behind_it(
    server: Any, make_judge: Any, ask: Any, reply: Any
) -> None:
    message = (
        "litellm.InternalServerError: InternalServerError: OpenAIException - 1 validation error:\n  {'type': "
        "'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' or "
        "'json_object'\", 'input': 'json_schema'}"
    )
    server.script = [reply(500, error(message, type="internal_server_error", code="500"))]
    judge = make_judge()
    assert judged(judge, ask).label is Label.SUPPORTED
    assert len(server.requests) == 2
    assert notes_of(judge)[1] == (
        "chat:tiny takes no strict JSON schema: it was asked by reply_format=json_object_schema"
    )


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (401, "Set the endpoint's key in OPENAI_API_KEY, and check what it may do."),
        (404, "Check the model's name and base_url."),
        (402, "Add credit to the account, or name another endpoint by base_url."),
        (429, "Set requests_per_minute or tokens_per_minute, or a smaller concurrency."),
        (503, "Look at the server's log, or try again later."),
    ],
)
def test_a_fault_says_what_to_do_about_it(
    server: Any, make_judge: Any, ask: Any, reply: Any, status: int, advice: str
) -> None:
    server.always = lambda _: reply(status, error("No."))
    assert judged(make_judge(), ask).reason.endswith(f"No. {advice}")


def test_an_endpoint_that_is_down_is_tried_once_a_call_after_three_lost_calls(
    server: Any, make_judge: Any, ask: Any, reply: Any
) -> None:
    whole, server.always = server.always, lambda _: reply(503, "")
    judge = make_judge(retries=2)
    verdicts = judge.judge([ask("A.", "A.", run_id=str(n)) for n in range(10)])
    assert {verdict.rule for verdict in verdicts} == {"server_error"}
    # Three calls of three tries, then seven of one.
    assert len(server.requests) == 3 * 3 + 7
    # Once it answers again, faults that pass are waited for again.
    server.always = whole
    assert judged(judge, ask).label is Label.SUPPORTED
    server.script = [reply(503, ""), reply(503, "")]
    assert judged(judge, ask).label is Label.SUPPORTED


def test_a_call_that_was_refused_did_send_text_and_the_note_does_not_deny_it(
    server: Any, make_judge: Any, ask: Any, reply: Any
) -> None:
    server.always = lambda _: reply(401, error("No."))
    judge = make_judge()
    judged(judge, ask)
    host = server.url.split("/")[2]
    assert notes_of(judge) == (f"chat:tiny asked {host} 1 times and got no answer",)
