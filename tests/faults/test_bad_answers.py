"""A network or gateway that spoils answers: the worker waits it out, and every trace is evaluated exactly once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from tests.faults.conftest import Outcome, Trials
from tests.faults.kinds import WRITES, Fault
from tests.faults.proxy import FaultProxy
from tests.faults.rig import Site, WorkerProcess, working

from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.server import PhoenixServer

pytestmark = [pytest.mark.phoenix, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def proxy(phoenix: PhoenixServer) -> Iterator[FaultProxy]:
    with FaultProxy(phoenix.url) as made:
        yield made


@pytest.fixture(scope="module")
def shared(client: PhoenixClient) -> Site:
    site = Site(client)
    site.store(12)
    site.let_people_write()
    return site


@pytest.fixture(scope="module")
def worker(
    shared: Site, proxy: FaultProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WorkerProcess]:
    """One worker for all the storms, as it would be."""
    with working(shared, proxy.url, tmp_path_factory.mktemp("worker") / "state") as started:
        yield started


GROUPS = {
    "errors": (Fault.ERROR_500, Fault.ERROR_502, Fault.ERROR_503, Fault.ERROR_503_LATER, Fault.ERROR_429),
    "pages": (Fault.PAGE_200, Fault.PAGE_404, Fault.ERROR_404),
    "gone": (Fault.SILENCE, Fault.RESET),
    "lost": (Fault.LOST_ERROR_500, Fault.LOST_SILENCE, Fault.LOST_RESET, Fault.LOST_PAGE),
    "broken": (Fault.SLOW, Fault.DRIP, Fault.CUT_JSON, Fault.CUT_BODY),
}
"""In a short run each round draws from one of these; in a full run each kind has rounds of its own as well."""


def test_each_kind_is_in_a_group() -> None:
    assert sorted(kind for kinds in GROUPS.values() for kind in kinds) == sorted(Fault)


@dataclass
class Bench:
    """One worker for all the storms, as it would be."""

    site: Site
    proxy: FaultProxy
    worker: WorkerProcess
    trials: Trials

    def storm(self, name: str, kinds: Sequence[Fault], *, full: int, most: int) -> None:
        """Record traces and spoil the worker's next requests in these ways."""

        def once(seed: int, is_spoiled: bool) -> Outcome:
            before = self.proxy.injected.copy()
            if is_spoiled:
                # Every second round spoils whatever is written, the others some of everything.
                methods, share = (WRITES, 1.0) if seed % 2 else (frozenset[str](), 0.4)
                self.proxy.storm(kinds, share=share, seed=seed, most=most, methods=methods)
            new = self.site.store(20 if self.trials.is_full else 8)
            if is_spoiled:
                self.worker.wait_until(lambda: self.proxy.is_spent, f"spent {most} faults")
            self.proxy.calm()
            result = self.site.wait_until_whole(self.worker, new)
            return Outcome(result, len(new), self.proxy.injected - before)

        self.trials.run(f"answers: {name}", once, full=full)


@pytest.fixture
def bench(shared: Site, proxy: FaultProxy, worker: WorkerProcess, trials: Trials) -> Bench:
    return Bench(shared, proxy, worker, trials)


@pytest.mark.parametrize("group", list(GROUPS))
def test_each_trace_is_evaluated_once_through(group: str, bench: Bench) -> None:
    if bench.trials.is_full:
        for kind in GROUPS[group]:
            bench.storm(kind, (kind,), full=5, most=4)
    else:
        bench.storm(group, GROUPS[group], full=3, most=2)


def test_each_trace_is_evaluated_once_through_a_mix(bench: Bench) -> None:
    bench.storm("a mix", tuple(Fault), full=10, most=12 if bench.trials.is_full else 3)


def test_in_the_end_the_whole_project_is_as_it_has_to_be(shared: Site, worker: WorkerProcess) -> None:
    assert shared.wait_until_whole(worker).violations == ()
    assert worker.stop() < 10
