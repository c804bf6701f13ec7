"""`citespan worker`: evaluate a project's traces as they settle, for as long as it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citespan.evaluators.command import choosing
from citespan.evaluators.command import parameters as given

if TYPE_CHECKING:
    from citespan.evaluators.periodic.state import SqliteState

__all__ = ["worker"]

worker = typer.Typer(name="worker", invoke_without_command=True)

StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="FILE",
        help="SQLite file that remembers how far the project was read; losing it costs a re-scan. "
        "\\[default: worker.sqlite in CITESPAN_HOME]",
        rich_help_panel=choosing.RUNNING,
        show_default=False,
    ),
]


@worker.callback()
def run(
    context: typer.Context,
    endpoint: given.EndpointOption = None,
    project: given.ProjectOption = None,
    series: given.SeriesOption = None,
    claims: given.ClaimsOption = None,
    sample_rate: choosing.SampleRateOption = 1.0,
    always: choosing.AlwaysOption = None,
    trace_filter: choosing.FilterOption = None,
    shard: choosing.ShardOption = "1/1",
    lookback: Annotated[
        str,
        choosing.age(
            "--lookback",
            "Evaluated traces up to this age are evaluated again if they change.",
            choosing.WHICH,
        ),
    ] = "48h",
    reevaluate: choosing.ReevaluateOption = False,
    settle: choosing.SettleOption = "60s",
    settle_max: choosing.SettleMaxOption = "15m",
    interval: Annotated[
        str, choosing.age("--interval", "Wait so long between two passes.", choosing.WHEN)
    ] = "10s",
    once: Annotated[
        bool,
        typer.Option(
            "--once", help="End after one whole pass, for cron and Kubernetes.", rich_help_panel=choosing.WHEN
        ),
    ] = False,
    max_traces: choosing.MaxTracesOption = None,
    max_time: choosing.MaxTimeOption = None,
    max_usd: choosing.MaxUsdOption = None,
    claim_rate: choosing.ClaimRateOption = 20.0,
    tries: Annotated[
        int,
        typer.Option(
            "--tries",
            min=1,
            metavar="NUMBER",
            help="Set a trace aside after so many failures.",
            rich_help_panel=choosing.RUNNING,
        ),
    ] = 5,
    state: StateOption = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            min=0,
            max=65535,
            metavar="PORT",
            help="Serve /healthz, /readyz and /metrics on this port; 0 takes a free one and logs it.",
            rich_help_panel=choosing.RUNNING,
            show_default=False,
        ),
    ] = None,
    metrics_host: Annotated[
        str,
        typer.Option(
            "--metrics-host",
            metavar="HOST",
            help="Interface to serve them on.",
            rich_help_panel=choosing.RUNNING,
        ),
    ] = "127.0.0.1",
    trace_project: Annotated[
        str | None,
        typer.Option(
            "--trace-project",
            metavar="NAME",
            help="Record the worker's own spans in this Phoenix project: one trace for each pass that did something.",
            rich_help_panel=choosing.EXPORTS,
            show_default=False,
        ),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option(
            "--events",
            metavar="URL",
            help="Send evaluations as OpenTelemetry events gen_ai.evaluation.result to this OTLP/HTTP receiver; "
            "headers are read from OTEL_EXPORTER_OTLP_LOGS_HEADERS.",
            rich_help_panel=choosing.EXPORTS,
            show_default=False,
        ),
    ] = None,
    event_claims: Annotated[
        bool,
        typer.Option(
            "--event-claims",
            help="Send an event for the verdict on each claim too, with the claim's text.",
            rich_help_panel=choosing.EXPORTS,
        ),
    ] = False,
    reading_rules: given.RulesOption = None,
    judge: given.JudgeOption = None,
    citation_scope: given.ScopeOption = None,
    splitting: given.SplittingOption = None,
    label_policy: given.PolicyOption = None,
) -> None:
    """Evaluate a project's traces as they settle, and write the verdicts back.

    Writes one JSON object a line to stderr. Stops cleanly on SIGTERM and Ctrl-C.
    Several workers share a project with --shard.
    The key, if Phoenix wants one, is read from PHOENIX_API_KEY.
    """
    if context.invoked_subcommand is not None:
        return
    from citespan.evaluators.command.moment import age_seconds
    from citespan.evaluators.command.working import work
    from citespan.evaluators.periodic.budget import Limits
    from citespan.evaluators.periodic.plan import Plan
    from citespan.evaluators.periodic.sampling import Sampling, Shard
    from citespan.evaluators.settings import Settings

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
        trace_project=trace_project,
        events=events,
    )
    plan = Plan(
        project=settings.project,
        series=settings.series,
        claims_mode=settings.claims,
        options=settings.options,
        rules=settings.rules,
        sampling=Sampling(sample_rate),
        shard=Shard.parse(shard),
        filter=trace_filter,
        always=tuple(always or ()),
        settle_seconds=age_seconds(settle, "--settle"),
        settle_max_seconds=age_seconds(settle_max, "--settle-max"),
        lookback_seconds=age_seconds(lookback, "--lookback"),
        is_reevaluating=reevaluate,
        is_single_pass=once,
        limits=Limits(max_traces, None if max_time is None else age_seconds(max_time, "--max-time"), max_usd),
        most_tries=tries,
        claim_spans_per_second=claim_rate or None,
    )
    interval_seconds = None if once else age_seconds(interval, "--interval")
    code = work(
        settings,
        plan,
        _state(state),
        interval_seconds=interval_seconds,
        metrics_address=None if metrics_port is None else (metrics_host, metrics_port),
        with_event_claims=event_claims,
    )
    raise typer.Exit(code)


@worker.command()
def failures(
    retry: Annotated[
        bool, typer.Option("--retry", help="Ask the worker to try the traces that were set aside again.")
    ] = False,
    trace: Annotated[
        list[str] | None,
        typer.Option("--trace", metavar="ID", help="Only this trace; may be repeated.", show_default=False),
    ] = None,
    state: StateOption = None,
    as_json: given.JsonOption = False,
) -> None:
    """List the traces that could not be evaluated, and why."""
    from dataclasses import asdict

    from citespan.evaluators.command.terminal import Terminal, count
    from citespan.evaluators.periodic.failures import ask_again

    terminal, kept = Terminal(as_json=as_json), _state(state)
    wanted = {trace_id.lower() for trace_id in trace or ()}
    asked = sum(ask_again(kept, scope, sorted(wanted)) for scope in kept.scopes()) if retry else 0
    found = [
        (scope, failure)
        for scope in kept.scopes()
        for failure in kept.failures(scope)
        if not wanted or failure.trace_id in wanted
    ]
    if as_json:
        rows = [{"scope": scope, **asdict(failure)} for scope, failure in found]
        terminal.write_json(f"{terminal.dump({'schema': 1, 'asked_again': asked, 'failures': rows})}\n")
        return
    for _, failure in found:
        how = "to be tried again" if failure.is_wanted else "set aside" if failure.is_set_aside else "tried"
        terminal.out.print(
            f"{failure.trace_id}  {how} after {count(failure.tries, 'try').replace('trys', 'tries')}: "
            f"{failure.reason}",
            soft_wrap=True,
        )
    if not found:
        terminal.out.print("No trace has failed.")
    if retry:
        terminal.say(f"{count(asked, 'trace')} will be tried again at the worker's next pass.")


@worker.command()
def status(state: StateOption = None, as_json: given.JsonOption = False) -> None:
    """Say how far the worker has read each project."""
    from datetime import datetime

    from citespan.evaluators.command.terminal import Terminal

    terminal, kept = Terminal(as_json=as_json), _state(state)
    rows: list[dict[str, object]] = []
    for scope in kept.scopes():
        position, failed = kept.position(scope), kept.failures(scope)
        rows.append(
            {
                "scope": scope,
                "low_water": None if position is None else position.low_water,
                "pending": None if position is None else position.pending,
                "saved_at": None
                if position is None
                else datetime.fromtimestamp(position.saved_at).astimezone().isoformat(timespec="seconds"),
                "set_aside": sum(failure.is_set_aside for failure in failed),
            }
        )
    if as_json:
        terminal.write_json(f"{terminal.dump({'schema': 1, 'shares': rows})}\n")
        return
    for row in rows:
        terminal.out.print(
            f"{row['scope']}: read up to span {row['low_water']}, {row['pending']} pending, "
            f"{row['set_aside']} set aside, saved {row['saved_at']}",
            soft_wrap=True,
        )
    if not rows:
        terminal.out.print("No worker has saved anything here yet.")


def _state(path: Path | None) -> SqliteState:
    from citespan.evaluators.periodic.state import SqliteState
    from citespan.evaluators.settings import Settings

    return SqliteState(path or Path(Settings.load().home) / "worker.sqlite")
