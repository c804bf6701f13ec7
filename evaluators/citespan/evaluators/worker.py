"""One pass over the traces of a source: read, judge what is new or changed, write it back.

::

    source -> read_runs -> unchanged? -> evaluate -> annotate
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from citespan.evaluators.annotate import Annotator, EvaluatedTrace, Written
from citespan.evaluators.errors import CitespanError, ServerError
from citespan.evaluators.evaluate import evaluate
from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.judges.judge import Judge
from citespan.evaluators.judges.registry import load_judge
from citespan.evaluators.options import DEFAULT_OPTIONS, EvaluateOptions
from citespan.evaluators.overlap import overlapped
from citespan.evaluators.reading.reader import read_runs
from citespan.evaluators.reading.rules import ReadingRules
from citespan.evaluators.runs import Run
from citespan.evaluators.sources.source import Source, Trace
from citespan.evaluators.verdicts import Label

__all__ = ["EvaluatedRun", "PassSummary", "run_pass"]

_TRACES_PER_BATCH = 25
_CHARACTERS_PER_BATCH = 4_000_000
"""Passage text held at once: a batch ends early where passages are long, so that memory stays flat."""

_SECONDS_PER_WRITE = 10.0
"""A slow judge's verdicts are written after so long, though more of the batch is to be judged."""


@dataclass(frozen=True, slots=True)
class EvaluatedRun:
    """One run of the pass, for whoever shows it."""

    url: str | None
    """Where a person can look at its trace."""

    evaluation: Evaluation
    """What was found."""

    human_labels: Mapping[int, Label] = field(default_factory=dict[int, Label])
    """What people said of its claims in Phoenix, by claim index."""


@dataclass(slots=True)
class PassSummary:
    """What one pass did."""

    traces: int = 0
    """Traces read."""

    runs_evaluated: int = 0
    """Runs judged."""

    runs_unchanged: int = 0
    """Runs left alone because their mark carries the same fingerprint."""

    states: Counter[str] = field(default_factory=Counter[str])
    """Runs by state; a run in a state that stops judging is not among the evaluated ones."""

    set_aside: dict[str, str] = field(default_factory=dict[str, str])
    """Traces that are not done, by id, with the reason; the next pass tries them again."""

    claim_spans_written: int = 0
    """Claim spans sent to Phoenix."""

    rows_written: int = 0
    """Annotations written, new or replaced."""

    human_rows_kept: int = 0
    """Rows of people that were left alone."""

    deleted: int = 0
    """Claim spans and rows of an earlier reading that were deleted."""

    runs_doubled: int = 0
    """Runs judged that another worker had finished when they were about to be written."""

    read_seconds: float = 0.0
    """Time spent reading traces."""

    judge_seconds: float = 0.0
    """Time spent splitting answers and judging claims."""

    write_seconds: float = 0.0
    """Time spent looking what is done, and writing."""

    @property
    def is_complete(self) -> bool:
        """Whether no trace was set aside."""
        return not self.set_aside

    def add(self, other: PassSummary) -> None:
        """Add what another pass did."""
        self.traces += other.traces
        self.runs_evaluated += other.runs_evaluated
        self.runs_unchanged += other.runs_unchanged
        self.states += other.states
        self.set_aside |= other.set_aside
        self.claim_spans_written += other.claim_spans_written
        self.rows_written += other.rows_written
        self.human_rows_kept += other.human_rows_kept
        self.deleted += other.deleted
        self.runs_doubled += other.runs_doubled
        self.read_seconds += other.read_seconds
        self.judge_seconds += other.judge_seconds
        self.write_seconds += other.write_seconds


