"""Every recorded citation case comes out right: markers, claims, dangling citations, what is no citation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from citespan.evaluators.claims import Certainty, Claim, Marker, ResolvedCitation
from citespan.evaluators.decompose import decompose
from citespan.evaluators.markers import find_markers
from citespan.evaluators.resolve import resolve
from citespan.tracer.citations import Citation
from citespan.tracer.passages import Passage

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "cases" / "citation_cases.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


class Outcome:
    """What became of one case."""

    def __init__(self, case: dict[str, Any]) -> None:
        answer = case["answer"]
        passages = [Passage(item["id"], item["text"], item["label"]) for item in case["documents"]]
        self.markers: tuple[Marker, ...] = find_markers(answer, passages, recorded(case))
        self.claims: tuple[Claim, ...] = decompose(answer, self.markers)
        self.citations: tuple[ResolvedCitation, ...] = resolve(answer, self.markers, self.claims, passages)

    def cited_by(self, claim: Claim) -> list[str]:
        ids = [c.passage_id for c in self.citations if claim.index in c.claims and c.passage_id]
        return list(dict.fromkeys(ids))


def recorded(case: dict[str, Any]) -> list[Citation]:
    """Return a provider's supports as citations: their offsets count UTF-8 bytes."""
    raw = case["answer"].encode()
    documents = case["documents"]
    found: list[Citation] = []
    for support in case.get("structured", {}).get("supports", []):
        start = len(raw[: support["segment"].get("startIndex", 0)].decode())
        end = len(raw[: support["segment"]["endIndex"]].decode())
        for index in support["groundingChunkIndices"]:
            is_known = 0 <= index < len(documents)
            target = documents[index]["id"] if is_known else f"groundingChunkIndices:{index}"
            found.append(Citation(target, start, end, "gemini"))
    return found


@pytest.fixture(params=CASES, ids=lambda case: f"{case['id']}-{case['kind']}")
def case(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param


def test_claims_and_their_passages_are_as_expected(case: dict[str, Any]) -> None:
    outcome = Outcome(case)
    found = [(claim.text, outcome.cited_by(claim)) for claim in outcome.claims]
    assert found == [(claim["text"], claim["docs"]) for claim in case["expect"]["claims"]]


def test_markers_and_their_passages_are_as_expected(case: dict[str, Any]) -> None:
    outcome = Outcome(case)
    found = [
        (
            marker.text,
            [c.passage_id for c in outcome.citations if c.start == marker.start and c.passage_id],
        )
        for marker in outcome.markers
        if marker.text
    ]
    assert found == [(marker["raw"], marker["docs"]) for marker in case["expect"]["markers"]]


def test_dangling_citations_have_the_expected_reason(case: dict[str, Any]) -> None:
    found = [(c.marker, c.reason) for c in Outcome(case).citations if not c.is_resolved]
    assert found == [(item["raw"], item["reason"]) for item in case["expect"]["invalid"]]


def test_what_is_no_citation_holds_no_marker(case: dict[str, Any]) -> None:
    markers = Outcome(case).markers
    for text in case["expect"]["not_citations"]:
        start = case["answer"].index(text)
        assert not [m for m in markers if m.text and m.start < start + len(text) and start < m.end]


def test_ambiguous_markers_keep_every_candidate(case: dict[str, Any]) -> None:
    citations = Outcome(case).citations
    for item in case["expect"].get("ambiguous", []):
        numbers = {c.n for c in citations if c.marker == item["raw"]}
        for n in numbers:
            candidates = [c for c in citations if c.n == n]
            assert [c.passage_id for c in candidates] == item["candidates"]
            assert {c.certainty for c in candidates} == {Certainty.AMBIGUOUS}


def test_claims_stand_where_expected(case: dict[str, Any]) -> None:
    claims = Outcome(case).claims
    for claim, expected in zip(claims, case["expect"]["claims"], strict=True):
        if "char_span" in expected:
            assert [claim.start, claim.end] == expected["char_span"]
