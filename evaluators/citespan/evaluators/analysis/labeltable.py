"""The label table: one row per claim, which outlives the traces it came from.

Phoenix deletes traces when their retention ends; a label table keeps claim, cited passages and label together.
A run without claims, and citations attached to no claim, get one row with `claim` null as the run's last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, field_validator

from citespan.evaluators.claims import Certainty, Claim, ResolvedCitation
from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.findings import Attachment, Failure, JudgedClaim, Need
from citespan.evaluators.fingerprints import run_fingerprint
from citespan.evaluators.measures import Ratio, measure
from citespan.evaluators.options import CitationScope, LabelPolicy, Splitting
from citespan.evaluators.runs import RunState
from citespan.evaluators.verdicts import Label, Verdict
from citespan.tracer.passages import Passage

__all__ = ["LabelRow", "TableCitation", "TableRun", "rows_of", "runs_of"]

SCHEMA = 1
"""Version of the rows written here."""

NO_SETS = "citation sets were not judged"
"""Why precision and recall of a table are not measured where its evaluation judged no sets."""


class TableCitation(BaseModel):
    """One citation and the passage it names."""

    model_config = ConfigDict(frozen=True)

    n: int
    """1-based number of the citation in the answer; candidates of an ambiguous one share it."""

    marker: str
    """The marker as written."""

    start: int
    """First code point of the marker in the answer."""

    end: int
    """One past its last code point."""

    target: str = ""
    """The label or id that the marker names."""

    certainty: Certainty = Certainty.CERTAIN
    """How sure the resolution is."""

    passage_id: str | None = None
    """Id of the passage; `None` if the citation dangles."""

    dangling_reason: str | None = None
    """Why it dangles (`unknown_label`, ...), or how it was resolved if that was not plain."""

    title: str | None = None
    """Title of the passage."""

    passage_url: str | None = None
    """Where the passage can be read in full."""

    text: str | None = None
    """Text of the passage as it was judged; `None` if it dangles or was not recorded."""

    sha256: str | None = None
    """Hash of the passage's text as the app recorded it."""

    label: Label | None = None
    """The passage's own verdict on the claim; `None` if it dangles or is attached to no claim."""

    score: float | None = None
    """Score of that verdict."""

    reason: str | None = None
    """Why the passage has that verdict."""

    evidence: str | None = None
    """The quote of the passage that it leans on."""

    need: Need | None = None
    """What the passage does for the claim; `None` where sets were not judged."""


