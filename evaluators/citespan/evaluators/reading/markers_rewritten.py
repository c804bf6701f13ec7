"""Labels of an answer whose markers the app rewrote after the model wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from citespan.evaluators.markers import find_markers
from citespan.evaluators.reading.label_forms import fold_label
from citespan.tracer.passages import Passage

__all__ = ["relabel"]


def relabel(passages: Sequence[Passage], written: str, answer: str) -> tuple[tuple[Passage, ...], str | None]:
    """Return the passages under the labels that the answer uses, and how that was found.

    An app may number `[3] [1]` anew as `[1] [2]`: what the model wrote says which passage is meant.

    Args:
        passages: The passages under the labels that the model was shown.
        written: What the model wrote.
        answer: What the user got.
    """
    if written.split() == answer.split() or written.strip() in answer or answer.strip() in written:
        return tuple(passages), None
    before = [fold_label(label) for marker in find_markers(written, passages) for label in marker.labels]
    after = [label for marker in find_markers(answer, passages) for label in marker.labels]
    if [fold_label(label) for label in after] == before:
        return tuple(passages), None
    pairs = dict(zip(before, after, strict=False))
    is_one_to_one = len(before) == len(after) and len({fold_label(new) for new in pairs.values()}) == len(
        pairs
    )
    if not is_one_to_one or any(pairs[old] != new for old, new in zip(before, after, strict=True)):
        return tuple(replace(passage, label=None) for passage in passages), "markers_rewritten_unclear"
    return tuple(
        replace(passage, label=pairs.get(fold_label(passage.label))) if passage.label is not None else passage
        for passage in passages
    ), "markers_rewritten"
