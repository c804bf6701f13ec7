"""Evaluate what is in a project, or in a file of spans, once, and show what was found: `evaluate` and `demo`."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path

from citespan.evaluators.command.judging import judging
from citespan.evaluators.command.results import Results, Wanted
from citespan.evaluators.command.terminal import Terminal, count
from citespan.evaluators.command.working import announce
from citespan.evaluators.engines.engine import Engine
from citespan.evaluators.judges.judge import Judge
from citespan.evaluators.periodic.budget import PassBudget
from citespan.evaluators.periodic.logs import Log
from citespan.evaluators.periodic.loop import Worker
from citespan.evaluators.periodic.metrics import usage_of
from citespan.evaluators.periodic.plan import PassReport, Plan
from citespan.evaluators.periodic.state import MemoryState, State
from citespan.evaluators.periodic.stopping import Stop
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.records import Project
from citespan.evaluators.settings import Settings
from citespan.evaluators.sources.source import Trace
from citespan.evaluators.sources.spanfile import SpanFile
from citespan.evaluators.worker import EvaluatedRun, run_pass

__all__ = ["evaluate_file", "evaluate_project"]

_REASONS = {
    "not_sampled": "not sampled",
    "other_shard": "of other shards",
    "filtered": "filtered out",
    "not_settled": "not settled yet",
    "older_than_lookback": "older than the lookback",
    "evaluator_trace": "made by evaluators",
    "trace_deleted": "deleted meanwhile",
    "set_aside": "set aside for good",
}
"""How a reason for which traces are left out is said to people."""

_LIMITS = {
    "traces": "--max-traces",
    "seconds": "--max-time",
    "usd": "--max-usd",
    "price_unknown": "--max-usd, since the judge has no known price",
    "stop": "a stop",
}
"""What ended a pass, as people name it."""


def evaluate_project(
    settings: Settings,
    plan: Plan,
    wanted: Wanted,
    *,
    state: State | None = None,
    on_ray: bool = False,
    actors: int | None = None,
) -> int:
    """Evaluate the traces of a project once, as a worker does, show the runs, and return the exit code.

    Args:
        settings: Phoenix and judge.
        plan: Which traces, and how.
        wanted: What to do with the results.
        state: What earlier passes remember; without one the whole project is looked through.
        on_ray: Whether a Ray cluster evaluates; by default this process does.
        actors: How many processes of the cluster; by default one for each CPU.

    Raises:
        UsageError: Judge, reading rules or filter are wrong, or the label table cannot be written.
        ServerError: Phoenix cannot be reached or refuses; what was done so far is printed and stays.
    """
    stop = Stop()
    client = PhoenixClient(Connection.from_settings(settings), sleep=stop.sleep)
    with client, _at_work(settings, plan, on_ray, actors, stop) as (judge, engine), _stopped_by_sigterm(stop):
        results = Results(wanted, judge=judge, options=plan.options)
        log = _log_of(results.terminal)
        with results, _shown(results) as show:
            if plan.is_reevaluating:
                announce(client, plan, judge, log)
            kept = state or MemoryState()
            worker = Worker(client, plan, judge, kept, stop=stop, log=log, engine=engine, on_run=show)
            _conclude(results, worker.run_once(), wrote=not plan.is_dry_run)
    return results.exit_code


def evaluate_file(path: Path, settings: Settings, plan: Plan, wanted: Wanted) -> int:
    """Evaluate the traces of a file of spans, show the runs, and return the exit code.

    Raises:
        UsageError: The judge is unknown, the reading rules are none, or the label table cannot be written.
        InputError: The file cannot be read as spans, or holds none.
    """
    stop = Stop()
    with judging(settings.judge) as judge, _stopped_by_sigterm(stop):
        results = Results(wanted, judge=judge, options=plan.options)
        with results, _shown(results) as show:
            traces = _FileTraces(path, plan, stop)

            def take(run: EvaluatedRun) -> None:
                usage = usage_of(run.evaluation)
                traces.budget.add(traces=0, usd=0.0 if usage is None else usage.cost_usd)
                show(run)

            report = traces.report
            report.done = run_pass(traces, judge, options=plan.options, rules=plan.rules, on_run=take)
            report.failed = dict(report.done.set_aside)
            _conclude(results, report, wrote=False)
    return results.exit_code


class _FileTraces:
    """The traces of a file that are to be taken, for as long as the budget lasts."""

    def __init__(self, path: Path, plan: Plan, stop: Stop) -> None:
        self._path = path
        self._plan = plan
        self._stop = stop
        self.budget = PassBudget(plan.limits, stop.clock.monotonic)
        self.report = PassReport()

    def traces(self) -> Iterator[Trace]:
        """Yield the traces.

        Raises:
            InputError: The file cannot be read as spans, or holds none.
        """
        for trace in SpanFile(self._path).traces():
            if (reason := self._plan.leaves_out(trace.trace_id)) is not None:
                self.report.skipped[reason] += 1
                continue
            self.report.ended_by = "stop" if self._stop.is_wanted else self.budget.ended_by
            if self.report.ended_by is not None:
                return
            self.budget.add(traces=1, usd=0.0)
            yield trace


@contextmanager
def _at_work(
    settings: Settings, plan: Plan, on_ray: bool, actors: int | None, stop: Stop
) -> Generator[tuple[Judge, Callable[[Project], Engine] | None]]:
    """Provide the judge, and what makes an engine if it is not this process that evaluates."""
    if not on_ray:
        with judging(settings.judge) as judge:
            yield judge, None
        return
    from citespan.evaluators.engines.ray_cluster import RayCluster

    Terminal().say("starting the actors on Ray ...", style="dim")
    with RayCluster(
        Connection.from_settings(settings),
        plan,
        partial(judging, settings.judge),
        actors=actors,
        address=settings.ray_address,
        is_stop_wanted=lambda: stop.is_wanted,
    ) as cluster:
        yield cluster.judge, cluster.engine


@contextmanager
def _shown(results: Results) -> Generator[Callable[[EvaluatedRun], None]]:
    """Give the block a function that shows one run; a bar tells how many were shown."""
    with results.terminal.progress("judging", None) as advance:

        def show(run: EvaluatedRun) -> None:
            results.add(run.evaluation, url=run.url, human_labels=run.human_labels)
            advance()

        yield show


@contextmanager
def _stopped_by_sigterm(stop: Stop) -> Generator[None]:
    """Let SIGTERM end the pass after what is under way; Ctrl-C ends it at once, as in every command."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda _number, _frame: stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _log_of(terminal: Terminal) -> Log:
    """Return a log that tells a person what takes long and what goes wrong."""

    def log(event: str, data: Mapping[str, object] | None = None, /, *, level: str = "info") -> None:
        text = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in (data or {}).items())
        line = f"{event.replace('_', ' ')}: {text}"
        if level != "info":
            terminal.warn(line)
        elif event != "pass":
            terminal.say(line, style="dim")

    return log