class LabelRow(BaseModel):
    """One claim with its label, or what a run holds beside its claims."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_version: int = Field(default=SCHEMA, alias="schema")
    """Version of the row; readers accept every earlier one."""

    run_id: str
    """Identifier of the run."""

    url: str | None = None
    """Where a person can look at the run's trace."""

    trace_id: str | None = None
    """The run's trace: 32 lower-case hex digits."""

    session_id: str | None = None
    """`session.id` of the trace, for grouping."""

    question: str | None = None
    """The question as asked."""

    state: RunState | None = None
    """Why the run was not judged as usual."""

    claim_index: int | None = None
    """0-based position of the claim among the answer's claims; `None` in a row without a claim."""

    claim: str | None = None
    """The claim as judged."""

    start: int | None = None
    """First code point of the claim's own words in the answer."""

    end: int | None = None
    """One past their last code point."""

    sentence: str | None = None
    """The sentence the claim came from, without markers."""

    material: bool | None = None
    """Whether the claim asserts something a reader could check."""

    material_reason: str | None = None
    """The rule that made it not material."""

    label: Label | None = None
    """The claim's label."""

    human_label: Label | None = None
    """The label that a person gave; filled in by people or from Phoenix, never by a judge."""

    score: float | None = None
    """Score of the verdict that made the label."""

    reason: str | None = None
    """Why it has this label; of a run that was not judged, why it has its state."""

    evidence: str | None = None
    """The quote the deciding verdict leans on."""

    evidence_passage_id: str | None = None
    """The passage that the deciding verdict is about."""

    conflict: bool = False
    """Whether it is supported while another cited passage contradicts it."""

    failure: Failure | None = None
    """Where it failed."""

    fix: str | None = None
    """What would mend it."""

    fix_passage_id: str | None = None
    """The passage of the run that would support it."""

    covered_by_paragraph: bool = False
    """Whether a paragraph-final marker may have been meant for this uncited claim too."""

    union_label: Label | None = None
    """The verdict on all its cited passages joined."""

    citations: tuple[TableCitation, ...] = ()
    """The claim's citations; in a row without a claim, those attached to none."""

    judge: str
    """Name of the judge."""

    judge_fingerprint: str
    """Everything that can change the judge's verdicts, as 16 hex digits."""

    run_fingerprint: str
    """Changes whenever the evaluation of the run could: 64 hex digits."""

    citation_scope: CitationScope = CitationScope.SENTENCE
    """What a paragraph-final marker covered."""

    splitting: Splitting = Splitting.ATOMIC
    """How finely the answer was split."""

    label_policy: LabelPolicy = LabelPolicy.ANY
    """How the cited passages of a claim made its label."""

    citation_sets: bool = True
    """Whether unions and leave-one-out sets were judged."""

    @field_validator("schema_version")
    @classmethod
    def _known(cls, value: int) -> int:
        if not 1 <= value <= SCHEMA:
            raise ValueError(f"this version of citespan reads schema 1 to {SCHEMA}")
        return value

    @field_validator("human_label", mode="before")
    @classmethod
    def _as_people_write_it(cls, value: object) -> object:
        """Accept `Partly supported` for `partly_supported`, and an empty cell for none."""
        if not isinstance(value, str):
            return value
        return "_".join(value.lower().split()) or None


@dataclass(frozen=True, slots=True)
class TableRun:
    """One run as a label table keeps it."""

    rows: tuple[LabelRow, ...]
    """Its rows, in order."""

    measures: Mapping[str, Ratio]
    """Every measure by name, computed from the rows."""

    @property
    def state(self) -> RunState | None:
        """Why the run was not judged as usual."""
        return self.rows[0].state


def rows_of(
    evaluation: Evaluation, *, url: str | None = None, human_labels: Mapping[int, Label] | None = None
) -> list[LabelRow]:
    """Return the rows of one evaluation, at least one.

    Args:
        evaluation: The evaluation.
        url: Where a person can look at the run's trace.
        human_labels: What people said of its claims, by claim index.
    """
    run = evaluation.run
    people = human_labels or {}
    passages = {passage.id: passage for passage in run.passages}
    bare = LabelRow(
        run_id=run.id,
        url=url,
        trace_id=None if run.origin is None else run.origin.trace_id,
        session_id=None if run.origin is None else run.origin.session_id,
        question=run.question,
        state=run.state,
        judge=evaluation.judge.name,
        judge_fingerprint=evaluation.judge.fingerprint,
        run_fingerprint=run_fingerprint(run, evaluation.judge, evaluation.options),
        citation_scope=evaluation.options.citation_scope,
        splitting=evaluation.options.splitting,
        label_policy=evaluation.options.label_policy,
        citation_sets=evaluation.options.citation_sets,
    )
    rows = [
        _with_claim(bare, judged, passages).model_copy(update={"human_label": people.get(judged.claim.index)})
        for judged in evaluation.claims
    ]
    loose = tuple(
        _citation(Attachment(citation, None), passages)
        for citation in evaluation.citations
        if not citation.claims
    )
    if loose or not rows:
        rows.append(bare.model_copy(update={"citations": loose, "reason": ", ".join(run.reasons) or None}))
    return rows


def runs_of(rows: Iterable[LabelRow]) -> Iterator[TableRun]:
    """Yield the runs of a table one at a time; the rows of a run stand together in it."""
    together: list[LabelRow] = []
    for row in rows:
        if together and _is_next_run(together[-1], row):
            yield _run(together)
            together = []
        together.append(row)
    if together:
        yield _run(together)


