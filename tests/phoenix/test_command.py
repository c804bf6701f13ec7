"""The `citespan` command, as a person or a cron job runs it, on a real Phoenix."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from citespan.evaluators.analysis.tablefile import read_table
from citespan.evaluators.periodic.sampling import Sampling
from citespan.evaluators.phoenix.records import Target
from citespan.evaluators.runs import Run
from citespan.tracer import Passage

if TYPE_CHECKING:
    from tests.phoenix.conftest import Workbench

pytestmark = pytest.mark.phoenix

Done = subprocess.CompletedProcess[str]


def citespan(*arguments: object, **variables: str) -> Done:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PHOENIX_")}
    return subprocess.run(
        [sys.executable, "-m", "citespan", *map(str, arguments)],
        env={**inherited, "COLUMNS": "80", **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def read(done: Done) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.fixture
def filled(bench: Workbench, worked_examples: Mapping[str, Run]) -> Workbench:
    """A project that holds both worked examples."""
    for example in worked_examples.values():
        bench.recorder.replay(example)
    assert bench.project.name == bench.name
    return bench


def test_evaluate_judges_writes_back_and_links_each_trace(filled: Workbench, tmp_path: Path) -> None:
    url, table = filled.client.connection.base_url, tmp_path / "table.jsonl"
    # A collector's endpoint, as the app has it in its environment.
    done = citespan(
        *("evaluate", "--project", filled.name, "--json", "--output", table),
        PHOENIX_COLLECTOR_ENDPOINT=f"{url}/v1/traces",
    )
    data = read(done)
    assert [[claim["label"] for claim in run["claims"]] for run in data["runs"]] == [
        ["supported", "supported", "partly_supported", "supported", "unsupported"],
        ["partly_supported", "contradicted", "uncited"],
    ]
    assert data["pass"]["claim_spans_written"] == 8
    page = f"{url}/projects/{filled.project.id}/traces/"
    assert [run["url"] for run in data["runs"]] == [page + t for t in filled.recorder.trace_ids]
    assert {row.url for row in read_table(table)} == {page + t for t in filled.recorder.trace_ids}
    assert len(filled.snapshot().claim_spans) == 8


def test_a_second_pass_changes_nothing_and_still_writes_a_whole_table(
    filled: Workbench, tmp_path: Path
) -> None:
    arguments = ["evaluate", "-p", filled.name, "--endpoint", filled.client.connection.base_url]
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    read(citespan(*arguments, "--json", "--output", first))
    before = filled.snapshot().content()
    data = read(citespan(*arguments, "--json", "--output", second))
    assert (data["pass"]["runs_unchanged"], data["pass"]["rows_written"]) == (2, 0)
    assert filled.snapshot().content() == before
    assert list(read_table(second)) == list(read_table(first))
    quiet = citespan(*arguments)
    assert (quiet.returncode, quiet.stdout) == (0, "")
    assert "2 unchanged since they were evaluated (--all shows them)" in quiet.stderr


def test_a_dry_run_writes_nothing(filled: Workbench) -> None:
    done = citespan(
        *("evaluate", "-p", filled.name, "--endpoint", filled.client.connection.base_url),
        *("--dry-run", "--since", "1h", "--limit", 1, "--show", "none"),
    )
    assert done.returncode == 0
    assert "1 trace read, 1 run judged; nothing was written to Phoenix" in done.stderr
    assert "Measures over 1 of 1 run" in done.stdout
    snapshot = filled.snapshot()
    assert (snapshot.claim_spans, snapshot.rows) == ({}, {})


def test_a_pass_with_a_state_reads_only_what_is_new(filled: Workbench, tmp_path: Path) -> None:
    arguments = ["evaluate", "-p", filled.name, "--endpoint", filled.client.connection.base_url, "--json"]
    first = read(citespan(*arguments, "--state", tmp_path / "state"))["pass"]
    assert (first["runs_evaluated"], first["pending"], first["ended_by"]) == (2, 0, None)
    second = read(citespan(*arguments, "--state", tmp_path / "state"))["pass"]
    assert (second["traces"], second["runs_unchanged"]) == (0, 0)
    # Without the state the project is looked through, and the marks in Phoenix tell what is done.
    third = read(citespan(*arguments))["pass"]
    assert (third["traces"], third["runs_unchanged"], third["rows_written"]) == (2, 2, 0)


def test_a_trace_whose_root_is_not_there_is_said_to_wait(filled: Workbench) -> None:
    trace_id, moment = os.urandom(16).hex(), datetime.now(UTC).isoformat()
    span = {
        "name": "child",
        "context": {"trace_id": trace_id, "span_id": os.urandom(8).hex()},
        "parent_id": os.urandom(8).hex(),
        "span_kind": "CHAIN",
        "start_time": moment,
        "end_time": moment,
        "status_code": "OK",
        "attributes": {},
    }
    filled.client.add_spans(filled.project, [span])
    filled.recorder.expect(trace_id, span["context"]["span_id"])  # type: ignore[index]  # JSON
    assert filled.project.name == filled.name
    target = ["-p", filled.name, "--endpoint", filled.client.connection.base_url, "--show", "none"]
    done = citespan("evaluate", *target, "--sample-rate", "0.5")
    taken = sum(Sampling(0.5).holds(known) for known in filled.recorder.trace_ids[:2])
    assert done.returncode == 0
    assert f"{taken} trace{'s' * (taken != 1)} read" in done.stderr
    whole = citespan("evaluate", *target)
    assert "2 traces read" in whole.stderr
    assert "left out: 1 not settled yet" in whole.stderr
    late = read(citespan("evaluate", *target, "--settle-max", "0", "--json"))["pass"]
    assert (late["traces"], late["pending"]) == (3, 0)


def test_sigterm_ends_a_pass_with_nothing_half_written(bench: Workbench) -> None:
    passages = [Passage(id="a", text="Refunds take five days.", label="1")]
    for number in range(60):
        bench.recorder.ask(f"Question {number}?", "Refunds take five days [1].", passages)
    assert bench.project.name == bench.name
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "citespan", "evaluate", "-p", bench.name, "--json", "--claim-rate", "10"),
            *("--endpoint", bench.client.connection.base_url),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until_some_are_done(bench)
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - started < 10
    assert process.returncode == 4, err
    data = json.loads(out)
    assert data["pass"]["ended_by"] == "stop"
    assert data["set_aside"] == ["the pass was stopped: the next one goes on"]
    snapshot = bench.snapshot()
    begun = {str(span["context"]["trace_id"]) for span in snapshot.claim_spans.values()}  # type: ignore[index]
    done = {trace_id for trace_id, _ in snapshot.labels("cite_state")}
    assert begun == done
    assert len(data["runs"]) == len(done) < 60


def wait_until_some_are_done(bench: Workbench) -> None:
    deadline = time.monotonic() + 60
    trace_ids = bench.recorder.trace_ids
    while not list(
        bench.client.annotations(bench.project, Target.TRACE, target_ids=trace_ids, names=["cite_state"])
    ):
        assert time.monotonic() < deadline, "no trace was done in time"
        time.sleep(0.1)


def test_purge_removes_a_series_alone_and_then_everything(filled: Workbench) -> None:
    target = ["-p", filled.name, "--endpoint", filled.client.connection.base_url]
    for series in ([], ["--series", "trial"]):
        assert citespan("evaluate", *target, *series).returncode == 0
    would = read(citespan("purge", *target, "--dry-run", "--json"))
    assert (would["traces"], would["claim_spans"], would["dry_run"]) == (2, 8, True)
    assert len(filled.snapshot().claim_spans) == 8
    assert citespan("purge", *target, "--series", "trial").returncode == 0
    assert {key[2] for key in filled.snapshot().rows} == {"citespan"}
    done = citespan("purge", *target)
    assert done.returncode == 0
    assert "Removed 8 claim spans" in done.stdout
    assert filled.snapshot().rows == {}


def test_inspect_reads_a_trace_of_the_project(filled: Workbench) -> None:
    trace_id = filled.recorder.trace_ids[0]
    done = citespan(
        "inspect", trace_id, "-p", filled.name, "--endpoint", filled.client.connection.base_url, "--json"
    )
    data = read(done)
    assert (data["state"], data["resolution"], len(data["citations"])) == (None, "explicit", 5)


def test_doctor_passes_on_a_working_server_and_names_a_wrong_project(filled: Workbench) -> None:
    url = filled.client.connection.base_url
    good = citespan("doctor", "-p", filled.name, "--endpoint", url)
    assert good.returncode == 0
    assert "failed" not in good.stdout
    wrong = citespan("doctor", "-p", "no-such-project", "--endpoint", url)
    assert wrong.returncode == 1
    assert "no-such-project" in wrong.stdout
    evaluated = citespan("evaluate", "-p", "no-such-project", "--endpoint", url)
    assert (evaluated.returncode, evaluated.stdout) == (3, "")
    assert "no project 'no-such-project'" in evaluated.stderr
    assert evaluated.stderr.count("\n") == 1


def test_serve_runs_until_ctrl_c_and_frees_the_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        taken = citespan("serve", "--home", tmp_path / "home", "--port", port)
    assert taken.returncode == 2
    assert f"port {port} on 127.0.0.1 is taken" in taken.stderr
    process = subprocess.Popen(
        [sys.executable, "-m", "citespan", "serve", "--home", tmp_path / "home", "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == f"Phoenix runs at http://127.0.0.1:{port}\n"
    assert citespan("doctor", "--endpoint", f"http://127.0.0.1:{port}").returncode == 0
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert citespan("doctor", "--endpoint", f"http://127.0.0.1:{port}").returncode == 3


def test_the_demo_shows_every_label_and_leaves_phoenix_running(tmp_path: Path) -> None:
    done = citespan("demo", "--home", tmp_path, "--json")
    running = json.loads((tmp_path / "demo" / "running.json").read_text())
    try:
        data = read(done)
        labels = {claim["label"] for run in data["runs"] for claim in run["claims"]}
        assert labels == {
            "supported",
            "partly_supported",
            "unsupported",
            "contradicted",
            "uncited",
            "unjudged",
        }
        assert len(data["runs"]) >= 10
        page = re.search(r"Look +(\S+)", done.stderr)
        assert page is not None
        assert page[1].startswith(running["url"])
        assert f"kill {running['process_id']}" in done.stderr
        assert citespan("doctor", "--endpoint", running["url"]).returncode == 0
    finally:
        os.kill(running["process_id"], signal.SIGTERM)


def test_the_demo_stops_phoenix_when_asked_to(tmp_path: Path) -> None:
    done = citespan("demo", "--home", tmp_path, "--once", "--show", "findings")
    assert done.returncode == 0, done.stderr
    assert "Measures over" in done.stdout
    running = json.loads((tmp_path / "demo" / "running.json").read_text())
    assert citespan("doctor", "--endpoint", running["url"]).returncode == 3
