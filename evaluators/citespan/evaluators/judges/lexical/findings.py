"""Everything in one window that speaks against a claim."""

from __future__ import annotations

from collections.abc import Container

from citespan.evaluators.judges.lexical.alignment import Aligned
from citespan.evaluators.judges.lexical.condition_rule import find_conditions
from citespan.evaluators.judges.lexical.finding import Finding
from citespan.evaluators.judges.lexical.name_rule import find_names
from citespan.evaluators.judges.lexical.negation_rule import find_negations, find_opposites
from citespan.evaluators.judges.lexical.number_rule import find_numbers
from citespan.evaluators.judges.lexical.part_rule import find_parts
from citespan.evaluators.judges.lexical.strength_rule import find_strengthenings
from citespan.evaluators.judges.lexical.windows import Search

__all__ = ["find_all"]


def find_all(aligned: Aligned, found: Search, context: Container[str] = frozenset()) -> list[Finding]:
    """Return what speaks against the claim in a window, the most telling first.

    Args:
        aligned: The claim beside a window.
        found: The search that the window came from.
        context: Keys of the question.
    """
    parts = find_parts(aligned, found)
    return [
        *find_opposites(aligned),
        *find_numbers(aligned, found),
        *find_negations(aligned),
        *find_strengthenings(aligned),
        *find_conditions(aligned),
        *([parts] if parts is not None else find_names(aligned, found, context)),
    ]