def _conclude(results: Results, report: PassReport, *, wrote: bool) -> None:
    """Say what a pass did and what it left."""
    for trace_id, reason in report.failed.items():
        results.set_aside(f"trace {trace_id}: {reason}")
    if report.ended_by == "stop":
        results.set_aside("the pass was stopped: the next one goes on")
    done = report.done
    data: dict[str, object] = {field.name: getattr(done, field.name) for field in fields(done)}
    data |= {
        "states": dict(done.states),
        "set_aside": dict(report.failed),
        "skipped": dict(report.skipped),
        "pending": report.pending,
        "ended_by": report.ended_by,
    }
    results.note("pass", data, f"{_done(report, wrote=wrote)}{_left(report)}")


def _done(report: PassReport, *, wrote: bool) -> str:
    done = report.done
    read = f"{count(done.traces, 'trace')} read, {count(done.runs_evaluated, 'run')} judged"
    if not wrote:
        return f"{read}; nothing was written to Phoenix"
    kept = f", {count(done.human_rows_kept, 'row')} of people kept" if done.human_rows_kept else ""
    unchanged = f"{done.runs_unchanged} unchanged since they were evaluated (--all shows them)"
    return (
        f"{read}{f', {unchanged}' if done.runs_unchanged else ''}; written to Phoenix: "
        f"{count(done.claim_spans_written, 'claim span')}, {count(done.rows_written, 'annotation')}; "
        f"{done.deleted} outdated deleted{kept}"
    )


def _left(report: PassReport) -> str:
    """Return which traces were left out, and what ended the pass."""
    skipped = Counter({reason: number for reason, number in report.skipped.items() if number})
    reasons = [f"{number} {_REASONS.get(reason, reason)}" for reason, number in sorted(skipped.items())]
    left = f"; left out: {', '.join(reasons)}" if reasons else ""
    if report.ended_by is None:
        return left
    return f"{left}; ended by {_LIMITS.get(report.ended_by, report.ended_by)}"
