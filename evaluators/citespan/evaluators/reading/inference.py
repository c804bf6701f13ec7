"""One run out of a trace that some other instrumentor wrote, in the order of evidence that TRACES tells.

::

    spans -> root -> answer -> model call -> retrievals -> prompt -> passages under the labels shown -> state
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from citespan.evaluators.reading.answer import Answer, choose_root, find_answer
from citespan.evaluators.reading.documents import Document
from citespan.evaluators.reading.generation import (
    Prompt,
    contributing_calls,
    find_generation,
    model_calls,
    prompt_before,
    read_prompt,
)
from citespan.evaluators.reading.label_forms import cited_names
from citespan.evaluators.reading.markers_rewritten import relabel
from citespan.evaluators.reading.normalise import SpanView
from citespan.evaluators.reading.passage_set import Evidence, PassageSet, make_passages
from citespan.evaluators.reading.passages import (
    Retrieval,
    find_retrievals,
    given_documents,
    ids_by_text,
    union_documents,
)
from citespan.evaluators.reading.provider_citations import provider_citations
from citespan.evaluators.reading.provider_request import read_request
from citespan.evaluators.reading.question import Question, find_question
from citespan.evaluators.reading.rules import ReadingRules
from citespan.evaluators.reading.states import state_of
from citespan.evaluators.reading.structured_citations import structured_citations
from citespan.evaluators.reading.tree import SpanTree
from citespan.evaluators.runs import Run, RunOrigin, RunState
from citespan.evaluators.sources.source import Trace
from citespan.tracer.text import clean_text

__all__ = ["infer_run"]

_MODEL_KINDS = frozenset(["LLM", "AGENT", "RETRIEVER", "RERANKER", "TOOL"])


def infer_run(trace: Trace, rules: ReadingRules | None = None) -> Run:
    """Return the one run of a trace of foreign make, or the state that says why it cannot be known.

    Args:
        trace: The trace.
        rules: Where the app keeps things, if a settings file says so; what it does not name is inferred.
    """
    rules = rules or ReadingRules()
    tree = SpanTree.of(trace)
    if not tree.views:
        return _evaluators_only(trace)
    root = choose_root(tree)
    ids = ids_by_text(tree)
    retrievals = find_retrievals(tree, ids)
    answer = _answer(tree, root, retrievals, rules)
    if answer.text is not None and root.span.parent_id is not None:
        root = tree.top_of(answer.view)
    named = rules.find_passages(tree)
    before = _before(answer, retrievals)
    found = _passages(tree, answer, named or union_documents(before), before, ids)
    if rules.passages:
        note = "passages_from_rules" if named else "passages_rule_found_nothing"
        found = replace(found, reasons=(note, *found.reasons))
    question = _question(tree, root, answer, retrievals, found, rules)
    judged = state_of(
        answer,
        found.passages,
        retrievals,
        restored=found.restored,
        cut_off=found.cut_off,
        is_incomplete=any(view.span.parent_id is not None for view in tree.roots),
        has_model=any(view.kind in _MODEL_KINDS for view in tree.views),
    )
    origin = _origin(trace, tree, root, answer.view)
    notes = [question.reason] if question.reason is not None else []
    notes += ["citations_not_kept_by_instrumentor"] if _drops_citations(answer, found) else []
    reasons = (*judged.reasons, *answer.reasons, *found.reasons, *notes)
    return Run(
        id=f"{trace.trace_id}:{answer.view.id}",
        question=None if question.text is None else clean_text(question.text),
        answer=None if answer.text is None else clean_text(answer.text),
        passages=found.passages,
        citations=found.citations,
        state=judged.state,
        reasons=tuple(dict.fromkeys((*_origin_reasons(tree, origin), *reasons))),
        resolution="inferred",
        passages_lost=judged.passages_lost,
        origin=replace(origin, passage_span_ids=found.span_ids),
    )


def _before(answer: Answer, retrievals: list[Retrieval]) -> list[Retrieval]:
    """Return the retrievals that ended before the answer was begun; all if the clock says none did."""
    if answer.generation is None:
        return retrievals
    begun = answer.generation.view.span.start_ns
    return [r for r in retrievals if r.view.span.end_ns <= begun] or retrievals


def _answer(tree: SpanTree, root: SpanView, retrievals: list[Retrieval], rules: ReadingRules) -> Answer:
    named = rules.find_answer(tree)
    if named is None:
        answer = find_answer(tree, root, retrievals)
        missed = ("answer_rule_found_nothing",) if rules.answer is not None else ()
        return replace(answer, reasons=(*answer.reasons, *missed))
    generation = find_generation(tree, model_calls(tree), named.text)
    return Answer(named.text, named.view, generation, ("answer_from_rules",))


def _question(
    tree: SpanTree,
    root: SpanView,
    answer: Answer,
    retrievals: list[Retrieval],
    found: PassageSet,
    rules: ReadingRules,
) -> Question:
    named = rules.find_question(tree)
    if named is not None:
        return Question(named.text, "question_from_rules")
    texts = [passage.text or "" for passage in found.passages]
    return find_question(tree, root, answer.generation, [retrieval.view for retrieval in retrievals], texts)


def _passages(
    tree: SpanTree,
    answer: Answer,
    documents: Sequence[Document],
    retrievals: list[Retrieval],
    ids: Mapping[str, str | None],
) -> PassageSet:
    generation = answer.generation
    wrote = answer.view if generation is None else generation.view
    prompts = _prompts(tree, answer, retrievals)
    provider = provider_citations(wrote)
    given = given_documents(tree, wrote) if not documents and provider is None else ()
    evidence = Evidence(documents or given, prompts, provider, ids, are_retrieved=bool(documents))
    found = make_passages(evidence, answer.text or "")
    if answer.text is None:
        return found
    if generation is not None:
        passages, reason = relabel(found.passages, generation.text, answer.text)
        found = replace(found, passages=passages, reasons=(*found.reasons, *((reason,) if reason else ())))
    structured = structured_citations([wrote, answer.view], answer.text, found.passages)
    return replace(
        found,
        citations=(*found.citations, *structured.citations),
        reasons=(*found.reasons, *structured.reasons),
    )


def _prompts(tree: SpanTree, answer: Answer, retrievals: Sequence[Retrieval]) -> list[Prompt]:
    generation = answer.generation
    if generation is None:
        return [] if answer.text is None else [prompt_before(tree, answer.view.span.end_ns)]
    since = min((retrieval.view.span.start_ns for retrieval in retrievals), default=0)
    calls = contributing_calls(tree, model_calls(tree), generation, answer.text or "", since)
    return [read_prompt(tree, call) for call in calls]


_DROPPING_SCOPES = (
    "openinference.instrumentation.litellm",
    "opentelemetry.instrumentation.genai.",
    "opentelemetry.instrumentation.openai",
)
"""Instrumentors that keep a provider's text and drop its citations."""


