"""What a judge has to say after its work: calls, tokens, cost, what was passed on, what was saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from citespan.evaluators.judges.judge import Judge

__all__ = ["notes_of"]


@runtime_checkable
class _Noted(Protocol):
    """A judge that keeps count; the property is optional, a judge without it has nothing to say."""

    @property
    def notes(self) -> Sequence[str]: ...


def notes_of(judge: Judge) -> tuple[str, ...]:
    """Return what `judge` says of its work so far, one line each; empty for a judge that keeps no count."""
    return tuple(judge.notes) if isinstance(judge, _Noted) else ()
