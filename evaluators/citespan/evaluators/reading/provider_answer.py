"""What a provider's payload says of an answer, and the ranges in which it says it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from citespan.evaluators.reading.values import text_at
from citespan.tracer.citations import Citation
from citespan.tracer.passages import Passage

__all__ = [
    "Found",
    "PartedText",
    "ProviderAnswer",
    "Range",
    "either",
    "first_text",
    "only_place",
    "range_in",
    "sentence_before",
    "trimmed",
    "url_in",
    "whole_number",
]

_SENTENCE_WINDOW = 2000
"""How far back, in code points, a sentence is looked for that ends where a citation stands."""

_MAX_NUMBER = 10**12


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """What a provider's payload says of its answer."""

    text: str
    """The answer's text, to which the ranges refer."""

    passages: tuple[Passage, ...]
    """The passages it names, in its order."""

    citations: tuple[Citation, ...]
    """Its citations; one that names a passage which the request does not hold dangles."""


@dataclass(frozen=True, slots=True)
class Range:
    """A part of an answer."""

    start: int
    """First code point."""

    end: int
    """One past the last code point."""


@dataclass(slots=True)
class Found:
    """Collects the passages of a payload, each once, and its citations."""

    provider: str
    """Who answered."""

    passages: dict[str, Passage] = field(default_factory=dict[str, Passage])
    """The passages by id."""

    citations: dict[Citation, None] = field(default_factory=dict[Citation, None])
    """The citations, in order."""

    def add(self, passage: Passage) -> str:
        """Keep a passage and return its id: a text fills a gap, and quotes of one source add up."""
        known = self.passages.get(passage.id)
        if known is None:
            self.passages[passage.id] = passage
        elif known.text is None or (known.is_cut and passage.text is not None and not passage.is_cut):
            self.passages[passage.id] = replace(
                passage, label=known.label, title=known.title or passage.title, url=known.url or passage.url
            )
        elif known.is_cut and passage.text is not None and passage.text not in known.text:
            self.passages[passage.id] = replace(known, text=f"{known.text}\n{passage.text}")
        return passage.id

    def cite(self, passage_id: str, covered: Range | None, quote: object = None) -> None:
        """Keep a citation once."""
        start, end = (None, None) if covered is None else (covered.start, covered.end)
        text = quote if isinstance(quote, str) and quote else None
        self.citations.setdefault(Citation(passage_id, start, end, self.provider, text))

    def answer(self, text: str) -> ProviderAnswer | None:
        """Return what was found, or `None` if nothing was."""
        if not self.passages and not self.citations:
            return None
        return ProviderAnswer(text, tuple(self.passages.values()), tuple(self.citations))


class PartedText:
    """A text in parts whose ranges are given in UTF-8 bytes, as Gemini gives them."""

    def __init__(self, parts: Sequence[str]) -> None:
        self.text = "".join(parts)
        self._parts = [part.encode("utf-8", "surrogatepass") for part in parts]
        self._whole = self.text.encode("utf-8", "surrogatepass")
        self._starts = [0]
        for part in parts:
            self._starts.append(self._starts[-1] + len(part))

    def range_of(self, *, part: int, start: int, end: int | None, quoted: str | None) -> Range | None:
        """Return the range in code points; the quoted text, where given, decides between two readings.

        Args:
            part: Index of the part from whose start the bytes count; some payloads count from the whole text's.
            start: First byte.
            end: One past the last byte; `None` if not given.
            quoted: The text that the range is said to cover.
        """
        if end is not None and 0 <= part < len(self._parts):
            for raw, base in ((self._parts[part], self._starts[part]), (self._whole, 0)):
                if 0 <= start < end <= len(raw):
                    first = base + len(raw[:start].decode("utf-8", "ignore"))
                    last = base + len(raw[:end].decode("utf-8", "ignore"))
                    if quoted is None or self.text[first:last] == quoted:
                        return trimmed(self.text, first, last)
        return only_place(self.text, quoted)


def only_place(text: str, quoted: str | None) -> Range | None:
    """Return where `quoted` stands in the text, or `None` unless that is one place."""
    if not quoted:
        return None
    start = text.find(quoted)
    if start < 0 or text.find(quoted, start + 1) >= 0:
        return None
    return Range(start, start + len(quoted))


def range_in(text: str, start: int | None, end: int | None) -> Range | None:
    """Return the range trimmed to its words, or `None` if it is no range of the text."""
    if start is None or end is None or not 0 <= start < end <= len(text):
        return None
    return trimmed(text, start, end)


def trimmed(text: str, start: int, end: int) -> Range | None:
    """Return the range without white space around it and without the stop of what came before."""
    while start < end and (text[start].isspace() or text[start] in ".,;:!?"):
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return Range(start, end) if start < end else None


def sentence_before(text: str, index: int | None) -> Range | None:
    """Return the sentence that ends at `index`: a file citation is a point behind what it backs."""
    if index is None or not 0 < index <= len(text):
        return None
    window = max(0, index - _SENTENCE_WINDOW)
    breaks = [match.end() for match in re.finditer(r"[.!?。！？]\s+|\n+", text[window : index - 1])]
    return range_in(text, window + breaks[-1] if breaks else window, index)


def either(node: Mapping[str, object], *names: str) -> object:
    """Return the value under the first of the names that has one: payloads come in snake and in camel case."""
    return next((node[name] for name in names if node.get(name) is not None), None)


def first_text(node: Mapping[str, object], *names: str) -> str | None:
    """Return the text under the first of the names that has one."""
    return next((text for name in names if (text := text_at(node, name))), None)


def whole_number(value: object) -> int | None:
    """Return the value as an integer, or `None` if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MAX_NUMBER:
        return None
    return int(value)


def url_in(text: str | None) -> str | None:
    """Return the text if it is an address, else `None`."""
    return text if text is not None and re.match(r"[a-z][a-z0-9+.-]{1,15}://", text) else None
