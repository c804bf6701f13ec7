from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest

from citespan.evaluators.judges.judge import JudgeCard, JudgeRequest
from citespan.evaluators.judges.lexical import LexicalJudge
from citespan.evaluators.testing import CONTRACT_REQUESTS, ScriptedJudge, check_judge
from citespan.evaluators.verdicts import Label, Verdict
from citespan.tracer.passages import Passage

NO = Verdict(label=Label.UNSUPPORTED, score=0.1, reason="No.")


class Broken(ScriptedJudge):
    """A judge whose verdicts a test bends."""

    def __init__(
        self,
        bend: Callable[[Sequence[JudgeRequest], list[Verdict]], list[Verdict]],
        card: JudgeCard | None = None,
    ) -> None:
        super().__init__(default=NO, card=card)
        self._bend = bend

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        return self._bend(requests, super().judge(requests))


def each(**fields: object) -> Callable[[Sequence[JudgeRequest], list[Verdict]], list[Verdict]]:
    return lambda requests, verdicts: [verdict.model_copy(update=fields) for verdict in verdicts]


def test_judges_that_keep_the_contract_pass() -> None:
    check_judge(ScriptedJudge(default=NO))
    check_judge(ScriptedJudge(default=Label.UNJUDGED))
    check_judge(LexicalJudge())


@pytest.mark.parametrize(
    ("judge", "clause"),
    [
        (Broken(lambda _, verdicts: verdicts[1:]), "verdicts for 14 requests"),
        (Broken(lambda _, verdicts: verdicts or [NO]), r"judge\(\[\]\) is not \[\]"),
        (Broken(each(label=Label.UNCITED)), "uncited is never the word of a judge"),
        (Broken(each(reason=" ")), "a verdict has a reason"),
        (Broken(each(label=Label.UNJUDGED, score=None)), "unjudged has its machine-readable reason"),
        (Broken(each(label=Label.UNJUDGED, rule="x", reason="No.")), "the reason begins with the rule"),
        (Broken(each(label=Label.UNJUDGED, rule="No.")), "unjudged has no score"),
        (Broken(each(evidence="Never said.")), "is no substring of the passage"),
        (Broken(each(evidence_passage_id="elsewhere")), "the evidence is of a passage of the request"),
        (
            Broken(lambda requests, v: v if len(requests) > 1 else each(score=0.2)([], v)),
            "does not depend on the batch",
        ),
        (Broken(each(), JudgeCard(name="", version="1")), "the card names the judge"),
        (
            Broken(each(), JudgeCard(name="x", version="1", parameters={"a": {1}})),
            "parameters are JSON values",
        ),
    ],
)
def test_a_broken_clause_of_the_contract_is_named(judge: Broken, clause: str) -> None:
    with pytest.raises(AssertionError, match=clause):
        check_judge(judge)


def test_a_judge_that_raises_fails_the_check() -> None:
    def explode(requests: Sequence[JudgeRequest], verdicts: list[Verdict]) -> list[Verdict]:
        if any(not request.claim for request in requests):
            raise ValueError("empty claim")
        return verdicts

    with pytest.raises(ValueError, match="empty claim"):
        check_judge(Broken(explode))


def test_the_contract_requests_cover_empty_doubled_joined_hostile_and_long_texts() -> None:
    claims = [request.claim for request in CONTRACT_REQUESTS]
    assert "" in claims
    assert len(set(claims)) < len(claims)
    assert any(len(request.passages) > 1 for request in CONTRACT_REQUESTS)
    assert any("<|im_end|>" in (request.passages[0].text or "") for request in CONTRACT_REQUESTS)
    assert any(len(request.passages[0].text or "") > 50_000 for request in CONTRACT_REQUESTS)


def test_the_scripted_judge_says_what_it_is_told_and_remembers_what_it_was_asked() -> None:
    passages = (Passage(id="a", text="A."), Passage(id="b", text="B."))
    joined = JudgeRequest(claim="C.", passages=passages)
    alone = JudgeRequest(claim="C.", passages=passages[:1])
    judge = ScriptedJudge({("C.", "a", "b"): Label.SUPPORTED})
    assert [verdict.label for verdict in judge.judge([joined, alone])] == ["supported", "unsupported"]
    assert judge.asked == [joined, alone]
    assert judge.batches == [2]


class NotForThreads(ScriptedJudge):
    """A judge that says it takes several threads and keeps the request it works on in itself."""

    concurrency = 4

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        self.current = requests
        time.sleep(0.01)
        return super().judge(self.current)

    def _judge_one(self, request: JudgeRequest) -> Verdict:
        label = Label.SUPPORTED if "days" in request.claim else Label.UNSUPPORTED
        return Verdict(label=label, reason=request.claim or "Nothing is claimed.", rule=request.claim[:40])


def test_a_judge_that_says_it_takes_several_threads_is_checked_with_several() -> None:
    with pytest.raises(AssertionError, match="asked by one of several threads: a verdict does not depend on"):
        check_judge(NotForThreads())
    # Asked by one thread it keeps the contract.
    single = NotForThreads()
    single.concurrency = 1
    check_judge(single)
