"""Runs are rebuilt from what the tracer recorded, and what is missing is named."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from citespan.evaluators.reading.explicit import read_explicit_runs
from citespan.evaluators.runs import Run, RunState
from citespan.evaluators.sources.source import Trace
from citespan.evaluators.sources.span_json import group_traces, span_from_json
from citespan.evaluators.sources.spanfile import SpanFile
from citespan.tracer import Citation, Hash, Hide, Passage, Redaction, Truncate, run
from citespan.tracer.attributes import RUN
from citespan.tracer.testing import record_in_memory

DATA = Path(__file__).parents[1] / "data"
TEXT = "Support answers within one hour on weekdays."
PASSAGES = [
    Passage(id="kb-1", text=TEXT, label="1", title="Support", url="https://d.example/1", score=0.9),
    Passage(id="kb-2", text="Refunds take five days.", label="2", metadata={"page": 4, "a.b": [1]}),
]


def _traces(spans: Sequence[Mapping[str, object]]) -> list[Trace]:
    return group_traces(span_from_json(span, f"span {n}") for n, span in enumerate(spans))


def _record(
    act: Callable[[], None], *, redaction: Redaction | None = None, attribute_limit: int = 10_000
) -> Trace:
    with record_in_memory(redaction=redaction, attribute_limit=attribute_limit) as recorded:
        act()
    (trace,) = _traces(recorded.dump())
    return trace


def _ask(passages: Sequence[Passage] = PASSAGES, answer: str | None = f"{TEXT} [1]") -> None:
    with run("How fast?", session_id="s-1", metadata={"tenant": "t1"}) as recorded:
        recorded.retrieved(passages)
        if answer is not None:
            recorded.answer(answer, citations=[Citation("kb-1", 0, 7)] if answer.strip() else ())


def _read(trace: Trace) -> Run:
    (found,) = read_explicit_runs(trace)
    return found


def _without(trace: Trace, is_unwanted: Callable[[str], bool], kind: str = "RETRIEVER") -> Trace:
    """Return the trace as a store would have it that lost some attributes."""
    return replace(
        trace,
        spans=tuple(
            replace(s, attributes={k: v for k, v in s.attributes.items() if not is_unwanted(k)})
            if s.kind == kind
            else s
            for s in trace.spans
        ),
    )


def test_everything_recorded_comes_back() -> None:
    trace = _record(_ask)
    read = _read(trace)
    assert (read.question, read.answer) == ("How fast?", f"{TEXT} [1]")
    assert (read.state, read.reasons, read.resolution) == (None, (), "explicit")
    assert read.citations == (Citation("kb-1", 0, 7, "app"),)
    assert read.metadata == {"tenant": "t1"}
    first, second = read.passages
    assert (first.id, first.label, first.text, first.title, first.url, first.score) == (
        "kb-1",
        "1",
        TEXT,
        "Support",
        "https://d.example/1",
        0.9,
    )
    assert second.metadata == {"page": 4, "a.b": [1]}
    root, retrieval = trace.spans
    assert read.origin is not None
    assert read.id == f"{trace.trace_id}:{root.span_id}"
    assert (read.origin.root_span_id, read.origin.answer_span_id) == (root.span_id, root.span_id)
    assert (read.origin.answer_start_ns, read.origin.answer_end_ns) == (root.start_ns, root.end_ns)
    assert read.origin.session_id == "s-1"
    assert read.origin.passage_span_ids == {"kb-1": retrieval.span_id, "kb-2": retrieval.span_id}


def test_a_trace_without_a_record_holds_no_explicit_run() -> None:
    trace = _without(_record(_ask), lambda key: key == RUN, kind="CHAIN")
    assert read_explicit_runs(trace) == ()


def test_passages_keep_the_order_they_were_shown_in() -> None:
    def act() -> None:
        with run("How fast?") as recorded:
            recorded.retrieved(PASSAGES)
            recorded.shown(list(reversed(PASSAGES)), labels=["A", "B"])
            recorded.answer(f"{TEXT} [B]")

    read = _read(_record(act))
    assert [(passage.label, passage.text) for passage in read.passages] == [
        ("A", "Refunds take five days."),
        ("B", TEXT),
    ]


def test_a_text_under_another_id_is_found_by_its_hash() -> None:
    # As where documents keep no id: another instrumentor's retriever recorded them.
    trace = _without(_record(_ask), lambda key: key.endswith("document.id"))
    assert [passage.text for passage in _read(trace).passages] == [TEXT, "Refunds take five days."]


def test_a_text_that_is_not_what_the_model_saw_is_never_faulted() -> None:
    trace = _record(_ask)
    other = {"retrieval.documents.0.document.content": TEXT[:20]}
    spans = tuple(
        replace(s, attributes={**s.attributes, **other}) if s.kind == "RETRIEVER" else s for s in trace.spans
    )
    read = _read(replace(trace, spans=spans))
    assert (read.passages[0].text, read.passages[0].is_cut) == (TEXT[:20], True)
    assert not read.passages[1].is_cut
    assert read.reasons == ("passage_text_differs:kb-1",)


def test_a_lost_text_leaves_the_passage_known_without_it() -> None:
    trace = _without(_record(_ask), lambda key: key.startswith("retrieval.documents.0."))
    read = _read(trace)
    assert read.state is RunState.PASSAGES_TRUNCATED
    assert (read.passages[0].text, read.passages[1].text) == (None, "Refunds take five days.")
    assert read.reasons == ("passage_texts_lost:1", "passage_text_lost:kb-1")


def test_no_text_at_all_is_a_state_of_its_own() -> None:
    read = _read(_without(_record(_ask), lambda key: ".document." in key))
    assert read.state is RunState.PASSAGES_WITHOUT_TEXT


def test_fewer_passages_than_counted_are_lost() -> None:
    trace = _record(_ask)

    def shorten(value: object) -> object:
        record = json.loads(str(value))
        return json.dumps({**record, "passages": record["passages"][:1]})

    spans = tuple(
        replace(s, attributes={k: shorten(v) if k == RUN else v for k, v in s.attributes.items()})
        for s in trace.spans
    )
    read = _read(replace(trace, spans=spans))
    assert (read.state, read.passages_lost) == (RunState.PASSAGES_TRUNCATED, 1)
    assert read.reasons == ("passages_lost:1",)


@pytest.mark.parametrize(
    ("redaction", "state", "reason"),
    [
        (Redaction(answer=Hide()), RunState.CONTENT_HIDDEN, "answer_hidden"),
        (Redaction(answer=Hash()), RunState.CONTENT_HIDDEN, "answer_hidden"),
        (Redaction(passages=Hide()), RunState.CONTENT_HIDDEN, "passages_hidden"),
        (Redaction(passages=Hash()), RunState.CONTENT_HIDDEN, "passages_hidden"),
        (Redaction(question=Hide()), None, "question_hidden"),
        (Redaction(answer=Truncate(10)), None, "answer_cut"),
    ],
)
def test_what_was_hidden_or_cut_is_named(redaction: Redaction, state: RunState | None, reason: str) -> None:
    read = _read(_record(_ask, redaction=redaction))
    assert read.state is state
    assert reason in read.reasons
    assert "__REDACTED__" not in f"{read.question}{read.answer}{read.passages}"
    assert "sha256:" not in f"{read.question}{read.answer}{[passage.text for passage in read.passages]}"


def test_one_hidden_passage_leaves_the_others_to_judge() -> None:
    def hide_refunds(text: str) -> str | None:
        return None if "Refunds" in text else text

    read = _read(_record(_ask, redaction=Redaction(passages=hide_refunds)))
    assert read.state is None
    assert [passage.text for passage in read.passages] == [TEXT, None]
    assert read.reasons == ("passage_hidden:kb-2",)


def test_a_cut_passage_says_so() -> None:
    read = _read(_record(_ask, redaction=Redaction(passages=Truncate(30))))
    assert [passage.is_cut for passage in read.passages] == [True, False]
    assert read.reasons == ("passage_cut:kb-1",)


@pytest.mark.parametrize(
    ("answer", "reason"), [(None, "answer_not_recorded"), ("", "answer_empty"), (" \n", "answer_empty")]
)
def test_no_answer_is_a_state(answer: str | None, reason: str) -> None:
    read = _read(_record(lambda: _ask(answer=answer)))
    assert (read.state, read.reasons) == (RunState.NO_ANSWER_RECORDED, (reason,))


def test_a_run_that_failed_before_its_answer_says_so() -> None:
    def act() -> None:
        def fail() -> None:
            with run("How fast?") as recorded:
                recorded.retrieved(PASSAGES)
                _ = 1 / 0

        with pytest.raises(ZeroDivisionError):
            fail()

    assert _read(_record(act)).reasons == ("answer_not_recorded", "run_failed")


def test_retrieval_that_found_nothing_is_judged_but_none_at_all_is_no_rag() -> None:
    def chat() -> None:
        with run("Hello?") as recorded:
            recorded.answer("Hello.")

    assert _read(_record(lambda: _ask(passages=()))).state is None
    assert _read(_record(chat)).state is RunState.NOT_RAG


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ('{"schema":7}', "unknown_schema:7"),
        ("{not json", "invalid_json"),
        ("[1]", "invalid_record"),
        ('{"schema":1,"passages":[{"label":"1"}]}', "invalid_record"),
    ],
)
def test_a_record_that_cannot_be_read_is_a_named_reason(record: str, reason: str) -> None:
    trace = _record(_ask)
    spans = tuple(
        replace(s, attributes={k: record if k == RUN else v for k, v in s.attributes.items()})
        for s in trace.spans
    )
    read = _read(replace(trace, spans=spans))
    assert (read.state, read.reasons) == (RunState.INCOMPLETE, (reason,))


def test_several_runs_of_a_trace_read_their_own_passages() -> None:
    def act() -> None:
        from opentelemetry import trace as otel

        with otel.use_span(recorded.provider.get_tracer("app").start_span("request"), end_on_exit=True):
            for n in (1, 2):
                with run(f"Question {n}") as one:
                    one.retrieved([Passage(id="1", text=f"Text of run {n}.", label="1")])
                    one.answer(f"Answer {n} [1].")

    with record_in_memory() as recorded:
        act()
    (trace,) = _traces(recorded.dump())
    first, second = read_explicit_runs(trace)
    assert (first.passages[0].text, second.passages[0].text) == ("Text of run 1.", "Text of run 2.")
    assert first.origin is not None
    assert second.origin is not None
    root = next(span for span in trace.spans if span.parent_id is None)
    assert first.origin.root_span_id == second.origin.root_span_id == root.span_id
    assert first.origin.answer_span_id != second.origin.answer_span_id


def test_a_run_inside_the_run_of_another_service_is_a_run_of_its_own() -> None:
    trace = _record(_ask)
    root, retrieval = trace.spans
    inner = replace(root, span_id="a" * 16, parent_id=root.span_id, start_ns=root.start_ns + 1)
    its_retrieval = replace(retrieval, span_id="b" * 16, parent_id=inner.span_id)
    outer_run, inner_run = read_explicit_runs(replace(trace, spans=(root, inner, retrieval, its_retrieval)))
    assert outer_run.origin is not None
    assert inner_run.origin is not None
    assert outer_run.origin.answer_span_id == root.span_id
    assert inner_run.origin.answer_span_id == inner.span_id
    assert inner_run.origin.root_span_id == root.span_id
    assert inner_run.origin.passage_span_ids["kb-1"] == its_retrieval.span_id


def test_a_root_that_the_store_lacks_is_told() -> None:
    trace = _record(_ask)
    spans = tuple(
        replace(span, parent_id="f" * 16) if span.parent_id is None else span for span in trace.spans
    )
    read = _read(replace(trace, spans=spans))
    assert read.origin is not None
    assert read.origin.is_parent_missing
    assert read.reasons == ("parent_not_in_phoenix",)
    assert read.state is None


def test_losing_the_oldest_attributes_never_loses_the_record() -> None:
    passages = [Passage(id=f"p{n}", text=f"Text {n}.", label=str(n)) for n in range(1, 81)]
    trace = _record(lambda: _ask(passages=passages, answer="Text 80 [80]."), attribute_limit=128)
    read = _read(trace)
    assert len(read.passages) == 80
    assert read.passages[79].text == "Text 80."


@pytest.fixture
def as_phoenix_returns_it() -> Callable[[Trace], Trace]:
    """Flatten JSON metadata and close index gaps, as Phoenix does."""

    def change(trace: Trace) -> Trace:
        spans = []
        for span in trace.spans:
            attributes = dict(span.attributes)
            for key in [key for key in attributes if key.endswith("metadata")]:
                parsed = json.loads(str(attributes.pop(key)))
                attributes |= {f"{key}.{name}": value for name, value in parsed.items()}
            spans.append(replace(span, attributes=attributes))
        return replace(trace, spans=tuple(spans))

    return change


def test_metadata_that_phoenix_flattened_comes_back(
    as_phoenix_returns_it: Callable[[Trace], Trace],
) -> None:
    read = _read(as_phoenix_returns_it(_record(_ask)))
    assert read.metadata == {"tenant": "t1"}
    assert read.passages[1].metadata == {"page": 4, "a.b": [1]}


@pytest.mark.parametrize("schema", [1])
def test_every_schema_that_was_ever_written_is_still_read(schema: int) -> None:
    traces = list(SpanFile(DATA / f"schema{schema}.jsonl").traces())
    read = [found for trace in traces for found in read_explicit_runs(trace)]
    assert [found.question for found in read] == ["How fast?", "How much?"]
    assert [found.state for found in read] == [None, RunState.CONTENT_HIDDEN]
    first = read[0]
    assert first.answer == "Support answers within one hour on weekdays [1]. Refunds take five days [2]."
    assert [(p.id, p.label, p.text, p.title) for p in first.passages] == [
        ("kb-1", "1", TEXT, "Support"),
        ("kb-2", "2", "Refunds take five days.", None),
    ]
    assert first.citations == (Citation("kb-2", 48, 71, "anthropic", "five days"),)
