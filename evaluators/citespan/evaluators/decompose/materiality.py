"""Tell what asserts something a reader could check from what does not, with the rule that says so."""

from __future__ import annotations

import re
from enum import StrEnum

from citespan.evaluators.decompose.materiality_rules import RULES

__all__ = ["Immaterial", "immaterial_reason", "is_pointer"]


class Immaterial(StrEnum):
    """The rule by which a claim is not material."""

    OPINION = "opinion"
    """The speaker's own view or advice: `I think ...`."""

    GREETING = "greeting"
    """A greeting, thanks or opening courtesy: `Great question!`."""

    OFFER_OF_HELP = "offer_of_help"
    """An offer or a closing courtesy: `Let me know if ...`."""

    QUESTION = "question"
    """A question to the reader."""

    HEDGE = "hedge"
    """A remark on the answer itself: `The passages do not say ...`."""

    RESTATEMENT = "restatement"
    """The question said again: `You asked about ...`."""

    HEADING = "heading"
    """A heading or a title in bold."""

    LEAD_IN = "lead_in"
    """Words that introduce what follows: `Here is how:`."""


_ORDER = (
    Immaterial.GREETING,
    Immaterial.OFFER_OF_HELP,
    Immaterial.HEDGE,
    Immaterial.RESTATEMENT,
    Immaterial.OPINION,
    Immaterial.LEAD_IN,
)
"""The order in which rules are tried: a claim has the first that holds."""

_LINK_OR_PLACE = re.compile(
    r"https?://|www\.|\]\(|\b(?:above|below|here|docs?|documentation|page|guide|section|chapter|appendix|article|manual|website|faq"
    r"|link|handbuch|seite|webseite|abschnitt|página|sitio|sección|guía|documentación|site|section|guide)\b",
    re.IGNORECASE,
)
_SHORT = 12
"""Words up to which `See ...` is taken to point and not to assert."""

_WORDS = re.compile(r"[^\W_]+")


def immaterial_reason(text: str, *, language: str, question: str | None) -> Immaterial | None:
    """Return the rule by which a claim is not material, or `None` if it is.

    In a language without rules everything is material but what ends in a colon.

    Args:
        text: The claim as plain text.
        language: ISO 639-1 code of the answer.
        question: The run's question, if recorded.
    """
    text = _plain(text)
    if text.endswith((":", "：")):
        return Immaterial.LEAD_IN
    rules = RULES.get(language)
    if rules is None:
        return None
    for reason in _ORDER:
        if rules[reason].match(text):
            return reason
    if question is not None and _WORDS.findall(text.casefold()) == _WORDS.findall(question.casefold()):
        return Immaterial.RESTATEMENT
    return Immaterial.QUESTION if text.endswith("?") else None


def _plain(text: str) -> str:
    return text.replace("’", "'").strip()


def is_pointer(text: str, *, language: str) -> bool:
    """Return whether a sentence only sends the reader elsewhere (`See the guide for more.`): it claims nothing."""
    rules = RULES.get(language)
    if rules is None:
        return False
    text = _plain(text)
    if rules["pointer"].match(text):
        return _LINK_OR_PLACE.search(text) is not None or len(_WORDS.findall(text)) <= _SHORT
    return rules["place_pointer"].match(text) is not None and _LINK_OR_PLACE.search(text) is not None
