"""Each form of the marker grammar is read, and its numbers mean the labels that the prompt showed."""

from __future__ import annotations

import pytest

from citespan.evaluators.claims import Marker
from citespan.evaluators.markers import find_markers
from citespan.evaluators.markers.grammar import MARKER_FORMS, MarkerForm, fold_text
from citespan.tracer.passages import Passage


def labelled(*labels: str) -> list[Passage]:
    return [Passage(f"id-{n}", "Tea is hot.", label) for n, label in enumerate(labels)]


def found(answer: str, *labels: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(m.text, m.labels) for m in find_markers(answer, labelled(*labels)) if m.labels]


def passage_for(form: MarkerForm, label: str) -> Passage:
    """Return a passage known by a label, or by its address where the form names addresses."""
    if label.startswith("http"):
        return Passage("p", "Tea is hot.", "1", url=label)
    return Passage(f"id of {label}", "Tea is hot.", label)


@pytest.mark.parametrize("form", MARKER_FORMS, ids=lambda form: form.name)
def test_every_form_is_read_as_its_example_says(form: MarkerForm) -> None:
    passages = [passage_for(form, label) for label in form.labels]
    answer = f"Tea is hot {form.example}. It is green."
    (marker,) = [m for m in find_markers(answer, passages) if m.labels]
    assert (marker.text, marker.labels) == (form.example, form.labels)
    assert answer[marker.start : marker.end] == marker.text


@pytest.mark.parametrize("form", MARKER_FORMS, ids=lambda form: form.name)
def test_every_form_names_where_it_was_seen(form: MarkerForm) -> None:
    assert form.seen
    assert form.pattern.search(fold_text(form.example))


@pytest.mark.parametrize(
    ("marker", "names"),
    [
        ("[1]", ["1"]),
        ("[1,2]", ["1", "2"]),
        ("[1, 2; 3]", ["1", "2", "3"]),
        ("[1 and 3]", ["1", "3"]),
        ("[1-3]", ["1", "2", "3"]),
        ("[1–3]", ["1", "2", "3"]),
        ("[2]-[3]", ["2", "3"]),
        ("[[1], [2]]", ["1", "2"]),
        ("【1】", ["1"]),
        ("［２］", ["2"]),
        ("【1、2】", ["1", "2"]),
        ("[٣]", ["3"]),
        ("[१]", ["1"]),
        ("[01]", ["01"]),
        ("[#3]", ["3"]),
        ("[^1]", ["1"]),
        ("^[1]", ["1"]),
        ("[Source 1]", ["1"]),
        ("[source: 1, 2]", ["1", "2"]),
        ("[ID:1]", ["1"]),
        ("(ID: 1)", ["1"]),
        ("【ID: 3】", ["3"]),
        ("[citation:3]", ["3"]),
        ("[DOC_ID:3]", ["3"]),
        ("[doc1]", ["1"]),
        ("[see 1, 2]", ["1", "2"]),
        ("[1, p. 4]", ["1"]),
        ("[1†L10-L20]", ["1"]),
        ("##1$$", ["1"]),
        ("²", ["2"]),
        ("¹˒²", ["1", "2"]),
        ("<sup>[1]</sup>", ["1"]),
        ("<cite>2</cite>", ["2"]),
        ('<source id="1"/>', ["1"]),
        ('<ref id="2"></ref>', ["2"]),
        ("{{1}}", ["1"]),
        ("{source:2}", ["2"]),
        (r"\[1\]", ["1"]),
        ("[[2]](https://kb.example/x)", ["2"]),
        ("[3](https://kb.example/x)", ["3"]),
    ],
)
def test_numbers_mean_labels_in_every_dress(marker: str, names: list[str]) -> None:
    assert found(f"Tea is hot {marker}.", "1", "2", "3") == [(marker, tuple(names))]


