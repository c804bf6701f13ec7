"""Cohere v2: code points of the text, ids of the request's documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from citespan.tracer import Passage
from citespan.tracer.providers import ProviderAnswer

Read = Callable[..., ProviderAnswer]
Covered = Callable[[ProviderAnswer], list[tuple[str, str | None]]]

TEXT = "Grüner Tee braucht 80 °C. Schwarzer 95 °C."


def citation(start: int, end: int, text: str, *ids: str, kind: str = "TEXT_CONTENT") -> dict[str, Any]:
    sources = [
        {"type": "document", "id": i, "document": {"id": i, "text": f"text of {i}", "title": "T"}}
        for i in ids
    ]
    return {"start": start, "end": end, "text": text, "sources": sources, "content_index": 0, "type": kind}


RESPONSE: dict[str, Any] = {
    "id": "1",
    "finish_reason": "COMPLETE",
    "message": {
        "role": "assistant",
        "content": [{"type": "text", "text": TEXT}],
        "citations": [
            # "80 °C" is code points 19 to 24, "95 °C" 36 to 41.
            citation(19, 24, "80 °C", "doc:0"),
            citation(36, 41, "95 °C", "doc:1", "doc:0"),
            citation(0, 5, "think", "doc:1", kind="THINKING_CONTENT"),
        ],
    },
}


@pytest.mark.parametrize("is_model", [False, True])
def test_a_citation_names_every_source(read: Read, covered: Covered, is_model: bool) -> None:
    response: object = RESPONSE
    if is_model:
        response = pytest.importorskip("cohere").V2ChatResponse.model_validate(RESPONSE)
    answer = read(response)
    assert answer.provider == "cohere"
    assert covered(answer) == [("doc:0", "80 °C"), ("doc:1", "95 °C"), ("doc:0", "95 °C")]
    assert answer.passages == (
        Passage("doc:0", "text of doc:0", title="T"),
        Passage("doc:1", "text of doc:1", title="T"),
    )


def test_documents_of_the_request_are_known_by_their_id(read: Read, covered: Covered) -> None:
    answer = read(RESPONSE, Passage("kb-1", "80", label="doc:0"), Passage("doc:1", "95"))
    assert covered(answer) == [("kb-1", "80 °C"), ("doc:1", "95 °C"), ("kb-1", "95 °C")]
    assert answer.passages == ()


def test_where_offsets_and_text_disagree_the_text_counts(read: Read, covered: Covered) -> None:
    """Offsets counted in bytes, as some proxies make them: 80 °C would begin at byte 20."""
    message = {**RESPONSE["message"], "citations": [citation(20, 26, "80 °C", "doc:0")]}
    assert covered(read({"message": message})) == [("doc:0", "80 °C")]


@pytest.mark.parametrize(("start", "end"), [(-5, 3), (40, 400), (7, 7)])
def test_a_range_outside_the_text_is_none(read: Read, covered: Covered, start: int, end: int) -> None:
    message = {**RESPONSE["message"], "citations": [citation(start, end, "", "doc:0")]}
    assert covered(read({"message": message})) == [("doc:0", None)]


def test_a_stream_is_deltas_and_citations_as_they_start(read: Read, covered: Covered) -> None:
    events: list[dict[str, Any]] = [
        {
            "type": "content-start",
            "index": 0,
            "delta": {"message": {"content": {"type": "text", "text": ""}}},
        },
        *(
            {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": piece}}}}
            for piece in (TEXT[:21], TEXT[21:])
        ),
        *(
            {"type": "citation-start", "index": n, "delta": {"message": {"citations": entry}}}
            for n, entry in enumerate(RESPONSE["message"]["citations"])
        ),
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
    ]
    assert covered(read(events)) == covered(read(RESPONSE))
    cohere = pytest.importorskip("cohere")
    classes = {
        "content-delta": cohere.ContentDeltaV2ChatStreamResponse,
        "citation-start": cohere.CitationStartV2ChatStreamResponse,
    }
    models = [classes[event["type"]].model_validate(event) for event in events if event["type"] in classes]
    assert covered(read(models)) == covered(read(RESPONSE))
