"""The embedded judge: no network, no weights, no key."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from citespan.evaluators.judges.judge import JudgeCard, JudgeRequest
from citespan.evaluators.judges.lexical.decide import decide, decide_by_letters
from citespan.evaluators.judges.lexical.examine import examine
from citespan.evaluators.judges.lexical.letters import is_english, match_letters
from citespan.evaluators.judges.lexical.model import Model, load_model
from citespan.evaluators.judges.lexical.readings import PassageReading, read_passage
from citespan.evaluators.judges.lexical.words import read_words
from citespan.evaluators.verdicts import Label, Verdict

__all__ = ["LexicalJudge"]

_VERSION = "1"
"""Changes whenever the same request may get another verdict from the same model."""

_PASSAGES_KEPT = 64
"""Passages kept read, since an answer's claims are judged by the same ones."""

_LIMITS = (
    "Sees words, figures and signs, not meaning: it misses paraphrase without shared words, inference over several "
    "sentences, and half of the names that stand in another name's part; its `contradicted` is a hint. English; for "
    "other languages it compares letters and says so with low confidence."
)


class LexicalJudge:
    """Judges by the words, numbers and signs that claim and passage share."""

    def __init__(self, model: Model | None = None) -> None:
        self._model = model or load_model()
        self._read: OrderedDict[str, PassageReading] = OrderedDict()

    @property
    def card(self) -> JudgeCard:
        """What the judge is."""
        return JudgeCard(
            name="lexical",
            version=_VERSION,
            parameters={"model": self._model.version, "threshold": self._model.threshold},
            limits=_LIMITS,
        )

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Return one verdict per request, in the same order."""
        return [self._judge_safely(request) for request in requests]

    def _judge_safely(self, request: JudgeRequest) -> Verdict:
        try:
            return self._judge_one(request)
        except Exception as error:  # one bad text must not lose a batch (the protocol's contract)
            return Verdict.unjudged("judge_error", f"{type(error).__name__}: {error}")

    def _judge_one(self, request: JudgeRequest) -> Verdict:
        claim = read_words(request.claim)
        if not claim.words:
            return Verdict.unjudged("no_words", "the claim has no words to look for")
        passages = [self._passage(passage.text or "") for passage in request.passages]
        ids = [passage.id for passage in request.passages]
        if not is_english(claim, passages):
            return decide_by_letters(match_letters(request.claim, passages), passages, ids)
        examination = examine(request.claim, passages, request.question, self._model.rarity)
        if examination is None:
            return Verdict(
                label=Label.UNSUPPORTED,
                score=self._model.score(-5.0),
                reason="The passage has none of the claim's words.",
                rule="coverage",
            )
        return decide(examination, self._model, ids)

    def _passage(self, text: str) -> PassageReading:
        read = self._read.pop(text, None) or read_passage(text)
        self._read[text] = read
        if len(self._read) > _PASSAGES_KEPT:
            self._read.popitem(last=False)
        return read
