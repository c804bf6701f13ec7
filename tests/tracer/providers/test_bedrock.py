"""Bedrock: boto3 answers with dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from citespan.tracer import Passage
from citespan.tracer.providers import ProviderAnswer

Read = Callable[..., ProviderAnswer]
Covered = Callable[[ProviderAnswer], list[tuple[str, str | None]]]


def reference(text: str, uri: str, chunk: str | None = None) -> dict[str, Any]:
    metadata = {} if chunk is None else {"x-amz-bedrock-kb-chunk-id": chunk}
    return {
        "content": {"text": text, "type": "TEXT"},
        "location": {"type": "S3", "s3Location": {"uri": uri}},
        "metadata": metadata,
    }


def part(start: int, end: int, text: str, *references: dict[str, Any]) -> dict[str, Any]:
    return {
        "generatedResponsePart": {"textResponsePart": {"span": {"start": start, "end": end}, "text": text}},
        "retrievedReferences": list(references),
    }


GREEN = reference("Green tea: 80.", "s3://kb/tea.md", "chunk-1")
BLACK = reference("Black tea: 95.", "s3://kb/black.md")
TEXT = "Green tea needs 80 degrees. Black tea needs 95 degrees."
# The API's end is the offset of the last character itself: the first sentence is 27 characters, 0 to 26.
GENERATED: dict[str, Any] = {
    "output": {"text": TEXT},
    "citations": [
        part(0, 26, "Green tea needs 80 degrees.", GREEN),
        part(28, 54, "Black tea needs 95 degrees.", BLACK, GREEN),
        part(0, 4, "Green", reference("no source", "")),
    ],
}


def test_each_part_of_the_text_has_its_references(read: Read, covered: Covered) -> None:
    answer = read(GENERATED)
    assert answer.provider == "bedrock"
    assert covered(answer)[:3] == [
        ("chunk-1", "Green tea needs 80 degrees."),
        ("s3://kb/black.md", "Black tea needs 95 degrees."),
        ("chunk-1", "Black tea needs 95 degrees."),
    ]
    assert answer.passages[:2] == (
        Passage("chunk-1", "Green tea: 80.", url="s3://kb/tea.md"),
        Passage("s3://kb/black.md", "Black tea: 95.", url="s3://kb/black.md"),
    )


def test_a_span_counts_where_the_text_stands_twice(read: Read, covered: Covered) -> None:
    payload = {"output": {"text": "Yes. Yes."}, "citations": [part(5, 8, "Yes.", GREEN)]}
    answer = read(payload)
    assert (answer.citations[0].start, answer.citations[0].end) == (5, 9)


@pytest.mark.parametrize(("start", "end"), [(-3, 2), (40, 400)])
def test_a_span_outside_the_text_is_none(read: Read, covered: Covered, start: int, end: int) -> None:
    payload = {"output": {"text": TEXT}, "citations": [part(start, end, "", GREEN)]}
    assert covered(read(payload)) == [("chunk-1", None)]


def converse(location: dict[str, Any], **citation: object) -> dict[str, Any]:
    cited = {
        "content": [{"text": "Green tea needs 80 degrees."}],
        "citations": [
            {"title": "Tea", "sourceContent": [{"text": "Green tea: 80."}], "location": location, **citation}
        ],
    }
    content = [{"text": "Well. "}, {"citationsContent": cited}, {"text": " Enjoy."}]
    return {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "end_turn"}


def test_converse_keeps_cited_text_and_plain_text_together(read: Read, covered: Covered) -> None:
    answer = read(
        converse({"documentChar": {"documentIndex": 0, "start": 0, "end": 14}}),
        Passage("kb-1", "Green tea: 80."),
    )
    assert answer.text == "Well. Green tea needs 80 degrees. Enjoy."
    assert covered(answer) == [("kb-1", "Green tea needs 80 degrees.")]
    assert answer.citations[0].quote == "Green tea: 80."


@pytest.mark.parametrize(
    ("location", "citation", "passage_id"),
    [
        ({"documentPage": {"documentIndex": 1, "start": 1, "end": 2}}, {}, "kb-2"),
        ({"documentChunk": {"documentIndex": 7, "start": 0, "end": 1}}, {}, "documentIndex:7"),
        ({"documentChunk": {"documentIndex": -1, "start": 0, "end": 1}}, {}, "documentIndex:-1"),
        (
            {"searchResultLocation": {"searchResultIndex": 0, "start": 0, "end": 1}},
            {"source": "https://kb/2"},
            "kb-2",
        ),
        ({"web": {"url": "https://w", "domain": "w"}}, {}, "https://w"),
    ],
)
def test_converse_s_locations_name_passages(
    read: Read, covered: Covered, location: dict[str, Any], citation: dict[str, Any], passage_id: str
) -> None:
    answer = read(
        converse(location, **citation), Passage("kb-1", None), Passage("kb-2", None, url="https://kb/2")
    )
    assert covered(answer) == [(passage_id, "Green tea needs 80 degrees.")]


def test_converse_s_stream_is_deltas_of_blocks(read: Read, covered: Covered) -> None:
    whole = converse({"documentChar": {"documentIndex": 0, "start": 0, "end": 14}})
    citation = whole["output"]["message"]["content"][1]["citationsContent"]["citations"][0]
    deltas = [
        (0, {"text": "Well. "}),
        (1, {"text": "Green tea "}),
        (1, {"citation": citation}),
        (1, {"text": "needs 80 degrees."}),
        (2, {"text": " Enjoy."}),
    ]
    events = [{"messageStart": {"role": "assistant"}}]
    events += [{"contentBlockDelta": {"contentBlockIndex": n, "delta": delta}} for n, delta in deltas]
    assert (
        covered(read(events)) == covered(read(whole)) == [("documentIndex:0", "Green tea needs 80 degrees.")]
    )


def test_retrieve_and_generate_s_stream_is_text_and_citations(read: Read, covered: Covered) -> None:
    events = [
        {"output": {"text": TEXT[:20]}},
        {"citation": {"citation": GENERATED["citations"][0]}},
        {"output": {"text": TEXT[20:]}},
        {"citation": GENERATED["citations"][1]},
    ]
    assert covered(read(events)) == covered(read(GENERATED))[:3]
