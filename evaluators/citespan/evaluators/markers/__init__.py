"""Where an answer cites: markers in its text, and citations recorded beside it."""

from __future__ import annotations

from citespan.evaluators.markers.finder import find_markers

__all__ = ["find_markers"]
