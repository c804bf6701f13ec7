"""A cheap judge first, and what it is unsure of to the next."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from citespan.evaluators.judges.judge import (
    Judge,
    JudgeCard,
    JudgeRequest,
    close_judge,
    concurrency_of,
    estimate_of,
)
from citespan.evaluators.judges.notes import notes_of
from citespan.evaluators.verdicts import Label, Usage, Verdict

__all__ = ["Band", "CascadeJudge", "CascadeReport", "fit_band"]


class Band(BaseModel):
    """The scores between which a verdict is borderline."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    low: Annotated[float, Field(ge=0, le=1)] = 0.2
    """Below it, "not supported" stands; 0 lets none stand."""

    high: Annotated[float, Field(ge=0, le=1)] = 0.9
    """Above it, "supported" stands; 1 lets none stand."""

    @model_validator(mode="after")
    def _is_ordered(self) -> Band:
        if self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        return self

    def settles(self, verdict: Verdict) -> bool:
        """Return whether the verdict stands: a clear score that agrees with its label, and no doubt of its own."""
        if verdict.score is None or verdict.is_low_confidence:
            return False
        return verdict.score > self.high if verdict.label is Label.SUPPORTED else verdict.score < self.low


def fit_band(scored: Sequence[tuple[float, bool]], *, most_wrong: float = 0.05) -> Band:
    """Return the narrowest band outside of which at most `most_wrong` of the verdicts on each side are wrong.

    Args:
        scored: Score of the first judge, and whether people say supported, for each labelled claim. They must not be
            the claims on which the cascade is later measured.
        most_wrong: Share of wrong verdicts that are let stand, below and above, in [0, 1].
    """
    rows = sorted(scored)
    low = _edge(rows, most_wrong, wrong=True, end=0.0)
    high = 1.0 - _edge(
        [(1.0 - score, label) for score, label in reversed(rows)], most_wrong, wrong=False, end=0.0
    )
    if low > high:
        low = high = (low + high) / 2
    return Band(low=low, high=high)


def _edge(rows: Sequence[tuple[float, bool]], most_wrong: float, *, wrong: bool, end: float) -> float:
    """Return the highest threshold, halfway between two scores, under which few enough rows have the label `wrong`."""
    edge, failures = end, 0
    for n, (score, label) in enumerate(rows, start=1):
        failures += label is wrong
        following = rows[n][0] if n < len(rows) else 1.0
        if following > score and failures / n <= most_wrong:
            edge = (score + following) / 2
    return edge


@dataclass(frozen=True, slots=True)
class CascadeReport:
    """Who decided, and what that saved."""

    judges: tuple[str, ...]
    """Names of the judges, in order."""

    asked: tuple[int, ...]
    """Requests that each judge was asked; the first was asked all."""

    cost_usd: tuple[float | None, ...]
    """What each judge cost; `None` where a price is unknown."""

    @property
    def escalated_share(self) -> float | None:
        """Requests that went beyond the first judge / all requests; `None` over nothing."""
        return self.asked[1] / self.asked[0] if self.asked[0] else None

    @property
    def saved_usd(self) -> float | None:
        """What the last judge would have cost on the requests that it was spared, at its mean cost so far.

        `None` where it was never asked, or its price is unknown.
        """
        asked, cost = self.asked[-1], self.cost_usd[-1]
        return None if not asked or cost is None else cost / asked * (self.asked[0] - asked)

    def __str__(self) -> str:
        """Return one line for a report: `lexical decided 812 of 1000 (18.8% escalated), saved about $1.23`."""
        share = self.escalated_share
        if share is None:
            return f"{self.judges[0]} was asked nothing"
        decided = self.asked[0] - self.asked[1]
        saved = "" if self.saved_usd is None else f", saved about ${self.saved_usd:.2f}"
        return f"{self.judges[0]} decided {decided} of {self.asked[0]} ({share:.1%} escalated){saved}"


