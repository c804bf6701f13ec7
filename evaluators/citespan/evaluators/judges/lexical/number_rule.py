"""The rules `number` and `qualifier`: every figure of a claim must be in the passage, where it speaks of the same."""

from __future__ import annotations

from collections.abc import Iterator

from citespan.evaluators.judges.lexical.alignment import Aligned
from citespan.evaluators.judges.lexical.finding import Finding
from citespan.evaluators.judges.lexical.quantities import Quantity
from citespan.evaluators.judges.lexical.readings import PassageReading
from citespan.evaluators.judges.lexical.windows import Search
from citespan.evaluators.judges.lexical.words import Text

__all__ = ["find_numbers"]

_PLAIN = ("count", "year", "code", "ordinal", "fraction")
"""Kinds that count things or name something, and measure nothing."""

_NEIGHBOURHOOD = 4
"""Words to each side by which two equal figures are known to be about the same."""

_APPROXIMATE = 0.05
"""How far an "about" figure may be off."""

_COUNTED = ("no", "nos", "vol", "fig", "pp", "p", "ch")
"""Abbreviations that a figure follows, which is no list number."""

_LIMITS = ("<=", ">=", "<", ">")


def find_numbers(aligned: Aligned, found: Search) -> Iterator[Finding]:
    """Yield what is wrong with the claim's figures, at most one finding a figure."""
    nearby = [q for q in aligned.passage.quantities if aligned.first <= q.first < aligned.last]
    for quantity in aligned.claim.quantities:
        if not _is_checked(aligned.claim_text, quantity):
            continue
        rival = _rival_beside_the_same_word(aligned, quantity, nearby)
        equal = [] if rival is not None else _equal_in_context(aligned, found, quantity)
        if equal:
            yield from _looser(aligned.claim_text, quantity, equal)
        else:
            yield _missing(aligned, quantity, nearby, rival)


def _is_checked(read: Text, quantity: Quantity) -> bool:
    """Return whether a figure says something: not "first", not "one of", not a list number or a reference mark."""
    if quantity.kind in ("ordinal", "fraction") or (quantity.value == 1 and quantity.written == "one"):
        return False
    return not _is_mark(read, quantity)


def _is_mark(read: Text, quantity: Quantity) -> bool:
    start, end = read.starts[quantity.first], read.ends[quantity.first]
    if read.text[max(start - 1, 0) : start] == "[" and read.text[end : end + 1] in ("]", ",", "-"):
        return True
    before = read.words[quantity.first - 1] if quantity.first else ""
    opens = start == 0 or (
        before not in _COUNTED and read.text[max(start - 2, 0) : start] in (". ", ": ", ".\n")
    )
    return opens and read.text[end : end + 2] in (". ", ") ") and (quantity.value or 0) < 100


def _equal_in_context(aligned: Aligned, found: Search, quantity: Quantity) -> list[tuple[Text, Quantity]]:
    """Return the equal figures in the window, or those elsewhere with a word of the claim beside them."""
    inside: list[tuple[Text, Quantity]] = []
    outside: list[tuple[Text, Quantity]] = []
    for passage in found.passages:
        for other in passage.quantities:
            if not _is_equal(quantity, other) or _is_mark(passage.text, other):
                continue
            if passage is aligned.passage and aligned.first <= other.first < aligned.last:
                inside.append((passage.text, other))
            elif _share_neighbours(aligned.claim_text, quantity, passage, other):
                outside.append((passage.text, other))
    return inside or outside


def _share_neighbours(read: Text, quantity: Quantity, passage: PassageReading, other: Quantity) -> bool:
    ours = _neighbours(read, quantity)
    return not ours or bool(ours & _neighbours(passage.text, other))


def _neighbours(read: Text, quantity: Quantity) -> set[str]:
    first, last = max(quantity.first - _NEIGHBOURHOOD, 0), quantity.last + _NEIGHBOURHOOD
    return {key for key in read.keys[first : quantity.first] + read.keys[quantity.last - 1 : last] if key}


def _is_equal(one: Quantity, other: Quantity) -> bool:
    if one.value is None or other.value is None:
        return one.value is other.value and one.written == other.written
    if one.kind in _PLAIN and other.kind in _PLAIN:
        return _is_near(one.value, other.value, one) or _is_short_year(one, other)
    if one.kind in _PLAIN or other.kind in _PLAIN:
        plain = one if one.kind in _PLAIN else other
        return plain.kind == "count" and not plain.unit and _is_near(one.value, other.value, one)
    return one.kind == other.kind and _is_near(one.amount or 0.0, other.amount or 0.0, one)


