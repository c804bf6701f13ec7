"""Anthropic: each text block cites for its own text; documents and search results are counted apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from citespan.tracer import Passage
from citespan.tracer.providers import ProviderAnswer

Read = Callable[..., ProviderAnswer]
Covered = Callable[[ProviderAnswer], list[tuple[str, str | None]]]

GREEN = Passage("kb-1", "Green tea is steeped at 80 degrees.", title="Tea")
BLACK = Passage("kb-2", "Black tea is steeped at 95 degrees.", url="https://kb.example/black")


def char_location(index: int, quote: str) -> dict[str, Any]:
    return {
        "type": "char_location",
        "cited_text": quote,
        "document_index": index,
        "document_title": "Tea",
        "start_char_index": 0,
        "end_char_index": len(quote),
        "file_id": None,
    }


def search_result(index: int, source: str, quote: str) -> dict[str, Any]:
    return {
        "type": "search_result_location",
        "cited_text": quote,
        "search_result_index": index,
        "source": source,
        "title": "Black",
        "start_block_index": 0,
        "end_block_index": 1,
    }


MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
    "content": [
        {"type": "text", "text": "According to the guide, ", "citations": None},
        {
            "type": "text",
            "text": "green tea needs 80 degrees",
            "citations": [char_location(0, "Green tea is steeped at 80 degrees.")],
        },
        {"type": "text", "text": " and ", "citations": None},
        {
            "type": "text",
            "text": "black tea 95",
            "citations": [
                {
                    "type": "page_location",
                    "cited_text": "Black tea is steeped at 95",
                    "document_index": 1,
                    "document_title": "PDF",
                    "start_page_number": 4,
                    "end_page_number": 5,
                    "file_id": None,
                },
                search_result(0, "https://kb.example/black", "Black tea is steeped"),
            ],
        },
        {"type": "text", "text": ".", "citations": None},
    ],
}


def as_model(payload: object) -> object:
    return pytest.importorskip("anthropic.types").Message.model_validate(payload)


@pytest.mark.parametrize("is_model", [False, True])
def test_a_block_s_citations_cover_the_block(read: Read, covered: Covered, is_model: bool) -> None:
    answer = read(as_model(MESSAGE) if is_model else MESSAGE, GREEN, BLACK)
    assert answer.provider == "anthropic"
    assert answer.text == "According to the guide, green tea needs 80 degrees and black tea 95."
    # The search result is known by its source, and the second document is kb-2 too: two quotes, two citations.
    assert covered(answer) == [
        ("kb-1", "green tea needs 80 degrees"),
        ("kb-2", "black tea 95"),
        ("kb-2", "black tea 95"),
    ]
    assert answer.citations[0].quote == "Green tea is steeped at 80 degrees."
    assert answer.passages == ()


def test_without_the_request_what_is_quoted_is_the_passage(read: Read) -> None:
    answer = read(MESSAGE)
    assert [(p.id, p.text, p.is_cut) for p in answer.passages] == [
        ("document_index:0", "Green tea is steeped at 80 degrees.", True),
        ("document_index:1", "Black tea is steeped at 95", True),
        ("https://kb.example/black", "Black tea is steeped", True),
    ]


@pytest.mark.parametrize("index", [2, -1])
def test_an_index_outside_the_request_dangles(read: Read, covered: Covered, index: int) -> None:
    block = {
        "type": "text",
        "text": "Tea.",
        "citations": [char_location(index, "Green tea is steeped at 80 degrees.")],
    }
    answer = read({**MESSAGE, "content": [block]}, GREEN, BLACK)
    assert covered(answer) == [(f"document_index:{index}", "Tea.")]


def test_where_documents_and_results_are_mixed_the_quote_tells_which_is_meant(
    read: Read, covered: Covered
) -> None:
    """Search result 0 of the request is the second of the app's passages."""
    block = {
        "type": "text",
        "text": "Tea.",
        "citations": [search_result(0, "black-tea", "steeped at 95 degrees")],
    }
    assert covered(read({**MESSAGE, "content": [block]}, GREEN, BLACK)) == [("kb-2", "Tea.")]


def test_web_search_carries_pages_and_cites_them(read: Read, covered: Covered) -> None:
    content = [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "tea"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "s",
            "content": [
                {
                    "type": "web_search_result",
                    "url": "https://w/1",
                    "title": "One",
                    "encrypted_content": "x",
                    "page_age": None,
                }
            ],
        },
        {
            "type": "text",
            "text": "Tea is hot.",
            "citations": [
                {
                    "type": "web_search_result_location",
                    "url": "https://w/1",
                    "title": "One",
                    "encrypted_index": "y",
                    "cited_text": "Tea is served hot",
                }
            ],
        },
    ]
    for response in ({**MESSAGE, "content": content}, as_model({**MESSAGE, "content": content})):
        answer = read(response)
        assert covered(answer) == [("https://w/1", "Tea is hot.")]
        assert answer.passages == (
            Passage("https://w/1", "Tea is served hot", title="One", url="https://w/1", is_cut=True),
        )


def test_a_stream_s_citations_may_come_in_the_middle_of_a_block(read: Read, covered: Covered) -> None:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**MESSAGE, "content": []}}]
    for n, block in enumerate(MESSAGE["content"]):
        events.append(
            {
                "type": "content_block_start",
                "index": n,
                "content_block": {"type": "text", "text": "", "citations": None},
            }
        )
        half = len(block["text"]) // 2
        deltas = [{"type": "text_delta", "text": block["text"][:half]}]
        deltas += [{"type": "citations_delta", "citation": c} for c in block["citations"] or []]
        deltas += [{"type": "text_delta", "text": block["text"][half:]}]
        events += [{"type": "content_block_delta", "index": n, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": n})
    adapter = pytest.importorskip("pydantic").TypeAdapter(
        pytest.importorskip("anthropic.types").RawMessageStreamEvent
    )
    for stream in (events, [adapter.validate_python(event) for event in events]):
        assert covered(read(stream, GREEN, BLACK)) == covered(read(MESSAGE, GREEN, BLACK))
