"""`citespan purge`: remove what citespan wrote into a Phoenix project."""

from __future__ import annotations

from typing import Annotated

import typer

from citespan.evaluators.command import parameters as given


def purge(
    endpoint: given.EndpointOption = None,
    project: given.ProjectOption = None,
    series: given.SeriesOption = None,
    trace: Annotated[
        str | None,
        typer.Option(
            "--trace", help="Only in this trace.", rich_help_panel=given.PHOENIX, show_default=False
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would be removed, and remove nothing.")
    ] = False,
    with_human: Annotated[
        bool,
        typer.Option(
            "--with-human", help="Remove also what people wrote on citespan's rows and claim spans."
        ),
    ] = False,
    as_json: given.JsonOption = False,
) -> None:
    """Remove citespan's claim spans and annotations from a project, and nothing else.

    What people wrote stays, and so does a claim span that carries it, unless --with-human says otherwise.
    """
    from dataclasses import asdict

    from citespan.evaluators.command.terminal import Terminal, count
    from citespan.evaluators.phoenix.client import PhoenixClient
    from citespan.evaluators.phoenix.connection import Connection
    from citespan.evaluators.phoenix.purge import purge as purge_project
    from citespan.evaluators.settings import Settings

    settings = Settings.load(endpoint=endpoint, project=project, series=series)
    terminal = Terminal(as_json=as_json)
    with (
        PhoenixClient(Connection.from_settings(settings)) as client,
        terminal.progress("purging", None) as advance,
    ):
        purged = purge_project(
            client,
            client.project(settings.project),
            series=settings.series,
            trace_id=trace,
            dry_run=dry_run,
            with_human=with_human,
            on_progress=lambda _: advance(),
        )
    if as_json:
        report = {"schema": 1, "project": settings.project, "dry_run": dry_run, **asdict(purged)}
        terminal.write_json(f"{terminal.dump(report)}\n")
        return
    done = "Would remove" if dry_run else "Removed"
    terminal.out.print(
        f"{done} {count(purged.claim_spans, 'claim span')} and {count(purged.rows, 'annotation')} "
        f"from {count(purged.traces, 'trace')} of project {settings.project}."
    )
    if purged.claim_spans_kept or purged.rows_kept:
        terminal.out.print(
            f"Kept {count(purged.claim_spans_kept, 'claim span')} and {count(purged.rows_kept, 'annotation')} "
            "that people wrote on: --with-human removes them too."
        )
