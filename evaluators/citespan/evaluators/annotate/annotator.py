"""Write evaluations into Phoenix so that doing it again, or after a crash, gives the same rows.

Write order for a batch of traces; every step can be repeated::

    claim spans -> until they are visible -> verdict rows -> measures -> what they replace is deleted -> cite_state

`cite_state` alone means that a trace is done. A row that a person made or changed is never touched: what
citespan has to say there goes beside it, under the identifier `citespan:machine`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from citespan.evaluators.annotate.claim_spans import ClaimSpan, claim_spans
from citespan.evaluators.annotate.rows import (
    CITATIONS,
    MEASURE_ROWS,
    STATE,
    VERDICT,
    VERDICT_HUMAN,
    citations_row,
    measure_rows,
    state_row,
    superseded_row,
    verdict_rows,
)
from citespan.evaluators.annotate.series import claim_identifier, identifier_of, series_of
from citespan.evaluators.annotate.trace_mark import TraceMark, origin_of, shows_claim_spans
from citespan.evaluators.errors import NotFound, Refused, Unauthorized
from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.fingerprints import claim_span_id, generation
from citespan.evaluators.phoenix.client import PhoenixClient, span_id_of, trace_id_of
from citespan.evaluators.phoenix.records import Annotation, Project, StoredAnnotation, Target
from citespan.evaluators.phoenix.row_writer import RowWriter, without_person
from citespan.evaluators.phoenix.span_writer import SpanSink, SpanWriter
from citespan.evaluators.settings import ClaimsMode
from citespan.evaluators.sources.phoenix import is_claim_span
from citespan.evaluators.verdicts import Label

__all__ = ["HUMAN_LABELS", "Annotator", "EvaluatedTrace", "Written"]

HUMAN_LABELS: Mapping[str, float | None] = {
    Label.SUPPORTED.value: 1.0,
    Label.PARTLY_SUPPORTED.value: 0.0,
    Label.UNSUPPORTED.value: 0.0,
    Label.CONTRADICTED.value: 0.0,
    "not_a_claim": None,
}
"""What people can choose in the form `verdict_human`, and its score in Phoenix's charts."""

_LABELS = frozenset(label.value for label in Label)


@dataclass(frozen=True, slots=True)
class EvaluatedTrace:
    """A trace and the evaluations of all its runs, in start order."""

    trace_id: str
    """The trace."""

    evaluations: tuple[Evaluation, ...]
    """At least one; each run's origin lies in the trace."""


@dataclass(slots=True)
class Written:
    """What was written, and what was not."""

    claim_spans: int = 0
    """Claim spans sent; those that Phoenix had already are not counted."""

    rows: int = 0
    """Annotations written, new or replaced."""

    human_rows_kept: int = 0
    """Rows that a person made or changed, and that citespan therefore wrote beside."""

    deleted: int = 0
    """Claim spans and rows of an earlier reading that were deleted."""

    runs_doubled: int = 0
    """Runs that another worker had finished, with the same result, before this one wrote them."""

    set_aside: dict[str, str] = field(default_factory=dict[str, str])
    """Traces that are not done, by id, with a machine-readable reason."""


@dataclass(slots=True)
class _Batch:
    """The traces of one batch, what Phoenix has on them, and what became of them."""

    traces: dict[str, EvaluatedTrace]
    """By trace id."""

    claim_spans: dict[str, list[ClaimSpan]]
    """By trace id, the claim spans it is to have."""

    stored_spans: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """By trace id, the ids of the claim spans it had before."""

    span_rows: list[StoredAnnotation] = field(default_factory=list[StoredAnnotation])
    """Every row on claim spans, read just before writing."""

    app_span_rows: list[StoredAnnotation] = field(default_factory=list[StoredAnnotation])
    """citespan's rows on the app's own spans, read just before writing."""

    trace_rows: list[StoredAnnotation] = field(default_factory=list[StoredAnnotation])
    """citespan's rows on the traces, read just before writing."""

    written: Written = field(default_factory=Written)
    """What was written so far."""

    @property
    def open(self) -> list[EvaluatedTrace]:
        """The traces that were not set aside."""
        aside = self.written.set_aside
        return [trace for trace_id, trace in self.traces.items() if trace_id not in aside]

    def set_aside(self, trace_id: str, reason: str) -> None:
        """Leave a trace for the next pass; the first reason counts."""
        self.written.set_aside.setdefault(trace_id, reason)


