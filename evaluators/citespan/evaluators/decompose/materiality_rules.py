"""What claims that assert nothing begin with, language by language.

Each entry is a regular expression, matched at the start of a claim, without regard to case. One that ends
in `$` must be the whole claim but for punctuation. Everyday words of an answer's frame are listed, never words of
a subject: what no entry matches is material.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["RULES", "Rules"]

Rules = Mapping[str, re.Pattern[str]]
"""The patterns of one language by what they tell: the reasons of `Immaterial`, `pointer` and `place_pointer`."""


def _rules(**entries: tuple[str, ...]) -> Rules:
    whole = (("|".join(phrases)).replace("$", r"[^\w]*$") for phrases in entries.values())
    return {name: re.compile(pattern, re.IGNORECASE) for name, pattern in zip(entries, whole, strict=True)}


_EN_SOURCES = r"(?:passages?|contexts?|sources?|excerpts?|snippets?)"
_EN_GIVEN = r"(?:provided|given|available|retrieved|supplied|above|cited|search)"
_EN_NOT = (
    r"(?:does not|do not|doesn't|don't|did not|didn't|is not|isn't|are not|aren't|lacks?|mentions?|says?)"
)
_EN_ASSERTS = r"(?!.*\b(?:is|are|was|were|has|have|can|will|must)\b)"

_EN = _rules(
    opinion=(
        r"(?:personally,? )?i(?:'d| would)? (?:personally )?(?:think|believe|feel|guess|suppose|prefer|recommend|suggest)\b",
        r"in my (?:opinion|view)\b",
        r"my (?:opinion|view|advice|recommendation)\b",
    ),
    greeting=(
        r"(?:hello|hi|hey|greetings|good (?:morning|afternoon|evening))(?:,? (?:there|all|everyone|team|again))?$",
        r"welcome(?: back)?$",
        r"(?:sure|certainly|of course|absolutely|great|no problem|okay|ok)(?: thing| question)?$",
        r"(?:thanks?|thank you)(?: so much| very much)?(?: for (?:asking|your question|reaching out))?$",
        r"(?:you're|you are) welcome$",
        r"my pleasure$",
        r"(?:i'd be )?(?:happy|glad) to help$",
        r"(?:that's|that is|what) (?:a|an) (?:great|good|excellent|interesting) question\b",
    ),
    offer_of_help=(
        r"(?:please )?(?:let me know|feel free|don't hesitate|do not hesitate)\b",
        r"(?:i )?hope (?:this|that|it) (?:helps|answers|clarifies)\b",
        r"if you (?:have|need|want|would like|'d like)\b.{0,80}\b(?:let me know|feel free|just ask|please ask|don't hesitate)\b",
        r"if you (?:have|need|want|would like|'d like)\b.{0,80}\bi(?: can|'m happy|'d be)\b",
        r"i(?:'m| am|'d be| would be) (?:happy|glad|here) to (?:help|assist|answer|elaborate|provide|explain)\b",
        r"i can (?:also )?(?:help|assist) you\b",
        r"(?:is there|do you need) anything else\b",
    ),
    hedge=(
        r"(?:please )?note that i (?:can|could|do|did|am)\b",
        r"i(?:'m| am) (?:not sure|unsure|not certain|sorry|unable|afraid)\b",
        r"sorry,? ",
        r"unfortunately,? i\b",
        r"(?:based on [\w ]{2,40},? )?i (?:do not|don't|cannot|can't|could not|couldn't|did not|didn't)"
        r" (?:know|find|have|see|determine|verify|provide|answer|confirm|locate|say)\b",
        rf"(?:unfortunately,? )?(?:the|these|this|those|none of the|your) {_EN_GIVEN}(?: \w+)?(?: \w+){{0,2}}? {_EN_NOT}\b",
        rf"(?:unfortunately,? )?(?:the|these|this|those|none of the|your) {_EN_SOURCES}(?: \w+){{0,2}}? {_EN_NOT}\b",
        r"(?:the|these|this|those) (?:documents?|texts?|information|results?) (?:does not|do not|doesn't|don't)"
        r" (?:say|specify|mention|state|discuss|address|indicate|contain (?:\w+ )?information)\b",
        rf"there is (?:no|not enough|insufficient) (?:information|mention|evidence)\b.{{0,60}}\b(?:{_EN_SOURCES}|documents?|provided|results?)",
        r"(?:no|not enough|insufficient) information (?:is|was) (?:given|provided|available)\b",
        r"as an ai\b",
        r"this answer\b",
        r"my (?:answer|knowledge)\b",
    ),
    restatement=(
        r"you(?:'re| are| have|'ve)? (?:asked|asking|wondering|inquired|want(?:ed)? to know|would like to know)\b",
        r"your question\b",
        r"the question (?:is|was|asks)\b",
        r"to answer your question$",
    ),
    lead_in=(
        r"(?:here (?:is|are)|here's|below (?:is|are))\b[^.!?:]{0,60}:?$",
        r"(?:let me (?:explain|show|walk)|let's (?:look|see|break))\b[^.!?:]{0,60}:?$",
        r"(?:yes|no|correct|right|exactly|indeed)$",
    ),
    pointer=(
        r"(?:(?:for|to (?:learn|read|find out)) (?:(?:more|further|full|additional)\b[\w ]{0,40})?,? ?)?(?:please )?(?:also )?"
        rf"(?:see(?! (?:that|if|whether|to)\b)(?: also)?|refer to|cf\.?)\s{_EN_ASSERTS}",
        r"(?:more|further|additional) (?:information|details|reading)\b.{0,60}\b(?:found|available|see|here)\b",
        r"(?:sources?|references?|citations?)\s*:",
    ),
    place_pointer=(
        r"(?:for (?:more|further|full|additional)\b[\w ]{0,40},? )?(?:please )?(?:also )?"
        rf"(?:consult|check(?: out)?|visit|click|read(?: more)?|learn more|have a look|take a look)\b{_EN_ASSERTS}",
    ),
)

_DE = _rules(
    opinion=(
        r"ich (?:denke|glaube|finde|meine|empfehle|würde)\b",
        r"meiner meinung nach\b",
        r"meines erachtens\b",
    ),
    greeting=(
        r"(?:hallo|guten (?:tag|morgen|abend)|willkommen)(?: zusammen)?$",
        r"(?:sehr )?(?:gerne?|natürlich|klar|gute frage)$",
        r"(?:danke|vielen dank)(?: für (?:ihre|deine|die) frage)?$",
    ),
    offer_of_help=(
        r"(?:bitte )?(?:lassen sie|lass) (?:es )?mich\b",
        r"ich hoffe\b",
        r"wenn (?:sie|du) (?:weitere|noch) ",
        r"(?:melden sie sich|melde dich)\b",
        r"ich helfe (?:ihnen|dir)\b",
    ),
    hedge=(
        r"ich (?:weiß|bin mir) nicht\b",
        r"leider (?:kann|konnte|habe) ich\b",
        r"es tut mir leid\b",
        r"ich (?:kann|konnte) (?:das|dies|keine|nicht)\b",
        r"(?:die|der|das|den)(?: \w+)? (?:quellen?|kontext|auszüge?|(?:angegebenen|bereitgestellten|vorliegenden) \w+)(?: \w+){0,3} (?:nicht|keine[nr]?)\b",
    ),
    restatement=(
        r"(?:sie|du) (?:haben|hast|möchten?|wollen|willst)\b.{0,40}(?:gefragt|wissen)\b",
        r"(?:ihre|deine) frage\b",
    ),
    lead_in=(r"hier (?:ist|sind)\b[^.!?:]{0,60}:?$", r"(?:ja|nein|genau|richtig)$"),
    pointer=(
        r"siehe\b",
        r"vgl\.?\s",
        r"(?:weitere|mehr) (?:informationen|details)\b.{0,60}\b(?:finden|gibt|unter|hier)\b",
        r"quellen?\s*:",
    ),
    place_pointer=(r"(?:bitte )?(?:besuchen|lesen|öffnen|klicken) sie\b",),
)

_ES = _rules(
    opinion=(
        r"(?:yo )?(?:creo|pienso|opino|considero|recomiendo|recomendaría)\b",
        r"en mi opinión\b",
        r"a mi juicio\b",
    ),
    greeting=(
        r"¡?(?:hola|buen(?:os|as) (?:días|tardes|noches)|bienvenid[oa]s?|buena pregunta|con gusto|de nada)$",
        r"¡?(?:claro(?: que sí)?|por supuesto)$",
        r"¡?(?:muchas )?gracias(?: por (?:tu|su|la) pregunta)?$",
    ),
    offer_of_help=(
        r"no dud(?:es|e) en\b",
        r"av[íi]s[ae]me\b",
        r"espero que (?:esto|te|le)\b",
        r"si (?:tienes|tiene|necesitas|necesita) (?:más|otra|alguna)\b",
        r"estoy aquí para\b",
    ),
    hedge=(
        r"no (?:sé|estoy segur[oa]|encuentro|encontré|puedo (?:responder|confirmar|encontrar)|tengo información)\b",
        r"lo siento\b",
        r"lamentablemente,? no\b",
        r"(?:los|las|el|la)(?: \w+)? (?:fuentes?|contexto|fragmentos?|(?:documentos?|textos?|información) proporcionad[oa]s?)(?: \w+){0,2}? no\b",
        r"no hay (?:suficiente )?información\b",
    ),
    restatement=(
        r"(?:has|ha|me has|me) pregunta(?:do|s)?\b",
        r"(?:tu|su) pregunta\b",
        r"(?:quieres|quiere) saber\b",
    ),
    lead_in=(r"aquí (?:está|están|tienes)\b[^.!?:]{0,60}:?$", r"(?:sí|no|exacto|correcto)$"),
    pointer=(r"véase\b", r"ver también\b", r"más información\b", r"fuentes?\s*:"),
    place_pointer=(r"(?:para más (?:información|detalles),? )?(?:consult[ae]|visit[ae]|lee|lea|ver)\b",),
)

_FR = _rules(
    opinion=(
        r"je (?:pense|crois|trouve|recommande|dirais)\b",
        r"à mon avis\b",
        r"selon moi\b",
        r"personnellement\b",
    ),
    greeting=(
        r"(?:bonjour|bonsoir|salut|bienvenue)(?: à tous)?$",
        r"(?:bien sûr|certainement|de rien|avec plaisir|bonne question)$",
        r"merci(?: beaucoup)?(?: pour votre question)?$",
    ),
    offer_of_help=(
        r"n'hésite[sz]? pas\b",
        r"faites-moi savoir\b",
        r"j'espère que\b",
        r"si vous avez d'autres\b",
        r"je reste à votre\b",
    ),
    hedge=(
        r"je ne (?:sais|suis|peux|trouve|dispose)\b",
        r"je n'ai\b",
        r"désolée?\b",
        r"malheureusement,? je\b",
        r"(?:les?|la|ces?)(?: \w+)? (?:sources?|contexte|passages?|extraits?|(?:documents?|textes?|informations?) fournie?s?)(?: \w+){0,2}? (?:ne|n')\b",
        r"il n'y a pas (?:assez )?d'information",
    ),
    restatement=(
        r"vous (?:avez demandé|demandez|voulez savoir|souhaitez savoir)\b",
        r"tu (?:as demandé|demandes|veux savoir)\b",
        r"(?:votre|ta) question\b",
    ),
    lead_in=(r"(?:voici|voilà)\b[^.!?:]{0,60}:?$", r"(?:oui|non|exactement)$"),
    pointer=(r"voir(?: aussi)?\b", r"pour en savoir plus\b", r"plus d'informations?\b", r"sources?\s*:"),
    place_pointer=(r"(?:pour plus [\w' ]{0,30},? )?(?:consultez|visitez|lisez)\b",),
)

RULES: Mapping[str, Rules] = {"en": _EN, "de": _DE, "es": _ES, "fr": _FR}
"""The rules by ISO 639-1 code; a language that is not here has none."""
