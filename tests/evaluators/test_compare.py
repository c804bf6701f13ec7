from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from citespan.evaluators.analysis.compare import Match, compare
from citespan.evaluators.analysis.labeltable import TableRun, rows_of, runs_of
from citespan.evaluators.analysis.tablefile import write_table
from citespan.evaluators.errors import InputError
from citespan.evaluators.evaluate import evaluate
from citespan.evaluators.runs import Run
from citespan.evaluators.testing import ScriptedJudge
from citespan.evaluators.verdicts import Label

GOOD, BAD = Label.SUPPORTED, Label.CONTRADICTED


def table(*runs: Sequence[Label], prefix: str = "run", ids: Sequence[str] | None = None) -> list[TableRun]:
    """Return a table of runs whose n-th claim is `Claim n.` and has the n-th label."""
    rows = []
    for number, labels in enumerate(runs):
        texts = [f"Claim {'abcdefgh'[n]} holds." for n in range(len(labels))]
        data = {
            "id": f"{prefix}-{number}" if ids is None else ids[number],
            "question": f"Question {number}?",
            "answer": " ".join(f"{text[:-1]} [1]." for text in texts),
            "passages": [{"id": "p", "text": "Text."}],
        }
        judge = ScriptedJudge({(text, "p"): label for text, label in zip(texts, labels, strict=True)})
        rows += rows_of(evaluate(Run.from_dict(data), judge))
    return list(runs_of(rows))


def test_a_change_has_an_interval_with_runs_as_the_unit() -> None:
    # Support 1/2 and 1/2, then 2/2 and 1/2: pooled 2/4 = 0.5 and 3/4 = 0.75, a change of 0.25.
    # Residuals of the second are (2 - 0.75 * 2) / 4 = 0.125 and -0.125, of the first 0 and 0, so the variance
    # is 2 / 1 * (0.125**2 + 0.125**2) = 0.0625 and the margin 1.96 * 0.25 = 0.49.
    found = compare(table([GOOD, BAD], [GOOD, BAD]), table([GOOD, GOOD], [GOOD, BAD]))
    support = found.differences["support"]
    assert (str(support.first), str(support.second)) == ("2/4 judged cited claims", "3/4 judged cited claims")
    assert support.change == pytest.approx(0.25)
    assert support.margin == pytest.approx(0.49)
    assert support.could_be_chance


def test_the_same_table_twice_shows_no_change_at_all() -> None:
    runs = table([GOOD, BAD], [GOOD], [])
    found = compare(runs, runs)
    assert found.changed == ()
    assert found.differences["support"].change == 0.0
    assert found.differences["support"].margin == 0.0


def test_one_run_alone_gives_no_interval() -> None:
    support = compare(table([GOOD]), table([BAD])).differences["support"]
    assert (support.change, support.margin) == (-1.0, None)
    assert support.could_be_chance


def test_claims_are_matched_by_their_words_and_the_worse_come_first() -> None:
    found = compare(table([BAD, GOOD, GOOD]), table([GOOD, BAD, GOOD]))
    assert found.claims == 3
    assert [(c.claim, c.before, c.after) for c in found.changed] == [
        ("Claim b holds.", GOOD, BAD),
        ("Claim a holds.", BAD, GOOD),
    ]
    assert [claim.is_worse for claim in found.changed] == [True, False]
    assert found.moves == {(GOOD, BAD): 1, (BAD, GOOD): 1}


def test_runs_of_one_table_only_are_counted_and_left_out() -> None:
    found = compare(table([GOOD], [BAD]), table([GOOD], [BAD], ids=["run-1", "new"]))
    assert (found.runs, found.only_first, found.only_second) == (1, 1, 1)
    # Run 1 alone: 0/1 in the first table, 1/1 in the second.
    assert found.differences["support"].change == 1.0


def test_a_run_that_could_not_be_judged_in_one_table_is_left_out_of_the_figures() -> None:
    second = table([GOOD], [])
    found = compare(table([GOOD], [GOOD]), second)
    assert (found.runs, found.not_judged) == (1, 1)


def test_runs_of_two_versions_of_an_app_are_matched_by_question() -> None:
    first, second = table([GOOD], prefix="old"), table([BAD], prefix="new")
    with pytest.raises(InputError, match=r"no run is in both tables by id: .*match by question"):
        compare(first, second)
    assert compare(first, second, match=Match.QUESTION).runs == 1


def test_two_runs_that_count_as_the_same_are_an_error() -> None:
    with pytest.raises(InputError, match="the second table has two runs with the id 'same'"):
        compare(table([GOOD]), table([GOOD], [GOOD], ids=["same", "same"]))


# The command


def written(path: Path, runs: Sequence[TableRun]) -> Path:
    with write_table(path) as writer:
        for run in runs:
            writer.write(run.rows)
    return path


def test_the_command_prints_changes_and_holds_support_to_a_drop(
    citespan: Callable[..., Any], tmp_path: Path
) -> None:
    first = written(tmp_path / "a.jsonl", table([GOOD, GOOD], [GOOD]))
    second = written(tmp_path / "b.csv", table([GOOD, BAD], [GOOD]))
    done = citespan("compare", first, second, "--max-drop", "0.5")
    assert done.exit_code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    assert "1 of 3 claims in both tables changed their label" in done.out
    assert "gate passed: support drops by at most 0.5 (3/3 = 1.00 then 2/3 = 0.67)" in done.out
    failed = citespan("compare", first, second, "--max-drop", "0.1", "--json")
    assert failed.exit_code == 1
    data = json.loads(failed.out)
    assert data["measures"]["support"]["change"] == pytest.approx(-1 / 3)
    assert [(c["before"], c["after"]) for c in data["changed"]] == [("supported", "contradicted")]


def test_a_gate_on_a_drop_without_data_fails(citespan: Callable[..., Any], tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", table([]))
    other = written(tmp_path / "b.jsonl", table([]))
    done = citespan("compare", path, other, "--max-drop", "1")
    assert done.exit_code == 1
    assert "gate FAILED" in done.out


def test_tables_without_a_run_in_common_are_wrong_input(citespan: Callable[..., Any], tmp_path: Path) -> None:
    first = written(tmp_path / "a.jsonl", table([GOOD], prefix="a"))
    second = written(tmp_path / "b.jsonl", table([GOOD], prefix="b"))
    done = citespan("compare", first, second)
    assert (done.exit_code, done.out) == (2, "")
    assert "no run is in both tables" in done.err
    assert citespan("compare", first, second, "--by-question").exit_code == 0
