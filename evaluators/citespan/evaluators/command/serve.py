"""`citespan serve`: a local Phoenix."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

PortOption = Annotated[
    int | None,
    typer.Option("--port", min=1, max=65535, help="Port of the page and the API.", show_default=False),
]
HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home",
        help="Folder for the database and the log. \\[CITESPAN_HOME; default: .citespan]",
        show_default=False,
    ),
]


def serve(
    port: PortOption = None,
    home: HomeOption = None,
    host: Annotated[str, typer.Option("--host", help="Interface to listen on.")] = "127.0.0.1",
) -> None:
    """Run a local Phoenix until Ctrl-C, with SQLite, telemetry and outside resources off."""
    from citespan.evaluators.command.terminal import Terminal
    from citespan.evaluators.errors import CitespanError
    from citespan.evaluators.phoenix.server import PhoenixServer
    from citespan.evaluators.settings import DEFAULT_PORT, Settings

    settings = Settings.load(home=None if home is None else str(home))
    terminal = Terminal()
    server = PhoenixServer(Path(settings.home) / "phoenix", port=port or DEFAULT_PORT, host=host)
    with server:
        terminal.out.print(f"Phoenix runs at {server.url}", soft_wrap=True)
        terminal.say(f"Data and log: {server.folder}. Send traces there with:", style="dim")
        terminal.say(f"  export PHOENIX_COLLECTOR_ENDPOINT={server.url}", style="dim")
        terminal.say("Ctrl-C stops it.", style="dim")
        status = server.wait()
        if status:
            raise CitespanError(f"Phoenix stopped by itself with status {status}: see {server.log_path}")
