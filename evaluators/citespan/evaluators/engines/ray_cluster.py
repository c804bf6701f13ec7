"""Batches of traces on a Ray cluster: each actor has its own judge and its own connection to Phoenix.

The traces are chosen in this process and handed out in batches, a few ahead of each actor. Results come back in the
order of the batches. A batch whose actor died is given out again, since writing it twice changes nothing; one that
goes on killing actors is halved down to the trace that does, which is set aside.
"""

from __future__ import annotations

import importlib
import logging
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, cast

from pydantic import SecretStr

from citespan.evaluators.engines.engine import Batch, BatchResult
from citespan.evaluators.engines.ray_desk import DeskOrder, RayDesk
from citespan.evaluators.errors import CitespanError, UsageError
from citespan.evaluators.judges.judge import Judge, JudgeCard, JudgeRequest
from citespan.evaluators.periodic.plan import Plan
from citespan.evaluators.periodic.stopping import Stopped
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.records import Project
from citespan.evaluators.settings import CHAT_VARIABLES, ChatSettings, set_missing_variables
from citespan.evaluators.verdicts import Verdict

__all__ = ["RayCluster", "RayEngine", "judge_variables"]

MOST_TRIES = 3
"""How often a batch is given out before it is halved, or its trace set aside."""

BATCHES_PER_ACTOR = 3
"""Batches given out and not concluded, for each actor: enough to keep it busy, few enough to keep memory flat."""

START_SECONDS = 300.0
"""How long the actors may take to start and to load the judge."""

REACH_SECONDS = 10.0
"""How long a cluster's address may take to answer."""

GRACE_SECONDS = 3.0
"""After a stop was asked for, the batches that are given out may take so long.

A cluster that was started here takes some seconds more to end: 8 in all on a busy machine of two cores.
"""

NOTES_SECONDS = 1.0
"""How long actors may take to say what their judges have to say: those that were given up may be busy."""

OBJECT_STORE_BYTES = 200 * 1024 * 1024
"""Shared memory of a cluster that is started here: it holds what the actors return until it is taken."""

_LOOK_SECONDS = 0.5


class _Method(Protocol):
    def remote(self, *arguments: object) -> object: ...


class _Actor(Protocol):
    """What Ray makes of a `RayDesk`."""

    card: _Method
    judge: _Method
    notes: _Method
    process_id: _Method
    evaluate: _Method


class _ActorClass(Protocol):
    def options(self, **options: object) -> _ActorClass: ...

    def remote(self, *arguments: object) -> _Actor: ...


class _Ray(Protocol):
    """The part of Ray that is used here, as Ray 2 documents it."""

    def is_initialized(self) -> bool: ...

    def init(self, address: str | None = None, **options: object) -> object: ...

    def shutdown(self) -> None: ...

    def remote(self, made: type) -> _ActorClass: ...

    def get(self, refs: object, *, timeout: float | None = None) -> object: ...

    def wait(
        self, refs: list[object], *, num_returns: int, timeout: float | None
    ) -> tuple[list[object], list[object]]: ...

    def kill(self, actor: _Actor) -> None: ...

    def cluster_resources(self) -> Mapping[str, float]: ...


def _import_ray() -> _Ray:
    set_missing_variables({"RAY_USAGE_STATS_ENABLED": "0"})  # nothing is told to anybody
    try:
        return cast("_Ray", importlib.import_module("ray"))
    except ImportError as error:
        raise UsageError("--engine ray needs Ray: pip install 'citespan[ray]'") from error


def _ray_errors() -> tuple[type[Exception], type[Exception]]:
    """Return the root of Ray's errors, and the one that stands for an error of the called method."""
    errors = importlib.import_module("ray.exceptions")
    return cast("type[Exception]", errors.RayError), cast("type[Exception]", errors.RayTaskError)


