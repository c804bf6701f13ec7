"""The topology of compose.yaml as processes: PostgreSQL, Phoenix on it, the worker, an app, Prometheus.

What compose.yaml, the Dockerfile and prometheus/ say is read from them; only hosts, ports and paths are replaced.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.deploy.topology import (
    Deployment,
    Prometheus,
    build,
    free_port,
    postgres_programs,
    record_nul,
    running,
    wait_for,
)

from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.records import StoredAnnotation, Target

SCRIPT = Path(__file__).parents[2] / "examples/data/scripted_answers.toml"
DEMO_ROUNDS = 2
"""How often the demo asks its questions: so often that over 50 claims are judged."""
HIDDEN_IN_TEST = {
    "Unjudged claims by reason",
    "Failures by reason",
    "Passes that Phoenix broke off, by error",
}
"""Panels that show something only when something goes wrong."""


missing = [
    name
    for name, is_there in (
        ("postgresql", postgres_programs() is not None),
        ("prometheus", shutil.which("prometheus") is not None),
    )
    if not is_there
]

pytestmark = [
    pytest.mark.deploy,
    pytest.mark.xdist_group("deploy"),
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(missing), reason=f"missing: apt-get install {' '.join(missing)}"),
]


@pytest.fixture(scope="module")
def deployment(
    compose: Mapping[str, Any],
    image: Mapping[str, Any],
    interpolate: Callable[[str, Mapping[str, str]], str],
    root: Path,
) -> Iterator[Deployment]:
    folder = Path(tempfile.mkdtemp(prefix="citespan-deploy-"))
    folder.chmod(0o755)  # PostgreSQL runs as another user
    made = Deployment(compose, image, interpolate, root, folder)
    made.ports = {name: free_port() for name in ("phoenix", "postgres", "worker", "prometheus", "grpc")}
    yield made
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def postgres(deployment: Deployment) -> Iterator[None]:
    """PostgreSQL with the user, password and database that compose.yaml names."""
    programs = postgres_programs()
    assert programs is not None
    given = deployment.environment("postgres")
    data = deployment.folder / "postgres"
    data.mkdir(mode=0o700)
    # The server refuses to run as root.
    user: dict[str, Any] = (
        {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    )
    if user:
        shutil.chown(data, "postgres", "postgres")
    password = deployment.folder / "password"
    password.write_text(given["POSTGRES_PASSWORD"])
    password.chmod(0o644)
    how: dict[str, Any] = {
        "env": {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        "cwd": deployment.folder,
        **user,
    }
    initdb = [programs / "initdb", "-D", data, "-U", given["POSTGRES_USER"], "--auth=scram-sha-256"]
    subprocess.run(
        [*initdb, f"--pwfile={password}", "--no-sync"], check=True, capture_output=True, timeout=60, **how
    )
    port = str(deployment.ports["postgres"])
    server = [programs / "postgres", "-D", data, "-p", port, "-h", "127.0.0.1", "-k", data, "-c", "fsync=off"]
    # An interrupt has it stop without waiting for those who are connected.
    with running(server, deployment.folder / "postgres.log", stop=signal.SIGINT, **how):
        client = {"PATH": os.environ["PATH"], "PGPASSWORD": given["POSTGRES_PASSWORD"]}
        address = ["-h", "127.0.0.1", "-p", port, "-U", given["POSTGRES_USER"]]
        create = [programs / "createdb", *address, given["POSTGRES_DB"]]

        def created() -> bool | None:
            return (
                subprocess.run(create, env=client, capture_output=True, check=False).returncode == 0 or None
            )

        wait_for(created, "PostgreSQL", timeout_seconds=30)
        yield


@pytest.fixture(scope="module")
def building(deployment: Deployment) -> Iterator[Future[Path]]:
    """The command, being installed as the Dockerfile's build stage does, while Phoenix starts."""
    with ThreadPoolExecutor(1) as executor:
        yield executor.submit(build, deployment)


