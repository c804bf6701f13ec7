"""`citespan score`: judge runs from a file, without a server."""

from __future__ import annotations

from typing import Annotated

import typer

from citespan.evaluators.command import parameters as given


def score(
    file: Annotated[
        str,
        typer.Argument(
            help="A JSON object, a list of them, or JSONL, one run each: question, answer, passages. "
            "- reads standard input.",
            show_default=False,
        ),
    ],
    judge: given.JudgeOption = None,
    citation_scope: given.ScopeOption = None,
    splitting: given.SplittingOption = None,
    label_policy: given.PolicyOption = None,
    as_json: given.JsonOption = False,
    output: given.OutputOption = None,
    overwrite: given.OverwriteOption = False,
    show: given.ShowOption = given.Show.ALL,
    skip_invalid: Annotated[
        bool,
        typer.Option("--skip-invalid", help="Set records aside that cannot be read, and exit with 4."),
    ] = False,
    min_support: given.MinSupport = None,
    min_coverage: given.MinCoverage = None,
    min_completeness: given.MinCompleteness = None,
    min_validity: given.MinValidity = None,
    max_contradicted: given.MaxContradicted = None,
    max_unjudged: given.MaxUnjudged = None,
) -> None:
    """Judge the citations of runs in a file; no server is needed.

    Prints each claim with its label, why it has it and what would mend it, then the measures.
    """
    from citespan.evaluators.command.judging import judging
    from citespan.evaluators.command.results import Results, Wanted
    from citespan.evaluators.command.runfile import read_runs_from
    from citespan.evaluators.evaluate import evaluate_all
    from citespan.evaluators.settings import Settings

    settings = Settings.load(
        judge=judge, citation_scope=citation_scope, splitting=splitting, label_policy=label_policy
    )
    gates = given.gates(
        support=min_support,
        coverage=min_coverage,
        completeness=min_completeness,
        validity=min_validity,
        contradicted=max_contradicted,
        unjudged=max_unjudged,
    )
    wanted = Wanted(as_json, show, output, overwrite, file, gates)
    with judging(settings.judge) as asked:
        invalid: list[str] = []
        runs = read_runs_from(file, set_aside=invalid.append if skip_invalid else None)
        results = Results(wanted, judge=asked, options=settings.options)
        with results, results.terminal.progress("judging", len(runs)) as advance:
            for reason in invalid:
                results.set_aside(reason)
            for evaluation in evaluate_all(runs, asked, settings.options):
                results.add(evaluation)
                advance()
    raise typer.Exit(results.exit_code)
