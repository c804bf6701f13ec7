"""How much words count: rare ones say more of what a claim is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Rarity"]


@dataclass(frozen=True, slots=True)
class Rarity:
    """How much words count."""

    weights: Mapping[str, float]
    """Weights of the common keys."""

    rarest: float
    """Weight of every other key."""

    def of(self, key: str) -> float:
        """Return how much a key counts."""
        return self.weights.get(key, self.rarest)
