"""Redaction: what the host keeps out of the spans.

A rule takes a text and returns what is recorded instead; `None` hides it. `Hide`, `Truncate` and `Hash` are
ready-made. Whatever a rule does is said in the run's record (`hidden`, `cut`), so that a hidden answer is
read as `content_hidden` and a shortened passage never faults a claim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from citespan.tracer.faults import log_fault
from citespan.tracer.settings import TracerSettings
from citespan.tracer.text import text_hash

__all__ = [
    "HIDDEN",
    "Hash",
    "Hide",
    "Redacted",
    "Redaction",
    "RedactionNotes",
    "Rule",
    "Truncate",
    "common_length",
    "redact",
    "redacted_text",
]

HIDDEN = "__REDACTED__"
"""What stands on a span for a hidden text: OpenInference's own mask, which readers and viewers know."""


@dataclass(frozen=True, slots=True)
class Redacted:
    """What a rule made of a text."""

    text: str
    """What is recorded."""

    is_hidden: bool = False
    """Whether nothing of the text can be read."""

    is_cut: bool = False
    """Whether it can be read, but not as it was."""

    keeps_hash: bool = True
    """Whether the hash of the original may be recorded."""


Rule = Callable[[str], "str | Redacted | None"]
"""A redaction rule: text in, recorded text out; `None` hides it and its hash."""


@dataclass(frozen=True, slots=True)
class Hide:
    """A rule that records nothing of the text, not even its hash."""

    def __call__(self, text: str) -> Redacted:
        """Return the mask."""
        return _HIDDEN


@dataclass(frozen=True, slots=True)
class Hash:
    """A rule that records only the sha256 of the text: equal texts can still be told to be equal."""

    def __call__(self, text: str) -> Redacted:
        """Return the hash, with its name before it."""
        return Redacted(f"sha256:{text_hash(text)}", is_hidden=True)


@dataclass(frozen=True, slots=True)
class Truncate:
    """A rule that records the beginning of a long text and says how much is missing."""

    length: int
    """Code points kept."""

    def __post_init__(self) -> None:
        if self.length < 0:
            raise ValueError(f"length is {self.length}: expected 0 or more code points")

    def __call__(self, text: str) -> Redacted:
        """Return the beginning and a visible mark, or a short text as it is."""
        missing = len(text) - self.length
        if missing <= 0:
            return Redacted(text)
        return Redacted(f"{text[: self.length]}… [{missing} characters not recorded]", is_cut=True)


@dataclass(frozen=True, slots=True)
class Redaction:
    """The rules of an app; `None` records the text as it is."""

    question: Rule | None = None
    """For the question and for retrieval queries."""

    answer: Rule | None = None
    """For the answer and for the text a model returned."""

    passages: Rule | None = None
    """For passages, for the strings in their metadata, and for quotes."""

    prompt: Rule | None = None
    """For the prompt, which repeats question and passages: hidden where these are redacted, unless given."""

    @property
    def is_active(self) -> bool:
        """Whether any rule is set."""
        return not (self.question is self.answer is self.passages is self.prompt is None)

    @property
    def prompt_rule(self) -> Rule | None:
        """The rule that holds for the prompt."""
        if self.prompt is None and not (self.question is self.passages is None):
            return Hide()
        return self.prompt

    def under(self, settings: TracerSettings) -> Redaction:
        """Return these rules, completed by those that the environment asks for."""
        cut = None if settings.text_limit is None else Truncate(settings.text_limit)
        hide_in = Hide() if settings.hides_inputs else None
        hide_out = Hide() if settings.hides_outputs else None
        return Redaction(
            question=self.question or hide_in or cut,
            answer=self.answer or hide_out or cut,
            passages=self.passages or hide_out or cut,
            prompt=self.prompt or hide_in or (cut if self.prompt_rule is None else None),
        )


def redact(rule: Rule | None, text: str) -> Redacted:
    """Return `text` under `rule`; a rule that fails hides it."""
    if rule is None:
        return Redacted(text)
    try:
        made = rule(text)
    except Exception as error:
        log_fault("a redaction rule", error)
        return _HIDDEN
    if made is None:
        return _HIDDEN
    if isinstance(made, Redacted):
        return made
    return Redacted(made, is_cut=made != text)


def redacted_text(rule: Rule | None, text: str) -> str:
    """Return what is recorded of `text` under `rule`."""
    return text if rule is None else redact(rule, text).text


class RedactionNotes:
    """What redaction hid and what it cut, by name, for the record."""

    __slots__ = ("cut", "hidden")

    def __init__(self, hidden: list[str], cut: list[str]) -> None:
        """Begin with what is known already."""
        self.hidden = hidden
        """Names of what cannot be read."""
        self.cut = cut
        """Names of what can be read, but not as it was."""

    def recorded(self, rule: Rule | None, text: str, name: str, *, is_cut: bool = False) -> str:
        """Return what is recorded of `text` under `rule`, and note what that leaves out.

        Args:
            rule: The rule, if any.
            text: The original.
            name: What the record calls it.
            is_cut: Whether the original was cut before.
        """
        made = None if rule is None else redact(rule, text)
        if made is not None and made.is_hidden:
            self.hidden.append(name)
        elif is_cut or (made is not None and made.is_cut):
            self.cut.append(name)
        return text if made is None else made.text


def common_length(original: str, recorded: str) -> int:
    """Return how many leading code points the two share: ranges within them still hold."""
    if original == recorded:
        return len(original)
    pairs = enumerate(zip(original, recorded, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(original), len(recorded)))


_HIDDEN = Redacted(HIDDEN, is_hidden=True, keeps_hash=False)