def run_pass(
    source: Source,
    judge: Judge | str = "lexical",
    *,
    annotator: Annotator | None = None,
    options: EvaluateOptions = DEFAULT_OPTIONS,
    rules: ReadingRules | None = None,
    show_unchanged: bool = False,
    with_human_labels: bool = True,
    on_run: Callable[[EvaluatedRun], None] | None = None,
    on_progress: Callable[[PassSummary], None] | None = None,
    monotonic: Callable[[], float] = time.monotonic,
) -> PassSummary:
    """Evaluate the traces of a source and return what was done.

    A trace that cannot be read, judged or written is set aside with its reason and never stops the pass.

    Args:
        source: Where the traces come from.
        judge: A judge, or its name in the registry.
        annotator: Writes the evaluations back and tells what is done already; without one nothing is written.
        options: How to evaluate.
        rules: Where an app keeps its answer and passages, if a settings file says so.
        show_unchanged: Whether runs that are done are judged again for `on_run`, though not written again:
            a label table is of every run.
        with_human_labels: Whether `on_run` is told what people said of the claims, which costs requests.
        on_run: Called with every run evaluated, after it was written.
        on_progress: Called after each batch with the summary so far.
        monotonic: Seconds on a clock that is never set.

    Raises:
        UsageError: `judge` names no judge.
        ServerError: Phoenix cannot be reached or refuses; what was written stays, and the next pass goes on.
        InputError: The source's file cannot be read.
    """
    judge = load_judge(judge) if isinstance(judge, str) else judge
    labelled = None if on_run is None or not with_human_labels else annotator
    evaluation_pass = _Pass(judge, annotator, options, rules, show_unchanged, labelled, on_run, monotonic)
    for batch in evaluation_pass.timed_batches(source.traces()):
        evaluation_pass.work(batch)
        if on_progress is not None:
            on_progress(evaluation_pass.summary)
    return evaluation_pass.summary


@dataclass(frozen=True, slots=True)
class _ReadTrace:
    """A trace and the runs that were found in it."""

    trace: Trace
    runs: tuple[Run, ...]

    @property
    def characters(self) -> int:
        """How much passage text it holds."""
        return sum(len(passage.text or "") for run in self.runs for passage in run.passages)


