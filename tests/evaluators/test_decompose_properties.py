"""What holds for every string: ranges inside the answer, nothing cited lost, time linear in the length."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from citespan.evaluators.decompose import decompose
from citespan.evaluators.markers import find_markers
from citespan.evaluators.options import Splitting
from citespan.evaluators.resolve import resolve
from citespan.tracer.citations import Citation
from citespan.tracer.passages import Passage

PASSAGES = [Passage(f"id-{n}", "Tea is hot.", str(n)) for n in range(1, 6)]

_PIECES = """
[1] [2] [1,2] [9] [0] [^1] 【1】 (1) ¹ [1](https://x.example) [[2]] <co:_1> </co:_1> <inref_id="1"/> ##1$$ turn0search1
\\ue202turn0file0 . ! ? 。 ؟ … , ; : - * ** _ ` `` ``` $ | > # ( ) [ ] { } < > " “ ” ' and but is are Tea coffee the it
retries logs if that 80 3.5 e.g. Dr. U.S. https://a.b/c.d 绿茶 热 です ชา الشاي References Sources: See - 1. | --- [x]
"""
PIECES = st.sampled_from(_PIECES.split())
SPACES = st.sampled_from(
    ["", " ", " ", " ", "\n", "\n\n", "\n- ", "\n> ", "\n| ", "\n    ", "\t", "\r\n", "\n# ", "\n```\n"]
)
ANSWERS = st.one_of(
    st.text(max_size=200),
    st.lists(st.tuples(PIECES, SPACES), max_size=40).map(
        lambda parts: "".join(piece.replace("_", " ") + space for piece, space in parts)
    ),
)
RANGES = st.lists(
    st.tuples(st.integers(0, 120), st.integers(0, 120), st.sampled_from(["id-1", "id-2", "none"])), max_size=3
)
SLOW_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=300)


def recorded(ranges: list[tuple[int, int, str]], answer: str) -> list[Citation]:
    return [
        Citation(target, min(a, b, len(answer)), min(max(a, b), len(answer)), "x") for a, b, target in ranges
    ]


@SLOW_MACHINE
@given(answer=ANSWERS, ranges=RANGES, splitting=st.sampled_from(Splitting))
def test_claims_stand_in_order_inside_the_answer_and_hold_words(
    answer: str, ranges: list[tuple[int, int, str]], splitting: Splitting
) -> None:
    markers = find_markers(answer, PASSAGES, recorded(ranges, answer))
    claims = decompose(answer, markers, splitting=splitting)
    end = 0
    for n, claim in enumerate(claims):
        assert claim.index == n
        assert end <= claim.start < claim.end <= len(answer)
        assert re.search(r"\w", claim.text)
        assert re.search(r"\w", answer[claim.start : claim.end])
        assert claim.sentence
        end = claim.end


@SLOW_MACHINE
@given(answer=ANSWERS, ranges=RANGES)
def test_every_marker_is_a_citation_and_names_what_exists(
    answer: str, ranges: list[tuple[int, int, str]]
) -> None:
    markers = find_markers(answer, PASSAGES, recorded(ranges, answer))
    claims = decompose(answer, markers)
    citations = resolve(answer, markers, claims, PASSAGES)
    places = {(citation.start, citation.end) for citation in citations}
    assert places == {(marker.start, marker.end) for marker in markers if marker.labels}
    for marker in markers:
        assert 0 <= marker.start <= marker.end <= len(answer)
        assert not marker.text or answer[marker.start : marker.end] == marker.text
    for citation in citations:
        assert citation.passage_id in {None, *(passage.id for passage in PASSAGES)}
        assert (citation.passage_id is None) <= (citation.reason is not None)
        assert set(citation.claims) <= set(range(len(claims)))


@SLOW_MACHINE
@given(answer=ANSWERS)
def test_markers_of_the_text_never_overlap(answer: str) -> None:
    end = 0
    for marker in find_markers(answer, PASSAGES):
        assert marker.start >= end
        end = marker.end


@SLOW_MACHINE
@given(
    words=st.lists(st.sampled_from(["Tea", "coffee", "hot", "80", "warm", "milk"]), min_size=2, max_size=12),
    ends=st.lists(
        st.sampled_from([". ", " [1]. ", "! ", ".\n\n", "\n- ", " [2] "]), min_size=12, max_size=12
    ),
)
def test_no_word_of_prose_is_dropped(words: list[str], ends: list[str]) -> None:
    answer = "".join(f"{word} is {word}{end}" for word, end in zip(words, ends, strict=False))
    claims = decompose(answer, find_markers(answer, PASSAGES))
    said = " ".join(claim.text for claim in claims)
    for word in set(words):
        # Once before "is", once behind it.
        assert len(re.findall(rf"\b{word}\b", said)) == 2 * words.count(word)


@SLOW_MACHINE
@given(answer=ANSWERS)
def test_the_same_answer_is_always_split_the_same(answer: str) -> None:
    markers = find_markers(answer, PASSAGES)
    assert find_markers(answer, PASSAGES) == markers
    assert decompose(answer, markers) == decompose(answer, list(markers))


HARD = [
    "Green tea takes 80 degrees [1]. ",
    "word ",
    "[1]",
    "[",
    "[[1], ",
    "(",
    "`",
    "``` ",
    "`a[1]` ",
    "$a=",
    r"\[",
    "*a ",
    "**",
    "_",
    ". ",
    "。",
    "a; ",
    ", and it is ",
    "<co: 0>",
    "<a id='1'",
    "turn0file1 ",
    "\ue202turn0file1",
    "http://a.b/",
    "- [1] a.md\n",
    "Sources: [1]\n",
    "# References\n",
    "\n\n[1]",
    "| a | b [1] |\n",
    "> ",
    "- ",
    "1. a\n",
    "\n",
    "\r",
    " ",
    "绿茶要80度[1]。",
    "ชา [1] ",
    '"a. ',
    "[1-999999] ",
    "[a](",
    "🙂",
    "x" * 1000 + " ",
]


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Keep the garbage collector out of timings: its passes depend on whatever else lives in the process."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def seconds(answer: str) -> float:
    started = time.process_time()
    markers = find_markers(answer, PASSAGES)
    resolve(answer, markers, decompose(answer, markers), PASSAGES)
    return time.process_time() - started


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("unit", HARD, ids=lambda unit: repr(unit[:20]))
def test_time_grows_with_the_length_and_no_faster(unit: str) -> None:
    def repeated(length: int) -> str:
        return (unit * (length // len(unit) + 1))[:length]

    # Eight times the text takes eight times as long; a square law would take 64 times.
    # A quarter of a second is allowed for what is too fast to be timed.
    assert seconds(repeated(80_000)) < 24 * min(seconds(repeated(10_000)) for _ in range(2)) + 0.25


@pytest.mark.parametrize(
    "unit",
    [
        "Green tea takes 80 degrees [1]. Black tea takes 95 degrees, and it is stronger [2][9]. ",
        "## Tea\n\n- **Green tea** takes 80 degrees [1].\n- Black tea takes `95` [2].\n\n| a | b |\n|---|---|\n| x | y [1] |\n\n",
    ],
)
def test_two_hundred_thousand_code_points_take_less_than_two_seconds(unit: str) -> None:
    assert seconds((unit * 4000)[:200_000]) < 2
