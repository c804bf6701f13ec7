"""Gates: floors and ceilings on the pooled figures, for release pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from citespan.evaluators.analysis.report import MAX_UNJUDGED_SHARE, Report
from citespan.evaluators.measures import Ratio

__all__ = ["Gate", "GateResult", "check_gates"]


@dataclass(frozen=True, slots=True)
class Gate:
    """A bound that one measure must keep."""

    measure: str
    """Name of the measure."""

    bound: float
    """The bound, in [0, 1]; keeping it exactly is enough."""

    is_ceiling: bool = False
    """Whether the measure may not rise above the bound, rather than fall below it."""

    def __str__(self) -> str:
        """Return the gate as `support >= 0.8`."""
        return f"{self.measure} {'<=' if self.is_ceiling else '>='} {self.bound:g}"

    def check(self, ratio: Ratio) -> GateResult:
        """Return whether `ratio` keeps the bound; no data never does."""
        if ratio.value is None:
            why = f"no data: {ratio}" if ratio.reason is None else str(ratio)
            return GateResult(str(self), False, why)
        kept = ratio.value <= self.bound if self.is_ceiling else ratio.value >= self.bound
        return GateResult(str(self), kept, f"{ratio} = {ratio.value:.3f}")


@dataclass(frozen=True, slots=True)
class GateResult:
    """What became of one gate."""

    gate: str
    """The gate as text."""

    is_passed: bool
    """Whether it was kept."""

    found: str
    """The figure it was held against."""

    def __str__(self) -> str:
        """Return the result as one line."""
        return f"gate {'passed' if self.is_passed else 'FAILED'}: {self.gate} ({self.found})"

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {"gate": self.gate, "passed": self.is_passed, "found": self.found}


def check_gates(gates: tuple[Gate, ...], report: Report) -> list[GateResult]:
    """Return the result of every gate; where there are any, too many unjudged claims fail one of their own."""
    return list(_results(gates, report)) if gates else []


def _results(gates: tuple[Gate, ...], report: Report) -> Iterator[GateResult]:
    figures = {**report.pooled, "unjudged": report.unjudged}
    for gate in gates:
        yield gate.check(figures[gate.measure])
    if report.has_too_many_unjudged and all(gate.measure != "unjudged" for gate in gates):
        yield Gate("unjudged", MAX_UNJUDGED_SHARE, is_ceiling=True).check(report.unjudged)
