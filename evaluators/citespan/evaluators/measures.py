"""The measures: ratios over a run's claims and citations, pooled over many runs.

Every formula lives in the docstring of its function here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from citespan.evaluators.claims import ResolvedCitation
from citespan.evaluators.findings import JudgedClaim, Need
from citespan.evaluators.verdicts import Label

__all__ = ["MEASURES", "Mean", "Pattern", "Ratio", "means", "measure", "pattern", "pool", "unmeasured"]

MEASURES_VERSION = "1"
"""Part of the run fingerprint: a changed formula is a new evaluation."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A numerator over a denominator with its unit, or the reason why it was not measured."""

    numerator: int | None
    """Count above the line; `None` if not measured."""

    denominator: int | None
    """Count below the line; `None` if not measured."""

    unit: str
    """What the denominator counts."""

    reason: str | None = None
    """Why it was not measured; `None` if it was."""

    @property
    def value(self) -> float | None:
        """Numerator over denominator in [0, 1]; `None` over nothing or when not measured."""
        if not self.denominator or self.numerator is None:
            return None
        return self.numerator / self.denominator

    def __str__(self) -> str:
        """Return `3/5 judged cited claims`, or `not measured (reason)`."""
        if self.numerator is None or self.denominator is None:
            return f"not measured ({self.reason})"
        return f"{self.numerator}/{self.denominator} {self.unit}"

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form: numerator, denominator, unit, value, and reason if not measured."""
        data: dict[str, object] = {
            "numerator": self.numerator,
            "denominator": self.denominator,
            "unit": self.unit,
            "value": self.value,
        }
        if self.reason is not None:
            data["reason"] = self.reason
        return data


def unmeasured(unit: str, reason: str) -> Ratio:
    """Return the ratio that says why there is no number."""
    return Ratio(None, None, unit, reason)


@dataclass(frozen=True, slots=True)
class Counted:
    """What the measures of one run are computed from."""

    claims: Sequence[JudgedClaim]
    citations: Sequence[ResolvedCitation]
    sets_reason: str | None
    """Why citation sets were not judged; `None` if they were."""

    @property
    def judged_cited(self) -> list[JudgedClaim]:
        """The claims that are cited and labelled other than `unjudged`."""
        return [claim for claim in self.claims if claim.label not in (Label.UNCITED, Label.UNJUDGED)]


def _share(claims: Iterable[JudgedClaim], label: Label, unit: str = "judged cited claims") -> Ratio:
    claims = list(claims)
    return Ratio(sum(claim.label is label for claim in claims), len(claims), unit)


def coverage(counted: Counted) -> Ratio:
    """Cited claims / all claims. In [0, 1]; `None` for an answer without claims. Needs no judge."""
    return Ratio(sum(claim.is_cited for claim in counted.claims), len(counted.claims), "claims")


def completeness(counted: Counted) -> Ratio:
    """Cited material claims / material claims. In [0, 1]; `None` without material claims. Needs no judge."""
    material = [claim for claim in counted.claims if claim.claim.material]
    return Ratio(sum(claim.is_cited for claim in material), len(material), "material claims")


def support(counted: Counted) -> Ratio:
    """Supported claims / judged cited claims, the headline. In [0, 1]; `None` without judged cited claims.

    A claim whose citations all dangle is labelled, so it is in the denominator; `unjudged` is not.
    """
    return _share(counted.judged_cited, Label.SUPPORTED)


def support_resolved(counted: Counted) -> Ratio:
    """Supported claims / judged cited claims with at least one citation that resolves. In [0, 1] or `None`."""
    resolved = [claim for claim in counted.judged_cited if claim.has_resolved_citation]
    return _share(resolved, Label.SUPPORTED, "judged cited claims with a resolved citation")


def partly_supported(counted: Counted) -> Ratio:
    """Partly supported claims / judged cited claims. In [0, 1]; `None` without judged cited claims."""
    return _share(counted.judged_cited, Label.PARTLY_SUPPORTED)


def contradicted(counted: Counted) -> Ratio:
    """Contradicted claims / judged cited claims. In [0, 1]; `None` without judged cited claims."""
    return _share(counted.judged_cited, Label.CONTRADICTED)


def validity(counted: Counted) -> Ratio:
    """Citations that resolve to a passage of the run / citations. In [0, 1]; `None` without citations.

    Candidates of an ambiguous citation count once. Citations attached to no claim count. Needs no judge.
    """
    resolved: dict[int, bool] = {}
    for citation in counted.citations:
        resolved[citation.n] = resolved.get(citation.n, False) or citation.is_resolved
    return Ratio(sum(resolved.values()), len(resolved), "citations")


def link_validity(counted: Counted) -> Ratio:
    """Cited links that answered / cited links checked conclusively. Not measured: no link is ever opened."""
    return unmeasured("links", "links were not checked")


def citation_precision(counted: Counted) -> Ratio:
    """Attachments needed or entailing alone / judged attachments.

    An attachment counts when its passage entails the claim alone, or when the union of the claim's
    cited passages entails it and stops doing so without this passage (ALCE, Gao et al. 2023,
    arXiv:2305.14627, section 4, with "alone or needed" where ALCE says "not irrelevant").
    Dangling attachments and those of unjudged claims are left out, and so is one whose need is unknown.
    The candidates of an ambiguous citation count once: as backing the claim if one of them does.
    In [0, 1] or `None`.
    """
    if counted.sets_reason is not None:
        return unmeasured("judged attachments", counted.sets_reason)
    backs = [
        backing
        for claim in counted.claims
        if claim.label is not Label.UNJUDGED
        for backing in _backings(claim)
        if backing is not None
    ]
    return Ratio(sum(backs), len(backs), "judged attachments")


def _backings(claim: JudgedClaim) -> Iterable[bool | None]:
    """Yield, for each citation that resolves, whether it backs the claim; `None` where that is unknown."""
    needs: dict[int, list[Need | None]] = {}
    for attachment in claim.attachments:
        if attachment.citation.is_resolved:
            needs.setdefault(attachment.citation.n, []).append(attachment.need)
    for candidates in needs.values():
        if any(need in (Need.NEEDED, Need.REDUNDANT) for need in candidates):
            yield True
        else:
            yield None if None in candidates else False


def citation_recall(counted: Counted) -> Ratio:
    """Claims entailed by the union of their cited passages / claims that are not unjudged.

    Uncited claims count as not entailed (ALCE, Gao et al. 2023, arXiv:2305.14627, section 4).
    A claim that no passage entails alone and whose union could not be judged is left out: unknown is not zero.
    In [0, 1] or `None`.
    """
    if counted.sets_reason is not None:
        return unmeasured("claims", counted.sets_reason)
    judged = [claim for claim in counted.claims if not claim.is_union_unknown]
    return Ratio(sum(claim.is_entailed_by_union for claim in judged), len(judged), "claims")


MEASURES: Mapping[str, Callable[[Counted], Ratio]] = {
    "coverage": coverage,
    "completeness": completeness,
    "support": support,
    "support_resolved": support_resolved,
    "partly_supported": partly_supported,
    "contradicted": contradicted,
    "validity": validity,
    "link_validity": link_validity,
    "citation_precision": citation_precision,
    "citation_recall": citation_recall,
}
"""Every measure by name, in the order in which reports print them."""


def measure(
    claims: Sequence[JudgedClaim],
    citations: Sequence[ResolvedCitation],
    *,
    sets_reason: str | None = None,
) -> dict[str, Ratio]:
    """Return every measure of one run by name.

    Args:
        claims: The run's claims with their labels.
        citations: The run's citations, attached or not.
        sets_reason: Why citation sets were not judged, which leaves precision and recall unmeasured.
    """
    counted = Counted(claims, citations, sets_reason)
    return {name: formula(counted) for name, formula in MEASURES.items()}


def pool(measures: Iterable[Mapping[str, Ratio]]) -> dict[str, Ratio]:
    """Return corpus figures: counts added over the runs, divided once.

    A measure that any run did not measure is not measured: a sum with a gap is no sum.
    Over no runs every measure is over nothing.
    """
    rows = list(measures)
    return {name: _sum([row[name] for row in rows] or [nothing]) for name, nothing in measure((), ()).items()}


def _sum(ratios: Sequence[Ratio]) -> Ratio:
    missing = next((ratio for ratio in ratios if ratio.reason is not None), None)
    if missing is not None:
        return missing
    numerator = sum(ratio.numerator or 0 for ratio in ratios)
    return Ratio(numerator, sum(ratio.denominator or 0 for ratio in ratios), ratios[0].unit)


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of per-answer ratios, shown beside the pooled figure and never instead of it."""

    value: float | None
    """Sum of the values over their number, in [0, 1]; `None` without any."""

    answers: int
    """How many answers have a value: those over nothing, or not measured, are left out."""


