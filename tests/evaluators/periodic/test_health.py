"""What a supervisor is told over HTTP, and the log."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import httpx
import pytest

from citespan.evaluators.errors import UsageError
from citespan.evaluators.periodic.health import Health, HealthServer
from citespan.evaluators.periodic.logs import JsonLog

if TYPE_CHECKING:
    from tests.evaluators.periodic.conftest import FakeTime


@pytest.fixture
def health(time: FakeTime) -> Health:
    return Health(time.clock.monotonic)


@pytest.fixture
def server(health: Health) -> Iterator[HealthServer]:
    with HealthServer(health, lambda: b"citespan_up 1\n", host="127.0.0.1", port=0) as started:
        yield started


def _get(server: HealthServer, path: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{server.port}{path}", timeout=10)


def test_a_worker_is_ready_once_it_has_read_the_project(health: Health, server: HealthServer) -> None:
    answer = _get(server, "/readyz")
    assert (answer.status_code, answer.json()["reason"]) == (503, "the project has not been read yet")
    assert _get(server, "/healthz").json() == {"status": "ok"}
    health.not_ready = None
    assert _get(server, "/readyz").status_code == 200


def test_a_worker_that_shows_no_sign_of_life_is_not_alive(
    health: Health, server: HealthServer, time: FakeTime
) -> None:
    time.now += 601
    answer = _get(server, "/healthz")
    assert (answer.status_code, answer.json()["reason"]) == (503, "no sign of life for 601 s")
    health.beat()
    assert _get(server, "/healthz").status_code == 200


def test_metrics_are_served_as_text(server: HealthServer) -> None:
    answer = _get(server, "/metrics")
    assert (answer.text, answer.headers["content-type"][:10]) == ("citespan_up 1\n", "text/plain")


def test_another_path_says_which_there_are(server: HealthServer) -> None:
    answer = _get(server, "/")
    assert (answer.status_code, answer.text) == (404, "/healthz, /readyz, /metrics\n")


def test_a_port_that_is_taken_is_wrong_usage(health: Health, server: HealthServer) -> None:
    with pytest.raises(UsageError, match="choose another --metrics-port"):
        HealthServer(health, lambda: b"", host="127.0.0.1", port=server.port)


def test_a_log_line_is_one_json_object() -> None:
    stream = io.StringIO()
    log = JsonLog(stream, now=lambda: datetime(2026, 11, 29, 10, tzinfo=UTC), always={"project": "demo"})
    log("pass", {"taken": 3, "note": "two\nlines"}, level="warning")
    assert stream.getvalue().count("\n") == 1
    assert json.loads(stream.getvalue()) == {
        "time": "2026-11-29T10:00:00.000+00:00",
        "level": "warning",
        "event": "pass",
        "project": "demo",
        "taken": 3,
        "note": "two\nlines",
    }


def test_a_log_whose_reader_has_gone_stops_nothing() -> None:
    stream = io.StringIO()
    stream.close()
    JsonLog(stream)("pass")