@dataclass(slots=True)
class _Pass:
    """A pass under way."""

    judge: Judge
    annotator: Annotator | None
    options: EvaluateOptions
    rules: ReadingRules | None
    show_unchanged: bool
    labelled: Annotator | None
    """Knows what people said of the claims, where somebody wants to know."""
    on_run: Callable[[EvaluatedRun], None] | None
    monotonic: Callable[[], float]
    summary: PassSummary = field(default_factory=PassSummary)

    def timed_batches(self, traces: Iterator[Trace]) -> Iterator[list[_ReadTrace]]:
        """Yield the traces read, in batches, and add up the time that reading takes."""
        start = self.monotonic()
        for batch in _batches(traces, self.read):
            self.summary.read_seconds += self.monotonic() - start
            yield batch
            start = self.monotonic()
        self.summary.read_seconds += self.monotonic() - start

    def read(self, trace: Trace) -> _ReadTrace:
        """Return the runs of a trace; none if it has none or cannot be read."""
        self.summary.traces += 1
        try:
            return _ReadTrace(trace, read_runs(trace, self.rules))
        except Exception as error:
            self._set_aside(trace.trace_id, "not_readable", error)
            return _ReadTrace(trace, ())

    def work(self, batch: Sequence[_ReadTrace]) -> None:
        """Judge and write one batch; in several steps where judging takes long."""
        left: Sequence[_ReadTrace] = [read for read in batch if read.runs]
        while left:
            left = self._work_some(left)

    def _work_some(self, batch: Sequence[_ReadTrace]) -> Sequence[_ReadTrace]:
        """Judge traces for some seconds and write them; return those that are left."""
        start = self.monotonic()
        changed = self._changed(batch)
        shown = batch if self.show_unchanged else [read for read in batch if read.trace.trace_id in changed]
        judge_at = self.monotonic()
        judged = list(overlapped(self.judge, self._evaluate, self._for_some_seconds(shown)))
        evaluated = [(read.trace.url, trace) for read, trace in zip(shown, judged, strict=False)]
        left = shown[len(judged) :]
        write_at = self.monotonic()
        self._write([trace for _, trace in evaluated if trace is not None and trace.trace_id in changed])
        found = [(url, e) for url, trace in evaluated if trace is not None for e in trace.evaluations]
        people = self._human_labels([evaluation for _, evaluation in found])
        for url, evaluation in found:
            self._count(evaluation, url, people.get(evaluation.run.id, {}))
        unchanged = [read for read in batch if read.trace.trace_id not in changed and read not in left]
        self.summary.runs_unchanged += sum(len(read.runs) for read in unchanged)
        self.summary.judge_seconds += write_at - judge_at
        self.summary.write_seconds += judge_at - start + self.monotonic() - write_at
        return left

    def _for_some_seconds(self, batch: Sequence[_ReadTrace]) -> Iterator[_ReadTrace]:
        """Yield traces, at least one, until it is time to write."""
        start = self.monotonic()
        for n, read in enumerate(batch):
            if n and self.monotonic() - start >= _SECONDS_PER_WRITE:
                return
            yield read

    def _human_labels(self, evaluations: Sequence[Evaluation]) -> Mapping[str, Mapping[int, Label]]:
        return self.labelled.human_labels(evaluations) if self.labelled is not None and evaluations else {}

    def _changed(self, batch: Sequence[_ReadTrace]) -> set[str]:
        """Return the ids of the traces that are new, or whose evaluation could differ from the one that is stored."""
        if self.annotator is None:
            return {read.trace.trace_id for read in batch}
        marks = self.annotator.marks([read.trace.trace_id for read in batch])
        return {
            read.trace.trace_id
            for read in batch
            if (mark := marks.get(read.trace.trace_id)) is None
            or not mark.covers(read.runs, self.judge.card, self.options)
        }

    def _evaluate(self, read: _ReadTrace) -> EvaluatedTrace | None:
        try:
            evaluations = tuple(evaluate(run, self.judge, self.options) for run in read.runs)
        except Exception as error:
            self._set_aside(read.trace.trace_id, "not_evaluated", error)
            return None
        return EvaluatedTrace(read.trace.trace_id, evaluations)

    def _write(self, traces: Sequence[EvaluatedTrace]) -> None:
        if self.annotator is None or not traces:
            return
        written = self.annotator.write(traces)
        self._add(written)

    def _add(self, written: Written) -> None:
        self.summary.claim_spans_written += written.claim_spans
        self.summary.rows_written += written.rows
        self.summary.human_rows_kept += written.human_rows_kept
        self.summary.deleted += written.deleted
        self.summary.runs_doubled += written.runs_doubled
        self.summary.set_aside.update(written.set_aside)

    def _count(self, evaluation: Evaluation, url: str | None, people: Mapping[int, Label]) -> None:
        if evaluation.run.state is not None:
            self.summary.states[evaluation.run.state] += 1
        self.summary.runs_evaluated += evaluation.is_evaluated
        if self.on_run is not None:
            self.on_run(EvaluatedRun(url, evaluation, people))

    def _set_aside(self, trace_id: str, reason: str, error: Exception) -> None:
        """Set a trace aside, unless the failure is not the trace's: then it stops the pass."""
        if isinstance(error, ServerError):
            raise error
        detail = str(error) if isinstance(error, CitespanError) else f"{type(error).__name__}: {error}"
        self.summary.set_aside[trace_id] = f"{reason}: {detail}"


def _batches(traces: Iterator[Trace], read: Callable[[Trace], _ReadTrace]) -> Iterator[list[_ReadTrace]]:
    """Yield the traces read, in batches bounded by number and by text."""
    batch: list[_ReadTrace] = []
    characters = 0
    for trace in traces:
        batch.append(read(trace))
        characters += batch[-1].characters
        if len(batch) == _TRACES_PER_BATCH or characters >= _CHARACTERS_PER_BATCH:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
