"""Words that say the same in most texts: groups of one meaning, by their stems."""

from __future__ import annotations

from citespan.evaluators.judges.lexical.lexicon import read_lexicon
from citespan.evaluators.judges.lexical.words import stem_of

__all__ = ["SYNONYMS"]


def _by_stem() -> dict[str, tuple[str, ...]]:
    related: dict[str, dict[str, None]] = {}
    for words in read_lexicon("synonyms") + read_lexicon("places"):
        stems = list(dict.fromkeys(stem_of(word) for word in words))
        for stem in stems:
            related.setdefault(stem, {}).update(dict.fromkeys(other for other in stems if other != stem))
    return {stem: tuple(others) for stem, others in related.items()}


SYNONYMS = _by_stem()
"""The stems that may stand for a stem."""
