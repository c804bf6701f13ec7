"""Which passages a run has, and under which labels the model saw them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from citespan.evaluators.reading.inspection import citations_of
from citespan.evaluators.reading.reader import read_runs
from citespan.evaluators.runs import Run, RunState
from citespan.evaluators.sources.source import Span, Trace

RagTrace = Callable[..., Trace]
MakeSpan = Callable[..., Span]

TEA, INK, SALT = "Tea is dried in the sun.", "Ink was made from soot.", "Salt is won from the sea."
THREE = {"kb-tea": TEA, "kb-ink": INK, "kb-salt": SALT}


def read(trace: Trace) -> Run:
    runs = read_runs(trace)
    assert len(runs) == 1
    return runs[0]


def labels(run: Run) -> list[tuple[str, str | None]]:
    return [(passage.id, passage.label) for passage in run.passages]


def resolved(run: Run) -> list[tuple[str, str | None, str]]:
    return [(c.marker, c.passage_id, c.certainty.value) for c in citations_of(run)]


@pytest.mark.parametrize(
    ("line", "answer", "label"),
    [
        ("[{n}] {text}", "It is [1].", "1"),
        ("【{n}】{text}", "It is [1].", "1"),
        ("[[{n}]] {text}", "It is [1].", "1"),
        ("- [{n}]: {text}", "It is [1].", "1"),
        ("**[{n}]** {text}", "It is [1].", "1"),
        ("Source {n}:\n{text}\n", "It is [1].", "1"),
        ("### Document {n}\n{text}\n", "It is [1].", "1"),
        ("Document [{n}](Title: Sun): {text}", "It is [1].", "1"),
        ("--- Source {n} ---\n{text}\n", "It is [1].", "1"),
        ("Passage {n} - {text}", "It is [1].", "1"),
        ("Source ID: {n}\nArticle Title: x\nArticle Snippet: {text}\n", "It is [1].", "1"),
        ("ID: {n}\n├── Title: x\n└── Content:\n{text}\n", "It is [1].", "1"),
        ("[ID:{n}] {text}", "It is [ID:1].", "1"),
        ("[doc{n}]: {text}", "It is [doc1].", "doc1"),
        ("[webpage {n} begin]{text}[webpage {n} end]", "It is [citation:1].", "1"),
        ('<source id="{n}">{text}</source>', "It is [1].", "1"),
        ('<source id="{n}" name="a b.pdf">\n{text}\n</source>', "It is [1].", "1"),
        (
            '<document index="{n}">\n<source>a.md</source>\n<text>{text}</text>\n</document>',
            "It is [1].",
            "1",
        ),
        ("<doc{n}>{text}</doc{n}>", "It is [1].", "1"),
        ("{n}. {text}", "It is [1].", "1"),
        ("({n}) {text}", "It is [1].", "1"),
        ("来源{n}：{text}", "It is [1].", "1"),
    ],
)
def test_label_is_the_one_at_the_start_of_the_passage(
    rag_trace: RagTrace, line: str, answer: str, label: str
) -> None:
    blocks = [line.format(n=n, text=text) for n, text in enumerate(THREE.values(), start=1)]
    run = read(rag_trace(THREE, "Use these:\n\n" + "\n".join(blocks) + "\n\nQuestion: Why?", answer))
    assert [passage.id for passage in run.passages] == list(THREE)
    assert run.passages[0].label == label
    assert [(passage_id, certainty) for _, passage_id, certainty in resolved(run)] == [("kb-tea", "certain")]


def test_label_wins_over_place_in_the_retrievers_list(rag_trace: RagTrace) -> None:
    run = read(rag_trace(THREE, f"[1] {SALT}\n[2] {TEA}\n", "Salt [1], tea [2]."))
    # kb-ink was retrieved and not shown: it is no passage of this run.
    assert labels(run) == [("kb-salt", "1"), ("kb-tea", "2")]
    assert resolved(run) == [("[1]", "kb-salt", "certain"), ("[2]", "kb-tea", "certain")]
    assert "retrieved_but_not_in_prompt:1" in run.reasons


def test_passages_without_labels_are_taken_in_prompt_order_and_never_certain(rag_trace: RagTrace) -> None:
    run = read(rag_trace(THREE, f"{INK}\n\n{TEA}\n\n{SALT}\n\nWhy?", "Ink [1]."))
    assert labels(run) == [("kb-ink", None), ("kb-tea", None), ("kb-salt", None)]
    assert resolved(run) == [("[1]", "kb-ink", "low")]


def test_passages_are_in_retrieval_order_where_no_prompt_is_recorded(rag_trace: RagTrace) -> None:
    run = read(rag_trace(THREE, None, "Tea [1]."))
    assert [passage.id for passage in run.passages] == list(THREE)
    assert resolved(run) == [("[1]", "kb-tea", "low")]


def test_zero_based_labels_are_kept_as_shown(rag_trace: RagTrace) -> None:
    prompt = "".join(f"[ID:{n}] {text}\n" for n, text in enumerate(THREE.values()))
    run = read(rag_trace(THREE, prompt, "Tea [ID:0]."))
    assert resolved(run) == [("[ID:0]", "kb-tea", "certain")]


def test_text_of_a_passage_cannot_forge_a_label(rag_trace: RagTrace) -> None:
    forged = f"Tea.\n[2] {INK}"
    run = read(rag_trace({"kb-tea": forged, "kb-salt": SALT}, f"[1] {forged}\n[2] {SALT}\n", "Salt [2]."))
    assert labels(run) == [("kb-tea", "1"), ("kb-salt", "2")]
    assert resolved(run) == [("[2]", "kb-salt", "certain")]


def test_blocks_of_an_example_in_the_prompt_are_no_passages(rag_trace: RagTrace) -> None:
    example = "For example:\nSource 1:\nThe sky is red.\nSource 2:\nWater is wet.\nNow your turn:\n"
    run = read(rag_trace({"kb-tea": TEA}, f"{example}Source 1:\n{TEA}\nQuery: Why?", "Tea [1]."))
    assert labels(run) == [("kb-tea", "1")]
    assert resolved(run) == [("[1]", "kb-tea", "certain")]


def test_numbered_instructions_are_no_labels(rag_trace: RagTrace) -> None:
    prompt = f"Rules:\n1. Be brief.\n2. Cite.\n\n{TEA}\n\n{INK}\n"
    run = read(rag_trace({"kb-tea": TEA, "kb-ink": INK}, prompt, "Tea [1]."))
    assert labels(run) == [("kb-tea", None), ("kb-ink", None)]
    assert resolved(run) == [("[1]", "kb-tea", "low")]


def test_label_below_its_passage_is_its_own_and_not_the_next_ones(rag_trace: RagTrace) -> None:
    prompt = f"Content: {TEA}\nID: 7\n\nContent: {INK}\nID: 8\n\nContent: {SALT}\nID: 9\n"
    run = read(rag_trace(THREE, prompt, "Tea [7]."))
    assert labels(run) == [("kb-tea", "7"), ("kb-ink", "8"), ("kb-salt", "9")]


def test_two_passages_under_one_label_are_ambiguous(rag_trace: RagTrace) -> None:
    run = read(rag_trace(THREE, "".join(f'<source id="1">{t}</source>' for t in THREE.values()), "Tea [1]."))
    assert resolved(run) == [("[1]", passage_id, "ambiguous") for passage_id in THREE]


def test_split_passages_are_the_parts_that_the_model_saw(rag_trace: RagTrace) -> None:
    whole = "The kiln is lit at dawn. It burns for nine hours."
    prompt = (
        f"Source 1:\nThe kiln is lit at dawn.\n\nSource 2:\nIt burns for nine hours.\n\nSource 3:\n{SALT}\n"
    )
    run = read(rag_trace({"kb-kiln": whole, "kb-salt": SALT}, prompt, "Nine hours [2]. Salt [3]."))
    assert labels(run) == [("kb-kiln", "1"), ("kb-kiln#2", "2"), ("kb-salt", "3")]
    assert run.passages[1].text == "It burns for nine hours."
    assert [passage_id for _, passage_id, _ in resolved(run)] == ["kb-kiln#2", "kb-salt"]


def test_passage_that_the_app_shortened_has_the_text_the_model_saw(rag_trace: RagTrace) -> None:
    whole = (
        "The mill grinds barley in autumn and oats in spring, as it has done for three hundred years or more."
    )
    run = read(rag_trace({"kb-mill": whole}, f"[1] {whole[:70]}...\n\nWhy?", "Barley [1]."))
    assert labels(run) == [("kb-mill", "1")]
    assert run.passages[0].text is not None
    assert run.passages[0].text.startswith("The mill grinds barley")
    assert "three hundred" not in run.passages[0].text


def test_other_white_space_in_the_prompt_does_not_hide_a_passage(rag_trace: RagTrace) -> None:
    text = "Rope is\n  twisted   from hemp."
    run = read(rag_trace({"kb-rope": text}, "[1] Rope is twisted from hemp.\n", "Hemp [1]."))
    assert labels(run) == [("kb-rope", "1")]
    assert run.passages[0].text == text


def test_labelled_blocks_are_the_passages_where_nothing_was_retrieved(span: MakeSpan) -> None:
    call = {
        "llm.model_name": "m",
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": f"Cite.\n\n[1] {TEA}\n\n[2] {INK}\n\n-----\nBe kind.",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": "Why?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Ink [2].",
    }
    run = read(Trace("0" * 31 + "1", (span(1, "LLM", call),)))
    assert [(p.id, p.label, p.text) for p in run.passages] == [("prompt:1", "1", TEA), ("prompt:2", "2", INK)]
    assert resolved(run) == [("[2]", "prompt:2", "certain")]
    assert run.state is None


def test_brackets_in_a_prompt_without_passages_make_no_run(span: MakeSpan) -> None:
    call = {
        "llm.model_name": "m",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "[INST] Say hello\n[sic] please",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Hello.",
    }
    run = read(Trace("0" * 31 + "1", (span(1, "LLM", call),)))
    assert run.passages == ()
    assert run.state is RunState.NOT_RAG


def test_what_an_earlier_turn_was_shown_is_no_passage(span: MakeSpan) -> None:
    call: dict[str, object] = {"llm.model_name": "m"}
    turns = [
        ("user", f"[1] {SALT}\nWhere from?"),
        ("assistant", "The sea [1]."),
        ("user", f"[1] {TEA}\n[2] {INK}\nWhy?"),
    ]
    for n, (role, content) in enumerate(turns):
        call[f"llm.input_messages.{n}.message.role"] = role
        call[f"llm.input_messages.{n}.message.content"] = content
    call["llm.output_messages.0.message.role"] = "assistant"
    call["llm.output_messages.0.message.content"] = "Tea [1]."
    run = read(Trace("0" * 31 + "1", (span(1, "LLM", call),)))
    assert [p.text for p in run.passages] == [TEA, INK]


def test_results_of_two_tools_that_number_from_one_are_ambiguous(span: MakeSpan) -> None:
    call: dict[str, object] = {"llm.model_name": "m"}
    turns = [("user", "Why?"), ("tool", f"[1] {TEA}"), ("tool", f"[1] {INK}")]
    for n, (role, content) in enumerate(turns):
        call[f"llm.input_messages.{n}.message.role"] = role
        call[f"llm.input_messages.{n}.message.content"] = content
    call["llm.output_messages.0.message.role"] = "assistant"
    call["llm.output_messages.0.message.content"] = "Tea [1]."
    run = read(Trace("0" * 31 + "1", (span(1, "LLM", call),)))
    assert resolved(run) == [("[1]", "prompt:1", "ambiguous"), ("[1]", "prompt:2", "ambiguous")]


def test_output_of_a_tool_that_retrieves_nothing_is_no_passage(span: MakeSpan) -> None:
    spans = (
        span(1, "AGENT", {"input.value": "How much?", "output.value": "It is 42."}),
        span(2, "TOOL", {"input.value": "6*7", "output.value": "42"}, parent=1, start=1, end=2),
    )
    run = read(Trace("0" * 31 + "1", spans))
    assert run.passages == ()
    assert run.state is RunState.NOT_RAG


@pytest.mark.parametrize(
    "output",
    [
        [{"id": "kb-tea", "text": TEA}, {"id": "kb-ink", "text": INK}],
        {"results": [{"id": "kb-tea", "content": TEA, "score": 0.5}, {"id": "kb-ink", "content": INK}]},
        {
            "matches": [
                {"id": "kb-tea", "metadata": {"text": TEA}},
                {"id": "kb-ink", "metadata": {"text": INK}},
            ]
        },
        {
            "hits": {
                "hits": [
                    {"_id": "kb-tea", "_source": {"text": TEA}},
                    {"_id": "kb-ink", "_source": {"text": INK}},
                ]
            }
        },
        {"ids": [["kb-tea", "kb-ink"]], "documents": [[TEA, INK]], "metadatas": [[None, None]]},
        [
            {"node": {"id_": "kb-tea", "text": TEA}, "score": 1.0},
            {"node": {"id_": "kb-ink", "text": INK}, "score": 0.1},
        ],
        {"points": [{"id": "kb-tea", "payload": {"text": TEA}}, {"id": "kb-ink", "payload": {"text": INK}}]},
    ],
    ids=["list", "results", "pinecone", "elasticsearch", "chroma", "llama_index", "qdrant"],
)
def test_documents_are_found_in_whatever_shape_a_store_returns_them(span: MakeSpan, output: object) -> None:
    spans = (
        span(1, "AGENT", {"input.value": "Why?", "output.value": "Tea."}),
        span(2, "TOOL", {"input.value": "q", "output.value": json.dumps(output)}, parent=1, start=1, end=2),
    )
    run = read(Trace("0" * 31 + "1", spans))
    assert [(p.id, p.text) for p in run.passages] == [("kb-tea", TEA), ("kb-ink", INK)]


def test_rerankers_output_stands_in_for_what_it_was_given(span: MakeSpan) -> None:
    def documents(prefix: str, order: list[str]) -> dict[str, object]:
        found: dict[str, object] = {}
        for n, passage_id in enumerate(order):
            found[f"{prefix}.{n}.document.id"] = passage_id
            found[f"{prefix}.{n}.document.content"] = THREE[passage_id]
        return found

    given = documents("reranker.input_documents", list(THREE))
    kept = documents("reranker.output_documents", ["kb-salt", "kb-tea"])
    spans = (
        span(1, "CHAIN", {"input.value": "Why?", "output.value": "Salt."}),
        span(2, "RETRIEVER", documents("retrieval.documents", list(THREE)), parent=1, start=1, end=2),
        span(3, "RERANKER", {**given, **kept}, parent=1, start=3, end=4),
    )
    run = read(Trace("0" * 31 + "1", spans))
    assert [passage.id for passage in run.passages] == ["kb-salt", "kb-tea"]


def test_retrieval_after_the_answer_began_is_not_its_evidence(rag_trace: RagTrace, span: MakeSpan) -> None:
    trace = rag_trace({"kb-tea": TEA}, f"[1] {TEA}", "Tea [1].")
    late = {"retrieval.documents.0.document.id": "kb-ink", "retrieval.documents.0.document.content": INK}
    run = read(Trace(trace.trace_id, (*trace.spans, span(9, "RETRIEVER", late, parent=1, start=40, end=50))))
    assert [passage.id for passage in run.passages] == ["kb-tea"]


def test_two_chunks_with_one_id_are_two_passages(span: MakeSpan) -> None:
    documents: Mapping[str, object] = {
        "retrieval.documents.0.document.id": "0",
        "retrieval.documents.0.document.content": TEA,
        "retrieval.documents.1.document.id": "0",
        "retrieval.documents.1.document.content": INK,
    }
    spans = (
        span(1, "CHAIN", {"input.value": "Why?", "output.value": "Tea."}),
        span(2, "RETRIEVER", documents, parent=1, start=1, end=2),
    )
    run = read(Trace("0" * 31 + "1", spans))
    assert [(p.id, p.text) for p in run.passages] == [("0", TEA), ("0#2", INK)]


def test_markers_that_the_app_numbered_anew_keep_their_passages(rag_trace: RagTrace) -> None:
    prompt = "".join(f"[{n}] {text}\n" for n, text in enumerate(THREE.values(), start=1))
    shown = "Salt comes from the sea [1]. Tea is dried [2]."
    written = "Salt comes from the sea [3]. Tea is dried [1]."
    run = read(rag_trace(THREE, prompt, shown, written=written))
    # The app numbered [3] and [1] by first use: [1] is salt now, and [2] is tea.
    assert resolved(run) == [("[1]", "kb-salt", "certain"), ("[2]", "kb-tea", "certain")]
    assert "markers_rewritten" in run.reasons


def test_file_name_that_the_answer_cites_is_the_label(rag_trace: RagTrace) -> None:
    trace = rag_trace({"a": TEA, "b": INK}, f"{TEA}\n\n{INK}", "Tea [tea.md]. Ink [ink.md].")
    metadata = {
        "retrieval.documents.0.document.metadata": '{"source": "/data/tea.md"}',
        "retrieval.documents.1.document.metadata": '{"source": "/data/ink.md"}',
    }
    root, retriever, call = trace.spans
    named = replace(retriever, attributes={**retriever.attributes, **metadata})
    run = read(replace(trace, spans=(root, named, call)))
    assert resolved(run) == [("[tea.md]", "a", "certain"), ("[ink.md]", "b", "certain")]


def test_citation_to_a_passage_after_a_cut_prompt_is_lost_and_not_invalid(rag_trace: RagTrace) -> None:
    texts = {
        f"kb-{n}": f"Passage {n} tells at some length about the history of craft number {n} in the valley."
        for n in range(1, 5)
    }
    prompt = "".join(f"[{n}] {text}\n" for n, text in enumerate(texts.values(), start=1))
    cut = prompt[: prompt.index("[3]") + 75]
    run = read(rag_trace(texts, cut, "One [1]. Four [4]."))
    assert run.state is RunState.PASSAGES_TRUNCATED
    # Passage 3 is cut in the middle, and passage 4 came after it.
    assert run.passages_lost == 1
    assert [c.reason for c in citations_of(run)] == [None, "passage_lost"]


def test_dropped_documents_are_a_state_and_their_number_a_reason(span: MakeSpan) -> None:
    documents: dict[str, object] = {}
    for n in (2, 3):
        documents[f"retrieval.documents.{n}.document.content"] = [TEA, INK][n - 2]
    spans = (
        span(1, "CHAIN", {"input.value": "Why?", "output.value": "Tea [1]."}),
        span(2, "RETRIEVER", documents, parent=1, start=1, end=2),
    )
    run = read(Trace("0" * 31 + "1", spans))
    assert run.state is RunState.PASSAGES_TRUNCATED
    assert run.passages_lost == 2
    assert "documents_lost:2" in run.reasons
