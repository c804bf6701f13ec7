"""`citespan demo`: the whole product on real parts."""

from __future__ import annotations

import json
import os.path
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from citespan.evaluators.command import parameters as given
from citespan.evaluators.command.serve import HomeOption, PortOption

if TYPE_CHECKING:
    from pathlib import Path

    from citespan.evaluators.phoenix.client import PhoenixClient
    from citespan.evaluators.phoenix.records import Project
    from citespan.evaluators.phoenix.server import PhoenixServer

PROJECT = "citespan-demo"
"""Name of the Phoenix project that the demo fills."""

QUIET_SECONDS, MAX_WAIT_SECONDS = 1.0, 60.0
"""Phoenix stores spans some time after it took them: all are there once none has come for so long."""


def demo(
    port: PortOption = None,
    home: HomeOption = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop Phoenix at the end instead of leaving it running.")
    ] = False,
    as_json: given.JsonOption = False,
    output: given.OutputOption = None,
    overwrite: given.OverwriteOption = False,
    show: given.ShowOption = given.Show.BRIEF,
) -> None:
    """Start a local Phoenix, trace a small RAG app into it, judge its citations and show the verdicts.

    Phoenix keeps running, for a look at the verdicts beside the passages; the last lines say where it is
    and how to stop it.
    """
    from datetime import datetime, timedelta
    from pathlib import Path

    from citespan.evaluators.command.results import Wanted
    from citespan.evaluators.command.sourced import evaluate_project
    from citespan.evaluators.command.terminal import Terminal
    from citespan.evaluators.demo import check_installed, run_example
    from citespan.evaluators.periodic.plan import Plan
    from citespan.evaluators.phoenix.client import PhoenixClient
    from citespan.evaluators.phoenix.connection import Connection
    from citespan.evaluators.settings import Settings

    terminal = Terminal(as_json=as_json)
    settings = Settings.load(environ={}, home=None if home is None else str(home), project=PROJECT)
    wanted = Wanted(as_json=as_json, show=show, output=output, overwrite=overwrite)
    check_installed()
    terminal.say("Starting Phoenix ...", style="dim")
    with _phoenix(Path(settings.home) / "demo", port) as phoenix:
        url = phoenix.url
        begun = datetime.now().astimezone() - timedelta(seconds=1)
        terminal.say(f"Phoenix runs at {url}. Asking the example app its questions ...", style="dim")
        terminal.say(run_example(url, PROJECT), style="dim")
        with PhoenixClient(Connection(url)) as client:
            project = _filled_project(client)
        plan = Plan(
            project=PROJECT,
            since=begun,
            settle_seconds=0.0,
            claim_spans_per_second=None,
            is_single_pass=True,
            shows_unchanged=True,
            with_human_labels=True,
        )
        code = evaluate_project(settings.model_copy(update={"endpoint": url}), plan, wanted)
        if not once:
            phoenix.leave_running()
            for line in _what_next(f"{url}/projects/{project.id}/traces", url, phoenix.process_id):
                terminal.say(line)
    raise typer.Exit(code)


def _what_next(traces_url: str, url: str, process_id: int) -> tuple[str, ...]:
    """Return the last lines of the demo: where to look, what to try, how to stop."""
    from citespan.evaluators.demo import find_example

    ask = f"{_short(sys.executable)} {_short(find_example())}"
    return (
        "",
        f"Look      {traces_url}",
        "          open a trace, then a claim: the claim, the passage it cites and the verdict stand together",
        f'Ask       PHOENIX_COLLECTOR_ENDPOINT={url} PHOENIX_PROJECT={PROJECT} {ask} "Your question"',
        f"Evaluate  {_short(sys.executable)} -m citespan evaluate --endpoint {url} --project {PROJECT}",
        f"Stop      kill {process_id}",
    )


def _short(path: str | Path) -> str:
    """Return the shorter of the ways to write a path, seen from the current folder."""
    return min(str(path), os.path.relpath(path), key=len)


@dataclass(frozen=True, slots=True)
class _Phoenix:
    """A local Phoenix: started for this demo, or left running by an earlier one."""

    url: str
    process_id: int
    server: PhoenixServer | None

    def leave_running(self) -> None:
        """Do not stop it at the end."""
        if self.server is not None:
            self.server.detach()


@contextmanager
def _phoenix(folder: Path, port: int | None) -> Generator[_Phoenix]:
    """Provide a local Phoenix, and stop it at the end if it was started here.

    One that an earlier demo left running is used again: two servers on one database would harm it.
    """
    from citespan.evaluators.phoenix.server import PhoenixServer

    note = folder / "running.json"
    running = _running(note)
    if running is not None:
        yield running
        return
    with PhoenixServer(folder, port=port) as server:
        started = _Phoenix(server.url, server.process_id or 0, server)
        note.write_text(json.dumps({"url": started.url, "process_id": started.process_id}), encoding="utf-8")
        yield started


def _running(note: Path) -> _Phoenix | None:
    """Return the Phoenix that a note is about, if it still answers."""
    from citespan.evaluators.errors import ServerError
    from citespan.evaluators.phoenix.client import PhoenixClient
    from citespan.evaluators.phoenix.connection import Connection

    try:
        data = json.loads(note.read_text(encoding="utf-8"))
        found = _Phoenix(str(data["url"]), int(data["process_id"]), None)
        with PhoenixClient(Connection(found.url, timeout_seconds=5.0), retries=0) as client:
            client.version()
    except (OSError, ValueError, LookupError, TypeError, ServerError):
        return None
    return found


def _filled_project(client: PhoenixClient) -> Project:
    """Return the demo's project, once it is there and no span has come for a while."""
    from citespan.evaluators.errors import NotFound

    deadline = time.monotonic() + MAX_WAIT_SECONDS
    spans, since = 0, time.monotonic()
    while True:
        now = time.monotonic()
        try:
            project = client.project(PROJECT)
        except NotFound:
            if now > deadline:
                raise
        else:
            found = sum(len(ids) for batch in client.span_ids_by_trace(project) for ids in batch.values())
            if found != spans:
                spans, since = found, now
            elif now - since > QUIET_SECONDS or now > deadline:
                return project
        time.sleep(0.1)
