"""Rows and claim spans in a real Phoenix: the same however often they are written, and never a person's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx
import pytest

from citespan.evaluators.annotate import Annotator, EvaluatedTrace
from citespan.evaluators.evaluate import evaluate
from citespan.evaluators.judges.judge import JudgeCard, JudgeRequest
from citespan.evaluators.options import EvaluateOptions, Splitting
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.purge import purge
from citespan.evaluators.phoenix.records import Annotation, Kind, StoredAnnotation, Target
from citespan.evaluators.phoenix.span_writer import SpanWriter
from citespan.evaluators.reading.reader import read_runs
from citespan.evaluators.runs import Run
from citespan.evaluators.sources.phoenix import PhoenixSource
from citespan.evaluators.verdicts import Label, Verdict
from citespan.evaluators.worker import PassSummary, run_pass
from citespan.tracer import Passage, retrieved, run

if TYPE_CHECKING:
    from tests.phoenix.conftest import Snapshot, Workbench

pytestmark = pytest.mark.phoenix

PASSAGES = [
    Passage(id="a", text="Refunds are issued within five business days of the request.", label="1"),
    Passage(id="b", text="Support answers within one hour on weekdays.", label="2"),
]
ANSWER = (
    "Refunds are issued within five business days of the request [1]. Support answers within one hour [2]."
)


class SteadyJudge:
    """Gives every claim the same label; another label is another judge."""

    def __init__(self, label: Label) -> None:
        self._label = label
        self.card = JudgeCard(name=f"steady:{label}", version="1")

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        return [Verdict(label=self._label, score=0.5, reason="It always says so.") for _ in requests]


def test_evaluating_twice_gives_the_same_rows(bench: Workbench) -> None:
    bench.recorder.ask("How long?", ANSWER, PASSAGES)
    first = bench.evaluate()
    before = bench.snapshot()
    second = bench.evaluate()
    assert (first.runs_evaluated, first.claim_spans_written) == (1, 2)
    assert (second.runs_evaluated, second.runs_unchanged, second.rows_written) == (0, 1, 0)
    assert bench.snapshot().rows == before.rows


def test_writing_again_without_the_mark_gives_the_same_rows(bench: Workbench) -> None:
    bench.recorder.ask("How long?", ANSWER, PASSAGES)
    bench.evaluate()
    before = bench.snapshot()
    state = next(row for row in before.rows.values() if row.annotation.name == "cite_state")
    bench.client.delete_stored(Target.TRACE, [state])
    again = bench.evaluate()
    assert (again.runs_evaluated, again.claim_spans_written) == (1, 0)
    assert bench.snapshot().content() == before.content()


def test_two_passes_at_once_write_what_one_writes(bench: Workbench) -> None:
    for n in range(20):
        bench.recorder.ask(f"Question {n}", ANSWER, PASSAGES)
    project = bench.project

    def evaluate_all(_: int) -> PassSummary:
        with PhoenixClient(bench.client.connection) as client:
            source = PhoenixSource(client, project)
            return run_pass(source, SteadyJudge(Label.SUPPORTED), annotator=Annotator(client, project))

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(evaluate_all, range(2))
    assert (first.set_aside, second.set_aside) == ({}, {})
    at_once = bench.snapshot()
    assert (len(at_once.claim_spans), len(at_once.rows)) == (40, 40 + 20 * 6)
    purge(bench.client, project)
    bench.evaluate(judge=SteadyJudge(Label.SUPPORTED))
    assert bench.snapshot().content() == at_once.content()


def test_another_judge_keeps_the_claim_spans_and_replaces_the_verdicts(bench: Workbench) -> None:
    bench.recorder.ask("How long?", ANSWER, PASSAGES)
    bench.evaluate(judge=SteadyJudge(Label.SUPPORTED))
    before = bench.snapshot()
    again = bench.evaluate(judge=SteadyJudge(Label.UNSUPPORTED))
    after = bench.snapshot()
    assert again.claim_spans_written == 0
    assert after.claim_spans == before.claim_spans
    assert after.rows.keys() == before.rows.keys()
    assert set(before.labels("verdict").values()) == {"supported"}
    assert set(after.labels("verdict").values()) == {"unsupported"}


def _by_upsert(bench: Workbench, row: StoredAnnotation) -> None:
    """Change a row as a script of a person does: the same key, annotator HUMAN."""
    edited = replace(row.annotation, kind=Kind.HUMAN, label="supported", explanation="I checked.")
    bench.client.annotate(Target.SPAN, [edited])


def _by_page(bench: Workbench, row: StoredAnnotation) -> None:
    """Change a row as Phoenix's page does with authentication off: it patches the row in place."""
    query = (
        "mutation($input: [PatchAnnotationInput!]!) { patchSpanAnnotations(input: $input) { __typename } }"
    )
    patch = {
        "annotationId": row.id,
        "annotatorKind": "HUMAN",
        "label": "supported",
        "explanation": "I checked.",
        "source": "APP",
    }
    url = f"{bench.client.connection.base_url}/graphql"
    reply = httpx.post(url, json={"query": query, "variables": {"input": [patch]}}).json()
    assert "errors" not in reply, reply


