"""Which traces are taken: decided by the trace id alone, so that every worker and every pass decides alike."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Self

from citespan.evaluators.errors import UsageError

__all__ = ["Sampling", "Shard"]

_SHARD = re.compile(r"(\d{1,6})/(\d{1,6})")
_EIGHT_BYTES = 1 << 64


def _digest(trace_id: str) -> bytes:
    return hashlib.sha256(trace_id.lower().encode()).digest()


@dataclass(frozen=True, slots=True)
class Shard:
    """One worker's share of the traces."""

    index: int = 0
    """Which share; `count` means the same as 0."""

    count: int = 1
    """How many shares there are."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `1/3`, `2/3`, `3/3`; `0/3` means the same as `3/3`, for tools that count from 0.

        Raises:
            UsageError: It is no such thing.
        """
        match = _SHARD.fullmatch(text.strip())
        if match is None or int(match[2]) == 0 or int(match[1]) > int(match[2]):
            raise UsageError(f"--shard {text!r}: expected i/n, such as 1/3 for the first of three workers")
        return cls(int(match[1]) % int(match[2]), int(match[2]))

    def holds(self, trace_id: str) -> bool:
        """Return whether a trace is in this share: the last 8 bytes of its id's sha256, modulo `count`."""
        return int.from_bytes(_digest(trace_id)[-8:], "big") % self.count == self.index

    def __str__(self) -> str:
        """Return `1/3`."""
        return f"{self.index or self.count}/{self.count}"


@dataclass(frozen=True, slots=True)
class Sampling:
    """A share of the traces, nested: what a rate takes, every higher rate takes too."""

    rate: float = 1.0
    """Share of the traces to take, 0 to 1."""

    def holds(self, trace_id: str) -> bool:
        """Return whether a trace is taken: the first 8 bytes of its id's sha256, as a fraction, below the rate."""
        return int.from_bytes(_digest(trace_id)[:8], "big") < self.rate * _EIGHT_BYTES

    def notes(self, rule: str) -> dict[str, object]:
        """Return what a result records of why its trace was taken."""
        return {"sampling": {"rate": self.rate, "rule": rule}}
