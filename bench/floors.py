"""Three trivial judges: what any judge worth its cost must beat. Their thresholds are set by hand, once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from citespan.evaluators.judges.judge import JudgeCard, JudgeRequest
from citespan.evaluators.verdicts import Label, Verdict

__all__ = ["FLOORS", "Floor"]

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_CONTENT_LETTERS = 4
"""Letters from which a word counts as content."""

_OVERLAP_THRESHOLD = 0.6
_RECALL_THRESHOLD = 0.6
_WINDOW_SENTENCES = 3


class Floor:
    """A judge that is one formula over claim and joined passages."""

    def __init__(self, name: str, score: Callable[[str, str], float], threshold: float) -> None:
        self.card = JudgeCard(name=name, version="1", parameters={"threshold": threshold})
        self._score = score
        self._threshold = threshold

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Return one verdict per request, in the same order."""
        return [self._judge_one(request) for request in requests]

    def _judge_one(self, request: JudgeRequest) -> Verdict:
        score = self._score(request.claim, "\n".join(passage.text or "" for passage in request.passages))
        label = Label.SUPPORTED if score >= self._threshold else Label.UNSUPPORTED
        return Verdict(label=label, score=score, reason=f"{self.card.name} {score:.2f}", rule=self.card.name)


def _always(claim: str, passage: str) -> float:
    return 1.0


def _token_overlap(claim: str, passage: str) -> float:
    """Return the share of the claim's distinct words that the passages have."""
    words = set(_WORD.findall(claim.lower()))
    return len(words & set(_WORD.findall(passage.lower()))) / max(len(words), 1)


def _window_recall(claim: str, passage: str) -> float:
    """Return the share of the claim's content words in its best three sentences, halved if a number is missing."""
    words = {word for word in _WORD.findall(claim.lower()) if len(word) >= _CONTENT_LETTERS}
    sentences = [set(_WORD.findall(sentence.lower())) & words for sentence in _SENTENCE.split(passage)]
    windows = [
        set[str]().union(*sentences[at : at + _WINDOW_SENTENCES])
        for at in range(max(len(sentences) - _WINDOW_SENTENCES + 1, 1))
    ]
    recall = max((len(window) for window in windows), default=0) / max(len(words), 1)
    numbers = set(_NUMBER.findall(claim)) - set(_NUMBER.findall(passage))
    return recall / 2 if numbers else recall


FLOORS = (
    Floor("always supported", _always, 0.5),
    Floor("token overlap", _token_overlap, _OVERLAP_THRESHOLD),
    Floor("window recall", _window_recall, _RECALL_THRESHOLD),
)
"""The floors, in the order they are printed."""
