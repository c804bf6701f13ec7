from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

EXAMPLES = Path(__file__).parents[1] / "data" / "worked_examples.json"


@pytest.fixture(params=[".jsonl", ".csv", ".parquet"])
def table(citespan: Callable[..., Any], tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / f"table{request.param}"
    assert citespan("score", EXAMPLES, "--output", path).exit_code == 0
    return path


def test_a_table_gives_the_figures_of_the_evaluation_it_came_from(
    citespan: Callable[..., Any], table: Path
) -> None:
    scored = json.loads(citespan("score", EXAMPLES, "--json").out)
    reported = json.loads(citespan("report", table, "--json").out)
    for key in ("schema", "pooled", "judge", "report"):
        assert reported[key] == scored[key]
    assert [run["measures"] for run in reported["runs"]] == [run["measures"] for run in scored["runs"]]


def test_a_gate_on_a_table_ends_with_1_when_it_fails(citespan: Callable[..., Any], table: Path) -> None:
    # Support is 3/5 and 0/2, pooled 3/7 = 0.43.
    assert citespan("report", table, "--min-support", "0.42").exit_code == 0
    done = citespan("report", table, "--min-support", "0.5")
    assert done.exit_code == 1
    assert "gate FAILED: support >= 0.5 (3/7 judged cited claims = 0.429)" in done.out


def test_a_table_shows_its_runs_as_they_were_shown_when_judged(
    citespan: Callable[..., Any], table: Path
) -> None:
    # What the judge is known to get wrong stands on the judge's card, and no table holds that.
    judged = re.sub(r"\nlimits .*?(?=\nnot proved)", "", citespan("score", EXAMPLES).out, flags=re.DOTALL)
    assert citespan("report", table, "--show", "all").out == judged
    assert "✗ unsupported" not in citespan("report", table).out


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.jsonl", None, "cannot read"),
        ("empty.jsonl", "", "holds no rows: write a table with citespan score"),
        ("empty.csv", "", "holds no rows"),
        ("runs.jsonl", '{"answer": "x", "passages": []}', "line 1: run_id: Field required"),
        ("broken.jsonl", "{", "line 1: not valid JSON"),
        ("broken.parquet", "PAR1", "is no whole Parquet file"),
        ("table.xlsx", "", "name a file ending in .jsonl, .csv or .parquet"),
    ],
)
def test_what_is_no_table_is_wrong_input(
    citespan: Callable[..., Any], tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    done = citespan("report", path, "--json")
    assert (done.exit_code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_a_table_that_breaks_off_reports_what_came_before(
    citespan: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "table.jsonl"
    assert citespan("score", EXAMPLES, "--output", path).exit_code == 0
    path.write_text(path.read_text()[:-100])
    done = citespan("report", path, "--json")
    assert done.exit_code == 2
    data = json.loads(done.out)
    assert [run["id"] for run in data["runs"]] == ["sync"]
    assert "line 8: not valid JSON" in data["cut_short"]


cells = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
cells |= st.sampled_from(["supported", "not_rag", [{"n": 1, "marker": "x", "start": 0, "end": 1}]])
rows = st.dictionaries(
    st.sampled_from(["schema", "claim", "claim_index", "label", "citations", "state", "start", "score"]),
    cells,
)
IDENTITY = {"run_id": "a", "judge": "j", "judge_fingerprint": "f", "run_fingerprint": "r"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(found=st.lists(rows.map(lambda row: {**IDENTITY, **row}) | rows | cells, max_size=3))
def test_any_rows_end_with_0_or_2(
    citespan: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory, found: list[object]
) -> None:
    path = tmp_path_factory.mktemp("any") / "table.jsonl"
    path.write_text("\n".join(map(json.dumps, found)))
    for command in (["report", path, "--json"], ["report", path, "--show", "all"], ["compare", path, path]):
        assert citespan(*command).exit_code in (0, 2)
