"""Read a text as words: their keys (stem, number or nothing), their places, and the sentences they make."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Protocol, cast

import snowballstemmer  # type: ignore[import-untyped]  # it ships no types

from citespan.evaluators.judges.lexical.lexicon import read_lexicon, read_word_set

__all__ = ["STOP_WORDS", "Sentence", "Text", "key_of", "read_words", "stem_of"]

_WORD = re.compile(r"\d+(?:[.,]\d+)*[^\W\d_]*|[^\W\d_][^\W_]*(?:(?<=\d)\.\d+)*(?:['’][^\W\d_]+)?")
"""A number with what is glued to it (`1,200`, `100km`, `19th`), or a word, with an inner apostrophe."""

_MARK = re.compile(
    r"</?[a-z]\w*/?>|<\|\w+\|>|-[LR][RS]B-"
    r"|\((?:[A-Z][\w'’-]+(?:,? (?:and|&) [A-Z][\w'’-]+|,? et al\.?,?|,) \d{4}[a-z]?(?:; ?|(?=\))))+\)"
)
"""What refers or formats and says nothing: a tag, a bracket of a tokeniser, `(Berg et al., 2016)`."""

_SENTENCE_END = re.compile(r"[.!?]+[\"'”’)\]]*(?=\s)|[。！？]|\n\s*")
_ABBREVIATIONS = read_word_set("abbreviations")
_LONGEST_SENTENCE = 90
"""Words after which a stretch without punctuation is cut, so that a page of menus is not one sentence."""

STOP_WORDS = read_word_set("stop_words")
"""Words that carry grammar, not content; signs and strength are read from them elsewhere."""

_IRREGULAR = {form: root for root, *forms in read_lexicon("irregular") for form in forms}
"""Irregular forms and derived nouns that a stemmer does not bring together, by their root."""

_GREEK_NAMES = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "epsilon",
    "ζ": "zeta",
    "η": "eta",
    "θ": "theta",
    "κ": "kappa",
    "λ": "lambda",
    "μ": "micro",
    "π": "pi",
    "σ": "sigma",
    "τ": "tau",
    "ω": "omega",
}
"""Greek letters that stand alone, as in "α-synuclein", by the names they are spelled out with."""

_GREEK_LETTERS = str.maketrans({letter: name[0] for letter, name in _GREEK_NAMES.items()})
"""The same within a word, as in "PKCζ", by the Latin letter they are written with."""

_CACHE_SIZE = 200_000


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802 - the library's name


_stemmer = cast(_Stemmer, snowballstemmer.stemmer("english"))  # pyright: ignore[reportUnknownMemberType]  # untyped
_keys: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a text, by words and by characters; ends are exclusive."""

    first: int
    """Index of its first word."""

    last: int
    """Index after its last word."""

    start: int
    """First character."""

    end: int
    """Character after the last."""


@dataclass(slots=True)
class Text:
    """A text read as words; the lists run in parallel, one entry a word."""

    text: str
    """The text itself."""

    words: list[str]
    """Words in lower case."""

    keys: list[str]
    """What to match a word by: its stem, `#` and a value for a number, empty for a stop word."""

    starts: list[int]
    """First characters."""

    ends: list[int]
    """Characters after the last."""

    sentences: list[Sentence] = field(default_factory=list[Sentence])
    """The sentences in order; every word is in exactly one."""

    def gap(self, index: int) -> str:
        """Return what stands between word `index` and the next one."""
        following = self.starts[index + 1] if index + 1 < len(self.starts) else len(self.text)
        return self.text[self.ends[index] : following]

    def shown(self, index: int) -> str:
        """Return word `index` as written."""
        return self.text[self.starts[index] : self.ends[index]]

    def quote(self, first: int, last: int) -> str:
        """Return the words from `first` to before `last` as written."""
        return self.text[self.starts[first] : self.ends[last - 1]]


