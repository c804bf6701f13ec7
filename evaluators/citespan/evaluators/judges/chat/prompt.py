"""The prompt: instructions from a versioned file, and the material as one JSON document.

Claims, passages and questions travel as JSON strings, so no text can leave its field: what ends a string is escaped.
Text that a server's chat template might read as a control token (`<|im_end|>`, `[INST]`) is escaped as well.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from citespan.evaluators.judges.judge import JudgeRequest
from citespan.tracer.text import clean_text

__all__ = [
    "PROMPT",
    "Item",
    "Prompt",
    "estimate_tokens",
    "looks_like_instruction",
    "passage_keys",
    "render_document",
    "text_tokens",
]

PROMPT_FILE = "judge-1.md"
"""The file under `prompts/` that instructs the model; a changed text is a new file."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The instructions that go before the material."""

    text: str
    """Sent as the system message."""

    @property
    def sha256(self) -> str:
        """Hash of the text: part of the judge's fingerprint."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def _load() -> Prompt:
    folder = resources.files("citespan.evaluators.judges.chat").joinpath("prompts")
    return Prompt(folder.joinpath(PROMPT_FILE).read_text(encoding="utf-8"))


PROMPT = _load()
"""The instructions of this version."""


@dataclass(frozen=True, slots=True)
class Item:
    """One request as it is sent: after redaction, with what went wrong before if it is asked again."""

    request: JudgeRequest
    """The request, its texts redacted: this is what is sent."""

    original: JudgeRequest
    """The request as it came: the evidence is quoted from it."""

    problem: str = ""
    """Why an earlier answer could not be used; empty the first time."""


_INVISIBLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff"
)
"""Characters that show nothing: joiners, fillers, direction marks, variation selectors, tags."""

_LOOK_ALIKE = (
    "\ufe37\ufe38\ufe47\ufe48\ufe5b\ufe5c\ufe64\ufe65\ufe68\uff02\uff1c\uff1e\uff3b-\uff3d\uff5b-\uff5d"
)
"""Characters that compatibility normalisation, which some tokenizers apply, turns into a quotation mark or a bracket."""

_CONTROL = re.compile(f"[<>\x7f-\x9f\u2028\u2029{_INVISIBLE}{_LOOK_ALIKE}]" + r"|\[(?=/?[a-z]?[A-Z_]{2,}\])")
"""Control characters, what shows nothing or looks like markup, angle brackets, and the bracket that opens `[INST]`."""


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _string(text: str) -> str:
    return _CONTROL.sub(_escape, json.dumps(clean_text(text), ensure_ascii=False))


def render_document(items: Sequence[Item]) -> str:
    """Return the JSON document of these items: each distinct passage once, claims numbered from 1.

    The layout is the same whatever the texts hold; a test reads it back and compares.
    """
    keys = passage_keys(items)
    lines = ['{"question": ' + _string(items[0].request.question) + "," if items[0].request.question else "{"]
    lines.append('"passages": {')
    lines.append(",\n".join(f'"{key}": {_string(text)}' for text, key in keys.items()))
    lines.append('},\n"claims": [')
    lines.append(",\n".join(_claim(n, item, keys) for n, item in enumerate(items, start=1)))
    lines.append("]}")
    return "\n".join(lines)


def passage_keys(items: Sequence[Item]) -> dict[str, str]:
    """Return the key of each distinct passage text: `p1`, `p2` ... in order of first use, never the run's own ids."""
    texts = dict.fromkeys(passage.text or "" for item in items for passage in item.request.passages)
    return {text: f"p{n}" for n, text in enumerate(texts, start=1)}


def _claim(n: int, item: Item, keys: dict[str, str]) -> str:
    request = item.request
    shown = ", ".join(f'"{keys[passage.text or ""]}"' for passage in request.passages)
    fields = [f'"n": {n}', f'"passages": [{shown}]', f'"claim": {_string(request.claim)}']
    if request.sentence and request.sentence != request.claim:
        fields.append(f'"sentence": {_string(request.sentence)}')
    if item.problem:
        fields.append(f'"problem": {_string(item.problem)}')
    return "{" + ", ".join(fields) + "}"


BYTES_PER_TOKEN = 3
"""UTF-8 bytes per token, low on purpose: English has about 4, other scripts about 3, so estimates err upwards."""


def estimate_tokens(text: str) -> int:
    """Return how many tokens `text` takes at most, as a rule of thumb."""
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)


def text_tokens(text: str) -> int:
    """Return how many tokens `text` takes at most inside the document, where it is escaped."""
    return estimate_tokens(_string(text))


_VERDICT_WORDS = "supported|entailed|unsupported|contradicted|true|correct|verified"

_INSTRUCTION = re.compile(
    rf"""
      \b(ignore|disregard|forget|override)\b.{{0,30}}\b(instructions?|prompts?|directions?|guidelines)\b
    | \b(ignore|disregard|forget)\ (everything|all|anything|what\ (is|was))\b.{{0,20}}\b(above|before|previous|prior)\b
    | \b(disregard|forget)\ the\ (above|previous|prior)\b
    | \b(ignoriere|vergiss|ignorez|oubliez|ignora|olvida|ignore)\b.{{0,40}}\b(anweisung|instru[cçk]|istruzion)
    | 忽略.{{0,12}}(指令|指示|提示)|以前の指示を無視|игнорируй.{{0,20}}инструкц
    | \byou\ are\ (now|no\ longer)\ an?\b.{{0,40}}\b(assistant|model|ai|bot|judge|pirate|expert)\b
    | \b(reveal|print|show|repeat|override)\b.{{0,20}}\bsystem\ prompt\b
    | \b(label|mark|rate|classify|judge|consider|treat)\b.{{0,30}}\b(claims?|statements?|answers?)\b.{{0,20}}
      \b({_VERDICT_WORDS})\b
    | \b(answer|respond|reply|say)\s+(only\s+)?(with\s+)?["'“‘`]({_VERDICT_WORDS})\b
    | ^\s*(system|developer)\s*:
    | <\|?\s*/?\s*(im_start|im_end|start_header_id|eot_id|endoftext|system)\b
    | \[/?(INST|SYSTEM|SYS|TOOL_CALLS)\]
    | [\ufe00-\ufe0f\U000e0000-\U000e0fff]{{4}}
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""Orders to a model, verdicts that a text asks for, chat markup, and text in invisible characters."""


_LATIN = str.maketrans(
    "АВЕЅІЈКМНОРСТХаеѕіјорсухһԁӏԛѡΑΒΕΖΗΙΚΜΝΟΡΤΥΧαειονρυχ",
    "ABESIJKMHOPCTXaesijopcyxhdlqwABEZHIKMNOPTYXaeiovpux",
)
"""Cyrillic and Greek letters by the Latin ones that they look like."""

_UNSEEN = re.compile(f"[{_INVISIBLE}]+")


def looks_like_instruction(text: str) -> bool:
    """Return whether `text` holds words that address a model: a reason for a person to look, never for a label.

    Letters that only look like Latin ones, and characters that show nothing, do not hide them.
    """
    if _INSTRUCTION.search(text) is not None:
        return True
    if text.isascii():
        return False
    shown = unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).translate(_LATIN)
    return _INSTRUCTION.search(shown) is not None
