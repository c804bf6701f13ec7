"""Split an answer into claims."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from citespan.evaluators.claims import Claim, Marker
from citespan.evaluators.decompose.atoms import Atom, split_atoms
from citespan.evaluators.decompose.claim_text import own_range, row_in_columns, text_of
from citespan.evaluators.decompose.language import guess_language
from citespan.evaluators.decompose.materiality import Immaterial, immaterial_reason, is_pointer
from citespan.evaluators.decompose.sentences import Sentence, split_sentences
from citespan.evaluators.layout.blocks import BlockKind
from citespan.evaluators.options import Splitting

__all__ = ["decompose"]

_BOLD = re.compile(r"\s*(?:\*\*|__)[^*_]{1,120}(?:\*\*|__)\s*[:：]?\s*")
_FIELD = re.compile(r"\[\[ ## \w+ ## \]\]")
"""The line by which DSPy names a field of its output."""

_STOP = re.compile(r"[.!?。！？][*_\s]*$")
_WORD = re.compile(r"\w")


def decompose(
    answer: str,
    markers: Sequence[Marker],
    *,
    question: str | None = None,
    splitting: Splitting = Splitting.ATOMIC,
) -> tuple[Claim, ...]:
    """Return the claims of `answer` in order; their ranges do not overlap.

    Code, header rows, reference lists and sentences that only point elsewhere hold no claim.

    Args:
        answer: The answer as recorded.
        markers: Its markers, from `find_markers`: they are not part of any claim.
        question: The run's question; a claim that only repeats it is not material.
        splitting: Whether a sentence is split into the assertions it bundles.
    """
    language = guess_language(answer)
    claims: list[Claim] = []
    for sentence in split_sentences(answer, markers):
        for claim in _claims_of(sentence, language, question, splitting):
            claims.append(replace(claim, index=len(claims)))
    return tuple(claims)


def _claims_of(
    sentence: Sentence, language: str, question: str | None, splitting: Splitting
) -> Iterator[Claim]:
    """Yield the claims of a sentence, not yet numbered."""
    whole = text_of(sentence, 0, len(sentence.masked))
    if not _WORD.search(whole) or _FIELD.fullmatch(whole) or is_pointer(whole, language=language):
        return
    context = row_in_columns(sentence) if sentence.kind is BlockKind.ROW else whole
    for atom in _atoms(sentence, language, splitting):
        start, end = own_range(sentence, atom.start, atom.end)
        text = text_of(sentence, atom.start, atom.end)
        if end <= start or not _WORD.search(text):
            continue
        text = f"{atom.subject} {text}" if atom.subject else text
        reason = _reason(sentence, text, language, question)
        yield Claim(0, text, start, end, context, reason is None, reason)


def _atoms(sentence: Sentence, language: str, splitting: Splitting) -> tuple[Atom, ...]:
    is_text = sentence.kind in (BlockKind.PARAGRAPH, BlockKind.ITEM)
    if splitting == Splitting.SENTENCE or not is_text:
        return (Atom(0, len(sentence.masked)),)
    ends = frozenset(run.end - sentence.start for run in sentence.runs)
    return split_atoms(sentence.masked, ends, language)


def _reason(sentence: Sentence, text: str, language: str, question: str | None) -> str | None:
    is_title = _BOLD.fullmatch(sentence.masked) is not None and not _STOP.search(text)
    if sentence.kind is BlockKind.HEADING or is_title:
        return Immaterial.HEADING
    if sentence.kind is BlockKind.ROW:
        return None
    return immaterial_reason(text, language=language, question=question)
