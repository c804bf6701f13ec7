"""Read the sign of what a text says: what is negated, and which words are opposites."""

from __future__ import annotations

import re
from collections.abc import Container

from citespan.evaluators.judges.lexical.lexicon import read_lexicon
from citespan.evaluators.judges.lexical.words import Text, stem_of

__all__ = [
    "COST_POLES",
    "OPPOSITES",
    "cost_pole",
    "denies",
    "is_negator",
    "negation_scopes",
    "negative_forms",
]

_NEGATORS = frozenset(
    [
        "not",
        "no",
        "never",
        "neither",
        "nor",
        "none",
        "nobody",
        "nothing",
        "nowhere",
        "without",
        "cannot",
        "hardly",
        "scarcely",
        "barely",
    ]
)
_DENYING = frozenset(
    stem_of(word)
    for word in [
        "fail",
        "lack",
        "deny",
        "refuse",
        "prevent",
        "avoid",
        "unable",
        "absent",
        "absence",
        "exclude",
        "except",
        "reject",
        "decline",
        "cease",
        "unlikely",
        "forbid",
        "prohibit",
        "ban",
        "disallow",
        "prohibited",
        "impossible",
        "refute",
        "disprove",
        "contradict",
        "instead",
        "rather",
        "rarely",
        "seldom",
        "stop",
        "false",
        "myth",
        "incorrect",
        "wrong",
        "untrue",
        "unless",
        "few",
        "little",
        "zero",
        "free",
    ]
)
"""Words that deny without a "not"; they never make a mismatch, they only explain one away."""

_RESTRICTING = frozenset(["few", "little", "only", "than", "rather"])

_NOT_A_NEGATION = frozenset(
    [
        ("not", "only"),
        ("not", "just"),
        ("not", "merely"),
        ("not", "least"),
        ("no", "doubt"),
        ("no", "matter"),
        ("no", "more"),
        ("no", "less"),
        ("no", "fewer"),
        ("no", "later"),
        ("no", "earlier"),
        ("not", "more"),
        ("not", "less"),
        ("not", "exceed"),
        ("none", "other"),
        ("nothing", "but"),
        ("no", "charge"),
        ("no", "cost"),
        ("no", "extra"),
        ("no", "additional"),
        ("no", "fee"),
        ("without", "charge"),
        ("without", "cost"),
    ]
)
_SCOPE = 7
"""Words that a negator reaches within its clause."""

_CLAUSE_BREAK = re.compile(r"[,;:.!?()—–]")
_SCOPE_ENDS = frozenset(
    ["but", "although", "though", "however", "because", "while", "whereas", "which", "who", "that", "and"]
)

_PREFIXES = ("un", "in", "im", "non", "dis", "ir", "il", "mis")

_FUNCTION_OPPOSITES = {
    "before": ("after",),
    "after": ("before",),
    "above": ("below",),
    "below": ("above",),
    "under": ("over",),
    "more": ("less", "fewer"),
    "less": ("more",),
    "fewer": ("more",),
    "most": ("least",),
    "least": ("most",),
    "up": ("down",),
    "down": ("up",),
    "inside": ("outside",),
    "outside": ("inside",),
}


def _opposites() -> dict[str, frozenset[str]]:
    related: dict[str, set[str]] = {}
    for words in read_lexicon("opposites"):
        head, *others = [stem_of(word) for word in words]
        for other in others:
            if other != head:
                related.setdefault(head, set()).add(other)
                related.setdefault(other, set()).add(head)
    return {stem: frozenset(others) for stem, others in related.items()}


OPPOSITES = _opposites()
"""The stems that say the opposite of a stem."""

FUNCTION_OPPOSITES = _FUNCTION_OPPOSITES
"""The same for words of grammar, by the word itself."""

COST_POLES = {
    "free": re.compile(
        r"\b(?:(?:at |with |for )?no (?:extra |additional |added |further )?(?:charge|cost|fee)s?"
        r"|free(?: of charge)?(?![- ](?:trade|speech|will|market|agent|dom|kick|space|time|press|to\b|from\b|of (?!charge)))"
        r"|without (?:extra |additional )?(?:charge|cost)s?|complimentary|gratis|costs? nothing"
        r"|included(?= (?:at|in|with|free|for)\b|[.,;]|$)|is not charged|are not charged|fee[- ]free)\b"
    ),
    "paid": re.compile(
        r"\b(?:paid(?= (?:add|option|extra|plan|upgrade|feature|service|tier|subscription|support|product))"
        r"|add[- ]?ons?|surcharges?|(?:extra|additional|separate) (?:charge|cost|fee|payment|purchase)s?"
        r"|for a (?:small |monthly |yearly |nominal |one-time )?(?:fee|charge)|(?:is|are) charged|sold separately"
        r"|charged separately|costs? (?:extra|more)|at (?:extra|additional) cost|requires? (?:payment|a paid)|fees? appl(?:y|ies))\b"
    ),
}
"""How a text says that something is to be had for nothing, or for money."""


def cost_pole(text: str) -> tuple[str, re.Match[str]] | None:
    """Return `free` or `paid` with the words that say so, or `None` if `text` says neither or both."""
    lowered = text.lower()
    free = COST_POLES["free"].search(lowered)
    paid = COST_POLES["paid"].search(lowered)
    if free is not None and paid is None:
        return "free", free
    if paid is not None and free is None:
        return "paid", paid
    return None


def is_negator(read: Text, index: int) -> bool:
    """Return whether word `index` negates what follows it."""
    word = read.words[index]
    if word not in _NEGATORS and not word.endswith(("n't", "n’t")):
        return False
    following = read.words[index + 1] if index + 1 < len(read.words) else ""
    return (word, following) not in _NOT_A_NEGATION


def negation_scopes(read: Text, first: int, last: int) -> dict[int, list[int]]:
    """Return every negator between two word indexes with the content words it reaches."""
    scopes: dict[int, list[int]] = {}
    for index in range(first, last):
        word = read.words[index]
        if (word in _NEGATORS or word.endswith(("n't", "n’t"))) and is_negator(read, index):
            scopes[index] = _scope(read, index, last)
    return scopes


def _scope(read: Text, negator: int, last: int) -> list[int]:
    reached: list[int] = []
    for index in range(negator + 1, min(negator + 1 + _SCOPE, last)):
        if _CLAUSE_BREAK.search(read.gap(index - 1)) and reached:
            break
        if read.words[index] in _SCOPE_ENDS and reached:
            break
        if read.keys[index]:
            reached.append(index)
    return reached


def denies(read: Text, first: int, last: int, *, shared: Container[int] = ()) -> bool:
    """Return whether any word between two indexes negates or denies, in whatever way.

    Args:
        read: The text.
        first: First word.
        last: Word after the last.
        shared: Words that the other text has too: a "failure" in both is what they speak of, no denial.
    """
    for index in range(first, last):
        word = read.words[index]
        if word in _NEGATORS or word.endswith(("n't", "n’t")):
            return True
        if (read.keys[index] in _DENYING or word in _RESTRICTING) and index not in shared:
            return True
    return False


def negative_forms(word: str) -> tuple[str, ...]:
    """Return the words that say "not" and `word` in one: `unavailable` for `available`, and the reverse."""
    forms = tuple(prefix + word for prefix in _PREFIXES)
    bare = tuple(word[len(prefix) :] for prefix in _PREFIXES if word.startswith(prefix) and len(word) > 5)
    return forms + bare
