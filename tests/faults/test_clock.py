"""The wall clock jumps by days while the worker runs; nothing that waits goes by it."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from tests.faults.conftest import Outcome, Trials
from tests.faults.rig import Site, working

from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.server import PhoenixServer

pytestmark = [pytest.mark.phoenix, pytest.mark.timeout(900)]

TRACES = 8
JUMPS = ("+1d", "-1d", "+0")
PLACES = ("/usr/lib/*/faketime", "/usr/lib*/faketime", "/usr/local/lib/faketime")


@pytest.fixture(scope="module")
def library() -> str:
    """libfaketime, which tells a whole process another time of day."""
    root = Path("/")
    found = [path for place in PLACES for path in root.glob(f"{place[1:]}/libfaketime.so.1")]
    if not found:
        pytest.skip("libfaketime is not installed (Debian: apt-get install libfaketime)")
    return str(found[0])


def test_jumps_of_the_wall_clock_change_nothing(
    library: str, client: PhoenixClient, phoenix: PhoenixServer, trials: Trials, tmp_path: Path
) -> None:
    site, dial = Site(client), tmp_path / "dial"
    site.store(TRACES)
    site.let_people_write()
    dial.write_text("+0")
    variables = {
        "LD_PRELOAD": library,
        "FAKETIME_TIMESTAMP_FILE": str(dial),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    with working(site, phoenix.url, tmp_path / "state", variables=variables) as worker:
        assert site.wait_until_whole(worker).violations == ()

        def once(seed: int, is_spoiled: bool) -> Outcome:
            chance = random.Random(seed)
            new = site.store(TRACES)
            for jump in chance.sample(JUMPS, 3) if is_spoiled else ():
                time.sleep(chance.random() / 2)
                dial.write_text(jump)
            return Outcome(site.wait_until_whole(worker, new), len(new), {"jump of a day": 3})

        trials.run("the wall clock jumps", once, full=10)
        dial.write_text("+1d")
        site.store(1)
        assert site.wait_until_whole(worker).violations == ()
        assert worker.named("started")[0]["time"][:10] != worker.named("pass")[-1]["time"][:10]
        assert worker.stop() < 10
