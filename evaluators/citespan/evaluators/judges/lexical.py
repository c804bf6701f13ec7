"""The embedded judge: no network, no weights, no key."""

from __future__ import annotations

import re
from collections.abc import Sequence

from citespan.evaluators.judges.judge import JudgeCard, JudgeRequest
from citespan.evaluators.verdicts import Label, Verdict

__all__ = ["LexicalJudge"]


class LexicalJudge:
    """Judges by the words, numbers and signs that claim and passage share."""

    @property
    def card(self) -> JudgeCard:
        """What the judge is."""
        return JudgeCard(name="lexical", version="0")

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Return one verdict per request, in the same order."""
        return [self._judge_one(request) for request in requests]

    def _judge_one(self, request: JudgeRequest) -> Verdict:
        words = set(re.findall(r"\w{4,}", request.claim.lower()))
        text = " ".join(passage.text or "" for passage in request.passages)
        share = len(words & set(re.findall(r"\w{4,}", text.lower()))) / max(len(words), 1)
        label = Label.SUPPORTED if share > 0.6 else Label.UNSUPPORTED
        return Verdict(
            label=label,
            score=share,
            reason=f"{share:.0%} of the claim's words are in the passage.",
            rule="overlap",
        )
