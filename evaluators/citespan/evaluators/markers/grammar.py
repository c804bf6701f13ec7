"""The forms in which answers cite: one table, one row a form.

Patterns run on text folded by `fold_text`: brackets, digits and separators of other scripts are already
the ASCII ones. A row says how a form looks and how far to trust it; whether a candidate is a citation is
decided in `marker_filter.py` by the run's labels and the answer's house style.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["KEYWORDS", "MARKER_FORMS", "Base", "MarkerForm", "Trust", "fold_text"]


class Base(StrEnum):
    """Where a form's numbers start, as its users print them."""

    ONE = "1"
    """The first passage is 1."""

    ZERO = "0"
    """The first passage is 0."""

    ID = "id"
    """It names ids, keys or files; there is nothing to count."""

    PROMPT = "prompt"
    """Whatever the prompt shows."""

    URL = "url"
    """It names an address."""


class Trust(StrEnum):
    """What it takes for text of a form to be a citation."""

    FORM = "form"
    """Nothing else is written like this: it cites even where its label is unknown."""

    HOUSE = "house"
    """A member is a label, or the answer's resolved markers look the same."""

    LABEL = "label"
    """Every member is a distinctive label: the form is common in prose."""


@dataclass(frozen=True, slots=True)
class MarkerForm:
    """One way to write a marker."""

    name: str
    """Short name, used in house style and tests."""

    pattern: re.Pattern[str]
    """Matches the whole marker in folded text. Groups: `names` (what it names), `url`, `tag`."""

    example: str
    """A marker of this form as an answer would have it."""

    labels: tuple[str, ...]
    """The labels that the example names, where all are labels of the run."""

    base: Base
    """Where its numbers start."""

    trust: Trust
    """What it takes to be a citation."""

    seen: str
    """Prompts and parsers that use it; `likely` where none was read."""


KEYWORDS = (
    r"(?:search[ _-]?results?|web[ _-]?pages?|document[ _-]?ids?|chunk[ _-]?ids?|source[ _-]?ids?|doc[ _-]?ids?"
    r"|citations?|references?|documents?|excerpts?|passages?|snippets?|contexts?|evidence|sources?|chunks?"
    r"|footnotes?|articles?|results?|notes?|files?|texts?|nodes?|cite|docs?|refs?|src|ids?|urls?"
    r"|quellen?|dokumente?|fuentes?|documentos?|来源|资料|文档|文献|引用|出典|資料|参考)"
)
"""Words that lead a label inside a marker: `Source 1`, `ID:0`, `citation:3`."""

_SEP = r"(?:[\ue200-\ue206]|\\ue20[0-6])"
"""The private-use characters of ChatGPT's markers, as characters or as six printed ones."""

_MID = r"(?:[\ue202-\ue206]|\\ue20[2-6])"
"""Those that stand between the names of one marker; U+E200 opens it and U+E201 closes it."""

_KEY = r"[^\W_](?:[\w.:/-]{0,80}[^\W_])?"

_TURN = r"turn\d{1,4}[a-z]{1,20}\d{1,4}"

_URL = r"[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)?"

_LIST = r"[^\[\]\n]{1,200}"


def _form(
    name: str,
    pattern: str,
    example: str,
    labels: tuple[str, ...],
    base: Base,
    trust: Trust,
    seen: str,
) -> MarkerForm:
    return MarkerForm(name, re.compile(pattern, re.IGNORECASE), example, labels, base, trust, seen)


