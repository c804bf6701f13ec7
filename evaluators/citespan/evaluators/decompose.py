"""Split an answer into claims."""

from __future__ import annotations

import re
from collections.abc import Sequence

from citespan.evaluators.claims import Claim, Marker
from citespan.evaluators.options import Splitting

__all__ = ["decompose"]


def decompose(
    answer: str,
    markers: Sequence[Marker],
    *,
    question: str | None = None,
    splitting: Splitting = Splitting.ATOMIC,
) -> tuple[Claim, ...]:
    """Return the claims of `answer` in order; their ranges do not overlap."""
    masked = answer
    for marker in markers:
        masked = masked[: marker.start] + " " * (marker.end - marker.start) + masked[marker.end :]
    claims: list[Claim] = []
    for match in re.finditer(r"\S[^.!?]*[.!?]?", masked):
        text = re.sub(r"\s+", " ", match[0]).strip().replace(" .", ".")
        if re.search(r"\w", text):
            end = match.start() + len(match[0].rstrip())
            claims.append(Claim(len(claims), text, match.start(), end, text, True, None))
    return tuple(claims)
