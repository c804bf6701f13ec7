"""`citespan report`: the measures of a stored label table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from citespan.evaluators.command import parameters as given


def report(
    table: Annotated[
        Path, typer.Argument(help="A label table: .jsonl, .csv or .parquet.", show_default=False)
    ],
    as_json: given.JsonOption = False,
    show: given.ShowOption = given.Show.NONE,
    min_support: given.MinSupport = None,
    min_coverage: given.MinCoverage = None,
    min_completeness: given.MinCompleteness = None,
    min_validity: given.MinValidity = None,
    max_contradicted: given.MaxContradicted = None,
    max_unjudged: given.MaxUnjudged = None,
) -> None:
    """Print the measures of a label table, and check gates on them.

    A label table outlives the traces it came from, so releases are gated on it.
    """
    from citespan.evaluators.analysis.labeltable import runs_of
    from citespan.evaluators.analysis.tablefile import read_table
    from citespan.evaluators.command.results import Results, Wanted
    from citespan.evaluators.errors import InputError

    gates = given.gates(
        support=min_support,
        coverage=min_coverage,
        completeness=min_completeness,
        validity=min_validity,
        contradicted=max_contradicted,
        unjudged=max_unjudged,
    )
    runs = runs_of(read_table(table))
    first = next(runs, None)
    if first is None:
        raise InputError(f"{table} holds no rows: write a table with citespan score or evaluate --output")
    with Results(Wanted(as_json, show, gates=gates)) as results:
        results.add_tabled(first)
        for run in runs:
            results.add_tabled(run)
    raise typer.Exit(results.exit_code)
