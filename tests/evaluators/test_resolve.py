"""How citations are numbered, resolved, attached to claims, and why some dangle."""

from __future__ import annotations

import pytest

from citespan.evaluators.claims import Certainty, Claim, ResolvedCitation
from citespan.evaluators.decompose import decompose
from citespan.evaluators.markers import find_markers
from citespan.evaluators.options import CitationScope
from citespan.evaluators.resolve import resolve
from citespan.tracer.passages import Passage


def numbered(count: int, first: int = 1) -> list[Passage]:
    return [Passage(f"id-{n}", "Tea is hot.", str(n)) for n in range(first, first + count)]


class Read:
    """An answer's claims and citations."""

    def __init__(
        self,
        answer: str,
        passages: list[Passage],
        *,
        scope: CitationScope = CitationScope.SENTENCE,
        passages_lost: int = 0,
    ) -> None:
        markers = find_markers(answer, passages)
        self.claims: tuple[Claim, ...] = decompose(answer, markers)
        self.citations: tuple[ResolvedCitation, ...] = resolve(
            answer, markers, self.claims, passages, scope=scope, passages_lost=passages_lost
        )

    @property
    def labels(self) -> list[list[str]]:
        """For each claim, the labels of the citations attached to it."""
        return [[c.label for c in self.citations if claim.index in c.claims] for claim in self.claims]

    @property
    def reasons(self) -> list[tuple[str, str | None]]:
        return [(c.marker, c.reason) for c in self.citations]


def test_the_sync_client_example_resolves_as_described() -> None:
    passages = [Passage(f"P{n}", "text") for n in (1, 2, 3)]
    read = Read(
        "The sync client retries transient failures up to five times. [P1] Retries use exponential backoff. [P1] "
        "Authentication failures are never retried. [P2] Sync runs are logged locally. [P3] "
        "The default retry limit can be raised through configuration. [P1]",
        passages,
    )
    assert [claim.text for claim in read.claims] == [
        "The sync client retries transient failures up to five times.",
        "Retries use exponential backoff.",
        "Authentication failures are never retried.",
        "Sync runs are logged locally.",
        "The default retry limit can be raised through configuration.",
    ]
    assert all(claim.material for claim in read.claims)
    assert read.labels == [["P1"], ["P1"], ["P2"], ["P3"], ["P1"]]
    # Five markers, one target each; all resolve: validity 5/5.
    assert [(c.n, c.passage_id) for c in read.citations] == [
        (1, "P1"),
        (2, "P1"),
        (3, "P2"),
        (4, "P3"),
        (5, "P1"),
    ]
    assert {c.certainty for c in read.citations} == {Certainty.CERTAIN}


def test_the_refunds_example_resolves_as_described() -> None:
    passages = [Passage("1", "text"), Passage("2", "text")]
    read = Read(
        "Refunds are issued within five days [1]. Premium support is included at no charge [2]. "
        "You can cancel any time.",
        passages,
    )
    assert [(claim.text, claim.material) for claim in read.claims] == [
        ("Refunds are issued within five days.", True),
        ("Premium support is included at no charge.", True),
        ("You can cancel any time.", True),
    ]
    # Coverage 2/3, completeness 2/3, validity 2/2.
    assert read.labels == [["1"], ["2"], []]
    assert [c.passage_id for c in read.citations] == ["1", "2"]


def test_a_bundled_sentence_is_two_claims_under_one_citation() -> None:
    read = Read("Authentication failures are never retried and surface immediately [1].", numbered(1))
    assert [claim.text for claim in read.claims] == [
        "Authentication failures are never retried",
        "Authentication failures surface immediately.",
    ]
    (citation,) = read.citations
    assert citation.claims == (0, 1)


