"""Storms of traces, two workers without shards, and SIGTERM, each under faults."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from tests.faults.conftest import Outcome, Trials
from tests.faults.kinds import WRITES, Fault
from tests.faults.proxy import FaultProxy
from tests.faults.rig import Site, WorkerProcess, working

from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.server import PhoenixServer

pytestmark = [pytest.mark.phoenix, pytest.mark.timeout(3600)]

STORM = 300
QUICK = (Fault.ERROR_500, Fault.ERROR_503, Fault.RESET, Fault.LOST_RESET, Fault.CUT_BODY, Fault.CUT_JSON)


def test_traces_that_arrive_while_it_works_are_all_evaluated(
    client: PhoenixClient, phoenix: PhoenixServer, trials: Trials, tmp_path: Path
) -> None:
    name, count = "traces arrive while it works", trials.arriving if trials.is_full else STORM

    def once(seed: int, is_spoiled: bool) -> Outcome:
        site = Site(client)
        site.store(12)
        site.let_people_write()
        with working(site, phoenix.url, tmp_path / f"{seed}" / "state") as worker:
            worker.wait_until(lambda: worker.named("started"), "started")
            began = time.monotonic()
            site.store(count)
            stored = time.monotonic() - began
            result = site.wait_until_whole(worker, seconds=2400)
            done = time.monotonic() - began
            assert worker.stop() < 10
        note = f"Phoenix stored {count / stored:.0f} a second, the worker did {count / done:.0f}"
        trials.ledger.of(name).note = note
        return Outcome(result, len(site.trace_ids), {})

    trials.run(name, once, full=1, short=1, is_timed=False)


def test_two_workers_without_shards_write_what_one_writes_under_faults(
    client: PhoenixClient, phoenix: PhoenixServer, trials: Trials, tmp_path: Path
) -> None:
    def once(seed: int, is_spoiled: bool) -> Outcome:
        site, folder = Site(client), tmp_path / f"{seed}{is_spoiled}"
        site.store(trials.size(40))
        site.let_people_write()
        with (
            FaultProxy(phoenix.url) as first,
            FaultProxy(phoenix.url) as second,
            working(site, first.url, folder / "1" / "state") as one,
            working(site, second.url, folder / "2" / "state") as other,
        ):
            if is_spoiled:
                for n, proxy in enumerate((first, second)):
                    proxy.storm(QUICK, share=0.2, seed=2 * seed + n, most=12)
                one.wait_until(lambda: (first.injected + second.injected).total() >= 8, "spoiled")
            first.calm()
            second.calm()
            assert site.wait_until_whole(one).violations == ()
            other.wait_until(lambda: other.is_ready and not _pending(other), "idle")
            result = site.examine()
        return Outcome(result, len(site.trace_ids), first.injected + second.injected)

    trials.run("two workers, a mix of answers", once, full=10)


def _pending(worker: WorkerProcess) -> float:
    lines = worker.ask("/metrics").text.splitlines()
    return sum(float(line.split()[1]) for line in lines if line.startswith("citespan_traces_pending "))


def test_sigterm_under_any_fault_ends_within_ten_seconds_and_nothing_is_half_written(
    client: PhoenixClient, proxy: FaultProxy, trials: Trials, tmp_path: Path
) -> None:
    kinds = list(Fault)

    def once(seed: int, is_spoiled: bool) -> Outcome:
        chance, before = random.Random(seed), proxy.injected.copy()
        kind = kinds[seed % len(kinds)] if trials.is_full else chance.choice(kinds)
        site, state = Site(client), tmp_path / f"{seed}{is_spoiled}" / "state"
        site.store(trials.size(24))
        site.let_people_write()
        # With the default patience of 30 seconds: a stop does not wait for an answer that does not come.
        with working(site, proxy.url, state, variables={"CITESPAN_TIMEOUT_SECONDS": "30"}) as worker:
            worker.wait_until(lambda: site.done_count() > 6 or worker.named("pass"), "at work")
            if is_spoiled:
                methods = WRITES if chance.random() < 0.5 else frozenset[str]()
                proxy.storm((kind,), share=1.0, seed=seed, methods=methods)
            site.store(trials.size(24))
            if is_spoiled:
                worker.wait_until(lambda: proxy.injected.total() > before.total(), f"spoiled by {kind}")
            time.sleep(chance.random())
            seconds = worker.stop()
            assert seconds < 10, f"{kind}, seed {seed}: {seconds:.1f} s after SIGTERM"
        proxy.calm()
        assert site.examine(is_over=False).violations == (), f"half written under {kind}, seed {seed}"
        with working(site, proxy.url, state) as worker:
            result = site.wait_until_whole(worker)
        return Outcome(result, len(site.trace_ids), {**(proxy.injected - before), "SIGTERM": 1})

    trials.run("SIGTERM under a fault", once, full=len(kinds))