@pytest.fixture(scope="module")
def phoenix(deployment: Deployment, postgres: None, building: Future[Path]) -> Iterator[httpx.Client]:
    """Phoenix with the variables of compose.yaml, once its health check passes; a client with the worker's key."""
    environment = {
        **deployment.environment("phoenix"),
        "PHOENIX_POSTGRES_HOST": "127.0.0.1",
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_GRPC_PORT": str(deployment.ports["grpc"]),
        "PHOENIX_WORKING_DIR": str(deployment.folder / "phoenix"),
    }
    check = deployment.compose["services"]["phoenix"]["healthcheck"]["test"]
    assert check[:3] == ["CMD", "python3", "-c"]
    code = check[3].replace(":6006/", f":{deployment.ports['phoenix']}/")

    def is_healthy() -> bool | None:
        asked = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        return asked.returncode == 0 or None

    key = deployment.environment("worker")["PHOENIX_API_KEY"]
    server = [sys.executable, "-m", "phoenix.server.main", "serve"]
    log = deployment.folder / "phoenix.log"
    with running(server, log, stop=signal.SIGKILL, env=environment, cwd=deployment.folder):
        wait_for(is_healthy, "Phoenix", timeout_seconds=120)
        base, headers = f"http://127.0.0.1:{deployment.ports['phoenix']}", {"authorization": f"Bearer {key}"}
        with httpx.Client(base_url=base, headers=headers, timeout=30) as client:
            yield client


@pytest.fixture(scope="module")
def prometheus(deployment: Deployment) -> Iterator[Prometheus]:
    """Prometheus with deploy/prometheus and the flags of compose.yaml."""
    config = deployment.folder / "prometheus"
    shutil.copytree(deployment.root / "deploy/prometheus", config)
    main = config / "prometheus.yml"
    text, replaced = re.subn("worker:9637", f"127.0.0.1:{deployment.ports['worker']}", main.read_text())
    assert replaced == 1
    main.write_text(text)
    flags = [
        flag.replace("/etc/prometheus", str(config)).replace("=/prometheus", f"={deployment.folder / 'tsdb'}")
        for flag in deployment.compose["services"]["prometheus"]["command"]
    ]
    address = f"127.0.0.1:{deployment.ports['prometheus']}"
    command = ["prometheus", *flags, f"--web.listen-address={address}"]
    with (
        running(command, deployment.folder / "prometheus.log", cwd=deployment.folder),
        httpx.Client(base_url=f"http://{address}", timeout=10) as client,
    ):
        yield Prometheus(client)


@dataclass
class Work:
    """What the worker has done by the time that it is looked at."""

    start: Callable[[], subprocess.Popen[bytes]]
    """Starts a worker."""

    process: subprocess.Popen[bytes]
    """The worker that did it."""

    traces: int
    """How many it had to take."""

    nul: Mapping[str, str]
    """Traces whose answer holds NUL: as citespan recorded it, and in JSON."""


@pytest.fixture(scope="module")
def recorded(deployment: Deployment, phoenix: httpx.Client) -> Mapping[str, str]:
    """What the demo recorded, and answers that hold NUL; returns those."""
    demo = [sys.executable, deployment.root / "examples/plain_rag.py"]
    for _ in range(DEMO_ROUNDS):
        subprocess.run(demo, env=deployment.environment("demo"), check=True, capture_output=True, timeout=120)
    return record_nul(deployment, "citespan", "json")


@pytest.fixture(scope="module")
def work(
    deployment: Deployment, recorded: Mapping[str, str], prometheus: Prometheus, building: Future[Path]
) -> Iterator[Work]:
    """The worker, after it has evaluated what was recorded and Prometheus has noticed."""
    assert deployment.image["entrypoint"] == ["citespan"]
    command = [building.result(), *deployment.command("worker")]
    environment = {**deployment.worker_environment(), "HOME": "/nonexistent"}
    deployment.state.mkdir()
    traces = DEMO_ROUNDS * len(tomllib.loads(SCRIPT.read_text())["run"]) + len(recorded)
    with ExitStack() as stack:

        def start() -> subprocess.Popen[bytes]:
            log = deployment.folder / f"worker-{time.monotonic_ns()}.log"
            return stack.enter_context(running(command, log, env=environment, cwd=deployment.state))

        def is_seen() -> bool | None:
            done = prometheus.value("citespan_runs_evaluated_total")
            with_state = prometheus.value("sum(citespan_runs_with_state_total)")
            return (done or 0) + (with_state or 0) >= traces or None

        process = start()
        wait_for(is_seen, f"{traces} evaluated runs in Prometheus", timeout_seconds=240)
        yield Work(start, process, traces, recorded)


@dataclass
class HourlyPass:
    """A pass that another way to run citespan would start, over what the worker has done."""

    source: str
    """The file that says how."""

    state: Path
    """Where it keeps its state."""

    process: subprocess.Popen[str]
    """The pass."""