MARKER_FORMS: tuple[MarkerForm, ...] = (
    _form(
        "double_link",
        rf"\[\[(?P<names>{_LIST})\]\]\((?P<url>{_URL})\)",
        "[[1]](https://kb.example/a)",
        ("1",),
        Base.PROMPT,
        Trust.HOUSE,
        "onyx citation_processor",
    ),
    _form(
        "link",
        rf"\[(?P<names>{_LIST})\]\(<?(?P<url>{_URL})>?(?:[ \t]+\"[^\"\n]{{0,200}}\")?\)",
        "[citation:3](javascript:void(0))",
        ("3",),
        Base.URL,
        Trust.HOUSE,
        "run-llama/chat-ui; khoj prompts (address of a passage)",
    ),
    _form(
        "graphrag",
        r"\[Data:[ \t]*(?P<names>[^\[\]\n]{1,400})\]",
        "[Data: Sources (2, 7, +more)]",
        ("2", "7"),
        Base.ID,
        Trust.FORM,
        "microsoft/graphrag basic_search_system_prompt",
    ),
    _form(
        "dagger",
        r"\[(?P<names>[^\[\]†\n]{1,60}†[^\[\]\n]{0,200})\]",
        "【4:0†report.pdf】",
        ("4:0",),
        Base.PROMPT,
        Trust.FORM,
        "OpenAI assistants; parsers of 【n†source】",
    ),
    _form(
        "bracket_range",
        r"\[(?P<names>[^\W\d_]{0,8}\d{1,4}\][ \t]?[-–—~][ \t]?\[[^\W\d_]{0,8}\d{1,4})\]",
        "[1]-[3]",
        ("1", "2", "3"),
        Base.ONE,
        Trust.LABEL,
        "likely",
    ),
    _form(
        "nested",
        r"\[[ \t]*(?P<names>\[[^\[\]\n]{1,80}\](?:[ \t]*[,;]?[ \t]*\[[^\[\]\n]{1,80}\]){0,30})[ \t]*\]",
        "[[1]]",
        ("1",),
        Base.PROMPT,
        Trust.HOUSE,
        "onyx citation_processor",
    ),
    _form(
        "caret_bracket",
        rf"\^\[(?P<names>{_LIST})\]",
        "^[1]",
        ("1",),
        Base.ONE,
        Trust.HOUSE,
        "likely",
    ),
    _form(
        "excerpt",
        r"\b(?P<names>[^\W_][\w.-]{0,60}\[[^\[\]\s]{1,60}\])",
        "DOC1[E2]",
        ("DOC1[E2]",),
        Base.ID,
        Trust.LABEL,
        "kathylau-oai/pincite_evals citations.py",
    ),
    _form(
        "escaped",
        r"\\\[(?P<names>[^\[\]\n\\]{1,80})\\\]",
        r"\[1\]",
        ("1",),
        Base.ONE,
        Trust.LABEL,
        "likely: Markdown escapes",
    ),
    _form(
        "tag_of_names",
        r"<(?P<tag>cite|citations?|refs?|references?|sup|sources?|docs?|documents?|inref)>[ \t]*\[?"
        r"(?P<names>[^<>\[\]\n]{1,200})\]?[ \t]*</(?P=tag)>",
        "<sup>1</sup>",
        ("1",),
        Base.ONE,
        Trust.LABEL,
        "likely",
    ),
    _form(
        "square",
        rf"\[(?P<names>{_LIST})\]",
        "[1, 2]",
        ("1", "2"),
        Base.ONE,
        Trust.HOUSE,
        "Perplexica, STORM, ALCE, Haystack, open-webui, LlamaIndex, RAGFlow [ID:0], Azure [doc1], [file.pdf]",
    ),
    _form(
        "round",
        r"\((?P<names>[^()\n]{1,200})\)",
        "(pqac-d79ef6fa, pqac-0f650d59)",
        ("pqac-d79ef6fa", "pqac-0f650d59"),
        Base.ID,
        Trust.LABEL,
        "paper-qa prompts; RAGFlow (ID: 12)",
    ),
    _form(
        "hash",
        r"##(?P<names>\d{1,6})\$\$",
        "##0$$",
        ("0",),
        Base.ZERO,
        Trust.FORM,
        "RAGFlow dialog_service (SQL rows)",
    ),
    _form(
        "private_use",
        rf"{_SEP}[a-z_]{{1,20}}{_MID}(?P<names>{_KEY}(?:{_MID}{_KEY}){{0,30}})(?:\ue201|\\ue201)?",
        "\ue200cite\ue202turn0search3\ue202turn0search8\ue201",
        ("turn0search3", "turn0search8"),
        Base.ZERO,
        Trust.FORM,
        "ChatGPT; LibreChat #10888, unsloth #5713",
    ),
    _form(
        "turn",
        rf"(?:{_SEP}|(?<![^\W_]))(?:(?:file)?cite)?(?P<names>{_TURN}(?:{_MID}?{_TURN}){{0,30}})(?:\ue201|\\ue201|(?![^\W_]))",
        "turn0file1",
        ("turn0file1",),
        Base.ZERO,
        Trust.FORM,
        "ChatGPT with its private-use characters printed or lost; opencodex #3843",
    ),
    _form(
        "special_token",
        r"<\|(?P<names>[^|<>\s]{1,200})\|>",
        "<|file-77ab|>",
        ("file-77ab",),
        Base.ID,
        Trust.HOUSE,
        "ogx-ai/ogx #6599",
    ),
    _form(
        "grounded_span",
        r"<(?P<tag>co):[ \t]*(?P<names>\d{1,4}(?:[ \t]*,[ \t]*\d{1,4}){0,30})>",
        "<co: 0,1>",
        ("0", "1"),
        Base.ZERO,
        Trust.FORM,
        "Command-R grounded answers; wraps the words",
    ),
    _form(
        "tag",
        r"<(?P<tag>[a-z][a-z0-9:_-]{0,30})(?:[ \t]+[a-z:_-]{1,30}=(?:\"[^\"<>\n]{0,100}\"|'[^'<>\n]{0,100}')){0,5}"
        r"[ \t]+(?:ids?|index(?:es)?|ref|key|n|num(?:ber)?|sources?|docs?|(?:source|doc|document|chunk|ref)[_-]?ids?)"
        r"=[\"'](?P<names>[^\"'<>\n]{1,200})[\"'](?:[ \t]+[a-z:_-]{1,30}=(?:\"[^\"<>\n]{0,100}\"|'[^'<>\n]{0,100}')){0,5}"
        r"[ \t]*(?P<closed>/?)>",
        '<inref id="a5477f85"/>',
        ("a5477f85",),
        Base.ID,
        Trust.HOUSE,
        'eneo static_prompts; open-webui <source id="1">; also wraps the words',
    ),
    _form(
        "latex",
        r"\\(?:[a-z]{0,8}cite[a-z]{0,8}\*?)(?:\[[^\[\]\n]{0,60}\]){0,2}\{(?P<names>[^{}\n]{1,200})\}",
        r"\cite{doc-1,doc-2}",
        ("doc-1", "doc-2"),
        Base.ID,
        Trust.FORM,
        "likely",
    ),
    _form(
        "braces",
        r"\{\{?[ \t]*(?P<names>[^{}\n]{1,100}?)[ \t]*\}\}?",
        "{{source:1}}",
        ("1",),
        Base.ONE,
        Trust.LABEL,
        "RAGFlow #8273, bartleby #24",
    ),
    _form(
        "superscript",
        r"[⁽]?(?P<names>[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,4}(?:[ ]?[,⁻˒ʼ·][ ]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,4}){0,20})[⁾]?",
        "¹",
        ("1",),
        Base.ONE,
        Trust.HOUSE,
        "likely",
    ),
    _form(
        "caret",
        r"[ ]?\^(?P<names>\d{1,4}(?:[ ]?,[ ]?\d{1,4}){0,20})\^",
        "^1^",
        ("1",),
        Base.ONE,
        Trust.LABEL,
        "microsoft/sample-app-aoai-chatGPT AnswerParser (rewritten [doc1])",
    ),
    _form(
        "ref_word",
        r"\b(?P<names>ref[ ]?\d{1,4})\b",
        "ref12",
        ("12",),
        Base.ZERO,
        Trust.LABEL,
        "RAGFlow repairs",
    ),
    _form(
        "address",
        r"<?(?P<names>https?://[^\s<>()\[\]\"'`|]{0,500}[^\s<>()\[\]\"'`|.,;:!?])>?",
        "https://kb.example/a",
        ("https://kb.example/a",),
        Base.URL,
        Trust.LABEL,
        "khoj prompts, printed bare",
    ),
)
"""Every form, the more specific before the more general: where two match the same text the first wins."""


_MARKS = dict(zip("【】［］〔〕〖〗（），；：、｛｝–‑", "[][][][](),;:,{}--", strict=True))


class _Fold(dict[int, int | None]):
    """Code point to code point: digits, brackets and separators of other scripts to the ASCII ones."""

    def __missing__(self, code: int) -> int:
        char = chr(code)
        folded = _MARKS.get(char, char)
        if not char.isascii() and unicodedata.category(char) == "Nd":
            folded = str(unicodedata.digit(char))
        elif "\uff01" <= char <= "\uff5e":
            folded = chr(code - 0xFEE0)
        self[code] = ord(folded)
        return ord(folded)


_FOLD = _Fold()


def fold_text(text: str) -> str:
    """Return `text`, as long, with full-width and other scripts' brackets, digits and separators as ASCII."""
    return text if text.isascii() else text.translate(_FOLD)
