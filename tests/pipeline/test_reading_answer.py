"""Which text of a trace is the answer, which the question, and what is said where they cannot be known."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from citespan.evaluators.reading.inspection import citations_of
from citespan.evaluators.reading.reader import read_runs
from citespan.evaluators.runs import Run, RunState
from citespan.evaluators.sources.source import Span, Trace

RagTrace = Callable[..., Trace]
MakeSpan = Callable[..., Span]

TRACE_ID = "0" * 31 + "1"
TEXT = "Tea is dried in the sun [1]."
PASSAGES = {"kb-tea": "Tea is dried in the sun for a day."}
PROMPT = "[1] Tea is dried in the sun for a day.\n"


def read(*spans: Span) -> Run:
    runs = read_runs(Trace(TRACE_ID, spans))
    assert len(runs) == 1
    return runs[0]


@pytest.mark.parametrize(
    "output",
    [
        TEXT,
        json.dumps({"answer": TEXT}),
        json.dumps({"question": "Why?", "docs": [{"id": "1", "text": "x"}], "answer": TEXT}),
        json.dumps({"query": "Why?", "result": TEXT}),
        json.dumps({"output": {"text": TEXT}}),
        json.dumps(
            {"messages": [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": TEXT}]}
        ),
        json.dumps(
            {
                "messages": [
                    {"type": "human", "data": {"content": "?"}},
                    {"type": "ai", "data": {"content": TEXT}},
                ]
            }
        ),
        json.dumps({"type": "ai", "data": {"content": [{"type": "text", "text": TEXT}]}}),
        json.dumps([{"graph": None, "update": {"messages": [{"type": "ai", "data": {"content": TEXT}}]}}]),
        json.dumps({"choices": [{"message": {"role": "assistant", "content": TEXT}}]}),
        json.dumps(
            {
                "content": [{"type": "thinking", "text": "hm"}, {"type": "text", "text": TEXT}],
                "role": "assistant",
            }
        ),
        json.dumps({"candidates": [{"content": {"role": "model", "parts": [{"text": TEXT}]}}]}),
        json.dumps({"raw": TEXT, "tasks_output": [{"raw": "older"}]}),
        json.dumps({"llm": {"replies": [TEXT]}, "meta": {"model": "m"}}),
        json.dumps({"generations": [[{"text": TEXT, "type": "ChatGeneration"}]]}),
        json.dumps([TEXT]),
        json.dumps({"response": TEXT, "source_nodes": ["<NodeWithScore(node=TextNode(id_=1))>"]}),
        json.dumps(TEXT),
    ],
)
def test_answer_is_dug_out_of_whatever_the_root_gives(span: MakeSpan, output: str) -> None:
    run = read(
        span(
            1,
            "CHAIN",
            {"input.value": "Why?", "output.value": output, "output.mime_type": "application/json"},
        )
    )
    assert run.answer == TEXT


@pytest.mark.parametrize(
    "output",
    [
        "",
        "   ",
        "<generator object Chain.stream at 0x7f00>",
        '{"response_gen": "<generator object>", "response_txt": null}',
        '["<NodeWithScore(node=TextNode(id_=1), score=0.5)>"]',
        '{"answer": "Tea is dried in the su',
        '[{"id": "kb-1", "page_content": "Tea is dried.", "metadata": {}}]',
        '{"documents": [{"id": "kb-1", "content": "Tea is dried."}]}',
        '{"status": "ok", "latency_ms": 12}',
        '[{"name": "send_mail", "arguments": {"content": "Dear all"}, "id": "c1"}]',
    ],
)
def test_what_is_no_answer_is_never_taken_for_one(span: MakeSpan, output: str) -> None:
    run = read(
        span(1, "CHAIN", {"input.value": "Why?", "output.value": output}),
        span(2, "RETRIEVER", {"output.value": "x"}, parent=1, start=1, end=2),
    )
    assert run.answer is None
    assert run.state is RunState.NO_ANSWER_RECORDED


def test_empty_answer_is_no_answer_and_says_so(span: MakeSpan) -> None:
    run = read(
        span(1, "CHAIN", {"input.value": "Why?", "output.value": ""}),
        span(2, "RETRIEVER", {"output.value": "x"}, parent=1, start=1, end=2),
    )
    assert "answer_empty" in run.reasons


def test_failed_run_without_an_answer_says_that_it_failed(span: MakeSpan) -> None:
    run = read(
        span(1, "CHAIN", {"input.value": "Why?"}, status="ERROR"),
        span(2, "RETRIEVER", {"output.value": "x"}, parent=1, start=1, end=2),
    )
    assert run.state is RunState.NO_ANSWER_RECORDED
    assert "run_failed" in run.reasons


@pytest.mark.parametrize("mask", ["__REDACTED__", "[REDACTED]", "<redacted>", "***", "[Filtered]"])
def test_masked_answer_is_hidden_and_nothing_looks_behind_the_mask(
    rag_trace: RagTrace, span: MakeSpan, mask: str
) -> None:
    trace = rag_trace(PASSAGES, PROMPT, mask, root={"input.value": "Why?", "output.value": mask})
    leak = span(
        9,
        "CHAIN",
        {"input.value": json.dumps({"content": TEXT}), "output.value": mask},
        parent=1,
        start=40,
        end=50,
    )
    run = read(*trace.spans, leak)
    assert run.state is RunState.CONTENT_HIDDEN
    assert run.answer is None


def test_masked_question_is_unknown(rag_trace: RagTrace) -> None:
    run = read(
        *rag_trace(PASSAGES, PROMPT, TEXT, root={"input.value": "__REDACTED__", "output.value": TEXT}).spans
    )
    assert run.question is None or "REDACTED" not in run.question
    assert run.answer == TEXT


def test_masked_passages_are_a_state(span: MakeSpan) -> None:
    documents = {"retrieval.documents.0.document.content": "__REDACTED__", "output.value": "__REDACTED__"}
    run = read(
        span(1, "CHAIN", {"input.value": "Why?", "output.value": TEXT}),
        span(2, "RETRIEVER", documents, parent=1, start=1, end=2),
    )
    assert run.state is RunState.CONTENT_HIDDEN
    assert [passage.text for passage in run.passages] == [None]


def test_answer_of_the_model_stands_in_where_the_root_gives_none(rag_trace: RagTrace, span: MakeSpan) -> None:
    trace = rag_trace(PASSAGES, PROMPT, TEXT, root={"http.route": "/chat"})
    run = read(*trace.spans)
    assert run.answer == TEXT
    assert run.origin is not None
    assert run.origin.answer_span_id == f"{3:016x}"
    assert run.origin.root_span_id == f"{1:016x}"


def test_call_that_was_shown_no_passage_is_not_the_answer(rag_trace: RagTrace, span: MakeSpan) -> None:
    trace = rag_trace(PASSAGES, PROMPT, TEXT, root={"http.route": "/chat"})
    title = {
        "llm.model_name": "m",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Give this chat a title: Why?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "On drying tea",
    }
    run = read(*trace.spans, span(9, "LLM", title, parent=1, start=50, end=60))
    assert run.answer == TEXT


def test_two_calls_that_could_both_be_the_answer_are_ambiguous(rag_trace: RagTrace, span: MakeSpan) -> None:
    trace = rag_trace(PASSAGES, PROMPT, TEXT, root={"http.route": "/chat"})
    other = dict(trace.spans[2].attributes) | {
        "llm.output_messages.0.message.content": "Tea is picked at dawn [1]."
    }
    run = read(*trace.spans, span(9, "LLM", other, parent=1, start=50, end=60))
    assert run.state is RunState.AMBIGUOUS_RUN
    assert run.answer is None


def test_call_that_rewrites_the_question_is_not_the_answer(rag_trace: RagTrace, span: MakeSpan) -> None:
    trace = rag_trace(PASSAGES, PROMPT, TEXT, root={"http.route": "/chat"})
    rewrite = {
        "llm.model_name": "m",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "How is tea dried?",
    }
    run = read(span(9, "LLM", rewrite, parent=1, start=0, end=1), *trace.spans)
    assert run.answer == TEXT


def test_evaluator_spans_are_never_read(rag_trace: RagTrace, span: MakeSpan) -> None:
    trace = rag_trace(PASSAGES, PROMPT, TEXT)
    judged = {"input.value": "Is it right?", "output.value": "yes"}
    judge = dict(trace.spans[2].attributes) | {"llm.output_messages.0.message.content": TEXT}
    run = read(
        *trace.spans,
        span(8, "EVALUATOR", judged, start=0, end=5000),
        span(9, "LLM", judge, parent=8, start=60, end=70),
    )
    assert run.origin is not None
    assert run.origin.root_span_id == f"{1:016x}"
    assert run.answer == TEXT


def test_trace_of_evaluators_alone_is_not_rag(span: MakeSpan) -> None:
    run = read(span(1, "EVALUATOR", {"input.value": "Is it right?", "output.value": "yes"}))
    assert run.state is RunState.NOT_RAG
    assert run.reasons == ("evaluator_spans_only",)


def test_answer_without_any_retrieval_is_not_rag(span: MakeSpan) -> None:
    run = read(span(1, "CHAIN", {"input.value": "Why?", "output.value": "Because."}))
    assert run.state is RunState.NOT_RAG


def test_retrieval_that_found_nothing_leaves_the_markers_dangling(span: MakeSpan) -> None:
    run = read(
        span(1, "CHAIN", {"input.value": "Why?", "output.value": TEXT}),
        span(2, "RETRIEVER", {"output.value": '{"documents": []}'}, parent=1, start=1, end=2),
    )
    assert run.state is None
    assert [c.passage_id for c in citations_of(run)] == [None]


def test_retrieval_whose_output_was_not_captured_is_a_state(span: MakeSpan) -> None:
    run = read(
        span(1, "CHAIN", {"input.value": "Why?", "output.value": TEXT}),
        span(2, "UNKNOWN", {"gen_ai.operation.name": "retrieval"}, parent=1, start=1, end=2),
    )
    assert run.state is RunState.PASSAGES_WITHOUT_TEXT


def test_passages_known_by_id_alone_are_a_state(span: MakeSpan) -> None:
    documents = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.documents": '[{"id": "kb-1", "score": null}]',
    }
    run = read(
        span(1, "CHAIN", {"input.value": "Why?", "output.value": TEXT}),
        span(2, "UNKNOWN", documents, parent=1, start=1, end=2),
    )
    assert run.state is RunState.PASSAGES_WITHOUT_TEXT
    assert [passage.id for passage in run.passages] == ["kb-1"]


def test_missing_parents_make_a_run_incomplete_only_if_no_answer_is_found(rag_trace: RagTrace) -> None:
    root, retriever, call = rag_trace(PASSAGES, PROMPT, TEXT).spans
    without_answer = read(retriever)
    assert without_answer.state is RunState.INCOMPLETE
    assert "parent_not_in_phoenix" in without_answer.reasons
    with_answer = read(retriever, call)
    assert with_answer.state is None
    assert with_answer.answer == TEXT
    assert with_answer.origin is not None
    assert with_answer.origin.is_parent_missing
    assert root.span_id not in (with_answer.origin.root_span_id, with_answer.origin.answer_span_id)


def test_output_of_a_step_in_a_torn_trace_is_not_the_answer(rag_trace: RagTrace, span: MakeSpan) -> None:
    step = span(9, "CHAIN", {"input.value": "documents", "output.value": PROMPT}, parent=77, start=2, end=900)
    assert read(step).state is RunState.INCOMPLETE
    _, retriever, call = rag_trace(PASSAGES, PROMPT, TEXT).spans
    assert read(step, retriever, call).answer == TEXT


def test_of_several_roots_the_one_with_an_answer_is_taken(rag_trace: RagTrace, span: MakeSpan) -> None:
    longer = span(9, "CHAIN", {"input.value": "warm up"}, start=0, end=9000)
    run = read(longer, *rag_trace(PASSAGES, PROMPT, TEXT).spans)
    assert run.answer == TEXT
    assert "several_roots:2" in run.reasons


def test_spans_that_are_their_own_ancestors_are_an_incomplete_trace(span: MakeSpan) -> None:
    run = read(
        span(1, "CHAIN", {"input.value": "Why?", "output.value": TEXT}, parent=2),
        span(2, "CHAIN", {}, parent=1),
        span(3, "CHAIN", {}, parent=3),
    )
    assert run.state is RunState.INCOMPLETE


@pytest.mark.parametrize(
    "given",
    [
        "Why?",
        json.dumps({"question": "Why?"}),
        json.dumps({"input": {"query": "Why?"}}),
        json.dumps({"messages": [["human", "Why?"]]}),
        json.dumps(
            {
                "messages": [
                    {"role": "user", "content": "Before?"},
                    {"role": "assistant", "content": "So."},
                    {"role": "user", "content": "Why?"},
                ]
            }
        ),
        json.dumps({"data": {"retriever": {"query": "Why?"}, "prompt": {"q": "Why?"}}}),
        json.dumps({"kwargs": {"user_msg": "Why?"}}),
        json.dumps({"query_bundle": {"query_str": "Why?", "embedding": None}}),
    ],
)
def test_question_is_dug_out_of_whatever_the_root_was_given(rag_trace: RagTrace, given: str) -> None:
    run = read(*rag_trace(PASSAGES, PROMPT, TEXT, root={"input.value": given, "output.value": TEXT}).spans)
    assert run.question == "Why?"


@pytest.mark.parametrize(
    "prompt",
    [
        PROMPT + "\nQuestion: Why?\nAnswer:",
        "Why?\n\nUse these references:\n<references>\n[1] Tea is dried in the sun for a day.\n</references>",
        PROMPT + "\n\nWhy?",
    ],
)
def test_question_in_a_prompt_is_read_without_the_passages(rag_trace: RagTrace, prompt: str) -> None:
    run = read(*rag_trace(PASSAGES, prompt, TEXT, root={"output.value": TEXT}).spans)
    assert run.question == "Why?"
    assert "question_from_prompt" in run.reasons


def test_answer_of_a_structured_call_is_its_argument_with_its_citations(rag_trace: RagTrace) -> None:
    trace = rag_trace(PASSAGES, PROMPT, "", root={"input.value": "Why?"})
    root, retriever, call = trace.spans
    arguments = json.dumps(
        {"answer": "Tea is dried.", "citations": [{"source_id": 1, "quote": "in the sun"}]}
    )
    attributes = {
        k: v for k, v in call.attributes.items() if not k.endswith("message.content") or "input" in k
    }
    attributes["llm.output_messages.0.message.tool_calls.0.tool_call.function.name"] = "cite"
    attributes["llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments"] = arguments
    run = read(root, retriever, replace(call, attributes=attributes))
    assert run.answer == "Tea is dried."
    assert [(c.passage_id, c.quote) for c in run.citations] == [("kb-tea", "in the sun")]


def test_blocks_that_an_instrumentor_dropped_are_read_from_the_payload(span: MakeSpan) -> None:
    payload = {
        "role": "assistant",
        "content": [
            {"citationsContent": {"content": [{"text": "Tea is dried."}], "citations": []}},
            {"text": " Enjoy."},
        ],
    }
    call = {
        "llm.model_name": "m",
        "output.value": json.dumps(payload),
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": " Enjoy.",
    }
    assert read(span(1, "LLM", call)).answer == "Tea is dried. Enjoy."


def test_session_of_the_trace_is_kept_for_reports(rag_trace: RagTrace) -> None:
    root = {"input.value": "Why?", "output.value": TEXT, "session.id": "s-7"}
    run = read(*rag_trace(PASSAGES, PROMPT, TEXT, root=root).spans)
    assert run.origin is not None
    assert run.origin.session_id == "s-7"
    assert run.origin.passage_span_ids == {"kb-tea": f"{2:016x}"}
