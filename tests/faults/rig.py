"""Storms of traces in a real Phoenix, people who write on them, and workers in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

import httpx
from tests.faults.oracle import Examination, Expected, examine

from citespan.evaluators.annotate import Annotator
from citespan.evaluators.errors import NotFound
from citespan.evaluators.judges.registry import load_judge
from citespan.evaluators.options import CitationScope, EvaluateOptions, LabelPolicy
from citespan.evaluators.periodic.state import SqliteState
from citespan.evaluators.phoenix.client import PhoenixClient, span_id_of, trace_id_of
from citespan.evaluators.phoenix.records import Annotation, Kind, Project, StoredAnnotation, Target
from citespan.evaluators.sources.phoenix import PhoenixSource, is_claim_span
from citespan.evaluators.worker import run_pass
from citespan.tracer import Passage, run
from citespan.tracer.testing import record_in_memory

SPANS_PER_POST = 500
PATIENCE_SECONDS = 120.0
FACTS = ("Refunds take five days.", "Exports take two hours.", "Backups are kept for nine weeks.")


@cache
def shapes() -> tuple[tuple[Mapping[str, Any], ...], ...]:
    """Return the spans of the kinds of runs that storms are made of: one to three claims, uncited ones, no answer."""
    passages = [Passage(id=f"kb-{n}", text=fact, label=str(n)) for n, fact in enumerate(FACTS, start=1)]
    cited = [f"{fact[:-1]} [{n}]." for n, fact in enumerate(FACTS, start=1)]
    answers = [
        cited[0],
        " ".join(cited[:2]),
        " ".join(cited),
        f"{FACTS[2]} {cited[0]}",
        "Pigs fly [2]. [9]",
        None,
    ]
    made: list[tuple[Mapping[str, Any], ...]] = []
    for answer in answers:
        with record_in_memory() as recorded:
            with run("How long does it take?") as one:
                one.retrieved(passages)
                if answer is not None:
                    one.answer(answer)
            made.append(tuple(recorded.dump()))
    return tuple(made)


def trace_spans(number: int) -> list[Mapping[str, Any]]:
    """Return the spans of one new trace in Phoenix's JSON."""
    trace_id, ids = uuid.uuid4().hex, dict[str, str]()
    end = datetime.now(UTC)
    spans: list[Mapping[str, Any]] = []
    for span in shapes()[number % len(shapes())]:
        attributes = dict(span["attributes"])
        parent_id = span["parent_id"]
        spans.append(
            {
                "name": span["name"],
                "context": {"trace_id": trace_id, "span_id": _id_for(ids, span["span_id"])},
                "parent_id": None if parent_id is None else _id_for(ids, parent_id),
                "span_kind": attributes.pop("openinference.span.kind"),
                "start_time": (end - timedelta(milliseconds=50)).isoformat(),
                "end_time": end.isoformat(),
                "status_code": "OK",
                "attributes": attributes,
            }
        )
    return spans


def _id_for(ids: dict[str, str], recorded: str) -> str:
    return ids.setdefault(recorded, os.urandom(8).hex())