@pytest.mark.parametrize(
    ("marker", "label"),
    [
        ("[P1]", "P1"),
        ("[p1]", "P1"),
        ("[kb-tea-03]", "kb-tea-03"),
        ("[forms.pdf#page=2]", "forms.pdf#page=2"),
        ("[handbook.docx, p. 3]", "handbook.docx"),
        ("[handbook.docx, pages 3-4]", "handbook.docx"),
        ("[Document: guide.pdf, Section: 2]", "guide.pdf"),
        ("[guide:4]", "guide:4"),
        ("[R1-1]", "R1-1"),
        ("[6c]", "6c"),
        ("(pqac-d79ef6fa pages 3-4)", "pqac-d79ef6fa"),
        ("<|file-77ab|>", "file-77ab"),
        ("DOC1[E2]", "DOC1:E2"),
        ("[@doc1]", "doc1"),
        ("[citation:0b6c2c1e-7f0a](javascript:void(0))", "0b6c2c1e-7f0a"),
        ("turn0search3", "turn0search3"),
        (r"\ue202turn0file0", "turn0file0"),
        ("\ue200filecite\ue202turn0file0\ue202L1-L5\ue201", "turn0file0"),
        ("citeturn0search3", "turn0search3"),
        ("[Source 1]", "Source 1"),
        ("[1]", "doc1"),
    ],
)
def test_ids_and_names_are_read_with_pages_and_leading_words(marker: str, label: str) -> None:
    (text, labels), *rest = found(f"Tea is hot {marker}.", label, "zz-other" if label != "doc1" else "doc2")
    assert (text, rest) == (marker, [])
    assert find_markers(f"Tea is hot {marker}.", labelled(label))
    assert len(labels) == 1


def test_records_of_graphrag_leave_out_the_count_of_more() -> None:
    answer = "Tea is grown on hills [Data: Sources (2, 7, +more); Entities (3)]."
    # A number alone is a source; record 3 is an entity, so it is not passage 3.
    assert found(answer, "2", "3", "7") == [
        ("[Data: Sources (2, 7, +more); Entities (3)]", ("2", "7", "Entities (3)"))
    ]


def test_paper_keys_are_read_in_the_variants_its_prompt_forbids() -> None:
    keys = ("pqac-d79ef6fa", "pqac-0f650d59")
    for joint in (", ", "; ", " and ", " - "):
        marker = f"({keys[0]}{joint}{keys[1]})"
        assert found(f"Tea is hot {marker}.", *keys) == [(marker, keys)]


def test_a_literal_label_wins_over_its_reading_as_a_range() -> None:
    assert found("Tea is hot [1-3].", "1", "3", "1-3") == [("[1-3]", ("1-3",))]


def test_a_reversed_range_names_nothing() -> None:
    assert found("Tea is hot [3-1].", "1", "2", "3") == []


def test_a_range_past_the_last_label_keeps_what_is_missing() -> None:
    assert found("Tea is hot [2-4].", "1", "2", "3") == [("[2-4]", ("2", "3", "4"))]


def test_a_huge_range_is_bounded_and_its_end_stands_for_the_rest() -> None:
    assert found("Tea is hot [1-1000000].", "1", "2") == [("[1-1000000]", ("1", "2", "1000000"))]


def test_adjacent_markers_are_markers_each() -> None:
    assert found("Tea is hot [1][2] [3].", "1", "2", "3") == [
        ("[1]", ("1",)),
        ("[2]", ("2",)),
        ("[3]", ("3",)),
    ]


def test_a_tag_that_wraps_words_covers_them() -> None:
    answer = "<co: 0>Tea is hot</co: 0>. It is green."
    opening, closing = find_markers(answer, labelled("0", "1"))
    # The words stand from 7, behind the opening tag, to 17.
    assert opening == Marker("<co: 0>", 0, 7, ("0",), covers=(7, 17))
    assert closing == Marker("</co: 0>", 17, 25, ())


def test_a_link_to_a_passage_keeps_its_words_where_the_sentence_needs_them() -> None:
    passages = [Passage("a", "t", "1", "Refund policy", "https://kb.example/refund")]
    answer = "The [refund policy](https://kb.example/refund) allows 5 days."
    (marker,) = find_markers(answer, passages)
    assert marker.words == (5, 18)  # "refund policy"


def test_a_link_at_a_sentence_end_that_only_names_the_source_has_no_words() -> None:
    passages = [Passage("a", "t", "1", "Brewing guide", "https://kb.example/tea/")]
    for link in ("[Brewing guide](https://kb.example/tea)", "([kb.example](https://kb.example/tea))"):
        (marker,) = find_markers(f"Tea is hot {link}.", passages)
        assert marker.words is None