def means(measures: Iterable[Mapping[str, Ratio]]) -> dict[str, Mean]:
    """Return, by measure, the mean of the per-answer ratios."""
    rows = list(measures)
    found: dict[str, Mean] = {}
    for name in MEASURES:
        values = [value for row in rows if (value := row[name].value) is not None]
        found[name] = Mean(sum(values) / len(values) if values else None, len(values))
    return found


@dataclass(frozen=True, slots=True)
class Pattern:
    """What the pair coverage/support says of an answer or a corpus."""

    name: str
    """What the pair says, in words."""

    gap: float
    """Coverage minus support, in [-1, 1]."""


GOOD_SHARE = 0.8
"""From this share on, coverage or support counts as high when the pattern is named."""


def pattern(measures: Mapping[str, Ratio]) -> Pattern | None:
    """Name the pattern that coverage and support make; `None` if coverage is over nothing.

    With nothing cited support is over nothing: the answer is ungrounded and unmarked, and the gap is 0.
    """
    covered, supported = measures["coverage"].value, measures["support"].value
    if covered is None:
        return None
    if supported is None:
        return Pattern("ungrounded and unmarked", 0.0) if not covered else None
    high = (covered >= GOOD_SHARE, supported >= GOOD_SHARE)
    names = {
        (True, False): "cites everything and verifies nothing"
        if not supported
        else "cites more than it verifies",
        (False, True): "honest but under-cites",
        (True, True): "good hygiene, not proof of truth",
        (False, False): "ungrounded and unmarked",
    }
    return Pattern(names[high], covered - supported)
