"""A run: one question answered once, as it was recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import cast

from citespan.evaluators.errors import InputError
from citespan.tracer.citations import Citation
from citespan.tracer.passages import Passage
from citespan.tracer.text import clean_text

__all__ = ["Run", "RunOrigin", "RunState"]


class RunState(StrEnum):
    """Why a run is not judged as usual; a state is never a score of 0."""

    NOT_RAG = "not_rag"
    """The trace holds no retrieval and no passages."""

    NO_ANSWER_RECORDED = "no_answer_recorded"
    """No answer, or an empty one."""

    CONTENT_HIDDEN = "content_hidden"
    """The answer or every passage was masked before it was recorded."""

    PASSAGES_WITHOUT_TEXT = "passages_without_text"
    """Passages are known by id, but no text was recorded."""

    INCOMPLETE = "incomplete"
    """Spans are missing, and without them no answer can be found."""

    AMBIGUOUS_RUN = "ambiguous_run"
    """Several equally good answers or passage sets."""

    PASSAGES_TRUNCATED = "passages_truncated"
    """Some passages were lost; the run is judged, citations to the lost ones make their claim unjudged."""

    @property
    def stops_judging(self) -> bool:
        """Whether a run in this state gets no claims and measures over nothing."""
        return self is not RunState.PASSAGES_TRUNCATED


@dataclass(frozen=True, slots=True)
class RunOrigin:
    """Where a run was read from in a trace store; verdicts are written back there."""

    trace_id: str
    """32 lower-case hex digits."""

    root_span_id: str
    """The trace's root span: 16 lower-case hex digits."""

    answer_span_id: str
    """The span whose output is the answer; claim spans become its children."""

    answer_end_ns: int
    """End of the answer's span, Unix nanoseconds: the root's end for a run that fills its trace."""

    answer_start_ns: int = 0
    """Start of the answer's span, Unix nanoseconds; 0 if unknown."""

    is_parent_missing: bool = False
    """Whether `root_span_id` is only the topmost span present (`parent_not_in_phoenix`)."""

    session_id: str | None = None
    """`session.id` of the trace, if any."""

    passage_span_ids: Mapping[str, str] = field(default_factory=dict[str, str])
    """By passage id, the span that holds its text, where that is known."""


@dataclass(frozen=True, slots=True)
class Run:
    """One question answered once."""

    id: str
    """Identifier of the run: given, or `<trace id>:<answer span id>`."""

    question: str | None
    """The question as asked; `None` if not recorded."""

    answer: str | None
    """The answer as recorded, NUL and lone surrogates replaced; `None` if not recorded."""

    passages: tuple[Passage, ...]
    """The passages shown to the model, in the order shown."""

    citations: tuple[Citation, ...] = ()
    """Citations recorded beside the answer; markers in its text are found later."""

    state: RunState | None = None
    """Why the run is not judged as usual, or `None`."""

    reasons: tuple[str, ...] = ()
    """Machine-readable reasons: for the state, and for how the run was read."""

    resolution: str = "explicit"
    """`explicit` if the app said what is what, `inferred` if it was read from foreign spans."""

    passages_lost: int = 0
    """How many passages the run had that were not recorded; 0 if none are known to be lost."""

    origin: RunOrigin | None = None
    """Where it was read from; `None` for a run from a file of runs."""

    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    """Recorded metadata, for grouping in reports."""

    @classmethod
    def from_dict(cls, data: Mapping[str, object], *, default_id: str = "run-1") -> Run:
        """Read one run from the JSON object that `citespan score` takes.

        Args:
            data: `{"id"?, "question"?, "answer", "passages": [{"id", "text", "label"?, "title"?, "url"?,
                "metadata"?}], "citations"?: [{"passage_id", "start", "end"}]}`.
            default_id: The run's id where `data` gives none.

        Raises:
            InputError: A field is missing or has the wrong type; the message names it.
        """
        run_id = _text(data, "id", where="the run", default=default_id)
        where = f"run {run_id!r}"
        if "answer" not in data:
            raise InputError(f'{where} has no "answer": expected a string, or null if none was recorded')
        if "passages" not in data:
            raise InputError(f'{where} has no "passages": expected a list (empty if nothing was retrieved)')
        answer = _optional_text(data, "answer", where=where)
        passages = tuple(
            _passage(item, where=f"{where}, passage {n}")
            for n, item in enumerate(_objects(data["passages"], f'{where}: "passages"'), start=1)
        )
        _check_unique(passages, where)
        length = len(answer or "")
        citations = tuple(
            _citation(item, length=length, where=f"{where}, citation {n}")
            for n, item in enumerate(_objects(data.get("citations") or [], f'{where}: "citations"'), start=1)
        )
        state, reasons = _state_of(answer, passages)
        return cls(
            id=run_id,
            question=_optional_text(data, "question", where=where),
            answer=answer,
            passages=passages,
            citations=citations,
            state=state,
            reasons=reasons,
        )


