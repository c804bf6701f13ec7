"""Read human-labelled rows: one JSONL file per set, each line a claim with its passages and a label."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from citespan.evaluators.verdicts import Label

__all__ = ["RAG_SETS", "Row", "read_sets"]

RAG_SETS = (
    "wice_claim",
    "wiki_citation_check",
    "factcheckgpt_stance",
    "hagrid_dev",
    "attributionbench_attrscore_gensearch",
    "attributionbench_stanford_gensearch",
    "attributionbench_attributedqa",
    "faithdial_audit",
)
"""Sets whose claims come from answers or articles with cited passages: the headline figure is over these."""


@dataclass(frozen=True, slots=True)
class Row:
    """One claim and the passages it cites together, with what people said."""

    id: str
    """Identifier, unique within the set."""

    claim: str
    """The claim."""

    passages: tuple[str, ...]
    """Texts of the passages."""

    label: Label
    """What people said."""

    question: str | None = None
    """The question that the claim helps to answer, where the set has one."""


def read_sets(folder: Path, limit: int | None = None) -> dict[str, list[Row]]:
    """Return the sets of `folder` by file stem, at most `limit` rows of each.

    Raises:
        FileNotFoundError: The folder holds no JSONL file.
        ValueError: A line is no row; the message says which.
    """
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise FileNotFoundError(
            f"{folder} holds no *.jsonl file: --data takes a folder of one JSONL file per set"
        )
    return {path.stem: _read_rows(path, limit) for path in paths}


def _read_rows(path: Path, limit: int | None) -> list[Row]:
    rows: list[Row] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if limit is not None and len(rows) >= limit:
            break
        if line.strip():
            try:
                rows.append(_row(json.loads(line), number))
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{path.name} line {number} is no row ({error!r})") from error
    return rows


def _row(data: dict[str, object], number: int) -> Row:
    passages = data["passages"]
    if not isinstance(passages, list):
        raise TypeError("passages is no list")
    question = data.get("question")
    return Row(
        id=str(data.get("id", number)),
        claim=str(data["claim"]),
        passages=tuple(str(text) for text in cast("list[object]", passages)),
        label=Label(str(data["label"])),
        question=None if question is None else str(question),
    )
