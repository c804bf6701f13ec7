"""Citations recorded beside the answer: ranges, markers that a record explains, and lists."""

from __future__ import annotations

from citespan.evaluators.claims import Certainty, Marker
from citespan.evaluators.decompose import decompose
from citespan.evaluators.markers import find_markers
from citespan.evaluators.resolve import resolve
from citespan.tracer.citations import Citation
from citespan.tracer.passages import Passage

TEXT = "Tea is hot. Coffee is warm. Milk is cold."
PLAIN = [Passage("a", "t"), Passage("b", "t"), Passage("c", "t")]
NUMBERED = [Passage("d1", "t", "1"), Passage("d2", "t", "2")]


def attached(answer: str, passages: list[Passage], *citations: Citation) -> list[list[str | None]]:
    """Return, for each claim, the passages of its citations."""
    markers = find_markers(answer, passages, citations)
    claims = decompose(answer, markers)
    found = resolve(answer, markers, claims, passages)
    return [[c.passage_id for c in found if claim.index in c.claims] for claim in claims]


def test_a_range_covers_the_claims_it_overlaps() -> None:
    assert attached(TEXT, PLAIN, Citation("a", 0, 11, "anthropic"), Citation("b", 12, 41, "anthropic")) == [
        ["a"],
        ["b"],
        ["b"],
    ]


def test_a_marker_and_a_range_that_name_the_same_passage_in_one_place_count_once() -> None:
    answer = "Tea is hot [1]. Coffee is warm [2]."
    markers = find_markers(answer, NUMBERED, [Citation("d1", 0, 10, "x")])
    assert [(m.text, m.labels) for m in markers] == [("[1]", ("1",)), ("[2]", ("2",))]


def test_a_marker_learns_from_its_record_what_it_covers() -> None:
    answer = "Tea is hot. Coffee is warm [2]."
    assert attached(answer, NUMBERED) == [[], ["d2"]]
    assert attached(answer, NUMBERED, Citation("d2", 0, 26, "x")) == [["d2"], ["d2"]]


def test_a_range_that_names_another_passage_than_its_marker_is_a_citation_of_its_own() -> None:
    answer = "Tea is hot [1]."
    assert attached(answer, NUMBERED, Citation("d2", 0, 10, "x")) == [["d2", "d1"]]


def test_a_range_over_a_marker_alone_acts_as_that_marker() -> None:
    # 【4:0†source】 is 12 code points: 10 to 22.
    answer = "Tea is hot【4:0†source】."
    assert find_markers(answer, PLAIN, [Citation("a", 10, 22, "openai")]) == (
        Marker("【4:0†source】", 10, 22, ("a",), "openai"),
    )


def test_a_record_over_a_sentence_says_what_its_provider_marker_names() -> None:
    answer = "Tea is hot【4:0†source】."
    assert attached(answer, PLAIN, Citation("a", 0, 23, "openai")) == [["a"]]
    (marker,) = find_markers(answer, PLAIN, [Citation("a", 0, 23, "openai")])
    assert marker.text == "【4:0†source】"


def test_a_range_over_a_link_in_parentheses_acts_as_that_marker() -> None:
    answer = "Tea is hot ([k.example](https://k.example/z))."
    # From the parenthesis at 11 to the one before the stop at 45.
    (marker,) = find_markers(answer, PLAIN, [Citation("a", 11, 45, "openai")])
    assert (marker.text, marker.labels) == ("([k.example](https://k.example/z))", ("a",))


def test_two_records_over_one_marker_are_two_citations_of_it() -> None:
    answer = "Tea is hot【4:0†source】."
    recorded = [Citation("a", 10, 22, "openai"), Citation("b", 10, 22, "openai")]
    assert attached(answer, PLAIN, *recorded) == [["a", "b"]]


def test_the_same_record_twice_counts_once() -> None:
    recorded = [Citation("a", 0, 11, "x", quote="one"), Citation("a", 0, 11, "x", quote="two")]
    assert attached("Tea is hot.", PLAIN, *recorded) == [["a"]]


def test_a_record_tells_which_of_several_passages_an_ambiguous_marker_names() -> None:
    passages = [Passage("w1", "t", "1"), Passage("w2", "t", "1")]
    answer = "Tea is hot [1]. Coffee [1]."
    assert attached(answer, passages, Citation("w2", 0, 10, "x")) == [["w2"], ["w1", "w2"]]


def test_a_record_makes_a_positional_marker_certain() -> None:
    answer = "Tea is hot [1]. Coffee [2]."
    markers = find_markers(answer, PLAIN, [Citation("a", 0, 10, "x")])
    found = resolve(answer, markers, decompose(answer, markers), PLAIN)
    assert [(c.passage_id, c.certainty) for c in found] == [
        ("a", Certainty.CERTAIN),
        ("b", Certainty.LOW),
    ]


def test_a_recorded_list_says_what_the_numbers_of_the_text_mean() -> None:
    answer = "Tea is hot [2]. Coffee is warm [1][9]."
    recorded = [Citation("b", origin="perplexity"), Citation("a", origin="perplexity")]
    markers = find_markers(answer, PLAIN, recorded)
    found = resolve(answer, markers, decompose(answer, markers), PLAIN)
    assert [(c.marker, c.passage_id, c.reason) for c in found] == [
        ("[2]", "a", None),
        ("[1]", "b", None),
        ("[9]", None, "out_of_range"),
    ]


def test_labels_shown_win_over_a_recorded_list() -> None:
    recorded = [Citation("d2", origin="perplexity"), Citation("d1", origin="perplexity")]
    assert attached("Tea is hot [1].", NUMBERED, *recorded) == [["d1"]]


def test_a_list_without_markers_in_the_text_is_attached_to_no_claim() -> None:
    markers = find_markers(TEXT, PLAIN, [Citation("a"), Citation("zz")])
    found = resolve(TEXT, markers, decompose(TEXT, markers), PLAIN)
    assert [(c.marker, c.passage_id, c.claims, c.reason) for c in found] == [
        ("a", "a", (), None),
        ("zz", None, (), "unknown_label"),
    ]


def test_a_range_over_no_words_belongs_to_the_sentence_it_stands_in() -> None:
    assert attached("**Tea** is hot.", PLAIN, Citation("a", 0, 2, "gemini")) == [["a"]]
    assert attached(TEXT, PLAIN, Citation("a", 11, 11, "openai")) == [["a"], [], []]


def test_a_recorded_index_beyond_the_list_is_out_of_range_and_never_wraps() -> None:
    recorded = [Citation(f"groundingChunkIndices:{n}", 0, 11, "gemini") for n in (4, -1)]
    markers = find_markers(TEXT, PLAIN, recorded)
    found = resolve(TEXT, markers, decompose(TEXT, markers), PLAIN)
    assert [(c.marker, c.passage_id, c.reason) for c in found] == [
        ("groundingChunkIndices:4", None, "out_of_range"),
        ("groundingChunkIndices:-1", None, "out_of_range"),
    ]


def test_recorded_ids_are_never_read_as_labels() -> None:
    # The passage with id "1" carries the label "2": a record means the id, text means the label.
    passages = [Passage("1", "t", "2"), Passage("2", "t", "1")]
    assert attached("Tea is hot.", passages, Citation("1", 0, 11, "x")) == [["1"]]
    assert attached("Tea is hot [1].", passages) == [["2"]]


def test_a_range_past_the_answer_is_cut_to_it() -> None:
    assert attached("Tea is hot.", PLAIN, Citation("a", 5, 100, "x"), Citation("b", 50, 100, "x")) == [
        ["a", "b"]
    ]
