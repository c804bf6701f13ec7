"""Read the sign of what a text says: what is negated, and which words are opposites."""

from __future__ import annotations

import re
from dataclasses import dataclass

from citespan.evaluators.judges.lexical.lexicon import read_lexicon
from citespan.evaluators.judges.lexical.words import Text, stem_of

__all__ = [
    "COST_POLES",
    "FUNCTION_OPPOSITES",
    "OPPOSITES",
    "CostPole",
    "cost_pole",
    "denials",
    "is_negator",
    "negation_scopes",
    "negative_keys",
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

_RESTRICTING = frozenset(["few", "little", "rather", "unless", "barely", "hardly"])

_UNSTATED = frozenset(["if", "whether", "why", "unless", "until"])

_SPEAKER = frozenset(["i", "i'm", "i've"])
_PRONOUNS = frozenset(["it", "its", "it's", "he", "she", "they", "we", "i", "the", "this", "that", "there"])
_TELLING = frozenset(
    stem_of(word) for word in ("mention", "specify", "state", "clear", "sure", "provide", "heard")
)

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

_SURE_PREFIXES = ("un", "non")
_PREFIXES = (*_SURE_PREFIXES, "in", "im", "il", "ir", "dis")
_ADJECTIVE_ENDINGS = ("able", "ible", "ive", "ent", "al", "ate", "ect", "ete", "ar")
_SHORTEST_KEY = 4
"""Letters of the shortest stem that may be a negative form or be left of one."""


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

FUNCTION_OPPOSITES = {
    "before": frozenset(["after"]),
    "after": frozenset(["before"]),
    "above": frozenset(["below"]),
    "below": frozenset(["above"]),
    "under": frozenset(["over"]),
    "more": frozenset(["less", "fewer"]),
    "less": frozenset(["more"]),
    "fewer": frozenset(["more"]),
    "most": frozenset(["least"]),
    "least": frozenset(["most"]),
    "up": frozenset(["down"]),
    "down": frozenset(["up"]),
    "inside": frozenset(["outside"]),
    "outside": frozenset(["inside"]),
}
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


@dataclass(frozen=True, slots=True)
class CostPole:
    """Whether something is to be had for nothing or for money, in the text's own words."""

    name: str
    """`free` or `paid`."""

    said: str
    """The words that say so."""


def cost_pole(text: str) -> CostPole | None:
    """Return the cost that `text` states, or `None` if it states neither or both."""
    lowered = text.lower()
    found = {name: pattern.search(lowered) for name, pattern in COST_POLES.items()}
    stated = [CostPole(name, text[match.start() : match.end()]) for name, match in found.items() if match]
    return stated[0] if len(stated) == 1 else None


def is_negator(read: Text, index: int) -> bool:
    """Return whether word `index` negates what follows it."""
    word = read.words[index]
    if word not in _NEGATORS and not word.endswith(("n't", "n’t")):
        return False
    following = read.words[index + 1] if index + 1 < len(read.words) else ""
    return (word, following) not in _NOT_A_NEGATION


def negation_scopes(read: Text, first: int, last: int) -> dict[int, list[int]]:
    """Return every negator between two word indexes with the content words it reaches.

    Left out is what negates nothing that is stated: a "No," that opens an answer, a "not" in a condition or
    question ("if not", "why ... not"), what the speaker says of themselves ("I do not know"), and what is only
    said not to be told ("is not mentioned").
    """
    scopes: dict[int, list[int]] = {}
    for index in range(first, last):
        word = read.words[index]
        if word == "non" and read.gap(index) == "-" and index + 1 < last:
            scopes[index] = [index + 1]
            continue
        if not (word in _NEGATORS or word.endswith(("n't", "n’t"))) or not is_negator(read, index):
            continue
        if _opens_answer(read, index) or not _UNSTATED.isdisjoint(read.words[max(index - 5, first) : index]):
            continue
        if not _SPEAKER.isdisjoint(read.words[max(index - 2, first) : index]):
            continue
        reached = _scope(read, index, last)
        if not reached or read.keys[reached[0]] not in _TELLING:
            scopes[index] = reached
    return scopes


def _opens_answer(read: Text, index: int) -> bool:
    following = read.words[index + 1] if index + 1 < len(read.words) else ""
    return read.words[index] == "no" and (read.gap(index).startswith(",") or following in _PRONOUNS)


def _scope(read: Text, negator: int, last: int) -> list[int]:
    reached: list[int] = []
    for index in range(negator + 1, min(negator + 1 + _SCOPE, last)):
        word = read.words[index]
        if reached and (
            word in _SCOPE_ENDS or word in _NEGATORS or _CLAUSE_BREAK.search(read.gap(index - 1))
        ):
            break
        if read.keys[index]:
            reached.append(index)
    return reached


def denials(read: Text, first: int, last: int) -> list[int]:
    """Return the words between two indexes that deny without a "not": `fails`, `lacks`, `prevents`."""
    return [
        index
        for index in range(first, last)
        if read.keys[index] in _DENYING or read.words[index] in _RESTRICTING
    ]


def negative_keys(word: str, key: str) -> list[str]:
    """Return the stems that say "not" and a word in one, and the reverse: `unavail` for `available`.

    The prefixes in-, im-, il-, ir- and dis- are taken for a "not" only before a word that ends as adjectives do:
    "increase" is not the opposite of "crease".

    Args:
        word: A word in lower case.
        key: Its stem.
    """
    prefixes = _PREFIXES if word.endswith(_ADJECTIVE_ENDINGS) else _SURE_PREFIXES
    keys = [prefix + key for prefix in prefixes]
    keys += [key.removeprefix(prefix) for prefix in prefixes if key.startswith(prefix)]
    return [other for other in keys if len(other) >= _SHORTEST_KEY]
