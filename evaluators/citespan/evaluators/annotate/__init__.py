"""Write evaluations back to where the traces are, for people to see."""

from __future__ import annotations

from citespan.evaluators.annotate.annotator import HUMAN_LABELS, Annotator, EvaluatedTrace, Written

__all__ = ["HUMAN_LABELS", "Annotator", "EvaluatedTrace", "Written"]
