"""OpenAI, Azure and Perplexity: from dicts, from the SDK's own models, and from streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from citespan.tracer import Passage
from citespan.tracer.providers import ProviderAnswer, read_answer

Read = Callable[..., ProviderAnswer]
Covered = Callable[[ProviderAnswer], list[tuple[str, str | None]]]

TEXT = "Green tea needs water at about 80 degrees Celsius. See the brewing guide."
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "created_at": 1.0,
    "model": "gpt-4.1",
    "object": "response",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {
            "id": "fs_1",
            "type": "file_search_call",
            "status": "completed",
            "queries": ["green tea temperature"],
            "results": [
                {"file_id": "file-abc", "filename": "tea.md", "score": 0.9, "text": "Green tea: 80 degrees."},
                {"file_id": "file-abc", "filename": "tea.md", "score": 0.8, "text": "Two minutes."},
            ],
        },
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [
                {
                    "type": "output_text",
                    "text": TEXT,
                    "annotations": [
                        # The stop of the first sentence is code point 49.
                        {"type": "file_citation", "file_id": "file-abc", "filename": "tea.md", "index": 49},
                        {
                            "type": "url_citation",
                            "start_index": 51,
                            "end_index": 73,
                            "url": "https://kb.example/tea",
                            "title": "Brewing guide",
                        },
                    ],
                },
                {
                    "type": "output_text",
                    "text": " Enjoy.",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "start_index": 1,
                            "end_index": 7,
                            "url": "https://e",
                            "title": "E",
                        }
                    ],
                },
            ],
        },
    ],
}


def chat(content: str, message: Mapping[str, object], **extra: object) -> dict[str, Any]:
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": content, **message},
            }
        ],
        **extra,
    }


SEARCH = chat(
    TEXT,
    {
        "annotations": [
            {
                "type": "url_citation",
                "url_citation": {
                    "start_index": 51,
                    "end_index": 73,
                    "url": "https://kb.example/tea",
                    "title": "T",
                },
            }
        ]
    },
)
AZURE = chat(
    "Green tea needs 80 degrees [doc1]. Black tea needs 95 degrees [doc2][doc1].",
    {
        "context": {
            "citations": [
                {
                    "content": "Green: 80.",
                    "title": "Tea",
                    "url": "https://a/tea",
                    "filepath": "tea.md",
                    "chunk_id": "0",
                },
                {
                    "content": "Black: 95.",
                    "title": "Black",
                    "url": None,
                    "filepath": "black.md",
                    "chunk_id": "0",
                },
            ]
        }
    },
)
PERPLEXITY = chat(
    "Green tea needs 80 degrees[1]. Black tea needs 95[2].",
    {},
    citations=["https://kb/tea", "https://kb/black"],
    search_results=[{"title": "Tea", "url": "https://kb/tea", "snippet": "80 degrees"}],
)


def as_model(module: str, name: str, payload: object) -> object:
    """Return the payload as the SDK's own model, as parsing a reply of the server makes it."""
    models = pytest.importorskip(module)
    return getattr(models, name).model_validate(payload)


@pytest.mark.parametrize("is_model", [False, True])
def test_responses_annotations_cover_their_own_part(read: Read, covered: Covered, is_model: bool) -> None:
    answer = read(as_model("openai.types.responses", "Response", RESPONSE) if is_model else RESPONSE)
    assert answer.provider == "openai"
    assert answer.text == TEXT + " Enjoy."
    assert covered(answer) == [
        ("file-abc", "Green tea needs water at about 80 degrees Celsius"),
        ("https://kb.example/tea", "See the brewing guide."),
        ("https://e", "Enjoy."),
    ]
    # The two pieces found of one file are one passage, for a citation names the file.
    assert answer.passages[0] == Passage("file-abc", "Green tea: 80 degrees.\n\nTwo minutes.", title="tea.md")
    assert answer.passages[1].text is None


@pytest.mark.parametrize("is_model", [False, True])
def test_a_chat_s_url_citations_have_ranges(read: Read, covered: Covered, is_model: bool) -> None:
    answer = read(as_model("openai.types.chat", "ChatCompletion", SEARCH) if is_model else SEARCH)
    assert covered(answer) == [("https://kb.example/tea", "See the brewing guide.")]


@pytest.mark.parametrize("is_model", [False, True])
def test_azure_s_context_is_passages_under_the_labels_in_the_text(read: Read, is_model: bool) -> None:
    answer = read(as_model("openai.types.chat", "ChatCompletion", AZURE) if is_model else AZURE)
    assert answer.provider == "azure"
    assert answer.citations == ()
    assert [(p.id, p.label, p.text) for p in answer.passages] == [
        ("tea.md#0", "doc1", "Green: 80."),
        ("black.md#0", "doc2", "Black: 95."),
    ]