def _is_short_year(one: Quantity, other: Quantity) -> bool:
    return (
        other.kind == "year"
        and one.kind == "count"
        and not one.unit
        and one.value == (other.value or 0) % 100
    )


def _is_near(one: float, other: float, quantity: Quantity) -> bool:
    if one == other:
        return True
    if one == 0 or other == 0 or quantity.kind == "year":
        return False
    distance = abs(one - other) / max(abs(one), abs(other))
    if quantity.bound == "~":
        return distance <= _APPROXIMATE
    if quantity.bound == ">":
        return 0 <= (other - one) / max(abs(one), abs(other)) <= 2 * _APPROXIMATE
    digits = len(quantity.written.replace(",", "").replace(".", "").strip("0"))
    return distance <= 1e-9 or (digits >= 2 and one >= 1e4 and distance <= 0.5 / 10 ** (digits - 1))


def _rival_beside_the_same_word(
    aligned: Aligned, quantity: Quantity, nearby: list[Quantity]
) -> Quantity | None:
    """Return another figure that stands beside the same word ("March 4" for "March 5"), if none equal does."""
    read = aligned.claim_text
    beside = _beside(read, quantity)
    if not beside:
        return None
    rivals = [
        other
        for other in nearby
        if other.value is not None
        and (other.kind == quantity.kind or {other.kind, quantity.kind} == {"count", "ordinal"})
        and beside & _beside(aligned.passage_text, other)
    ]
    if any(_is_equal(quantity, other) for other in rivals):
        return None
    taken = {q.value for q in aligned.claim.quantities}
    return next((other for other in rivals if other.value not in taken and other.bound != "~"), None)


def _beside(read: Text, quantity: Quantity) -> set[tuple[str, str]]:
    """Return the words right before and after a figure, with their side; a measure's unit is no such word."""
    beside: set[tuple[str, str]] = set()
    if quantity.first and read.gap(quantity.first - 1) == " ":
        key = read.keys[quantity.first - 1]
        if key and key[0] != "#":
            beside.add(("before", key))
    if quantity.kind == "count" and quantity.unit:
        beside.add(("after", quantity.unit))
    return beside


def _missing(aligned: Aligned, quantity: Quantity, nearby: list[Quantity], rival: Quantity | None) -> Finding:
    claimed = _shown(aligned.claim_text, quantity)
    if rival is None:
        rival = next((other for other in nearby if _is_rival(aligned, quantity, other)), None)
    if rival is None:
        return Finding("number", f'The passage does not give the figure "{claimed}" for this.')
    said = _shown(aligned.passage_text, rival)
    return Finding(
        "number", f'The passage says "{said}"; the claim says "{claimed}".', is_clash=True, place=rival.first
    )


def _is_rival(aligned: Aligned, quantity: Quantity, other: Quantity) -> bool:
    if other.value is None or other.kind == "ordinal":
        return False
    if quantity.kind in _PLAIN:
        is_like = other.kind == quantity.kind and (
            quantity.kind != "count" or other.unit == quantity.unit != ""
        )
        return is_like and other.first not in aligned.here
    return other.kind == quantity.kind


def _looser(read: Text, quantity: Quantity, equal: list[tuple[Text, Quantity]]) -> Iterator[Finding]:
    """Yield that the passage gives the figure for another unit, or only as a limit."""
    same_kind = [(text, other) for text, other in equal if other.kind == quantity.kind]
    claimed = _shown(read, quantity)
    if same_kind and all(other.qualifier != quantity.qualifier for _, other in same_kind):
        said = _shown(*same_kind[0])
        yield Finding("qualifier", f'The passage says "{said}"; the claim says "{claimed}".', is_partial=True)
    elif quantity.bound == "=" and all(other.bound in _LIMITS for _, other in equal):
        said = _with_limit(*equal[0])
        yield Finding("qualifier", f'The passage says "{said}"; the claim says "{claimed}".', is_partial=True)


def _shown(read: Text, quantity: Quantity) -> str:
    """Return a quantity as its text writes it, with its sign or unit, the noun it counts or the month before it."""
    start, end = read.starts[quantity.first], read.ends[quantity.last - 1]
    if start and read.text[start - 1] in "$€£¥":
        start -= 1
    if read.text[end : end + 1] == "%":
        end += 1
    elif quantity.kind == "count" and quantity.unit and quantity.last < len(read.words):
        end = read.ends[quantity.last]
    elif quantity.kind == "count" and _beside(read, quantity):
        start = read.starts[quantity.first - 1]
    return read.text[start:end]


def _with_limit(read: Text, quantity: Quantity) -> str:
    first = max(quantity.first - 2, 0)
    return read.text[read.starts[first] : read.ends[quantity.last - 1]]
