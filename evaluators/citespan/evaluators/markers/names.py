"""Read what a marker names: lists, ranges, and labels led by a word or followed by a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from citespan.evaluators.markers.grammar import KEYWORDS
from citespan.evaluators.markers.passage_names import PassageNames

__all__ = ["MarkerName", "read_names"]


@dataclass(frozen=True, slots=True)
class MarkerName:
    """One thing that a marker names."""

    label: str
    """The label as the run's passages know it, else as written without the word that leads it."""

    is_known: bool
    """Whether a passage of the run is called so."""

    is_led: bool = False
    """Whether a word such as `Source` or `ID:` leads it: then a number is meant as a label."""


_KEYWORD = re.compile(
    rf"{KEYWORDS}(?:[ \t]*[:#=_-][ \t]*|[ \t]+(?:no\.?|nr\.?|#)?[ \t]*|(?=\d))", re.IGNORECASE
)
_LEADING_WORD = re.compile(r"^(?:see|cf\.?|also|per|e\.g\.,?|siehe|vgl\.?)[ \t]+", re.IGNORECASE)
_LOCATOR = re.compile(
    r"[ \t]*[,;:#(]?[ \t]*(?<![^\W_])(?:(?:pages?|pp?|lines?|sections?|sec|paragraphs?|para|chapters?|ch|slides?"
    r"|seiten?|s|página|pág)(?:[ \t]*[.=:]|[ \t])|[§第])[ \t]*\d[\w.]*(?:[ \t]*-[ \t]*\d[\w.]*)?[ \t]*[页)]?",
    re.IGNORECASE,
)
_MINOR_LOCATOR = re.compile(r"(?:#[^#]{1,60}|:[ \t]?\d{1,6}(?:-\d{1,6})?|[ \t]L\d+(?:-L?\d+)?)")
_PAIRS = re.compile(r"[ \t]*[^\W\d_][\w ]{0,20}:[ \t]*(?P<value>[^,;:]{1,120})")
_SEPARATOR = re.compile(r"[ \t]*(?:[,;&、]|\s(?:and|und|y|et|-)\s)[ \t]*", re.IGNORECASE)
_RANGE = re.compile(
    r"(?P<lead>[^\W\d_]{0,12}[_-]?)(?P<first>\d{1,9})[ \t]*(?:[-~]|\.\.|to|bis)[ \t]*(?:(?P=lead))?(?P<last>\d{1,9})"
)
_RECORDS = re.compile(r"(?P<set>[^\W\d_][\w ]{0,30}?)[ \t]*\((?P<ids>[^()]{1,300})\)")
_PASSAGE_SETS = re.compile(r"sources?|reports?|documents?|text units?|chunks?", re.IGNORECASE)
_TURN = re.compile(r"turn\d{1,4}[a-z]{1,20}\d{1,4}")
_PRIVATE = re.compile(r"(?:[\ue200-\ue206]|\\ue20[0-6])+")
_LINES = re.compile(r"L\d+(?:-L?\d+)?")
_NAME_LIKE = re.compile(r"(?=[^\s]*[^\W_])[^\s\[\](){}<>|,;=+*]{1,120}")
_FILE_LIKE = re.compile(
    r"[^\[\](){}<>|,;/\\\n]{1,120}\.(?:pdf|docx?|pptx?|xlsx?|csv|txt|md|html?|json|xml|rtf|odt|eml|png|jpe?g)"
)
_NAMES_A_SOURCE = re.compile(
    r"(?:source|document|doc|file|citation|reference|ref)s?[ \t]*:[ \t]*", re.IGNORECASE
)
_TITLE = re.compile(r"[^\W_][^\[\](){}<>|\n]{0,80}")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻˒ʼ·", "0123456789-,,,")

_LISTED = 20
"""Most unknown members of a range that are listed one by one; beyond that its last one stands for them."""


def read_names(form: str, text: str, names: PassageNames) -> tuple[MarkerName, ...]:
    """Return what a marker names, in order; nothing if `text` is no list of names.

    Args:
        form: Name of the marker's form in the grammar.
        text: What its pattern's group `names` matched, folded.
        names: What the run's passages can be called.
    """
    match form:
        case "graphrag":
            return tuple(_graph_records(text, names))
        case "dagger":
            return _first_known(text.partition("†")[::2], names, or_text=text.partition("†")[0])
        case "excerpt":
            return _excerpt(text, names)
        case "turn":
            return tuple(_as_written(name, names) for name in _TURN.findall(text))
        case "private_use":
            parts = [part for part in _PRIVATE.split(text) if part and not _LINES.fullmatch(part)]
            return tuple(_as_written(part, names) for part in parts)
        case "nested":
            return _read_list(re.sub(r"\][ \t]*[,;]?[ \t]*\[", ",", text).strip("[] "), names)
        case "bracket_range":
            return _read_list(re.sub(r"[\[\] ]", "", text), names)
        case "superscript":
            return _read_list(text.translate(_SUPERSCRIPTS), names)
        case "address":
            return (_as_written(text, names),)
        case _:
            return _read_list(text, names)


def _as_written(text: str, names: PassageNames, *, is_led: bool = True) -> MarkerName:
    return MarkerName(text, names.find(text) is not None, is_led)


def _first_known(spellings: Iterable[str], names: PassageNames, *, or_text: str) -> tuple[MarkerName, ...]:
    """Return the first spelling that a passage is called by, else the text itself."""
    known = next((spelling for spelling in spellings if spelling and names.find(spelling)), None)
    return (MarkerName(known or or_text.strip(), known is not None, is_led=True),)


