"""Find the places in an answer that cite."""

from __future__ import annotations

import re
from collections.abc import Sequence

from citespan.evaluators.claims import Marker
from citespan.tracer.citations import Citation
from citespan.tracer.passages import Passage

__all__ = ["find_markers"]


def find_markers(
    answer: str, passages: Sequence[Passage], citations: Sequence[Citation] = ()
) -> tuple[Marker, ...]:
    """Return the markers of `answer` in order."""
    return tuple(
        Marker(match[0], match.start(), match.end(), tuple(part.strip() for part in match[1].split(",")))
        for match in re.finditer(r"\[([^\[\]]+)\]", answer)
    )
