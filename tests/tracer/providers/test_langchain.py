"""LangChain's messages keep citations whatever the provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from citespan.tracer import Passage
from citespan.tracer.providers import ProviderAnswer

Read = Callable[..., ProviderAnswer]
Covered = Callable[[ProviderAnswer], list[tuple[str, str | None]]]

ANNOTATED: dict[str, Any] = {
    "content": [
        {"type": "text", "text": "Well. "},
        {
            "type": "text",
            "text": "Green tea needs 80 degrees.",
            "annotations": [
                {
                    "type": "citation",
                    "url": "https://kb/tea",
                    "title": "Tea",
                    "start_index": 0,
                    "end_index": 27,
                    "cited_text": "80 degrees Celsius",
                }
            ],
        },
    ]
}
CITED: dict[str, Any] = {
    "content": [
        {
            "type": "text",
            "text": "Green tea needs 80 degrees.",
            "citations": [{"type": "char_location", "document_index": 0, "cited_text": "Green: 80."}],
        }
    ]
}
GROUNDED: dict[str, Any] = {
    "content": "Green tea needs 80 degrees.",
    "additional_kwargs": {"citations": ["https://kb/tea"]},
    "response_metadata": {
        "grounding_metadata": {
            "grounding_chunks": [{"web": {"uri": "https://kb/tea", "title": "Tea"}}],
            "grounding_supports": [{"segment": {"end_index": 27}, "grounding_chunk_indices": [0]}],
        }
    },
}


@pytest.mark.parametrize("is_model", [False, True])
@pytest.mark.parametrize(
    ("message", "passage_id"), [(ANNOTATED, "https://kb/tea"), (CITED, "kb-1"), (GROUNDED, "https://kb/tea")]
)
def test_a_message_s_citations_are_read(
    read: Read, covered: Covered, message: dict[str, Any], passage_id: str, is_model: bool
) -> None:
    response: object = {"type": "ai", **message}
    if is_model:
        response = pytest.importorskip("langchain_core.messages").AIMessage(**message)
    passage = Passage("kb-1", "Green: 80.")
    assert covered(read({"type": "ai", "data": message}, passage)) == covered(read(response, passage))
    answer = read(response, passage)
    assert answer.text.endswith("Green tea needs 80 degrees.")
    assert covered(answer) == [(passage_id, "Green tea needs 80 degrees.")]


def test_the_file_searches_in_a_message_give_the_passages(read: Read, covered: Covered) -> None:
    search = {"type": "file_search_call", "results": [{"file_id": "file-1", "text": "Green: 80."}]}
    annotation = {"type": "file_citation", "file_id": "file-1", "file_index": 27}  # OpenAI calls it `index`
    written = {
        "type": "text",
        "text": "Green tea needs 80 degrees. Enjoy.",
        "annotations": [annotation],
    }
    answer = read({"type": "ai", "content": [search, written]})
    assert covered(answer) == [("file-1", "Green tea needs 80 degrees.")]
    assert [(passage.id, passage.text) for passage in answer.passages] == [("file-1", "Green: 80.")]
