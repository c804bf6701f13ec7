"""`citespan doctor`: whether citespan can work with a Phoenix server."""

from __future__ import annotations

import typer

from citespan.evaluators.command import parameters as given

STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red", "skipped": "dim"}
"""The colour of each outcome."""


def doctor(
    endpoint: given.EndpointOption = None,
    project: given.ProjectOption = None,
    as_json: given.JsonOption = False,
) -> None:
    """Check connection, version, key, project and permission of Phoenix, and say how to mend what fails.

    Nothing is written. The key is read from PHOENIX_API_KEY.
    """
    from dataclasses import asdict

    from rich.table import Table
    from rich.text import Text

    from citespan.evaluators.command.terminal import Terminal, printable
    from citespan.evaluators.phoenix.client import PhoenixClient
    from citespan.evaluators.phoenix.connection import Connection
    from citespan.evaluators.phoenix.doctor import Outcome, check_phoenix
    from citespan.evaluators.settings import Settings

    settings = Settings.load(endpoint=endpoint, project=project)
    terminal = Terminal(as_json=as_json)
    with PhoenixClient(Connection.from_settings(settings)) as client:
        checks = check_phoenix(client, settings.project)
    if as_json:
        report = {
            "schema": 1,
            "endpoint": settings.endpoint,
            "project": settings.project,
            "checks": [asdict(check) for check in checks],
        }
        terminal.write_json(f"{terminal.dump(report)}\n")
    else:
        terminal.out.print(Text(f"Phoenix at {settings.describe_endpoint()}", style="bold"), soft_wrap=True)
        table = Table.grid(padding=(0, 2, 0, 0))
        for check in checks:
            table.add_row(
                Text(check.outcome, style=STYLES[check.outcome]), check.name, printable(check.detail)
            )
            if check.fix is not None:
                table.add_row("", Text("fix", style="dim"), printable(check.fix))
        terminal.out.print(table)
    failed = next((check for check in checks if check.outcome is Outcome.FAILED), None)
    if failed is None:
        return
    # What stands between citespan and the server is exit code 3; a project or version that is wrong is a failed check.
    raise typer.Exit(3 if failed.name in ("connection", "authentication", "permission") else 1)
