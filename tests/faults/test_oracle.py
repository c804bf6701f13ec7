"""The oracle is content with what a worker leaves, and sees each thing that may not be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, cast

import pytest
from tests.faults.oracle import Expected, examine
from tests.faults.rig import Site, trace_spans, wait_for

from citespan.evaluators.annotate import Annotator
from citespan.evaluators.judges.registry import load_judge
from citespan.evaluators.phoenix.client import PhoenixClient, span_id_of
from citespan.evaluators.phoenix.records import Annotation, Kind, StoredAnnotation, Target
from citespan.evaluators.sources.phoenix import PhoenixSource, is_claim_span
from citespan.evaluators.worker import run_pass

pytestmark = [pytest.mark.phoenix, pytest.mark.timeout(240)]


@dataclass
class Victim:
    """A trace of which all is well, in a project in which people wrote."""

    site: Site
    trace_id: str

    @property
    def spans(self) -> list[Mapping[str, Any]]:
        pages = self.site.client.span_pages(self.site.project, trace_ids=[self.trace_id])
        return [data for page in pages for data in page.spans]

    def row(self, name: str) -> StoredAnnotation:
        """Return one row of citespan's with this name."""
        is_on_span = name in ("verdict", "citations")
        target = Target.SPAN if is_on_span else Target.TRACE
        ids = [span_id_of(data) for data in self.spans] if is_on_span else [self.trace_id]
        return next(self.site.client.annotations(self.site.project, target, target_ids=ids, names=[name]))

    def lose(self, name: str) -> None:
        row = self.row(name)
        self.site.client.delete_stored(_target_of(row), [row])

    def change(self, row: StoredAnnotation, **changes: Any) -> None:
        self.site.client.annotate(_target_of(row), [replace(row.annotation, **changes)])


def _target_of(row: StoredAnnotation) -> Target:
    return Target.TRACE if len(row.annotation.target_id) == 32 else Target.SPAN


@pytest.fixture(scope="module")
def victims(client: PhoenixClient) -> Iterator[Victim]:
    """Traces of one project that is evaluated: each test spoils one of its own."""
    site = Site(client)
    site.store(48)
    site.let_people_write()
    run_pass(PhoenixSource(client, site.project), annotator=Annotator(client, site.project))
    assert site.examine().violations == ()
    assert site.examine().done == 48
    # From the tenth on nobody wrote; each trace with an even place has a claim with a verdict, see rig.shapes().
    return (Victim(site, trace_id) for trace_id in site.trace_ids[10::2])


def _lose_mark(victim: Victim) -> str:
    victim.lose("cite_state")
    return f"{victim.trace_id}: not evaluated as it is now, and no reason named (0 rows"


def _age_mark(victim: Victim) -> str:
    row = victim.row("cite_state")
    runs = [
        {**run, "run_fingerprint": "0" * 64} for run in cast("list[Any]", row.annotation.metadata["runs"])
    ]
    victim.change(row, metadata={**row.annotation.metadata, "runs": runs})
    return f"{victim.trace_id}: not evaluated as it is now, and no reason named (1 rows"


def _double_mark(victim: Victim) -> str:
    victim.change(victim.row("cite_state"), identifier="citespan:machine")
    return f"{victim.trace_id}: 2 rows 'cite_state', expected one"


def _lose_verdict(victim: Victim) -> str:
    victim.lose("verdict")
    return "0 rows 'verdict', expected one"


def _double_verdict(victim: Victim) -> str:
    victim.change(victim.row("verdict"), identifier="citespan:machine")
    return "2 rows 'verdict', expected one"


def _mix_generations(victim: Victim) -> str:
    row = victim.row("verdict")
    victim.change(row, metadata={**row.annotation.metadata, "generation": "0" * 16})
    return f"{row.annotation.target_id}: the verdict is of another generation"


def _lose_measure(victim: Victim) -> str:
    victim.lose("cite_cov")
    return f"{victim.trace_id}: 0 rows 'cite_cov', expected one"


def _lose_sum(victim: Victim) -> str:
    victim.lose("citations")
    return "0 rows 'citations', expected one"


