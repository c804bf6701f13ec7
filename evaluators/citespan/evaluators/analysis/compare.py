"""Compare two label tables of the same runs: what changed, by how much, and whether that could be chance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from citespan.evaluators.analysis.labeltable import LabelRow, TableRun
from citespan.evaluators.errors import InputError
from citespan.evaluators.measures import MEASURES, Ratio, pool
from citespan.evaluators.verdicts import Label

__all__ = ["ChangedClaim", "Comparison", "Difference", "Match", "compare"]

Z_95 = 1.96
"""Half-width of a 95 % interval in standard errors."""

_RANK = {
    Label.SUPPORTED: 0,
    Label.PARTLY_SUPPORTED: 1,
    Label.UNCITED: 2,
    Label.UNSUPPORTED: 3,
    Label.CONTRADICTED: 4,
}
"""From good to bad; `unjudged` is neither."""


class Match(StrEnum):
    """What makes a run of one table the same as one of the other."""

    ID = "id"
    """The run's id."""

    QUESTION = "question"
    """The question, where two versions of an app answered it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One measure in both tables, over the runs that are in both."""

    first: Ratio
    """Pooled over the first table."""

    second: Ratio
    """Pooled over the second."""

    change: float | None
    """Second minus first; `None` if either is over nothing."""

    margin: float | None
    """Half-width of the 95 % interval of the change; `None` for fewer than two runs.

    Runs are the sampling unit, since claims of one answer are not independent; the pair of each run is
    kept together: linearised variance of a difference of ratios (Cochran, Sampling Techniques, 1977, ch. 6).
    """

    @property
    def could_be_chance(self) -> bool:
        """Whether the interval of the change holds 0."""
        return self.change is not None and (self.margin is None or abs(self.change) <= self.margin)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
            "change": self.change,
            "margin_95": self.margin,
        }


@dataclass(frozen=True, slots=True)
class ChangedClaim:
    """A claim that is in both tables under different labels."""

    run_id: str
    """Id of the run in the second table."""

    claim: str
    """The claim."""

    before: Label
    """Its label in the first table."""

    after: Label
    """Its label in the second."""

    reason: str | None
    """Why it has the second label."""

    url: str | None
    """Where a person can look at the run of the second table."""

    @property
    def is_worse(self) -> bool:
        """Whether the second label is worse."""
        return _RANK.get(self.after, 0) > _RANK.get(self.before, 0)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "run_id": self.run_id,
            "claim": self.claim,
            "before": self.before,
            "after": self.after,
            "reason": self.reason,
            "url": self.url,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two label tables have in common and where they differ."""

    runs: int
    """Runs in both tables and judged in both: the measures are about these."""

    only_first: int
    """Runs that only the first table has."""

    only_second: int
    """Runs that only the second table has."""

    not_judged: int
    """Runs in both of which one could not be judged."""

    differences: Mapping[str, Difference]
    """By measure."""

    claims: int
    """Claims found in both, by their text."""

    changed: tuple[ChangedClaim, ...]
    """Those of them whose label differs, those that got worse first."""

    @property
    def moves(self) -> Mapping[tuple[Label, Label], int]:
        """How many claims went from one label to another, the most frequent move first."""
        return dict(Counter((claim.before, claim.after) for claim in self.changed).most_common())

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "schema": 1,
            "runs": self.runs,
            "only_first": self.only_first,
            "only_second": self.only_second,
            "not_judged": self.not_judged,
            "measures": {name: difference.to_dict() for name, difference in self.differences.items()},
            "claims": self.claims,
            "changed": [claim.to_dict() for claim in self.changed],
        }


def compare(first: Iterable[TableRun], second: Iterable[TableRun], *, match: Match = Match.ID) -> Comparison:
    """Return how the second table differs from the first, over the runs that are in both.

    Args:
        first: Runs of the first table.
        second: Runs of the second.
        match: What makes two runs the same.

    Raises:
        InputError: The tables have no run in common, or one has two runs that count as the same.
    """
    before, after = _by_key(first, match, "first"), _by_key(second, match, "second")
    both = [(before[key], after[key]) for key in before if key in after]
    if not both:
        raise InputError(
            f"no run is in both tables by {match}: compare tables of the same runs"
            + (", or match by question" if match is Match.ID else "")
        )
    judged = [pair for pair in both if all(_is_judged(run) for run in pair)]
    matched = [claims for pair in judged for claims in _matched_claims(*pair)]
    changed = [_changed(old, new) for old, new in matched if old.label is not new.label]
    return Comparison(
        runs=len(judged),
        only_first=len(before) - len(both),
        only_second=len(after) - len(both),
        not_judged=len(both) - len(judged),
        differences={name: _difference(name, judged) for name in MEASURES},
        claims=len(matched),
        changed=tuple(sorted(changed, key=lambda claim: not claim.is_worse)),
    )


def _by_key(runs: Iterable[TableRun], match: Match, which: str) -> dict[str, TableRun]:
    found: dict[str, TableRun] = {}
    for run in runs:
        key = run.rows[0].run_id if match is Match.ID else run.rows[0].question
        if key is None:
            continue
        if key in found:
            raise InputError(
                f"the {which} table has two runs with the {match} {key!r}: they cannot be matched"
            )
        found[key] = run
    return found


def _is_judged(run: TableRun) -> bool:
    return run.state is None or not run.state.stops_judging


def _matched_claims(first: TableRun, second: TableRun) -> list[tuple[LabelRow, LabelRow]]:
    """Return the claims with the same words in both runs; of several, the first with the first and so on."""
    waiting: dict[str, list[LabelRow]] = {}
    for row in first.rows:
        if row.claim is not None:
            waiting.setdefault(_words(row.claim), []).append(row)
    return [
        (rows.pop(0), row)
        for row in second.rows
        if row.claim is not None and (rows := waiting.get(_words(row.claim)))
    ]


def _words(claim: str) -> str:
    return " ".join(claim.casefold().split())


def _changed(old: LabelRow, new: LabelRow) -> ChangedClaim:
    return ChangedClaim(
        run_id=new.run_id,
        claim=new.claim or "",
        before=old.label or Label.UNJUDGED,
        after=new.label or Label.UNJUDGED,
        reason=new.reason,
        url=new.url,
    )


def _difference(name: str, pairs: Sequence[tuple[TableRun, TableRun]]) -> Difference:
    first = pool(run.measures for run, _ in pairs)[name]
    second = pool(run.measures for _, run in pairs)[name]
    if first.value is None or second.value is None:
        return Difference(first, second, None, None)
    residuals = [
        _residual(new.measures[name], second) - _residual(old.measures[name], first) for old, new in pairs
    ]
    n = len(residuals)
    margin = None
    if n > 1:
        margin = Z_95 * math.sqrt(n / (n - 1) * sum(residual**2 for residual in residuals))
    return Difference(first, second, second.value - first.value, margin)


def _residual(ratio: Ratio, pooled: Ratio) -> float:
    """Return how far one run pulls the pooled ratio away from itself; these add up to 0."""
    numerator, denominator = ratio.numerator or 0, ratio.denominator or 0
    return (numerator - (pooled.value or 0.0) * denominator) / (pooled.denominator or 1)