def _drops_citations(answer: Answer, found: PassageSet) -> bool:
    """Return whether an answer may look uncited only because its citations were not recorded."""
    if answer.text is None or found.citations or cited_names(answer.text):
        return False
    wrote = answer.view if answer.generation is None else answer.generation.view
    if isinstance(wrote.output, str) and read_request(wrote).passages:
        return True
    return wrote.kind == "RETRIEVER" or (wrote.span.scope or "").startswith(_DROPPING_SCOPES)


def _origin(trace: Trace, tree: SpanTree, root: SpanView, answer_view: SpanView) -> RunOrigin:
    session_id = next(
        (s for view in (root, answer_view) if isinstance(s := view.at("session.id"), str)), None
    )
    return RunOrigin(
        trace_id=trace.trace_id,
        root_span_id=root.id,
        answer_span_id=answer_view.id,
        answer_start_ns=answer_view.span.start_ns,
        answer_end_ns=answer_view.span.end_ns,
        is_parent_missing=root.span.parent_id is not None,
        session_id=session_id,
    )


def _origin_reasons(tree: SpanTree, origin: RunOrigin) -> list[str]:
    reasons = ["parent_not_in_phoenix"] if origin.is_parent_missing else []
    return reasons + ([f"several_roots:{len(tree.roots)}"] if len(tree.roots) > 1 else [])


def _evaluators_only(trace: Trace) -> Run:
    root = trace.spans[0]
    return Run(
        id=f"{trace.trace_id}:{root.span_id}",
        question=None,
        answer=None,
        passages=(),
        state=RunState.NOT_RAG,
        reasons=("evaluator_spans_only",),
        resolution="inferred",
        origin=RunOrigin(
            trace_id=trace.trace_id,
            root_span_id=root.span_id,
            answer_span_id=root.span_id,
            answer_start_ns=root.start_ns,
            answer_end_ns=root.end_ns,
            is_parent_missing=root.parent_id is not None,
        ),
    )