@pytest.mark.parametrize("edit", [_by_upsert, _by_page])
def test_a_row_that_a_person_changed_is_left_alone(
    bench: Workbench, edit: Callable[[Workbench, StoredAnnotation], None]
) -> None:
    bench.recorder.ask("How long?", ANSWER, PASSAGES)
    bench.evaluate(judge=SteadyJudge(Label.UNSUPPORTED))
    row = _verdict_of(bench.snapshot(), "claim 1")
    edit(bench, row)
    edited = bench.snapshot().rows[row.key]
    assert edited.is_human
    again = bench.evaluate(judge=SteadyJudge(Label.CONTRADICTED))
    after = bench.snapshot()
    assert again.human_rows_kept == 1
    assert after.rows[row.key] == edited
    beside = after.rows[row.annotation.target_id, "verdict", "citespan:machine"].annotation
    assert (beside.label, beside.kind) == ("contradicted", Kind.CODE)
    assert bench.evaluate(judge=SteadyJudge(Label.CONTRADICTED)).runs_unchanged == 1


def test_what_stands_beside_a_persons_row_stays_over_the_passes(bench: Workbench) -> None:
    trace_id = bench.recorder.ask("How long?", ANSWER, PASSAGES)
    bench.evaluate(judge=SteadyJudge(Label.UNSUPPORTED))
    rows = bench.snapshot().rows
    on_root = next(row for row in rows.values() if row.annotation.name == "citations")
    state = rows[trace_id, "cite_state", "citespan"]
    human = {"kind": Kind.HUMAN, "label": "I checked"}
    bench.client.annotate(Target.SPAN, [replace(on_root.annotation, **human)])
    bench.client.annotate(Target.TRACE, [replace(state.annotation, **human)])
    for label in (Label.CONTRADICTED, Label.SUPPORTED):
        bench.evaluate(judge=SteadyJudge(label))
        assert bench.evaluate(judge=SteadyJudge(label)).runs_unchanged == 1
        after = bench.snapshot()
        assert after.labels("cite_state") == {
            (trace_id, "citespan"): "I checked",
            (trace_id, "citespan:machine"): "evaluated",
        }
        root = on_root.annotation.target_id
        expected = "2/2 supported" if label is Label.SUPPORTED else "0/2 supported, 2 contradicted"
        assert after.labels("citations") == {
            (root, "citespan"): "I checked",
            (root, "citespan:machine"): expected,
        }