def _lose_claim_span(victim: Victim) -> str:
    span_id = victim.row("verdict").annotation.target_id
    victim.site.client.delete_span(span_id)
    return f"{victim.trace_id}: the claim span {span_id} is missing"


def _leave_orphan(victim: Victim) -> str:
    span = next(dict(data) for data in victim.spans if is_claim_span(data))
    del span["id"]
    victim.site.client.add_spans(victim.site.project, [{**span, "context": _context(victim, "f" * 16)}])
    return f"{victim.trace_id}: ffffffffffffffff is an orphan claim span of an older generation"


def _pose_as_person(victim: Victim) -> str:
    row = Annotation(victim.trace_id, "quality", "citespan", kind=Kind.HUMAN, label="good")
    victim.site.client.annotate(Target.TRACE, [row])
    return f"{row.key}: nobody wrote this HUMAN row"


def _touch_person(victim: Victim) -> str:
    row = victim.site.human[0]
    victim.change(row, explanation="Mine.")
    return f"{row.key}: a person's row was touched"


def _take_from_person(victim: Victim) -> str:
    row = victim.site.human[-1]
    victim.change(row, kind=Kind.CODE, label="supported")
    return f"{row.key}: a person's row was touched"


def _revive_superseded(victim: Victim) -> str:
    first = [Victim(victim.site, trace_id).spans for trace_id in victim.site.trace_ids[:3]]
    ids = [span_id_of(data) for spans in first for data in spans]
    rows = victim.site.client.annotations(victim.site.project, Target.SPAN, target_ids=ids, names=["verdict"])
    row = next(row for row in rows if row.annotation.label == "superseded")
    victim.change(row, label="supported")
    return f"{row.annotation.target_id} is superseded, and its verdicts are ['supported']"


def _lose_app_span(victim: Victim) -> str:
    retriever = victim.site.spans[victim.trace_id][0]
    victim.site.client.delete_span(retriever)
    return f"span {retriever} of the app is lost"


def _add_strange_span(victim: Victim) -> str:
    span = {**trace_spans(0)[0], "context": _context(victim, "e" * 16)}
    victim.site.client.add_spans(victim.site.project, [span])
    return "span eeeeeeeeeeeeeeee is nobody's"


def _context(victim: Victim, span_id: str) -> dict[str, str]:
    return {"trace_id": victim.trace_id, "span_id": span_id}


@pytest.mark.parametrize(
    "spoil",
    [
        _lose_mark,
        _age_mark,
        _double_mark,
        _lose_verdict,
        _double_verdict,
        _mix_generations,
        _lose_measure,
        _lose_sum,
        _lose_claim_span,
        _leave_orphan,
        _pose_as_person,
        _touch_person,
        _take_from_person,
        _revive_superseded,
        _lose_app_span,
        _add_strange_span,
    ],
)
def test_the_oracle_sees_what_may_not_be(victims: Iterator[Victim], spoil: Callable[[Victim], str]) -> None:
    victim = next(victims)
    before = set(victim.site.examine().violations)
    expected = spoil(victim)

    def new() -> set[str]:
        return set(victim.site.examine().violations) - before

    wait_for(new, "seen", 20)
    assert any(expected in violation for violation in new()), new()


def test_a_trace_set_aside_with_a_reason_is_accounted_for(client: PhoenixClient) -> None:
    site = Site(client)
    site.store(2)
    expected = Expected(
        site.trace_ids,
        list(chain.from_iterable(site.spans.values())),
        set_aside={site.trace_ids[0]: "row_refused"},
    )
    found = examine(client, site.project, expected, load_judge("lexical").card)
    assert [violation[:32] for violation in found.violations] == site.trace_ids[1:]


def test_while_work_goes_on_only_what_is_done_has_to_be_whole(client: PhoenixClient) -> None:
    site = Site(client)
    site.store(2)
    assert site.examine(is_over=False).violations == ()
    run_pass(PhoenixSource(client, site.project), annotator=Annotator(client, site.project))
    Victim(site, site.trace_ids[1]).lose("verdict")
    assert len(site.examine(is_over=False).violations) == 1
