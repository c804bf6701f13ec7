"""Claim spans: one EVALUATOR span per claim, where a reviewer sees the claim beside each passage it cites.

A claim span is written once and never changes, so it holds nothing a judge says: its `verdict` annotation does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from citespan.evaluators.annotate.passage_windows import window
from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.findings import Attachment, JudgedClaim
from citespan.evaluators.fingerprints import claim_span_id, generation
from citespan.evaluators.runs import Run, RunOrigin
from citespan.evaluators.sources.phoenix import CLAIM
from citespan.tracer.passages import Passage
from citespan.tracer.text import clean_text

__all__ = ["ClaimSpan", "claim_spans"]

SCHEMA = 1
"""Version of the mark on claim spans."""

_MOST_TEXT = 1_000_000
"""Characters of passages on one claim span; what is beyond is named with a note instead of shown."""

_MICROSECOND_NS = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ClaimSpan:
    """One claim span to write."""

    span_id: str
    """Its id, the same each time the same claim of the same generation is written."""

    data: Mapping[str, object]
    """The span as Phoenix's REST API takes it."""


def claim_spans(evaluation: Evaluation) -> list[ClaimSpan]:
    """Return the claim spans of an evaluation whose run was read from a trace.

    Raises:
        ValueError: The run has no origin, so there is no trace to write to.
    """
    run = evaluation.run
    if run.origin is None:
        raise ValueError(f"run {run.id!r} was read from no trace: it has no place for claim spans")
    made = generation(run, evaluation.options)
    count = len(evaluation.claims)
    return [_claim_span(run, run.origin, judged, made, count) for judged in evaluation.claims]


def _claim_span(run: Run, origin: RunOrigin, judged: JudgedClaim, made: str, count: int) -> ClaimSpan:
    index = judged.claim.index
    span_id = claim_span_id(origin.trace_id, origin.answer_span_id, made, index)
    moment = _time(origin, index, count)
    mark = {"schema": SCHEMA, "index": index, "generation": made, "answer_span_id": origin.answer_span_id}
    return ClaimSpan(
        span_id,
        {
            "name": f"claim {index + 1}",
            "context": {"trace_id": origin.trace_id, "span_id": span_id},
            "parent_id": origin.answer_span_id,
            "span_kind": "EVALUATOR",
            "start_time": moment,
            "end_time": moment,
            "status_code": "OK",
            "attributes": {
                "input.value": clean_text(claim_text(run, judged)),
                "input.mime_type": "text/plain",
                CLAIM: json.dumps(mark, separators=(",", ":")),
            },
        },
    )


def _time(origin: RunOrigin, index: int, count: int) -> str:
    """Return the moment a claim span is pinned to: a microsecond apart, just before the answer's end, never before its start."""
    moment_ns = origin.answer_end_ns - (count - index) * _MICROSECOND_NS
    moment_ns = max(moment_ns, min(origin.answer_start_ns, origin.answer_end_ns))
    return (_EPOCH + timedelta(microseconds=moment_ns // _MICROSECOND_NS)).isoformat()


def claim_text(run: Run, judged: JudgedClaim) -> str:
    """Return what a reviewer reads: the claim, then each cited passage under its label, title and URL."""
    claim = judged.claim
    blocks = [f"CLAIM\n{claim.text}"]
    if " ".join(claim.sentence.split()) != " ".join(claim.text.split()):
        blocks.append(f"FROM THE SENTENCE\n{claim.sentence}")
    if not judged.attachments:
        blocks.append("CITES NOTHING")
    passages = {passage.id: passage for passage in run.passages}
    shown: set[str] = set()
    room = _MOST_TEXT
    for attachment in judged.attachments:
        passage = passages.get(attachment.citation.passage_id or "")
        if passage is None:
            blocks.append(f"CITES {attachment.citation.marker}\nThis names no passage of the run.")
        elif passage.id not in shown:
            shown.add(passage.id)
            text = _passage_text(run, passage, attachment, room)
            room -= len(text)
            blocks.append(f"{_heading(passage, attachment)}\n{text}")
    return "\n\n".join(blocks)


def _heading(passage: Passage, attachment: Attachment) -> str:
    """Return `CITES [2] kb-7 · Title · https://...`; the id only where the marker does not show it."""
    marker = attachment.citation.marker
    name = marker if passage.id in marker else f"{marker} {passage.id}"
    return "CITES " + " · ".join(filter(None, (name, passage.title, passage.url)))


def _passage_text(run: Run, passage: Passage, attachment: Attachment, room: int) -> str:
    if passage.text is None:
        return "[the text of this passage was not recorded]"
    span_id = None if run.origin is None else run.origin.passage_span_ids.get(passage.id)
    evidence = None if attachment.verdict is None else attachment.verdict.evidence
    text = window(passage, evidence, span_id=span_id)
    if len(text) > room:
        where = f"span {span_id}" if span_id else "the trace"
        return f"[… {len(passage.text):,} characters left out: the passages before it fill this span; {where} has it]"
    return f"{text}\n[only a part of this passage was recorded]" if passage.is_cut else text
