"""A real Phoenix server for the tests of this folder, and what they do with it again and again."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from openinference.semconv.resource import ResourceAttributes
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from citespan.evaluators.annotate import Annotator
from citespan.evaluators.errors import NotFound
from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.judges.judge import Judge
from citespan.evaluators.options import DEFAULT_OPTIONS, EvaluateOptions
from citespan.evaluators.phoenix.client import PhoenixClient, span_id_of
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.records import Project, StoredAnnotation, Target
from citespan.evaluators.phoenix.server import PhoenixServer
from citespan.evaluators.runs import Run
from citespan.evaluators.settings import ClaimsMode
from citespan.evaluators.sources.phoenix import PhoenixSource, is_claim_span
from citespan.evaluators.worker import PassSummary, run_pass
from citespan.tracer import Passage, Redaction, run
from citespan.tracer.settings import read_settings
from citespan.tracer.tracing import active_tracing, adopt, set_tracing

_T = TypeVar("_T")

WORKED_EXAMPLES = Path(__file__).parents[1] / "data" / "worked_examples.json"


def wait_for(look: Callable[[], _T | None], what: str, timeout_seconds: float = 30.0) -> _T:
    """Return what `look` finds, as soon as it finds something."""
    deadline = time.monotonic() + timeout_seconds
    while (found := look()) is None:
        assert time.monotonic() < deadline, f"no {what} within {timeout_seconds} s"
        time.sleep(0.05)
    return found


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PhoenixServer]:
    with PhoenixServer(tmp_path_factory.mktemp("phoenix")) as started:
        yield started


@pytest.fixture(scope="session")
def connection(server: PhoenixServer) -> Connection:
    return Connection(server.url)


@pytest.fixture(scope="session")
def client(connection: Connection) -> Iterator[PhoenixClient]:
    with PhoenixClient(connection) as made:
        yield made


@dataclass
class Recorder:
    """An app that records runs with `citespan.tracer` into a project of its own."""

    client: PhoenixClient
    name: str
    last_span_ids: dict[str, str] = field(default_factory=dict)
    """By trace id, the span that arrives last: the run's own ends after everything under it."""

    def ask(self, question: str | None, answer: str | None, passages: Sequence[Passage]) -> str:
        """Record one run and return its trace id."""
        with run(question) as recorded:
            recorded.retrieved(passages)
            if answer is not None:
                recorded.answer(answer)
        return self.expect(recorded.trace_id, recorded.span_id)

    def expect(self, trace_id: str, last_span_id: str) -> str:
        """Wait for this trace too, up to the span that is stored last, and return its id."""
        self.last_span_ids[trace_id] = last_span_id
        return trace_id

    @property
    def trace_ids(self) -> list[str]:
        """The traces recorded, in order."""
        return list(self.last_span_ids)

    def replay(self, given: Run) -> str:
        """Record a run that is given as data."""
        return self.ask(given.question, given.answer, given.passages)

    @property
    def project(self) -> Project:
        """The project, once Phoenix has stored every trace recorded."""
        return wait_for(self._stored, f"{len(self.trace_ids)} traces in project {self.name}")

    def _stored(self) -> Project | None:
        try:
            project = self.client.project(self.name)
        except NotFound:
            return None
        batches = self.client.span_ids_by_trace(project)
        stored = {span_id for batch in batches for span_ids in batch.values() for span_id in span_ids}
        return project if stored >= set(self.last_span_ids.values()) else None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that citespan keeps of a project, without what Phoenix itself adds."""

    claim_spans: Mapping[str, Mapping[str, object]]
    """By span id."""

    rows: Mapping[tuple[str, str, str], StoredAnnotation]
    """By target, name and identifier."""

    def labels(self, name: str) -> dict[tuple[str, str], str | None]:
        """Return the labels of the rows with a name, by target and identifier."""
        return {
            (target, identifier): row.annotation.label
            for (target, row_name, identifier), row in self.rows.items()
            if row_name == name
        }

    def content(self) -> object:
        """Return what two equal evaluations have in common."""
        spans = {
            span_id: {key: value for key, value in span.items() if key != "id"}
            for span_id, span in self.claim_spans.items()
        }
        return spans, {key: row.annotation for key, row in self.rows.items()}


class Workbench:
    """One project: record into it, evaluate it, look at it."""

    def __init__(self, client: PhoenixClient, name: str) -> None:
        self.client = client
        self.name = name
        self.recorder = Recorder(client, name)

    @property
    def project(self) -> Project:
        return self.recorder.project

    def annotator(self, *, series: str | None = None, claims_mode: ClaimsMode = "spans") -> Annotator:
        return Annotator(self.client, self.project, series=series, claims_mode=claims_mode)

    def evaluate(
        self,
        *,
        judge: Judge | str = "lexical",
        series: str | None = None,
        claims_mode: ClaimsMode = "spans",
        options: EvaluateOptions = DEFAULT_OPTIONS,
    ) -> PassSummary:
        """Run one pass over the project and return its summary."""
        self.evaluations: list[Evaluation] = []
        return run_pass(
            PhoenixSource(self.client, self.project),
            judge,
            annotator=self.annotator(series=series, claims_mode=claims_mode),
            options=options,
            on_run=lambda evaluated: self.evaluations.append(evaluated.evaluation),
        )

    def spans(self) -> dict[str, Mapping[str, object]]:
        """Return every span of the project by span id."""
        pages = self.client.span_pages(self.project)
        return {span_id_of(data): data for page in pages for data in page.spans}

    def snapshot(self) -> Snapshot:
        """Return what citespan keeps of the project, and what people wrote on its spans."""
        spans = self.spans()
        project, trace_ids = self.project, self.recorder.trace_ids
        rows = [
            *self.client.annotations(project, Target.SPAN, target_ids=list(spans)),
            *self.client.annotations(project, Target.TRACE, target_ids=trace_ids),
        ]
        return Snapshot(
            {span_id: data for span_id, data in spans.items() if is_claim_span(data)},
            {row.key: row for row in rows},
        )


@pytest.fixture
def bench(client: PhoenixClient) -> Iterator[Workbench]:
    """A project of the test's own, into which `citespan.tracer` records."""
    with new_project(client) as made:
        yield made


