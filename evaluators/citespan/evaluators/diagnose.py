"""Say where each claim failed and what would mend it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from citespan.evaluators.findings import Failure, JudgedClaim
from citespan.evaluators.judge_claims import ask, request_for
from citespan.evaluators.judges.judge import Judge
from citespan.evaluators.runs import Run
from citespan.evaluators.shortlist import shortlist
from citespan.evaluators.verdicts import Label, Verdict
from citespan.tracer.passages import Passage

__all__ = ["diagnose"]

_FAILED = (Label.UNSUPPORTED, Label.CONTRADICTED, Label.PARTLY_SUPPORTED)

_ADVICE = {
    Failure.MISSING_CITATION: "Add a citation, or remove the claim.",
    Failure.BROKEN_CITATION: "Cite a passage of this run.",
    Failure.CONTRADICTED: "Correct the claim to what the cited passage says.",
    Failure.OVERSTATED: "Tighten the wording to what the cited passage says.",
    Failure.NOT_IN_PASSAGES: "Remove the claim or retrieve a source for it.",
}
"""What to do about each failure when no passage of the run would do."""


@dataclass(frozen=True, slots=True)
class _Search:
    """The look at the passages that a claim does not cite."""

    others: int
    """How many there are."""

    tried: tuple[tuple[Passage, Verdict], ...] = ()
    """Those that were judged, with their verdicts; none if other passages are not tried."""

    @property
    def better(self) -> Passage | None:
        """The passage that entails the claim: the highest score, then the first."""
        entailing = [pair for pair in self.tried if pair[1].label is Label.SUPPORTED]
        return max(entailing, key=lambda pair: pair[1].score or 0.0)[0] if entailing else None

    def __str__(self) -> str:
        """Return what was tried and found, one sentence; empty if there was nothing to try."""
        if not self.others:
            return ""
        if not self.tried:
            return "Other passages of the run were not tried."
        gaps: list[str] = []
        if len(self.tried) < self.others:
            gaps.append(
                f"only the {len(self.tried)} of {self.others} that share most words with it were tried"
            )
        failed = Counter(verdict.rule for _, verdict in self.tried if verdict.label is Label.UNJUDGED)
        gaps.extend(f"{count} could not be judged ({rule})" for rule, count in failed.items())
        if gaps:
            return f"No other passage is known to support it: {'; '.join(gaps)}."
        return "No other passage of the run supports it."


def diagnose(run: Run, judged: Sequence[JudgedClaim], judge: Judge, *, try_others: bool) -> list[JudgedClaim]:
    """Return the claims with `failure` and `fix`; the run's other passages are tried on what is not supported.

    At most `judge.card.others_tried` of them are, chosen by shared words; the fix says so where that left some out.

    Args:
        run: The run.
        judged: Its claims with labels.
        judge: The judge that tries the other passages.
        try_others: Whether to try them; without it no passage is named.
    """
    searches = _search(run, [item for item in judged if _is_failed(item)], judge, try_others=try_others)
    return [
        _diagnose_one(item, searches[item.claim.index]) if item.claim.index in searches else item
        for item in judged
    ]


def _is_failed(item: JudgedClaim) -> bool:
    return item.label in _FAILED or (item.label is Label.UNCITED and item.claim.material)


def _search(run: Run, failed: Sequence[JudgedClaim], judge: Judge, *, try_others: bool) -> dict[int, _Search]:
    """Return, by claim index, the other passages tried and their verdicts; all are asked in one batch."""
    others: dict[int, list[Passage]] = {}
    for item in failed:
        cited = {attachment.citation.passage_id for attachment in item.attachments}
        others[item.claim.index] = [passage for passage in run.passages if passage.id not in cited]
    pairs = [
        (item, passage)
        for item in failed
        if try_others
        for passage in shortlist(item.claim.text, others[item.claim.index], judge.card.others_tried)
    ]
    verdicts = ask(judge, [request_for(run, item.claim, (passage,)) for item, passage in pairs])
    tried: dict[int, list[tuple[Passage, Verdict]]] = {index: [] for index in others}
    for (item, passage), verdict in zip(pairs, verdicts, strict=True):
        tried[item.claim.index].append((passage, verdict))
    return {index: _Search(len(others[index]), tuple(tried[index])) for index in others}


def _diagnose_one(item: JudgedClaim, search: _Search) -> JudgedClaim:
    failure, better = _failure(item, search.better), search.better
    if better is not None:
        instead = " instead" if failure is Failure.WRONG_PASSAGE else ""
        fix = f"Cite {_name(better)}{instead}: it supports the claim."
        return replace(item, failure=failure, fix=fix, fix_passage_id=better.id)
    advice = _ADVICE[failure]
    if failure is Failure.MISSING_CITATION and item.covered_by_paragraph:
        advice = "Repeat the paragraph's marker on this sentence if it is meant to cover it."
    return replace(item, failure=failure, fix=f"{advice} {search}".rstrip())


def _failure(item: JudgedClaim, better: Passage | None) -> Failure:
    if item.label is Label.UNCITED:
        return Failure.MISSING_CITATION
    if not item.has_resolved_citation:
        return Failure.BROKEN_CITATION
    if better is not None:
        return Failure.WRONG_PASSAGE
    if item.label is Label.CONTRADICTED:
        return Failure.CONTRADICTED
    return Failure.OVERSTATED if item.label is Label.PARTLY_SUPPORTED else Failure.NOT_IN_PASSAGES


def _name(passage: Passage) -> str:
    shown = f"[{passage.label}]" if passage.label else passage.id
    return f"{shown} ({passage.title})" if passage.title else shown
