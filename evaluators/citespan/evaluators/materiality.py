"""Tell what asserts something a reader could check from what does not, with the rule that says so."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

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


@dataclass(frozen=True, slots=True)
class _Rules:
    """What one language's rules look for at the start of a claim."""

    opinion: re.Pattern[str]
    greeting: re.Pattern[str]
    offer_of_help: re.Pattern[str]
    hedge: re.Pattern[str]
    restatement: re.Pattern[str]
    lead_in: re.Pattern[str]
    pointer: re.Pattern[str]
    """A sentence that only sends the reader elsewhere."""
    place_pointer: re.Pattern[str]
    """Likewise, if it names a link or a place to read."""


def _rules(**patterns: str) -> _Rules:
    return _Rules(**{name: re.compile(pattern, re.IGNORECASE) for name, pattern in patterns.items()})


_END = r"[^\w]*$"

_RULES = {
    "en": _rules(
        opinion=r"(?:personally,? )?i(?:'d| would)? (?:personally )?(?:think|believe|feel|guess|suppose|prefer|recommend|suggest)\b"
        r"|in my (?:opinion|view)|my (?:opinion|view|advice|recommendation) ",
        greeting=r"(?:hello|hi|hey|greetings|good (?:morning|afternoon|evening))(?:,? (?:there|all|everyone|team|again))?"
        + _END
        + r"|welcome(?: back)?"
        + _END
        + r"|(?:sure|certainly|of course|absolutely|great|no problem|okay|ok|thanks?|thank you|you're welcome|you are welcome|my pleasure"
        r"|i'd be happy to help|happy to help|glad to help)(?: thing| question| you| so much| for (?:asking|your question|reaching out)| very much){0,3}"
        + _END
        + r"|(?:that's|that is|what) (?:a|an) (?:great|good|excellent|interesting) question\b",
        offer_of_help=r"(?:please )?(?:let me know|feel free|don't hesitate|do not hesitate)\b|(?:i )?hope (?:this|that|it) (?:helps|answers|clarifies)"
        r"|if you (?:have|need|want|would like|'d like)\b.{0,80}\b(?:let me know|feel free|just ask|i can|i'm happy|i'd be|don't hesitate|please ask)\b"
        r"|i(?:'m| am|'d be| would be) (?:happy|glad|here) to (?:help|assist|answer|elaborate|provide|explain)|i can (?:also )?(?:help|assist) you"
        r"|(?:is there|do you need) anything else",
        hedge=r"(?:please )?note that i (?:can|could|do|did|am)\b|i(?:'m| am) (?:not sure|unsure|not certain|sorry|unable|afraid)\b|sorry,? |unfortunately,? i\b"
        r"|(?:based on [\w ]{2,40},? )?i (?:do not|don't|cannot|can't|could not|couldn't|did not|didn't) (?:know|find|have|see|determine|verify|provide|answer|confirm|locate|say)\b"
        r"|(?:unfortunately,? )?(?:the|these|this|those|none of the|your)(?: (?:\w+ )?(?:provided|given|available|retrieved|supplied|above|cited|search)(?: \w+)?"
        r"| passages?| contexts?| sources?| excerpts?| snippets?)(?: \w+){0,2}? (?:does not|do not|doesn't|don't|did not|didn't|is not|isn't|are not|aren't|lacks?|mentions?|says?)\b"
        r"|(?:the|these|this|those) (?:documents?|texts?|information|results?) (?:does not|do not|doesn't|don't) (?:say|specify|mention|state|discuss|address|indicate|contain (?:\w+ )?information)\b"
        r"|there is (?:no|not enough|insufficient) (?:information|mention|evidence)\b.{0,60}\b(?:passages?|documents?|sources?|context|provided|results?)"
        r"|(?:no|not enough|insufficient) information (?:is|was) (?:given|provided|available)|as an ai\b|this answer\b|my (?:answer|knowledge)\b",
        restatement=r"(?:you(?:'re| are| have|'ve)? (?:asked|asking|want(?:ed)? to know|wondering|inquired|would like to know)\b|your question\b|the question (?:is|was|asks)\b|to answer your question"
        + _END
        + ")",
        lead_in=r"(?:here (?:is|are)|here's|below (?:is|are)|let me (?:explain|show|walk)|let's (?:look|see|break))\b[^.!?]{0,60}$",
        pointer=r"(?:(?:for|to (?:learn|read|find out)) (?:(?:more|further|full|additional)\b[\w ]{0,40})?,? ?)?(?:please )?(?:also )?(?:see(?! (?:that|if|whether|to)\b)(?: also)?|refer to|cf\.?)\s"
        r"(?!.*\b(?:is|are|was|were|has|have|can|will|must)\b)|(?:more|further|additional) (?:information|details|reading)\b.{0,60}\b(?:found|available|see|here)\b"
        r"|(?:sources?|references?|citations?)\s*:",
        place_pointer=r"(?:for (?:more|further|full|additional)\b[\w ]{0,40},? )?(?:please )?(?:also )?(?:consult|check(?: out)?|visit|click|read(?: more)?|learn more|have a look|take a look)\b"
        r"(?!.*\b(?:is|are|was|were|has|have|can|will|must)\b)",
    ),
    "de": _rules(
        opinion=r"ich (?:denke|glaube|finde|meine|empfehle|würde)\b|meiner meinung nach\b|meines erachtens\b",
        greeting=r"(?:hallo|guten (?:tag|morgen|abend)|willkommen|gerne?|natürlich|klar|danke|vielen dank|gute frage|sehr gerne?)(?: zusammen| für (?:ihre|deine|die) frage)?"
        + _END,
        offer_of_help=r"(?:bitte )?(?:lassen sie|lass) (?:es )?mich\b|ich hoffe\b|wenn (?:sie|du) (?:weitere|noch) |(?:melden sie sich|melde dich)\b|ich helfe (?:ihnen|dir)\b",
        hedge=r"ich (?:weiß|bin mir) nicht|leider (?:kann|konnte|habe) ich\b|es tut mir leid|ich (?:kann|konnte) (?:das|dies|keine|nicht)\b"
        r"|(?:die|der|das|den)(?: \w+)? (?:quellen?|kontext|auszüge?|angegebenen \w+|bereitgestellten \w+|vorliegenden \w+)(?: \w+){0,3} (?:nicht|keine[nr]?)\b",
        restatement=r"(?:sie|du) (?:haben|hast|möchten?|wollen|willst)\b.{0,40}(?:gefragt|wissen)\b|(?:ihre|deine) frage\b",
        lead_in=r"hier (?:ist|sind)\b[^.!?]{0,60}$",
        pointer=r"siehe\b|vgl\.?\s|(?:weitere|mehr) (?:informationen|details)\b.{0,60}\b(?:finden|gibt|unter|hier)\b|quellen?\s*:",
        place_pointer=r"(?:bitte )?(?:besuchen|lesen|öffnen|klicken) sie\b",
    ),
    "es": _rules(
        opinion=r"(?:yo )?(?:creo|pienso|opino|considero|recomiendo|recomendaría)\b|en mi opinión\b|a mi juicio\b",
        greeting=r"¡?(?:hola|buen(?:os|as) (?:días|tardes|noches)|bienvenid[oa]s?|claro(?: que sí)?|por supuesto|gracias|de nada|buena pregunta|con gusto)(?: por (?:tu|su|la) pregunta)?"
        + _END,
        offer_of_help=r"no dud(?:es|e) en\b|avísame\b|avíseme\b|espero que (?:esto|te|le)\b|si (?:tienes|tiene|necesitas|necesita) (?:más|otra|alguna)\b|estoy aquí para\b",
        hedge=r"(?:no (?:sé|estoy segur[oa]|encuentro|encontré|puedo (?:responder|confirmar|encontrar)|tengo información)|lo siento|lamentablemente,? no)\b"
        r"|(?:los|las|el|la)(?: \w+)? (?:fuentes?|contexto|fragmentos?|(?:documentos?|textos?|información) proporcionad[oa]s?)(?: \w+){0,2}? no\b|no hay (?:suficiente )?información\b",
        restatement=r"(?:has|ha|me has|me) pregunta(?:do|s)?\b|(?:tu|su) pregunta\b|(?:quieres|quiere) saber\b",
        lead_in=r"aquí (?:está|están|tienes)\b[^.!?]{0,60}$",
        pointer=r"véase\b|ver también\b|más información\b|fuentes?\s*:",
        place_pointer=r"(?:para más (?:información|detalles),? )?(?:consult[ae]|visit[ae]|lee|lea|ver)\b",
    ),
    "fr": _rules(
        opinion=r"je (?:pense|crois|trouve|recommande|dirais)\b|à mon avis\b|selon moi\b|personnellement\b",
        greeting=r"(?:bonjour|bonsoir|salut|bienvenue|bien sûr|certainement|merci|de rien|avec plaisir|bonne question)(?: à tous| pour votre question)?"
        + _END,
        offer_of_help=r"n'hésite[sz]? pas\b|faites-moi savoir\b|j'espère que\b|si vous avez d'autres\b|je reste à votre\b",
        hedge=r"je ne (?:sais|suis|peux|trouve|dispose)\b|je n'ai\b|désolé|malheureusement,? je\b"
        r"|(?:les?|la|ces?)(?: \w+)? (?:sources?|contexte|passages?|extraits?|(?:documents?|textes?|informations?) fournie?s?)(?: \w+){0,2}? (?:ne|n')\b|il n'y a pas (?:assez )?d'information",
        restatement=r"vous (?:avez demandé|demandez|voulez savoir|souhaitez savoir)\b|tu (?:as demandé|demandes|veux savoir)\b|(?:votre|ta) question\b",
        lead_in=r"(?:voici|voilà)\b[^.!?]{0,60}$",
        pointer=r"voir(?: aussi)?\b|pour en savoir plus\b|plus d'informations?\b|sources?\s*:",
        place_pointer=r"(?:pour plus [\w' ]{0,30},? )?(?:consultez|visitez|lisez)\b",
    ),
}

