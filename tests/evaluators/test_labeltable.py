from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citespan.evaluators.analysis.labeltable import LabelRow, TableCitation, rows_of, runs_of
from citespan.evaluators.analysis.tablefile import COLUMNS, count_human_labels, read_table, write_table
from citespan.evaluators.errors import InputError, UsageError
from citespan.evaluators.evaluate import evaluate
from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.judges.judge import JudgeCard, JudgeRequest
from citespan.evaluators.options import EvaluateOptions
from citespan.evaluators.runs import Run
from citespan.evaluators.verdicts import Label, Verdict

SUFFIXES = [".jsonl", ".csv", ".parquet"]


class WordJudge:
    """Supports a claim whose first word is in the passage, contradicts one whose passage begins with `Not`."""

    card = JudgeCard(name="word", version="1")

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        return [self._judge_one(request) for request in requests]

    def _judge_one(self, request: JudgeRequest) -> Verdict:
        text = " ".join(passage.text or "" for passage in request.passages)
        if text.startswith("Not"):
            return Verdict(
                label=Label.CONTRADICTED, score=0.1, reason="The passage denies it.", evidence=text
            )
        if request.claim.split()[0] in text:
            return Verdict(label=Label.SUPPORTED, score=0.9, reason="The passage says it.", evidence=text)
        return Verdict(label=Label.UNSUPPORTED, score=0.2, reason="The passage is silent.")


def evaluation(options: EvaluateOptions | None = None, **changes: object) -> Evaluation:
    data = {
        "id": "tea",
        "question": "How is tea brewed?",
        "answer": "Green tea wants 80 degrees [1]. Black tea wants 95 degrees [2][9]. White tea is rare.",
        "passages": [
            {"id": "a", "text": "Green tea is brewed at 80 degrees.", "title": "Brewing"},
            {"id": "b", "text": "Not Black tea, nor\nany other; «zwölf» 茶"},
        ],
    }
    run = Run.from_dict({**data, **changes})
    return evaluate(run, WordJudge(), options or EvaluateOptions())


def table(path: Path, *evaluations: Evaluation) -> Path:
    with write_table(path) as writer:
        for item in evaluations:
            writer.write(rows_of(item, url="http://localhost:6006/t"))
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_reads_back_as_it_was_written(tmp_path: Path, suffix: str) -> None:
    stopped = evaluation(id="none", answer=None, question=None)
    path = table(tmp_path / f"table{suffix}", evaluation(), stopped)
    rows = list(read_table(path))
    assert rows == [*rows_of(evaluation(), url="http://localhost:6006/t"), *rows_of(stopped, url=rows[0].url)]
    assert [row.label for row in rows] == [Label.SUPPORTED, Label.CONTRADICTED, Label.UNCITED, None]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_measures_of_a_table_are_those_of_its_evaluations(tmp_path: Path, suffix: str) -> None:
    items = [
        evaluation(),
        evaluation(id="none", answer=None),
        evaluation(EvaluateOptions(citation_sets=False)),
    ]
    path = table(tmp_path / f"table{suffix}", *items)
    assert [dict(run.measures) for run in runs_of(read_table(path))] == [
        dict(item.measures) for item in items
    ]


def test_citations_attached_to_no_claim_stay_in_the_table_and_in_validity(tmp_path: Path) -> None:
    item = evaluation(answer="[1] Green tea wants 80 degrees [9].")
    path = table(tmp_path / "table.jsonl", item)
    runs = list(runs_of(read_table(path)))
    assert len(runs) == 1
    # Two citations, [1] and [9]; only [1] resolves, whatever claim it is attached to.
    assert str(runs[0].measures["validity"]) == "1/2 citations"


def test_runs_that_share_an_id_stay_apart(tmp_path: Path) -> None:
    path = table(tmp_path / "table.jsonl", evaluation(), evaluation())
    assert len(list(runs_of(read_table(path)))) == 2


def test_a_row_keeps_the_cited_passage_with_its_hash_and_its_own_verdict() -> None:
    row = rows_of(evaluation())[1]
    assert [(c.marker, c.passage_id, c.label) for c in row.citations] == [
        ("[2]", "b", Label.CONTRADICTED),
        ("[9]", None, None),
    ]
    assert row.citations[0].text == "Not Black tea, nor\nany other; «zwölf» 茶"
    assert len(row.citations[0].sha256 or "") == 64
    assert row.citations[1].dangling_reason is not None


