"""Passages that an answer cites by the name of their source, and passages that are not shown as retrieved."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import pytest

from citespan.evaluators.reading.inspection import citations_of
from citespan.evaluators.reading.reader import read_runs
from citespan.evaluators.runs import Run, RunState
from citespan.evaluators.sources.source import Span, Trace

RagTrace = Callable[..., Trace]
MakeSpan = Callable[..., Span]
ReadPages = Callable[..., Run]

TEA, INK, SALT = "Tea is dried in the sun.", "Ink was made from soot.", "Salt is won from the sea."


def read(trace: Trace) -> Run:
    (run,) = read_runs(trace)
    return run


def resolved(run: Run) -> list[tuple[str, str | None, str]]:
    return [(c.marker, c.passage_id, c.certainty.value) for c in citations_of(run)]


@pytest.fixture
def read_documents(span: MakeSpan) -> ReadPages:
    """Read a run over documents with metadata; the prompt shows their texts without labels unless told otherwise."""

    def run_of(
        documents: Sequence[tuple[str, str, Mapping[str, object]]], answer: str, prompt: str | None = None
    ) -> Run:
        retrieved: dict[str, object] = {}
        for n, (passage_id, text, metadata) in enumerate(documents):
            document = f"retrieval.documents.{n}.document"
            retrieved |= {f"{document}.id": passage_id, f"{document}.content": text}
            retrieved[f"{document}.metadata"] = json.dumps(metadata)
        shown = prompt or "\n\n".join(text for _, text, _ in documents)
        message = {
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": shown,
        }
        spans = (
            span(1, "CHAIN", {"input.value": "Why?", "output.value": answer}),
            span(2, "RETRIEVER", retrieved, parent=1, start=1, end=2),
            span(3, "LLM", {**message, "output.value": answer}, parent=1, start=3, end=4),
        )
        return read(Trace("0" * 31 + "1", spans))

    return run_of


@pytest.mark.parametrize(
    "name",
    [
        "tea.md p.3",
        "tea.md, p. 3",
        "tea.md#page=3",
        "tea.md (page 3)",
        "tea.md:3",
        "Tea.md page 3",
        "tea, p. 3",
    ],
)
def test_file_and_page_name_one_of_two_pages(read_documents: ReadPages, name: str) -> None:
    pages = [("a", TEA, {"source": "kb/tea.md", "page": 3}), ("b", INK, {"source": "kb/tea.md", "page": 4})]
    assert resolved(read_documents(pages, f"Dried [{name}].")) == [(f"[{name}]", "a", "certain")]


def test_page_that_loaders_count_in_two_ways_is_ambiguous(read_documents: ReadPages) -> None:
    # Page 4 is the first passage by its printed label, and the second counted from 0.
    pages = [
        ("a", TEA, {"source": "tea.pdf", "page": 3, "page_label": "4"}),
        ("b", INK, {"source": "tea.pdf", "page": 4, "page_label": "5"}),
    ]
    found = resolved(read_documents(pages, "Dried [tea.pdf p. 4]."))
    assert found == [("[tea.pdf p. 4]", "a", "ambiguous"), ("[tea.pdf p. 4]", "b", "ambiguous")]


@pytest.mark.parametrize(
    ("block", "name"),
    [
        ("Source: {n}.md\n{text}", "2.md"),
        ("Title: Page {n}\nURL: https://kb.example/{n}\nContent: {text}", "https://kb.example/2"),
        ("**File:** {n}.md\nScore: 0.5\n{text}", "2.md"),
        ("---\nID: kb-{n}\n{text}", "kb-2"),
    ],
)
def test_head_of_lines_above_a_passage_is_its_label(rag_trace: RagTrace, block: str, name: str) -> None:
    blocks = [block.format(n=n, text=text) for n, text in enumerate((TEA, INK, SALT), start=1)]
    run = read(rag_trace({}, "Sources:\n" + "\n\n".join(blocks) + "\n\nQuestion: Why?", f"Soot [{name}]."))
    assert [passage.text for passage in run.passages] == [TEA, INK, SALT]
    assert resolved(run) == [(f"[{name}]", "prompt:2", "certain")]


def test_line_below_a_passage_is_no_head_of_the_next(rag_trace: RagTrace) -> None:
    prompt = f"{TEA}\nSource: tea.md\n\n{INK}\nSource: ink.md\n\nQuestion: Why?"
    run = read(rag_trace({}, prompt, "Soot [ink.md]."))
    assert run.state is RunState.PASSAGES_WITHOUT_TEXT  # the retriever's own output says nothing readable
    assert all(citation.passage_id is None for citation in citations_of(run))


def test_number_in_a_head_is_no_label(read_documents: ReadPages) -> None:
    documents = [("a", TEA, {"page_label": "2"}), ("b", INK, {"page_label": "1"})]
    run = read_documents(documents, "Dried [1].", f"page_label: 2\n\n{TEA}\n\npage_label: 1\n\n{INK}")
    assert [passage.label for passage in run.passages] == [None, None]
    assert resolved(run) == [("[1]", "a", "low")]


@pytest.mark.parametrize("lead", ["Observation: ", "Search results: ", "Tool output： "])
def test_first_label_may_stand_behind_an_introduction(rag_trace: RagTrace, lead: str) -> None:
    run = read(rag_trace({}, f"{lead}[1] {TEA}\n[2] {INK}\n\nQuestion: Why?", "Dried [1]."))
    assert [passage.text for passage in run.passages] == [TEA, INK]
    assert resolved(run) == [("[1]", "prompt:1", "certain")]


def test_rows_of_a_table_are_labelled_by_their_first_cell(read_documents: ReadPages) -> None:
    rows = f"| id | text |\n|---|---|\n| 1 | {INK} |\n| 2 | {TEA} |"
    run = read_documents([("a", TEA, {}), ("b", INK, {})], "Soot [1].", rows)
    assert resolved(run) == [("[1]", "b", "certain")]


def test_short_text_is_not_found_inside_a_sentence(read_documents: ReadPages) -> None:
    run = read_documents([("a", "Tea", {})], "Dried.", f"{TEA}\n\nWhy?")
    assert "passages_not_found_in_prompt" in run.reasons


def test_wider_text_that_the_prompt_shows_is_the_passage(read_documents: ReadPages) -> None:
    run = read_documents(
        [("a", "Tea", {"window": TEA, "other": "Tea again."})], "Dried [1].", f"{TEA}\n\nWhy?"
    )
    assert [(passage.id, passage.text) for passage in run.passages] == [("a", TEA)]


def test_answer_may_be_the_first_lines_of_what_the_model_wrote(span: MakeSpan) -> None:
    spans = (
        span(1, "CHAIN", {"input.value": "Why?", "output.value": "Sun [1]."}),
        span(
            2,
            "LLM",
            {"input.value": f"[1] {TEA}\n\nQuestion: Why?", "output.value": "Sun [1].\nScore: 90"},
            parent=1,
        ),
    )
    run = read(Trace("0" * 31 + "1", spans))
    assert (run.answer, [passage.text for passage in run.passages]) == ("Sun [1].", [TEA])


def test_answer_cut_short_in_a_repr_is_looked_up_in_the_model_s_output(span: MakeSpan) -> None:
    whole = "Tea is dried in the sun for a day, and then again [1]."
    cut = f"StopEvent(result=AgentOutput(response=TextBlock(text='{whole[:30]}..."
    prompt = {"input.value": f"[1] {TEA}\n\nQuestion: Why?"}
    spans = (
        span(1, "AGENT", {"input.value": "Why?", "output.value": cut}),
        span(2, "LLM", {**prompt, "output.value": "Thought: look it up"}, parent=1, start=1, end=2),
        span(3, "LLM", {**prompt, "output.value": f"Answer: {whole}"}, parent=1, start=3, end=4),
    )
    run = read(Trace("0" * 31 + "1", spans))
    assert run.answer is not None
    assert run.answer.endswith(whole)


def test_message_told_twice_counts_once(span: MakeSpan) -> None:
    said = {
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Sun [1].",
        "llm.output_messages.0.message.contents.0.message_content.text": "Sun [1].",
    }
    run = read(Trace("0" * 31 + "1", (span(1, "LLM", {"input.value": f"[1] {TEA}\n\nWhy?", **said}),)))
    assert run.answer == "Sun [1]."


def test_stream_s_input_that_comes_with_its_output_is_the_question(span: MakeSpan) -> None:
    # Traceloop learns a streamed chain's input when the stream ends.
    late = {
        "traceloop.entity.input": '{"inputs": {"input": ""}, "tags": [], "kwargs": {}}',
        "traceloop.entity.output": '{"outputs": "Sun.", "kwargs": {"inputs": "Why?"}}',
    }
    run = read(Trace("0" * 31 + "1", (span(1, "CHAIN", late),)))
    assert (run.question, run.answer) == ("Why?", "Sun.")


def test_example_in_a_prompt_gives_no_passages(rag_trace: RagTrace) -> None:
    example = (
        "For example:\nSource 1:\nThe sky is red.\nSource 2:\nWater is wet.\nQuery: When?\nAnswer: Now [2].\n"
    )
    prompt = f"{example}Your turn:\nSource 1:\n{TEA}\nSource 2:\n{INK}\nQuery: Why?\nAnswer:"
    run = read(rag_trace({}, prompt, "Dried [1]."))
    assert [(passage.label, passage.text) for passage in run.passages] == [("1", TEA), ("2", INK)]
    assert resolved(run) == [("[1]", "prompt:1", "certain")]


def test_answer_that_an_xml_parser_took_apart_is_put_together(span: MakeSpan) -> None:
    citation = {"citation": [{"source_id": "0"}, {"quote": "in the sun"}]}
    output = {"answer": {"cited_answer": [{"answer": "It is dried."}, {"citations": [citation]}]}}
    written = "<cited_answer><answer>It is dried.</answer></cited_answer>"
    prompt = f"Source ID: 0\nSnippet: {TEA}\n\nSource ID: 1\nSnippet: {INK}\n\nQuestion: Why?"
    spans = (
        span(1, "CHAIN", {"input.value": "Why?", "output.value": json.dumps(output)}),
        span(2, "LLM", {"input.value": prompt, "output.value": written}, parent=1),
    )
    run = read(Trace("0" * 31 + "1", spans))
    assert run.answer == "It is dried."
    assert [(citation.passage_id, citation.quote) for citation in run.citations] == [
        ("prompt:1", "in the sun")
    ]
