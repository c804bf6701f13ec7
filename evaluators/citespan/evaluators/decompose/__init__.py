"""From an answer to its claims: sentences, the assertions they bundle, and which of them are material."""

from __future__ import annotations

from citespan.evaluators.decompose.splitter import decompose

__all__ = ["decompose"]