@pytest.fixture
def make_bench() -> Callable[[PhoenixClient], AbstractContextManager[Workbench]]:
    """Make a project on another server, or with another key."""
    return new_project


@contextmanager
def new_project(client: PhoenixClient) -> Iterator[Workbench]:
    """Give a new project to a block."""
    workbench = Workbench(client, f"test-{uuid.uuid4().hex[:8]}")
    with recording(client.connection, workbench.name):
        yield workbench


@contextmanager
def recording(connection: Connection, project: str, redaction: Redaction | None = None) -> Iterator[None]:
    """Send what `citespan.tracer` records inside the block to one project, at once."""
    provider = TracerProvider(
        resource=Resource.create({ResourceAttributes.PROJECT_NAME: project}),
        span_limits=SpanLimits(max_span_attributes=10_000),
    )
    exporter = OTLPSpanExporter(endpoint=f"{connection.base_url}/v1/traces", headers=dict(connection.headers))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    before = active_tracing()
    set_tracing(adopt(provider, redaction or Redaction(), read_settings()))
    yield
    set_tracing(before)
    provider.shutdown()


@pytest.fixture
def recording_to(connection: Connection) -> Callable[[str, Redaction], AbstractContextManager[None]]:
    """Record into a project under redaction rules."""
    return lambda project, redaction: recording(connection, project, redaction)


@pytest.fixture(scope="session")
def worked_examples() -> Mapping[str, Run]:
    """Both examples of DESIGN.md by id."""
    runs = [Run.from_dict(data) for data in json.loads(WORKED_EXAMPLES.read_text())]
    return {given.id: given for given in runs}
