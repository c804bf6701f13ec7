"""How much to ask for at once, so that memory does not grow with the size of what is stored."""

from __future__ import annotations

__all__ = ["PageSize"]

PAGE_BYTES = 1_000_000
"""Size that replies are steered to."""

_FIRST = 20
_GROWTH = 4


class PageSize:
    """How many things to ask for, learned from the size of those before."""

    def __init__(self, most: int) -> None:
        """Start small; never ask for more than `most`."""
        self._most = most
        self.value = min(most, _FIRST)

    def learn(self, count: int, size_bytes: int) -> None:
        """Steer towards `PAGE_BYTES` after `count` things took `size_bytes`, growing at most fourfold at a time."""
        if count:
            fitting = PAGE_BYTES * count // max(size_bytes, 1)
            self.value = max(1, min(fitting, self.value * _GROWTH, self._most))