class RayCluster:
    """Actors on a Ray cluster, for the length of a `with` block."""

    def __init__(
        self,
        connection: Connection,
        plan: Plan,
        open_judge: Callable[[], AbstractContextManager[Judge]],
        *,
        actors: int | None = None,
        address: str | None = None,
        is_stop_wanted: Callable[[], bool] = lambda: False,
    ) -> None:
        """Describe the cluster; entering the block starts it.

        Args:
            connection: The server.
            plan: How runs are read, judged and shown.
            open_judge: Makes the judge, in each actor's process.
            actors: How many; by default one for each CPU of the cluster.
            address: A cluster that runs; by default one is started here.
            is_stop_wanted: Whether to give out no more.
        """
        self._connection = connection
        self._plan = plan
        self._open_judge = open_judge
        self._count = actors
        self._address = address
        self._is_stop_wanted = is_stop_wanted
        self._ray: _Ray | None = None
        self._owns_ray = False
        self._actors: list[_Actor] = []
        self._card: JudgeCard | None = None

    def __enter__(self) -> Self:
        """Connect, start the actors and have each load the judge.

        Raises:
            UsageError: Ray is not installed, the cluster does not answer or has no room, or the judge is unknown.
        """
        self._ray = _import_ray()
        try:
            self._connect(self._ray)
            self._start(self._ray)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the actors, and the cluster if it was started here."""
        if self._ray is None or not self._ray.is_initialized():
            return
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors.clear()
        if self._owns_ray:
            self._ray.shutdown()

    @property
    def judge(self) -> Judge:
        """The judge, as it stands in the actors."""
        assert self._ray is not None  # noqa: S101 - set on entering
        assert self._card is not None  # noqa: S101
        return _JudgeThere(self._ray, self._actors, self._card)

    @property
    def process_ids(self) -> list[int]:
        """The processes of the actors, each on its machine."""
        assert self._ray is not None  # noqa: S101 - set on entering
        return cast("list[int]", self._ray.get([actor.process_id.remote() for actor in self._actors]))

    def engine(self, project: Project) -> RayEngine:
        """Return what evaluates the traces of a project on the actors."""
        assert self._ray is not None  # noqa: S101 - set on entering
        return RayEngine(self._ray, self._actors, project, self._is_stop_wanted)

    def _connect(self, ray: _Ray) -> None:
        if ray.is_initialized():
            return
        self._owns_ray = True
        options: dict[str, object] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if self._address is None:
            self._count = self._count or os.cpu_count() or 1
            options |= {
                "address": "local",
                "num_cpus": self._count,
                "object_store_memory": OBJECT_STORE_BYTES,
                "include_dashboard": False,
            }
        else:
            _check_reachable(self._address)
            options["address"] = self._address
        try:
            ray.init(**options)  # type: ignore[arg-type]  # options by name
        except (OSError, ValueError, RuntimeError) as error:
            where = self._address or "this machine"
            raise UsageError(f"cannot use the Ray cluster at {where}: {error}") from error

    def _start(self, ray: _Ray) -> None:
        count = self._count or max(1, int(ray.cluster_resources().get("CPU", 1)))
        rate = self._plan.claim_spans_per_second
        order = DeskOrder(
            self._connection, self._plan, self._open_judge, judge_variables(), rate and rate / count
        )
        made = ray.remote(RayDesk).options(num_cpus=1, max_restarts=-1)
        self._actors = [made.remote(order) for _ in range(count)]
        failure, failure_there = _ray_errors()
        try:
            cards = ray.get([actor.card.remote() for actor in self._actors], timeout=START_SECONDS)
        except failure_there as error:
            cause = getattr(error, "cause", None)
            raise (cause if isinstance(cause, CitespanError) else error) from None
        except failure as error:
            raise UsageError(
                f"the Ray cluster did not start {count} actors with a judge within {START_SECONDS:.0f} s: "
                f"give fewer --actors, or see that citespan is installed on its nodes ({error})"
            ) from error
        self._card = cast("list[JudgeCard]", cards)[0]


@dataclass(slots=True)
class _Task:
    """A batch that was given out."""

    batch: Batch
    tries: int
    actor: int
    ref: object
    is_done: bool = False


class RayEngine:
    """Gives batches out to actors, a bounded number at once, and takes the results in order."""

    def __init__(
        self, ray: _Ray, actors: Sequence[_Actor], project: Project, is_stop_wanted: Callable[[], bool]
    ) -> None:
        self._ray = ray
        self._actors = actors
        self._project = project
        self._is_stop_wanted = is_stop_wanted
        self._given_out: deque[_Task] = deque()
        self._stop_at: float | None = None
        self._failure, _ = _ray_errors()

    def evaluate(self, batches: Iterable[Batch]) -> Iterator[BatchResult]:
        """Yield what became of each batch, in order; a batch that was halved has a result for each part.

        Raises:
            Stopped: A stop was asked for, and what was given out took too long.
        """
        coming = iter(batches)
        has_more = True
        while True:
            while has_more and len(self._given_out) < BATCHES_PER_ACTOR * len(self._actors):
                batch = next(coming, None)
                if batch is None:
                    has_more = False
                else:
                    self._given_out.append(self._give_out(batch, tries=1))
            if not self._given_out:
                return
            self._wait_for_first()
            result = self._take_first()
            if result is not None:
                yield result

    def _give_out(self, batch: Batch, *, tries: int) -> _Task:
        """Give a batch to the actor that has least to do."""
        load = [0] * len(self._actors)
        for task in self._given_out:
            load[task.actor] += not task.is_done
        actor = load.index(min(load))
        return _Task(batch, tries, actor, self._actors[actor].evaluate.remote(self._project, batch))

    def _wait_for_first(self) -> None:
        """Wait for the first batch that was given out, or for the end of the grace that a stop gives."""
        while True:
            refs = [task.ref for task in self._given_out]
            self._ray.wait(refs[:1], num_returns=1, timeout=_LOOK_SECONDS)
            done, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0)
            for task in self._given_out:
                task.is_done = task.ref in done
            if self._given_out[0].is_done:
                return
            if self._is_stop_wanted():
                self._stop_at = self._stop_at or time.monotonic() + GRACE_SECONDS
                if time.monotonic() >= self._stop_at:
                    raise Stopped

    def _take_first(self) -> BatchResult | None:
        """Return the first result; `None` if the batch has to be given out again."""
        task = self._given_out.popleft()
        try:
            return cast("BatchResult", self._ray.get(task.ref))
        except self._failure as error:
            return self._again(task, error)

    def _again(self, task: _Task, error: Exception) -> BatchResult | None:
        """Give a batch out again whose actor died, in halves after some tries; set a single trace aside then."""
        ids = task.batch.trace_ids
        if task.tries < MOST_TRIES:
            self._given_out.appendleft(self._give_out(task.batch, tries=task.tries + 1))
        elif len(ids) > 1:
            middle = len(ids) // 2
            for half in (ids[middle:], ids[:middle]):
                notes = {trace_id: task.batch.notes[trace_id] for trace_id in half}
                batch = Batch(notes, trusts_phoenix=task.batch.trusts_phoenix)
                self._given_out.appendleft(self._give_out(batch, tries=MOST_TRIES))
        else:
            result = BatchResult()
            text = " ".join(str(error).split())
            result.summary.set_aside[next(iter(ids))] = f"worker_died: {type(error).__name__}: {text[:300]}"
            return result
        return None


class _JudgeThere:
    """The judge of the actors, asked from here."""

    def __init__(self, ray: _Ray, actors: Sequence[_Actor], card: JudgeCard) -> None:
        self._ray = ray
        self._actors = actors
        self._card = card

    @property
    def card(self) -> JudgeCard:
        """What the judge is."""
        return self._card

    @property
    def notes(self) -> Sequence[str]:
        """What the judges of all actors say of their work; nothing if they cannot be asked any more."""
        failure, _ = _ray_errors()
        try:
            said = self._ray.get([actor.notes.remote() for actor in self._actors], timeout=NOTES_SECONDS)
        except failure:
            return ()
        many = cast("list[tuple[str, ...]]", said)
        return [f"actor {n}: {note}" for n, notes in enumerate(many, start=1) for note in notes]

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Return one verdict per request, in the same order."""
        return cast("list[Verdict]", self._ray.get(self._actors[0].judge.remote(requests)))


def _check_reachable(address: str) -> None:
    """Fail at once where nobody listens: Ray itself goes on trying for minutes.

    Raises:
        UsageError: Nobody listens there.
    """
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon:  # a word that Ray knows, such as `auto`
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_SECONDS).close()
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot use the Ray cluster at {address}: {error}") from error


def judge_variables() -> dict[str, SecretStr]:
    """Return the variables of this process that a chat judge reads: a node of a cluster does not have them."""
    told = ChatSettings.load()
    found: dict[str, SecretStr] = {}
    for field, names in CHAT_VARIABLES.items():
        value = cast("SecretStr | str | None", getattr(told, field))
        if value is not None:
            found[next(iter(names))] = value if isinstance(value, SecretStr) else SecretStr(value)
    return found
