"""Passages out of the shapes that retrievers return, without importing what made them."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from types import SimpleNamespace

import pytest

from citespan.tracer import Citation, Passage, number_passages
from citespan.tracer.adapt import as_citations, as_passage, as_passages


@dataclass
class Document:
    """LangChain's shape."""

    page_content: str
    metadata: dict[str, object] = field(default_factory=dict)
    id: str | None = None
    type: str = "Document"


class TextNode:
    """LlamaIndex's shape: the id and the text are properties."""

    metadata = {"file_name": "tea.md"}  # noqa: RUF012
    node_id = "n-1"

    def get_content(self) -> str:
        return "Tea."


def test_a_langchain_document_keeps_id_metadata_and_source() -> None:
    document = Document("Tea.", {"source": "https://kb/tea", "title": "Tea"}, id="d-1")
    assert as_passage(document) == Passage(
        id="d-1",
        text="Tea.",
        title="Tea",
        url="https://kb/tea",
        metadata={"source": "https://kb/tea", "title": "Tea"},
    )


def test_a_source_that_is_no_url_is_the_title() -> None:
    passage = as_passage(Document("Tea.", {"source": "tea.md"}))
    assert (passage.id, passage.title, passage.url) == ("", "tea.md", None)


def test_an_id_in_the_metadata_counts_where_the_document_has_none() -> None:
    assert as_passage(Document("Tea.", {"chunk_id": 7})).id == "7"


def test_a_llamaindex_node_is_read_through_its_wrapper() -> None:
    scored = SimpleNamespace(node=TextNode(), score=0.25)
    passage = as_passage(scored)
    assert (passage.id, passage.text, passage.score, passage.title) == ("n-1", "Tea.", 0.25, "tea.md")
    assert as_passage(TextNode()).score is None


def test_a_haystack_document_says_meta() -> None:
    document = SimpleNamespace(id="h", content="Tea.", meta={"url": "https://kb"}, score=None)
    assert as_passage(document) == Passage(
        id="h", text="Tea.", url="https://kb", metadata={"url": "https://kb"}
    )


def test_a_pair_is_a_document_and_its_score() -> None:
    assert as_passage((Document("Tea.", id="d"), 0.5)) == Passage(id="d", text="Tea.", score=0.5)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"id": 3, "text": "t"}, Passage(id="3", text="t")),
        ({"_id": "m", "content": "t", "_score": 2}, Passage(id="m", text="t", score=2.0)),
        (
            {"id": "a", "text": "t", "label": "P1", "title": "T", "url": "https://u"},
            Passage(id="a", text="t", label="P1", title="T", url="https://u"),
        ),
        ({"document": "t"}, Passage(id="", text="t")),
        (
            {"document": {"id": "d", "text": "t"}, "score": Decimal("0.5")},
            Passage(id="d", text="t", score=0.5),
        ),
        ({"id": "a"}, Passage(id="a", text=None)),
        ({"id": "a", "text": "", "score": float("nan")}, Passage(id="a", text="")),
        ({"id": "a", "text": "t", "score": "high"}, Passage(id="a", text="t")),
    ],
)
def test_a_dict_is_read_by_the_usual_names(data: dict[str, object], expected: Passage) -> None:
    assert as_passage(data) == expected


def test_a_method_called_title_is_no_title() -> None:
    passage = as_passage(SimpleNamespace(id="a", text="t", title=lambda: "no"))
    assert passage.title is None


@pytest.mark.parametrize("item", [3.5, None, {}, {"value": "t"}, object(), ("a", "b", "c")])
def test_what_has_no_text_and_no_id_is_no_passage(item: object) -> None:
    with pytest.raises(TypeError, match="a passage is"):
        as_passage(item)


def test_passages_are_numbered_as_the_prompt_shows_them() -> None:
    assert [p.label for p in number_passages(["a", "b"])] == ["1", "2"]
    assert [p.label for p in number_passages(["a", "b"], start=0, form="ID:{n}")] == ["ID:0", "ID:1"]


def test_labels_are_given_one_by_one_or_as_a_form() -> None:
    assert [p.label for p in as_passages(["a", "b"], ["x", 2])] == ["x", "2"]
    assert [p.label for p in as_passages(["a", "b"], "S{n}")] == ["S1", "S2"]
    assert [p.label for p in as_passages([{"id": "a", "label": "kept"}])] == ["kept"]


def test_citations_are_values_dicts_or_ids() -> None:
    given = [Citation("a", start=0, end=2, origin="openai"), {"passage_id": 7, "quote": "q"}, "c"]
    assert as_citations(given, 2) == (
        Citation("a", start=0, end=2, origin="openai"),
        Citation("7", quote="q"),
        Citation("c"),
    )
