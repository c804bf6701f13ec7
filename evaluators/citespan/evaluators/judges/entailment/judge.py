"""The entailment judge: reads each passage with a sequence classifier on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from citespan.evaluators.judges.entailment.classifier import Classifier, Encoded, Probabilities
from citespan.evaluators.judges.entailment.modelcard import ModelCard
from citespan.evaluators.judges.entailment.windows import Joined
from citespan.evaluators.judges.judge import JudgeCard, JudgeRequest
from citespan.evaluators.verdicts import Label, Verdict
from citespan.tracer.text import clean_text

__all__ = ["EntailmentJudge"]

_DECIMALS = 4
"""Scores are rounded: what else is in a batch moves fp32 sums by up to about 1e-6, which must not show."""


class EntailmentJudge:
    """Judges by the best window of the passages: the one that entails most, or contradicts most.

    Args:
        card: The model's card.
        classifier: The model.
        identity: Hashes of the files that make the model: part of the fingerprint.
        notes: What is to be said of this copy of the model, beside the card's limits.
    """

    def __init__(
        self, card: ModelCard, classifier: Classifier, *, identity: Mapping[str, str], notes: str = ""
    ) -> None:
        self._model_card = card
        self._classifier = classifier
        self._identity = dict(identity)
        self._notes = notes

    @property
    def card(self) -> JudgeCard:
        """What the judge is."""
        model = self._model_card
        return JudgeCard(
            name=f"entailment:{model.model}",
            version="1",
            parameters={
                "files": self._identity,
                "card": model.model_dump(mode="json", exclude={"licence", "source", "limits"}),
            },
            limits=f"{model.limits} {self._notes}".strip(),
            others_tried=5,
            uses_context=False,
        )

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Return one verdict per request, in the same order."""
        encoded = [
            self._classifier.encode(clean_text(Joined(request.passages).text), clean_text(request.claim))
            for request in requests
        ]
        flat = [window for windows in encoded if windows is not None for window in windows]
        found = iter(zip(flat, self._classifier.classify(flat), strict=True))
        return [
            self._judge_one(request, None if windows is None else [next(found) for _ in windows])
            for request, windows in zip(requests, encoded, strict=True)
        ]

    def _judge_one(
        self, request: JudgeRequest, windows: Sequence[tuple[Encoded, Probabilities | None]] | None
    ) -> Verdict:
        if windows is None:
            room = f"the claim leaves no room for a passage within {self._model_card.max_tokens} tokens"
            return Verdict.unjudged("claim_too_long", room)
        read = [(window, found) for window, found in windows if found is not None]
        verdict = self._verdict(request, read) if read else None
        if verdict is None or (len(read) < len(windows) and verdict.label is not Label.SUPPORTED):
            failed = f"the model failed on {len(windows) - len(read)} of {len(windows)} windows"
            return Verdict.unjudged("model_failed", failed)
        return verdict

    def _verdict(self, request: JudgeRequest, windows: Sequence[tuple[Encoded, Probabilities]]) -> Verdict:
        thresholds = self._model_card.thresholds
        best, entailed = max(windows, key=lambda pair: pair[1].supported)
        worst, denied = max(windows, key=lambda pair: pair[1].contradicted or 0.0)
        score = round(entailed.supported, _DECIMALS)
        against = None if denied.contradicted is None else round(denied.contradicted, _DECIMALS)
        label, window = Label.UNSUPPORTED, best
        if score >= thresholds.supported:
            label = Label.SUPPORTED
        elif (
            against is not None and thresholds.contradicted is not None and against >= thresholds.contradicted
        ):
            label, window = Label.CONTRADICTED, worst
        elif thresholds.partly_supported is not None and score >= thresholds.partly_supported:
            label = Label.PARTLY_SUPPORTED
        evidence = (
            None
            if label is Label.UNSUPPORTED
            else Joined(request.passages).evidence(window.window, request.claim)
        )
        return Verdict(
            label=label,
            score=score,
            reason=self._reason(label, score, against, len(windows)),
            rule="entailment",
            evidence=None if evidence is None else evidence[1],
            evidence_passage_id=None if evidence is None else evidence[0],
        )

    def _reason(self, label: Label, score: float, against: float | None, count: int) -> str:
        read = "the passage" if count == 1 else f"the best of the passage's {count} windows"
        if label is Label.CONTRADICTED:
            return f"{self._model_card.model} gives {against:.0%} that {read} contradicts the claim."
        return f"{self._model_card.model} gives {score:.0%} that {read} entails the claim."
