"""The embedded judge: words, numbers and signs, weighed by a small fitted model."""

from citespan.evaluators.judges.lexical.judge import LexicalJudge

__all__ = ["LexicalJudge"]