def test_a_person_may_write_a_label_in_a_spreadsheets_manner(tmp_path: Path) -> None:
    path = table(tmp_path / "table.csv", evaluation())
    text = path.read_text(encoding="utf-8-sig")
    label = COLUMNS.index("label")
    assert COLUMNS[label + 1] == "human_label"
    path.write_text(text.replace(",supported,,", ",supported,Partly Supported,", 1), encoding="utf-8")
    assert next(read_table(path)).human_label is Label.PARTLY_SUPPORTED
    assert count_human_labels(path) == 1


def test_a_csv_saved_with_semicolons_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(
        "schema;run_id;judge;judge_fingerprint;run_fingerprint;claim;claim_index;label;human_label;notes\n"
        "1;tea;word;f;f;Tea, green;0;supported;unsupported;looks wrong\n"
    )
    row = next(read_table(path))
    assert (row.claim, row.human_label) == ("Tea, green", Label.UNSUPPORTED)


cells = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), min_size=1)


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(claim=cells, marker=cells, text=cells)
def test_any_text_survives_every_format(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, claim: str, marker: str, text: str
) -> None:
    row = LabelRow(
        run_id=marker,
        claim=claim,
        claim_index=0,
        reason=text,
        citations=(TableCitation(n=1, marker=marker, start=0, end=1, text=text),),
        judge="word",
        judge_fingerprint="0",
        run_fingerprint="0",
    )
    path = tmp_path_factory.mktemp("tables") / f"table{suffix}"
    with write_table(path) as writer:
        writer.write([row])
    assert list(read_table(path)) == [row]


def test_an_answer_that_begins_like_a_formula_is_no_formula_in_a_spreadsheet(tmp_path: Path) -> None:
    item = evaluation(id='=HYPERLINK("http://evil")', question="@SUM(1)")
    path = table(tmp_path / "table.csv", item)
    line = path.read_text(encoding="utf-8-sig").splitlines()[1]
    assert line.startswith("""1,"'=HYPERLINK""")
    assert "'@SUM(1)" in line
    assert next(read_table(path)).run_id == '=HYPERLINK("http://evil")'


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_rows_written_before_an_interrupt_stay_readable(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"

    def interrupted() -> None:
        with write_table(path) as writer:
            writer.write(rows_of(evaluation()))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(list(read_table(path))) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"line 1: not valid JSON"),
        ("[1]\n", r"line 1: the row: Input should be"),
        ('\n{"schema": 7, "run_id": "a"}\n', r"line 2: schema: .*reads schema 1 to 1 \(found 7\)"),
        ('{"run_id": "a"}', r"line 1: judge: Field required"),
        ('{"run_id": "a", "judge": "j", "label": "nice"}', r"line 1: label: .*found 'nice'"),
        ("[" * 100_000, r"line 1: not valid JSON"),
    ],
)
def test_a_broken_row_is_named_by_line_and_field(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "table.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        list(read_table(path))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_of_another_kind_is_an_input_error(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"
    path.write_bytes(b"\xff\xfe\x00binary\n\xff")
    with pytest.raises(InputError):
        list(read_table(path))


def test_a_missing_table_and_an_unknown_ending_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*missing.csv: No such file"):
        list(read_table(tmp_path / "missing.csv"))
    with pytest.raises(InputError, match=r"\.jsonl, \.csv or \.parquet"):
        list(read_table(tmp_path / "table.xlsx"))
    with pytest.raises(UsageError, match=r"\.jsonl, \.csv or \.parquet"):
        write_table(tmp_path / "table.xlsx")
    with pytest.raises(UsageError, match=r"cannot write .*choose a file in a folder that exists"):
        write_table(tmp_path / "nowhere" / "table.jsonl")


def test_a_row_says_which_schema_it_has() -> None:
    data = json.loads(rows_of(evaluation())[0].model_dump_json(by_alias=True))
    assert data["schema"] == 1
    assert list(data) == list(COLUMNS)
