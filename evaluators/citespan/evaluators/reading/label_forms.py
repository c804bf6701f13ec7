"""How prompts label the passages they hold: a table of forms, and the places where they occur in a text."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["FORMS", "HEADER_FORM", "LabelForm", "LabelToken", "cited_names", "find_tokens", "fold_label"]

_LINE = r"^[-*>#=|├└─• \t]{0,40}"
_LEAD = rf"{_LINE}(?:[^\W\d]{{1,20}}(?: [^\W\d]{{1,20}}){{0,3}}[:：][ \t]{{1,3}})?"
"""The beginning of a line, with what may introduce the first passage on it: `Observation:`, `Search results:`."""

_WORDS = (
    r"source|document|doc|passage|context|chunk|reference|ref|result|search[ _]result|article|snippet|excerpt"
    r"|evidence|webpage|web[ _]page|citation|quelle|dokument|fuente|documento|fonte|资料|文档|来源|文献|資料|出典|文書"
)
_TAGS = (
    r"source|document|doc|passage|context|chunk|reference|ref|result|search_result|article|snippet|excerpt"
    r"|evidence|webpage|page|file|citation|item|node|quote"
)
_AFTER = r"\*{0,2}[ \t]{0,3}[:：.)|–—-]{0,20}[ \t]{0,20}"


@dataclass(frozen=True, slots=True)
class LabelForm:
    """One way of labelling passages."""

    name: str
    """Name of the form."""

    example: str
    """What it looks like."""

    pattern: re.Pattern[str] | None
    """Matches the label and what belongs to it, up to the passage; group `label`, or `attributes` of a tag.
    `None` for a form that takes more than a pattern to find.
    """

    closing: str | None = None
    """Pattern of what ends the passage, with `{label}` and `{word}`; `None` if only the next label does."""

    is_strong: bool = True
    """Whether it marks passages by itself; a weak form counts only before a passage that was retrieved."""

    needs_citing: bool = False
    """Whether it counts, where nothing was retrieved, only if the answer cites one of its labels."""


HEADER_FORM = LabelForm(
    "header", "Source: manual.pdf\\nDate: 2026\\ntext", None, is_strong=False, needs_citing=True
)
"""A line in a head of lines; see `header_labels`."""

FORMS = (
    LabelForm(
        "tag",
        '<source id="1">text</source>',
        re.compile(rf"<(?P<word>{_TAGS})(?P<attributes>\s[^<>]{{1,400}})>", re.IGNORECASE),
        closing=r"</{word}\s*>",
    ),
    LabelForm(
        "numbered_tag",
        "<doc1>text</doc1>",
        re.compile(rf"<(?P<word>(?:{_TAGS})[_-]?(?P<label>\d{{1,5}}))>", re.IGNORECASE),
        closing=r"</{word}\s*>",
    ),
    LabelForm(
        "begin_end",
        "[webpage 1 begin]text[webpage 1 end]",
        re.compile(
            r"\[(?P<word>[A-Za-z][A-Za-z _]{1,20}?)[ _]*(?P<label>\d{1,5})[ _]+(?:begin|start)\]",
            re.IGNORECASE,
        ),
        closing=r"\[{word}[ _]*{label}[ _]+end\]",
    ),
    LabelForm(
        "bracketed_number",
        "[1] text",
        re.compile(
            rf"{_LEAD}(?:\[\[|\[|【|［)[#^]?[ \t]{{0,3}}(?P<label>\d{{1,5}})[ \t]{{0,3}}(?:\]\]|\]|】|］){_AFTER}",
            re.M,
        ),
    ),
    LabelForm(
        "bracketed_word_number",
        "[ID:0] text",
        re.compile(
            rf"{_LEAD}[\[【](?P<word>(?:id|doc_?id|cite|src|{_WORDS}))(?P<separator>[ \t:#_-]{{0,3}})(?P<label>\d{{1,5}})[\]】]"
            rf"{_AFTER}",
            re.M | re.IGNORECASE,
        ),
    ),
    LabelForm(
        "word_number",
        "Source 1: text",
        re.compile(
            rf"{_LINE}(?:(?:{_WORDS})(?:[ \t_]{{0,3}}(?:id|no\.?|number|nr\.?)[ \t]{{0,3}}[:#]?)?[ \t_]{{0,3}}[#\[(【]?"
            rf"|(?:id|doc_id|chunk_id)[ \t]{{0,3}}[:#=])[ \t]{{0,3}}(?P<label>\d{{1,5}})[\])】]?"
            rf"(?=[ \t]{{0,3}}(?:[:：.)|–—*(-]|\r?$))(?:[ \t]{{0,3}}\([^()\n]{{1,200}}\))?{_AFTER}",
            re.M | re.IGNORECASE,
        ),
    ),
    LabelForm(
        "bracketed_name",
        "[kb-7] text",
        re.compile(rf"{_LINE}[\[【](?P<label>[^\[\]【】\n]{{1,120}})[\]】]{_AFTER}", re.M),
        needs_citing=True,
    ),
    LabelForm(
        "file_name",
        "manual.pdf#page=2: text",
        re.compile(
            rf"{_LINE}(?P<label>[^\s:\[\]<>]{{1,120}}\.[A-Za-z]\w{{0,4}}(?:#\S{{1,40}}?)?)[ \t]{{0,3}}:[ \t]",
            re.M,
        ),
        needs_citing=True,
    ),
    HEADER_FORM,
    LabelForm(
        "table_row",
        "| 1 | text |",
        re.compile(r"^[ \t]{0,8}\|[ \t]{0,8}(?P<label>\d{1,5})[ \t]{0,8}\|[ \t]{0,8}", re.M),
        is_strong=False,
    ),
    LabelForm(
        "enumeration",
        "1. text",
        re.compile(rf"{_LINE}\(?(?P<label>\d{{1,4}})[.):][ \t]{{1,8}}", re.M),
        is_strong=False,
    ),
)
"""The forms, the most telling first: where two match at one place, the earlier one is meant."""

_ATTRIBUTE = re.compile(r"""([\w:-]{1,40})\s{0,3}=\s{0,3}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_LABEL_ATTRIBUTES = (
    "id",
    "index",
    "idx",
    "n",
    "num",
    "no",
    "number",
    "key",
    "ref",
    "label",
    "name",
    "source",
    "title",
)
_CITED = re.compile(r"[\[【［(（]([^\[\]【】［］()（）\n]{1,200})[\]】］)）]|\[([^\[\]\n]{1,200})\]")


