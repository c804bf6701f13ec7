"""How well answers are split into claims: against the cases' claims, and by what splitting does to verdicts.

    python bench/splitting.py --cases tests/data/cases/citation_cases.jsonl --data FOLDER

Over the cases it prints how many expected claims come out so, claims that are not in the answer, words of the
answer that no claim holds, and claims without a word. Over a folder of labelled claims (JSON Lines with `claim`,
`passages`, `label`) it prints how many supported sentences, judged so as a whole, splitting turns into some claim
that is not. It exits with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from citespan.evaluators.claims import Claim, Marker
from citespan.evaluators.decompose import decompose
from citespan.evaluators.decompose.materiality import is_pointer
from citespan.evaluators.decompose.sentences import split_sentences
from citespan.evaluators.judges.judge import Judge, JudgeRequest
from citespan.evaluators.judges.registry import load_judge
from citespan.evaluators.layout.blocks import BlockKind
from citespan.evaluators.layout.regions import read_layout
from citespan.evaluators.markers import find_markers
from citespan.evaluators.options import Splitting
from citespan.evaluators.verdicts import Label
from citespan.tracer.passages import Passage

TURNED_BAR = 0.02
"""Largest share of supported sentences that splitting may turn into some claim that is not supported."""

_WORD = re.compile(r"[^\W_]+")


@dataclass
class CaseFigures:
    """What came of the cases."""

    expected: int = 0
    """Claims expected."""

    agreed: int = 0
    """Expected claims that came out with exactly that text."""

    extra: int = 0
    """Claims that came out and were not expected."""

    not_in_answer: int = 0
    """Claims with a word that the answer does not have."""

    dropped_words: int = 0
    """Words of the answer outside markers, code, header rows, reference lists and pointers that no claim holds."""

    without_words: int = 0
    """Claims without a letter or digit."""

    failures: list[str] = field(default_factory=list[str])
    """What was not as expected."""

    def has_passed(self) -> bool:
        """Return whether every claim agrees and none of the faults occurs."""
        faults = self.extra + self.not_in_answer + self.dropped_words + self.without_words
        return self.agreed == self.expected and faults == 0


@dataclass
class DataFigures:
    """What splitting does to labelled sentences."""

    supported: int = 0
    """Rows that people labelled supported."""

    split: int = 0
    """Those that are split into more claims than sentences."""

    whole: int = 0
    """Those whose sentences, unsplit, the judge finds supported."""

    turned: int = 0
    """Of the last, those that splitting turns into some claim that is not supported."""

    @property
    def share(self) -> float | None:
        """`turned / whole`, or `None` over nothing."""
        return self.turned / self.whole if self.whole else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=Path, required=True, help="file of cases, one JSON object a line")
    parser.add_argument("--data", type=Path, help="folder of labelled claims, JSON Lines")
    parser.add_argument("--judge", default="lexical", help="registry name of the judge for --data")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    cases = CaseFigures()
    for case in read_lines(options.cases):
        check_case(case, cases)
    sets: dict[str, DataFigures] = {}
    if options.data is not None:
        judge = load_judge(options.judge)
        for file in sorted(options.data.glob("*.jsonl")):
            sets[file.stem] = check_set(read_lines(file), judge)
    print(json.dumps(as_dict(cases, sets), ensure_ascii=False) if options.json else as_table(cases, sets))
    return 0 if has_passed(cases, sets) else 1


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def check_case(case: dict[str, Any], figures: CaseFigures) -> None:
    """Split one case's answer and count."""
    answer = case["answer"]
    passages = [Passage(item["id"], item["text"], item.get("label")) for item in case["documents"]]
    markers = find_markers(answer, passages)
    claims = decompose(answer, markers)
    left = [claim.text for claim in claims]
    for expected in (claim["text"] for claim in case["expect"]["claims"]):
        figures.expected += 1
        if expected in left:
            left.remove(expected)
            figures.agreed += 1
        else:
            figures.failures.append(f"{case['id']}: no claim {expected!r}")
    figures.extra += len(left)
    figures.failures += [f"{case['id']}: {text!r} was not expected" for text in left]
    dropped = list(dropped_words(answer, markers, claims))
    figures.dropped_words += len(dropped)
    figures.failures += [f"{case['id']}: {word!r} is in no claim" for word in dropped]
    said = set(words(answer))
    for claim in claims:
        figures.without_words += not words(claim.text)
        if not said.issuperset(words(claim.text)):
            figures.not_in_answer += 1
            figures.failures.append(f"{case['id']}: {claim.text!r} is not in the answer")


