"""Options that say which traces are taken, when, and how much a pass may do: the same for `evaluate` and `worker`."""

from __future__ import annotations

from typing import Annotated

import typer

WHICH, WHEN, LIMITS, RUNNING = "Which traces", "When", "Limits of one pass", "Running"
EXPORTS = "What is sent elsewhere"
"""Headings of the panels in `--help`."""


def age(name: str, text: str, panel: str) -> object:
    """Return an option that takes a length of time."""
    return typer.Option(name, metavar="AGE", help=text, rich_help_panel=panel)


SampleRateOption = Annotated[
    float,
    typer.Option(
        "--sample-rate",
        min=0.0,
        max=1.0,
        metavar="SHARE",
        help="Share of the traces, chosen by trace id: a lower rate takes a part of what a higher one takes.",
        rich_help_panel=WHICH,
    ),
]
ShardOption = Annotated[
    str,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="This process's share of the traces, such as 1/3 for the first of three.",
        rich_help_panel=WHICH,
    ),
]
FilterOption = Annotated[
    str | None,
    typer.Option(
        "--filter",
        metavar="FILTER",
        help="Only traces that pass this Phoenix trace filter once they have settled, "
        "such as \"error_count == 0\" or \"metadata['tier'] == 'pro'\".",
        rich_help_panel=WHICH,
        show_default=False,
    ),
]
AlwaysOption = Annotated[
    list[str] | None,
    typer.Option(
        "--always",
        metavar="FILTER",
        help="Take a trace that passes this Phoenix trace filter though it is not sampled; may be repeated.",
        rich_help_panel=WHICH,
        show_default=False,
    ),
]
ReevaluateOption = Annotated[
    bool,
    typer.Option(
        "--reevaluate",
        help="Evaluate traces of every age again that another judge or other options evaluated; "
        "says first how many.",
        rich_help_panel=WHICH,
    ),
]
SettleOption = Annotated[
    str, age("--settle", "Take a whole trace once no new span was seen for so long.", WHEN)
]
SettleMaxOption = Annotated[
    str, age("--settle-max", "Take a trace after so long, whatever is missing.", WHEN)
]
MaxTracesOption = Annotated[
    int | None,
    typer.Option(
        "--max-traces",
        "--limit",
        min=1,
        metavar="NUMBER",
        help="Traces read; a pass goes on where the last one ended as long as its state is kept.",
        rich_help_panel=LIMITS,
        show_default=False,
    ),
]
MaxTimeOption = Annotated[
    str | None,
    typer.Option("--max-time", metavar="AGE", help="Time.", rich_help_panel=LIMITS, show_default=False),
]
MaxUsdOption = Annotated[
    float | None,
    typer.Option(
        "--max-usd",
        min=0.0,
        metavar="DOLLARS",
        help="US dollars spent by the judge.",
        rich_help_panel=LIMITS,
        show_default=False,
    ),
]
ClaimRateOption = Annotated[
    float,
    typer.Option(
        "--claim-rate",
        min=0.0,
        metavar="NUMBER",
        help="Claim spans sent a second, so that they never crowd out the app's own; 0 is no limit. "
        "20 are enough for some 5 traces a second: beyond that use --claims findings or annotations.",
        rich_help_panel=RUNNING,
    ),
]
