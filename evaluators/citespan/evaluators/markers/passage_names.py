"""The names a run's passages answer to: labels shown, ids, positions, titles, files and addresses."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from citespan.evaluators.claims import Certainty, Marker
from citespan.tracer.passages import Passage

__all__ = ["NameMatch", "PassageNames", "fold_name", "ids_occur"]

_METADATA_NAMES = (
    "title",
    "source",
    "file",
    "file_name",
    "filename",
    "file_path",
    "path",
    "name",
    "url",
    "uri",
)
_METADATA_IDS = ("document_id", "doc_id", "chunk_id", "node_id", "file_id", "citation_id", "key")
_LABEL_NUMBER = re.compile(r"(?P<lead>\D{1,20})0*(?P<number>\d{1,6})")
_SIGNED = re.compile(r"(?P<lead>[^\W\d_]{0,20})(?P<number>-?[0-9]{1,9})")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class NameMatch:
    """The passages that a name names."""

    passage_ids: tuple[str, ...]
    """One id, or several if the name is ambiguous."""

    certainty: Certainty
    """How sure that is."""

    reason: str | None = None
    """How the name was understood, where it was not simply the label (`by_id`, `by_position`, ...)."""


class PassageNames:
    """What a run's passages can be called in its answer; the first kind of name that fits wins.

    The order: the label shown (the id where none is known), the id, the place in a list of sources that
    the provider recorded, the position, the number of a label such as `doc3`, a title, file or address.
    Numbers are never counted from 0 unless labels show a 0, and never from the end.
    """

    def __init__(
        self, passages: Sequence[Passage], *, by_position: bool, recorded_list: Sequence[str] = ()
    ) -> None:
        """Index the passages.

        Args:
            passages: The run's passages, in the order shown.
            by_position: Whether passages without a label also answer to their 1-based position.
            recorded_list: Ids of the passages that a provider listed beside the answer, in its order.
        """
        self._ids = {passage.id for passage in passages}
        self.labels = tuple(passage.label or passage.id for passage in passages)
        """The label of each passage, its id where none is known."""
        self.are_in_parentheses = any(re.fullmatch(r"[(（].*[)）]", label.strip()) for label in self.labels)
        """Whether the prompt shows labels in parentheses, so that `(1)` is a marker."""
        self._lead, label_numbers = _label_numbers(passages)
        kinds: list[tuple[str | None, Iterable[tuple[str, str]]]] = [
            (None, ((passage.label or passage.id, passage.id) for passage in passages)),
            ("by_id", ((passage.id, passage.id) for passage in passages)),
            ("by_recorded_list", ((str(n), i) for n, i in enumerate(recorded_list, 1) if i in self._ids)),
            ("by_position", _positions(passages) if by_position else ()),
            ("by_label_number", label_numbers),
            ("by_other_name", (pair for passage in passages for pair in _other_names(passage))),
        ]
        self._kinds = [(reason, _index(pairs)) for reason, pairs in kinds]
        self._numbers = [
            int(name) for reason, index in self._kinds for name in index if _counts(reason, name)
        ]
        self._found: dict[str, NameMatch | None] = {}

    def find(self, name: str) -> NameMatch | None:
        """Return the passages called `name`, or `None`."""
        if name not in self._found:
            self._found[name] = self._find(fold_name(name))
        return self._found[name]

    def _find(self, folded: str) -> NameMatch | None:
        for reason, index in self._kinds:
            ids = index.get(folded)
            if ids:
                sure = Certainty.LOW if reason == "by_position" else Certainty.CERTAIN
                return NameMatch(ids, sure if len(ids) == 1 else Certainty.AMBIGUOUS, reason)
        return None

    def find_id(self, passage_id: str) -> NameMatch | None:
        """Return the passage with this id, or `None`: recorded citations name ids, never labels."""
        return NameMatch((passage_id,), Certainty.CERTAIN) if passage_id in self._ids else None

    @property
    def has_numbers(self) -> bool:
        """Whether any passage answers to a plain number."""
        return bool(self._numbers)

    def is_out_of_range(self, name: str) -> bool:
        """Return whether `name` is a number beyond the known ones, or one behind the word that counts the labels.

        `[doc9]` is beyond `doc1` ... `doc8`; `[pc099]` beside `pc010` and `pc042` is only unknown.
        """
        match = _SIGNED.fullmatch(name)
        if not self._numbers or match is None:
            return False
        first, last = min(self._numbers), max(self._numbers)
        is_counted = first <= 1 and len(set(self._numbers)) == last - first + 1
        if match["lead"] and not (is_counted and match["lead"].casefold() == self._lead):
            return False
        return not first <= int(match["number"]) <= last


def _counts(reason: str | None, name: str) -> bool:
    """Return whether a name is a number by which the answer can cite."""
    return reason not in ("by_id", "by_other_name") and re.fullmatch(r"[0-9]{1,9}", name) is not None


def ids_occur(passages: Sequence[Passage], markers: Iterable[Marker]) -> bool:
    """Return whether markers of the text name passages without a label by id: then numbers are not positions."""
    ids = {fold_name(passage.id) for passage in passages if passage.label is None}
    named = (label for marker in markers if marker.origin == "marker" for label in marker.labels)
    return any(fold_name(label) in ids for label in named)


def fold_name(name: str) -> str:
    """Return `name` as it is compared.

    Compatibility forms (full-width, superscript) and digits of other scripts are unified; case, outer
    spaces and brackets, a final slash and leading zeros of a number are ignored.
    """
    text = unicodedata.normalize("NFKC", name).strip().strip("[]()【】 ").casefold()
    if not text.isascii():
        text = "".join(str(unicodedata.digit(c)) if unicodedata.category(c) == "Nd" else c for c in text)
    if _NUMBER.fullmatch(text):
        return text.lstrip("0") or "0"
    return text.rstrip("/")


def _index(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for name, passage_id in pairs:
        if folded := fold_name(name):
            found.setdefault(folded, {})[passage_id] = None
    return {name: tuple(ids) for name, ids in found.items()}


def _positions(passages: Sequence[Passage]) -> Iterator[tuple[str, str]]:
    for position, passage in enumerate(passages, 1):
        if passage.label is None:
            yield str(position), passage.id


def _label_numbers(passages: Sequence[Passage]) -> tuple[str, list[tuple[str, str]]]:
    """Return the word before the number of labels such as `doc3`, and the numbers, if all labels share it."""
    matches = [(_LABEL_NUMBER.fullmatch(passage.label or ""), passage.id) for passage in passages]
    leads = {match["lead"].casefold() if match else None for match, _ in matches}
    if len(leads) != 1 or None in leads:
        return "", []
    return leads.pop() or "", [(match["number"], passage_id) for match, passage_id in matches if match]


def _other_names(passage: Passage) -> Iterator[tuple[str, str]]:
    """Yield what else the passage is known by; never a bare number, which would clash with labels."""
    names = [passage.title, passage.url]
    names += [
        str(passage.metadata[key]) for key in _METADATA_NAMES + _METADATA_IDS if passage.metadata.get(key)
    ]
    for name in names:
        if name and not _NUMBER.fullmatch(name.strip()):
            yield name, passage.id
            yield from ((part, passage.id) for part in _shorter(name))


def _shorter(name: str) -> Iterator[str]:
    """Yield an address without its fragment, and a path's last part."""
    if "://" in name:
        yield name.partition("#")[0]
    elif "/" in name or "\\" in name:
        yield re.split(r"[/\\]", name)[-1]