_CHECKS = (
    ("greeting", Immaterial.GREETING),
    ("offer_of_help", Immaterial.OFFER_OF_HELP),
    ("hedge", Immaterial.HEDGE),
    ("restatement", Immaterial.RESTATEMENT),
    ("opinion", Immaterial.OPINION),
    ("lead_in", Immaterial.LEAD_IN),
)
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
    text = text.replace("’", "'").strip()
    if text.endswith((":", "：")):
        return Immaterial.LEAD_IN
    rules = _RULES.get(language)
    if rules is None:
        return None
    for field, reason in _CHECKS:
        pattern: re.Pattern[str] = getattr(rules, field)
        if pattern.match(text):
            return reason
    if question is not None and _WORDS.findall(text.casefold()) == _WORDS.findall(question.casefold()):
        return Immaterial.RESTATEMENT
    return Immaterial.QUESTION if text.endswith("?") else None


def is_pointer(text: str, *, language: str) -> bool:
    """Return whether a sentence only sends the reader elsewhere (`See the guide for more.`): it claims nothing."""
    rules = _RULES.get(language)
    if rules is None:
        return False
    text = text.strip()
    if rules.pointer.match(text):
        return _LINK_OR_PLACE.search(text) is not None or len(_WORDS.findall(text)) <= _SHORT
    return rules.place_pointer.match(text) is not None and _LINK_OR_PLACE.search(text) is not None