def wait_for(look: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until `look` returns something true."""
    deadline = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < deadline, f"not {what} within {seconds:g} s"
        time.sleep(0.05)


@dataclass
class Site:
    """One project of a real Phoenix, reached directly: what the app and people put there, and whether all is well."""

    client: PhoenixClient
    name: str = field(default_factory=lambda: f"fault-{uuid.uuid4().hex[:8]}")
    spans: dict[str, list[str]] = field(default_factory=dict)
    """By trace id, the spans that the app recorded."""
    human: list[StoredAnnotation] = field(default_factory=list)

    @property
    def project(self) -> Project:
        return self.client.project(self.name)

    @property
    def trace_ids(self) -> list[str]:
        return list(self.spans)

    def store(self, count: int) -> list[str]:
        """Record new traces, wait until Phoenix has them all, and return their ids."""
        spans = [span for n in range(count) for span in trace_spans(len(self.spans) + n)]
        for start in range(0, len(spans), SPANS_PER_POST):
            some = spans[start : start + SPANS_PER_POST]
            self.client.add_spans(Project(self.name, self.name), some)
            wait_for(partial(self._has, span_id_of(some[-1])), "stored")
        for span in spans:
            self.spans.setdefault(trace_id_of(span), []).append(span_id_of(span))
        return list(dict.fromkeys(map(trace_id_of, spans)))

    def _has(self, span_id: str) -> bool:
        try:
            return any(page.spans for page in self.client.span_pages(self.project, span_ids=[span_id]))
        except NotFound:
            return False

    def let_people_write(self) -> None:
        """Evaluate the first six traces otherwise than the worker will, and let people write on them.

        Of the first three the worker reads other claims (another generation), of the others the same.
        """
        for traces, options in (
            (self.trace_ids[:3], EvaluateOptions(citation_scope=CitationScope.PARAGRAPH)),
            (self.trace_ids[3:6], EvaluateOptions(label_policy=LabelPolicy.UNION)),
        ):
            source = PhoenixSource(self.client, self.project, trace_ids=traces)
            run_pass(source, annotator=Annotator(self.client, self.project), options=options)
        early = set(self.trace_ids[:6])
        spans = [data for page in self.client.span_pages(self.project) for data in page.spans]
        spans = [data for data in spans if trace_id_of(data) in early]
        claims = [span_id_of(data) for data in spans if is_claim_span(data)][::2]
        roots = [span_id_of(data) for data in spans if data.get("parent_id") is None][::2]
        by_hand = {"kind": Kind.HUMAN, "label": "by hand", "explanation": "A person wrote this."}
        self._plant(
            Target.SPAN,
            [
                *(Annotation(span_id, "verdict", "citespan", **by_hand) for span_id in claims[::2]),
                *(Annotation(span_id, "verdict_human", "px-app:1", **by_hand) for span_id in claims),
                *(Annotation(span_id, "citations", "citespan", **by_hand) for span_id in roots),
            ],
        )
        self._plant(
            Target.TRACE,
            [
                *(Annotation(trace_id, "quality", "", **by_hand) for trace_id in self.trace_ids[:8]),
                *(
                    Annotation(trace_id, "cite_sup", "citespan", **by_hand)
                    for trace_id in self.trace_ids[1:9:2]
                ),
                Annotation(self.trace_ids[7], "cite_state", "citespan", **by_hand),
            ],
        )

    def let_people_take_over(self, names: Sequence[str]) -> None:
        """Let people write in the place of citespan's rows with these names on every trace."""
        row = Annotation("", "", "citespan", kind=Kind.HUMAN, label="by hand")
        rows = [replace(row, target_id=i, name=name) for i in self.trace_ids for name in names]
        self._plant(Target.TRACE, rows)

    def _plant(self, target: Target, rows: Sequence[Annotation]) -> None:
        self.client.annotate(target, rows)
        keys = {row.key for row in rows}
        stored = self.client.annotations(self.project, target, target_ids=[row.target_id for row in rows])
        self.human += [row for row in stored if row.key in keys]

    def examine(
        self, trace_ids: Sequence[str] | None = None, *, state: Path | None = None, is_over: bool = True
    ) -> Examination:
        """Return what the oracle says of these traces, by default of all."""
        some = self.trace_ids if trace_ids is None else trace_ids
        spans = frozenset(span_id for trace_id in some for span_id in self.spans[trace_id])
        planted = spans.union(some) if trace_ids is not None else None
        human = [row for row in self.human if planted is None or row.annotation.target_id in planted]
        expected = Expected(some, spans, human, _set_aside(state), is_whole_project=trace_ids is None)
        return examine(self.client, self.project, expected, load_judge("lexical").card, is_over=is_over)

    def done_count(self, trace_ids: Sequence[str] | None = None) -> int:
        """Return how many traces have a mark."""
        ids = self.trace_ids if trace_ids is None else trace_ids
        rows = self.client.annotations(self.project, Target.TRACE, target_ids=ids, names=["cite_state"])
        return len({row.annotation.target_id for row in rows if not row.is_human})

    def wait_until_whole(
        self,
        worker: WorkerProcess,
        trace_ids: Sequence[str] | None = None,
        *,
        seconds: float = PATIENCE_SECONDS,
    ) -> Examination:
        """Wait until the worker has done every trace, and return what the oracle says then."""
        deadline, wanted = time.monotonic() + seconds, len(self.trace_ids if trace_ids is None else trace_ids)
        while True:
            is_late = time.monotonic() > deadline
            assert worker.process.poll() is None, f"the worker ended:\n{worker.log_tail}"
            began = time.monotonic()
            if is_late or self.done_count(trace_ids) == wanted:
                result = self.examine(trace_ids, state=worker.state)
                if is_late or not result.violations:
                    return result
            time.sleep(max(0.1, time.monotonic() - began))


def _set_aside(state: Path | None) -> dict[str, str]:
    if state is None:
        return {}
    kept = SqliteState(state)
    failures = [failure for scope in kept.scopes() for failure in kept.failures(scope)]
    return {failure.trace_id: failure.reason for failure in failures if failure.is_set_aside}


@dataclass
class WorkerProcess:
    """`citespan worker` in a process of its own."""

    process: subprocess.Popen[bytes]
    state: Path
    log_path: Path

    @property
    def events(self) -> list[dict[str, Any]]:
        """What it has logged so far; a line that is being written is left out."""
        lines = self.log_path.read_text(errors="replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    @property
    def log_tail(self) -> str:
        return self.log_path.read_text(errors="replace")[-4000:]

    def named(self, event: str) -> list[dict[str, Any]]:
        return [found for found in self.events if found["event"] == event]

    def ask(self, path: str) -> httpx.Response:
        """Ask its health server."""
        self.wait_until(lambda: self.named("started"), "started")
        url = str(self.named("started")[0]["metrics"]).removesuffix("/metrics")
        return httpx.get(f"{url}{path}", trust_env=False)

    @property
    def is_ready(self) -> bool:
        return self.ask("/readyz").status_code == 200

    def wait_until(self, look: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until `look` returns something true, as long as the worker runs."""

        def look_at_both() -> object:
            assert self.process.poll() is None, f"the worker ended:\n{self.log_tail}"
            return look()

        wait_for(look_at_both, what, seconds)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        assert self.process.wait(10) == -signal.SIGKILL

    def stop(self) -> float:
        """Send SIGTERM and return after how many seconds the worker has ended."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=20)
        assert code in (0, 4), f"exit code {code}:\n{self.log_tail}"
        return time.monotonic() - began


@contextmanager
def working(
    site: Site,
    url: str,
    state: Path,
    *options: str,
    variables: Mapping[str, str] | None = None,
) -> Iterator[WorkerProcess]:
    """Run a worker on `url` during the block; it is killed at the end if it still runs."""
    log_path = state.parent / f"worker-{uuid.uuid4().hex[:8]}.log"
    log_path.parent.mkdir(parents=True, exist_ok=True)
    arguments = [
        *(sys.executable, "-m", "citespan", "worker", "--endpoint", url, "--project", site.name),
        *("--state", str(state), "--settle", "0.3", "--interval", "0.3", "--claim-rate", "0"),
        *("--metrics-port", "0", *options),
    ]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PHOENIX_")}
    env = {**inherited, "CITESPAN_TIMEOUT_SECONDS": "1", **(variables or {})}
    with log_path.open("wb") as log:
        process = subprocess.Popen(arguments, stderr=log, stdout=log, env=env)
    try:
        yield WorkerProcess(process, state, log_path)
    finally:
        process.kill()
        process.wait()
