"""The command `citespan worker` as people and supervisors see it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from citespan.evaluators.command.moment import age_seconds
from citespan.evaluators.errors import UsageError
from citespan.evaluators.periodic.failures import Failures
from citespan.evaluators.periodic.state import Position, SqliteState

SCOPE = "http://phoenix.test UHJvamVjdDox citespan 1/1"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state of a worker that read up to span 41 and set one trace aside."""
    path = tmp_path / "worker.sqlite"
    kept = SqliteState(path)
    kept.save(SCOPE, Position("setup", 41, pending=2, saved_at=1e9))
    Failures(kept, SCOPE, most_tries=1, wall=lambda: 5.0).add("ab" * 16, "not_readable: no time")
    Failures(kept, SCOPE, most_tries=9, wall=lambda: 6.0).add("cd" * 16, "not_evaluated: a bug")
    return path


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("48h", 172_800), ("7d", 604_800), ("2.5", 2.5), ("0", 0)],
)
def test_a_length_of_time_has_a_unit_or_is_seconds(text: str, seconds: float) -> None:
    assert age_seconds(text, "--settle") == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5", "5 minutes", "1e9", "nan"])
def test_a_length_of_time_that_is_none_says_what_is_expected(text: str) -> None:
    with pytest.raises(UsageError, match=r"--settle .* expected one such as 90s"):
        age_seconds(text, "--settle")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--settle", "soon"], "'soon' is no length of time"),
        (["--shard", "3/2"], "--shard '3/2': expected i/n"),
        (["--sample-rate", "1.5"], "--sample-rate"),
        (["--judge", "nobody"], "nobody"),
    ],
)
def test_wrong_options_are_named(
    citespan: Callable[..., Any], tmp_path: Path, options: list[str], complaint: str
) -> None:
    done = citespan("worker", "--once", "--state", tmp_path / "s", *options)
    assert done.exit_code == 2
    assert complaint in done.err


def test_a_single_pass_without_phoenix_ends_with_3(citespan: Callable[..., Any], tmp_path: Path) -> None:
    endpoint = f"http://127.0.0.1:{_free_port()}"
    done = citespan("worker", "--once", "--endpoint", endpoint, "--state", tmp_path / "s")
    assert done.exit_code == 3
    assert "cannot reach Phoenix" in done.err


def test_failures_are_listed_with_their_reasons(citespan: Callable[..., Any], state: Path) -> None:
    done = citespan("worker", "failures", "--state", state)
    assert done.exit_code == 0
    assert done.out.splitlines() == [
        f"{'ab' * 16}  set aside after 1 try: not_readable: no time",
        f"{'cd' * 16}  tried after 1 try: not_evaluated: a bug",
    ]


def test_traces_set_aside_can_be_tried_again(citespan: Callable[..., Any], state: Path) -> None:
    data = json.loads(citespan("worker", "failures", "--retry", "--json", "--state", state).out)
    assert data["asked_again"] == 1
    assert [row["is_wanted"] for row in data["failures"]] == [True, False]
    assert data["failures"][0] == {
        "scope": SCOPE,
        "trace_id": "ab" * 16,
        "tries": 1,
        "reason": "not_readable: no time",
        "is_set_aside": False,
        "is_wanted": True,
        "failed_at": 5.0,
    }


def test_a_status_says_how_far_the_worker_has_read(citespan: Callable[..., Any], state: Path) -> None:
    (share,) = json.loads(citespan("worker", "status", "--json", "--state", state).out)["shares"]
    assert (share["scope"], share["low_water"], share["pending"], share["set_aside"]) == (SCOPE, 41, 2, 1)
    assert "read up to span 41, 2 pending, 1 set aside" in citespan("worker", "status", "--state", state).out


def test_a_worker_waits_for_phoenix_says_so_and_stops_when_told(tmp_path: Path) -> None:
    endpoint = f"http://127.0.0.1:{_free_port()}"
    command = [sys.executable, "-m", "citespan", "worker", "--endpoint", endpoint, "--metrics-port", "0"]
    process = subprocess.Popen(
        [*command, "--state", str(tmp_path / "s")],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stderr is not None
        started, trouble = (json.loads(process.stderr.readline()) for _ in range(2))
        assert (started["event"], trouble["event"]) == ("started", "phoenix_trouble")
        assert "cannot reach Phoenix" in trouble["error"]
        base = started["metrics"].removesuffix("/metrics")
        assert httpx.get(f"{base}/healthz").status_code == 200
        ready = httpx.get(f"{base}/readyz")
        assert (ready.status_code, "cannot reach Phoenix" in ready.text) == (503, True)
        assert 'citespan_phoenix_errors_total{error="Unreachable"}' in httpx.get(f"{base}/metrics").text
        before = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=10)
        assert time.monotonic() - before < 10
        assert process.returncode == 0
        assert json.loads(rest.splitlines()[-1])["event"] == "stopped"
    finally:
        process.kill()
        process.wait()


def test_a_phoenix_that_never_answers_holds_up_no_stop(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "citespan",
                "worker",
                "--endpoint",
                endpoint,
                "--state",
                str(tmp_path / "s"),
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr is not None
            assert json.loads(process.stderr.readline())["event"] == "started"
            connection, _ = silent.accept()
            with connection:
                connection.recv(1)  # it has asked, and will wait
                before = time.monotonic()
                process.send_signal(signal.SIGTERM)
                _, rest = process.communicate(timeout=15)
            assert time.monotonic() - before < 10
            assert process.returncode == 4
            assert json.loads(rest)["event"] == "stopped_hard"
        finally:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
