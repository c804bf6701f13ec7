"""Say where each claim failed and what would mend it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from citespan.evaluators.findings import Failure, JudgedClaim
from citespan.evaluators.judge_claims import ask, request_for
from citespan.evaluators.judges.judge import Judge
from citespan.evaluators.runs import Run
from citespan.evaluators.verdicts import Label
from citespan.tracer.passages import Passage

__all__ = ["diagnose"]

_FAILED = (Label.UNSUPPORTED, Label.CONTRADICTED, Label.PARTLY_SUPPORTED)


def diagnose(run: Run, judged: Sequence[JudgedClaim], judge: Judge, *, try_others: bool) -> list[JudgedClaim]:
    """Return the claims with `failure` and `fix`; the run's other passages are tried on what is not supported.

    Args:
        run: The run.
        judged: Its claims with labels.
        judge: The judge that tries the other passages.
        try_others: Whether to try them; without it no passage is named.
    """
    better = _better_passages(run, judged, judge) if try_others else {}
    return [_diagnose_one(item, better.get(item.claim.index), tried=try_others) for item in judged]


def _better_passages(run: Run, judged: Sequence[JudgedClaim], judge: Judge) -> dict[int, Passage]:
    """Return, by claim index, the passage of the run that entails the claim though the claim does not cite it."""
    pairs = [
        (item, passage)
        for item in judged
        if item.label in _FAILED or (item.label is Label.UNCITED and item.claim.material)
        for passage in run.passages
        if passage.text and passage.id not in {a.citation.passage_id for a in item.attachments}
    ]
    verdicts = ask(judge, [request_for(run, item.claim, (passage,)) for item, passage in pairs])
    best: dict[int, tuple[float, Passage]] = {}
    for (item, passage), verdict in zip(pairs, verdicts, strict=True):
        score = verdict.score or 0.0
        if verdict.label is Label.SUPPORTED and score > best.get(item.claim.index, (-1.0, passage))[0]:
            best[item.claim.index] = (score, passage)
    return {index: passage for index, (_, passage) in best.items()}


def _diagnose_one(item: JudgedClaim, better: Passage | None, *, tried: bool) -> JudgedClaim:
    if item.label is Label.UNCITED and item.claim.material:
        return _with(item, Failure.MISSING_CITATION, _missing_fix(item, better, tried=tried), better)
    if item.label not in _FAILED:
        return item
    if not item.has_resolved_citation:
        fix = "Cite a passage of this run" + (f": {_name(better)} supports the claim." if better else ".")
        return _with(item, Failure.BROKEN_CITATION, fix, better)
    if better is not None:
        return _with(
            item, Failure.WRONG_PASSAGE, f"Cite {_name(better)} instead: it supports the claim.", better
        )
    if item.label is Label.CONTRADICTED:
        return _with(item, Failure.CONTRADICTED, "Correct the claim to what the cited passage says.", None)
    if item.label is Label.PARTLY_SUPPORTED:
        return _with(item, Failure.OVERSTATED, "Tighten the wording to what the cited passage says.", None)
    looked = "nothing retrieved supports it" if tried else "the cited passage does not support it"
    return _with(
        item, Failure.NOT_IN_PASSAGES, f"Remove the claim or retrieve a source for it: {looked}.", None
    )


def _missing_fix(item: JudgedClaim, better: Passage | None, *, tried: bool) -> str:
    if better is not None:
        return f"Cite {_name(better)}: it supports the claim."
    if item.covered_by_paragraph:
        return "Repeat the paragraph's marker on this sentence if it is meant to cover it."
    return "Add a citation, or remove the claim" + (": no passage of the run supports it." if tried else ".")


def _name(passage: Passage | None) -> str:
    if passage is None:
        return ""
    shown = f"[{passage.label}]" if passage.label else passage.id
    return f"{shown} ({passage.title})" if passage.title else shown


def _with(item: JudgedClaim, failure: Failure, fix: str, better: Passage | None) -> JudgedClaim:
    return replace(item, failure=failure, fix=fix, fix_passage_id=None if better is None else better.id)
