"""Faults let loose on a worker and a real Phoenix; `make test` runs a few rounds of each, `make test-faults` all."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.faults.ledger import Ledger
from tests.faults.oracle import Examination
from tests.faults.proxy import FaultProxy
from tests.faults.rig import Site

from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.server import PhoenixServer

FIRST_SEED = 1
SHORT_ROUNDS = 3


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("faults")
    group.addoption("--full", action="store_true", help="run the full numbers of rounds and traces")
    group.addoption(
        "--seed", type=int, default=FIRST_SEED, help="seed of the first round; the next has the next"
    )
    group.addoption("--rounds", type=int, default=None, help="rounds of each fault")
    group.addoption("--arriving", type=int, default=10_000, help="traces that arrive in a full storm")
    group.addoption("--report", type=Path, default=None, help="write the table of what was done to this file")


def pytest_report_header(config: pytest.Config) -> str:
    option = config.getoption
    return f"faults: {'full' if option('--full', False) else 'short'} run, first seed {option('--seed', FIRST_SEED)}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show what all processes of this run did, and write it where --report says."""
    ledger = Ledger.load(_rows(config).glob("*.json"))
    if not ledger.rows:
        return
    terminalreporter.section("faults")
    terminalreporter.write(ledger.table())
    path: Path | None = config.getoption("--report", None)
    if path is not None:
        path.write_text(ledger.page(), encoding="utf-8")


def _rows(config: pytest.Config) -> Path:
    """Return the folder in which the processes of this run keep their rows."""
    main: int = getattr(config, "workerinput", {}).get("faults_main", os.getpid())
    return config.rootpath / ".citespan" / "faults" / str(main)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Under xdist, tell each process which run it belongs to."""
    node.workerinput["faults_main"] = os.getpid()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one round came to."""

    result: Examination
    traces: int
    injected: Mapping[str, int]


Round = Callable[[int, bool], Outcome]
"""Does one round with this seed; without the fault if the second argument is false."""


@dataclass
class Trials:
    """How many rounds, from which seeds, and where their results go."""

    ledger: Ledger
    rows: Path
    is_full: bool
    first_seed: int
    given_rounds: int | None
    arriving: int

    def size(self, full: int) -> int:
        """Return how many traces a round is to have; half as many in a short run."""
        return full if self.is_full else full // 2

    def run(
        self, fault: str, once: Round, *, full: int, short: int = SHORT_ROUNDS, is_timed: bool = True
    ) -> None:
        """Do the rounds of a fault, `full` of them in a full run, which also times one without the fault."""
        row = self.ledger.of(fault)
        if self.is_full and is_timed:
            began = time.monotonic()
            once(self.first_seed, False)
            row.calm_seconds = time.monotonic() - began
        rounds = self.given_rounds or (full if self.is_full else short)
        for seed in range(self.first_seed, self.first_seed + rounds):
            began = time.monotonic()
            outcome = once(seed, True)
            row.seconds += time.monotonic() - began
            for kind, number in outcome.injected.items():
                row.injected[kind] = row.injected.get(kind, 0) + number
            self.ledger.add(fault, seed, outcome.result, traces=outcome.traces)
            self.ledger.save(self.rows / f"{os.getpid()}.json")
            again = f'make test-faults ARGS="--seed {seed} --rounds 1 -k ..."'
            found = "\n".join(outcome.result.violations[:20])
            assert not outcome.result.violations, f"{fault}, seed {seed} (again: {again}):\n{found}"


@pytest.fixture(scope="session")
def trials(request: pytest.FixtureRequest) -> Trials:
    option = request.config.getoption
    return Trials(
        Ledger(),
        _rows(request.config),
        is_full=bool(option("--full", False)),
        first_seed=int(option("--seed", FIRST_SEED)),
        given_rounds=option("--rounds", None),
        arriving=int(option("--arriving", 10_000)),
    )


@pytest.fixture(scope="session")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PhoenixServer]:
    """The Phoenix that most faults share."""
    with PhoenixServer(tmp_path_factory.mktemp("phoenix")) as started:
        yield started


@pytest.fixture(scope="session")
def client(phoenix: PhoenixServer) -> Iterator[PhoenixClient]:
    """Goes to Phoenix directly."""
    with PhoenixClient(Connection(phoenix.url)) as made:
        yield made


ADMIN_SECRET = "an-admin-secret-of-more-than-32-characters-1"


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PhoenixServer]:
    """Another Phoenix, with authentication, for faults of Phoenix itself."""
    variables = {
        "PHOENIX_ENABLE_AUTH": "true",
        "PHOENIX_SECRET": "a-secret-of-more-than-32-characters-1",
        "PHOENIX_ADMIN_SECRET": ADMIN_SECRET,
    }
    with PhoenixServer(tmp_path_factory.mktemp("guarded"), variables=variables) as started:
        yield started


@pytest.fixture(scope="session")
def admin(guarded: PhoenixServer) -> Iterator[PhoenixClient]:
    """Goes to the guarded Phoenix directly, and may do everything."""
    with PhoenixClient(Connection(guarded.url, {"authorization": f"Bearer {ADMIN_SECRET}"})) as made:
        yield made


@pytest.fixture
def proxy(phoenix: PhoenixServer) -> Iterator[FaultProxy]:
    """Stands before the shared Phoenix."""
    with FaultProxy(phoenix.url) as made:
        yield made


@pytest.fixture
def site(client: PhoenixClient) -> Site:
    """A project of the test's own."""
    return Site(client)