@pytest.fixture(scope="module")
def passes(
    work: Work, deployment: Deployment, building: Future[Path], texts: Mapping[str, str]
) -> Iterator[list[HourlyPass]]:
    """The CronJob's pass and the timer's, begun; each waits a minute, so other tests run meanwhile."""
    cronjob, service = "kubernetes/cronjob/cronjob.yaml", "systemd/citespan-evaluate.service"
    job = next(d for d in yaml.safe_load_all(texts[cronjob]) if d["kind"] == "CronJob")
    unit = re.search(r"^ExecStart=/usr/local/lib/citespan/bin/citespan (.*)$", texts[service], re.MULTILINE)
    assert unit is not None
    container = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    begun: list[HourlyPass] = []
    for source, arguments, inside in (
        (cronjob, container["args"], "/var/lib/citespan"),
        (service, unit[1].split(), "%S/citespan-evaluate"),
    ):
        folder = deployment.folder / Path(source).stem
        folder.mkdir()
        here = [argument.replace(inside, str(folder)) for argument in arguments]
        process = subprocess.Popen(
            [building.result(), *here],
            env=deployment.worker_environment(),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        begun.append(HourlyPass(source, folder / "evaluate.sqlite", process))
    yield begun
    for one in begun:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


@pytest.fixture(scope="module")
def read_rows(deployment: Deployment, phoenix: httpx.Client) -> Callable[[], list[StoredAnnotation]]:
    """Read everything that citespan has written into the project."""

    def read() -> list[StoredAnnotation]:
        connection = Connection(str(phoenix.base_url).rstrip("/"), dict(phoenix.headers))
        with PhoenixClient(connection) as client:
            project = client.project(deployment.environment("worker")["PHOENIX_PROJECT_NAME"])
            return [
                row
                for target in (Target.SPAN, Target.TRACE)
                for row in client.annotations(project, target, identifier="citespan")
            ]

    return read


@pytest.fixture(scope="module")
def rows_at_start(work: Work, read_rows: Callable[[], list[StoredAnnotation]]) -> list[StoredAnnotation]:
    """What was written before anything else was started."""
    return read_rows()


def test_verdicts_and_measures_are_in_phoenix(
    work: Work, rows_at_start: list[StoredAnnotation], passes: list[HourlyPass]
) -> None:
    rows = rows_at_start
    names = {row.annotation.name for row in rows}
    assert names >= {"verdict", "citations", "cite_cov", "cite_sup", "cite_valid", "cite_compl", "cite_state"}
    states = [row for row in rows if row.annotation.name == "cite_state"]
    assert len({row.annotation.target_id for row in states}) == len(states) >= work.traces


def test_prometheus_has_the_figures_that_phoenix_has(
    work: Work, prometheus: Prometheus, read_rows: Callable[[], list[StoredAnnotation]]
) -> None:
    assert prometheus.value('up{job="citespan-worker"}') == 1
    labels = [row.annotation.label for row in read_rows() if row.annotation.name == "cite_sup"]
    ratios = [label.split("/") for label in labels if label and "/" in label]
    supported, judged = (sum(int(ratio[n]) for ratio in ratios) for n in (0, 1))
    assert judged >= 50
    assert prometheus.value('citespan_measure_numerator_total{measure="support"}') == supported
    assert prometheus.value('citespan_measure_denominator_total{measure="support"}') == judged
    assert prometheus.value('citespan_measure_ratio{measure="support"}') == pytest.approx(supported / judged)
    verdicts = [row for row in read_rows() if row.annotation.name == "verdict"]
    assert prometheus.value("sum(citespan_claims_total)") == len(verdicts)


def test_every_rule_is_evaluated_and_the_figures_are_recorded(work: Work, prometheus: Prometheus) -> None:
    def healthy() -> list[Mapping[str, Any]] | None:
        found = prometheus.rules()
        return found if found and all(rule["health"] == "ok" for rule in found) else None

    rules = wait_for(healthy, "rule that every evaluation of is ok", timeout_seconds=60)
    assert len([rule for rule in rules if rule["type"] == "alerting"]) == 11
    assert [rule["name"] for rule in rules if rule.get("state") == "firing"] == []
    project = 'project="default"'
    recorded = f'project_measure:citespan_measure:ratio6h{{measure="support", {project}}}'
    assert wait_for(lambda: prometheus.value(recorded), "recorded support", timeout_seconds=60) <= 1


def test_every_panel_of_the_dashboard_has_data(work: Work, prometheus: Prometheus, deploy: Path) -> None:
    dashboard = json.loads((deploy / "grafana/dashboards/citespan.json").read_text())
    variables = {"$__rate_interval": "5m", "$__range": "24h", "$window": "1h", "$project": ".*"}
    empty: set[str] = set()
    for panel in dashboard["panels"]:
        found = 0
        for target in panel.get("targets", []):
            query = target["expr"]
            for name, value in variables.items():
                query = query.replace(name, value)
            found += len(prometheus.query(query))
        if panel["type"] != "row" and not found:
            empty.add(panel["title"])
    assert empty <= HIDDEN_IN_TEST


def test_the_worker_keeps_far_below_its_memory_limit(
    work: Work, prometheus: Prometheus, compose: Mapping[str, Any]
) -> None:
    limit = compose["services"]["worker"]["deploy"]["resources"]["limits"]["memory"]
    assert limit == "256m"
    peak = prometheus.value("max_over_time(process_resident_memory_bytes[1h])")
    assert peak is not None
    assert peak < 128 * 2**20


def test_the_images_health_check_passes(work: Work, deployment: Deployment) -> None:
    command = deployment.image["healthcheck"]
    code = command[2].replace(":9637/", f":{deployment.ports['worker']}/")
    assert code != command[2]
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0
    wrong = code.replace("/healthz", "/nothing")
    assert subprocess.run([sys.executable, "-c", wrong], check=False, capture_output=True).returncode != 0


def test_a_nul_in_an_answer_costs_no_annotation(
    work: Work, prometheus: Prometheus, read_rows: Callable[[], list[StoredAnnotation]]
) -> None:
    """PostgreSQL stores no NUL, and Phoenix drops a whole annotation that holds one."""
    rows = [row.annotation for row in read_rows()]
    states = {row.target_id: row.label for row in rows if row.name == "cite_state"}
    assert {way: states[trace] for way, trace in work.nul.items()} == {
        "citespan": "evaluated",
        "json": "evaluated",
    }
    measured = {row.target_id for row in rows if row.name == "cite_sup"}
    assert measured >= set(work.nul.values())
    assert prometheus.value("citespan_traces_set_aside") == 0


def test_a_worker_that_is_stopped_ends_well_and_its_successor_evaluates_nothing_again(
    work: Work, deployment: Deployment, read_rows: Callable[[], list[StoredAnnotation]]
) -> None:
    before = read_rows()
    work.process.send_signal(signal.SIGTERM)
    assert work.process.wait(10) == 0
    work.start()

    def metrics() -> dict[str, float]:
        answer = httpx.get(f"http://127.0.0.1:{deployment.ports['worker']}/metrics")
        return {
            line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
            for line in answer.text.splitlines()
            if line[0] != "#"
        }

    def two_passes() -> dict[str, float] | None:
        try:
            found = metrics()
        except httpx.TransportError:
            return None
        return found if found['citespan_passes_total{end="done"}'] >= 2 else None

    found = wait_for(two_passes, "second pass", timeout_seconds=60)
    assert found["citespan_runs_evaluated_total"] == 0
    assert found["citespan_rows_written_total"] == 0
    assert found["citespan_claim_spans_written_total"] == 0
    assert read_rows() == before


def test_an_hourly_pass_over_what_the_worker_did_changes_nothing(
    passes: list[HourlyPass],
    rows_at_start: list[StoredAnnotation],
    read_rows: Callable[[], list[StoredAnnotation]],
) -> None:
    for one in passes:
        output, _ = one.process.communicate(timeout=180)
        assert one.process.returncode == 0, f"{one.source}: {output}"
        assert one.state.exists(), one.source
    assert read_rows() == rows_at_start


def test_a_span_that_phoenix_loses_to_a_nul_holds_nothing_up(
    work: Work, deployment: Deployment, phoenix: httpx.Client, prometheus: Prometheus
) -> None:
    trace = record_nul(deployment, "bare")["bare"]

    def names() -> set[str] | None:
        spans = phoenix.get("/v1/projects/default/spans", params={"trace_id": trace}).json()["data"]
        return {span["name"] for span in spans} or None

    # The root held the NUL: what arrives of the trace is what lies under it.
    assert wait_for(names, "trace without its root", timeout_seconds=30) == {"retrieve"}
    wait_for(lambda: prometheus.value("citespan_traces_pending == 1"), "trace that waits", timeout_seconds=60)
    ready = httpx.get(f"http://127.0.0.1:{deployment.ports['worker']}/readyz")
    assert ready.status_code == 200
