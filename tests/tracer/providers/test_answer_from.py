"""`answer_from`: a provider's response becomes the answer, citations and passages of the run."""

from __future__ import annotations

from typing import Any

import pytest

from citespan import tracer
from citespan.tracer import Citation, Passage
from citespan.tracer.testing import RecordedSpans, record_in_memory

CHAT: dict[str, Any] = {
    "choices": [
        {
            "message": {
                "content": "80 degrees. Enjoy!",
                "annotations": [
                    {
                        "type": "url_citation",
                        "url_citation": {
                            "start_index": 0,
                            "end_index": 11,
                            "url": "https://kb/tea",
                            "title": "Tea",
                        },
                    }
                ],
            }
        }
    ]
}
CLAUDE: dict[str, Any] = {
    "type": "message",
    "role": "assistant",
    "content": [
        {
            "type": "text",
            "text": "80 degrees.",
            "citations": [
                {"type": "char_location", "document_index": 0, "cited_text": "80", "document_title": None}
            ],
        }
    ],
}


@pytest.fixture
def recorded() -> Any:
    with record_in_memory() as spans:
        yield spans


def test_passages_that_the_response_carries_are_recorded_with_it(recorded: RecordedSpans) -> None:
    with tracer.run("q") as run:
        run.answer_from(CHAT)
    attributes = dict(recorded.named("run").attributes or {})
    assert attributes["output.value"] == "80 degrees. Enjoy!"
    record = recorded.run()
    assert [(p.id, p.title, p.url) for p in record.passages] == [("https://kb/tea", "Tea", "https://kb/tea")]
    assert record.citations == (Citation("https://kb/tea", start=0, end=11, origin="openai"),)
    # The response names the page and has nothing of its text.
    assert record.passages[0].sha256 is None
    assert record.cut == ("passage:https://kb/tea",)


def test_indices_point_at_the_passages_shown(recorded: RecordedSpans) -> None:
    with tracer.run("q") as run:
        run.retrieved([{"id": "first", "text": "95"}, {"id": "second", "text": "80"}])
        run.shown([{"id": "second", "text": "80"}])
        tracer.answer_from(CLAUDE)
    assert recorded.run().citations == (Citation("second", start=0, end=11, origin="anthropic", quote="80"),)
    assert [p.id for p in recorded.run().passages] == ["second"]


def test_ranges_follow_the_words_where_the_app_changed_the_text(recorded: RecordedSpans) -> None:
    with tracer.run("q") as run:
        run.answer_from(CHAT, text="Answer: 80 degrees. [Tea]")
    # The words cited stand once, eight code points further on.
    assert recorded.run().citations[0].start == 8
    assert recorded.run().citations[0].end == 19


def test_a_range_whose_words_are_gone_is_none(recorded: RecordedSpans) -> None:
    with tracer.run("q") as run:
        run.answer_from(CHAT, text="Eighty.")
    assert recorded.run().citations == (Citation("https://kb/tea", origin="openai"),)


def test_an_id_that_the_run_had_to_change_is_changed_in_the_citations_too(recorded: RecordedSpans) -> None:
    with tracer.run("q") as run:
        run.retrieved([Passage("https://kb/other", "one")])
        response = {"output": {"text": "a"}, "citations": [_part("https://kb/x", "two")]}
        run.retrieved([Passage("https://kb/x", "one and another", label="3")])
        run.answer_from(response)
    assert {c.passage_id for c in recorded.run().citations} <= {p.id for p in recorded.run().passages}


def test_a_response_of_no_known_shape_is_an_answer_only_with_its_text(
    recorded: RecordedSpans, faults_logged: pytest.LogCaptureFixture
) -> None:
    with tracer.run("q") as run:
        run.answer_from(object(), text="the text")
    assert dict(recorded.named("run").attributes or {})["output.value"] == "the text"
    assert "is no provider's response that citespan knows" in faults_logged.text


def test_redaction_holds_for_what_a_response_carries() -> None:
    redaction = tracer.Redaction(passages=tracer.Hide())
    with record_in_memory(redaction=redaction) as recorded, tracer.run("q") as run:
        run.answer_from(CLAUDE)
    assert "80" not in str(dict(recorded.named("carried by the response").attributes or {}))
    assert recorded.run().citations[0].quote == "__REDACTED__"


def _part(uri: str, text: str) -> dict[str, Any]:
    return {
        "generatedResponsePart": {"textResponsePart": {"span": {"start": 0, "end": 0}, "text": "a"}},
        "retrievedReferences": [
            {"content": {"text": text}, "location": {"webLocation": {"url": uri}}, "metadata": {}}
        ],
    }
