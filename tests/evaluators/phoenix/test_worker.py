"""One pass over a project: what is new is judged and written, and one bad trace never stops the others."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import httpx
import pytest

from citespan.evaluators.annotate import Annotator
from citespan.evaluators.errors import Unavailable
from citespan.evaluators.judges.judge import JudgeCard, JudgeRequest
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.records import Annotation, Kind, Project, Target
from citespan.evaluators.sources.phoenix import PhoenixSource
from citespan.evaluators.verdicts import Label, Verdict
from citespan.evaluators.worker import EvaluatedRun, PassSummary, run_pass

if TYPE_CHECKING:
    from tests.evaluators.phoenix.conftest import FakePhoenix


class SplendidJudge:
    """Supports every claim, and breaks on one that says so."""

    card = JudgeCard(name="splendid", version="1")

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        if any("broken" in request.claim for request in requests):
            raise ZeroDivisionError("a bug of the judge")
        return [Verdict(label=Label.SUPPORTED, score=1.0, reason="Splendid.") for _ in requests]


def _add_run(phoenix: FakePhoenix, trace: int, answer: str) -> None:
    record = {"schema": 1, "passage_count": 1, "passages": [{"id": "a", "label": "1", "sha256": None}]}
    documents = {
        "retrieval__documents__0__document__id": "a",
        "retrieval__documents__0__document__content": "All is well today.",
    }
    phoenix.add(trace, 10 * trace + 1, parent=10 * trace, kind="RETRIEVER", **documents)
    run = {"input__value": "How?", "output__value": answer, "citespan__run": json.dumps(record)}
    phoenix.add(trace, 10 * trace, **run)


def _run(client: PhoenixClient, project: Project, runs: list[EvaluatedRun] | None = None) -> PassSummary:
    return run_pass(
        PhoenixSource(client, project),
        SplendidJudge(),
        annotator=Annotator(client, project),
        on_run=None if runs is None else runs.append,
    )


def _states(phoenix: FakePhoenix) -> set[int]:
    return {int(target, 16) for target, name, _ in phoenix.rows if name == "cite_state"}


def test_a_judge_that_breaks_sets_its_trace_aside(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    for trace, answer in ((1, "All is well [1]."), (2, "All is broken [1]."), (3, "All is well [1].")):
        _add_run(phoenix, trace, answer)
    runs: list[EvaluatedRun] = []
    summary = _run(client, project, runs)
    assert summary.set_aside == {f"{2:032x}": "not_evaluated: ZeroDivisionError: a bug of the judge"}
    assert not summary.is_complete
    assert _states(phoenix) == {1, 3}
    assert [run.url for run in runs] == [
        f"http://phoenix.test/base/projects/{project.id}/traces/{trace:032x}" for trace in (1, 3)
    ]


def test_a_claim_span_that_is_refused_sets_its_trace_aside(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    for trace in (1, 2, 3):
        _add_run(phoenix, trace, f"All is well with number {trace} [1].")
    phoenix.fail = lambda request: (
        httpx.Response(422, text="too odd")
        if request.method == "POST" and b"with number 2" in request.content
        else None
    )
    summary = _run(client, project)
    assert list(summary.set_aside) == [f"{2:032x}"]
    assert "too odd" in summary.set_aside[f"{2:032x}"]
    assert _states(phoenix) == {1, 3}
    phoenix.fail = lambda _: None
    again = _run(client, project)
    assert (again.runs_evaluated, again.runs_unchanged) == (1, 2)
    assert _states(phoenix) == {1, 2, 3}


def test_a_server_that_fails_on_everything_stops_the_pass(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    _add_run(phoenix, 1, "All is well [1].")
    phoenix.fail = lambda request: httpx.Response(503) if request.method == "POST" else None
    with pytest.raises(Unavailable):
        _run(client, project)
    assert phoenix.rows == {}


def test_a_pass_tells_how_far_it_is(phoenix: FakePhoenix, client: PhoenixClient, project: Project) -> None:
    for trace in range(1, 61):
        _add_run(phoenix, trace, "All is well [1].")
    seen: list[int] = []
    run_pass(
        PhoenixSource(client, project),
        SplendidJudge(),
        annotator=Annotator(client, project),
        on_progress=lambda summary: seen.append(summary.runs_evaluated),
    )
    assert seen[-1] == 60
    assert seen == sorted(seen)
    assert len(seen) > 1


def test_requests_do_not_grow_with_every_trace(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    for trace in range(1, 101):
        _add_run(phoenix, trace, "All is well [1]. All is well again [1].")
    _run(client, project)
    # 100 traces in 4 batches: some 14 requests a batch, and the pages of the list.
    assert len(phoenix.requests) < 80
    phoenix.requests.clear()
    assert _run(client, project).runs_unchanged == 100
    assert len(phoenix.requests) < 20


def test_without_an_annotator_nothing_is_written(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    _add_run(phoenix, 1, "All is well [1].")
    summary = run_pass(PhoenixSource(client, project), SplendidJudge())
    assert (summary.runs_evaluated, summary.rows_written) == (1, 0)
    assert {request.method for request in phoenix.requests} == {"GET"}


def test_what_people_agree_on_comes_with_the_run(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    _add_run(phoenix, 1, "All is well [1]. All is fine [1]. All is dry [1].")
    _run(client, project)
    first, second, third = (
        span["context"]["span_id"] for span in phoenix.spans if span["span_kind"] == "EVALUATOR"
    )
    opinions = [
        (first, "px-app:1", "contradicted"),
        (second, "px-app:1", "supported"),
        (second, "px-app:2", "unsupported"),
        (third, "px-app:1", "not_a_claim"),
    ]
    for span_id, person, label in opinions:
        row = Annotation(span_id, "verdict_human", person, kind=Kind.HUMAN, label=label)
        client.annotate(Target.SPAN, [row])
    runs: list[EvaluatedRun] = []
    run_pass(
        PhoenixSource(client, project),
        SplendidJudge(),
        annotator=Annotator(client, project),
        show_unchanged=True,
        on_run=runs.append,
    )
    # Claim 2 has two opinions, claim 3 is called no claim: only claim 1 has a label to compare with.
    assert [dict(run.human_labels) for run in runs] == [{0: Label.CONTRADICTED}]


def test_what_a_slow_judge_says_is_written_before_it_has_judged_the_whole_batch(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    now = 0.0
    written: list[int] = []

    class SlowJudge(SplendidJudge):
        def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
            nonlocal now
            now += 4.0
            written.append(len(_states(phoenix)))
            return super().judge(requests)

    for trace in range(1, 9):
        _add_run(phoenix, trace, "All is well [1].")
    summary = run_pass(
        PhoenixSource(client, project),
        SlowJudge(),
        annotator=Annotator(client, project),
        monotonic=lambda: now,
    )
    # 4 seconds each, written once 10 have passed: three traces, three, two.
    assert written == [0, 0, 0, 3, 3, 3, 6, 6]
    assert (summary.runs_evaluated, summary.judge_seconds) == (8, 32.0)


def test_a_run_that_another_worker_finished_meanwhile_is_counted_as_doubled(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    class DoubledJudge(SplendidJudge):
        is_alone = True

        def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
            if self.is_alone:
                self.is_alone = False
                _run(client, project)
            return super().judge(requests)

    _add_run(phoenix, 1, "All is well [1].")
    rows = len(phoenix.rows)
    summary = run_pass(PhoenixSource(client, project), DoubledJudge(), annotator=Annotator(client, project))
    assert (summary.runs_evaluated, summary.runs_doubled, rows) == (1, 1, 0)
    alone = dict(phoenix.rows)
    assert _run(client, project).runs_unchanged == 1
    assert phoenix.rows == alone


def test_runs_overlap_while_a_judge_waits_for_others(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    all_there = threading.Barrier(4)

    class WaitingJudge(SplendidJudge):
        concurrency = 4

        def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
            all_there.wait(timeout=20)
            return super().judge(requests)

    for trace in range(1, 9):
        _add_run(phoenix, trace, "All is well [1].")
    summary = run_pass(PhoenixSource(client, project), WaitingJudge(), annotator=Annotator(client, project))
    assert (summary.runs_evaluated, summary.set_aside) == (8, {})
    assert _states(phoenix) == set(range(1, 9))
