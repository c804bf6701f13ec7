"""What a run looks like once it is recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

from citespan import tracer
from citespan.tracer import Citation, Passage
from citespan.tracer.testing import RecordedSpans
from citespan.tracer.text import text_hash

Attributes = Callable[[ReadableSpan], Mapping[str, object]]

BAGGAGE = Passage(
    id="kb-1", text="One bag of 23 kg is free.", title="Baggage", url="https://docs/baggage", score=0.9
)
SEATS = Passage(id="kb-2", text="Seats are chosen at check-in.", metadata={"page": 3})


def test_a_run_is_a_chain_with_a_retriever_and_a_model_under_it(
    recorded: RecordedSpans, attributes: Attributes
) -> None:
    with tracer.run("How heavy may my bag be?") as run:
        with run.retrieval("bag weight") as retrieval:
            retrieval.retrieved([BAGGAGE, SEATS], labels=["1", "2"])
        with run.generation(
            model="m-1", provider="openai", prompt="[1] One bag of 23 kg is free."
        ) as generation:
            generation.output("23 kg [1].")
            generation.tokens(prompt=10, completion=4)
        run.answer("23 kg [1].")
    assert recorded.kinds() == ["RETRIEVER", "LLM", "CHAIN"]
    chain = recorded.named("run")
    retriever, model = recorded.named("retrieval"), recorded.named("generation")
    assert chain.parent is None
    assert retriever.parent is not None
    assert model.parent is not None
    assert retriever.parent.span_id == model.parent.span_id == chain.context.span_id
    assert attributes(retriever) == {
        "input.value": "bag weight",
        "retrieval.documents.0.document.id": "kb-1",
        "retrieval.documents.0.document.content": "One bag of 23 kg is free.",
        "retrieval.documents.0.document.score": 0.9,
        "retrieval.documents.1.document.id": "kb-2",
        "retrieval.documents.1.document.content": "Seats are chosen at check-in.",
        "retrieval.documents.1.document.metadata": '{"page": 3}',
        "openinference.span.kind": "RETRIEVER",
    }
    assert attributes(model) == {
        "llm.model_name": "m-1",
        "llm.provider": "openai",
        "llm.token_count.prompt": 10,
        "llm.token_count.completion": 4,
        "llm.token_count.total": 14,
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "[1] One bag of 23 kg is free.",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "23 kg [1].",
        "output.value": "23 kg [1].",
        "openinference.span.kind": "LLM",
    }
    assert attributes(chain)["input.value"] == "How heavy may my bag be?"
    assert attributes(chain)["output.value"] == "23 kg [1]."


def test_the_record_says_what_openinference_cannot(recorded: RecordedSpans) -> None:
    with tracer.run("q") as run:
        run.retrieved([BAGGAGE, SEATS], labels="P{n}")
        run.answer(
            "23 kg.", citations=[{"passage_id": "kb-1", "start": 0, "end": 5, "quote": "23 kg"}, "kb-9"]
        )
    record = recorded.run()
    assert [(p.id, p.label, p.title, p.url) for p in record.passages] == [
        ("kb-1", "P1", "Baggage", "https://docs/baggage"),
        ("kb-2", "P2", None, None),
    ]
    assert [p.sha256 for p in record.passages] == [text_hash(BAGGAGE.text or ""), text_hash(SEATS.text or "")]
    assert record.passage_count == 2
    assert record.citations == (
        Citation("kb-1", start=0, end=5, origin="app", quote="23 kg"),
        Citation("kb-9"),
    )
    assert record.hidden == record.cut == ()


def test_the_record_and_the_kind_are_set_last(recorded: RecordedSpans, attributes: Attributes) -> None:
    with tracer.run("q", session_id="s", metadata={"a": 1}) as run:
        run.retrieved([BAGGAGE])
        run.answer("a")
    assert list(attributes(recorded.named("run")))[-2:] == ["citespan.run", "openinference.span.kind"]
    assert list(attributes(recorded.named("retrieval")))[-1] == "openinference.span.kind"


def test_who_asked_is_recorded(recorded: RecordedSpans, attributes: Attributes) -> None:
    with tracer.run("q", session_id="s-1", user_id="u-1", metadata={"tenant": "x"}, tags=["beta"]):
        pass
    found = attributes(recorded.named("run"))
    assert found["session.id"] == "s-1"
    assert found["user.id"] == "u-1"
    assert json.loads(str(found["metadata"])) == {"tenant": "x"}
    assert found["tag.tags"] == ("beta",)


def test_without_an_answer_none_is_recorded(recorded: RecordedSpans, attributes: Attributes) -> None:
    with tracer.run("q"):
        pass
    assert "output.value" not in attributes(recorded.named("run"))
    assert recorded.run().passage_count == 0


def test_an_empty_answer_is_recorded_as_one(recorded: RecordedSpans, attributes: Attributes) -> None:
    with tracer.run("q") as run:
        run.answer("")
    assert attributes(recorded.named("run"))["output.value"] == ""


def test_the_last_answer_counts(recorded: RecordedSpans, attributes: Attributes) -> None:
    with tracer.run("q") as run:
        run.answer("draft", citations=["kb-1"])
        run.answer("final")
    assert attributes(recorded.named("run"))["output.value"] == "final"
    assert recorded.run().citations == ()


def test_what_the_prompt_shows_decides_order_and_labels(recorded: RecordedSpans) -> None:
    """After a rerank [1] is the passage shown first, not the one retrieved first."""
    with tracer.run("q") as run:
        run.retrieved([BAGGAGE, SEATS])
        run.shown([SEATS], labels=["1"])
    assert [(p.id, p.label) for p in recorded.run().passages] == [("kb-2", "1")]
    assert recorded.kinds() == ["RETRIEVER", "CHAIN"]


def test_a_shown_text_that_nobody_retrieved_is_recorded(
    recorded: RecordedSpans, attributes: Attributes
) -> None:
    with tracer.run("q") as run:
        run.retrieved([BAGGAGE])
        run.shown([BAGGAGE, "A rule from the system prompt."], labels="{n}")
    assert attributes(recorded.named("shown"))["retrieval.documents.0.document.content"] == (
        "A rule from the system prompt."
    )
    assert [p.label for p in recorded.run().passages] == ["1", "2"]


def test_a_passage_retrieved_twice_is_one_passage(recorded: RecordedSpans) -> None:
    with tracer.run("q") as run:
        run.retrieved([BAGGAGE, SEATS])
        run.retrieved([SEATS])
    assert [p.id for p in recorded.run().passages] == ["kb-1", "kb-2"]


def test_two_texts_under_one_id_stay_two_passages(recorded: RecordedSpans, attributes: Attributes) -> None:
    """Azure repeats the chunk id in every file, LangChain users put the file's id on each chunk."""
    with tracer.run("q") as run:
        run.retrieved([{"id": "f", "text": "one"}, {"id": "f", "text": "two"}, {"id": "f", "text": "one"}])
    # The third is the first again; the second passage of the run gets its number.
    assert [p.id for p in recorded.run().passages] == ["f", "f#2"]
    found = attributes(recorded.named("retrieval"))
    assert [found[f"retrieval.documents.{n}.document.id"] for n in range(3)] == ["f", "f#2", "f"]


