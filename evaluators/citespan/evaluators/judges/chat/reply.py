"""The model's reply: the schema it is asked to keep, and what can be read of it when it does not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from citespan.evaluators.judges.chat.quotes import find_quote

__all__ = ["REPLY_SCHEMA", "Problem", "ReplyVerdict", "read_reply"]


class ReplyVerdict(BaseModel):
    """What the model says of one claim."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    n: int
    """The claim's number in the document."""

    quote: str = ""
    """The passage's words that decide, as the model copied them."""

    passage: str = ""
    """Key of the passage that the quote is from."""

    reason: str = ""
    """One plain sentence."""

    label: Literal["supported", "partly_supported", "contradicted", "unsupported"]
    """The label."""

    probability: float | None = Field(default=None, ge=0, le=100)
    """How likely the passages entail the claim in full, in per cent; `None` if the model did not say."""

    @field_validator("label", mode="before")
    @classmethod
    def _is_any_case(cls, value: object) -> object:
        return value.strip().lower().replace(" ", "_") if isinstance(value, str) else value

    @property
    def score(self) -> float | None:
        """The probability in [0, 1]; some models give a fraction though asked for per cent."""
        if self.probability is None:
            return None
        is_fraction = self.probability < 1 or (self.probability == 1 and self.label == "supported")
        return self.probability if is_fraction else self.probability / 100


@dataclass(frozen=True, slots=True)
class Problem:
    """Why one claim has no usable verdict yet."""

    rule: str
    """`invalid_reply`, `missing_verdict` or `quote_not_found`."""

    detail: str
    """What was wrong, for the model's second try and for a person."""

    is_final: bool = False
    """Whether asking the model again is of no use."""

    is_general: bool = False
    """Whether any other text would meet the same: the fault is the endpoint's, the key's or the budget's."""


_VERDICT_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "quote": {"type": "string"},
        "passage": {"type": "string"},
        "reason": {"type": "string"},
        "label": {"type": "string", "enum": ["supported", "partly_supported", "contradicted", "unsupported"]},
        "probability": {"type": "integer"},
    },
    "required": ["n", "quote", "passage", "reason", "label", "probability"],
    "additionalProperties": False,
}

REPLY_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"verdicts": {"type": "array", "items": _VERDICT_SCHEMA}},
    "required": ["verdicts"],
    "additionalProperties": False,
}
"""JSON schema of the reply, within what strict structured output allows; reason before label, so that it leads."""


def read_reply(text: str, count: int, material: Iterable[str] = ()) -> list[ReplyVerdict | Problem]:
    """Return, for claims 1 to `count`, the verdict that `text` holds or the problem; one bad entry voids no other.

    Two different verdicts on one claim are none, so that a passage that was repeated beside the answer cannot pass for
    it.

    Args:
        text: What the model answered.
        count: How many claims it was asked about.
        material: The texts that it was shown: what it copied from them is no verdict of its own.
    """
    entries = _entries(text, [one for one in material if "label" in one.casefold()])
    if entries is None:
        problem = Problem("invalid_reply", f"the reply was no JSON object with verdicts: {_shorten(text)}")
        return [problem] * count
    found: dict[int, ReplyVerdict | Problem] = {}
    for entry in entries:
        n = _number(entry.get("n"))
        if not 1 <= n <= count:
            continue
        read = _read_entry(entry)
        if n in found and found[n] != read:
            read = Problem("invalid_reply", "the reply held several different verdicts on this claim")
        found[n] = read
    missing = Problem("missing_verdict", "the reply held no verdict on this claim")
    return [found.get(n, missing) for n in range(1, count + 1)]


def _number(value: object) -> int:
    """Return the claim's number, 0 if there is none; some models write it as a string."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) else 0


def _read_entry(entry: Mapping[str, object]) -> ReplyVerdict | Problem:
    try:
        return ReplyVerdict.model_validate(entry)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return Problem("invalid_reply", f"{where}: {first['msg']}")


def _entries(text: str, copied_from: Sequence[str]) -> list[Mapping[str, object]] | None:
    """Return the entries of every list of verdicts in `text`, else every object with a label; `None` without any.

    Thoughts before the answer, fences and chatter are skipped; a reply that was cut keeps the entries it finished.
    """
    listed: list[object] | None = None
    loose: list[object] = []
    for value, source in _json_values(_THOUGHTS.sub("", text)):
        held = cast("Mapping[str, object]", value).get("verdicts") if isinstance(value, dict) else value
        if any(find_quote(one, source) is not None for one in copied_from):
            continue
        if isinstance(held, list):
            listed = [*(listed or []), *cast("list[object]", held)]
        elif isinstance(value, dict) and "label" in value:
            loose.append({"n": len(loose) + 1, **cast("Mapping[str, object]", value)})
    entries = loose if listed is None else listed
    if listed is None and not loose:
        return None
    return [cast("Mapping[str, object]", entry) for entry in entries if isinstance(entry, dict)]


_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
"""What a model that thinks aloud says before it answers."""

_MOST_STARTS = 200
"""How many brackets of a reply that is no JSON are tried as the start of some."""


def _json_values(text: str) -> Iterator[tuple[object, str]]:
    """Yield every JSON list and object in `text` that is not part of another, and its text."""
    decoder = json.JSONDecoder()
    at = 0
    for _ in range(_MOST_STARTS):
        start = _BRACKET.search(text, at)
        if start is None:
            return
        try:
            value, at = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            at = start.end()
        else:
            yield value, text[start.start() : at]


_BRACKET = re.compile(r"[{\[]")


def _shorten(text: str, limit: int = 80) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= limit else f"{plain[:limit]} …"