def _excerpt(text: str, names: PassageNames) -> tuple[MarkerName, ...]:
    document, _, excerpt = text.rstrip("]").partition("[")
    joined = [f"{document}{sign}{excerpt}" for sign in ":#-./"]
    has_digit = any(char.isdigit() for char in document)
    return _first_known([text, *joined, *([document] if has_digit else [])], names, or_text=text)


def _graph_records(text: str, names: PassageNames) -> Iterator[MarkerName]:
    """Yield the records of `Sources (2, 7, +more); Entities (3)`: a number alone names a source only."""
    for record in _RECORDS.finditer(text):
        kind = record["set"].strip()
        for item in re.split(r"[,;]", record["ids"]):
            number = item.strip()
            if number and not number.startswith("+"):
                full = f"{kind} ({number})"
                plain = [number] if _PASSAGE_SETS.fullmatch(kind) else []
                spellings = [full, f"{kind}:{number}", f"{kind} {number}", f"{kind}-{number}", *plain]
                yield from _first_known(spellings, names, or_text=number if plain else full)


def _read_list(text: str, names: PassageNames) -> tuple[MarkerName, ...]:
    """Return the members of a list, or nothing if it holds prose."""
    if text.isdigit():
        return (MarkerName(text, names.find(text) is not None),)
    text = _LEADING_WORD.sub("", text.strip(), count=1)
    whole = _read_one(text, names)
    if whole is not None and whole.is_known:
        return (whole,)
    pair = _read_pairs(text, names)
    if pair is not None:
        return (pair,)
    found: list[MarkerName] = []
    is_led = False
    has_prose = False
    for part in _SEPARATOR.split(text):
        if not part or _LOCATOR.fullmatch(part):
            continue
        members = _read_range(part, names) or _one_or_none(part, names)
        has_prose = has_prose or not members
        is_led = is_led or any(member.is_led for member in members)
        found += [MarkerName(member.label, member.is_known, is_led) for member in members]
    if has_prose and not any(member.is_known for member in found):
        return ()
    return tuple(member for member in found if member.is_known) if has_prose else tuple(found)


def _one_or_none(text: str, names: PassageNames) -> tuple[MarkerName, ...]:
    one = _read_one(text, names)
    return () if one is None else (one,)


def _read_one(text: str, names: PassageNames) -> MarkerName | None:
    """Return the one name that `text` is, known in any of its spellings, or `None` if it is prose."""
    text = text.strip()
    spellings = dict.fromkeys(_spellings(text))
    known = next((spelling for spelling in spellings if names.find(spelling)), None)
    led = _KEYWORD.match(text)
    is_led = led is not None and led.end() < len(text)
    if known is not None:
        return MarkerName(known, is_known=True, is_led=is_led)
    bare = text.lstrip("^#@ ")
    bare = bare[led.end() :].strip() if led is not None and _is_separate(led[0], bare) else bare
    names_source = led is not None and _NAMES_A_SOURCE.fullmatch(led[0]) is not None
    if _NAME_LIKE.fullmatch(bare) or _FILE_LIKE.fullmatch(bare) or (names_source and _TITLE.fullmatch(bare)):
        is_meant = is_led and (names_source or any(char.isdigit() for char in bare))
        return MarkerName(bare, is_known=False, is_led=is_meant)
    return None


def _is_separate(lead: str, text: str) -> bool:
    """Return whether the leading word stands apart: `ID:0`, `Source 1`; `doc-99` and `doc9` are names as a whole."""
    return text.startswith(lead) and not lead[-1].isalnum() and lead[-1] not in "-_"


def _spellings(text: str) -> Iterator[str]:
    """Yield `text` and what is left of it without sigils, a leading word, a page."""
    yield text
    bare = text.strip("^#@*_\"'`“”‘’ ")
    yield bare
    without_page = _LOCATOR.sub("", bare)
    without_part = _MINOR_LOCATOR.sub("", bare) if any(char.isalpha() for char in bare) else bare
    for shorter in (bare, without_page, without_part):
        yield shorter
        if led := _KEYWORD.match(shorter):
            yield shorter[led.end() :]


def _read_pairs(text: str, names: PassageNames) -> MarkerName | None:
    """Return what `Document: f, Section: s` names: both, or the first value."""
    if ":" not in text:
        return None
    values = [match["value"].strip() for match in _PAIRS.finditer(text)]
    if len(values) < 2:
        return None
    joined = [sign.join(values) for sign in (", ", "#", ":", "/", " ", "-")]
    known = next((spelling for spelling in [*joined, *values] if names.find(spelling)), None)
    return None if known is None else MarkerName(known, is_known=True, is_led=True)


def _read_range(text: str, names: PassageNames) -> tuple[MarkerName, ...]:
    """Return the members of `1-3` or `P1-P3`; nothing for a label that only looks like one, or a reversed range."""
    if names.find(text):
        return ()
    match = _RANGE.fullmatch(text) or _RANGE.fullmatch(_KEYWORD.sub("", text, count=1))
    if match is None or not int(match["first"]) < int(match["last"]):
        return ()
    first, last = int(match["first"]), int(match["last"])
    numbers = range(first, min(last, first + 999) + 1)
    members = {number: MarkerName(f"{match['lead']}{number}", is_known=True) for number in numbers}
    known = {number: member for number, member in members.items() if names.find(member.label)}
    if match["lead"] and not known:
        return ()
    unknown = [number for number in numbers if number not in known]
    if len(unknown) > _LISTED or last not in numbers:
        unknown = [last]
    lost = {number: MarkerName(f"{match['lead']}{number}", is_known=False) for number in unknown}
    return tuple(member for _, member in sorted((known | lost).items()))
