"""What apps really record: it comes through Phoenix as it was, or in a state that has a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.phoenix.records import Target
from citespan.evaluators.verdicts import Label
from citespan.tracer import Hide, Passage, Redaction, Truncate, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tests.phoenix.conftest import Workbench

pytestmark = pytest.mark.phoenix

TEXT = "Support answers within one hour on weekdays."


def _evaluate_one(bench: Workbench) -> Evaluation:
    summary = bench.evaluate()
    assert summary.set_aside == {}
    (evaluation,) = bench.evaluations
    return evaluation


@pytest.mark.parametrize("answer", ["", "  \n", None])
def test_an_empty_answer_is_a_state(bench: Workbench, answer: str | None) -> None:
    bench.recorder.ask("How long?", answer, [Passage(id="a", text=TEXT)])
    evaluation = _evaluate_one(bench)
    assert evaluation.run.state == "no_answer_recorded"
    assert evaluation.run.reasons[0] in ("answer_empty", "answer_not_recorded")
    assert evaluation.measures["support"].value is None


def test_an_answer_without_markers_is_uncited(bench: Workbench) -> None:
    trace_id = bench.recorder.ask("How long?", TEXT, [Passage(id="a", text=TEXT)])
    evaluation = _evaluate_one(bench)
    assert [claim.label for claim in evaluation.claims] == [Label.UNCITED]
    row = bench.snapshot().rows[trace_id, "cite_sup", "citespan"].annotation
    assert (row.label, row.score) == ("0/0", None)


def test_retrieval_that_found_nothing_is_judged(bench: Workbench) -> None:
    bench.recorder.ask("How long?", f"{TEXT} [1]", [])
    evaluation = _evaluate_one(bench)
    # One marker and no passage: it dangles, so its claim is unsupported.
    assert evaluation.run.state is None
    assert str(evaluation.measures["validity"]) == "0/1 citations"
    assert [claim.label for claim in evaluation.claims] == [Label.UNSUPPORTED]


def test_a_run_without_retrieval_is_no_rag(bench: Workbench) -> None:
    with run("How are you?") as recorded:
        recorded.answer("Well, thank you [1].")
    bench.recorder.expect(recorded.trace_id, recorded.span_id)
    assert _evaluate_one(bench).run.state == "not_rag"


def test_five_hundred_passages_come_back_in_order(bench: Workbench) -> None:
    passages = [Passage(id=f"p{n}", text=f"Part {n} weighs {n} grams.", label=str(n)) for n in range(1, 501)]
    bench.recorder.ask("How heavy?", "Part 444 weighs 444 grams [444]. Part 2 weighs 2 grams [2].", passages)
    evaluation = _evaluate_one(bench)
    assert [passage.id for passage in evaluation.run.passages] == [passage.id for passage in passages]
    assert [passage.text for passage in evaluation.run.passages] == [passage.text for passage in passages]
    assert [claim.label for claim in evaluation.claims] == [Label.SUPPORTED, Label.SUPPORTED]


def test_a_passage_of_a_megabyte_is_shown_round_the_evidence(bench: Workbench) -> None:
    filler = "Nothing of interest happened on that day, said the log. " * 9_000  # 504,000 characters
    long = Passage(id="long", text=f"{filler}{TEXT} {filler}", label="1")
    bench.recorder.ask("How long?", f"{TEXT} [1]", [long])
    evaluation = _evaluate_one(bench)
    assert evaluation.run.passages[0].text == long.text
    ((span_id, span),) = bench.snapshot().claim_spans.items()
    shown = span["attributes"]["input.value"]  # type: ignore[index]
    assert TEXT in shown.partition("CITES")[2]
    assert len(shown) < 34_000
    retrieval = next(i for i, other in bench.spans().items() if other["span_kind"] == "RETRIEVER")
    assert f"characters left out here; span {retrieval} has the whole passage]" in shown
    row = bench.snapshot().rows[span_id, "verdict", "citespan"].annotation
    assert row.label == "supported"


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("Zero \x00 byte", "Zero \ufffd byte"),
        ("Lone \ud83d surrogate", "Lone \ufffd surrogate"),
        ("Emoji 🧑\u200d🚀 and 👍🏽 stay", "Emoji 🧑\u200d🚀 and 👍🏽 stay"),
        ("משלוח חינם תוך יומיים", "משלוח חינם תוך יומיים"),
        (
            "Astral 𝒞 e\u0301 combining \u202eoverride\u202c",
            "Astral 𝒞 e\u0301 combining \u202eoverride\u202c",
        ),
        ("Line\u2028separator\r\nand\ttab", "Line\u2028separator\r\nand\ttab"),
    ],
)
def test_any_text_comes_through_with_its_offsets(bench: Workbench, written: str, stored: str) -> None:
    bench.recorder.ask(written, f"{written} [1].", [Passage(id="a", text=written, label="1", title=written)])
    evaluation = _evaluate_one(bench)
    read = evaluation.run
    assert (read.question, read.answer, read.passages[0].text) == (stored, f"{stored} [1].", stored)
    (citation,) = evaluation.citations
    assert f"{stored} [1]."[citation.start : citation.end] == "[1]"
    for span_id in bench.snapshot().claim_spans:
        rows = list(bench.client.annotations(bench.project, Target.SPAN, target_ids=[span_id]))
        assert [row.annotation.name for row in rows] == ["verdict"]


def test_what_redaction_hid_is_never_counted_against_the_answer(
    bench: Workbench, recording_to: Callable[[str, Redaction], AbstractContextManager[None]]
) -> None:
    passages = [Passage(id="a", text=TEXT, label="1"), Passage(id="b", text="x" * 50, label="2")]
    for redaction in (
        Redaction(answer=Hide()),
        Redaction(passages=Hide()),
        Redaction(passages=Truncate(20)),
    ):
        with recording_to(bench.name, redaction):
            bench.recorder.ask("How long?", f"{TEXT} [1]", passages)
    assert bench.evaluate().set_aside == {}
    by_trace = {e.run.origin.trace_id: e for e in bench.evaluations if e.run.origin is not None}
    hidden_answer, hidden_passages, cut = (by_trace[trace_id] for trace_id in bench.recorder.trace_ids)
    assert (hidden_answer.run.state, hidden_answer.run.reasons) == ("content_hidden", ("answer_hidden",))
    assert hidden_passages.run.state == "content_hidden"
    assert cut.run.passages[0].is_cut
    # "Support answers with" is all that was recorded: it cannot support the claim, and may not fault it.
    assert [claim.label for claim in cut.claims] == [Label.UNJUDGED]
