"""Measure a judge on human labels: agreement, attention to one-word edits, speed, memory.

    python bench/judges.py --data FOLDER --judge NAME [--limit N] [--json] [--markdown FILE]

FOLDER holds one JSONL file per set, each line `{"id", "claim", "passages": [...], "label", "question"?}`. A row's
passages are judged together (policy `union`). Nothing is tuned here: a judge's thresholds are those it comes with.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from edits import EDITS, edit, names_in
from figures import balanced_accuracy, bootstrap_interval, calibration_error, macro_f1
from floors import FLOORS
from rows import RAG_SETS, Row, read_sets

from citespan.evaluators.errors import CitespanError
from citespan.evaluators.judges.judge import Judge, JudgeRequest
from citespan.evaluators.judges.registry import load_judge
from citespan.evaluators.verdicts import Label, Verdict
from citespan.tracer.passages import Passage


@dataclass(frozen=True, slots=True)
class SetFigures:
    """One judge on one set."""

    n: int
    """Rows judged; `unjudged` ones are not among them."""

    unjudged: int
    """Rows the judge could not judge."""

    balanced_accuracy: float | None
    """Supported against the rest."""

    ci95: tuple[float, float] | None
    """Bootstrap interval of the balanced accuracy."""

    macro_f1: float
    """Over supported and the rest."""

    fine_f1: float | None
    """Over the set's own three or four labels; `None` for sets of two."""

    pairs_per_second: float
    """Rows a second: of processor time where the judge runs here, of wall clock where it asks a server."""

    recall: float
    """Share of the supported rows that pass."""

    scores: tuple[tuple[float, bool], ...]
    """Score and whether people say supported, for the calibration error."""


