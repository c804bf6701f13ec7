"""Judge a claim's cited passages together, and each one's part in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from citespan.evaluators.findings import Attachment, JudgedClaim, Need
from citespan.evaluators.judge_claims import ask, request_for, union_passages
from citespan.evaluators.judges.judge import Judge
from citespan.evaluators.runs import Run
from citespan.evaluators.verdicts import Label, Verdict
from citespan.tracer.passages import Passage

__all__ = ["judge_sets"]


def judge_sets(run: Run, judged: Sequence[JudgedClaim], judge: Judge) -> list[JudgedClaim]:
    """Return the claims with the verdict on the union of their passages and each citation's need.

    A claim that cites one passage needs no further judging: its union is that passage.
    Leave-one-out sets are judged only where the union entails the claim (or one passage does alone) and a
    passage's need is still open.
    """
    unions = {item.claim.index: union_passages(run, item) for item in judged}
    wanted = [item for item in judged if len(unions[item.claim.index]) > 1 and item.union is None]
    requests = [request_for(run, item.claim, unions[item.claim.index]) for item in wanted]
    verdicts = {item.claim.index: verdict for item, verdict in zip(wanted, ask(judge, requests), strict=True)}
    with_union = [
        replace(item, union=_union_of(item, verdicts.get(item.claim.index), unions[item.claim.index]))
        for item in judged
    ]
    open_sets = [
        (item.claim.index, passage.id)
        for item in with_union
        if len(unions[item.claim.index]) > 1
        and item.union is not None
        and item.union.label is Label.SUPPORTED
        for passage in unions[item.claim.index]
    ]
    by_index = {item.claim.index: item for item in with_union}
    left_out = ask(
        judge,
        [
            request_for(
                run,
                by_index[index].claim,
                tuple(passage for passage in unions[index] if passage.id != passage_id),
            )
            for index, passage_id in open_sets
        ],
    )
    without = dict(zip(open_sets, left_out, strict=True))
    return [
        replace(
            item, attachments=tuple(_with_need(item, attachment, without) for attachment in item.attachments)
        )
        for item in with_union
    ]


def _union_of(item: JudgedClaim, verdict: Verdict | None, passages: tuple[Passage, ...]) -> Verdict | None:
    if item.union is not None:
        return item.union
    if len(passages) == 1:
        return next((a.verdict for a in item.attachments if a.verdict is not None), None)
    return verdict


def _with_need(
    item: JudgedClaim, attachment: Attachment, without: dict[tuple[int, str], Verdict]
) -> Attachment:
    verdict, passage_id = attachment.verdict, attachment.citation.passage_id
    if verdict is None or passage_id is None or verdict.label is Label.UNJUDGED:
        return attachment
    alone = verdict.label is Label.SUPPORTED
    rest = without.get((item.claim.index, passage_id))
    if rest is None:
        others = [
            a.verdict
            for a in item.attachments
            if a.verdict is not None and a.citation.passage_id != passage_id
        ]
        missed = alone and not any(other.label is Label.SUPPORTED for other in others)
    else:
        missed = rest.label is not Label.SUPPORTED and rest.label is not Label.UNJUDGED
    if missed:
        return replace(attachment, need=Need.NEEDED)
    return replace(attachment, need=Need.REDUNDANT if alone else Need.IRRELEVANT)