class CascadeJudge:
    """Asks each judge in turn about what the one before left borderline; safe between threads.

    A borderline verdict never stands in for a later judge that failed: that claim is `unjudged` with its reason, so
    that figures do not change with a provider's good days.

    Args:
        judges: The judges, cheapest first; at least two.
        bands: The band in which a verdict is passed on: one for all judges but the last, or one each.
    """

    def __init__(self, judges: Sequence[Judge], bands: Band | Sequence[Band]) -> None:
        if len(judges) < 2:
            raise ValueError(f"a cascade needs two judges or more, not {len(judges)}")
        self._judges = tuple(judges)
        self._bands = (bands,) * (len(judges) - 1) if isinstance(bands, Band) else tuple(bands)
        if len(self._bands) != len(judges) - 1:
            raise ValueError(f"{len(judges)} judges need {len(judges) - 1} bands, not {len(self._bands)}")
        self._places = [threading.BoundedSemaphore(concurrency_of(judge)) for judge in self._judges]
        self._lock = threading.Lock()
        self._asked = [0] * len(judges)
        self._cost: list[float | None] = [0.0] * len(judges)

    @property
    def card(self) -> JudgeCard:
        """What the judge is: both fingerprints and the thresholds make its own."""
        cards = [judge.card for judge in self._judges]
        hosts = dict.fromkeys(card.sends_text_to for card in cards if card.sends_text_to is not None)
        return JudgeCard(
            name=f"cascade:{','.join(card.name for card in cards)}",
            version="1",
            parameters={
                "judges": [{"name": card.name, "fingerprint": card.fingerprint} for card in cards],
                "bands": [[band.low, band.high] for band in self._bands],
            },
            sends_text_to=", ".join(hosts) or None,
            limits=" ".join(dict.fromkeys(f"{card.name}: {card.limits}" for card in cards if card.limits)),
            others_tried=min(card.others_tried for card in cards),
            uses_context=any(card.uses_context for card in cards),
        )

    @property
    def concurrency(self) -> int:
        """How many threads had better ask at once: as many as the widest of its judges takes.

        A judge that takes fewer lets the others wait for it.
        """
        return max(concurrency_of(judge) for judge in self._judges)

    def estimate(self, requests: Sequence[JudgeRequest]) -> Usage | None:
        """Return what judging these would cost if each judge passed everything on; `None` if one cannot say."""
        found = [estimate_of(judge, requests) for judge in self._judges]
        known = [usage for usage in found if usage is not None]
        return sum(known[1:], known[0]) if len(known) == len(found) else None

    @property
    def report(self) -> CascadeReport:
        """Who decided so far, and what that saved."""
        with self._lock:
            names = tuple(judge.card.name for judge in self._judges)
            return CascadeReport(names, tuple(self._asked), tuple(self._cost))

    def close(self) -> None:
        """Give back what the judges hold."""
        for judge in self._judges:
            close_judge(judge)

    @property
    def notes(self) -> tuple[str, ...]:
        """Who decided and what that saved, then what the judges say themselves."""
        return (str(self.report), *(note for judge in self._judges for note in notes_of(judge)))

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Return one verdict per request, in the same order."""
        verdicts = self._ask(0, requests)
        open_places = list(range(len(requests)))
        for stage, band in enumerate(self._bands, start=1):
            open_places = [place for place in open_places if not band.settles(verdicts[place])]
            if not open_places:
                break
            answers = self._ask(stage, [requests[place] for place in open_places])
            for place, answer in zip(open_places, answers, strict=True):
                verdicts[place] = self._passed_on(stage, verdicts[place], answer)
        return verdicts

    def _ask(self, stage: int, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        with self._places[stage]:
            verdicts = list(self._judges[stage].judge(requests))
        costs = [0.0 if verdict.usage is None else verdict.usage.cost_usd for verdict in verdicts]
        with self._lock:
            self._asked[stage] += len(requests)
            for cost in costs:
                so_far = self._cost[stage]
                self._cost[stage] = None if cost is None or so_far is None else so_far + cost
        return verdicts

    def _passed_on(self, stage: int, first: Verdict, answer: Verdict) -> Verdict:
        before = self._judges[stage - 1].card.name
        score = "" if first.score is None else f" {first.score:.2f}"
        note = f"(Passed on by {before}: {first.label}{score}.)"
        return answer.model_copy(
            update={"reason": f"{answer.reason} {note}", "usage": _sum(first.usage, answer.usage)}
        )


def _sum(first: Usage | None, second: Usage | None) -> Usage | None:
    return first + second if first is not None and second is not None else first or second
