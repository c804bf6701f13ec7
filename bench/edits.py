"""Make one false claim out of a true one: the edits by which a judge's attention is measured.

Each edit is seeded by the row it is made of, so that every run makes the same ones. The word lists here are
the editor's own: a judge that shares them would be measured on what it was built from.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import re
from collections.abc import Sequence

__all__ = ["EDITS", "edit"]

EDITS = ("number", "negation", "entity_swap", "passage_entity_swap", "role_swap", "strengthening")
"""The kinds of edit: another number; a "not" put in or taken out; a name replaced by one of another claim, or by
another one of the same passage; two names of the claim exchanged; a word that goes further (`all`, `always`)."""

_NUMBER_WORDS = (
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "twenty",
    "thirty",
    "fifty",
    "hundred",
    "thousand",
    "million",
    "billion",
)
_NUMBER = re.compile(
    r"(?<![\w.,\[])(?:\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?![\w\]]|[.,]\d)|\b(?:"
    + "|".join(_NUMBER_WORDS)
    + r")\b",
    re.IGNORECASE,
)
_LIST_NUMBER = re.compile(r"\d{1,2}[.)] ")
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|can|could|will|would|should|may|might|must|has been|have been|had been)\b(?! not\b|n't)"
)
_NEGATED = re.compile(r"\b(is|are|was|were|can|could|will|would|should|did|does|do|has|have|had) not\b")
_PAST = re.compile(r"(?<=[a-z\])\"'] )([a-z]{3,}ed)(?= (?!by\b))")
_NAME = re.compile(r"[A-Z][\w’'.-]*[\w](?:(?: (?:of|the|de|van|von))? [A-Z][\w’'.-]*[\w])*")
_NOT_NAMES = frozenset(
    re.findall(
        r"\w+",
        "The A An In On At It He She They We You I This That These Those There However While When Where If As For "
        "By But And Or Its His Her Their Some Many Most All After Before Since During From With To January February "
        "March April May June July August September October November December Monday Tuesday Wednesday Thursday "
        "Friday Saturday Sunday According Additionally Overall Yes No What Who How Did Do Is Are Was",
    )
)
_STRONGER = {
    "some": "all",
    "many": "all",
    "most": "all",
    "several": "all",
    "often": "always",
    "usually": "always",
    "typically": "always",
    "generally": "always",
    "commonly": "always",
    "sometimes": "always",
    "frequently": "always",
    "may": "must",
    "might": "must",
    "can": "must",
    "could": "must",
}
_WEAK = re.compile(r"\b(" + "|".join(_STRONGER) + r")\b")
_PLURAL_START = re.compile(r"^([A-Z][a-z]{3,}[^s\W]s)(?= (?:are|were|can|have|use|do)\b)")


def edit(
    kind: str, claim: str, passages: Sequence[str], *, seed: str, other_names: Sequence[str] = ()
) -> str | None:
    """Return `claim` with one edit that makes it false, or `None` where the edit does not apply.

    Args:
        kind: One of `EDITS`.
        claim: A claim that its passages support.
        passages: Those passages.
        seed: What the choice depends on, the row's id for example.
        other_names: Names from other claims of the same set, for `entity_swap`.
    """
    chance = random.Random(hashlib.sha256(f"{kind}:{seed}".encode()).digest())
    if kind == "number":
        edited = _other_number(claim, chance)
    elif kind == "negation":
        edited = _negated(claim)
    elif kind == "entity_swap":
        edited = _renamed(claim, other_names, chance)
    elif kind == "passage_entity_swap":
        edited = _renamed(claim, [name for passage in passages for name in names_in(passage)], chance)
    elif kind == "role_swap":
        edited = _exchanged(claim, names_in(claim))
    elif kind == "strengthening":
        edited = _strengthened(claim, chance)
    else:
        raise ValueError(f"no edit is called {kind!r}: choose one of {', '.join(EDITS)}")
    return None if edited is None or edited == claim else edited


def names_in(text: str) -> list[str]:
    """Return the capitalised names of `text` that do not open a sentence, each once."""
    found: dict[str, None] = {}
    for match in _NAME.finditer(text):
        opens = match.start() == 0 or text[max(match.start() - 2, 0) : match.start()] in (
            ". ",
            "! ",
            "? ",
            ".\n",
        )
        words = match[0].split()
        if words[0] in _NOT_NAMES or (opens and len(words) == 1) or len(match[0]) < 3:
            continue
        found[match[0]] = None
    return list(found)


def _other_number(claim: str, chance: random.Random) -> str | None:
    matches = [match for match in _NUMBER.finditer(claim) if not _LIST_NUMBER.match(claim[match.start() :])]
    if not matches:
        return None
    match = chance.choice(matches)
    return claim[: match.start()] + _changed(match[0], chance) + claim[match.end() :]


def _changed(written: str, chance: random.Random) -> str:
    if written[0].isalpha():
        other = chance.choice([word for word in _NUMBER_WORDS if word != written.lower()][:12])
        return other.capitalize() if written[0].isupper() else other
    plain = written.replace(",", "")
    if "." in plain:
        whole, places = plain.split(".")
        changed = f"{int(whole) + chance.choice([1, 2, 3, 7])}.{places}"
    elif len(plain) == 4 and 1000 <= int(plain) <= 2100:
        changed = str(int(plain) + chance.choice([-31, -12, -7, -3, -2, 2, 3, 5, 11]))
    else:
        value = int(plain)
        changed = str(value + max(1, round(value * chance.choice([0.2, 0.5, 1.0, 2.0]))))
    return f"{int(changed):,}" if "," in written else changed


def _negated(claim: str) -> str | None:
    match = _NEGATED.search(claim)
    if match is not None:
        return claim[: match.end(1)] + claim[match.end() :]
    match = _AUXILIARY.search(claim)
    if match is not None:
        if " " in match[1]:
            first, second = match[1].split()
            return claim[: match.start()] + f"{first} not {second}" + claim[match.end() :]
        return claim[: match.end()] + " not" + claim[match.end() :]
    match = _PAST.search(claim)
    return None if match is None else claim[: match.start()] + "never " + claim[match.start() :]


def _renamed(claim: str, pool: Sequence[str], chance: random.Random) -> str | None:
    """Return the claim with one of its names replaced by one of `pool` of about its length."""
    names = names_in(claim)
    if not names:
        return None
    target = chance.choice(names)
    words = set(claim.lower().split())
    fitting = [
        name
        for name in pool
        if not set(name.lower().split()) & words and abs(name.count(" ") - target.count(" ")) <= 1
    ]
    return claim.replace(target, chance.choice(fitting), 1) if fitting else None


def _exchanged(claim: str, names: Sequence[str]) -> str | None:
    """Return the claim with two names exchanged, unless they stand in one list where order says nothing."""
    for one, other in itertools.pairwise(names):
        start, end = claim.find(one), claim.rfind(other)
        between = claim[start + len(one) : end]
        if (
            end <= start
            or not re.search(r"[a-z]{3,}", between.replace(" and ", " "))
            or one in other
            or other in one
        ):
            continue
        return claim[:start] + other + between + one + claim[end + len(other) :]
    return None


def _strengthened(claim: str, chance: random.Random) -> str | None:
    match = _WEAK.search(claim)
    if match is not None:
        return claim[: match.start()] + _STRONGER[match[1]] + claim[match.end() :]
    ways: list[str] = []
    match = _PLURAL_START.search(claim)
    if match is not None:
        ways.append("All " + match[1][0].lower() + claim[1:])
    match = _AUXILIARY.search(claim)
    if match is not None:
        first = match[1].split()[0]
        place = match.start() + len(first)
        ways.append(claim[:place] + chance.choice([" always", " only", " invariably"]) + claim[place:])
    else:
        match = _PAST.search(claim)
        if match is not None:
            ways.append(
                claim[: match.start()] + chance.choice(["always ", "exclusively "]) + claim[match.start() :]
            )
    return chance.choice(ways) if ways else None
