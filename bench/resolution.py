"""How well citespan reads foreign traces and resolves citations: recorded spans and cases against what is expected.

    python bench/resolution.py --spans tests/data/spans --cases tests/data/cases/citation_cases.jsonl

Per family it prints runs read right, markers right, invalid citations found, and false citations. It exits with 1
if too few runs or cases are right, or if any wrong resolution is passed off as certain.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from case_payloads import read_structured

from citespan.evaluators.claims import Certainty, ResolvedCitation
from citespan.evaluators.decompose import decompose
from citespan.evaluators.markers import find_markers
from citespan.evaluators.reading.inspection import citations_of, inspection_to_dict
from citespan.evaluators.reading.reader import read_runs
from citespan.evaluators.resolve import resolve
from citespan.evaluators.runs import Run
from citespan.evaluators.sources.spanfile import SpanFile

RUNS_BAR = 0.95
"""Share of the runs with an expectation that must be read right."""

CASES_BAR = 1.0
"""Share of the cases that must come out right."""

EXPECTATIONS = Path(__file__).parents[1] / "tests" / "data" / "expectations"
"""What a person read in each dump, one file per dump."""


@dataclass
class Count:
    """So many of so many."""

    right: int = 0
    """How many came out as expected."""

    total: int = 0
    """How many there are."""

    def add(self, is_right: bool) -> None:
        """Count one more."""
        self.right += is_right
        self.total += 1

    @property
    def share(self) -> float | None:
        """The share that is right, or `None` over nothing."""
        return self.right / self.total if self.total else None


@dataclass
class Figures:
    """What was found in one family."""

    runs: Count = field(default_factory=Count)
    """Runs read right in every part, of those with an expectation; cases count as runs."""

    markers: Count = field(default_factory=Count)
    """Citations that name the passages expected, or are unsure where the truth cannot be known."""

    invalid: Count = field(default_factory=Count)
    """Citations expected to name nothing, and found to."""

    claims: Count = field(default_factory=Count)
    """Claims of the cases that were split off as expected, with the passages expected."""

    false_citations: int = 0
    """Citations found where none is."""

    wrong_certain: int = 0
    """Citations that name a wrong passage and say that this is certain."""

    unchecked: int = 0
    """Runs read without an expectation to compare with."""

    failures: list[str] = field(default_factory=list[str])
    """What was not as expected."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spans", type=Path, help="folder of span dumps")
    parser.add_argument("--cases", type=Path, help="file of citation cases, one JSON object a line")
    parser.add_argument("--expect", type=Path, default=EXPECTATIONS, help="folder of expectations")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    if options.spans is None and options.cases is None:
        parser.error("give --spans, --cases, or both")
    families: dict[str, Figures] = {}
    for dump in sorted(options.spans.glob("*.json")) if options.spans is not None else ():
        check_dump(dump, options.expect / dump.name, families.setdefault(family_of(dump.stem), Figures()))
    cases = Figures()
    for case in read_cases(options.cases) if options.cases is not None else ():
        check_case(case, cases)
    print(
        json.dumps(as_dict(families, cases), ensure_ascii=False)
        if options.json
        else as_table(families, cases)
    )
    return 0 if has_passed(families, cases) else 1


def family_of(stem: str) -> str:
    """Return the instrumentor's name that a dump's file name begins with."""
    two_words = ("pydantic_ai", "openai_agents")
    return next((name for name in two_words if stem.startswith(name)), stem.split("_")[0])


# Span dumps


def check_dump(dump: Path, expected: Path, figures: Figures) -> None:
    """Compare the runs of one dump with what is expected of them."""
    runs = [run for trace in SpanFile(dump).traces() for run in read_runs(trace)]
    if not expected.exists():
        figures.unchecked += len(runs)
        return
    wanted = json.loads(expected.read_text(encoding="utf-8"))["runs"]
    if len(runs) != len(wanted):
        figures.failures.append(f"{dump.stem}: {len(runs)} runs, expected {len(wanted)}")
    for n, (run, want) in enumerate(zip(runs, wanted, strict=False), start=1):
        wrong = [*compare_run(run, want), *compare_citations(citations_of(run), want["citations"], figures)]
        figures.runs.add(not wrong)
        figures.failures += [f"{dump.stem}, run {n}: {text}" for text in wrong]


