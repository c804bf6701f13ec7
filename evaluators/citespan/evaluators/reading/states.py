"""The state of an inferred run: why it is not judged as usual, and the reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from citespan.evaluators.reading.answer import Answer
from citespan.evaluators.reading.label_forms import cited_names
from citespan.evaluators.reading.passages import Retrieval
from citespan.evaluators.reading.values import is_hidden, is_object, items
from citespan.evaluators.runs import RunState
from citespan.tracer.passages import Passage

__all__ = ["StateOfRun", "state_of"]


@dataclass(frozen=True, slots=True)
class StateOfRun:
    """The state of a run and why."""

    state: RunState | None
    """The state; `None` if the run is judged as usual."""

    reasons: tuple[str, ...] = ()
    """Machine-readable reasons."""

    passages_lost: int = 0
    """How many passages are known to be lost."""


def state_of(
    answer: Answer,
    passages: Sequence[Passage],
    retrievals: Sequence[Retrieval],
    *,
    restored: int,
    cut_off: int,
    is_incomplete: bool,
    has_model: bool,
) -> StateOfRun:
    """Return the state of a run.

    Args:
        answer: What is known of the answer.
        passages: The passages found.
        retrievals: The retrievals of the trace.
        restored: How many passages that no retriever's span holds were found in the prompt.
        cut_off: How many passages came after the place where the recorded prompt breaks off.
        is_incomplete: Whether spans have parents that the trace does not have.
        has_model: Whether the trace holds a model call, an agent or a retrieval at all.
    """
    if answer.text is None:
        return _without_answer(answer, is_incomplete=is_incomplete, has_model=has_model)
    if not passages:
        return _without_passages(answer.text, retrievals)
    unread = [passage for passage in passages if not (passage.text or "").strip()]
    if len(unread) == len(passages):
        if _are_hidden(retrievals):
            return StateOfRun(RunState.CONTENT_HIDDEN, ("passages_hidden",))
        return StateOfRun(RunState.PASSAGES_WITHOUT_TEXT, ("no_passage_text_recorded",))
    return _truncation(retrievals, restored, cut_off)


def _without_answer(answer: Answer, *, is_incomplete: bool, has_model: bool) -> StateOfRun:
    if answer.is_hidden:
        return StateOfRun(RunState.CONTENT_HIDDEN, answer.reasons)
    if answer.is_ambiguous:
        return StateOfRun(RunState.AMBIGUOUS_RUN, answer.reasons)
    if is_incomplete:
        return StateOfRun(RunState.INCOMPLETE, ("parent_not_in_phoenix", *answer.reasons))
    if not has_model:
        return StateOfRun(RunState.NOT_RAG, ("no_retrieval_recorded", "no_model_call_recorded"))
    return StateOfRun(RunState.NO_ANSWER_RECORDED, answer.reasons)


def _without_passages(answer: str, retrievals: Sequence[Retrieval]) -> StateOfRun:
    if not retrievals:
        cites = ("answer_has_markers",) if cited_names(answer) else ()
        return StateOfRun(RunState.NOT_RAG, ("no_retrieval_recorded", *cites))
    if all(is_hidden(retrieval.view.output) for retrieval in retrievals):
        return StateOfRun(RunState.CONTENT_HIDDEN, ("passages_hidden",))
    if all(retrieval.view.output is None for retrieval in retrievals):
        return StateOfRun(RunState.PASSAGES_WITHOUT_TEXT, ("retrieval_output_not_recorded",))
    if not all(_is_nothing(retrieval.view.output) for retrieval in retrievals):
        return StateOfRun(RunState.PASSAGES_WITHOUT_TEXT, ("retrieval_output_not_readable",))
    return StateOfRun(None, ("retrieval_returned_nothing",))


def _is_nothing(output: object) -> bool:
    """Return whether a retrieval's output says that nothing was found: no text and no entry in any list."""
    if is_object(output):
        return all(_is_nothing(value) for value in output.values())
    if isinstance(output, str):
        return not output.strip()
    return not items(output)


def _are_hidden(retrievals: Sequence[Retrieval]) -> bool:
    return any(retrieval.hidden for retrieval in retrievals)


def _truncation(retrievals: Sequence[Retrieval], restored: int, cut_off: int) -> StateOfRun:
    lost = sum(retrieval.lost for retrieval in retrievals)
    if not lost and not cut_off:
        return StateOfRun(None)
    is_known = all(retrieval.is_count_known for retrieval in retrievals)
    reasons: list[str] = []
    if lost:
        reasons.append(f"documents_lost:{lost if is_known else 'unknown'}")
    if restored:
        reasons.append(f"passages_restored_from_prompt:{restored}")
    if cut_off:
        reasons.append(f"prompt_cut:{cut_off}")
    left = 0 if restored and not is_known else max(0, lost - restored)
    return StateOfRun(RunState.PASSAGES_TRUNCATED, tuple(reasons), left + cut_off)
