"""A worker in a process of its own: signals, judge, health server, and what is said first."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version

from citespan.evaluators.command.judging import judging
from citespan.evaluators.judges.judge import Judge
from citespan.evaluators.periodic.exports import ExportsWanted, exporting
from citespan.evaluators.periodic.health import HealthServer
from citespan.evaluators.periodic.logs import JsonLog, Log
from citespan.evaluators.periodic.loop import Worker
from citespan.evaluators.periodic.metrics import WorkerMetrics
from citespan.evaluators.periodic.plan import Plan
from citespan.evaluators.periodic.reevaluation import forecast
from citespan.evaluators.periodic.state import State
from citespan.evaluators.periodic.stopping import Stop
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.settings import Settings

__all__ = ["announce", "work"]

PARTLY_DONE = 4
"""Exit code when something was set aside, or the stop had to be a hard one."""

HARD_STOP_SECONDS = 9.0
"""After a stop was asked for, a request that hangs is given up; every write can be repeated, so nothing is lost."""


def work(
    settings: Settings,
    plan: Plan,
    state: State,
    *,
    interval_seconds: float | None,
    metrics_address: tuple[str, int] | None,
    with_event_claims: bool = False,
) -> int:
    """Work until told to stop, or for one pass, and return the exit code.

    Args:
        settings: Phoenix and judge.
        plan: What to do.
        state: What is remembered.
        interval_seconds: How long to wait between two passes; `None` ends after one.
        metrics_address: Host and port of the health server, if there is to be one.
        with_event_claims: Whether each claim's verdict is an event too, where events are sent.

    Raises:
        UsageError: Settings, judge or filter are wrong.
        ServerError: In a single pass, Phoenix cannot be reached or refuses.
    """
    stop = Stop()
    log = JsonLog(always={"project": plan.project, "shard": str(plan.shard)})
    connection = Connection.from_settings(settings)
    client = PhoenixClient(connection, sleep=stop.sleep)
    metrics = WorkerMetrics(stop.clock)
    exports_wanted = ExportsWanted(
        settings.trace_project, settings.events, settings.events_request_headers, with_event_claims
    )
    with (
        client,
        judging(settings.judge) as judge,
        _stopping(stop, log),
        exporting(exports_wanted, plan, connection, metrics, log=log, clock=stop.clock) as exports,
    ):
        metrics.show(version("citespan"), plan, judge.card)
        worker = Worker(
            client,
            plan,
            judge,
            state,
            stop=stop,
            metrics=metrics,
            log=log,
            on_run=exports.on_run,
            tracer=exports.tracer,
        )
        with _served(worker, metrics_address) as metrics_url:
            about = {"endpoint": settings.endpoint, "judge": judge.card.name, "metrics": metrics_url}
            log("started", about)
            if plan.is_reevaluating:
                announce(client, plan, judge, log)
            if interval_seconds is not None:
                worker.run(interval_seconds)
                return 0
            report = worker.run_once()
            log("done", report.to_dict())
            return PARTLY_DONE if report.failed else 0


@contextmanager
def _served(worker: Worker, address: tuple[str, int] | None) -> Generator[str | None]:
    """Serve health and metrics during the block, and give it the URL."""
    if address is None:
        yield None
        return
    host, port = address
    with HealthServer(worker.health, worker.metrics.text, host=host, port=port) as server:
        yield f"http://{f'[{host}]' if ':' in host else host}:{server.port}/metrics"


@contextmanager
def _stopping(stop: Stop, log: Log) -> Generator[None]:
    """Turn SIGTERM and Ctrl-C into a stop; one that takes too long becomes a hard one."""

    def end() -> None:
        log("stopped_hard", {"after_seconds": HARD_STOP_SECONDS}, level="warning")
        os._exit(PARTLY_DONE)

    timer = threading.Timer(HARD_STOP_SECONDS, end)
    timer.daemon = True

    def hear(number: int, frame: object) -> None:
        if not stop.is_wanted:
            timer.start()
        stop()

    before = {number: signal.signal(number, hear) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


def announce(client: PhoenixClient, plan: Plan, judge: Judge, log: Log) -> None:
    """Say what `--reevaluate` is about to do: how many traces and claims, and what that costs at most."""
    log("reevaluate", forecast(client, plan, judge).to_dict())