def compare_run(run: Run, want: Mapping[str, Any]) -> Iterator[str]:
    """Yield what of the run is not as expected, citations aside."""
    found = inspection_to_dict(run)
    for part in ("state", "question", "answer", "passages"):
        if found[part] != want[part]:
            yield f"{part} is {found[part]!r}, expected {want[part]!r}"


def compare_citations(
    found: Sequence[ResolvedCitation], wanted: Sequence[Mapping[str, Any]], figures: Figures
) -> list[str]:
    """Return what of the citations is not as expected, and count."""
    wrong: list[str] = []
    left = list(found)
    for want in wanted:
        match = _take(left, want)
        is_right = match is not None and match.certainty == want["certainty"]
        is_right = is_right and match is not None and match.passage_id == want["passage_id"]
        (figures.invalid if want["passage_id"] is None else figures.markers).add(is_right)
        if not is_right:
            wrong.append(f"citation is {_shown(match)}, expected {dict(want)}")
            figures.wrong_certain += _is_wrong_certain(match, want)
    figures.false_citations += len(left)
    figures.wrong_certain += sum(1 for citation in left if _is_certain(citation))
    return wrong + [f"citation {_shown(citation)} is none" for citation in left]


def _take(left: list[ResolvedCitation], want: Mapping[str, Any]) -> ResolvedCitation | None:
    """Return and remove the citation at the expected place, the one with the expected passage first."""
    same = [c for c in left if want["start"] is None or (c.start, c.end) == (want["start"], want["end"])]
    match = next((c for c in same if c.passage_id == want["passage_id"]), same[0] if same else None)
    if match is not None:
        left.remove(match)
    return match


def _is_certain(citation: ResolvedCitation) -> bool:
    return citation.passage_id is not None and citation.certainty is Certainty.CERTAIN


def _is_wrong_certain(found: ResolvedCitation | None, want: Mapping[str, Any]) -> bool:
    return found is not None and _is_certain(found) and found.passage_id != want["passage_id"]


def _shown(citation: ResolvedCitation | None) -> str:
    if citation is None:
        return "missing"
    place = f"{citation.marker!r} at {citation.start}-{citation.end}"
    return f"{place} -> {citation.passage_id} ({citation.certainty}, {citation.reason})"


# Cases


def read_cases(path: Path) -> list[dict[str, Any]]:
    """Return the cases of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def check_case(case: Mapping[str, Any], figures: Figures) -> None:
    """Resolve the citations of one case and compare them with what is expected."""
    run = run_of_case(case)
    answer = run.answer or ""
    markers = find_markers(answer, run.passages, run.citations)
    claims = decompose(answer, markers)
    citations = resolve(answer, markers, claims, run.passages, passages_lost=run.passages_lost)
    wrong = [
        *_compare_markers(citations, case, figures),
        *_compare_invalid(citations, case, figures),
        *_compare_not_citations(citations, case, answer),
    ]
    figures.runs.add(not wrong)
    figures.failures += [f"{case['id']}: {text}" for text in wrong]
    by_claim = {
        claim.text: {c.passage_id for c in citations if claim.index in c.claims and c.passage_id}
        for claim in claims
    }
    for want in case["expect"]["claims"]:
        figures.claims.add(by_claim.get(want["text"]) == set(want["docs"]))


def run_of_case(case: Mapping[str, Any]) -> Run:
    """Return the case as a run; a provider's payload gives the citations that its adapter reads."""
    keys = ("id", "label", "text")
    passages = [{key: document.get(key) for key in keys} for document in case["documents"]]
    run = Run.from_dict({"id": case["id"], "answer": case["answer"], "passages": passages})
    if "structured" not in case:
        return run
    return replace(run, citations=read_structured(case).citations)


