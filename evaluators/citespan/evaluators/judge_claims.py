"""Judge every claim against the passages it cites, and make its label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from citespan.evaluators.claims import Claim, ResolvedCitation
from citespan.evaluators.findings import Attachment, JudgedClaim, combine
from citespan.evaluators.judges.judge import Judge, JudgeRequest
from citespan.evaluators.options import LabelPolicy
from citespan.evaluators.runs import Run
from citespan.evaluators.verdicts import Label, Verdict
from citespan.tracer.passages import Passage

__all__ = ["ask", "judge_claims", "request_for", "union_passages"]


def judge_claims(
    run: Run,
    claims: Sequence[Claim],
    citations: Sequence[ResolvedCitation],
    judge: Judge,
    *,
    policy: LabelPolicy,
) -> list[JudgedClaim]:
    """Return every claim with its label; each cited passage is read on its own, in one batch."""
    passages = {passage.id: passage for passage in run.passages}
    attached = {
        claim.index: [citation for citation in citations if claim.index in citation.claims]
        for claim in claims
    }
    pairs = {
        (claim.index, citation.passage_id): passages[citation.passage_id]
        for claim in claims
        for citation in attached[claim.index]
        if citation.passage_id is not None
    }
    requests = [request_for(run, claims[index], (passage,)) for (index, _), passage in pairs.items()]
    verdicts = dict(zip(pairs, ask(judge, requests), strict=True))
    judged = [
        _label(
            claim,
            tuple(
                Attachment(citation, verdicts.get((claim.index, citation.passage_id or "")))
                for citation in attached[claim.index]
            ),
        )
        for claim in claims
    ]
    covered = {index for citation in citations for index in citation.paragraph_claims}
    judged = [
        replace(item, covered_by_paragraph=not item.is_cited and item.claim.index in covered)
        for item in judged
    ]
    return judged if policy is LabelPolicy.ANY else _by_union(run, judged, judge)


def union_passages(run: Run, judged: JudgedClaim) -> tuple[Passage, ...]:
    """Return the distinct passages that the claim cites, in citation order."""
    by_id = {passage.id: passage for passage in run.passages}
    cited = dict.fromkeys(attachment.citation.passage_id for attachment in judged.attachments)
    return tuple(by_id[passage_id] for passage_id in cited if passage_id is not None)


def _by_union(run: Run, judged: Sequence[JudgedClaim], judge: Judge) -> list[JudgedClaim]:
    """Return the claims relabelled by their cited passages joined; one passage is its own union."""
    unions = {item.claim.index: union_passages(run, item) for item in judged}
    wanted = [item for item in judged if len(unions[item.claim.index]) > 1]
    requests = [request_for(run, item.claim, unions[item.claim.index]) for item in wanted]
    verdicts = {item.claim.index: verdict for item, verdict in zip(wanted, ask(judge, requests), strict=True)}
    return [
        item if item.claim.index not in verdicts else _relabelled(item, verdicts[item.claim.index])
        for item in judged
    ]


def _relabelled(item: JudgedClaim, verdict: Verdict) -> JudgedClaim:
    """Return the claim with its union's label; a lost passage leaves anything but support open."""
    if _lost_citation(item.attachments) is not None and verdict.label is not Label.SUPPORTED:
        return replace(item, union=verdict)
    return replace(
        item,
        label=verdict.label,
        score=verdict.score,
        reason=verdict.reason,
        deciding=verdict,
        deciding_passage_id=verdict.evidence_passage_id,
        union=verdict,
        conflict=verdict.label is Label.SUPPORTED
        and any(a.verdict is not None and a.verdict.label is Label.CONTRADICTED for a in item.attachments),
    )


def request_for(run: Run, claim: Claim, passages: tuple[Passage, ...]) -> JudgeRequest:
    """Return the request to judge `claim` by `passages`, with the run's context."""
    return JudgeRequest(
        claim=claim.text, passages=passages, sentence=claim.sentence, question=run.question, run_id=run.id
    )


def ask(judge: Judge, requests: Sequence[JudgeRequest]) -> list[Verdict]:
    """Return the judge's verdicts; a passage without recorded text is `unjudged` and never sent.

    Raises:
        RuntimeError: The judge broke its contract and returned another number of verdicts.
    """
    sendable = [
        n
        for n, request in enumerate(requests)
        if all((passage.text or "").strip() for passage in request.passages)
    ]
    answers = judge.judge([requests[n] for n in sendable]) if sendable else []
    if len(answers) != len(sendable):
        raise RuntimeError(
            f"judge {judge.card.name!r} returned {len(answers)} verdicts for {len(sendable)} requests: "
            "a judge returns one per request, in order"
        )
    missing = Verdict.unjudged(
        "passage_text_not_recorded", "the trace holds the cited passage without its text"
    )
    verdicts = [missing] * len(requests)
    for n, verdict in zip(sendable, answers, strict=True):
        verdicts[n] = _unless_cut(verdict, requests[n])
    return verdicts


def _unless_cut(verdict: Verdict, request: JudgeRequest) -> Verdict:
    """Return the verdict, unless it faults a passage of which only a part was recorded."""
    if verdict.label is Label.SUPPORTED or not any(passage.is_cut for passage in request.passages):
        return verdict
    return Verdict.unjudged(
        "passage_cut", "only a part of the passage was recorded, and that part does not support it"
    )


def _lost_citation(attachments: tuple[Attachment, ...]) -> ResolvedCitation | None:
    """Return the first citation of a passage that the run had and the trace lost."""
    return next((a.citation for a in attachments if a.citation.reason == "passage_lost"), None)


def _label(claim: Claim, attachments: tuple[Attachment, ...]) -> JudgedClaim:
    if not attachments:
        return JudgedClaim(claim, Label.UNCITED, None, "No citation is attached to this claim.", attachments)
    lost = _lost_citation(attachments)
    judged = [attachment for attachment in attachments if attachment.verdict is not None]
    verdicts = [attachment.verdict for attachment in judged if attachment.verdict is not None]
    if lost is not None and not any(verdict.label is Label.SUPPORTED for verdict in verdicts):
        reason = (
            f"passage_lost: {lost.marker} names a passage that the trace lost, so support cannot be ruled out"
        )
        return JudgedClaim(claim, Label.UNJUDGED, None, reason, attachments)
    if not verdicts:
        markers = ", ".join(dict.fromkeys(attachment.citation.marker for attachment in attachments))
        reason = f"{markers} names no passage of this run."
        return JudgedClaim(claim, Label.UNSUPPORTED, None, reason, attachments)
    chosen = combine(verdicts)
    verdict = verdicts[chosen]
    return JudgedClaim(
        claim,
        verdict.label,
        verdict.score,
        verdict.reason,
        attachments,
        deciding=verdict,
        deciding_passage_id=judged[chosen].citation.passage_id,
        conflict=verdict.label is Label.SUPPORTED
        and any(other.label is Label.CONTRADICTED for other in verdicts),
    )