def test_a_root_that_arrives_late_takes_over_the_sum(bench: Workbench) -> None:
    early = bench.recorder.ask("How long?", ANSWER, PASSAGES)
    recorded = {str(span["span_kind"]): span for span in bench.spans().values()}
    late, root_id, run_id = "ab" * 16, "ab" * 8, "cd" * 8

    def copy(kind: str, span_id: str, parent_id: str | None) -> dict[str, object]:
        context = {"trace_id": late, "span_id": span_id}
        return {**recorded[kind], "context": context, "parent_id": parent_id}

    bench.client.add_spans(
        bench.project, [copy("RETRIEVER", "ef" * 8, run_id), copy("CHAIN", run_id, root_id)]
    )
    bench.recorder.expect(late, run_id)
    bench.evaluate()
    assert bench.snapshot().labels("citations")[run_id, "citespan"] == "2/2 supported"
    bench.client.add_spans(bench.project, [copy("CHAIN", root_id, None) | {"attributes": {}}])
    assert not SpanWriter(bench.client, bench.project).wait([root_id])
    again = bench.evaluate()
    assert (again.runs_evaluated, again.runs_unchanged) == (1, 1)
    sums = bench.snapshot().labels("citations")
    assert sums[root_id, "citespan"] == "2/2 supported"
    assert (run_id, "citespan") not in sums
    assert {row.target_id for row in _rows(bench, "cite_state")} == {early, late}


def test_a_new_reading_replaces_the_claims_and_keeps_what_people_wrote_on(bench: Workbench) -> None:
    answer = "Refunds are issued within five days and support answers within one hour [1][2]."
    bench.recorder.ask("How long?", answer, PASSAGES)
    bench.evaluate(options=EvaluateOptions(splitting=Splitting.ATOMIC))
    before = bench.snapshot()
    touched = _verdict_of(before, "claim 1").annotation.target_id
    human = Annotation(touched, "verdict_human", "", Kind.HUMAN, label="supported")
    bench.client.annotate(Target.SPAN, [human])
    again = bench.evaluate(options=EvaluateOptions(splitting=Splitting.SENTENCE))
    after = bench.snapshot()
    new = after.claim_spans.keys() - before.claim_spans.keys()
    assert len(new) == 1
    assert after.claim_spans.keys() - new == {touched}
    assert again.deleted == len(before.claim_spans) - 1
    assert after.rows[touched, "verdict", "citespan"].annotation.label == "superseded"
    assert after.rows[human.key].annotation.label == "supported"
    # Going back writes the first reading again, on the span that was kept and on new ones.
    bench.evaluate(options=EvaluateOptions(splitting=Splitting.ATOMIC))
    back = bench.snapshot()
    assert back.claim_spans.keys() == before.claim_spans.keys()
    assert back.rows[touched, "verdict", "citespan"].annotation.label != "superseded"


def test_a_note_keeps_a_superseded_claim_span(bench: Workbench) -> None:
    answer = "Refunds are issued within five days and support answers within one hour [1][2]."
    bench.recorder.ask("How long?", answer, PASSAGES)
    bench.evaluate(options=EvaluateOptions(splitting=Splitting.ATOMIC))
    touched = _verdict_of(bench.snapshot(), "claim 1").annotation.target_id
    url = f"{bench.client.connection.base_url}/v1/span_notes"
    assert httpx.post(url, json={"data": {"span_id": touched, "note": "Ask legal."}}).is_success
    bench.evaluate(options=EvaluateOptions(splitting=Splitting.SENTENCE))
    assert touched in bench.snapshot().claim_spans