def _is_next_run(last: LabelRow, row: LabelRow) -> bool:
    if row.run_id != last.run_id or last.claim_index is None:
        return True
    return row.claim_index is not None and row.claim_index <= last.claim_index


def _run(rows: list[LabelRow]) -> TableRun:
    claims = [_judged_claim(row) for row in rows if row.claim is not None]
    citations = [_resolved(citation, row) for row in rows for citation in row.citations]
    sets_reason = None if rows[0].citation_sets else NO_SETS
    return TableRun(tuple(rows), measure(claims, citations, sets_reason=sets_reason))


def _with_claim(bare: LabelRow, judged: JudgedClaim, passages: Mapping[str, Passage]) -> LabelRow:
    claim = judged.claim
    return bare.model_copy(
        update={
            "claim_index": claim.index,
            "claim": claim.text,
            "start": claim.start,
            "end": claim.end,
            "sentence": claim.sentence,
            "material": claim.material,
            "material_reason": claim.material_reason,
            "label": judged.label,
            "score": judged.score,
            "reason": judged.reason,
            "evidence": judged.evidence,
            "evidence_passage_id": judged.deciding_passage_id,
            "conflict": judged.conflict,
            "failure": judged.failure,
            "fix": judged.fix,
            "fix_passage_id": judged.fix_passage_id,
            "covered_by_paragraph": judged.covered_by_paragraph,
            "union_label": None if judged.union is None else judged.union.label,
            "citations": tuple(_citation(attachment, passages) for attachment in judged.attachments),
        }
    )


def _citation(attachment: Attachment, passages: Mapping[str, Passage]) -> TableCitation:
    citation, verdict = attachment.citation, attachment.verdict
    passage = passages.get(citation.passage_id or "")
    return TableCitation(
        n=citation.n,
        marker=citation.marker,
        start=citation.start,
        end=citation.end,
        target=citation.label,
        certainty=citation.certainty,
        passage_id=citation.passage_id,
        dangling_reason=citation.reason,
        title=None if passage is None else passage.title,
        passage_url=None if passage is None else passage.url,
        text=None if passage is None else passage.text,
        sha256=None if passage is None else passage.text_sha256,
        label=None if verdict is None else verdict.label,
        score=None if verdict is None else verdict.score,
        reason=None if verdict is None else verdict.reason,
        evidence=None if verdict is None else verdict.evidence,
        need=attachment.need,
    )


def _judged_claim(row: LabelRow) -> JudgedClaim:
    """Return what the measures need of a claim; texts that no measure reads stay in the row."""
    return JudgedClaim(
        claim=Claim(
            index=row.claim_index or 0,
            text=row.claim or "",
            start=row.start or 0,
            end=row.end or 0,
            sentence=row.sentence or "",
            material=row.material is not False,
            material_reason=row.material_reason,
        ),
        label=row.label or Label.UNJUDGED,
        score=row.score,
        reason=row.reason or "",
        attachments=tuple(
            Attachment(_resolved(citation, row), _verdict(citation.label), citation.need)
            for citation in row.citations
        ),
        union=_verdict(row.union_label),
        conflict=row.conflict,
        failure=row.failure,
        fix=row.fix,
        covered_by_paragraph=row.covered_by_paragraph,
    )


def _resolved(citation: TableCitation, row: LabelRow) -> ResolvedCitation:
    return ResolvedCitation(
        n=citation.n,
        marker=citation.marker,
        start=citation.start,
        end=citation.end,
        label=citation.target,
        passage_id=citation.passage_id,
        certainty=citation.certainty,
        claims=() if row.claim_index is None else (row.claim_index,),
        reason=citation.dangling_reason,
    )


def _verdict(label: Label | None) -> Verdict | None:
    return None if label is None else Verdict(label=label, reason="")
