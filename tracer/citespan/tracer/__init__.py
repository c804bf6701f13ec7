"""Record RAG runs, their passages and their citations as OpenTelemetry spans."""

from __future__ import annotations

from citespan.tracer.citations import Citation
from citespan.tracer.passages import Passage

__all__ = ["Citation", "Passage"]