def test_a_series_stands_beside_the_main_evaluation(bench: Workbench) -> None:
    answer = "Refunds are issued within five days and support answers within one hour [1][2]."
    bench.recorder.ask("How long?", answer, PASSAGES)
    bench.evaluate(judge=SteadyJudge(Label.SUPPORTED))
    main = bench.snapshot()
    trial = bench.evaluate(
        judge=SteadyJudge(Label.UNSUPPORTED),
        series="trial",
        options=EvaluateOptions(splitting=Splitting.SENTENCE),
    )
    both = bench.snapshot()
    assert trial.runs_evaluated == 1
    assert {key: row for key, row in both.rows.items() if key in main.rows} == main.rows
    assert main.claim_spans.items() <= both.claim_spans.items()
    assert {key[2] for key in both.rows.keys() - main.rows.keys()} == {"citespan:trial"}
    assert bench.evaluate(judge=SteadyJudge(Label.SUPPORTED)).runs_unchanged == 1
    # The main evaluation moves on to sentences too: what the series shows stays.
    bench.evaluate(judge=SteadyJudge(Label.SUPPORTED), options=EvaluateOptions(splitting=Splitting.SENTENCE))
    moved = bench.snapshot()
    assert moved.claim_spans.keys() == both.claim_spans.keys() - main.claim_spans.keys()
    (span_id,) = moved.claim_spans
    assert moved.labels("verdict") == {
        (span_id, "citespan"): "supported",
        (span_id, "citespan:trial"): "unsupported",
    }


def test_claims_as_annotations_add_no_span(bench: Workbench) -> None:
    bench.recorder.ask("How long?", ANSWER, PASSAGES)
    before = bench.spans()
    bench.evaluate(claims_mode="annotations")
    (answer_span_id,) = [span_id for span_id, span in before.items() if span["span_kind"] == "CHAIN"]
    assert bench.spans() == before
    assert bench.snapshot().labels("verdict").keys() == {
        (answer_span_id, "citespan#1"),
        (answer_span_id, "citespan#2"),
    }


def test_the_way_claims_are_shown_can_change(bench: Workbench) -> None:
    bench.recorder.ask("How long?", ANSWER, PASSAGES)
    bench.evaluate()
    as_spans = bench.snapshot()
    bench.evaluate(claims_mode="annotations")
    as_rows = bench.snapshot()
    assert as_rows.claim_spans == {}
    assert [identifier for _, identifier in sorted(as_rows.labels("verdict"))] == ["citespan#1", "citespan#2"]
    bench.evaluate()
    assert bench.snapshot().content() == as_spans.content()


def test_findings_alone_get_claim_spans_when_asked_so(bench: Workbench) -> None:
    good = bench.recorder.ask("How long?", "Support answers within one hour on weekdays [2].", PASSAGES)
    bad = bench.recorder.ask("How long?", "Support answers within one hour on weekdays [9].", PASSAGES)
    bench.evaluate(claims_mode="findings")
    snapshot = bench.snapshot()
    traces = {span["context"]["trace_id"] for span in snapshot.claim_spans.values()}  # type: ignore[index]
    assert traces == {bad}
    assert snapshot.rows[good, "cite_sup", "citespan"].annotation.label == "1/1"


def test_a_run_that_is_not_judged_gets_its_state_alone(bench: Workbench) -> None:
    bench.recorder.ask("How long?", "", PASSAGES)
    summary = bench.evaluate()
    snapshot = bench.snapshot()
    assert summary.states == {"no_answer_recorded": 1}
    assert list(snapshot.labels("cite_state").values()) == ["no_answer_recorded"]
    assert len(snapshot.rows) == 1


def test_several_runs_of_a_trace_pool_their_counts(bench: Workbench) -> None:
    with run("Both?") as outer:
        retrieved(PASSAGES)
        outer.answer("Support answers within one hour on weekdays [2].")
    trace_id = bench.recorder.expect(outer.trace_id, outer.span_id)
    source = PhoenixSource(bench.client, bench.project, trace_ids=[trace_id])
    (trace,) = source.traces()
    (first,) = read_runs(trace)
    assert first.origin is not None
    retrieval = next(span for span in trace.spans if span.kind == "RETRIEVER")
    second = replace(
        first,
        answer="Support never answers [2]. Refunds are issued at once [1].",
        origin=replace(first.origin, answer_span_id=retrieval.span_id),
    )
    evaluations = tuple(evaluate(given, SteadyJudge(Label.SUPPORTED)) for given in (first, second))
    bench.annotator().write([EvaluatedTrace(trace_id, evaluations)])
    snapshot = bench.snapshot()
    # The first run has 1 claim, the second 2; the steady judge supports all of them.
    assert snapshot.rows[trace_id, "cite_sup", "citespan"].annotation.label == "3/3"
    assert snapshot.labels("citations") == {
        (first.origin.root_span_id, "citespan"): "3/3 supported",
        (retrieval.span_id, "citespan"): "2/2 supported",
    }
    parents = sorted(str(span["parent_id"]) for span in snapshot.claim_spans.values())
    assert parents == sorted([first.origin.answer_span_id, retrieval.span_id, retrieval.span_id])