class Annotator:
    """Writes the evaluations of one series into one project."""

    def __init__(
        self,
        client: PhoenixClient,
        project: Project,
        *,
        series: str | None = None,
        claims_mode: ClaimsMode = "spans",
        spans: SpanSink | None = None,
        notes: Callable[[str], Mapping[str, object]] | None = None,
    ) -> None:
        """Prepare to write.

        Args:
            client: The server.
            project: The project that holds the traces.
            series: Name of a second evaluation kept beside the main one.
            claims_mode: How claims are shown.
            spans: What writes claim spans, for a bound or a pace of its own.
            notes: What else `cite_state` is to keep of a trace, by its id, such as why it was sampled.

        Raises:
            UsageError: The series has no usable name.
        """
        self._client = client
        self._project = project
        self._identifier = identifier_of(series)
        self._claims_mode: ClaimsMode = claims_mode
        self._spans: SpanSink = spans or SpanWriter(client, project)
        self._notes = notes
        self._span_rows = RowWriter(client, project, Target.SPAN)
        self._trace_rows = RowWriter(client, project, Target.TRACE)
        self._has_label_form = False

    def marks(self, trace_ids: Sequence[str]) -> dict[str, TraceMark]:
        """Return, by trace id, the mark of each trace that this series has done and shown as asked now."""
        rows = self._trace_rows.read(trace_ids, [STATE])
        marks = {trace_id: by.get(self._identifier) for trace_id, by in _marks(rows).items()}
        return {
            trace_id: mark
            for trace_id, mark in marks.items()
            if mark is not None and mark.claims_mode == self._claims_mode
        }

    def write(self, traces: Sequence[EvaluatedTrace]) -> Written:
        """Write a batch of traces.

        Raises:
            ServerError: Phoenix cannot be reached or refuses; writing the batch again finishes it.
        """
        if not self._has_label_form:
            about = "A person's verdict on one claim and the passages it cites."
            self._client.ensure_label_form(self._project, VERDICT_HUMAN, about, HUMAN_LABELS)
            self._has_label_form = True
        batch = _Batch(
            traces={trace.trace_id: trace for trace in traces},
            claim_spans={trace.trace_id: self._claim_spans(trace) for trace in traces},
        )
        self._add_claim_spans(batch)
        self._read_stored_rows(batch)
        self._write_verdicts(batch)
        self._write_measures(batch)
        self._drop_superseded(batch)
        self._write_states(batch)
        return batch.written

    def human_labels(self, evaluations: Sequence[Evaluation]) -> dict[str, dict[int, Label]]:
        """Return, by run id and claim index, the label on which everyone agrees who gave `verdict_human`.

        A claim of which people say different things, or that it is no claim, has none.
        Where claims have no spans of their own, people cannot label them.

        Raises:
            ServerError: Phoenix cannot be reached or refuses.
        """
        if self._claims_mode == "annotations":
            return {}
        claims = {
            span_id: (evaluation.run.id, claim.claim.index)
            for evaluation in evaluations
            for claim, (span_id, _) in zip(evaluation.claims, self._places(evaluation), strict=False)
        }
        said: dict[str, set[str | None]] = {}
        for row in self._span_rows.read(list(claims), [VERDICT_HUMAN]):
            if row.is_human:
                said.setdefault(row.annotation.target_id, set()).add(row.annotation.label)
        labels: dict[str, dict[int, Label]] = {}
        for span_id, given in said.items():
            if len(given) == 1 and (label := given.pop()) in _LABELS:
                run_id, index = claims[span_id]
                labels.setdefault(run_id, {})[index] = Label(label)
        return labels

    def _claim_spans(self, trace: EvaluatedTrace) -> list[ClaimSpan]:
        return [
            span
            for evaluation in trace.evaluations
            if shows_claim_spans(evaluation, self._claims_mode)
            for span in claim_spans(evaluation)
        ]

    def _add_claim_spans(self, batch: _Batch) -> None:
        """Send the claim spans that the traces lack, and wait until they can be annotated."""
        for page in self._client.span_pages(self._project, trace_ids=list(batch.traces), kinds=["EVALUATOR"]):
            for data in filter(is_claim_span, page.spans):
                batch.stored_spans.setdefault(trace_id_of(data), []).append(span_id_of(data))
        sent: dict[str, list[ClaimSpan]] = {}
        for trace_id, spans in batch.claim_spans.items():
            known = batch.stored_spans.get(trace_id, ())
            if lacking := [span for span in spans if span.span_id not in known]:
                sent[trace_id] = lacking
        try:
            refused = self._spans.add([span.data for spans in sent.values() for span in spans])
            span_ids = [
                span.span_id for spans in sent.values() for span in spans if span.span_id not in refused
            ]
            batch.written.claim_spans = len(span_ids)
            unseen = self._spans.wait(span_ids)
        except NotFound:
            # The project was deleted meanwhile: what Phoenix still has in its queue would make it anew.
            self._spans.take_back([span.span_id for spans in sent.values() for span in spans])
            raise
        for trace_id, spans in sent.items():
            for span in spans:
                if span.span_id in refused:
                    batch.set_aside(trace_id, refused[span.span_id])
                elif span.span_id in unseen:
                    batch.set_aside(trace_id, "claim_spans_not_stored_in_time")
        self._delete_orphans(batch, sent)

    def _delete_orphans(self, batch: _Batch, sent: Mapping[str, Sequence[ClaimSpan]]) -> None:
        """Delete what was sent to a trace that was deleted meanwhile: the spans would have made it anew."""
        answers = {
            trace_id: {
                origin_of(evaluation.run).answer_span_id for evaluation in batch.traces[trace_id].evaluations
            }
            for trace_id in sent
        }
        present = self._spans.visible(sorted({span_id for ids in answers.values() for span_id in ids}))
        for trace_id, span_ids in answers.items():
            if not span_ids <= present:
                for span in sent[trace_id]:
                    self._client.delete_span(span.span_id)
                batch.set_aside(trace_id, "trace_deleted")

    def _read_stored_rows(self, batch: _Batch) -> None:
        """Read what people may have changed, and what the last evaluation left."""
        batch.trace_rows = self._trace_rows.read(list(batch.traces), [STATE, *MEASURE_ROWS])
        claims = [span_id for stored in batch.stored_spans.values() for span_id in stored]
        claims += [span.span_id for trace in batch.open for span in batch.claim_spans[trace.trace_id]]
        others: list[str] = []
        for trace in batch.open:
            for evaluation in trace.evaluations:
                origin = origin_of(evaluation.run)
                others += [origin.answer_span_id, origin.root_span_id]
            mark = _marks(batch.trace_rows).get(trace.trace_id, {}).get(self._identifier)
            for run in () if mark is None else mark.runs:
                others += [run.answer_span_id, run.root_span_id]
        batch.span_rows = self._span_rows.read(claims)
        batch.app_span_rows = self._span_rows.read(others, [VERDICT, CITATIONS])

    def _write_verdicts(self, batch: _Batch) -> None:
        rows: dict[str, list[Annotation]] = {}
        for trace in batch.open:
            rows[trace.trace_id] = [
                row
                for evaluation in trace.evaluations
                for row in verdict_rows(evaluation, self._places(evaluation))
            ]
        self._write_rows(batch, self._span_rows, rows)

    def _places(self, evaluation: Evaluation) -> list[tuple[str, str]]:
        """Return, for each claim that is shown, the span and identifier of its verdict; none if claims are not shown."""
        origin = origin_of(evaluation.run)
        if self._claims_mode == "annotations":
            numbers = range(1, len(evaluation.claims) + 1)
            return [(origin.answer_span_id, claim_identifier(self._identifier, n)) for n in numbers]
        if not shows_claim_spans(evaluation, self._claims_mode):
            return []
        made = generation(evaluation.run, evaluation.options)
        return [
            (claim_span_id(origin.trace_id, origin.answer_span_id, made, claim.claim.index), self._identifier)
            for claim in evaluation.claims
        ]

    def _write_measures(self, batch: _Batch) -> None:
        """Write the trace's figures; a trace without a judged run gets none, unless it had some to correct."""
        measured = {
            row.annotation.target_id
            for row in batch.trace_rows
            if row.annotation.name != STATE and series_of(row.annotation.identifier) == self._identifier
        }
        shown = [
            trace
            for trace in batch.open
            if trace.trace_id in measured or any(e.is_evaluated for e in trace.evaluations)
        ]
        on_traces = {
            trace.trace_id: measure_rows(trace.trace_id, trace.evaluations, self._identifier)
            for trace in shown
        }
        on_spans = {trace.trace_id: self._citations_rows(trace) for trace in shown}
        self._write_rows(batch, self._trace_rows, on_traces)
        self._write_rows(batch, self._span_rows, on_spans)

    def _citations_rows(self, trace: EvaluatedTrace) -> list[Annotation]:
        """Return the sum on the root, which the table of traces shows, and on each answer where there are several."""
        by_span: dict[str, list[Evaluation]] = {}
        for evaluation in trace.evaluations:
            origin = origin_of(evaluation.run)
            by_span.setdefault(origin.root_span_id, []).append(evaluation)
            if len(trace.evaluations) > 1 and origin.answer_span_id != origin.root_span_id:
                by_span.setdefault(origin.answer_span_id, []).append(evaluation)
        return [citations_row(span_id, some, self._identifier) for span_id, some in by_span.items()]

    def _drop_superseded(self, batch: _Batch) -> None:
        """Delete the claims that the answers no longer have, save what people wrote on."""
        touched = {row.annotation.target_id for row in batch.span_rows if row.is_human}
        kept: dict[str, list[Annotation]] = {}
        for trace in batch.open:
            for span_id in self._superseded_spans(batch, trace.trace_id):
                if span_id in touched:
                    kept.setdefault(trace.trace_id, []).append(
                        superseded_row(span_id, VERDICT, self._identifier)
                    )
                else:
                    batch.written.deleted += self._client.delete_span(span_id)
        self._write_rows(batch, self._span_rows, kept)
        self._drop_superseded_rows(batch)

    def _superseded_spans(self, batch: _Batch, trace_id: str) -> list[str]:
        """Return the trace's claim spans that neither this evaluation nor another series shows."""
        wanted = {span.span_id for span in batch.claim_spans[trace_id]}
        for identifier, mark in _marks(batch.trace_rows).get(trace_id, {}).items():
            if identifier != self._identifier:
                wanted |= {span_id for run in mark.runs for span_id in run.claim_span_ids(trace_id)}
        return [span_id for span_id in batch.stored_spans.get(trace_id, ()) if span_id not in wanted]

    def _drop_superseded_rows(self, batch: _Batch) -> None:
        """Delete the rows on the app's spans that this evaluation no longer has; without the right to, mark them."""
        wanted: set[tuple[str, str, str]] = set()
        for trace in batch.open:
            wanted |= {row.key for row in self._citations_rows(trace)}
            for evaluation in trace.evaluations:
                wanted |= {(span_id, VERDICT, name) for span_id, name in self._places(evaluation)}
        gone = [
            row
            for row in batch.app_span_rows
            if series_of(row.annotation.identifier) == self._identifier
            and (row.annotation.target_id, row.annotation.name, without_person(row.annotation.identifier))
            not in wanted
            and not row.is_human
        ]
        try:
            self._client.delete_stored(Target.SPAN, gone)
        except (Refused, Unauthorized):
            rows = [superseded_row(*row.key) for row in gone]
            batch.written.rows += self._span_rows.write(rows, ()).written
        else:
            batch.written.deleted += len(gone)

    def _write_states(self, batch: _Batch) -> None:
        """Write what says that the traces are done; where another worker has just said the same, count it."""
        stored = self._trace_rows.read([trace.trace_id for trace in batch.open], [STATE])
        for trace in batch.open:
            mark = _marks(stored).get(trace.trace_id, {}).get(self._identifier)
            if mark is not None and mark.runs == TraceMark.of(trace.evaluations, self._claims_mode).runs:
                batch.written.runs_doubled += len(mark.runs)
        rows: dict[str, list[Annotation]] = {}
        for trace in batch.open:
            notes: Mapping[str, object] = {} if self._notes is None else self._notes(trace.trace_id)
            row = state_row(trace.trace_id, trace.evaluations, self._identifier, self._claims_mode, notes)
            rows[trace.trace_id] = [row]
        self._write_rows(batch, self._trace_rows, rows, stored)

    def _write_rows(
        self,
        batch: _Batch,
        writer: RowWriter,
        rows: Mapping[str, Sequence[Annotation]],
        stored: Sequence[StoredAnnotation] | None = None,
    ) -> None:
        """Write rows, given by trace id; a trace of which a row is refused is set aside.

        What is there is read at the last moment, unless it just was: people may have written since the batch began.
        """
        to_write = [row for some in rows.values() for row in some]
        if stored is None:
            stored = writer.read([row.target_id for row in to_write], sorted({row.name for row in to_write}))
        done = writer.write(to_write, stored)
        batch.written.rows += done.written
        batch.written.human_rows_kept += done.human_kept
        for trace_id, some in rows.items():
            for row in some:
                if (reason := done.refused.get(row.target_id)) is not None:
                    batch.set_aside(trace_id, reason)


def _marks(rows: Iterable[StoredAnnotation]) -> dict[str, dict[str, TraceMark]]:
    """Return, by trace id and identifier, the marks that rows hold; a row that a person changed is no mark."""
    marks: dict[str, dict[str, TraceMark]] = {}
    for stored in rows:
        row = stored.annotation
        if row.name != STATE or stored.is_human:
            continue
        if (mark := TraceMark.read(row.metadata)) is not None:
            here = marks.setdefault(row.target_id, {})
            if (identifier := without_person(row.identifier)) == row.identifier:
                here[identifier] = mark
            else:
                here.setdefault(identifier, mark)
    return marks