def words(text: str) -> list[str]:
    """Return the words of `text`, lower case."""
    return [match[0].casefold() for match in _WORD.finditer(text)]


def dropped_words(answer: str, markers: Sequence[Marker], claims: Sequence[Claim]) -> Iterator[str]:
    """Yield the words of the answer that should be in a claim and are in none."""
    taken = bytearray(len(answer))
    layout = read_layout(answer)
    ranges = [(claim.start, claim.end) for claim in claims]
    ranges += [(marker.start, marker.end) for marker in markers]
    ranges += [
        (block.start, block.end)
        for block in layout.blocks
        if block.kind in (BlockKind.CODE, BlockKind.HEADER_ROW, BlockKind.REFERENCE)
    ]
    ranges += [
        (sentence.start, sentence.end)
        for sentence in split_sentences(answer, markers)
        if is_pointer(sentence.masked, language="en")
    ]
    for start, end in ranges:
        taken[start:end] = b"\1" * (end - start)
    joints = ("and", "but")  # between two claims of a sentence
    for match in _WORD.finditer(answer):
        if not any(taken[match.start() : match.end()]) and match[0].casefold() not in joints:
            yield match[0]


def check_set(rows: Sequence[dict[str, Any]], judge: Judge) -> DataFigures:
    """Judge the supported rows of one set, whole and split."""
    figures = DataFigures()
    for row in rows:
        if row["label"] != "supported":
            continue
        figures.supported += 1
        whole = decompose(row["claim"], (), splitting=Splitting.SENTENCE)
        parts = decompose(row["claim"], ())
        is_split = len(parts) > len(whole)
        figures.split += is_split
        passages = tuple(Passage(f"p{n}", text) for n, text in enumerate(row["passages"], 1))
        if whole and all_supported(whole, passages, row, judge):
            figures.whole += 1
            figures.turned += is_split and not all_supported(parts, passages, row, judge)
    return figures


def all_supported(
    claims: Sequence[Claim], passages: tuple[Passage, ...], row: dict[str, Any], judge: Judge
) -> bool:
    """Return whether the judge finds every claim supported by the passages together."""
    requests = [JudgeRequest(claim.text, passages, claim.sentence, row.get("question")) for claim in claims]
    return all(verdict.label is Label.SUPPORTED for verdict in judge.judge(requests))


def total(sets: dict[str, DataFigures]) -> DataFigures:
    """Return the figures of all sets together."""
    return DataFigures(
        sum(figures.supported for figures in sets.values()),
        sum(figures.split for figures in sets.values()),
        sum(figures.whole for figures in sets.values()),
        sum(figures.turned for figures in sets.values()),
    )


def has_passed(cases: CaseFigures, sets: dict[str, DataFigures]) -> bool:
    """Return whether every bar is met."""
    share = total(sets).share
    return cases.has_passed() and (share is None or share <= TURNED_BAR)


def as_dict(cases: CaseFigures, sets: dict[str, DataFigures]) -> dict[str, object]:
    """Return the figures as JSON."""
    shown = {name: asdict(figures) | {"share": figures.share} for name, figures in sets.items()}
    pooled = total(sets)
    return {
        "cases": asdict(cases),
        "sets": shown,
        "pooled": asdict(pooled) | {"share": pooled.share},
        "bar": TURNED_BAR,
        "passed": has_passed(cases, sets),
    }


def as_table(cases: CaseFigures, sets: dict[str, DataFigures]) -> str:
    """Return the figures as text, with what was not as expected below."""
    lines = [
        f"claims as expected        {cases.agreed}/{cases.expected}",
        f"claims not expected       {cases.extra}",
        f"claims not in the answer  {cases.not_in_answer}",
        f"words in no claim         {cases.dropped_words}",
        f"claims without a word     {cases.without_words}",
        *cases.failures,
    ]
    if sets:
        lines.append(f"{'set':<36}{'supported':>10}{'split':>7}{'whole':>7}{'turned':>7}")
        for name, figures in [*sets.items(), ("together", total(sets))]:
            row = f"{figures.supported:>10}{figures.split:>7}{figures.whole:>7}{figures.turned:>7}"
            lines.append(f"{name:<36}{row}")
        share = total(sets).share
        lines.append(
            f"turned by splitting: {'not measured' if share is None else f'{share:.2%}'}, bar {TURNED_BAR:.0%}"
        )
    return "\n".join([*lines, "passed" if has_passed(cases, sets) else "failed"])


if __name__ == "__main__":
    sys.exit(main())
