"""`citespan inspect`: how a trace was read, and why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from citespan.evaluators.command import parameters as given

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from citespan.evaluators.command.terminal import Terminal
    from citespan.evaluators.runs import Run
    from citespan.evaluators.settings import Settings
    from citespan.evaluators.sources.source import Trace

TRACE_ID = re.compile(r"[0-9a-f]{32}")
"""What a trace id looks like; anything else is the name of a file."""

SHOWN_PASSAGE, SHOWN_ANSWER = 160, 2000
"""Code points of a passage and of the answer shown on a terminal; --json has them whole."""


def inspect(
    what: Annotated[
        str,
        typer.Argument(
            metavar="FILE|TRACE_ID",
            help="A file of spans, or the id of a trace in the Phoenix project.",
            show_default=False,
        ),
    ],
    endpoint: given.EndpointOption = None,
    project: given.ProjectOption = None,
    reading_rules: given.RulesOption = None,
    as_json: given.JsonOption = False,
) -> None:
    """Show how a trace was read: question, answer, passages, citations, and how sure that is.

    Nothing is judged and nothing is written.
    With several runs, the JSON object is about the one read best, and lists all of them under "runs".
    """
    from citespan.evaluators.command.terminal import Terminal
    from citespan.evaluators.errors import InputError
    from citespan.evaluators.reading.inspection import inspections_to_dict
    from citespan.evaluators.reading.reader import read_runs
    from citespan.evaluators.settings import Settings

    terminal = Terminal(as_json=as_json)
    settings = Settings.load(
        endpoint=endpoint,
        project=project,
        reading_rules=None if reading_rules is None else str(reading_rules),
    )
    rules = settings.rules
    traces = _traces(what, settings)
    runs = [(trace, run) for trace in traces for run in read_runs(trace, rules)]
    if not runs:
        raise InputError(
            f"{what} holds no run that citespan can read: {len(traces)} traces, and none has one"
        )
    if as_json:
        terminal.write_json(f"{terminal.dump(inspections_to_dict([run for _, run in runs]))}\n")
        return
    for trace, run in runs:
        _print(terminal, trace, run)


def _traces(what: str, settings: Settings) -> Sequence[Trace]:
    from pathlib import Path

    from citespan.evaluators.phoenix.client import PhoenixClient
    from citespan.evaluators.phoenix.connection import Connection
    from citespan.evaluators.sources.phoenix import PhoenixSource
    from citespan.evaluators.sources.spanfile import SpanFile

    if TRACE_ID.fullmatch(what.lower()) is None or Path(what).exists():
        return list(SpanFile(Path(what)).traces())
    with PhoenixClient(Connection.from_settings(settings)) as client:
        source = PhoenixSource(client, client.project(settings.project), trace_ids=[what.lower()])
        return list(source.traces())


def _print(terminal: Terminal, trace: Trace, run: Run) -> None:
    from rich.rule import Rule
    from rich.table import Table
    from rich.text import Text

    from citespan.evaluators.command.terminal import printable

    terminal.out.print(Rule(Text(printable(run.id), style="dim"), align="left", style="dim"))
    if trace.url is not None:
        terminal.out.print(Text(trace.url, style="dim"), soft_wrap=True)
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(ratio=1)
    state = Text("is judged", style="green") if run.state is None else Text(run.state, style="bold yellow")
    facts.add_row("state", state)
    facts.add_row("read", f"{run.resolution}{''.join(f' · {reason}' for reason in run.reasons)}")
    facts.add_row("question", _text(run.question, SHOWN_ANSWER))
    facts.add_row("answer", _text(run.answer, SHOWN_ANSWER))
    lost = f" ({run.passages_lost} more were not recorded)" if run.passages_lost else ""
    facts.add_row("passages", f"{len(run.passages)}{lost}")
    for passage in run.passages:
        name = f"[{passage.label}] {passage.id}" if passage.label else passage.id
        facts.add_row("", Text.assemble((f"{printable(name)} ", "cyan"), _text(passage.text, SHOWN_PASSAGE)))
    for name, row in _citations(run):
        facts.add_row(name, row)
    terminal.out.print(facts)
    terminal.out.print()


def _citations(run: Run) -> list[tuple[str, RenderableType]]:
    from rich.text import Text

    from citespan.evaluators.command.terminal import printable
    from citespan.evaluators.reading.inspection import citations_of

    citations = citations_of(run)
    rows: list[tuple[str, RenderableType]] = [("citations", str(len({citation.n for citation in citations})))]
    for citation in citations:
        found = citation.passage_id or "names no passage of this run"
        why = f" ({citation.reason})" if citation.reason else ""
        line = Text.assemble(
            (f"{printable(citation.marker)} ", "cyan"),
            f"at {citation.start} → {printable(found)}, {citation.certainty}{why}",
            style="" if citation.passage_id else "red",
        )
        rows.append(("", line))
    return rows


def _text(text: str | None, most: int) -> Text:
    from rich.text import Text

    from citespan.evaluators.command.terminal import printable

    if text is None:
        return Text("not recorded", style="yellow")
    line = printable(" ".join(text.split()))
    return Text(line if len(line) <= most else f"{line[:most]}… ({len(text)} characters)")
