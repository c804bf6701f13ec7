"""The project is deleted under the worker's hands and made anew: the new one is evaluated, and holds nothing of the old."""

from __future__ import annotations

import random
from pathlib import Path

import httpx
import pytest
from tests.faults.conftest import Outcome, Trials
from tests.faults.proxy import FaultProxy
from tests.faults.rig import Site, working

from citespan.evaluators.phoenix.client import PhoenixClient

pytestmark = [pytest.mark.phoenix, pytest.mark.timeout(900)]

TRACES = 30
REQUESTS = 40


def test_a_project_that_is_deleted_and_made_anew_is_evaluated_anew(
    client: PhoenixClient, proxy: FaultProxy, trials: Trials, tmp_path: Path
) -> None:
    def once(seed: int, is_spoiled: bool) -> Outcome:
        site, gone = Site(client), list[int]()
        site.store(TRACES)
        site.let_people_write()
        with working(site, proxy.url, tmp_path / f"{seed}{is_spoiled}" / "state") as worker:
            if is_spoiled:
                url = f"{client.connection.base_url}/v1/projects/{site.name}"
                last = random.Random(seed).randint(1, REQUESTS)
                proxy.when(last, lambda: gone.append(httpx.delete(url, timeout=30).status_code))
                worker.wait_until(lambda: gone, "deleted")
                assert gone == [204]
                if seed % 2:  # every second time it is away for a while
                    worker.wait_until(lambda: worker.named("project_not_found"), "noticed")
                site = Site(client, site.name)
                site.store(TRACES)
                site.let_people_write()
            return Outcome(site.wait_until_whole(worker), TRACES, {"deleted": 1})

    trials.run("project deleted and made anew", once, full=10)
