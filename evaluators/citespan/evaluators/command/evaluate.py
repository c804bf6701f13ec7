"""`citespan evaluate`: judge the traces of a Phoenix project, or of a file, and write the verdicts back."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from citespan.evaluators.command import choosing
from citespan.evaluators.command import parameters as given


class Engine(StrEnum):
    """Who evaluates."""

    LOCAL = "local"
    """This process."""

    RAY = "ray"
    """The actors of a Ray cluster."""


def evaluate(
    context: typer.Context,
    endpoint: given.EndpointOption = None,
    project: given.ProjectOption = None,
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
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="WHEN",
            help="Only traces from then on: an age such as 24h or 7d, or a date.",
            rich_help_panel=choosing.WHICH,
            show_default=False,
        ),
    ] = None,
    trace: Annotated[
        list[str] | None,
        typer.Option(
            "--trace",
            metavar="ID",
            help="Only this trace, whatever is missing of it; may be repeated.",
            rich_help_panel=choosing.WHICH,
            show_default=False,
        ),
    ] = None,
    sample_rate: choosing.SampleRateOption = 1.0,
    always: choosing.AlwaysOption = None,
    trace_filter: choosing.FilterOption = None,
    shard: choosing.ShardOption = "1/1",
    lookback: Annotated[
        str | None,
        choosing.age(
            "--lookback",
            "Only evaluated traces up to this age are evaluated again if that could differ.",
            choosing.WHICH,
        ),
    ] = None,
    reevaluate: choosing.ReevaluateOption = False,
    settle: choosing.SettleOption = "0s",
    settle_max: choosing.SettleMaxOption = "15m",
    max_traces: choosing.MaxTracesOption = None,
    max_time: choosing.MaxTimeOption = None,
    max_usd: choosing.MaxUsdOption = None,
    claim_rate: choosing.ClaimRateOption = 0.0,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="FILE",
            help="SQLite file that remembers how far the project was read, so that the next pass reads only "
            "what is new; without it the whole project is looked through.",
            rich_help_panel=choosing.RUNNING,
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        Engine,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="Who evaluates: local (this process) or ray (a Ray cluster; pip install 'citespan\\[ray]').",
            rich_help_panel=choosing.RUNNING,
        ),
    ] = Engine.LOCAL,
    ray_address: Annotated[
        str | None,
        typer.Option(
            "--ray-address",
            metavar="ADDRESS",
            help="Ray cluster that runs, such as auto or host:6379. "
            "\\[RAY_ADDRESS; default: one is started on this machine]",
            rich_help_panel=choosing.RUNNING,
            show_default=False,
        ),
    ] = None,
    actors: Annotated[
        int | None,
        typer.Option(
            "--actors",
            min=1,
            metavar="NUMBER",
            help="Processes on the Ray cluster, each with a judge of its own. \\[default: one for each CPU]",
            rich_help_panel=choosing.RUNNING,
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
    """Judge the traces of a Phoenix project once and write the verdicts back.

    Runs that are evaluated already and have not changed are left alone, so this can be repeated at any time.
    A trace with a span missing is left for later, until --settle-max.
    The key, if Phoenix wants one, is read from PHOENIX_API_KEY.
    """
    from datetime import datetime

    from citespan.evaluators.command.moment import age_seconds, moment
    from citespan.evaluators.command.results import Wanted
    from citespan.evaluators.command.sourced import evaluate_file, evaluate_project
    from citespan.evaluators.periodic.budget import Limits
    from citespan.evaluators.periodic.plan import Plan
    from citespan.evaluators.periodic.sampling import Sampling, Shard
    from citespan.evaluators.periodic.state import SqliteState
    from citespan.evaluators.settings import Settings

    _check(context)
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
        ray_address=ray_address,
    )
    gates = given.gates(
        support=min_support,
        coverage=min_coverage,
        completeness=min_completeness,
        validity=min_validity,
        contradicted=max_contradicted,
        unjudged=max_unjudged,
    )
    plan = Plan(
        project=settings.project,
        series=settings.series,
        claims_mode=settings.claims,
        options=settings.options,
        rules=settings.rules,
        trace_ids=tuple(dict.fromkeys(trace_id.lower() for trace_id in trace or ())),
        since=None if since is None else moment(since, now=datetime.now().astimezone()),
        sampling=Sampling(sample_rate),
        shard=Shard.parse(shard),
        filter=trace_filter,
        always=tuple(always or ()),
        settle_seconds=age_seconds(settle, "--settle"),
        settle_max_seconds=age_seconds(settle_max, "--settle-max"),
        lookback_seconds=None if lookback is None else age_seconds(lookback, "--lookback"),
        is_reevaluating=reevaluate,
        is_single_pass=True,
        is_dry_run=dry_run,
        shows_unchanged=show_unchanged or output is not None or bool(gates),
        with_human_labels=True,
        limits=Limits(max_traces, None if max_time is None else age_seconds(max_time, "--max-time"), max_usd),
        claim_spans_per_second=claim_rate or None,
    )
    wanted = Wanted(as_json, show, output, overwrite, None if spans is None else str(spans), gates)
    if spans is not None:
        raise typer.Exit(evaluate_file(spans, settings, plan, wanted))
    kept = None if state is None else SqliteState(state)
    on_ray = engine is Engine.RAY
    raise typer.Exit(evaluate_project(settings, plan, wanted, state=kept, on_ray=on_ray, actors=actors))


_ABOUT_PHOENIX = (
    *("endpoint", "project", "series", "claims", "dry_run", "since", "trace", "always", "trace_filter"),
    *("lookback", "reevaluate", "settle", "settle_max", "claim_rate", "state"),
    *("engine", "ray_address", "actors"),
)
"""Parameters about a project that grows and is written to."""

_CHOOSING = (
    *("since", "sample_rate", "always", "trace_filter", "shard", "lookback", "reevaluate"),
    *("settle", "settle_max", "state"),
)
"""Parameters that choose among all traces."""


def _check(context: typer.Context) -> None:
    """Refuse options that have no meaning beside another.

    Raises:
        UsageError: There are some; the message says which and why.
    """
    from citespan.evaluators.errors import UsageError

    names = {parameter.name: parameter.opts[0] for parameter in context.command.params}

    def typed(parameters: tuple[str, ...]) -> str:
        found = [
            name for name in parameters if str(context.get_parameter_source(name)).endswith("COMMANDLINE")
        ]
        return ", ".join(names[name] for name in found)

    has = context.params
    if has["spans"] is not None and (odd := typed(_ABOUT_PHOENIX)):
        raise UsageError(
            f"--spans reads a file and writes nothing back: leave out {odd}, which is about Phoenix"
        )
    if has["trace"] and (odd := typed(_CHOOSING)):
        raise UsageError(f"--trace names the traces: leave out {odd}, which chooses among all")
    if has["engine"] is not Engine.RAY and (odd := typed(("ray_address", "actors"))):
        raise UsageError(f"{odd} is about Ray: add --engine ray")
    if has["dry_run"] and has["state"] is not None:
        raise UsageError("--dry-run writes nothing, so --state must not remember its traces as done")
