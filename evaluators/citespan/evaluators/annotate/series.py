"""The identifiers under which evaluations are written: one for the main evaluation, one for each series.

::

    citespan                   the project's one main evaluation
    citespan:NAME              a series beside it
    citespan:NAME#3            the verdict on the third claim, where claims are rows of the answer's span
    citespan:NAME:machine      what citespan has to say where a person has taken over the row
"""

from __future__ import annotations

import re

from citespan.evaluators.errors import UsageError
from citespan.evaluators.phoenix.row_writer import MACHINE, without_person

__all__ = ["claim_identifier", "identifier_of", "series_of"]

IDENTIFIER = "citespan"
"""Identifier of the main evaluation."""

_NAME = r"[A-Za-z0-9._-]{1,64}"
_WRITTEN = re.compile(rf"({IDENTIFIER}(?::(?!{MACHINE}$){_NAME})?)(?:#\d+)?")


def identifier_of(series: str | None) -> str:
    """Return the identifier of a series, or of the main evaluation for `None`.

    Raises:
        UsageError: The name cannot stand in an identifier, or has another use.
    """
    if series is None:
        return IDENTIFIER
    if re.fullmatch(_NAME, series) is None or series == MACHINE:
        raise UsageError(
            f"series {series!r}: expected up to 64 letters, digits, dots, hyphens or underscores, not {MACHINE!r}"
        )
    return f"{IDENTIFIER}:{series}"


def claim_identifier(identifier: str, number: int) -> str:
    """Return the identifier of the verdict on the claim with this number, counted from 1."""
    return f"{identifier}#{number}"


def series_of(identifier: str) -> str | None:
    """Return the identifier of the series that wrote a row; `None` if it is not citespan's."""
    match = _WRITTEN.fullmatch(without_person(identifier))
    return None if match is None else match[1]