@dataclass(frozen=True, slots=True)
class LabelToken:
    """One label in a prompt."""

    form: LabelForm
    """Its form."""

    label: str
    """The label without brackets: `1`, `doc1`, `kb-7`."""

    start: int
    """First code point of the label."""

    end: int
    """One past it: where the passage begins."""

    closing: re.Pattern[str] | None = None
    """What ends the passage, where its form has a closing."""

    @property
    def number(self) -> int | None:
        """The label as a number, or `None`."""
        digits = re.fullmatch(r"\D*(\d{1,5})", self.label)
        return int(digits[1]) if digits is not None else None


def find_tokens(text: str) -> list[LabelToken]:
    """Return every label in `text` in order; where forms overlap, the most telling one."""
    found: list[LabelToken] = []
    taken: set[int] = set()
    for form in FORMS:
        for match in form.pattern.finditer(text) if form.pattern is not None else ():
            token = _token(form, match)
            if token is not None and match.end() not in taken and match.start() not in taken:
                found.append(token)
                taken.update((match.start(), match.end()))
    return sorted(found, key=lambda token: token.start)


def _token(form: LabelForm, match: re.Match[str]) -> LabelToken | None:
    groups = match.groupdict()
    label = groups.get("label") or _attribute_label(groups.get("attributes"))
    if label is None or not label.strip():
        return None
    if form.name == "bracketed_word_number" and not groups["separator"]:
        label = f"{groups['word']}{label}"
    closing = None
    if form.closing is not None:
        word = re.escape(groups["word"] or "")
        closing = re.compile(form.closing.format(word=word, label=re.escape(label)), re.IGNORECASE)
    return LabelToken(form, label.strip(), match.start(), match.end(), closing)


def _attribute_label(attributes: str | None) -> str | None:
    values = {
        match[1].lower(): match[2] or match[3] or match[4] or ""
        for match in _ATTRIBUTE.finditer(attributes or "")
    }
    return next((values[name] for name in _LABEL_ATTRIBUTES if values.get(name)), None)


def fold_label(label: str) -> str:
    """Return a label as compared: case and outer spaces ignored."""
    return label.strip().casefold()


def cited_names(answer: str) -> frozenset[str]:
    """Return, folded, everything that stands in brackets in the answer: whole, and split at commas."""
    names: set[str] = set()
    for match in _CITED.finditer(answer):
        cited = match[1] or match[2]
        names.add(fold_label(cited))
        names.update(fold_label(part) for part in re.split(r"[,;，；]", cited))
    return frozenset(names - {""})
