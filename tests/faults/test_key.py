"""A key that is revoked or expires while the worker runs: it waits, says so once, and a new key makes it go on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import httpx
import pytest
from tests.faults.conftest import Outcome, Trials
from tests.faults.rig import Site, WorkerProcess, working

from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.server import PhoenixServer

pytestmark = [pytest.mark.phoenix, pytest.mark.timeout(900)]

TRACES = 12


def _new_key(admin: PhoenixClient, lifetime_seconds: float | None = None) -> tuple[str, str]:
    """Return a key and its id."""
    data: dict[str, str] = {"name": "worker"}
    if lifetime_seconds is not None:
        data["expires_at"] = (datetime.now(UTC) + timedelta(seconds=lifetime_seconds)).isoformat()
    made = _ask(admin, "POST", "/v1/system/api_keys", json={"data": data}).json()["data"]
    return cast("str", made["key"]), cast("str", made["id"])


def _ask(admin: PhoenixClient, method: str, path: str, **more: object) -> httpx.Response:
    headers = dict(admin.connection.headers)
    url = f"{admin.connection.base_url}{path}"
    response = httpx.request(method, url, headers=headers, **more)  # type: ignore[arg-type]
    assert response.is_success, response.text
    return response


def test_a_key_that_ends_is_waited_out_until_a_new_one_comes(
    guarded: PhoenixServer, admin: PhoenixClient, trials: Trials, tmp_path: Path
) -> None:
    def once(seed: int, is_spoiled: bool) -> Outcome:
        kind = ("expired", "revoked")[seed % 2]
        site, state = Site(admin), tmp_path / str(seed) / "state"
        site.store(TRACES)
        site.let_people_write()
        key, key_id = _new_key(admin, 12.0 if kind == "expired" else None)
        with working(site, guarded.url, state, variables={"PHOENIX_API_KEY": key}) as worker:
            worker.wait_until(lambda: site.done_count() > 6 or worker.named("phoenix_trouble"), "at work")
            if kind == "revoked":
                _ask(admin, "DELETE", f"/v1/system/api_keys/{key_id}")
            worker.wait_until(lambda: worker.named("phoenix_trouble"), "noticed")
            site.store(TRACES)
            tries = _failures(worker)
            worker.wait_until(lambda: _failures(worker) >= tries + 2, "tried again")
            assert not worker.is_ready
            (trouble,) = worker.named("phoenix_trouble")  # said once, however often it tries
            assert "Settings > API keys" in trouble["error"]
            assert worker.stop() < 10
        new, _ = _new_key(admin)
        with working(site, guarded.url, state, variables={"PHOENIX_API_KEY": new}) as worker:
            result = site.wait_until_whole(worker)
        return Outcome(result, len(site.trace_ids), {f"key {kind}": 1})

    trials.run("the API key ends", once, full=5, is_timed=False)


def _failures(worker: WorkerProcess) -> float:
    """Return how many passes Phoenix has broken off."""
    lines = worker.ask("/metrics").text.splitlines()
    return sum(
        float(line.rpartition(" ")[2]) for line in lines if line.startswith("citespan_phoenix_errors_total")
    )