def test_a_trace_deleted_meanwhile_is_not_made_anew(bench: Workbench) -> None:
    trace_id = bench.recorder.ask("How long?", ANSWER, PASSAGES)
    project = bench.project
    (trace,) = PhoenixSource(bench.client, project).traces()
    evaluations = tuple(evaluate(given) for given in read_runs(trace))
    url = f"{bench.client.connection.base_url}/v1/traces/{trace_id}"
    assert httpx.delete(url).is_success
    del bench.recorder.last_span_ids[trace_id]
    written = Annotator(bench.client, project).write([EvaluatedTrace(trace_id, evaluations)])
    assert written.set_aside == {trace_id: "trace_deleted"}
    assert bench.spans() == {}


def test_claim_spans_that_do_not_appear_in_time_leave_the_trace_for_the_next_pass(bench: Workbench) -> None:
    class Lost(SpanWriter):
        def add(self, spans: Sequence[Mapping[str, object]]) -> dict[str, str]:
            return {}  # as if Phoenix had lost its queue

    trace_id = bench.recorder.ask("How long?", ANSWER, PASSAGES)
    (trace,) = PhoenixSource(bench.client, bench.project).traces()
    evaluated = EvaluatedTrace(trace_id, tuple(evaluate(given) for given in read_runs(trace)))
    spans = Lost(bench.client, bench.project, timeout_seconds=0.2)
    written = Annotator(bench.client, bench.project, spans=spans).write([evaluated])
    assert written.set_aside == {trace_id: "claim_spans_not_stored_in_time"}
    assert bench.snapshot().rows == {}
    assert bench.evaluate().runs_evaluated == 1


def test_people_label_in_a_form_of_their_own(bench: Workbench) -> None:
    bench.recorder.ask("How long?", ANSWER, PASSAGES)
    bench.evaluate()
    base = f"{bench.client.connection.base_url}/v1/projects/{bench.project.id}"
    (form,) = httpx.get(f"{base}/annotation_configs").json()["data"]
    assert form["name"] == "verdict_human"
    assert [value["label"] for value in form["values"]] == [
        "supported",
        "partly_supported",
        "unsupported",
        "contradicted",
        "not_a_claim",
    ]


def test_verdict_row_holds_everything_a_label_table_needs(
    bench: Workbench, worked_examples: Mapping[str, Run]
) -> None:
    bench.recorder.replay(worked_examples["refunds"])
    bench.evaluate()
    verdict = _verdict_of(bench.snapshot(), "claim 2").annotation
    assert verdict.score is None
    assert verdict.metadata["schema"] == 1
    assert verdict.metadata["claim"] == "Premium support is included at no charge."
    (citation,) = verdict.metadata["citations"]  # type: ignore[misc]
    assert citation["passage_id"] == "plans"
    assert citation["text"] == worked_examples["refunds"].passages[1].text
    assert str(verdict.explanation).startswith(str(verdict.metadata["reason"]))


def _rows(bench: Workbench, name: str) -> list[Annotation]:
    rows = bench.snapshot().rows.values()
    return [row.annotation for row in rows if row.annotation.name == name]


def _verdict_of(snapshot: Snapshot, claim: str) -> StoredAnnotation:
    span_id = next(span_id for span_id, span in snapshot.claim_spans.items() if span["name"] == claim)
    return snapshot.rows[span_id, "verdict", "citespan"]
