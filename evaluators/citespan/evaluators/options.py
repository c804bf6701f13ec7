"""How runs are evaluated: everything that changes an evaluation beside the run and the judge."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["DEFAULT_OPTIONS", "CitationScope", "EvaluateOptions", "LabelPolicy", "Splitting"]


class Splitting(StrEnum):
    """How finely an answer is split into claims."""

    SENTENCE = "sentence"
    """One claim per sentence, table row or list item."""

    ATOMIC = "atomic"
    """A sentence is split where both parts stand alone as assertions (the default)."""


class CitationScope(StrEnum):
    """What a paragraph-final marker covers."""

    SENTENCE = "sentence"
    """The last sentence of its paragraph (the default)."""

    PARAGRAPH = "paragraph"
    """Also the paragraph's earlier uncited sentences."""


class LabelPolicy(StrEnum):
    """How the cited passages of one claim make its label."""

    ANY = "any"
    """Supported if one cited passage alone entails the claim (the default)."""

    UNION = "union"
    """The cited passages are judged joined, in citation order."""


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """How runs are evaluated; part of the run fingerprint."""

    splitting: Splitting = Splitting.ATOMIC
    """Whether a sentence is split into the assertions it bundles."""

    citation_scope: CitationScope = CitationScope.SENTENCE
    """Whether a paragraph-final marker covers its last sentence or the whole paragraph."""

    label_policy: LabelPolicy = LabelPolicy.ANY
    """How the cited passages of one claim make its label."""

    citation_sets: bool = True
    """Whether unions and leave-one-out sets are judged, for precision and recall."""

    other_passages: bool = True
    """Whether the run's other passages are tried on what is not supported."""


DEFAULT_OPTIONS = EvaluateOptions()
"""What `evaluate` does when told nothing else."""