@pytest.mark.parametrize("is_model", [False, True])
def test_perplexity_s_list_is_numbered_from_one(read: Read, is_model: bool) -> None:
    answer = read(as_model("openai.types.chat", "ChatCompletion", PERPLEXITY) if is_model else PERPLEXITY)
    assert answer.provider == "perplexity"
    assert [(p.url, p.label, p.text, p.is_cut) for p in answer.passages] == [
        ("https://kb/tea", "1", "80 degrees", True),
        ("https://kb/black", "2", None, True),
    ]


def test_an_assistant_s_annotation_covers_its_marker(read: Read, covered: Covered) -> None:
    message = {
        "object": "thread.message",
        "content": [
            {
                "type": "text",
                "text": {
                    "value": "Tea needs 80 degrees【4:0†source】.",
                    "annotations": [
                        {
                            "type": "file_citation",
                            "text": "【4:0†source】",
                            "start_index": 20,
                            "end_index": 32,
                            "file_citation": {"file_id": "file-1"},
                        }
                    ],
                },
            }
        ],
    }
    assert covered(read(message)) == [("file-1", "【4:0†source】")]


def test_a_passage_of_the_request_is_found_by_its_address(read: Read, covered: Covered) -> None:
    answer = read(SEARCH, Passage("kb-1", "80 degrees.", url="https://kb.example/tea"))
    assert covered(answer) == [("kb-1", "See the brewing guide.")]
    assert answer.passages == ()


@pytest.mark.parametrize(("start", "end"), [(-5, 10), (60, 999), (10, 10), (20, 10)])
def test_a_range_outside_the_text_is_none(read: Read, covered: Covered, start: int, end: int) -> None:
    detail = {"start_index": start, "end_index": end, "url": "https://u", "title": "T"}
    answer = read(chat(TEXT, {"annotations": [{"type": "url_citation", "url_citation": detail}]}))
    assert covered(answer) == [("https://u", None)]


def test_a_chat_stream_is_read_when_it_is_whole(read: Read, covered: Covered) -> None:
    pieces = [TEXT[:10], TEXT[10:55], TEXT[55:]]
    annotation = SEARCH["choices"][0]["message"]["annotations"]
    chunks: list[dict[str, Any]] = [
        {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "delta": {"content": piece}}],
        }
        for piece in pieces
    ]
    chunks[-1]["choices"][0]["delta"]["annotations"] = annotation
    models = [as_model("openai.types.chat", "ChatCompletionChunk", chunk) for chunk in chunks]
    for stream in (chunks, models):
        answer = read(stream)
        assert answer.text == TEXT
        assert covered(answer) == [("https://kb.example/tea", "See the brewing guide.")]


def test_azure_s_and_perplexity_s_streams_keep_their_sources(read: Read) -> None:
    azure = [
        {"choices": [{"delta": {"context": AZURE["choices"][0]["message"]["context"]}}]},
        {"choices": [{"delta": {"content": "80 [do"}}]},
        {"choices": [{"delta": {"content": "c1]."}}]},
        {"choices": []},
    ]
    assert read(azure).text == "80 [doc1]."
    assert [p.label for p in read(azure).passages] == ["doc1", "doc2"]
    perplexity = [
        {"choices": [{"delta": {"content": "80"}}], "citations": ["https://kb/tea"]},
        {"choices": [{"delta": {"content": "[1]."}}], "citations": ["https://kb/tea"]},
    ]
    assert [(p.id, p.label) for p in read(perplexity).passages] == [("https://kb/tea", "1")]


def test_a_responses_stream_ends_with_the_whole_or_breaks_off(read: Read, covered: Covered) -> None:
    delta = {"type": "response.output_text.delta", "delta": "Green"}
    whole = [delta, {"type": "response.completed", "response": RESPONSE}]
    assert read(whole).text == TEXT + " Enjoy."
    done = [{"type": "response.output_item.done", "item": item} for item in RESPONSE["output"]]
    assert covered(read([delta, *done])) == covered(read(RESPONSE))


@pytest.mark.parametrize(
    "response", ["text", 3, None, {}, {"choices": []}, [], ["a", "b"], [{"delta": "x"}], object()]
)
def test_what_has_no_known_shape_is_no_answer(response: object) -> None:
    assert read_answer(response) is None
