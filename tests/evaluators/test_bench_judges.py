from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from citespan.evaluators.verdicts import Label

BENCH = Path(__file__).parents[2] / "bench"
ROWS = [
    ("The lamp is green.", ["The lamp is green and stands by the door."], "supported"),
    ("The lamp was bought in 2019.", ["The lamp was bought in 2019 for the hall."], "supported"),
    ("The lamp is red.", ["The hall has four doors."], "unsupported"),
    ("The clock is often wrong.", ["The clock is often wrong."], "supported"),
    ("The clock is always right.", ["The clock is often wrong."], "contradicted"),
]


@pytest.fixture(scope="module")
def bench() -> Iterator[Path]:
    sys.path.insert(0, str(BENCH))
    yield BENCH
    sys.path.remove(str(BENCH))


def load(bench: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"bench_{name}", bench / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("wice_claim", "own_set"):
        lines = [
            json.dumps({"id": str(n), "claim": claim, "passages": passages, "label": label})
            for n, (claim, passages, label) in enumerate(ROWS)
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return tmp_path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH / "judges.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_json_holds_the_stable_keys_and_nothing_else_is_on_stdout(folder: Path) -> None:
    done = run("--data", str(folder), "--judge", "lexical", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert set(figures) == {"judge", "sets", "edits", "macro_balanced_accuracy"}
    assert set(figures["sets"]) == {"own_set", "wice_claim"}
    assert set(figures["sets"]["own_set"]) == {
        "n",
        "balanced_accuracy",
        "ci95",
        "macro_f1",
        "pairs_per_second",
    }
    # all five right: (3/3 + 2/2) / 2
    assert figures["macro_balanced_accuracy"] == 1.0
    assert figures["edits"]["number"] == 0.0


def test_macro_is_over_the_cited_passage_sets_where_there_are_any(folder: Path) -> None:
    lines = (folder / "own_set.jsonl").read_text("utf-8").replace('"supported"', '"unsupported"')
    (folder / "own_set.jsonl").write_text(lines, "utf-8")
    figures = json.loads(run("--data", str(folder), "--judge", "lexical", "--json").stdout)
    assert figures["sets"]["own_set"]["balanced_accuracy"] is None
    assert figures["macro_balanced_accuracy"] == 1.0


def test_limit_takes_the_first_rows_of_each_set(folder: Path) -> None:
    figures = json.loads(run("--data", str(folder), "--judge", "lexical", "--limit", "3", "--json").stdout)
    assert [figures["sets"][name]["n"] for name in figures["sets"]] == [3, 3]


def test_markdown_shows_the_judge_beside_the_floors(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "table.md"
    done = run("--data", str(folder), "--judge", "lexical", "--markdown", str(target))
    assert done.returncode == 0, done.stderr
    text = target.read_text("utf-8")
    assert "| always supported | token overlap | window recall |" in text
    assert "| wice_claim * | 5 | 1.000 |" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--data", "nowhere", "--judge", "lexical"], "no *.jsonl file"),
        (["--data", "{folder}", "--judge", "nobody"], "nobody"),
    ],
)
def test_wrong_input_is_named_and_exits_with_2(folder: Path, arguments: list[str], said: str) -> None:
    done = run(*(argument.format(folder=folder) for argument in arguments))
    assert done.returncode == 2
    assert said in done.stderr


def test_line_that_is_no_row_is_named(folder: Path) -> None:
    (folder / "broken.jsonl").write_text('{"claim": "x"}\n', "utf-8")
    done = run("--data", str(folder), "--judge", "lexical")
    assert done.returncode == 2
    assert "broken.jsonl line 1" in done.stderr


def test_balanced_accuracy_is_the_mean_of_both_shares(bench: Path) -> None:
    figures = load(bench, "figures")
    # true rows: 1 of 2 right; false rows: 3 of 4 right -> (0.5 + 0.75) / 2
    said = [True, False, False, False, False, True]
    truth = [True, True, False, False, False, False]
    assert figures.balanced_accuracy(said, truth) == 0.625
    assert figures.balanced_accuracy([True], [True]) is None
    low, high = figures.bootstrap_interval(said, truth)
    assert 0.0 <= low < 0.625 < high <= 1.0


def test_macro_f1_averages_over_labels(bench: Path) -> None:
    figures = load(bench, "figures")
    yes, no = Label.SUPPORTED, Label.UNSUPPORTED
    # supported: TP 1, FP 1, FN 0 -> 2/3; unsupported: TP 1, FP 0, FN 1 -> 2/3
    assert figures.macro_f1([yes, yes, no], [yes, no, no], [yes, no]) == pytest.approx(2 / 3)


def test_calibration_error_weighs_each_bin_by_its_rows(bench: Path) -> None:
    figures = load(bench, "figures")
    # bin 0.9: mean score 0.95, half true, 2 of 3 rows -> 0.45 * 2/3; bin 0.1: 0.15, none true -> 0.15 / 3
    assert figures.calibration_error([0.95, 0.95, 0.15], [True, False, False]) == pytest.approx(0.35)
    assert figures.calibration_error([], []) is None


@pytest.mark.parametrize(
    ("kind", "claim", "edited"),
    [
        ("negation", "The lamp is green.", "The lamp is not green."),
        ("negation", "The lamp is not green.", "The lamp is green."),
        ("negation", "Ada Berg never painted.", None),
        ("strengthening", "The clock is often wrong.", "The clock is always wrong."),
        ("strengthening", "Users may leave.", "Users must leave."),
        ("number", "The lamp is green.", None),
        ("number", "4. Turn it off.", None),
        ("role_swap", "They saw Acme Works buy Globex Mills.", "They saw Globex Mills buy Acme Works."),
        ("entity_swap", "In May they met Acme Works.", "In May they met Initech Labs."),
    ],
)
def test_edit_changes_one_thing_or_nothing(bench: Path, kind: str, claim: str, edited: str | None) -> None:
    edits = load(bench, "edits")
    assert edits.edit(kind, claim, [], seed="1", other_names=["Initech Labs"]) == edited


def test_edited_number_differs_and_keeps_its_form(bench: Path) -> None:
    edits = load(bench, "edits")
    for seed in range(20):
        edited = edits.edit("number", "It has 1,200 rooms.", [], seed=str(seed))
        assert edited is not None
        number = edited.removeprefix("It has ").removesuffix(" rooms.")
        assert number != "1,200"
        assert int(number.replace(",", "")) >= 1_000
        assert "," in number


def test_same_seed_makes_the_same_edit(bench: Path) -> None:
    edits = load(bench, "edits")
    made = {edits.edit("number", "It has 7 rooms and 3 doors.", [], seed="a") for _ in range(5)}
    assert len(made) == 1
