"""Find a model's quote in a passage, though the model retyped it."""

from __future__ import annotations

import unicodedata

__all__ = ["find_quote"]

_SAME = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`\u02bc\u02b9\uff07\u2039\u203a", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u300c\u300d\u300e\u300f\uff02", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
}
"""Quotation marks and dashes by the plain one they stand for."""

_ROUND = " \"'.*_"
"""What models put around a quote and passages need not have there; an ellipsis is three dots by now."""


def find_quote(text: str, quote: str) -> str | None:
    """Return the part of `text` that `quote` means, exactly as `text` has it; `None` if there is none.

    White space, quotation marks, dashes, case, invisible characters and equivalent code points make no difference.
    A quote without a letter or digit names nothing.
    """
    wanted = _shape(quote)[0].strip()
    if not any(character.isalnum() for character in wanted):
        return None
    shape, starts, ends = _shape(text)
    for candidate in dict.fromkeys((wanted, wanted.strip(_ROUND))):
        found = _find(shape, starts, ends, candidate)
        if found is not None:
            return text[found[0] : found[1]]
    return None


def _find(shape: str, starts: list[int], ends: list[int], wanted: str) -> tuple[int, int] | None:
    """Return the first occurrence as a range of the text, both its ends between whole characters."""
    at = shape.find(wanted) if wanted else -1
    while at >= 0:
        last = at + len(wanted)
        begins = at == 0 or starts[at - 1] != starts[at]
        closes = last == len(shape) or starts[last] != starts[last - 1]
        if begins and closes:
            return starts[at], ends[last - 1]
        at = shape.find(wanted, at + 1)
    return None


def _shape(text: str) -> tuple[str, list[int], list[int]]:
    """Return the comparable form of `text`, and for each of its characters where it begins and ends in `text`."""
    shape: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for n, character in enumerate(text):
        for mark in _comparable(character):
            if mark == " " and shape and shape[-1] == " ":
                ends[-1] = n + 1
                continue
            shape.append(mark)
            starts.append(n)
            ends.append(n + 1)
    return "".join(shape), starts, ends


def _comparable(character: str) -> str:
    if character.isspace():
        return " "
    plain = _SAME.get(character)
    if plain is not None:
        return plain
    if character.isascii():
        return character.lower()
    if unicodedata.category(character) == "Cf":
        return ""
    spread = unicodedata.normalize("NFKD", character)
    return "".join(_SAME.get(mark, " " if mark.isspace() else mark) for mark in spread).casefold()
