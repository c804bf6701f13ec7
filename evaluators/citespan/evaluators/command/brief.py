"""Runs at a glance: one line each, a mark for each claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from citespan.evaluators.analysis.labeltable import LabelRow
from citespan.evaluators.analysis.report import LABEL_STYLES
from citespan.evaluators.command.labels import SYMBOLS
from citespan.evaluators.command.terminal import printable
from citespan.evaluators.measures import Ratio
from citespan.evaluators.verdicts import Label

__all__ = ["badness", "print_brief", "print_legend"]

MARKS_WIDTH = 8
"""Columns kept for the marks, so that the questions of most runs stand under one another."""


def print_legend(console: Console) -> None:
    """Print what the marks mean."""
    words = [Text(f"{mark} {label}", LABEL_STYLES[label]) for label, mark in SYMBOLS.items()]
    console.print("Each mark is a claim:")
    console.print(Text(" ").join(words))
    console.print()


def print_brief(console: Console, rows: Sequence[LabelRow], measures: Mapping[str, Ratio] | None) -> None:
    """Print one run on one line."""
    first = rows[0]
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(no_wrap=True, min_width=MARKS_WIDTH)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column(no_wrap=True, justify="right")
    question = printable(" ".join((first.question or "(no question recorded)").split()))
    table.add_row(_marks(rows), question, _outcome(first, measures))
    console.print(table)


def badness(rows: Sequence[LabelRow]) -> tuple[int, int]:
    """Return how much a run wants a look: its claims with a failure, then those that a passage contradicts."""
    contradicted = sum(row.label is Label.CONTRADICTED for row in rows)
    return sum(row.failure is not None for row in rows), contradicted


def _marks(rows: Sequence[LabelRow]) -> Text:
    labels = [row.label for row in rows if row.label is not None]
    return Text.assemble(*((SYMBOLS[label], LABEL_STYLES[label]) for label in labels))


def _outcome(first: LabelRow, measures: Mapping[str, Ratio] | None) -> Text:
    if first.state is not None and first.state.stops_judging:
        return Text(f"not judged: {first.state}", style=LABEL_STYLES[Label.UNJUDGED])
    support = None if measures is None else measures["support"]
    if support is None or not support.denominator:
        return Text("nothing cited", style="dim")
    return Text(f"{support.numerator}/{support.denominator} supported", style="dim")