def stem_of(word: str) -> str:
    """Return the stem of a lower-case word, irregular forms first brought to their root."""
    root = _IRREGULAR.get(word)
    if root is None and word.endswith("s"):
        root = _IRREGULAR.get(word[:-1])
    return _stemmer.stemWord(root or word)


def key_of(word: str) -> str:
    """Return what to match a lower-case word by, without regard to the words beside it."""
    key = _keys.get(word)
    if key is not None:
        return key
    bare = word.replace("’", "'")
    if not bare.isascii():
        bare = _without_accents(bare)
    if bare in STOP_WORDS:
        key = ""
    elif bare[0].isdigit():
        key = "#" + bare
    else:
        if bare.endswith("'s"):
            bare = bare[:-2]
        key = (
            ""
            if bare in STOP_WORDS or (len(bare) == 1 and bare.isascii())
            else stem_of(bare.replace("'", ""))
        )
    if len(_keys) >= _CACHE_SIZE:
        _keys.clear()
    _keys[word] = key
    return key


def _without_accents(word: str) -> str:
    """Return a word with Latin letters freed of their accents; other scripts are left as they are."""
    letters = [letter for letter in unicodedata.normalize("NFKD", word) if not unicodedata.combining(letter)]
    bare = "".join(letters)
    if len(bare) == 1:
        return _GREEK_NAMES.get(bare, bare)
    bare = (
        bare.translate(_GREEK_LETTERS) if sum(letter.isascii() for letter in bare) >= len(bare) - 1 else bare
    )
    return bare if bare.isascii() and bare else word


def read_words(text: str) -> Text:
    """Return `text` as words and sentences, in time linear in its length."""
    places = [match.span() for match in _WORD.finditer(_without_marks(text))]
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters have a lower case of two letters
        lowered = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
    words = [lowered[start:end] for start, end in places]
    known = _keys.get  # another thread may clear the cache at any time
    keys = [key if (key := known(word)) is not None else key_of(word) for word in words]
    starts, ends = [start for start, _ in places], [end for _, end in places]
    read = Text(text, words, keys, starts, ends)
    read.sentences = _sentences(read)
    return read


def _without_marks(text: str) -> str:
    """Return `text` with blanks in place of reference marks and tags, so that places hold."""
    if "<" not in text and "(" not in text and "B-" not in text:
        return text
    return _MARK.sub(lambda mark: " " * len(mark[0]), text)


def _sentences(read: Text) -> list[Sentence]:
    found: list[Sentence] = []
    first = 0
    for end in _ends(read):
        last = bisect_left(read.starts, end, first)
        while last > first:
            stop = min(last, first + _LONGEST_SENTENCE)
            char_end = end if stop == last else read.starts[stop]
            found.append(_trimmed(read, first, stop, char_end))
            first = stop
    return found


def _trimmed(read: Text, first: int, last: int, end: int) -> Sentence:
    start = read.starts[first]
    while (
        start > 0
        and read.text[start - 1] in "\"'“‘([$€£¥#-+*"
        and (not first or start > read.ends[first - 1])
    ):
        start -= 1
    while end > read.ends[last - 1] and read.text[end - 1].isspace():
        end -= 1
    return Sentence(first, last, start, end)


def _ends(read: Text) -> list[int]:
    """Return the characters after which a sentence ends, the end of the text last."""
    text = read.text
    ends: list[int] = []
    for match in _SENTENCE_END.finditer(text):
        if match[0].startswith(".") and _is_abbreviation(text, match.start(), match.end()):
            continue
        ends.append(match.end())
    ends.append(len(text))
    return ends


def _is_abbreviation(text: str, dot: int, end: int) -> bool:
    """Return whether the full stop at `dot` closes an abbreviation, an initial or a list number."""
    following = text[end : end + 3].lstrip()
    if following and following[0].islower():
        return True
    start = dot
    while start > 0 and dot - start < 8 and (text[start - 1].isalnum() or text[start - 1] == "."):
        start -= 1
    word = text[start:dot].lower()
    return word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha())
