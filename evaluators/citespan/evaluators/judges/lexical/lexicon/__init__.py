"""The judge's word lists, as plain text files that a person can read and mend."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["read_lexicon", "read_word_set"]


def read_lexicon(name: str) -> list[list[str]]:
    """Return the lines of the list called `name` as words; comments and empty lines are left out."""
    text = files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8")
    return [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def read_word_set(name: str) -> frozenset[str]:
    """Return the words of the list called `name`, where its lines mean nothing."""
    return frozenset(word for line in read_lexicon(name) for word in line)
