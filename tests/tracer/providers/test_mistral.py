"""Mistral: reference chunks follow the text they back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from citespan.tracer import Passage
from citespan.tracer.providers import ProviderAnswer

Read = Callable[..., ProviderAnswer]
Covered = Callable[[ProviderAnswer], list[tuple[str, str | None]]]

CONTENT: list[dict[str, Any]] = [
    {"type": "text", "text": "Green tea needs 80 degrees"},
    {"type": "reference", "reference_ids": [0]},
    {"type": "text", "text": ". Black tea needs 95 degrees"},
    {"type": "reference", "reference_ids": [1, 5, -1]},
    {"type": "text", "text": "."},
]
RESPONSE: dict[str, Any] = {
    "id": "1",
    "object": "chat.completion",
    "model": "mistral",
    "created": 1,
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": CONTENT}}],
}
PASSAGES = (Passage("kb-1", "Green: 80."), Passage("kb-2", "Black: 95."))
EXPECTED = [
    ("kb-1", "Green tea needs 80 degrees"),
    ("kb-2", "Black tea needs 95 degrees"),
    ("reference_ids:5", "Black tea needs 95 degrees"),
    ("reference_ids:-1", "Black tea needs 95 degrees"),
]


def as_model(name: str, payload: object) -> object:
    return getattr(pytest.importorskip("mistralai.client.models"), name).model_validate(payload)


@pytest.mark.parametrize("is_model", [False, True])
def test_a_reference_backs_the_text_before_it(read: Read, covered: Covered, is_model: bool) -> None:
    answer = read(as_model("ChatCompletionResponse", RESPONSE) if is_model else RESPONSE, *PASSAGES)
    assert answer.provider == "mistral"
    assert answer.text == "Green tea needs 80 degrees. Black tea needs 95 degrees."
    assert covered(answer) == EXPECTED


def test_names_that_the_app_gave_count_before_positions(read: Read, covered: Covered) -> None:
    named = (Passage("kb-2", "Black: 95.", label="1"), Passage("kb-1", "Green: 80.", label="0"))
    assert covered(read(RESPONSE, *named))[:2] == EXPECTED[:2]


def test_a_stream_s_texts_are_joined_before_a_reference_is_read(read: Read, covered: Covered) -> None:
    pieces: list[object] = [
        "Green tea ",
        "needs 80 degrees",
        [CONTENT[1]],
        *([chunk] for chunk in CONTENT[2:]),
    ]
    chunks = [
        {
            "id": "1",
            "model": "mistral",
            "choices": [{"index": 0, "finish_reason": None, "delta": {"content": piece}}],
        }
        for piece in pieces
    ]
    models = [as_model("CompletionEvent", {"data": chunk}) for chunk in chunks]
    for stream in (chunks, models):
        assert covered(read(stream, *PASSAGES)) == EXPECTED


def test_a_conversation_s_tools_carry_pages(read: Read, covered: Covered) -> None:
    conversation = {
        "object": "conversation.response",
        "conversation_id": "1",
        "usage": {},
        "outputs": [
            {"type": "tool.execution", "name": "web_search", "arguments": "{}"},
            {
                "type": "message.output",
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Tea is hot."},
                    {"type": "tool_reference", "tool": "web_search", "title": "One", "url": "https://w/1"},
                ],
            },
        ],
    }
    for response in (conversation, as_model("ConversationResponse", conversation)):
        assert covered(read(response)) == [("https://w/1", "Tea is hot.")]
        assert read(response).passages == (Passage("https://w/1", None, title="One", url="https://w/1"),)
