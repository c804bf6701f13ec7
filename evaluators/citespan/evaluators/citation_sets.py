"""Judge a claim's cited passages together, and each one's part in it.

What entails alone entails in any company, so a set is judged only where the single verdicts leave its answer open:
a union where no passage alone entails the claim, and the rest without a passage where that passage may be missed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from citespan.evaluators.findings import Attachment, JudgedClaim, Need
from citespan.evaluators.judge_claims import ask, request_for, union_passages
from citespan.evaluators.judges.judge import Judge
from citespan.evaluators.runs import Run
from citespan.evaluators.verdicts import Label, Verdict

__all__ = ["judge_sets"]

_SetKey = tuple[int, tuple[str, ...]]
"""Index of a claim and the ids of the passages read together for it."""


def judge_sets(run: Run, judged: Sequence[JudgedClaim], judge: Judge) -> list[JudgedClaim]:
    """Return the claims with the verdict on the union of their passages and each citation's need.

    A need is `None` where a verdict it hangs on is `unjudged`: unknown is not irrelevant.
    """
    with_union = _with_unions(run, judged, judge)
    rests = _judge_rests(run, with_union, judge)
    return [
        replace(
            item, attachments=tuple(_with_need(item, attachment, rests) for attachment in item.attachments)
        )
        for item in with_union
    ]


def _with_unions(run: Run, judged: Sequence[JudgedClaim], judge: Judge) -> list[JudgedClaim]:
    """Return the claims with their union's verdict where it was open; a single passage is its own union."""
    unions = {item.claim.index: union_passages(run, item) for item in judged}
    wanted = [
        item
        for item in judged
        if len(unions[item.claim.index]) > 1
        and item.union is None
        and item.label not in (Label.SUPPORTED, Label.UNJUDGED)
    ]
    requests = [request_for(run, item.claim, unions[item.claim.index]) for item in wanted]
    verdicts = {item.claim.index: verdict for item, verdict in zip(wanted, ask(judge, requests), strict=True)}
    for item in judged:
        if len(unions[item.claim.index]) == 1 and item.union is None:
            (verdicts[item.claim.index],) = _alone(item).values()
    return [replace(item, union=verdicts.get(item.claim.index, item.union)) for item in judged]


def _judge_rests(run: Run, judged: Sequence[JudgedClaim], judge: Judge) -> Mapping[_SetKey, Verdict]:
    """Return the verdicts on what is left without each passage that may be missed; single passages included."""
    by_id = {passage.id: passage for passage in run.passages}
    known: dict[_SetKey, Verdict] = {
        (item.claim.index, (passage_id,)): verdict
        for item in judged
        for passage_id, verdict in _alone(item).items()
    }
    wanted = {
        (item.claim.index, rest): request_for(
            run, item.claim, tuple(by_id[passage_id] for passage_id in rest)
        )
        for item in judged
        if item.is_entailed_by_union
        for passage_id in _alone(item)
        if (rest := _rest(item, passage_id)) and not _entails_alone(item, rest)
    }
    missing = {key: request for key, request in wanted.items() if key not in known}
    return known | dict(zip(missing, ask(judge, list(missing.values())), strict=True))


def _with_need(item: JudgedClaim, attachment: Attachment, rests: Mapping[_SetKey, Verdict]) -> Attachment:
    verdict, passage_id = attachment.verdict, attachment.citation.passage_id
    if verdict is None or passage_id is None or verdict.label is Label.UNJUDGED:
        return attachment
    alone = verdict.label is Label.SUPPORTED
    missed = _is_missed(item, passage_id, rests)
    if missed is None and not alone:
        return attachment
    if missed:
        return replace(attachment, need=Need.NEEDED)
    return replace(attachment, need=Need.REDUNDANT if alone else Need.IRRELEVANT)


def _is_missed(item: JudgedClaim, passage_id: str, rests: Mapping[_SetKey, Verdict]) -> bool | None:
    """Return whether the cited passages stop entailing the claim without this one; `None` if that is unknown."""
    if not item.is_entailed_by_union:
        is_open = item.label is Label.UNJUDGED or item.union is None or item.union.label is Label.UNJUDGED
        return None if is_open else False
    rest = _rest(item, passage_id)
    if _entails_alone(item, rest):
        return False
    if not rest:
        return True
    label = rests[item.claim.index, rest].label
    return None if label is Label.UNJUDGED else label is not Label.SUPPORTED


def _alone(item: JudgedClaim) -> dict[str, Verdict]:
    """Return the verdict on each distinct cited passage read on its own, in citation order."""
    return {
        attachment.citation.passage_id: attachment.verdict
        for attachment in item.attachments
        if attachment.citation.passage_id is not None and attachment.verdict is not None
    }


def _rest(item: JudgedClaim, passage_id: str) -> tuple[str, ...]:
    return tuple(other for other in _alone(item) if other != passage_id)


def _entails_alone(item: JudgedClaim, passage_ids: tuple[str, ...]) -> bool:
    """Return whether one of these passages entails the claim on its own."""
    alone = _alone(item)
    return any(alone[passage_id].label is Label.SUPPORTED for passage_id in passage_ids)
