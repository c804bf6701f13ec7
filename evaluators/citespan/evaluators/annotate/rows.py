"""The rows that say in Phoenix what an evaluation found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from citespan.evaluators.analysis.labeltable import LabelRow, rows_of
from citespan.evaluators.annotate.passage_windows import WHOLE_BYTES, window
from citespan.evaluators.annotate.trace_mark import TraceMark
from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.findings import JudgedClaim
from citespan.evaluators.fingerprints import generation
from citespan.evaluators.measures import MEASURES, Ratio, pool
from citespan.evaluators.phoenix.records import Annotation, Kind
from citespan.evaluators.runs import Run
from citespan.evaluators.settings import ClaimsMode
from citespan.evaluators.verdicts import Label
from citespan.tracer.passages import Passage

__all__ = [
    "CITATIONS",
    "MEASURE_ROWS",
    "STATE",
    "SUPERSEDED",
    "VERDICT",
    "VERDICT_HUMAN",
    "citations_row",
    "measure_rows",
    "state_row",
    "superseded_row",
    "verdict_rows",
]

VERDICT = "verdict"
"""Name of the row that carries a claim's label."""

VERDICT_HUMAN = "verdict_human"
"""Name under which people label claims; citespan never writes it."""

CITATIONS = "citations"
"""Name of the row that sums up a run on a span."""

STATE = "cite_state"
"""Name of the row that is written last and alone means that a trace is done."""

MEASURE_ROWS = {
    "cite_cov": "coverage",
    "cite_sup": "support",
    "cite_valid": "validity",
    "cite_compl": "completeness",
}
"""The trace's rows and their measures: names short enough for Phoenix's columns."""

SUPERSEDED = "superseded"
"""Label of a verdict on a claim that the answer no longer has, kept for what people wrote beside it."""

EVALUATED = "evaluated"
"""Label of `cite_state` where at least one run of the trace was judged."""

SCHEMA = 1
"""Version of the metadata written here; readers accept every earlier one."""


def verdict_rows(evaluation: Evaluation, places: Sequence[tuple[str, str]]) -> list[Annotation]:
    """Return the verdict on each claim: a label for the tree, a reason for people, everything else as metadata.

    Args:
        evaluation: The evaluation.
        places: For each claim the span and the identifier of its row; none if claims are not shown.
    """
    if not places:
        return []
    made = generation(evaluation.run, evaluation.options)
    kind = Kind.LLM if evaluation.judge.sends_text_to else Kind.CODE
    rows = (row for row in rows_of(evaluation) if row.claim_index is not None)
    return [
        Annotation(
            target_id=target_id,
            name=VERDICT,
            identifier=identifier,
            kind=kind,
            label=judged.label,
            explanation=_explain(judged),
            metadata={"generation": made, **_metadata(row, evaluation.run)},
        )
        for judged, row, (target_id, identifier) in zip(evaluation.claims, rows, places, strict=True)
    ]


def superseded_row(target_id: str, name: str, identifier: str) -> Annotation:
    """Return what replaces a row of an earlier reading of the answer where that row has to stay."""
    return Annotation(
        target_id=target_id,
        name=name,
        identifier=identifier,
        label=SUPERSEDED,
        explanation="The answer is read differently now; kept for what people wrote here.",
        metadata={"schema": SCHEMA},
    )


def measure_rows(trace_id: str, evaluations: Sequence[Evaluation], identifier: str) -> list[Annotation]:
    """Return the trace's measures; those of several runs pool their counts."""
    judged = [evaluation for evaluation in evaluations if evaluation.is_evaluated]
    pooled = pool(evaluation.measures for evaluation in judged)
    counts = _count_labels(judged)
    return [
        Annotation(
            target_id=trace_id,
            name=name,
            identifier=identifier,
            label=_ratio_label(pooled[measure]),
            score=pooled[measure].value,
            explanation=f"{_formula(measure)} Here: {pooled[measure]}. {counts}",
            metadata={"schema": SCHEMA, "measure": measure, **pooled[measure].to_dict()},
        )
        for name, measure in MEASURE_ROWS.items()
    ]


def citations_row(span_id: str, evaluations: Sequence[Evaluation], identifier: str) -> Annotation:
    """Return the one label that sums up runs on a span: `3/5 supported, 1 contradicted`."""
    judged = [evaluation for evaluation in evaluations if evaluation.is_evaluated]
    return Annotation(
        target_id=span_id,
        name=CITATIONS,
        identifier=identifier,
        label=_sum_up(judged),
        explanation=_count_labels(judged),
        metadata={"schema": SCHEMA},
    )