def _state_of(answer: str | None, passages: tuple[Passage, ...]) -> tuple[RunState | None, tuple[str, ...]]:
    if answer is None:
        return RunState.NO_ANSWER_RECORDED, ("answer_null",)
    if not answer.strip():
        return RunState.NO_ANSWER_RECORDED, ("answer_empty",)
    if passages and all(not (passage.text or "").strip() for passage in passages):
        return RunState.PASSAGES_WITHOUT_TEXT, ("every_passage_empty",)
    return None, ()


def _objects(value: object, where: str) -> list[Mapping[str, object]]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise InputError(f"{where} is {type(value).__name__}: expected a list of objects")
    items = cast("Sequence[object]", value)
    for item in items:
        if not isinstance(item, Mapping):
            raise InputError(f"{where} holds {type(item).__name__}: expected objects")
    return [cast("Mapping[str, object]", item) for item in items]


def _text(data: Mapping[str, object], key: str, *, where: str, default: str | None = None) -> str:
    value = data.get(key, default)
    if isinstance(value, int) and not isinstance(value, bool) and key in ("id", "passage_id", "label"):
        value = str(value)
    if not isinstance(value, str):
        found = "missing" if value is None else type(value).__name__
        raise InputError(f'{where}: "{key}" is {found}: expected a string')
    return clean_text(value)


def _optional_text(data: Mapping[str, object], key: str, *, where: str) -> str | None:
    return None if data.get(key) is None else _text(data, key, where=where)


def _passage(data: Mapping[str, object], *, where: str) -> Passage:
    metadata: object = data.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise InputError(f'{where}: "metadata" is {type(metadata).__name__}: expected an object')
    score = data.get("score")
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
        raise InputError(f'{where}: "score" is {type(score).__name__}: expected a number')
    if "text" not in data:
        raise InputError(f'{where} has no "text": expected a string, or null if it was not recorded')
    return Passage(
        id=_text(data, "id", where=where),
        text=_optional_text(data, "text", where=where),
        label=_optional_text(data, "label", where=where),
        title=_optional_text(data, "title", where=where),
        url=_optional_text(data, "url", where=where),
        score=None if score is None or not math.isfinite(score) else float(score),
        metadata=cast("Mapping[str, object]", metadata),
    )


def _check_unique(passages: tuple[Passage, ...], where: str) -> None:
    seen: set[str] = set()
    for passage in passages:
        if passage.id in seen:
            raise InputError(f"{where}: two passages have the id {passage.id!r}: ids are unique within a run")
        seen.add(passage.id)


def _citation(data: Mapping[str, object], *, length: int, where: str) -> Citation:
    start, end = data.get("start"), data.get("end")
    if (start is None) != (end is None):
        raise InputError(f'{where}: give both "start" and "end", or neither')
    if start is not None:
        is_range = isinstance(start, int) and isinstance(end, int) and not isinstance(start, bool)
        if not is_range or not 0 <= cast("int", start) < cast("int", end) <= length:
            raise InputError(
                f"{where}: start {start!r}, end {end!r} is no range of the answer's {length} code points"
            )
    return Citation(
        passage_id=_text(data, "passage_id", where=where),
        start=cast("int | None", start),
        end=cast("int | None", end),
        quote=_optional_text(data, "quote", where=where),
    )
