"""kill -9 of the worker and of Phoenix at any request: what comes after makes the work whole."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest
from tests.faults.conftest import ADMIN_SECRET, Outcome, Trials
from tests.faults.proxy import FaultProxy
from tests.faults.rig import Site, working

from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.server import PhoenixServer

pytestmark = [pytest.mark.phoenix, pytest.mark.timeout(3600)]

TRACES = 30
REQUESTS = 50
"""A worker makes about so many to evaluate these traces."""


def test_a_worker_killed_at_any_request_is_made_good(
    client: PhoenixClient, proxy: FaultProxy, trials: Trials, tmp_path: Path
) -> None:
    def once(seed: int, is_spoiled: bool) -> Outcome:
        site, state = Site(client), tmp_path / f"{seed}{is_spoiled}" / "state"
        site.store(trials.size(TRACES))
        site.let_people_write()
        if is_spoiled:
            with working(site, proxy.url, state) as worker:
                last = random.Random(seed).randint(1, REQUESTS)
                proxy.when(last, lambda: os.kill(worker.process.pid, signal.SIGKILL))
                assert worker.process.wait(60) == -signal.SIGKILL, worker.log_tail
            time.sleep(0.2)  # what it sent last is being done
            assert site.examine(is_over=False).violations == (), f"half done, seed {seed}"
        with working(site, proxy.url, state) as worker:
            return Outcome(site.wait_until_whole(worker), len(site.trace_ids), {"SIGKILL": 1})

    trials.run("kill -9 of the worker", once, full=50)


def test_a_phoenix_killed_at_any_request_is_waited_for(
    guarded: PhoenixServer, admin: PhoenixClient, trials: Trials, tmp_path: Path
) -> None:
    variables = {"PHOENIX_API_KEY": ADMIN_SECRET}

    def once(seed: int, is_spoiled: bool) -> Outcome:
        site, state = Site(admin), tmp_path / f"{seed}{is_spoiled}" / "state"
        site.store(trials.size(TRACES))
        site.let_people_write()
        with (
            FaultProxy(guarded.url) as proxy,
            working(site, proxy.url, state, variables=variables) as worker,
        ):
            if is_spoiled:
                pid = guarded.process_id or 0
                last = random.Random(seed).randint(1, REQUESTS)
                proxy.when(last, lambda: os.kill(pid, signal.SIGKILL))
                worker.wait_until(lambda: worker.named("phoenix_trouble"), "noticed")
                assert not worker.is_ready
                guarded.kill()
                guarded.start()
            result = site.wait_until_whole(worker)
            assert worker.is_ready
        return Outcome(result, len(site.trace_ids), {"SIGKILL": 1})

    trials.run("kill -9 of Phoenix", once, full=8)
