"""What a reviewer reads in Phoenix: claim, passages and verdict as plain text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from citespan.evaluators.analysis.labeltable import LabelRow
from citespan.evaluators.annotate.claim_spans import claim_spans
from citespan.evaluators.annotate.passage_windows import WHOLE_BYTES, window
from citespan.evaluators.annotate.rows import citations_row, measure_rows, state_row, verdict_rows
from citespan.evaluators.annotate.series import claim_identifier, identifier_of, series_of
from citespan.evaluators.annotate.trace_mark import TraceMark
from citespan.evaluators.claims import Certainty, Claim, ResolvedCitation
from citespan.evaluators.errors import UsageError
from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.findings import Attachment, Failure, JudgedClaim
from citespan.evaluators.judges.judge import JudgeCard
from citespan.evaluators.measures import measure
from citespan.evaluators.options import DEFAULT_OPTIONS
from citespan.evaluators.phoenix.row_writer import beside_person
from citespan.evaluators.runs import Run, RunOrigin, RunState
from citespan.evaluators.sources.phoenix import is_claim_span
from citespan.evaluators.verdicts import Label, Verdict
from citespan.tracer import Passage

TEXT = "Support answers within one hour on weekdays."
ORIGIN = RunOrigin(
    trace_id="1" * 32,
    root_span_id="2" * 16,
    answer_span_id="2" * 16,
    answer_start_ns=1_000_000_000_000_000,
    answer_end_ns=1_000_000_100_000_000,
    passage_span_ids={"kb-1": "3" * 16},
)
KB1 = Passage(id="kb-1", text=TEXT, label="1", title="Support hours", url="https://d.example/1")
RUN = Run(id="r", question="How fast?", answer="It is fast [1].", passages=(KB1,), origin=ORIGIN)
VERDICT = Verdict(label=Label.SUPPORTED, score=0.9, reason="It says so.", evidence=TEXT)


def _claim(index: int = 0, text: str = "It is fast.", sentence: str = "It is fast.") -> Claim:
    return Claim(index, text, 0, 11, sentence, True, None)


def _citation(marker: str = "[1]", passage_id: str | None = "kb-1", n: int = 1) -> ResolvedCitation:
    label = marker.strip("[]")
    reason = None if passage_id else "unknown_label"
    return ResolvedCitation(n, marker, 11, 14, label, passage_id, Certainty.CERTAIN, (0,), reason)


def _judged(
    *attachments: Attachment, claim: Claim | None = None, label: Label = Label.SUPPORTED
) -> JudgedClaim:
    return JudgedClaim(claim or _claim(), label, 0.9, "It says so.", attachments, deciding=VERDICT)


def _evaluation(run: Run, *claims: JudgedClaim) -> Evaluation:
    citations = [attachment.citation for claim in claims for attachment in claim.attachments]
    card = JudgeCard(name="steady", version="1")
    return Evaluation(run, claims, tuple(citations), measure(claims, citations), card, DEFAULT_OPTIONS)


def _text(run: Run, judged: JudgedClaim) -> str:
    (span,) = claim_spans(_evaluation(run, judged))
    attributes = span.data["attributes"]
    assert isinstance(attributes, dict)
    return str(attributes["input.value"])


def test_a_reviewer_reads_the_claim_then_each_passage_under_its_label_title_and_url() -> None:
    assert _text(RUN, _judged(Attachment(_citation(), VERDICT))) == (
        "CLAIM\nIt is fast.\n\n"
        "CITES [1] kb-1 · Support hours · https://d.example/1\n"
        "Support answers within one hour on weekdays."
    )


def test_a_claim_that_restates_its_subject_is_shown_with_its_sentence() -> None:
    claim = _claim(text="Support is free.", sentence="Support is fast and free.")
    text = _text(RUN, _judged(Attachment(_citation(), VERDICT), claim=claim))
    assert text.startswith("CLAIM\nSupport is free.\n\nFROM THE SENTENCE\nSupport is fast and free.\n\nCITES")


def test_a_claim_without_a_citation_says_so() -> None:
    assert _text(RUN, _judged(label=Label.UNCITED)).endswith("\n\nCITES NOTHING")


def test_a_dangling_citation_says_so() -> None:
    dangling = Attachment(_citation("[9]", None), None)
    assert _text(RUN, _judged(dangling)).endswith("\n\nCITES [9]\nThis names no passage of the run.")


def test_a_passage_cited_twice_is_shown_once() -> None:
    twice = (Attachment(_citation(), VERDICT), Attachment(_citation(n=2), VERDICT))
    assert _text(RUN, _judged(*twice)).count(TEXT) == 1


def test_a_passage_without_text_says_so() -> None:
    lost = replace(RUN, passages=(replace(KB1, text=None),))
    assert "[the text of this passage was not recorded]" in _text(
        lost, _judged(Attachment(_citation(), None))
    )


def test_a_cut_passage_says_so() -> None:
    cut = replace(RUN, passages=(replace(KB1, is_cut=True),))
    assert _text(cut, _judged(Attachment(_citation(), VERDICT))).endswith(
        "[only a part of this passage was recorded]"
    )


def test_passages_that_fill_the_span_leave_the_rest_named_and_not_shown() -> None:
    passages = tuple(Passage(id=f"p{n}", text="x" * WHOLE_BYTES, label=str(n)) for n in range(40))
    run = replace(RUN, passages=passages)
    attachments = [Attachment(_citation(f"[{n}]", f"p{n}", n), VERDICT) for n in range(40)]
    text = _text(run, _judged(*attachments))
    # A million characters hold 30 passages of 32,768; the other 10 are named.
    assert len(text) < 1_010_000
    assert text.count("characters left out: the passages before it fill this span") == 10
    assert "CITES [39] p39" in text


def test_claim_spans_stand_before_the_end_a_microsecond_apart() -> None:
    spans = claim_spans(_evaluation(RUN, *[_judged(claim=_claim(n)) for n in range(3)]))
    # The answer ended 1,000,000.1 s after the epoch.
    assert [span.data["start_time"] for span in spans] == [
        "1970-01-12T13:46:40.099997+00:00",
        "1970-01-12T13:46:40.099998+00:00",
        "1970-01-12T13:46:40.099999+00:00",
    ]
    assert all(span.data["start_time"] == span.data["end_time"] for span in spans)


def test_claim_spans_never_begin_before_the_answer_does() -> None:
    origin = replace(ORIGIN, answer_end_ns=ORIGIN.answer_start_ns + 2_000)
    spans = claim_spans(
        _evaluation(replace(RUN, origin=origin), *[_judged(claim=_claim(n)) for n in range(5)])
    )
    starts = [str(span.data["start_time"]) for span in spans]
    assert starts == sorted(starts)
    assert starts[0] == "1970-01-12T13:46:40+00:00"


def test_claim_spans_keep_their_ids_and_tell_what_they_are() -> None:
    evaluation = _evaluation(RUN, _judged())
    first, again = claim_spans(evaluation), claim_spans(evaluation)
    assert first == again
    assert is_claim_span(first[0].data)
    assert not is_claim_span({**first[0].data, "attributes": {}})


def test_a_short_passage_is_shown_whole() -> None:
    assert window(KB1, None) == TEXT
    assert len(window(Passage("p", "x" * WHOLE_BYTES), None)) == WHOLE_BYTES


def test_a_long_passage_is_shown_round_the_evidence_with_notes() -> None:
    text = "a" * 50_000 + TEXT + "b" * 50_000
    shown = window(Passage("p", text), TEXT, span_id="3" * 16)
    before, _, rest = shown.partition("\n")
    kept, _, after = rest.rpartition("\n")
    assert kept.startswith("a" * 800 + TEXT + "b")
    assert len(kept) == WHOLE_BYTES
    # 100,044 characters: 49,200 before the window, 32,768 in it, 18,076 after it.
    has_it = "characters left out here; span 3333333333333333 has the whole passage]"
    assert (before, after) == (f"[… 49,200 {has_it}", f"[… 18,076 {has_it}")


def test_evidence_near_the_end_keeps_the_window_full() -> None:
    shown = window(Passage("p", "a" * 50_000 + TEXT), TEXT)
    assert shown.endswith(TEXT)
    assert len(shown.partition("\n")[2]) == WHOLE_BYTES


def test_without_evidence_the_beginning_of_a_long_passage_is_shown() -> None:
    shown = window(Passage("p", "ü" * 40_000), None)
    # 40,000 of two bytes each are 80,000 bytes: 16,384 characters fit.
    assert shown.startswith("ü" * 16_384 + "\n[… 23,616 characters left out here; the trace has")


def test_a_verdict_explains_itself_reason_first() -> None:
    judged = replace(
        _judged(Attachment(_citation(), VERDICT), Attachment(_citation("[9]", None, 2), None)),
        failure=Failure.OVERSTATED,
        fix="Say less.",
        conflict=True,
    )
    (row,) = verdict_rows(_evaluation(RUN, judged), [("4" * 16, "citespan")])
    assert str(row.explanation).split("\n") == [
        "It says so.",
        "Fix (overstated): Say less.",
        "Another cited passage contradicts the claim.",
        f"[1]: supported. “{TEXT}”",
        "[9]: names no passage of the run (unknown_label)",
    ]
    assert (row.label, row.score, row.kind) == ("supported", None, "CODE")


def test_a_verdict_row_reads_back_as_a_row_of_the_label_table() -> None:
    (row,) = verdict_rows(
        _evaluation(RUN, _judged(Attachment(_citation(), VERDICT))), [("4" * 16, "citespan")]
    )
    read = LabelRow.model_validate(row.metadata)
    assert (read.claim, read.label, read.citations[0].text) == ("It is fast.", Label.SUPPORTED, TEXT)


def test_a_model_elsewhere_signs_as_llm() -> None:
    card = JudgeCard(name="chat", version="1", sends_text_to="api.example")
    evaluation = replace(_evaluation(RUN, _judged(Attachment(_citation(), VERDICT))), judge=card)
    (row,) = verdict_rows(evaluation, [("4" * 16, "citespan")])
    assert row.kind == "LLM"


def test_measures_say_formula_and_counts() -> None:
    supported = _judged(Attachment(_citation(), VERDICT))
    uncited = _judged(claim=_claim(1), label=Label.UNCITED)
    rows = {
        row.name: row for row in measure_rows("1" * 32, [_evaluation(RUN, supported, uncited)], "citespan")
    }
    assert {name: row.label for name, row in rows.items()} == {
        "cite_cov": "1/2",
        "cite_sup": "1/1",
        "cite_valid": "1/1",
        "cite_compl": "1/2",
    }
    assert rows["cite_cov"].explanation == (
        "Cited claims / all claims. Here: 1/2 claims. Claims: 1 supported, 1 uncited."
    )


def test_a_measure_over_nothing_has_no_score() -> None:
    rows = {row.name: row for row in measure_rows("1" * 32, [_evaluation(RUN)], "citespan")}
    assert (rows["cite_sup"].label, rows["cite_sup"].score) == ("0/0", None)
    assert citations_row("2" * 16, [_evaluation(RUN)], "citespan").label == "no claims"


@pytest.mark.parametrize(
    ("states", "label"),
    [
        ([None], "evaluated"),
        ([None, RunState.NOT_RAG], "evaluated"),
        ([RunState.NOT_RAG, RunState.NOT_RAG], "not_rag"),
        ([RunState.PASSAGES_TRUNCATED], "passages_truncated"),
        ([RunState.NO_ANSWER_RECORDED, RunState.NOT_RAG], "no_answer_recorded"),
    ],
)
def test_the_state_row_names_the_state(states: list[RunState | None], label: str) -> None:
    evaluations = [_evaluation(replace(RUN, state=state, reasons=("why",))) for state in states]
    row = state_row("1" * 32, evaluations, "citespan", "spans")
    assert (row.label, row.score) == (label, None)
    mark = TraceMark.read(row.metadata)
    assert mark is not None
    assert [run.state for run in mark.runs] == states
    if states[0] is not None:
        assert str(row.explanation).startswith(f"{states[0]}: why")


def test_a_mark_of_another_schema_is_no_mark() -> None:
    row = state_row("1" * 32, [_evaluation(RUN)], "citespan", "spans")
    assert TraceMark.read({**row.metadata, "schema": 2}) is None
    assert TraceMark.read({}) is None


@pytest.mark.parametrize("series", ["machine", "", "a b", "a#1", "x" * 65])
def test_a_series_needs_a_name_that_can_stand_in_an_identifier(series: str) -> None:
    with pytest.raises(UsageError, match="series"):
        identifier_of(series)


def test_the_main_evaluation_and_a_series_have_identifiers_of_their_own() -> None:
    assert (identifier_of(None), identifier_of("v2.1-trial")) == ("citespan", "citespan:v2.1-trial")


@pytest.mark.parametrize("series", [None, "v2.1-trial", "machine-made"])
def test_every_identifier_written_names_its_series(series: str | None) -> None:
    identifier = identifier_of(series)
    of_claim = claim_identifier(identifier, 3)
    for written in (identifier, of_claim, beside_person(identifier), beside_person(of_claim)):
        assert series_of(written) == identifier


@pytest.mark.parametrize("identifier", ["", "citespan2", "px-app:VXNlcjox", "citespan:a b", "my:citespan"])
def test_identifiers_of_others_name_no_series(identifier: str) -> None:
    assert series_of(identifier) is None
