"""The names a run's passages answer to: labels shown, ids, positions."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from citespan.evaluators.claims import Certainty
from citespan.tracer.passages import Passage

__all__ = ["NameMatch", "PassageNames"]


@dataclass(frozen=True, slots=True)
class NameMatch:
    """The passages that a name names."""

    passage_ids: tuple[str, ...]
    """One id, or several if the name is ambiguous."""

    certainty: Certainty
    """How sure that is."""

    reason: str | None = None
    """How the name was understood, where it was not simply the label."""


class PassageNames:
    """What a run's passages can be called in its answer."""

    def __init__(self, passages: Sequence[Passage], *, by_position: bool) -> None:
        """Index the passages.

        Args:
            passages: The run's passages, in the order shown.
            by_position: Whether passages without a label also answer to their 1-based position.
        """
        self._ids = {passage.id for passage in passages}
        self._labels: dict[str, list[str]] = {}
        self._positions: dict[str, str] = {}
        for position, passage in enumerate(passages, 1):
            self._labels.setdefault(fold_name(passage.label or passage.id), []).append(passage.id)
            if by_position and passage.label is None:
                self._positions[str(position)] = passage.id

    def find(self, name: str) -> NameMatch | None:
        """Return the passages called `name`, or `None`."""
        ids = self._labels.get(fold_name(name))
        if ids:
            return NameMatch(tuple(ids), Certainty.CERTAIN if len(ids) == 1 else Certainty.AMBIGUOUS)
        if name in self._ids:
            return NameMatch((name,), Certainty.CERTAIN, "by_id")
        if name in self._positions:
            return NameMatch((self._positions[name],), Certainty.LOW, "by_position")
        return None

    def find_id(self, passage_id: str) -> NameMatch | None:
        """Return the passage with this id, or `None`: recorded citations name ids, never labels."""
        return NameMatch((passage_id,), Certainty.CERTAIN) if passage_id in self._ids else None


def occur_as_names(passages: Sequence[Passage], names: Iterable[str]) -> bool:
    """Return whether the id of any passage without a label is among `names`."""
    ids = {fold_name(passage.id) for passage in passages if passage.label is None}
    return any(fold_name(name) in ids for name in names)


def fold_name(name: str) -> str:
    """Return `name` as compared: compatibility forms unified, case and outer spaces ignored."""
    return unicodedata.normalize("NFKC", name).strip().casefold()
