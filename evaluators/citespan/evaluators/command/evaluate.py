"""`citespan evaluate`: judge the traces of a Phoenix project, or of a file, and write the verdicts back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from citespan.evaluators.command import parameters as given


def evaluate(
    endpoint: given.EndpointOption = None,
    project: given.ProjectOption = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="WHEN",
            help="Only traces from then on: an age such as 24h or 7d, or a date.",
            rich_help_panel=given.PHOENIX,
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=1,
            metavar="NUMBER",
            help="Most traces to read.",
            rich_help_panel=given.PHOENIX,
            show_default=False,
        ),
    ] = None,
    trace: Annotated[
        list[str] | None,
        typer.Option(
            "--trace",
            metavar="ID",
            help="Only this trace; may be repeated.",
            rich_help_panel=given.PHOENIX,
            show_default=False,
        ),
    ] = None,
    series: given.SeriesOption = None,
    claims: given.ClaimsOption = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Judge and print, but write nothing back.", rich_help_panel=given.PHOENIX
        ),
    ] = False,
    spans: Annotated[
        Path | None,
        typer.Option(
            "--spans",
            metavar="FILE",
            help="Read the spans in this file instead of Phoenix, and write nothing back.",
            show_default=False,
        ),
    ] = None,
    reading_rules: given.RulesOption = None,
    judge: given.JudgeOption = None,
    citation_scope: given.ScopeOption = None,
    splitting: given.SplittingOption = None,
    label_policy: given.PolicyOption = None,
    as_json: given.JsonOption = False,
    output: given.OutputOption = None,
    overwrite: given.OverwriteOption = False,
    show: given.ShowOption = given.Show.ALL,
    show_unchanged: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Show runs too that are evaluated already; implied by --output and by gates.",
            rich_help_panel=given.OUTPUT,
        ),
    ] = False,
    min_support: given.MinSupport = None,
    min_coverage: given.MinCoverage = None,
    min_completeness: given.MinCompleteness = None,
    min_validity: given.MinValidity = None,
    max_contradicted: given.MaxContradicted = None,
    max_unjudged: given.MaxUnjudged = None,
) -> None:
    """Judge the traces of a Phoenix project and write the verdicts back.

    Runs that are evaluated already and have not changed are left alone, so this can be repeated at any time.
    The key, if Phoenix wants one, is read from PHOENIX_API_KEY.
    """
    from datetime import datetime

    from citespan.evaluators.annotate import Annotator
    from citespan.evaluators.command.moment import moment
    from citespan.evaluators.command.results import Wanted
    from citespan.evaluators.command.sourced import FileTraces, evaluate_source
    from citespan.evaluators.errors import UsageError
    from citespan.evaluators.phoenix.client import PhoenixClient
    from citespan.evaluators.phoenix.connection import Connection
    from citespan.evaluators.settings import Settings
    from citespan.evaluators.sources.phoenix import PhoenixSource

    settings = Settings.load(
        endpoint=endpoint,
        project=project,
        series=series,
        claims=claims,
        reading_rules=None if reading_rules is None else str(reading_rules),
        judge=judge,
        citation_scope=citation_scope,
        splitting=splitting,
        label_policy=label_policy,
    )
    gates = given.gates(
        support=min_support,
        coverage=min_coverage,
        completeness=min_completeness,
        validity=min_validity,
        contradicted=max_contradicted,
        unjudged=max_unjudged,
    )
    read_from = None if spans is None else str(spans)
    wanted = Wanted(as_json, show, output, overwrite, read_from, gates)
    show_unchanged = show_unchanged or output is not None or bool(gates)
    if spans is not None:
        if since or trace or series or claims:
            raise UsageError(
                "--spans reads a file: --since, --trace, --series and --claims are about Phoenix"
            )
        from_file = FileTraces(spans, limit)
        raise typer.Exit(evaluate_source(from_file, None, settings, wanted, show_unchanged=show_unchanged))
    start = None if since is None else moment(since, now=datetime.now().astimezone())
    with PhoenixClient(Connection.from_settings(settings)) as client:
        found = client.project(settings.project)
        annotator = None
        if not dry_run:
            annotator = Annotator(client, found, series=settings.series, claims_mode=settings.claims)
        source = PhoenixSource(client, found, since=start, trace_ids=trace or (), limit=limit)
        code = evaluate_source(source, annotator, settings, wanted, show_unchanged=show_unchanged)
    raise typer.Exit(code)