@dataclass(slots=True)
class Figures:
    """One judge on a folder."""

    judge: str
    """Its name."""

    sets: dict[str, SetFigures] = field(default_factory=dict[str, SetFigures])
    """Figures by set."""

    edits: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Per edit: edited claims that still pass, and edited claims."""

    @property
    def headline_sets(self) -> list[str]:
        """The RAG sets of the folder, or all its sets where it has none."""
        return [name for name in self.sets if name in RAG_SETS] or list(self.sets)

    @property
    def macro_balanced_accuracy(self) -> float | None:
        """Mean balanced accuracy over the headline sets."""
        figures = [self.sets[name].balanced_accuracy for name in self.headline_sets]
        known = [figure for figure in figures if figure is not None]
        return fmean(known) if known else None

    @property
    def calibration_error(self) -> float | None:
        """Expected calibration error of the score over the headline sets."""
        pairs = [pair for name in self.headline_sets for pair in self.sets[name].scores]
        return calibration_error([score for score, _ in pairs], [true for _, true in pairs])

    def to_dict(self) -> dict[str, object]:
        """Return the figures as the JSON that `--json` prints."""
        return {
            "judge": self.judge,
            "sets": {
                name: {
                    "n": figures.n,
                    "balanced_accuracy": _rounded(figures.balanced_accuracy),
                    "ci95": None if figures.ci95 is None else [round(end, 4) for end in figures.ci95],
                    "macro_f1": round(figures.macro_f1, 4),
                    "pairs_per_second": round(figures.pairs_per_second, 1),
                }
                for name, figures in self.sets.items()
            },
            "edits": {
                name: round(passed / total, 4) if total else None
                for name, (passed, total) in self.edits.items()
            },
            "macro_balanced_accuracy": _rounded(self.macro_balanced_accuracy),
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parse(arguments)
    try:
        sets = read_sets(options.data, options.limit)
        judge = load_judge(options.judge)
    except (OSError, ValueError, CitespanError) as error:
        print(f"bench/judges.py: {error}", file=sys.stderr)
        return 2
    figures = measure(judge, options.judge, sets)
    if options.json and options.markdown is None:
        print(json.dumps(figures.to_dict()))
        return 0
    beside = [figures, *(measure(floor, floor.card.name, sets) for floor in FLOORS)]
    text = report(beside)
    if options.markdown is not None:
        options.markdown.write_text(text, "utf-8")
    print(json.dumps(figures.to_dict()) if options.json else text)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of JSONL files, one per set")
    parser.add_argument("--judge", default="lexical", help="name in the registry, default lexical")
    parser.add_argument("--limit", type=int, help="at most so many rows of each set")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there too")
    return parser.parse_args(arguments)


def measure(judge: Judge, name: str, sets: dict[str, list[Row]]) -> Figures:
    """Return the figures of one judge on all sets, edits included; progress goes to stderr."""
    figures = Figures(name, edits=dict.fromkeys(EDITS, (0, 0)))
    for set_name, rows in sets.items():
        print(f"{name}: {set_name}", file=sys.stderr)
        clock = time.process_time if judge.card.sends_text_to is None else time.perf_counter
        started = clock()
        verdicts = judge.judge([_request(row, row.claim) for row in rows])
        seconds = clock() - started
        figures.sets[set_name] = _agreement(rows, verdicts, seconds)
        for kind, (passed, total) in _edited(judge, rows, verdicts).items():
            before = figures.edits[kind]
            figures.edits[kind] = before[0] + passed, before[1] + total
    return figures


def _request(row: Row, claim: str) -> JudgeRequest:
    passages = tuple(Passage(str(number), text) for number, text in enumerate(row.passages, start=1))
    return JudgeRequest(claim, passages, question=row.question, run_id=row.id)


def _agreement(rows: Sequence[Row], verdicts: Sequence[Verdict], seconds: float) -> SetFigures:
    judged = [
        (row, verdict)
        for row, verdict in zip(rows, verdicts, strict=True)
        if verdict.label is not Label.UNJUDGED
    ]
    said = [verdict.label for _, verdict in judged]
    truth = [row.label for row, _ in judged]
    said_yes = [label is Label.SUPPORTED for label in said]
    true_yes = [label is Label.SUPPORTED for label in truth]
    labels = [label for label in Label if label in truth]
    binary = [Label.SUPPORTED, Label.UNSUPPORTED]
    return SetFigures(
        n=len(judged),
        unjudged=len(rows) - len(judged),
        balanced_accuracy=balanced_accuracy(said_yes, true_yes),
        ci95=bootstrap_interval(said_yes, true_yes),
        macro_f1=macro_f1(
            [binary[not yes] for yes in said_yes], [binary[not yes] for yes in true_yes], binary
        ),
        fine_f1=macro_f1(said, truth, labels) if len(labels) > 2 else None,
        pairs_per_second=len(rows) / seconds if seconds else 0.0,
        recall=fmean(yes for yes, true in zip(said_yes, true_yes, strict=True) if true)
        if any(true_yes)
        else 0.0,
        scores=tuple(
            (verdict.score, row.label is Label.SUPPORTED)
            for row, verdict in judged
            if verdict.score is not None
        ),
    )


def _edited(judge: Judge, rows: Sequence[Row], verdicts: Sequence[Verdict]) -> dict[str, tuple[int, int]]:
    """Return how many edited claims still pass: from supported rows that pass unedited, one edit each."""
    true = [row for row in rows if row.label is Label.SUPPORTED]
    names = sorted({name for row in true for name in names_in(row.claim)})
    passing = [
        row
        for row, verdict in zip(rows, verdicts, strict=True)
        if row.label is Label.SUPPORTED and verdict.label is Label.SUPPORTED
    ]
    results: dict[str, tuple[int, int]] = {}
    for kind in EDITS:
        edited = [
            (row, edit(kind, row.claim, row.passages, seed=row.id, other_names=names)) for row in passing
        ]
        requests = [_request(row, claim) for row, claim in edited if claim is not None]
        passed = sum(verdict.label is Label.SUPPORTED for verdict in judge.judge(requests))
        results[kind] = passed, len(requests)
    return results


def report(beside: Sequence[Figures]) -> str:
    """Return the tables in Markdown: the first judge in full, the others beside it."""
    first = beside[0]
    lines = [
        f"| set | n | {first.judge} | 95 % interval | macro-F1 | 3/4-way F1 | true claims passed | pairs/s | "
        + " | ".join(figures.judge for figures in beside[1:])
        + " |",
        "| --- |" + " ---: |" * (7 + len(beside) - 1),
    ]
    for name, figures in first.sets.items():
        interval = "" if figures.ci95 is None else f"{_short(figures.ci95[0])} to {_short(figures.ci95[1])}"
        mark = " *" if name in first.headline_sets else ""
        cells = [
            name + mark,
            str(figures.n),
            _short(figures.balanced_accuracy),
            interval,
            _short(figures.macro_f1),
            _short(figures.fine_f1),
            _short(figures.recall),
            f"{figures.pairs_per_second:.0f}",
            *(_short(other.sets[name].balanced_accuracy) for other in beside[1:]),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    macro = ["**macro over \\***", "", _short(first.macro_balanced_accuracy), "", "", "", "", ""]
    macro += [_short(other.macro_balanced_accuracy) for other in beside[1:]]
    lines += ["| " + " | ".join(macro) + " |", "", *_edit_table(beside), ""]
    judged = sum(figures.n for figures in first.sets.values())
    unjudged = sum(figures.unjudged for figures in first.sets.values())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines += [
        "Columns named after judges are balanced accuracy, supported against the rest.",
        f"Judged {judged} rows, {unjudged} unjudged; "
        f"expected calibration error over * {_short(first.calibration_error)}; peak memory {peak:.0f} MiB.",
        "",
    ]
    return "\n".join(lines)


def _edit_table(beside: Sequence[Figures]) -> list[str]:
    lines = [
        "| one edit in a true claim that passed | edited claims | "
        + " | ".join(f"{figures.judge} still passes" for figures in beside)
        + " |",
        "| --- |" + " ---: |" * (1 + len(beside)),
    ]
    for kind in EDITS:
        shares = [_share(*figures.edits[kind]) for figures in beside]
        lines.append(f"| {kind} | {beside[0].edits[kind][1]} | " + " | ".join(shares) + " |")
    return lines


def _share(passed: int, total: int) -> str:
    return f"{passed / total:.1%}" if total else "-"


def _short(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.3f}".removeprefix("0")


def _rounded(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 4)


if __name__ == "__main__":
    sys.exit(main())