@pytest.mark.parametrize(
    ("answer", "labels"),
    [
        # A run covers every part back to the run before it.
        ("Tea is hot [1]; coffee is cold; milk is white [2].", [["1"], ["2"], ["2"]]),
        # Parts after the last run are uncited.
        ("Tea is hot [1]; coffee is cold.", [["1"], []]),
        # One part, several runs: all of them.
        ("The sky is red [1], which is warm, and blue [2] at noon.", [["1", "2"]]),
        ("Tea is warm [1] and strong.", [["1"]]),
        # After the stop: the sentence before.
        ("Tea is hot. [1] Coffee is cold. [2]", [["1"], ["2"]]),
        ("Tea is hot [1]. [2] Coffee is cold.", [["1", "2"], []]),
        # Paragraph-final: the last sentence only.
        ("Tea is hot. Coffee is cold [1].", [[], ["1"]]),
        # A paragraph of markers alone belongs to the one before.
        ("Tea is hot.\n\n[1][2]", [["1", "2"]]),
        # Markers that lead.
        ("[1] Tea is hot. [2] Coffee is cold.", [["1"], ["2"]]),
        ("[1] Tea is hot.\n[2] Coffee is cold.", [["1"], ["2"]]),
        ("According to [1], tea is hot. As [2] says, coffee is cold.", [["1"], ["2"]]),
        # Cells, items, headings.
        ("| a | b |\n|---|---|\n| x [1] | y [2] |\n| z | w |", [["1", "2"], []]),
        ("- Tea is hot [1]\n- Coffee is cold", [["1"], []]),
        ("# Tea [1]\n\nCoffee is cold [2].", [["1"], ["2"]]),
        ("Tea is hot.\nSource: [1]", [["1"]]),
        # Tags that wrap their words cover them and nothing else.
        ("<co: 1>Tea is hot</co: 1> and <co: 2>coffee is cold</co: 2>.", [["1"], ["2"]]),
        ('Milk is white. <cite id="2">Tea is hot</cite>.', [[], ["2"]]),
    ],
)
def test_a_marker_covers_what_it_stands_behind(answer: str, labels: list[list[str]]) -> None:
    assert Read(answer, numbered(2)).labels == labels


def test_a_closing_run_lists_the_earlier_uncited_claims_of_its_paragraph() -> None:
    read = Read(
        "Milk is white.\n\nTea is hot. Coffee is warm [1]. Water is wet. All are drinks [2].", numbered(2)
    )
    (first, last) = read.citations
    assert (first.claims, first.paragraph_claims) == ((2,), ())
    # Claims 1 and 3 are uncited; claim 0 stands in another paragraph.
    assert (last.claims, last.paragraph_claims) == ((4,), (1, 3))


def test_under_the_scope_paragraph_a_closing_run_covers_them() -> None:
    answer = "Tea is hot. Coffee is warm [1]. Water is wet. All are drinks [2]."
    read = Read(answer, numbered(2), scope=CitationScope.PARAGRAPH)
    assert read.labels == [["2"], ["1"], ["2"], ["2"]]


def test_a_citation_in_a_sentence_without_claims_is_listed_and_attached_to_nothing() -> None:
    read = Read("Tea is hot. See [1] for details.", numbered(1))
    (citation,) = read.citations
    assert (citation.passage_id, citation.claims) == ("id-1", ())


def test_each_target_of_a_list_is_a_citation_and_each_occurrence_counts() -> None:
    read = Read("Tea is hot [1, 2]. Coffee is warm [1].", numbered(2))
    assert [(c.n, c.marker, c.label) for c in read.citations] == [
        (1, "[1, 2]", "1"),
        (2, "[1, 2]", "2"),
        (3, "[1]", "1"),
    ]


def test_a_label_twice_in_one_marker_counts_once() -> None:
    assert len(Read("Tea is hot [1, 1].", numbered(2)).citations) == 1


def test_candidates_of_an_ambiguous_citation_share_its_number() -> None:
    passages = [Passage("w1", "t", "1"), Passage("w2", "t", "1"), Passage("w3", "t", "2")]
    read = Read("Tea is hot [1]. Coffee is warm [2].", passages)
    assert [(c.n, c.passage_id, c.certainty) for c in read.citations] == [
        (1, "w1", Certainty.AMBIGUOUS),
        (1, "w2", Certainty.AMBIGUOUS),
        (2, "w3", Certainty.CERTAIN),
    ]