def state_row(
    trace_id: str,
    evaluations: Sequence[Evaluation],
    identifier: str,
    claims_mode: ClaimsMode,
    notes: Mapping[str, object] | None = None,
) -> Annotation:
    """Return the row that says that the trace is done, and with what; `notes` are kept in its metadata."""
    states = [evaluation.run.state or EVALUATED for evaluation in evaluations]
    has_judged = any(evaluation.is_evaluated for evaluation in evaluations)
    label = states[0] if len(set(states)) == 1 else EVALUATED if has_judged else states[0]
    reasons = [f"{e.run.state}: {', '.join(e.run.reasons)}" for e in evaluations if e.run.state is not None]
    pooled = pool(evaluation.measures for evaluation in evaluations if evaluation.is_evaluated)
    return Annotation(
        target_id=trace_id,
        name=STATE,
        identifier=identifier,
        label=label,
        explanation="; ".join(reasons) or _count_labels(evaluations),
        metadata={
            **(notes or {}),
            **TraceMark.of(evaluations, claims_mode).model_dump(mode="json", by_alias=True),
            "measures": {name: ratio.to_dict() for name, ratio in pooled.items()},
            "without_claim": [
                _metadata(row, evaluation.run)
                for evaluation in evaluations
                for row in rows_of(evaluation)
                if row.claim_index is None
            ],
        },
    )


def _metadata(row: LabelRow, run: Run) -> dict[str, object]:
    return _with_windows(row, run).model_dump(mode="json", by_alias=True)


def _with_windows(row: LabelRow, run: Run) -> LabelRow:
    """Return the row with windows of its longest passages: the whole text stays on the passage's span."""
    if all(len(citation.text or "") * 4 <= WHOLE_BYTES for citation in row.citations):
        return row
    span_ids: Mapping[str, str] = {} if run.origin is None else run.origin.passage_span_ids
    citations = tuple(
        citation
        if citation.text is None
        else citation.model_copy(
            update={
                "text": window(
                    Passage(citation.passage_id or "", citation.text),
                    row.evidence,
                    span_id=span_ids.get(citation.passage_id or ""),
                )
            }
        )
        for citation in row.citations
    )
    return row.model_copy(update={"citations": citations})


def _explain(judged: JudgedClaim) -> str:
    """Return reason, mending, and what each citation carries; one line each."""
    lines = [judged.reason]
    if judged.fix is not None:
        lines.append(f"Fix ({judged.failure}): {judged.fix}")
    if judged.conflict:
        lines.append("Another cited passage contradicts the claim.")
    for attachment in judged.attachments:
        marker, verdict = attachment.citation.marker, attachment.verdict
        if verdict is None:
            lines.append(f"{marker}: names no passage of the run ({attachment.citation.reason})")
        else:
            evidence = f" “{verdict.evidence}”" if verdict.evidence else ""
            lines.append(f"{marker}: {verdict.label}.{evidence}")
    return "\n".join(lines)


def _ratio_label(ratio: Ratio) -> str:
    if ratio.numerator is None:
        return "not measured"
    return f"{ratio.numerator}/{ratio.denominator}"


def _formula(measure: str) -> str:
    """Return the first sentence of the measure's own docstring, where its formula lives."""
    return (MEASURES[measure].__doc__ or "").strip().partition(". ")[0].partition("\n")[0].rstrip(".") + "."


def _count_labels(evaluations: Sequence[Evaluation]) -> str:
    counts = Counter(claim.label for evaluation in evaluations for claim in evaluation.claims)
    parts = [f"{counts[label]} {_words(label)}" for label in Label if counts[label]]
    return f"Claims: {', '.join(parts)}." if parts else "No claims."


def _sum_up(evaluations: Sequence[Evaluation]) -> str:
    counts = Counter(claim.label for evaluation in evaluations for claim in evaluation.claims)
    if not counts:
        return "no claims"
    support = pool(evaluation.measures for evaluation in evaluations)["support"]
    parts = [f"{_ratio_label(support)} supported"] if support.denominator else []
    others = (Label.CONTRADICTED, Label.PARTLY_SUPPORTED, Label.UNSUPPORTED, Label.UNCITED, Label.UNJUDGED)
    return ", ".join(parts + [f"{counts[label]} {_words(label)}" for label in others if counts[label]])


def _words(label: Label) -> str:
    return label.replace("_", " ")
