"""Beside other instrumentors nothing is recorded twice, and what nobody records is added."""

from __future__ import annotations

from citespan import tracer
from citespan.tracer.testing import RecordedSpans
from citespan.tracer.text import text_hash

TEXTS = ("Green tea wants 80 degrees.", "Black tea wants 95 degrees.")


def retrieve(recorded: RecordedSpans, *texts: str, kind: str = "RETRIEVER") -> list[str]:
    """Retrieve as an app does whose retriever somebody else instruments."""
    with recorded.provider.get_tracer("openinference.instrumentation.other").start_as_current_span(
        "theirs"
    ) as span:
        for n, text in enumerate(texts):
            span.set_attribute(f"retrieval.documents.{n}.document.content", text)
        span.set_attribute("openinference.span.kind", kind)
    return list(texts)


def test_texts_that_another_instrumentor_recorded_are_left_to_it(recorded: RecordedSpans) -> None:
    with tracer.run("q") as run:
        run.retrieved(retrieve(recorded, *TEXTS), labels="{n}")
    assert recorded.kinds() == ["RETRIEVER", "CHAIN"]
    assert [(p.label, p.sha256) for p in recorded.run().passages] == [
        ("1", text_hash(TEXTS[0])),
        ("2", text_hash(TEXTS[1])),
    ]


def test_a_text_that_the_other_did_not_record_is_recorded_alone(recorded: RecordedSpans) -> None:
    with tracer.run("q") as run:
        run.shown([*retrieve(recorded, TEXTS[0]), "a rule"])
    assert recorded.kinds() == ["RETRIEVER", "RETRIEVER", "CHAIN"]
    shown = dict(recorded.named("shown").attributes or {})
    assert [value for key, value in shown.items() if key.endswith("content")] == ["a rule"]


def test_a_block_round_another_retriever_is_no_second_retriever(recorded: RecordedSpans) -> None:
    with tracer.run("q") as run, run.retrieval("rewritten query") as retrieval:
        retrieval.retrieved(retrieve(recorded, *TEXTS))
    assert recorded.kinds() == ["RETRIEVER", "CHAIN", "CHAIN"]
    assert dict(recorded.named("retrieval").attributes or {})["input.value"] == "rewritten query"


def test_a_retrieval_that_finds_nothing_is_recorded_as_one(recorded: RecordedSpans) -> None:
    with tracer.run("q") as run:
        run.retrieved(retrieve(recorded))
    assert recorded.kinds() == ["RETRIEVER", "RETRIEVER", "CHAIN"]


def test_texts_of_another_trace_or_another_kind_do_not_count(recorded: RecordedSpans) -> None:
    with tracer.run("first") as run:
        run.retrieved(retrieve(recorded, TEXTS[0]))
    with tracer.run("second") as run:
        run.retrieved(retrieve(recorded, TEXTS[0], kind="EMBEDDING"))
    assert recorded.kinds() == ["RETRIEVER", "CHAIN", "EMBEDDING", "RETRIEVER", "CHAIN"]


def test_two_runs_in_one_trace_each_know_what_was_recorded(recorded: RecordedSpans) -> None:
    with recorded.provider.get_tracer("web").start_as_current_span("request"):
        first, second = tracer.start_run("a"), tracer.start_run("b")
        texts = retrieve(recorded, *TEXTS)
        first.retrieved(texts)
        first.finish()
        second.retrieved(texts)
        second.finish()
    assert [kind for kind in recorded.kinds() if kind == "RETRIEVER"] == ["RETRIEVER"]
    assert [record.passage_count for record in recorded.runs()] == [2, 2]


def test_the_session_of_openinference_s_context_is_the_run_s(recorded: RecordedSpans) -> None:
    from opentelemetry import context

    token = context.attach(context.set_value("session.id", "s-7", context.set_value("tag.tags", ["beta"])))
    try:
        with tracer.run("q"):
            pass
    finally:
        context.detach(token)
    attributes = dict(recorded.named("run").attributes or {})
    assert (attributes["session.id"], attributes["tag.tags"]) == ("s-7", ("beta",))
