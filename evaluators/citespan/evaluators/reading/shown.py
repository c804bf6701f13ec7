"""The passages as the model saw them: which of those retrieved, in which order, under which labels.

A label belongs to the block that it begins, not to a place in the list that a retriever returned: a reranker,
a template or a splitter may have changed order, number and text in between.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from citespan.evaluators.reading.documents import Document
from citespan.evaluators.reading.header_labels import find_headers
from citespan.evaluators.reading.label_forms import (
    FORMS,
    LabelForm,
    LabelToken,
    cited_names,
    find_tokens,
    fold_label,
)
from citespan.evaluators.reading.locate import Occurrence, locate, squeeze
from citespan.evaluators.reading.prompt_blocks import (
    Block,
    JsonDocument,
    Section,
    find_json_documents,
    rising_runs,
    split_blocks,
    without_examples,
)

__all__ = ["ShownText", "find_shown"]

_MAX_LEAD = 600
"""Longest text, in code points, between a label and its passage: title, address, date."""

_LABEL_KEYS = ("label", "citation_id", "citation", "source_id", "ref_id", "ref", "number", "index", "n")
"""Keys of a JSON document that the model is told to cite by, the likeliest first."""


@dataclass(frozen=True, slots=True)
class ShownText:
    """One passage as it stood in the prompt."""

    text: str
    """Its text there."""

    label: str | None
    """The label it stood under; `None` if it had none."""

    document_index: int | None
    """Index of the retrieved document that it is, or is a part of; `None` if it is none of them."""

    document: Document | None = None
    """The document that the prompt itself holds as JSON."""

    is_part: bool = False
    """Whether it is only a part of the retrieved document: an app split or cut it."""

    is_at_cut: bool = False
    """Whether the prompt breaks off inside it: the store or the SDK cut the prompt, and what followed is lost."""

    is_matched: bool = True
    """Whether its run of labels has anything to do with what was retrieved."""


def find_shown(sections: Sequence[Section], documents: Sequence[Document], answer: str) -> list[ShownText]:
    """Return the passages that a prompt shows, in its order; none if it shows no passages.

    Args:
        sections: The prompt.
        documents: What was retrieved for it.
        answer: The answer, whose markers tell labels from other things in brackets.
    """
    texts = list(_texts(sections, documents))
    cited = cited_names(answer)
    haystack = _Haystack(texts)
    by_section = [_Reader(section, texts, haystack, cited).read() for section in sections]
    if any(shown.is_matched for found in by_section for shown in found):
        by_section = [
            [shown for shown in found if shown.is_matched or section.role == "tool"]
            for section, found in zip(sections, by_section, strict=True)
        ]
    return _without_repeats(shown for found in by_section for shown in found)


def _texts(sections: Sequence[Section], documents: Sequence[Document]) -> Iterable[str]:
    """Yield each document's text, or the longer one round it that an app keeps beside it and shows instead.

    Sentence-window and small-to-big retrieval find a sentence, and put the `window` in its metadata.
    """
    for document in documents:
        content = document.content or ""
        wider = (v for v in document.metadata.values() if isinstance(v, str) and len(v) > len(content))
        shown = (v for v in wider if content and content in v and any(v in s.text for s in sections))
        yield max(shown, key=len, default=content)


def _without_repeats(found: Iterable[ShownText]) -> list[ShownText]:
    """Return each passage once per label; one without a label only where it never has one."""
    kept: dict[tuple[object, str | None], ShownText] = {}
    for shown in found:
        key = (
            shown.document_index
            if shown.document_index is not None and not shown.is_part
            else squeeze(shown.text)
        )
        kept.setdefault((key, None if shown.label is None else fold_label(shown.label)), shown)
    labelled = {key for key, label in kept if label is not None}
    return [shown for (key, label), shown in kept.items() if label is not None or key not in labelled]


class _Haystack:
    """All retrieved texts in one string, to find the one that a part comes from."""

    def __init__(self, texts: Sequence[str]) -> None:
        squeezed = [squeeze(text) for text in texts]
        self._text = "\0".join(squeezed)
        self._starts: list[int] = []
        start = 0
        for text in squeezed:
            self._starts.append(start)
            start += len(text) + 1

    def find(self, part: str, previous: int | None) -> int | None:
        """Return the index of the one text that holds `part`; where several do, `previous` if it does."""
        first = self._text.find(part)
        if first < 0:
            return None
        index = bisect_right(self._starts, first) - 1
        after = self._text.find(part, self._starts[index + 1]) if index + 1 < len(self._starts) else -1
        if after < 0:
            return index
        if previous is not None and self._text.find(part, self._starts[previous], self._end(previous)) >= 0:
            return previous
        return None

    def _end(self, index: int) -> int:
        return self._starts[index + 1] - 1 if index + 1 < len(self._starts) else len(self._text)


class _Reader:
    """Reads one section."""

    def __init__(
        self, section: Section, texts: Sequence[str], haystack: _Haystack, cited: frozenset[str]
    ) -> None:
        self._section = section
        self._texts = texts
        self._haystack = haystack
        self._cited = cited
        self._occurrences = locate(texts, section.text)
        self._json = find_json_documents(section.text)
        self._json_labels = {squeeze(j.document.content or ""): _json_label(j) for j in self._json}
        taken = [(o.start, o.end) for o in self._occurrences] + [(j.start, j.end) for j in self._json]
        tokens = [*find_tokens(section.text), *find_headers(section.text, cited)]
        self._tokens = _outside(sorted(tokens, key=lambda token: token.start), taken)

    def read(self) -> list[ShownText]:
        """Return the passages of the section in order."""
        form = self._form()
        placed = self._after_labels(form) if form is not None else None
        if placed is None:
            placed = self._under_labels(form)
        placed += self._in_json({shown.document_index for _, shown in placed})
        return [shown for _, shown in sorted(placed, key=lambda pair: pair[0])]

    def _form(self) -> LabelForm | None:
        """Return the form that labels the passages here, if any does."""
        by_form: dict[str, list[LabelToken]] = {}
        for token in self._tokens:
            by_form.setdefault(token.form.name, []).append(token)
        best: tuple[int, int, LabelForm] | None = None
        for form in FORMS:
            tokens = by_form.get(form.name, [])
            covered = self._covered(tokens)
            if not tokens or not self._counts(form, tokens, covered):
                continue
            if best is None or (covered, len(tokens)) > best[:2]:
                best = (covered, len(tokens), form)
        return None if best is None else best[2]

    def _covered(self, tokens: Sequence[LabelToken]) -> int:
        """Return how many passages have a label of their own: after the passage before, and close by."""
        ends = [token.end for token in tokens]
        previous_end, covered = 0, 0
        for occurrence in self._occurrences:
            n = bisect_right(ends, occurrence.start)
            is_close = n > 0 and occurrence.start - ends[n - 1] <= _MAX_LEAD
            covered += is_close and ends[n - 1] > previous_end
            previous_end = occurrence.end
        return covered

    def _counts(self, form: LabelForm, tokens: Sequence[LabelToken], covered: int) -> bool:
        if covered and not (form.needs_citing and not form.is_strong):
            return form.is_strong or covered == len(self._occurrences) == len(tokens)
        if form.needs_citing:
            return any(fold_label(token.label) in self._cited for token in tokens)
        return form.is_strong

    def _after_labels(self, form: LabelForm) -> list[tuple[int, ShownText]] | None:
        """Return the passages if each one's label follows it, as in `Content: ..` and `Source: 3` below; else `None`."""
        tokens = [token for token in self._tokens if token.form.name == form.name]
        events = sorted(
            [(occurrence.start, "passage") for occurrence in self._occurrences]
            + [(token.start, "label") for token in tokens]
        )
        names = [name for _, name in events]
        if len(names) < 4 or names != ["passage", "label"] * (len(names) // 2):
            return None
        return [
            (occurrence.start, self._known(occurrence, token.label))
            for occurrence, token in zip(self._occurrences, tokens, strict=True)
        ]

    def _under_labels(self, form: LabelForm | None) -> list[tuple[int, ShownText]]:
        placed: list[tuple[int, ShownText]] = []
        inside: set[int] = set()
        if form is not None:
            tokens = [token for token in self._tokens if token.form.name == form.name]
            runs = without_examples(self._section.text, rising_runs(tokens))
            read = [self._read_run(runs, n) for n in range(len(runs))]
            if any(shown.is_matched for run in read for _, shown in run):
                read = [run for run in read if any(shown.is_matched for _, shown in run)]
                read = [[(at, replace(shown, is_matched=True)) for at, shown in run] for run in read]
            placed = [pair for run in read for pair in run]
            inside = {at for at, shown in placed if shown.document_index is not None and not shown.is_part}
        placed += [
            (occurrence.start, self._known(occurrence, self._json_label_of(occurrence)))
            for occurrence in self._occurrences
            if occurrence.start not in inside
        ]
        return placed

    def _read_run(self, runs: Sequence[Sequence[LabelToken]], n: int) -> list[tuple[int, ShownText]]:
        limit = runs[n + 1][0].start if n + 1 < len(runs) else len(self._section.text)
        blocks = split_blocks(self._section, runs[n], limit)
        placed: list[tuple[int, ShownText]] = []
        starts = [occurrence.start for occurrence in self._occurrences]
        previous: int | None = None
        for position, block in enumerate(blocks):
            until = blocks[position + 1].token.start if position + 1 < len(blocks) else limit
            inside = self._occurrences[bisect_left(starts, block.start) : bisect_left(starts, until)]
            if inside:
                placed += [(o.start, self._known(o, block.token.label)) for o in inside]
                previous = inside[-1].index
                continue
            shown = self._part(block, previous)
            previous = shown.document_index if shown.document_index is not None else previous
            if shown.text:
                placed.append((block.start, shown))
        return placed

    def _json_label_of(self, occurrence: Occurrence) -> str | None:
        return self._json_labels.get(squeeze(self._texts[occurrence.index])) if self._json_labels else None

    def _known(self, occurrence: Occurrence, label: str | None) -> ShownText:
        text = self._texts[occurrence.index]
        if occurrence.is_cut:
            text = self._section.text[occurrence.start : occurrence.end]
        is_at_cut = occurrence.is_cut and not self._section.text[occurrence.end :].strip()
        return ShownText(text, label, occurrence.index, is_part=occurrence.is_cut, is_at_cut=is_at_cut)

    def _part(self, block: Block, previous: int | None) -> ShownText:
        """Return the block as a part of a retrieved document if its text, or how it begins, is in one."""
        paragraphs = block.text.split("\n\n")
        heads = ["\n\n".join(paragraphs[:n]) for n in range(len(paragraphs), 0, -1)][:8]
        heads.append(block.text.partition("\n")[0])
        for head in heads:
            wanted = squeeze(head).rstrip("….").rstrip()
            index = self._haystack.find(wanted, previous) if len(wanted) >= 4 else None
            if index is not None:
                return ShownText(head.strip(), block.token.label, index, is_part=True)
        return ShownText(block.text, block.token.label, None, is_matched=False)

    def _in_json(self, placed: set[int | None]) -> list[tuple[int, ShownText]]:
        """Return the documents of JSON lists that are not placed yet: JSON escapes hide a text from search."""
        by_text = {squeeze(text): index for index, text in enumerate(self._texts) if text.strip()}
        found: list[tuple[int, ShownText]] = []
        for entry in self._json:
            text = entry.document.content or ""
            index = by_text.get(squeeze(text))
            if text.strip() and (index is None or index not in placed):
                shown = ShownText(
                    text, _json_label(entry), index, entry.document, is_matched=index is not None
                )
                found.append((entry.start, shown))
        return found


def _outside(tokens: Sequence[LabelToken], ranges: Sequence[tuple[int, int]]) -> list[LabelToken]:
    """Return the tokens that stand in none of the ranges: a passage's text may hold, or forge, labels."""
    merged: list[list[int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    starts = [start for start, _ in merged]
    kept: list[LabelToken] = []
    for token in tokens:
        n = bisect_right(starts, token.start) - 1
        if n < 0 or token.start >= merged[n][1]:
            kept.append(token)
    return kept


def _json_label(entry: JsonDocument) -> str | None:
    for key in _LABEL_KEYS:
        value = entry.document.metadata.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value)
    return None
