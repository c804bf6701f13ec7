"""`citespan compare`: two label tables of the same runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citespan.evaluators.command import parameters as given

if TYPE_CHECKING:
    from rich.console import Console

    from citespan.evaluators.analysis.compare import Comparison, Difference
    from citespan.evaluators.measures import Ratio


def compare(
    first: Annotated[Path, typer.Argument(help="The label table to start from.", show_default=False)],
    second: Annotated[Path, typer.Argument(help="The label table that is new.", show_default=False)],
    by_question: Annotated[
        bool, typer.Option("--by-question", help="Match runs by their question instead of their id.")
    ] = False,
    as_json: given.JsonOption = False,
    max_drop: Annotated[
        float | None,
        typer.Option(
            "--max-drop",
            min=0.0,
            max=1.0,
            metavar="SHARE",
            help="Fail if pooled support is lower in the second table by more than this.",
            rich_help_panel=given.GATES,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Compare two label tables of the same runs: measures with 95 % intervals, and the claims that changed."""
    from citespan.evaluators.analysis.compare import Match
    from citespan.evaluators.analysis.compare import compare as compare_tables
    from citespan.evaluators.analysis.labeltable import runs_of
    from citespan.evaluators.analysis.tablefile import read_table
    from citespan.evaluators.command.terminal import Terminal

    terminal = Terminal(as_json=as_json)
    comparison = compare_tables(
        runs_of(read_table(first)),
        runs_of(read_table(second)),
        match=Match.QUESTION if by_question else Match.ID,
    )
    if as_json:
        terminal.write_json(f"{terminal.dump(comparison.to_dict())}\n")
    else:
        _print(terminal.out, comparison)
    if max_drop is not None:
        found = comparison.differences["support"]
        is_good = found.change is not None and -found.change <= max_drop
        outcome = "passed" if is_good else "FAILED"
        figures = f"{_value(found.first)} then {_value(found.second)}"
        terminal.say_result(
            f"gate {outcome}: support drops by at most {max_drop:g} ({figures})", is_good=is_good
        )
        raise typer.Exit(0 if is_good else 1)


def _print(console: Console, comparison: Comparison) -> None:
    from rich.text import Text

    runs = f"{comparison.runs} runs judged in both tables"
    apart = f"{comparison.only_first} only in the first, {comparison.only_second} only in the second"
    console.print(Text(f"Compared over {runs}", style="bold"))
    console.print(Text(f"{apart}, {comparison.not_judged} not judged in one of them", style="dim"))
    _print_measures(console, comparison)
    _print_claims(console, comparison)
    console.print(
        Text(
            f"± is half of a 95 % interval with runs as the unit; with {comparison.runs} runs, small changes "
            "may be chance. A change of label says nothing of which judge or app is right.",
            style="dim",
        )
    )


def _print_measures(console: Console, comparison: Comparison) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("measure", style="bold", no_wrap=True)
    for heading in ("first", "second", "change"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for name, difference in comparison.differences.items():
        table.add_row(name, _value(difference.first), _value(difference.second), *_change(difference))
    console.print(table)
    console.print()


def _change(difference: Difference) -> tuple[str, str]:
    if difference.change is None:
        return "", difference.first.reason or difference.second.reason or "over nothing"
    margin = "" if difference.margin is None else f" ± {difference.margin:.2f}"
    verdict = "" if not difference.change else "may be chance" if difference.could_be_chance else "a change"
    return f"{difference.change:+.2f}{margin}", verdict


def _print_claims(console: Console, comparison: Comparison) -> None:
    from rich.table import Table
    from rich.text import Text

    from citespan.evaluators.analysis.report import LABEL_STYLES
    from citespan.evaluators.command.terminal import printable

    heading = f"{len(comparison.changed)} of {comparison.claims} claims in both tables changed their label"
    console.print(Text(heading, style="bold"))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for claim in comparison.changed:
        move = Text.assemble(
            (claim.before, LABEL_STYLES[claim.before]), " →\n", (claim.after, LABEL_STYLES[claim.after])
        )
        why = Text(printable(" ".join((claim.reason or "").split())), style="dim")
        table.add_row(move, Text.assemble((printable(claim.claim), "bold"), "\n", why))
    console.print(table)
    console.print()


def _value(ratio: Ratio) -> str:
    if ratio.value is None:
        return "–"
    return f"{ratio.numerator}/{ratio.denominator} = {ratio.value:.2f}"