@pytest.mark.parametrize(
    ("answer", "labels", "reason"),
    [
        ("Tea [1]. Sea [9].", ["1", "2"], "out_of_range"),
        ("Tea [1]. Sea [0].", ["1", "2"], "out_of_range"),
        ("Tea [1]. Sea [2].", ["1", "3"], "unknown_label"),  # within the range, but no passage is called so
        ("Tea [1]. Sea [6c].", ["1", "2"], "unknown_label"),
        ("Tea [doc-1]. Sea [doc-99].", ["doc-1"], "unknown_label"),
        ("Tea [doc1]. Sea [doc9].", ["doc1", "doc2"], "out_of_range"),  # docN counts the passages
        ("Tea [pc010]. Sea [pc099].", ["pc010", "pc042"], "unknown_label"),
        ("Tea [ID:0]. Sea [ID:7].", ["0", "1"], "out_of_range"),
    ],
)
def test_a_dangling_citation_says_why(answer: str, labels: list[str], reason: str) -> None:
    passages = [Passage(f"id-{n}", "t", label) for n, label in enumerate(labels)]
    known, dangling = Read(answer, passages).citations
    assert known.is_resolved
    assert (dangling.passage_id, dangling.reason) == (None, reason)


def test_where_passages_were_lost_an_unknown_label_may_be_one_of_them() -> None:
    read = Read("Tea [1]. Sea [9].", numbered(2), passages_lost=3)
    assert read.reasons == [("[1]", None), ("[9]", "passage_lost")]


def test_without_passages_every_marker_dangles() -> None:
    assert Read("Tea is hot [1].", []).reasons == [("[1]", "unknown_label")]


def test_passages_without_labels_are_known_by_id() -> None:
    read = Read("Tea is hot [kb-7].", [Passage("kb-7", "t"), Passage("kb-9", "t")])
    (citation,) = read.citations
    assert (citation.passage_id, citation.certainty, citation.reason) == ("kb-7", Certainty.CERTAIN, None)


def test_where_no_id_occurs_passages_without_labels_are_known_by_position_from_one() -> None:
    passages = [Passage("kb-7", "t"), Passage("kb-9", "t")]
    read = Read("Tea is hot [2]. Sea [0].", passages)
    assert [(c.passage_id, c.certainty, c.reason) for c in read.citations] == [
        ("kb-9", Certainty.LOW, "by_position"),
        (None, Certainty.CERTAIN, "out_of_range"),
    ]


def test_where_an_id_occurs_numbers_are_no_positions() -> None:
    passages = [Passage("kb-7", "t"), Passage("kb-9", "t")]
    read = Read("Tea is hot [kb-7]. Sea [2].", passages)
    assert [c.passage_id for c in read.citations] == ["kb-7", None]


def test_a_passage_with_a_label_also_answers_to_its_id_and_title() -> None:
    passages = [
        Passage("a.md", "t", "1"),
        Passage("u-2", "t", "2", metadata={"file_name": "docs/b.pdf"}),
        Passage("u-3", "t", "3", title="Brewing guide"),
    ]
    read = Read("Tea [a.md]. Sea [b.pdf]. Milk [Brewing guide].", passages)
    assert [(c.passage_id, c.reason) for c in read.citations] == [
        ("a.md", "by_id"),
        ("u-2", "by_other_name"),
        ("u-3", "by_other_name"),
    ]


def test_chunks_of_one_file_are_candidates_of_its_name() -> None:
    passages = [Passage(f"u-{n}", "t", str(n), metadata={"source": "b.pdf"}) for n in (1, 2)]
    read = Read("Sea [b.pdf].", passages)
    assert [(c.passage_id, c.certainty) for c in read.citations] == [
        ("u-1", Certainty.AMBIGUOUS),
        ("u-2", Certainty.AMBIGUOUS),
    ]


def test_labels_are_not_renumbered_by_order_of_appearance() -> None:
    read = Read("Tea [3]. Sea [1].", numbered(3))
    assert [c.passage_id for c in read.citations] == ["id-3", "id-1"]


def test_a_marker_that_is_the_subject_of_a_sentence_belongs_to_it() -> None:
    read = Read("Reference [1] states that tea is hot. [2] adds that it is green.", numbered(2))
    assert read.labels == [["1"], ["2"]]
