"""Figures of agreement between a judge's labels and people's."""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import fmean

from citespan.evaluators.verdicts import Label

__all__ = ["balanced_accuracy", "bootstrap_interval", "calibration_error", "macro_f1"]

_RESAMPLES = 1000
"""Samples of the bootstrap; the interval's ends move by about .003 between seeds."""

_BINS = 10
"""Equal-width bins of the calibration error."""


def balanced_accuracy(said: Sequence[bool], truth: Sequence[bool]) -> float | None:
    """Return the mean of the shares right among true and among false; `None` if one of them is empty."""
    shares: list[float] = []
    for value in (True, False):
        right = [answer == value for answer, true in zip(said, truth, strict=True) if true is value]
        if not right:
            return None
        shares.append(fmean(right))
    return fmean(shares)


def bootstrap_interval(
    said: Sequence[bool], truth: Sequence[bool], *, seed: int = 0
) -> tuple[float, float] | None:
    """Return the 95 % percentile interval of the balanced accuracy, resampling true and false rows apart."""
    chance = random.Random(seed)
    counts = {
        value: (
            sum(answer == value for answer, true in zip(said, truth, strict=True) if true is value),
            sum(true is value for true in truth),
        )
        for value in (True, False)
    }
    if not counts[True][1] or not counts[False][1]:
        return None
    figures = sorted(
        fmean(
            sum(chance.random() < right / total for _ in range(total)) / total
            for right, total in counts.values()
        )
        for _ in range(_RESAMPLES)
    )
    return figures[int(0.025 * _RESAMPLES)], figures[int(0.975 * _RESAMPLES) - 1]


def macro_f1(said: Sequence[Label], truth: Sequence[Label], labels: Sequence[Label]) -> float:
    """Return the mean over `labels` of F1, 2 TP / (2 TP + FP + FN); a label that never occurs counts 0."""
    figures: list[float] = []
    for label in labels:
        hits = sum(answer is label and true is label for answer, true in zip(said, truth, strict=True))
        wrong = sum((answer is label) != (true is label) for answer, true in zip(said, truth, strict=True))
        figures.append(2 * hits / (2 * hits + wrong) if hits else 0.0)
    return fmean(figures)


def calibration_error(scores: Sequence[float], truth: Sequence[bool]) -> float | None:
    """Return the expected calibration error in ten equal-width bins; `None` over nothing."""
    if not scores:
        return None
    error = 0.0
    for number in range(_BINS):
        inside = [
            (score, true)
            for score, true in zip(scores, truth, strict=True)
            if min(int(score * _BINS), _BINS - 1) == number
        ]
        if inside:
            gap = abs(fmean(score for score, _ in inside) - fmean(float(true) for _, true in inside))
            error += gap * len(inside) / len(scores)
    return error