def test_one_text_under_two_labels_stays_two_passages(recorded: RecordedSpans) -> None:
    """Two tools may both number from 1, and the same text be [2] of one and [1] of the other."""
    with tracer.run("q") as run:
        run.retrieved([{"id": "f", "text": "one"}], labels=["2"])
        run.retrieved([{"id": "f", "text": "one"}], labels=["1"])
    assert [(p.id, p.label) for p in recorded.run().passages] == [("f", "2"), ("f#2", "1")]


def test_a_passage_without_an_id_gets_one_from_its_text(recorded: RecordedSpans) -> None:
    with tracer.run("q") as run:
        run.retrieved(["same text", "same text", "other text"])
    # printf 'same text' | sha256sum, and of 'other text'.
    assert [p.id for p in recorded.run().passages] == ["text-2e68a7bba11b", "text-ed886d735b3e"]


def test_a_text_without_an_id_is_known_again_when_it_is_shown(recorded: RecordedSpans) -> None:
    with tracer.run("q") as run:
        run.retrieved(["one", "two"])
        run.shown(["two"], labels=["1"])
    assert recorded.kinds() == ["RETRIEVER", "CHAIN"]
    assert [p.label for p in recorded.run().passages] == ["1"]


def test_five_hundred_passages_are_all_recorded(recorded: RecordedSpans, attributes: Attributes) -> None:
    passages = [Passage(id=f"p{n}", text=f"text {n}", score=0.5, metadata={"n": n}) for n in range(500)]
    with tracer.run("q") as run:
        run.retrieved(passages, labels="{n}")
    found = attributes(recorded.named("retrieval"))
    # 500 passages of id, content, score and metadata, and the kind: 2001 attributes.
    assert len(found) == 2001
    assert found["retrieval.documents.499.document.content"] == "text 499"
    assert recorded.run().passages[-1].label == "500"


