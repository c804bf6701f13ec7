"""How batches are given out to actors: a bounded number at once, results in order, and what kills actors is found."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import pytest

from citespan.evaluators.engines.engine import Batch, BatchResult
from citespan.evaluators.errors import NotFound, UsageError
from citespan.evaluators.judges.lexical import LexicalJudge
from citespan.evaluators.periodic.plan import Plan
from citespan.evaluators.periodic.stopping import Stopped
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.records import Project

PROJECT = Project("UHJvamVjdDox", "demo")


def test_without_ray_the_engine_says_what_to_install(
    citespan: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    done = citespan("evaluate", "--engine", "ray", "--endpoint", "http://127.0.0.1:9")
    assert (done.exit_code, done.out) == (2, "")
    assert "--engine ray needs Ray: pip install 'citespan[ray]'" in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--actors", "2"], "--actors is about Ray: add --engine ray"),
        (["--spans", "x", "--engine", "ray"], "leave out --engine, which is about Phoenix"),
    ],
)
def test_options_of_ray_that_mean_nothing_are_refused(
    citespan: Callable[..., Any], options: list[str], message: str
) -> None:
    done = citespan("evaluate", *options)
    assert done.exit_code == 2
    assert message in done.err


def test_an_error_of_a_server_travels_between_processes() -> None:
    error = pickle.loads(pickle.dumps(NotFound("no such trace", url="http://phoenix.test", status=404)))
    assert isinstance(error, NotFound)
    assert (str(error), error.url, error.status) == ("no such trace", "http://phoenix.test", 404)


pytest.importorskip("ray", reason="the extra `ray` is not installed")

from ray.exceptions import ActorDiedError  # noqa: E402 - only where Ray is installed

from citespan.evaluators.engines import ray_cluster  # noqa: E402
from citespan.evaluators.engines.ray_cluster import BATCHES_PER_ACTOR, RayCluster, RayEngine  # noqa: E402


@dataclass
class FakeRay:
    """Calls actors one after the other, when their results are asked for."""

    deadly: frozenset[str] = frozenset()
    """Traces that kill the actor that has them."""
    is_stuck: bool = False
    given_out: int = 0
    most_given_out: int = 0
    tries: list[tuple[str, ...]] = field(default_factory=list)
    evaluate: Any = None

    def __post_init__(self) -> None:
        self.evaluate = self  # an actor, and its method

    def remote(self, project: Project, batch: Batch) -> Batch:
        assert project == PROJECT
        self.given_out += 1
        self.most_given_out = max(self.most_given_out, self.given_out)
        return batch

    def wait(
        self, refs: list[Batch], *, num_returns: int, timeout: float | None
    ) -> tuple[list[Batch], list[Batch]]:
        return ([], refs) if self.is_stuck else (refs, [])

    def get(self, ref: Batch, *, timeout: float | None = None) -> BatchResult:
        self.given_out -= 1
        self.tries.append(ref.trace_ids)
        if self.deadly & set(ref.trace_ids):
            raise ActorDiedError
        return BatchResult(finished=dict.fromkeys(ref.trace_ids, 1))


def _engine(ray: FakeRay, *, actors: int = 2, stop: Callable[[], bool] = lambda: False) -> RayEngine:
    return RayEngine(ray, [ray] * actors, PROJECT, stop)  # type: ignore[arg-type, list-item]  # a fake Ray


def _batches(*some: Sequence[str]) -> Iterator[Batch]:
    return iter([Batch({key: {} for key in ids}) for ids in some])


def test_results_come_in_order_and_few_batches_are_ahead() -> None:
    ray = FakeRay()
    results = list(_engine(ray).evaluate(_batches(*([str(n)] for n in range(40)))))
    assert [list(result.finished) for result in results] == [[str(n)] for n in range(40)]
    assert ray.most_given_out == 2 * BATCHES_PER_ACTOR


def test_a_batch_is_taken_only_when_there_is_room_for_it() -> None:
    taken: list[int] = []

    def coming() -> Iterator[Batch]:
        for n in range(10):
            taken.append(n)
            yield Batch({str(n): {}})

    results = _engine(FakeRay(), actors=1).evaluate(coming())
    next(results)
    assert taken == list(range(BATCHES_PER_ACTOR))
    next(results)
    assert taken == list(range(BATCHES_PER_ACTOR + 1))


def test_a_trace_that_kills_every_actor_is_found_and_the_others_are_done() -> None:
    ray = FakeRay(deadly=frozenset("c"))
    results = list(_engine(ray).evaluate(_batches("abcd", "ef")))
    assert [list(result.finished) for result in results] == [["a", "b"], [], ["d"], ["e", "f"]]
    assert results[1].summary.set_aside["c"].startswith("worker_died: ActorDiedError")
    # Three times whole, then its halves, then the half that kills in halves.
    whole, rest = tuple("abcd"), [("a", "b"), ("c", "d"), ("c",), ("d",), ("e", "f")]
    assert ray.tries == [whole, whole, whole, *rest]


def test_a_stop_gives_up_what_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "GRACE_SECONDS", 0.0)
    with pytest.raises(Stopped):
        list(_engine(FakeRay(is_stuck=True), stop=lambda: True).evaluate(_batches("a")))


def test_a_key_of_the_server_or_the_judge_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    from citespan.evaluators.engines.ray_desk import DeskOrder

    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("CITESPAN_CHAT_BUDGET_USD", "5")
    variables = ray_cluster.judge_variables()
    assert {name: value.get_secret_value() for name, value in variables.items()} == {
        "CITESPAN_CHAT_API_KEY": "sk-secret",
        "CITESPAN_CHAT_BUDGET_USD": "5",
    }
    connection = Connection("http://phoenix.test", {"authorization": "Bearer another-secret"})
    order = DeskOrder(connection, Plan("demo"), lambda: nullcontext(LexicalJudge()), variables, None)
    assert "secret" not in repr(order)


def test_a_cluster_that_does_not_answer_is_named() -> None:
    cluster = RayCluster(
        Connection("http://phoenix.test"),
        Plan("demo"),
        lambda: nullcontext(LexicalJudge()),
        address="127.0.0.1:1",
    )
    with pytest.raises(UsageError, match=r"cannot use the Ray cluster at 127\.0\.0\.1:1"), cluster:
        pass
