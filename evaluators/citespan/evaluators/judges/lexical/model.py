"""The fitted model: a logistic weighing of named features, read from a data file.

`bench/fit_lexical.py` writes `model.json`; nothing here trains. The file holds three things: the weights of
common words, the weights of the features, and how the model's word becomes a probability and a label.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import cast

from citespan.evaluators.judges.lexical.rarity import Rarity

__all__ = ["Model", "Weight", "load_model", "parse_model"]


@dataclass(frozen=True, slots=True)
class Weight:
    """What one feature adds: `weight * (value - mean) / scale`."""

    mean: float
    """Mean of the feature in the data it was fitted on."""

    scale: float
    """Its standard deviation there."""

    weight: float
    """Its coefficient."""


@dataclass(frozen=True, slots=True)
class Model:
    """The fitted numbers."""

    version: str
    """Changes with every fit; part of the judge's fingerprint."""

    rarity: Rarity
    """How much words count."""

    intercept: float
    """Log odds at the mean of all features, supported and not supported rows being equally many."""

    weights: Mapping[str, Weight]
    """The features' weights by name."""

    calibration: tuple[float, float]
    """Slope and intercept that turn log odds into those at the data's own share of supported claims."""

    fault: tuple[float, float]
    """What a finding adds to that slope and that intercept."""

    threshold: float
    """Score from which a claim without findings is supported."""

    partly_threshold: float
    """Score from which a claim that is not supported is partly so."""

    def log_odds(self, features: Mapping[str, float]) -> float:
        """Return the log odds that the passages support a claim with these features."""
        odds = self.intercept
        for name, weight in self.weights.items():
            odds += weight.weight * (features[name] - weight.mean) / weight.scale
        return odds

    def score(self, log_odds: float, *, is_faulted: bool = False) -> float:
        """Return the calibrated probability of support, 0 to 1.

        Args:
            log_odds: The model's log odds.
            is_faulted: Whether a rule found something against the claim; the score then stays under the threshold.
        """
        slope, intercept = self.calibration
        if not is_faulted:
            return _probability(slope * log_odds + intercept)
        faulted = _probability((slope + self.fault[0]) * log_odds + intercept + self.fault[1])
        return min(faulted, self.threshold - 0.01)


def _probability(log_odds: float) -> float:
    return 1 / (1 + math.exp(-max(min(log_odds, 30.0), -30.0)))


@cache
def load_model() -> Model:
    """Return the model that ships with the package."""
    return parse_model(files("citespan.evaluators.judges.lexical").joinpath("model.json").read_text("utf-8"))


def parse_model(text: str) -> Model:
    """Return the model that a JSON text states.

    Raises:
        KeyError: A field is missing.
        ValueError: The text is not JSON.
    """
    data = cast("dict[str, object]", json.loads(text))
    weights = cast("dict[str, dict[str, float]]", data["features"])
    calibration, fault = cast("list[float]", data["calibration"]), cast("list[float]", data["fault"])
    return Model(
        version=str(data["version"]),
        rarity=Rarity(cast("dict[str, float]", data["rarity"]), cast(float, data["rarest"])),
        intercept=cast(float, data["intercept"]),
        weights={name: Weight(**weight) for name, weight in weights.items()},
        calibration=(calibration[0], calibration[1]),
        fault=(fault[0], fault[1]),
        threshold=cast(float, data["threshold"]),
        partly_threshold=cast(float, data["partly_threshold"]),
    )
