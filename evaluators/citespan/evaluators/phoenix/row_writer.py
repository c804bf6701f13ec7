"""Write annotations in batches, never over a person's, and never losing a batch to one missing target."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from citespan.evaluators.errors import NotFound
from citespan.evaluators.phoenix.batches import BatchSender
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.records import Annotation, Project, StoredAnnotation, Target

__all__ = ["MACHINE", "RowWriter", "WrittenRows", "beside_person", "without_person"]

MACHINE = "machine"
"""Added to the identifier of a row whose place a person has taken."""


@dataclass(slots=True)
class WrittenRows:
    """What became of rows."""

    written: int = 0
    """Rows that Phoenix has now."""

    human_kept: int = 0
    """Rows written beside one that a person made or changed."""

    refused: dict[str, str] = field(default_factory=dict[str, str])
    """Targets whose row Phoenix did not take, with a machine-readable reason."""


class RowWriter:
    """Writes annotations on one kind of target. Read the stored rows before writing over them."""

    def __init__(self, client: PhoenixClient, project: Project, target: Target) -> None:
        self._client = client
        self._project = project
        self._target = target

    def read(self, target_ids: Sequence[str], names: Sequence[str] = ()) -> list[StoredAnnotation]:
        """Return the rows on these targets, those with the given names if there are any."""
        ids = list(dict.fromkeys(target_ids))
        if not ids:
            return []
        found = self._client.annotations(self._project, self._target, target_ids=ids, names=names)
        return list(found)

    def write(self, rows: Sequence[Annotation], stored: Sequence[StoredAnnotation]) -> WrittenRows:
        """Write rows; one whose place a person has taken goes beside it, under `<identifier>:machine`.

        Args:
            rows: The rows.
            stored: The rows that their targets have, read just before.
        """
        human = {row.key for row in stored if row.is_human}
        done = WrittenRows()
        places = [row if row.key not in human else _beside(row) for row in rows]
        done.human_kept = sum(place is not row for place, row in zip(places, rows, strict=True))
        sender = BatchSender[Annotation](lambda batch: self._client.annotate(self._target, batch), _size_of)
        refused = sender.send(places)
        done.written = len(places) - len(refused)
        for row, error in refused:
            reason = f"{self._target}_gone" if isinstance(error, NotFound) else f"row_refused: {error}"
            done.refused[row.target_id] = reason
        return done


def beside_person(identifier: str) -> str:
    """Return the identifier to write under where a person has taken over the row."""
    return f"{identifier}:{MACHINE}"


def without_person(identifier: str) -> str:
    """Return the identifier that a row has, or would have if no person had taken over its place."""
    return identifier.removesuffix(f":{MACHINE}")


def _beside(row: Annotation) -> Annotation:
    return replace(row, identifier=beside_person(row.identifier))


def _size_of(row: Annotation) -> int:
    return len(json.dumps(row.metadata)) + len(row.explanation or "")
