"""The tracer never breaks the host: it records less, says so once, and goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from citespan import tracer
from citespan.tracer import Citation, Passage
from citespan.tracer.faults import forget_faults, log_fault, warn_once
from citespan.tracer.testing import RecordedSpans

Attributes = Callable[[ReadableSpan], Mapping[str, object]]


class Hostile:
    """An object that fails whatever is asked of it."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(f"no {name} for you")

    def __str__(self) -> str:
        raise RuntimeError("no text for you")

    def __iter__(self) -> object:
        raise RuntimeError("no items for you")


@pytest.mark.usefixtures("faults_logged")
def test_nothing_the_host_passes_makes_it_fail(recorded: RecordedSpans) -> None:
    hostile: object = Hostile()
    with tracer.run(hostile, session_id=hostile, metadata=hostile, tags=hostile) as run:  # type: ignore[call-overload]
        for passages in (hostile, 42, None, "one text", {"a": "dict"}, [hostile, 3.5, None]):
            run.retrieved(passages)  # type: ignore[arg-type]
            run.shown(passages)  # type: ignore[arg-type]
            tracer.retrieved(passages, labels=hostile)  # type: ignore[arg-type]
            with run.retrieval(hostile) as retrieval:  # type: ignore[arg-type]
                retrieval.retrieved(passages)  # type: ignore[arg-type]
        with run.generation(model=hostile, prompt=hostile) as generation:  # type: ignore[arg-type]
            generation.output(hostile)  # type: ignore[arg-type]
        run.answer_chunk(hostile)  # type: ignore[arg-type]
        run.answer(hostile, citations=hostile)  # type: ignore[arg-type]
    assert tracer.current_run() is None
    # 42, None, a text and a dict are no lists; of the list's three items none is a passage.
    assert recorded.kinds()[-2:] == ["LLM", "CHAIN"]
    assert recorded.run().passage_count == 3


@pytest.mark.usefixtures("faults_logged")
def test_one_bad_passage_costs_only_itself(recorded: RecordedSpans) -> None:
    with tracer.run("q") as run:
        run.retrieved(["good", Hostile(), {"id": "c", "text": "also good"}], labels="{n}")
        run.answer("a [2]")
    record = recorded.run()
    assert [(p.label, p.sha256 is None) for p in record.passages] == [("1", False), ("2", True), ("3", False)]
    assert record.passages[1].id == "passage#2"


@pytest.mark.usefixtures("faults_logged")
def test_labels_that_do_not_fit_are_left_out_rather_than_shifted(recorded: RecordedSpans) -> None:
    with tracer.run("q") as run:
        run.retrieved(["a", "b"], labels=["1"])
        run.retrieved(["a", "b"], labels="1..n")
    assert [p.label for p in recorded.run().passages] == [None, None]


@pytest.mark.usefixtures("faults_logged")
def test_one_bad_citation_costs_only_itself(recorded: RecordedSpans) -> None:
    with tracer.run("q") as run:
        run.answer(
            "four",
            citations=[
                {"passage_id": "a", "start": 0, "end": 4},
                {"start": 0, "end": 4},
                {"passage_id": "b", "start": 3, "end": 9},
                {"passage_id": "c", "start": -2, "end": -1},
                {"passage_id": "d", "start": 0},
                Citation("e", start=2, end=2),
            ],
        )
    # A range outside the four code points of the answer is no range; the passage it names is kept.
    assert recorded.run().citations == (
        Citation("a", start=0, end=4),
        Citation("b"),
        Citation("c"),
        Citation("d"),
        Citation("e"),
    )


def test_each_kind_of_fault_is_logged_once(
    recorded: RecordedSpans, faults_logged: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        with tracer.run("q") as run:
            run.retrieved([3.5])
    assert len(faults_logged.records) == 1
    assert "reading a passage failed" in faults_logged.text


def test_faults_are_raised_under_pytest(recorded: RecordedSpans) -> None:
    with pytest.raises(TypeError, match="expected a Passage, a dict, a string"), tracer.run("q") as run:
        run.retrieved([3.5])


def test_outside_a_run_nothing_is_recorded_and_one_warning_says_so(
    recorded: RecordedSpans, faults_logged: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        tracer.retrieved(["p"])
        tracer.answer("a")
    assert not recorded.spans
    assert [record.levelname for record in faults_logged.records] == ["WARNING", "WARNING"]


def test_a_broken_tracer_leaves_an_inert_run(
    faults_logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, recorded: RecordedSpans
) -> None:
    class Broken:
        def start_span(self, *args: object, **kwargs: object) -> None:
            raise OSError("disk full")

    from dataclasses import replace

    from citespan.tracer.tracing import active_tracing, set_tracing

    set_tracing(replace(active_tracing(), tracer=Broken()))  # type: ignore[arg-type]
    with tracer.run("q") as run:
        run.retrieved([Passage("a", "b")])
        run.answer("a")
    assert not run.is_recording
    assert "start_run failed" in faults_logged.text


def test_log_fault_and_warn_once_name_what_failed(faults_logged: pytest.LogCaptureFixture) -> None:
    log_fault("here", ValueError("x"))
    log_fault("here", ValueError("y"))
    log_fault("here", KeyError("z"))
    warn_once("kind", "take care")
    warn_once("kind", "take care")
    assert [r.getMessage()[:11] for r in faults_logged.records] == [
        "here failed",
        "here failed",
        "take care (",
    ]
    forget_faults()
    log_fault("here", ValueError("again"))
    assert len(faults_logged.records) == 4