def _compare_markers(
    citations: Sequence[ResolvedCitation], case: Mapping[str, Any], figures: Figures
) -> Iterator[str]:
    """Yield the markers that are missing, false, or name other passages than expected."""
    found: dict[tuple[int, int], tuple[str, set[str]]] = {}
    for citation in citations:
        if citation.marker and "structured" not in case:
            _, ids = found.setdefault((citation.start, citation.end), (citation.marker, set()))
            ids.update([citation.passage_id] if citation.passage_id is not None else [])
    left = [found[place] for place in sorted(found)]
    for want in case["expect"]["markers"]:
        match = next((entry for entry in left if entry[0] == want["raw"]), None)
        is_right = match is not None and match[1] == set(want["docs"])
        if want["docs"]:
            figures.markers.add(is_right)
        if match is not None:
            left.remove(match)
        if not is_right:
            figures.wrong_certain += (
                match is not None and bool(match[1]) and "ambiguous" not in case["expect"]
            )
            yield f"marker {want['raw']} names {match and match[1]}, expected {want['docs']}"
    figures.false_citations += len(left)
    yield from (f"{raw} is no citation" for raw, _ in left)
    for claim in case["expect"]["claims"] if "structured" in case else ():
        ids = {c.passage_id for c in citations if [c.start, c.end] == claim["char_span"] and c.passage_id}
        figures.markers.add(ids == set(claim["docs"]))
        if ids != set(claim["docs"]):
            yield f"the range {claim['char_span']} names {ids}, expected {claim['docs']}"


def _compare_invalid(
    citations: Sequence[ResolvedCitation], case: Mapping[str, Any], figures: Figures
) -> Iterator[str]:
    for want in case["expect"]["invalid"]:
        reasons = {c.reason for c in citations if c.marker == want["raw"] and c.passage_id is None}
        is_right = bool(reasons) and want.get("reason", next(iter(reasons))) in reasons
        figures.invalid.add(is_right)
        if not is_right:
            yield f"{want['raw']} names nothing for {reasons or 'no reason'}, expected {want.get('reason')}"
    for want in case["expect"].get("ambiguous", ()):
        unsure = {
            c.passage_id for c in citations if c.marker == want["raw"] and c.certainty is Certainty.AMBIGUOUS
        }
        if unsure != set(want["candidates"]):
            yield f"{want['raw']} is ambiguous between {unsure}, expected {want['candidates']}"


def _compare_not_citations(
    citations: Sequence[ResolvedCitation], case: Mapping[str, Any], answer: str
) -> Iterator[str]:
    for text in case["expect"]["not_citations"]:
        start = answer.find(text)
        if any(c.marker and start <= c.start < start + len(text) for c in citations):
            yield f"{text!r} is taken for a citation"


# What is printed


def has_passed(families: Mapping[str, Figures], cases: Figures) -> bool:
    """Return whether the bars are met: enough runs and cases right, and nothing wrong passed off as certain."""
    runs = _total([figures.runs for figures in families.values()])
    wrong = sum(figures.wrong_certain for figures in (*families.values(), cases))
    runs_met = runs.share is None or runs.share >= RUNS_BAR
    cases_met = cases.runs.share is None or cases.runs.share >= CASES_BAR
    return runs_met and cases_met and wrong == 0


def _total(counts: Sequence[Count]) -> Count:
    return Count(sum(count.right for count in counts), sum(count.total for count in counts))


def as_dict(families: Mapping[str, Figures], cases: Figures) -> dict[str, object]:
    """Return the figures as JSON."""
    return {
        "families": {name: asdict(figures) for name, figures in families.items()},
        "cases": asdict(cases),
        "runs": asdict(_total([figures.runs for figures in families.values()])),
        "wrong_certain": sum(figures.wrong_certain for figures in (*families.values(), cases)),
        "passed": has_passed(families, cases),
    }


def as_table(families: Mapping[str, Figures], cases: Figures) -> str:
    """Return the figures as text, with what was not as expected below."""
    head = f"{'family':<14}{'runs right':>12}{'markers':>12}{'invalid':>12}{'claims':>12}{'false':>7}{'wrong, certain':>16}"
    rows = [head, *(_row(name, figures) for name, figures in families.items())]
    if cases.runs.total:
        rows.append(_row("cases", cases))
    unchecked = sum(figures.unchecked for figures in families.values())
    if unchecked:
        rows.append(f"{unchecked} runs have no expectation and were only read")
    failures = [text for figures in (*families.values(), cases) for text in figures.failures]
    return "\n".join([*rows, *failures, "passed" if has_passed(families, cases) else "failed"])


def _row(name: str, figures: Figures) -> str:
    parts = (figures.runs, figures.markers, figures.invalid, figures.claims)
    cells = "".join(f"{f'{part.right}/{part.total}' if part.total else '-':>12}" for part in parts)
    return f"{name:<14}{cells}{figures.false_citations:>7}{figures.wrong_certain:>16}"


if __name__ == "__main__":
    sys.exit(main())
