"""The chat judge: a language model behind any OpenAI-compatible endpoint."""

from __future__ import annotations

from citespan.evaluators.judges.chat.judge import ChatJudge, Redactor
from citespan.evaluators.judges.chat.options import ChatOptions

__all__ = ["ChatJudge", "ChatOptions", "Redactor"]