def test_a_passage_of_a_megabyte_is_recorded_whole(recorded: RecordedSpans, attributes: Attributes) -> None:
    text = "ü" * 1_000_000
    with tracer.run("q") as run:
        run.retrieved([text])
    assert attributes(recorded.named("retrieval"))["retrieval.documents.0.document.content"] == text
    assert recorded.run().passages[0].sha256 == text_hash(text)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("Nul \0 byte", "Nul \ufffd byte"),
        ("lone \ud83d surrogate", "lone \ufffd surrogate"),
        ("emoji 👩‍🚀", "emoji 👩‍🚀"),
        ("שלום עולם [1]", "שלום עולם [1]"),
    ],
)
def test_any_text_survives_in_place(
    recorded: RecordedSpans, attributes: Attributes, given: str, kept: str
) -> None:
    with tracer.run(given, session_id=given) as run:
        run.retrieved(
            [{"id": given, "text": given, "title": given, "metadata": {"k": given}}], labels=[given]
        )
        run.answer(given, citations=[given])
    chain, retriever = attributes(recorded.named("run")), attributes(recorded.named("retrieval"))
    assert chain["input.value"] == chain["output.value"] == chain["session.id"] == kept
    assert retriever["retrieval.documents.0.document.content"] == kept
    passage = recorded.run().passages[0]
    assert (passage.id, passage.label, passage.title, passage.sha256) == (kept, kept, kept, text_hash(given))
    assert recorded.run().citations == (Citation(kept),)


def test_an_exception_of_the_host_is_recorded_and_goes_on(recorded: RecordedSpans) -> None:
    error = ValueError("no such index")
    with pytest.raises(ValueError, match="no such index") as caught, tracer.run("q") as run, run.retrieval():
        raise error
    assert caught.value is error
    for name in ("retrieval", "run"):
        span = recorded.named(name)
        assert span.status.status_code is StatusCode.ERROR
        assert span.status.description == "ValueError: no such index"
        assert span.events[0].name == "exception"


def test_a_run_joins_the_trace_it_happens_in(recorded: RecordedSpans) -> None:
    web = recorded.provider.get_tracer("web")
    with web.start_as_current_span("GET /ask"), tracer.run("q"):
        pass
    request, run = recorded.named("GET /ask"), recorded.named("run")
    assert run.parent is not None
    assert run.parent.span_id == request.context.span_id
    assert run.context.trace_id == request.context.trace_id


def test_spans_of_others_come_under_the_step_they_happen_in(recorded: RecordedSpans) -> None:
    embedder = recorded.provider.get_tracer("embedder")
    with tracer.run("q") as run, run.retrieval(), embedder.start_as_current_span("embed"):
        pass
    embed = recorded.named("embed")
    assert embed.parent is not None
    assert embed.parent.span_id == recorded.named("retrieval").context.span_id
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_a_run_inside_a_run_records_nothing_twice(recorded: RecordedSpans, attributes: Attributes) -> None:
    with tracer.run("outer question") as outer:
        with tracer.run("inner question", name="inner") as inner:
            inner.retrieved([BAGGAGE])
            inner.answer("inner answer")
        assert outer.is_recording
        outer.answer("outer answer")
    assert recorded.kinds() == ["RETRIEVER", "CHAIN"]
    found = attributes(recorded.named("run"))
    assert (found["input.value"], found["output.value"]) == ("outer question", "outer answer")
    assert [p.id for p in recorded.run().passages] == ["kb-1"]


def test_the_answer_of_an_inner_run_counts_where_the_outer_gives_none(
    recorded: RecordedSpans, attributes: Attributes
) -> None:
    with tracer.run("q"):
        inner = tracer.start_run("inner")
        inner.answer_chunk("an")
        inner.answer_chunk("swer")
        inner.finish()
    assert attributes(recorded.named("run"))["output.value"] == "answer"


def test_steps_of_an_inner_run_come_under_the_span_they_happen_in(recorded: RecordedSpans) -> None:
    agent = recorded.provider.get_tracer("agent")
    with tracer.run("q"), agent.start_as_current_span("tool call"), tracer.run("inner") as inner:
        inner.retrieved([BAGGAGE])
    retrieval = recorded.named("retrieval")
    assert retrieval.parent is not None
    assert retrieval.parent.span_id == recorded.named("tool call").context.span_id


def test_runs_one_after_the_other_are_two_traces(recorded: RecordedSpans) -> None:
    for question in ("a", "b"):
        with tracer.run(question):
            pass
    assert len({span.context.trace_id for span in recorded.spans}) == 2


def test_the_ids_link_feedback_to_the_run(recorded: RecordedSpans) -> None:
    with tracer.run("q") as run:
        pass
    # The counting ids of the in-memory recorder start at 1.
    assert run.trace_id == "0" * 31 + "1"
    assert run.span_id == "0" * 15 + "1"


def test_the_clock_of_the_in_memory_recorder_ticks_by_the_millisecond(recorded: RecordedSpans) -> None:
    with tracer.run("q"):
        pass
    span = recorded.named("run")
    assert (span.start_time, span.end_time) == (1_767_225_600_000_000_000, 1_767_225_600_001_000_000)
