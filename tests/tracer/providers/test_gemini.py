"""Gemini: offsets in UTF-8 bytes, absent means 0, indices never wrap round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citespan.tracer import Passage
from citespan.tracer.providers import ProviderAnswer, read_answer

Read = Callable[..., ProviderAnswer]
Covered = Callable[[ProviderAnswer], list[tuple[str, str | None]]]

TEXT = "Grüner Tee braucht 80 °C. Schwarzer Tee braucht 95 °C."
CHUNKS = [
    {"web": {"title": "tea", "uri": "https://kb.example/tea"}},
    {"retrievedContext": {"text": "Black tea: 95.", "title": "black.pdf", "uri": "gs://kb/black.pdf"}},
]


def response(*supports: dict[str, Any], parts: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    metadata = {"groundingChunks": CHUNKS, "groundingSupports": list(supports)}
    content = {"role": "model", "parts": parts or [{"text": TEXT}]}
    return {"candidates": [{"content": content, "groundingMetadata": metadata, "finishReason": "STOP"}]}


def support(start: int | None, end: int, *indices: int, text: str | None = None) -> dict[str, Any]:
    segment: dict[str, Any] = {"endIndex": end}
    if start is not None:
        segment["startIndex"] = start
    if text is not None:
        segment["text"] = text
    return {"segment": segment, "groundingChunkIndices": list(indices)}


@pytest.mark.parametrize("is_model", [False, True])
def test_bytes_become_code_points(read: Read, covered: Covered, is_model: bool) -> None:
    # ü and ° take two bytes each: the first sentence is 25 code points and 27 bytes, the second ends at byte 57.
    payload: object = response(
        support(None, 27, 0, text="Grüner Tee braucht 80 °C."),
        support(28, 57, 1, 0, text="Schwarzer Tee braucht 95 °C."),
    )
    if is_model:
        types = pytest.importorskip("google.genai.types")
        payload = types.GenerateContentResponse.model_validate(payload)
    answer = read(payload)
    assert answer.provider == "gemini"
    assert covered(answer) == [
        ("https://kb.example/tea", "Grüner Tee braucht 80 °C."),
        ("gs://kb/black.pdf", "Schwarzer Tee braucht 95 °C."),
        ("https://kb.example/tea", "Schwarzer Tee braucht 95 °C."),
    ]
    assert answer.citations[1].start == 26
    assert answer.passages == (
        Passage("https://kb.example/tea", None, title="tea", url="https://kb.example/tea"),
        Passage("gs://kb/black.pdf", "Black tea: 95.", title="black.pdf", url="gs://kb/black.pdf"),
    )


def test_indices_outside_the_chunks_dangle(read: Read, covered: Covered) -> None:
    answer = read(response(support(0, 27, 0, 4, -1)))
    assert [passage_id for passage_id, _ in covered(answer)] == [
        "https://kb.example/tea",
        "groundingChunkIndices:4",
        "groundingChunkIndices:-1",
    ]


def test_where_offsets_and_text_disagree_the_text_counts(read: Read, covered: Covered) -> None:
    """Code points where bytes belong, as some gateways send them."""
    answer = read(response(support(26, 54, 1, text="Schwarzer Tee braucht 95 °C.")))
    assert covered(answer) == [("gs://kb/black.pdf", "Schwarzer Tee braucht 95 °C.")]


def test_offsets_count_from_the_start_of_their_part_and_thoughts_are_no_answer(
    read: Read, covered: Covered
) -> None:
    parts = [{"text": "thinking", "thought": True}, {"text": "Grüner Tee. "}, {"text": "95 °C."}]
    entry = support(None, 7, 0)
    entry["segment"]["partIndex"] = 2
    answer = read(response(entry, parts=parts))
    assert answer.text == "Grüner Tee. 95 °C."
    assert covered(answer) == [("https://kb.example/tea", "95 °C.")]


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (10, 10), (50, 999), (30, 20)])
def test_a_segment_outside_the_text_is_none(read: Read, covered: Covered, start: int, end: int) -> None:
    assert covered(read(response(support(start, end, 0)))) == [("https://kb.example/tea", None)]


def test_a_stream_s_grounding_counts_from_the_start_of_the_whole(read: Read, covered: Covered) -> None:
    chunks = [
        {"candidates": [{"content": {"parts": [{"text": TEXT[:8]}]}}]},
        {"candidates": [{"content": {"parts": [{"text": TEXT[8:40]}]}}]},
        response(support(28, 57, 1, text="Schwarzer Tee braucht 95 °C."), parts=[{"text": TEXT[40:]}]),
    ]
    types = pytest.importorskip("google.genai.types")
    for stream in (chunks, [types.GenerateContentResponse.model_validate(chunk) for chunk in chunks]):
        assert covered(read(stream)) == [("gs://kb/black.pdf", "Schwarzer Tee braucht 95 °C.")]


@given(st.text(), st.integers(0, 200), st.integers(0, 200))
def test_any_offsets_give_a_range_of_the_text_or_none(text: str, start: int, end: int) -> None:
    answer = read_answer(response(support(start, end, 0), parts=[{"text": text}]))
    assert answer is not None
    citation = answer.citations[0]
    if citation.start is not None and citation.end is not None:
        assert 0 <= citation.start < citation.end <= len(answer.text)
        assert answer.text[citation.start : citation.end].strip()
