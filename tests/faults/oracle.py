"""What has to hold after any fault: every trace evaluated exactly once, nothing doubled, nothing of a person's touched.

The oracle reads Phoenix as it is and works out what should be there by itself: it reads each trace anew and asks
whether its mark covers these very runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from citespan.evaluators.annotate.rows import CITATIONS, EVALUATED, MEASURE_ROWS, STATE, SUPERSEDED, VERDICT
from citespan.evaluators.annotate.series import IDENTIFIER
from citespan.evaluators.annotate.trace_mark import MarkedRun, TraceMark
from citespan.evaluators.judges.judge import JudgeCard
from citespan.evaluators.options import DEFAULT_OPTIONS
from citespan.evaluators.phoenix.client import PhoenixClient, span_id_of, trace_id_of
from citespan.evaluators.phoenix.records import Project, StoredAnnotation, Target
from citespan.evaluators.phoenix.row_writer import without_person
from citespan.evaluators.reading.reader import read_runs
from citespan.evaluators.sources.phoenix import PhoenixSource, is_claim_span
from citespan.evaluators.verdicts import Label

_TRACES_PER_REQUEST = 50
_LABELS = frozenset(label.value for label in Label)


@dataclass(frozen=True, slots=True)
class Expected:
    """What the app and people put into the project."""

    trace_ids: Sequence[str]
    """The traces that are to be evaluated."""

    span_ids: Collection[str]
    """Every span that the app recorded in them."""

    human: Sequence[StoredAnnotation] = ()
    """Rows of people, as Phoenix gave them back when they were planted."""

    set_aside: Mapping[str, str] = field(default_factory=dict)
    """By trace id, the reason that the worker names for not evaluating it."""

    is_whole_project: bool = False
    """Whether the project is to have no other traces."""


@dataclass(frozen=True, slots=True)
class Examination:
    """What was looked at, and what was wrong."""

    violations: tuple[str, ...]
    rows: int
    """Annotations looked at."""
    claim_spans: int
    done: int
    """Traces whose mark is current."""


@dataclass(slots=True)
class Findings:
    """Everything read of the traces, and what is wrong so far."""

    spans: dict[str, Mapping[str, object]]
    by_target: dict[str, list[StoredAnnotation]]
    violations: list[str] = field(default_factory=list)

    def machine(self, target_id: str, name: str) -> list[StoredAnnotation]:
        """Return the rows that citespan's main evaluation has on a target; beside a person's they are called otherwise."""
        return [
            row
            for row in self.by_target.get(target_id, ())
            if not row.is_human
            and row.annotation.name == name
            and without_person(row.annotation.identifier) == IDENTIFIER
        ]

    def one(self, target_id: str, name: str) -> StoredAnnotation | None:
        """Return the one row there has to be."""
        found = self.machine(target_id, name)
        if len(found) != 1:
            self.violations.append(f"{target_id}: {len(found)} rows {name!r}, expected one")
        return found[0] if found else None

    def claims_of(self, trace_id: str) -> set[str]:
        return {s for s, data in self.spans.items() if trace_id_of(data) == trace_id and is_claim_span(data)}


def examine(
    client: PhoenixClient, project: Project, expected: Expected, judge: JudgeCard, *, is_over: bool = True
) -> Examination:
    """Look at the traces in Phoenix and return what is wrong.

    Args:
        client: The server, reached directly.
        project: The project.
        expected: What was put there.
        judge: The judge that the worker was told to use.
        is_over: Whether every trace has to be done; while work goes on, only what is done has to be whole.
    """
    found = _read(client, project, expected.trace_ids)
    _check_doubled(found)
    _check_people(found, expected.human)
    done = 0
    claims_by_trace: dict[str, set[str]] = defaultdict(set)
    for span_id, data in found.spans.items():
        if is_claim_span(data):
            claims_by_trace[trace_id_of(data)].add(span_id)
    current = dict(_marks(client, project, expected.trace_ids, found, judge))
    for trace_id in expected.trace_ids:
        mark = current.get(trace_id)
        if mark is not None:
            done += 1
            _check_trace(found, trace_id, mark, claims_by_trace[trace_id])
        elif is_over and not expected.set_aside.get(trace_id):
            states = found.machine(trace_id, STATE)
            found.violations.append(
                f"{trace_id}: not evaluated as it is now, and no reason named ({len(states)} rows {STATE!r})"
            )
    _check_app(found, expected.span_ids)
    if expected.is_whole_project:
        known = set(expected.trace_ids)
        others = (i for batch in client.span_ids_by_trace(project) for i in batch if i not in known)
        found.violations += [f"{trace_id}: this trace is nobody's" for trace_id in others]
    rows = sum(len(some) for some in found.by_target.values())
    claims = sum(len(some) for some in claims_by_trace.values())
    return Examination(tuple(found.violations), rows, claims, done)


def _read(client: PhoenixClient, project: Project, trace_ids: Sequence[str]) -> Findings:
    spans: dict[str, Mapping[str, object]] = {}
    for start in range(0, len(trace_ids), _TRACES_PER_REQUEST):
        some = trace_ids[start : start + _TRACES_PER_REQUEST]
        for page in client.span_pages(project, trace_ids=some):
            spans.update((span_id_of(data), data) for data in page.spans)
    by_target: dict[str, list[StoredAnnotation]] = defaultdict(list)
    for target, ids in ((Target.SPAN, list(spans)), (Target.TRACE, list(trace_ids))):
        for row in client.annotations(project, target, target_ids=ids):
            by_target[row.annotation.target_id].append(row)
    return Findings(spans, by_target)


def _check_doubled(found: Findings) -> None:
    keys = Counter(row.key for rows in found.by_target.values() for row in rows)
    found.violations += [f"{key}: {number} rows with this key" for key, number in keys.items() if number > 1]


def _check_people(found: Findings, planted: Sequence[StoredAnnotation]) -> None:
    stored = {row.id: row for rows in found.by_target.values() for row in rows if row.is_human}
    for row in planted:
        target = row.annotation.target_id
        if target not in found.spans and target not in found.by_target:
            found.violations.append(f"{row.key}: a person's row is gone with its target")
        elif stored.pop(row.id, None) != row:
            found.violations.append(f"{row.key}: a person's row was touched")
    found.violations += [f"{row.key}: nobody wrote this HUMAN row" for row in stored.values()]


def _marks(
    client: PhoenixClient, project: Project, trace_ids: Sequence[str], found: Findings, judge: JudgeCard
) -> Iterator[tuple[str, TraceMark]]:
    """Yield the traces whose only mark covers their runs as they are read now."""
    for start in range(0, len(trace_ids), _TRACES_PER_REQUEST):
        some = [i for i in trace_ids[start : start + _TRACES_PER_REQUEST] if found.machine(i, STATE)]
        if not some:
            continue
        for trace in PhoenixSource(client, project, trace_ids=some).traces():
            states = found.machine(trace.trace_id, STATE)
            if len(states) > 1:
                found.violations.append(f"{trace.trace_id}: {len(states)} rows {STATE!r}, expected one")
            mark = TraceMark.read(states[0].annotation.metadata)
            if mark is not None and mark.covers(read_runs(trace, None), judge, DEFAULT_OPTIONS):
                yield trace.trace_id, mark


def _check_trace(found: Findings, trace_id: str, mark: TraceMark, claims: set[str]) -> None:
    """Check a trace that is done: its claim spans, their verdicts, and its measures."""
    wanted: set[str] = set()
    for run in mark.runs:
        span_ids = run.claim_span_ids(trace_id)
        wanted |= span_ids
        for span_id in sorted(span_ids):
            _check_claim(found, trace_id, run, span_id)
    for span_id in sorted(claims - wanted):
        _check_older_claim(found, trace_id, span_id)
    state = found.machine(trace_id, STATE)[0].annotation
    if state.label == EVALUATED:
        for name in MEASURE_ROWS:
            found.one(trace_id, name)
        for span_id in {run.root_span_id for run in mark.runs}:
            found.one(span_id, CITATIONS)


def _check_claim(found: Findings, trace_id: str, run: MarkedRun, span_id: str) -> None:
    data = found.spans.get(span_id)
    if data is None:
        found.violations.append(f"{trace_id}: the claim span {span_id} is missing")
        return
    if data.get("parent_id") != run.answer_span_id:
        found.violations.append(f"{trace_id}: the claim span {span_id} hangs under {data.get('parent_id')}")
    row = found.one(span_id, VERDICT)
    if row is not None and row.annotation.label not in _LABELS:
        found.violations.append(f"{span_id}: the verdict is {row.annotation.label!r}")
    if row is not None and row.annotation.metadata.get("generation") != run.generation:
        found.violations.append(f"{span_id}: the verdict is of another generation")


def _check_older_claim(found: Findings, trace_id: str, span_id: str) -> None:
    """A claim of an earlier reading may stay only for what a person wrote on it, and says so."""
    labels = [row.annotation.label for row in found.machine(span_id, VERDICT)]
    if not any(row.is_human for row in found.by_target.get(span_id, ())):
        found.violations.append(f"{trace_id}: {span_id} is an orphan claim span of an older generation")
    elif labels != [SUPERSEDED]:
        found.violations.append(f"{trace_id}: {span_id} is superseded, and its verdicts are {labels}")


def _check_app(found: Findings, span_ids: Collection[str]) -> None:
    own = {span_id for span_id, data in found.spans.items() if not is_claim_span(data)}
    found.violations += [f"span {span_id} of the app is lost" for span_id in sorted(set(span_ids) - own)]
    found.violations += [f"span {span_id} is nobody's" for span_id in sorted(own - set(span_ids))]
