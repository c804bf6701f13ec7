"""Split a sentence into the assertions it bundles, only where each part stands alone as one.

Conservative on purpose: on labelled sentences every wrong split makes a supported sentence look unsupported.
A sentence is split between independent clauses (`...; ...`, `..., and the server logs it`) and between two
predicates of one subject (`X is never retried and surfaces at once`), never inside conditions, comparisons,
relative or reported clauses, quotes, parentheses or lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from citespan.evaluators.decompose.english import (
    ARTICLES,
    BASE_FORMS,
    BE,
    FINITE_AUXILIARIES,
    MODALS,
    PAST_FORMS,
    PREPOSITIONS,
    PRONOUNS,
    S_FORMS,
    SCOPE_WORDS,
    is_adverb,
)

__all__ = ["Atom", "split_atoms"]


@dataclass(frozen=True, slots=True)
class Atom:
    """One assertion of a sentence."""

    start: int
    """First code point in the sentence."""

    end: int
    """One past its last code point in the sentence."""

    subject: str = ""
    """The subject it shares with the assertion before it, to be restated."""


_LONGEST = 2000
"""Sentences beyond this many code points are left whole: no person wrote them as one."""

_OPENING = 14
"""Words of a clause in which its subject and finite verb are looked for."""

_TOKEN = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_SEMICOLON = re.compile(r"[;；]\s*(?=\S)")
_JOINT = re.compile(r"(?P<comma>,)?\s+(?P<word>and|but)\s+|,\s+(?=\w)|\s{3,}(?=(?-i:[A-Z]))")
"""`, and`, `and`; a comma or the space of a marker, which only count behind one."""
_QUOTES = re.compile(r"[\"“”«»„‟「」『』]")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")


def split_atoms(text: str, marker_ends: frozenset[int], language: str) -> tuple[Atom, ...]:
    """Return the assertions of a sentence in order; the whole of it where it asserts one thing.

    Args:
        text: The sentence with its markers turned into spaces.
        marker_ends: Offsets one past each marker run: a joint right behind one is surer.
        language: ISO 639-1 code; beyond semicolons only English is split.
    """
    whole = Atom(0, len(text))
    if len(text) > _LONGEST or text.rstrip().endswith(("?", "？", "؟")):
        return (whole,)
    atoms: list[Atom] = []
    for clause in _clauses(text, marker_ends, language):
        atoms.extend(_predicates(text, clause) if language == "en" else (clause,))
    return tuple(atoms) or (whole,)


def _clauses(text: str, marker_ends: frozenset[int], language: str) -> Iterator[Atom]:
    """Yield the independent clauses of a sentence."""
    start = 0
    for left_end, right_start in _clause_joints(text, marker_ends, language):
        if left_end > start:
            yield Atom(start, left_end)
            start = right_start
    yield Atom(start, len(text))


def _clause_joints(text: str, marker_ends: frozenset[int], language: str) -> Iterator[tuple[int, int]]:
    """Yield where a clause ends and the next starts, left to right; each part stands alone."""
    start = 0
    semicolons = [(match, True) for match in _SEMICOLON.finditer(text)]
    commas = [(match, False) for match in _JOINT.finditer(text)] if language == "en" else []
    for match, is_semicolon in sorted([*semicolons, *commas], key=lambda pair: pair[0].start()):
        if match.start() < start or _is_enclosed(text, match.start()):
            continue
        left, right = text[start : match.start()], text[match.end() :]
        is_marked = _has_marker(marker_ends, start + len(left.rstrip()), match.end())
        if is_semicolon:
            stands = _stand_apart(left, right.partition(";")[0], language, is_marked=is_marked)
        else:
            stands = (is_marked or match["comma"] is not None) and _are_independent(left, right)
        if stands:
            yield match.start(), match.end()
            start = match.end()


def _is_enclosed(text: str, at: int) -> bool:
    """Return whether `at` stands inside quotes or parentheses."""
    before = text[:at]
    is_open = before.count("(") + before.count("（") > before.count(")") + before.count("）")
    return is_open or len(_QUOTES.findall(before)) % 2 == 1


def _has_marker(marker_ends: frozenset[int], start: int, end: int) -> bool:
    """Return whether a marker run ends between the last word of a clause and the joint behind it."""
    return any(at in marker_ends for at in range(start + 1, end + 1))


def _stand_apart(left: str, right: str, language: str, *, is_marked: bool) -> bool:
    """Return whether the two sides of a semicolon each assert something."""
    if ":" in left or "：" in left:
        return language == "en" and _are_independent(left.rpartition(":")[2], right)
    if is_marked:
        return _length(left) >= 2 and _length(right) >= 2
    return _are_independent(left, right) if language == "en" else min(_length(left), _length(right)) >= 4


def _length(text: str) -> int:
    """Return the number of words, two characters of Chinese, Japanese or Korean counted as one."""
    wide = len(_WIDE.findall(text))
    return wide // 2 + len(_TOKEN.findall(_WIDE.sub(" ", text)))


def _are_independent(left: str, right: str) -> bool:
    first, second = _words(left), _words(right)[:_OPENING]
    if not first or first[0] in PREPOSITIONS or first[0].endswith("ing") or ":" in left:
        return False
    if not SCOPE_WORDS.isdisjoint(first) or (
        "," in left and second[:1] != [w for w in second[:1] if w in PRONOUNS]
    ):
        return False
    return _is_clause(first) and _is_clause(second)


def _words(text: str) -> list[str]:
    return [match[0].casefold().replace("’", "'") for match in _TOKEN.finditer(text)]


def _is_clause(words: list[str]) -> bool:
    """Return whether the words open with a subject and its finite verb."""
    while words and is_adverb(words[0]):
        words = words[1:]
    if len(words) < 3 or words[0] in PREPOSITIONS | SCOPE_WORDS | FINITE_AUXILIARIES:
        return False
    for n, word in enumerate(words[1:], 1):
        if word in SCOPE_WORDS:
            return False
        if word in FINITE_AUXILIARIES:
            return n + 1 < len(words)
        if _is_lexical_verb(words, n):
            return True
    return False


def _is_lexical_verb(words: list[str], n: int) -> bool:
    """Return whether the word at `n` is a finite full verb, as surely as its neighbours tell."""
    word, before = words[n], words[n - 1]
    following = words[n + 1] if n + 1 < len(words) else ""
    if before in ARTICLES | PREPOSITIONS and before not in PRONOUNS:
        return False
    if before in ("you", "they", "we", "i"):
        return word in BASE_FORMS or word in PAST_FORMS
    if not following or following in ("and", "or"):
        return False
    if word in PAST_FORMS and not word.endswith("ed"):
        return True
    return (
        word in S_FORMS | PAST_FORMS and following not in PREPOSITIONS and following not in FINITE_AUXILIARIES
    )


def _is_plural_verb(words: list[str], n: int) -> bool:
    """Return whether the word at `n` is the verb of a bare plural that opens the clause: `Tokens expire after`."""
    is_bare = n <= 2 and words[0] not in ARTICLES and words[n - 1].endswith("s")
    following = words[n + 1] if n + 1 < len(words) else ""
    return (
        is_bare and words[n] in BASE_FORMS and (following in ARTICLES | PREPOSITIONS or is_adverb(following))
    )


def _predicates(text: str, clause: Atom) -> Iterator[Atom]:
    """Yield the clause, cut between predicates that share its subject."""
    start = clause.start
    subject = ""
    for match in _JOINT.finditer(text, clause.start, clause.end):
        is_series = match["comma"] is not None and "," in text[start : match.start()]
        if match["word"] is None or is_series or _is_enclosed(text, match.start()):
            continue
        shared = _subject(text[start : match.start()]) if not subject else None
        left = f"{subject} {text[start : match.start()]}" if subject else text[start : match.start()]
        shared = shared or _subject(left)
        if shared is None or not _is_second_predicate(
            _words(left), _words(text[match.end() : clause.end]), shared
        ):
            continue
        yield Atom(start, match.start(), subject)
        start, subject = match.end(), shared.text
    yield Atom(start, clause.end, subject)


@dataclass(frozen=True, slots=True)
class _Subject:
    """The subject of a clause and its verb."""

    text: str
    """The subject as written."""

    verb: str
    """Its finite verb, lower case."""

    rest: int
    """Number of words after the verb."""


def _subject(left: str) -> _Subject | None:
    """Return the subject of a clause that opens with one, if it is short and plain."""
    tokens = list(_TOKEN.finditer(left))
    words = [token[0].casefold().replace("’", "'") for token in tokens]
    if not words or not SCOPE_WORDS.isdisjoint(words) or words[0] in PREPOSITIONS | {"there", "here", "note"}:
        return None
    verbs = [n for n, word in enumerate(words) if n and word in FINITE_AUXILIARIES]
    verbs = verbs or [
        n for n in range(1, len(words)) if _is_lexical_verb(words, n) or _is_plural_verb(words, n)
    ]
    if not verbs:
        return None
    last = verbs[0]
    while last > 1 and is_adverb(words[last - 1]):
        last -= 1
    text = left[tokens[0].start() : tokens[last - 1].end()]
    if last > 7 or is_adverb(words[0]) or words[0].endswith("ing") or re.search(r"[,:;()]", text):
        return None
    return _Subject(text, words[verbs[0]], len(words) - verbs[0] - 1)


_SINGULAR = frozenset(("is", "was", "has", "does", "isn't", "wasn't", "hasn't", "doesn't"))
_PLURAL = frozenset(("are", "were", "have", "do", "aren't", "weren't", "haven't", "don't"))
_OBJECTS = frozenset(("to", "it", "them", "you", "him", "her", "us"))


def _is_second_predicate(left: list[str], right: list[str], subject: _Subject) -> bool:
    """Return whether `right` opens with a verb of its own that agrees with the subject."""
    while right and is_adverb(right[0]):
        right = right[1:]
    if len(right) < 2 or subject.rest < 1:
        return False
    verb, following, before = right[0], right[1], left[-1]
    is_past = subject.verb in PAST_FORMS
    is_plural = subject.verb in _PLURAL or (subject.verb in BASE_FORMS and not is_past)
    is_singular = subject.verb in _SINGULAR or (subject.verb in S_FORMS and not is_past)
    if verb in FINITE_AUXILIARIES:
        agrees = verb in MODALS or (verb in _SINGULAR and not is_plural)
        return agrees or (verb in _PLURAL and is_plural) or (verb in BE and is_past)
    is_strong = following in ARTICLES | _OBJECTS or is_adverb(following) or following[0].isdigit()
    is_object = is_strong or (following not in PREPOSITIONS | {"and", "or"} and not before.endswith("s"))
    if verb in S_FORMS and is_singular:
        return is_object
    if verb in BASE_FORMS and subject.verb in _PLURAL:
        return is_strong and before.endswith(("ed", "en", "ly", "able"))
    if verb in PAST_FORMS and is_past and subject.rest >= 2:
        return is_object or (not verb.endswith("ed") and following not in ("and", "or"))
    return False
