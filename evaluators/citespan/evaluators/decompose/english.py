"""What little of English grammar the splitting of sentences needs: closed classes and common verbs."""

from __future__ import annotations

__all__ = [
    "ADVERBS",
    "ARTICLES",
    "BASE_FORMS",
    "BE",
    "FINITE_AUXILIARIES",
    "MODALS",
    "PAST_FORMS",
    "PREPOSITIONS",
    "PRONOUNS",
    "SCOPE_WORDS",
    "S_FORMS",
    "is_adverb",
]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BE = _words("is are was were isn't aren't wasn't weren't")
"""Finite forms of to be."""

MODALS = _words(
    "can could will would shall should may might must cannot can't couldn't won't wouldn't shouldn't mustn't"
)
"""Modal verbs: what follows is a bare verb that a coordinated one may share."""

FINITE_AUXILIARIES = (
    BE | MODALS | _words("has have had do does did hasn't haven't hadn't don't doesn't didn't")
)
"""Words that are finite verbs wherever they stand."""

ARTICLES = _words(
    "the a an this that these those its their his her our your my each every all both some any no most many several"
    " such another other one two three four five six seven eight nine ten"
)
"""Determiners, possessives and small numbers: they open a noun phrase."""

PRONOUNS = _words("it they he she we you i this these those there")
"""Words that can be a subject by themselves."""

PREPOSITIONS = _words(
    "about above across after against along among around as at before behind below beneath beside besides between"
    " beyond by despite down during except for from in inside into like near of off on onto out outside over past per"
    " since through throughout to toward towards under until up upon via with within without including following"
    " according because due depending based"
)
"""Words that open a phrase which is no subject."""

ADVERBS = _words(
    "also always never often then usually sometimes only not still already soon again later now thus therefore"
    " otherwise instead even just once twice typically generally rarely seldom hence thereby afterwards"
)
"""Adverbs that do not end in -ly."""

SCOPE_WORDS = _words(
    "if unless when whenever while whereas although though because since until till before after than whether"
    " that which who whom whose where both either neither between not_only such_that so_that as provided assuming"
    " except lest once"
)
"""Words under whose scope a later clause may stand: a sentence that has one before the joint is not split there."""


def is_adverb(word: str) -> bool:
    """Return whether `word` is an adverb by list or by its ending."""
    return word in ADVERBS or (word.endswith("ly") and len(word) > 4 and word not in _NO_ADVERBS)


_NO_ADVERBS = _words(
    "apply supply reply imply comply multiply family assembly anomaly italy july friendly daily"
)


_VERBS = _words("""
accept access achieve acquire act activate add adjust affect aim allow announce appear apply approve arrive ask attract
authenticate avoid award back become begin belong block boost bring build calculate call cancel capture carry cause
change charge check choose cite clean close collect combine come compare complete comprise compute confirm connect
consider consist contain continue contribute control convert copy correct cost count cover create deal decide declare
decline decrease default define delete deliver demand deny depend deploy deprecate describe detect determine develop
die differ disable discard display distribute divide download drain draw drop earn elect eliminate emit employ enable
encrypt end enforce enhance ensure enter establish evaluate evolve exceed exclude execute exist expand expect expire
explain export express extend face fail fall feature fetch fill filter find finish fit flow follow force form found
function gain generate get give go govern grant grow guarantee handle happen have head help hold host identify ignore
implement import improve include increase indicate influence inform inherit install introduce invent invest invite
invoke involve issue join keep kill know lack last launch lead learn leave let lie limit link list live load lock log
look lose maintain make manage mark match mean measure meet merge migrate monitor mount move name need negotiate notify
obtain occur offer open operate order originate overwrite own pass pay perform permit persist play point port post
prevent process produce prohibit promote protect prove provide publish pull purchase push put raise range reach react
read receive recommend record recover redirect reduce refer refresh refuse register reject relate release rely remain
remember remove rename render renew repeat replace report represent request require reset resolve respond restart
restore restrict result resume retain retire retrieve retry return reveal revoke rise roll rotate run save say scale
scan schedule score seek select sell send separate serve set share ship show shut sign skip solve sort spend split
spread stand start stay stop store stream strengthen study submit succeed suffer suggest supply support surface suspend
sync synchronize take target teach tell terminate test throttle throw tie tolerate track train transfer transform
transmit travel treat trigger turn update upgrade upload use validate vary verify view visit wait want warn win work
write yield
""")

_IRREGULAR_PAST = _words("""
became began brought built came chose cost cut dealt drew fell found fought gave went grew held kept knew led learned
left lost made met meant paid put ran rose said sold sent set shot showed shut spent spread stood took taught told
threw won wrote drove bore beat broke caught drank ate flew forgot got hid hit let lay rode sang sat spoke swam wore
""")


def _s_form(verb: str) -> str:
    if verb.endswith(("s", "x", "z", "ch", "sh", "o")):
        return f"{verb}es"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ies"
    return "has" if verb == "have" else f"{verb}s"


def _past_form(verb: str) -> str:
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ied"
    if len(verb) <= 4 and verb[-1] not in "aeiouwxy" and verb[-2] in "aeiou" and verb[-3] not in "aeiou":
        return f"{verb}{verb[-1]}ed"
    return f"{verb}ed"


BASE_FORMS = _VERBS
"""Common verbs as in `they surface`."""

S_FORMS = frozenset(_s_form(verb) for verb in _VERBS)
"""Common verbs as in `it surfaces`."""

PAST_FORMS = frozenset([*(_past_form(verb) for verb in _VERBS), *_IRREGULAR_PAST])
"""Common verbs as in `it surfaced`; a regular one may also be a participle."""
