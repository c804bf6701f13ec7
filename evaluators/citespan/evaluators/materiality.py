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


def _rules(**patterns: str) -> _Rules:
    return _Rules(**{name: re.compile(pattern, re.IGNORECASE) for name, pattern in patterns.items()})


_RULES = {
    "en": _rules(
        opinion=r"(?:personally,? )?(?:i(?:'d| would)? (?:personally )?(?:think|believe|feel|guess|suppose|prefer|recommend|suggest)\b"
        r"|in my (?:opinion|view)|my (?:opinion|view|advice|recommendation) )",
        greeting=r"(?:hello|hi|hey|dear|good (?:morning|afternoon|evening)|greetings|welcome)\b[^.!?]{0,30}[!.,]?$"
        r"|(?:sure|certainly|of course|absolutely|great|no problem|okay|ok|thanks?|thank you|you're welcome|you are welcome"
        r"|my pleasure|i'd be happy to help|happy to help|glad to help)\b(?:(?: thing| question| you| so much| for (?:asking|your question|reaching out)"
        r"| very much),?){0,3}[^\w]*$|(?:that's|that is|what) (?:a|an) (?:great|good|excellent|interesting) question\b",
        offer_of_help=r"(?:please )?(?:let me know|feel free|don't hesitate|do not hesitate|reach out)\b|(?:i )?hope (?:this|that) (?:helps|answers|clarifies)"
        r"|if you (?:have|need|want|would like|'d like)\b.{0,80}\b(?:let me know|feel free|just ask|ask|i can|i'm happy|happy to|don't hesitate|reach out)"
        r"|i(?:'m| am|'d be| would be) (?:happy|glad|here) to (?:help|assist|answer|elaborate|provide|explain)|i can (?:also )?(?:help|assist) you"
        r"|(?:is there|do you need) anything else",
        hedge=r"(?:please )?note that i (?:can|could|do|did|am)|i(?:'m| am) (?:not sure|unsure|not certain|sorry|unable|afraid)|sorry\b|unfortunately,? i\b"
        r"|i (?:do not|don't|cannot|can't|could not|couldn't|did not|didn't) (?:know|find|have|see|determine|verify|provide|answer|confirm|locate|say)"
        r"|(?:the|these|this|those)(?: \w+){0,2} (?:passages?|documents?|sources?|context|information|search results?|excerpts?|texts?|results?)"
        r"(?: \w+){0,3} (?:does not|do not|doesn't|don't|did not|didn't|is not|isn't|are not|aren't) (?:\w+ )?(?:say|specify|mention|contain|provide|include|state|discuss|address|cover|indicate|sufficient|enough)"
        r"|there is (?:no|not enough|insufficient) (?:information|mention|evidence)\b.{0,60}\b(?:passages?|documents?|sources?|context|provided|results?)"
        r"|(?:no|not enough|insufficient) information (?:is|was) (?:given|provided|available)|as an ai\b|this answer\b|my (?:answer|knowledge)\b"
        r"|based on the (?:provided|given|available) [\w ]{2,30},? i (?:cannot|can't|could not|do not|don't)",
        restatement=r"(?:you(?:'re| are| have|'ve)? (?:asked|asking|want(?:ed)? to know|wondering|inquired|would like to know)|your question|the question (?:is|was|asks)|to answer your question[^\w]*$)",
        lead_in=r"(?:here (?:is|are)|here's|below (?:is|are)|the following|in (?:summary|short|conclusion)|to summarize|let me explain|let's \w+)\b[^.!?]{0,60}$",
        pointer=r"(?:(?:for|to (?:learn|read|find out)) (?:more|further|full|additional)?[\w ,]{0,40},? ?)?(?:please )?(?:also )?(?:see(?: also)?|refer to|consult|cf\.?|check out|visit|click|read more)\b(?!.*\b(?:is|are|was|were|has|have|can|will|must)\b)"
        r"|(?:more|further|additional) (?:information|details|reading)\b.{0,60}\b(?:found|available|see|here|at|in)\b|(?:sources?|references?|citations?)\s*:",
    ),
    "de": _rules(
        opinion=r"(?:ich (?:denke|glaube|finde|meine|empfehle|würde)|meiner meinung nach|meines erachtens)\b",
        greeting=r"(?:hallo|guten (?:tag|morgen|abend)|liebe[r]?|willkommen|gerne?|natürlich|klar|danke|vielen dank|gute frage)\b[^.!?]{0,30}[!.,]?$",
        offer_of_help=r"(?:bitte )?(?:lassen sie|lass) (?:es )?mich|(?:ich hoffe|hoffentlich)\b|wenn (?:sie|du) (?:weitere|noch)? ?fragen|melde(?:n sie)? (?:dich|sich)|ich helfe (?:ihnen|dir)? ?gerne?",
        hedge=r"(?:ich (?:weiß|bin mir) nicht|leider (?:kann|konnte|habe) ich|es tut mir leid|ich (?:kann|konnte) (?:das|dies|keine|nicht))\b|(?:die|der|das|den)(?: \w+){0,2} (?:quellen?|dokumente?|texte?|kontext|informationen|abschnitte?)(?: \w+){0,3} (?:nicht|keine)\b|dazu (?:liegen|gibt es|enthalten) .{0,40}keine",
        restatement=r"(?:sie|du) (?:haben|hast|möchten?|wollen|willst|fragen|fragst)\b.{0,40}(?:gefragt|wissen)|(?:ihre|deine) frage\b",
        lead_in=r"(?:hier (?:ist|sind)|im folgenden|zusammenfassend)\b[^.!?]{0,60}$",
        pointer=r"(?:siehe|vgl\.?|weitere (?:informationen|details) (?:finden|gibt|unter)|mehr (?:dazu|informationen))\b|quellen?\s*:",
    ),
    "es": _rules(
        opinion=r"(?:(?:yo )?(?:creo|pienso|opino|considero|recomiendo|recomendaría)|en mi opinión|a mi juicio)\b",
        greeting=r"¡?(?:hola|buen(?:os|as) (?:días|tardes|noches)|bienvenid[oa]s?|claro|por supuesto|gracias|de nada|buena pregunta|con gusto)\b[^.!?]{0,30}[!.,]?$",
        offer_of_help=r"(?:no dud(?:es|e) en|avísame|avíseme|espero que (?:esto|te|le)|si (?:tienes|tiene|necesitas|necesita) (?:más|otra|alguna)|estoy aquí para)\b",
        hedge=r"(?:no (?:sé|estoy segur[oa]|puedo|encuentro|encontré|tengo)|lo siento|lamentablemente,? no)\b|(?:los|las|el|la)(?: \w+){0,2} (?:documentos?|fuentes?|textos?|contexto|información|fragmentos?)(?: \w+){0,3} no\b|no hay (?:suficiente )?información",
        restatement=r"(?:(?:has|ha|me) (?:preguntado|preguntas?)|tu pregunta|su pregunta|quieres saber|quiere saber)\b",
        lead_in=r"(?:aquí (?:está|están|tienes)|a continuación|en resumen)\b[^.!?]{0,60}$",
        pointer=r"(?:véase|ver también|consult(?:a|e)|para más (?:información|detalles)|más información)\b|fuentes?\s*:",
    ),
    "fr": _rules(
        opinion=r"(?:je (?:pense|crois|trouve|recommande|dirais)|à mon avis|selon moi|personnellement)\b",
        greeting=r"(?:bonjour|bonsoir|salut|bienvenue|bien sûr|certainement|merci|de rien|avec plaisir|bonne question)\b[^.!?]{0,30}\s?[!.,]?$",
        offer_of_help=r"(?:n'hésite[sz]? pas|faites-moi savoir|j'espère que|si (?:vous avez|tu as) (?:d'autres|besoin)|je reste à votre)\b",
        hedge=r"(?:je ne (?:sais|suis|peux|trouve|dispose)|je n'ai|désolé|malheureusement,? je)\b|(?:les?|la|ces?)(?: \w+){0,2} (?:documents?|sources?|textes?|contexte|informations?|passages?|extraits?)(?: \w+){0,3} (?:ne|n')\b|il n'y a pas (?:assez )?d'information",
        restatement=r"(?:vous (?:avez demandé|demandez|voulez savoir|souhaitez savoir)|tu (?:as demandé|demandes|veux savoir)|votre question|ta question)\b",
        lead_in=r"(?:voici|voilà|ci-dessous|en résumé)\b[^.!?]{0,60}$",
        pointer=r"(?:voir(?: aussi)?|consultez|pour (?:plus|en savoir plus)|plus d'informations?)\b|sources?\s*:",
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
    r"https?://|\]\(|\[|\b(?:above|below|here|docs?|documentation|page|guide|section|chapter|appendix|article|manual|website"
    r"|table|figure|link|source|sources|document|file|oben|unten|seite|abschnitt|página|sección|page|section)\b",
    re.IGNORECASE,
)
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


def is_pointer(text: str, *, has_marker: bool, language: str) -> bool:
    """Return whether a sentence only sends the reader elsewhere (`See the guide for more.`): it claims nothing."""
    rules = _RULES.get(language)
    if rules is None or not rules.pointer.match(text.strip()):
        return False
    return has_marker or _LINK_OR_PLACE.search(text) is not None or len(_WORDS.findall(text)) <= 12
