from __future__ import annotations

import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from citespan.evaluators.analysis.tablefile import read_table

EXAMPLES = Path(__file__).parents[1] / "data" / "worked_examples.json"
RUN = {"answer": "Tea is green [1].", "passages": [{"id": "a", "text": "Tea is green."}]}


def run_json(citespan: Callable[..., Any], *arguments: object) -> dict[str, Any]:
    done = citespan("score", *arguments, "--json")
    assert done.exit_code == 0, done.err
    return json.loads(done.out)  # type: ignore[no-any-return]


def written(folder: Path, content: object, name: str = "runs.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def shares(measures: dict[str, dict[str, object]]) -> dict[str, str]:
    return {name: f"{ratio['numerator']}/{ratio['denominator']}" for name, ratio in measures.items()}


# The two worked examples of DESIGN.md, section 1


def test_the_first_worked_example_comes_out_as_designed(citespan: Callable[..., Any]) -> None:
    run = run_json(citespan, EXAMPLES)["runs"][0]
    assert [claim["label"] for claim in run["claims"]] == [
        "supported",
        "supported",
        "partly_supported",
        "supported",
        "unsupported",
    ]
    assert [claim["citations"][0]["passage_id"] for claim in run["claims"]] == ["P1", "P1", "P2", "P3", "P1"]
    # Five claims, each cited once; three of them supported.
    measures = shares(run["measures"])
    assert (measures["coverage"], measures["support"], measures["validity"]) == ("5/5", "3/5", "5/5")


def test_the_second_worked_example_comes_out_as_designed(citespan: Callable[..., Any]) -> None:
    run = run_json(citespan, EXAMPLES)["runs"][1]
    assert [claim["label"] for claim in run["claims"]] == ["partly_supported", "contradicted", "uncited"]
    # Three claims, two cited; none supported, one partly, one contradicted.
    measures = shares(run["measures"])
    assert (measures["validity"], measures["support"]) == ("2/2", "0/2")
    assert (measures["partly_supported"], measures["contradicted"]) == ("1/2", "1/2")
    assert (measures["coverage"], measures["completeness"]) == ("2/3", "2/3")


def test_pooled_figures_add_the_counts_of_both_examples(citespan: Callable[..., Any]) -> None:
    # Coverage 5/5 and 2/3 pool to 7/8, whereas the mean of the ratios is (1 + 2/3) / 2 = 5/6.
    data = run_json(citespan, EXAMPLES)
    assert data["pooled"]["coverage"] == {"numerator": 7, "denominator": 8, "unit": "claims", "value": 0.875}
    mean = data["report"]["mean_of_per_answer_ratios"]["coverage"]
    assert mean == {"value": pytest.approx(5 / 6), "answers": 2}


def test_the_json_is_that_of_the_design_and_offsets_slice_the_answer(citespan: Callable[..., Any]) -> None:
    data = run_json(citespan, EXAMPLES)
    assert {"schema", "runs", "pooled", "judge"} <= set(data)
    assert data["schema"] == 1
    assert set(data["judge"]) == {"name", "fingerprint"}
    run, answer = data["runs"][1], json.loads(EXAMPLES.read_text())[1]["answer"]
    assert {"id", "state", "citations", "claims", "measures"} <= set(run)
    claim = run["claims"][0]
    assert answer[claim["start"] : claim["end"]].startswith("Refunds are issued within five days")
    marker = run["citations"][1]
    assert answer[marker["start"] : marker["end"]] == "[2]"
    assert (marker["passage_id"], marker["claims"]) == ("plans", [1])
    assert data["pooled"]["link_validity"]["value"] is None
    assert "reason" in data["pooled"]["link_validity"]


# Forms of input


@pytest.mark.parametrize(
    ("name", "content", "ids"),
    [
        ("one.json", json.dumps(RUN, indent=2), ["run-1"]),
        ("one-line.json", json.dumps(RUN), ["run-1"]),
        ("list.json", json.dumps([RUN, {**RUN, "id": "b"}]), ["run-1", "b"]),
        ("lines.jsonl", f"{json.dumps(RUN)}\n\n{json.dumps({**RUN, 'id': 7})}\n", ["run-1", "7"]),
        ("lines.json", f"{json.dumps(RUN)}\n{json.dumps(RUN)}", ["run-1", "run-2"]),
        ("marked.json", "\ufeff" + json.dumps(RUN), ["run-1"]),
        ("separator.jsonl", json.dumps({**RUN, "id": "a\u2028b"}, ensure_ascii=False), ["a\u2028b"]),
    ],
)
def test_an_object_a_list_and_lines_are_read(
    citespan: Callable[..., Any], tmp_path: Path, name: str, content: str, ids: list[str]
) -> None:
    data = run_json(citespan, written(tmp_path, content, name))
    assert [run["id"] for run in data["runs"]] == ids


def test_standard_input_is_read_and_stdout_holds_one_json_object_only() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "citespan", "score", "-", "--json"],
        input=json.dumps(RUN),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["runs"][0]["claims"][0]["label"] == "supported"


def test_a_run_that_cannot_be_judged_has_a_state_and_no_zero(
    citespan: Callable[..., Any], tmp_path: Path
) -> None:
    data = run_json(citespan, written(tmp_path, {**RUN, "answer": None}))
    assert data["runs"][0]["state"] == "no_answer_recorded"
    assert data["runs"][0]["claims"] == []
    assert data["pooled"]["support"]["value"] is None
    assert data["report"]["states"] == {"no_answer_recorded": 1}


# Wrong input: exit code 2, one line that says what and where


WRONG = [
    ("", "runs.json is empty"),
    ("{", "runs.json: not valid JSON: .*column 2"),
    ('{\n "answer": "x",\n "passages": oops}', r"not valid JSON: .*line 3, column 14"),
    ("[]", "runs.json holds no runs"),
    ("17", "runs.json: a number: expected an object"),
    ('"text"', "runs.json: a string"),
    ("null", "runs.json: null"),
    ("[1]", "item 1: a number"),
    ("{}", "runs.json: run 'run-1' has no \"answer\""),
    ('{"answer": "x"}', 'no "passages"'),
    ('{"answer": 5, "passages": []}', '"answer" is int: expected a string'),
    ('{"answer": "x", "passages": {}}', '"passages" is dict: expected a list'),
    ('{"answer": "x", "passages": [5]}', "holds int: expected objects"),
    ('{"answer": "x", "passages": [{"id": "a"}]}', 'passage 1 has no "text"'),
    (
        '{"answer": "x", "passages": [{"id": "a", "text": ""}, {"id": "a", "text": ""}]}',
        "two passages have the id 'a'",
    ),
    (
        '{"answer": "x", "passages": [], "citations": [{"passage_id": "a", "start": 0, "end": 9}]}',
        "no range of the answer's 1 code points",
    ),
    ("[" * 100_000, "cannot be read as JSON"),
    ("1" * 5_000, "cannot be read as JSON"),
]


@pytest.mark.parametrize(("content", "message"), WRONG)
def test_wrong_input_is_one_line_and_exit_code_2(
    citespan: Callable[..., Any], tmp_path: Path, content: str, message: str
) -> None:
    done = citespan("score", written(tmp_path, content), "--json")
    assert (done.exit_code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert done.err.startswith("citespan: ")
    assert re.search(message, done.err), done.err


def test_one_bad_line_is_named_by_its_number_and_nothing_is_judged(
    citespan: Callable[..., Any], tmp_path: Path
) -> None:
    path = written(tmp_path, f"{json.dumps(RUN)}\n\n{{bad\n{json.dumps(RUN)}\n", "runs.jsonl")
    done = citespan("score", path)
    assert (done.exit_code, done.out) == (2, "")
    assert "runs.jsonl, line 3: not valid JSON" in done.err


def test_bad_lines_can_be_set_aside_which_ends_with_4(citespan: Callable[..., Any], tmp_path: Path) -> None:
    path = written(tmp_path, f"{json.dumps(RUN)}\n{{bad\n{{}}\n", "runs.jsonl")
    done = citespan("score", path, "--skip-invalid", "--json")
    assert done.exit_code == 4
    data = json.loads(done.out)
    assert [run["id"] for run in data["runs"]] == ["run-1"]
    assert [reason.partition(": ")[0][-6:] for reason in data["set_aside"]] == ["line 2", "line 3"]
    assert done.err.count("set aside: ") == 2


def test_files_that_cannot_be_read_are_named(citespan: Callable[..., Any], tmp_path: Path) -> None:
    missing = citespan("score", tmp_path / "none.json")
    assert (missing.exit_code, missing.out) == (2, "")
    assert "none.json: No such file or directory" in missing.err
    folder = citespan("score", tmp_path)
    assert folder.exit_code == 2
    assert "Is a directory" in folder.err
    binary = tmp_path / "binary.json"
    binary.write_bytes(b'{"answer": "\xff"}')
    assert "is not valid UTF-8 (byte 12)" in citespan("score", binary).err


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["id", "question", "answer", "passages", "citations", "text", "label", "start", "end"]
            )
            | st.text(max_size=5),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)
passages = st.lists(
    st.fixed_dictionaries(
        {"id": st.text(max_size=3) | st.integers(), "text": st.text(max_size=40) | st.none()},
        optional={"label": st.text(max_size=3), "title": json_values, "metadata": json_values},
    ),
    max_size=3,
)
runs = st.fixed_dictionaries(
    {"answer": st.text(max_size=80) | st.none(), "passages": passages},
    optional={"id": json_values, "question": json_values, "citations": json_values},
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(value=json_values | runs | st.lists(runs, max_size=3))
def test_any_json_value_ends_with_0_or_2_and_one_line(
    citespan: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory, value: object
) -> None:
    done = citespan("score", written(tmp_path_factory.mktemp("any"), value), "--json")
    if done.exit_code == 0:
        assert json.loads(done.out)["schema"] == 1
    else:
        assert (done.exit_code, done.out) == (2, "")
        assert done.err.startswith("citespan: ")


# Wrong usage


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--judge", "oracle"], "no judge is called 'oracle'"),
        (["--citation-scope", "page"], "sentence"),
        (["--min-support", "80"], "Invalid value for '--min-support'"),
        (["--output", "table.xlsx"], "name a file ending in .jsonl, .csv or .parquet"),
        (["--output", "nowhere/table.jsonl"], "cannot write nowhere/table.jsonl: No such file or directory"),
        (["--output", str(EXAMPLES)], "is the file that is read: choose another"),
        (["--wrong"], "No such option: --wrong"),
    ],
)
def test_wrong_usage_is_named_with_exit_code_2(
    citespan: Callable[..., Any], arguments: list[str], message: str
) -> None:
    done = citespan("score", EXAMPLES, *arguments)
    assert (done.exit_code, done.out) == (2, "")
    assert message in done.err
    assert done.err.startswith("citespan: ")


def test_a_table_is_never_written_over_its_own_input(citespan: Callable[..., Any], tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(RUN), "runs.jsonl")
    done = citespan("score", path, "--output", path)
    assert done.exit_code == 2
    assert "is the file that is read" in done.err
    assert json.loads(path.read_text()) == RUN


def test_labels_that_people_gave_are_not_overwritten_unasked(
    citespan: Callable[..., Any], tmp_path: Path
) -> None:
    table = tmp_path / "table.jsonl"
    assert citespan("score", EXAMPLES, "-o", table).exit_code == 0
    assert citespan("score", EXAMPLES, "-o", table).exit_code == 0
    table.write_text(table.read_text().replace('"human_label":null', '"human_label":"supported"', 2))
    done = citespan("score", EXAMPLES, "-o", table)
    assert done.exit_code == 2
    assert "holds 2 labels that people gave" in done.err
    assert citespan("score", EXAMPLES, "-o", table, "--overwrite").exit_code == 0


# Gates


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        # Support is 3/5 and 0/2, pooled 3/7 = 0.43.
        (["--min-support", "0.4"], 0, "gate passed: support >= 0.4 (3/7 judged cited claims = 0.429)"),
        (["--min-support", "0.5"], 1, "gate FAILED: support >= 0.5 (3/7 judged cited claims = 0.429)"),
        (["--min-validity", "1"], 0, "gate passed: validity >= 1 (7/7 citations = 1.000)"),
        (["--max-contradicted", "0.1"], 1, "gate FAILED: contradicted <= 0.1"),
        (["--min-coverage", "0.875", "--max-unjudged", "0"], 0, "gate passed: unjudged <= 0"),
    ],
)
def test_a_failed_gate_ends_with_1(
    citespan: Callable[..., Any], arguments: list[str], exit_code: int, said: str
) -> None:
    done = citespan("score", EXAMPLES, "--show", "none", *arguments)
    assert done.exit_code == exit_code
    assert said in done.out
    as_json = citespan("score", EXAMPLES, "--json", *arguments)
    assert as_json.exit_code == exit_code
    assert said in as_json.err
    assert all(gate["passed"] for gate in json.loads(as_json.out)["gates"]) == (exit_code == 0)


def test_a_gate_without_data_fails_and_says_so(citespan: Callable[..., Any], tmp_path: Path) -> None:
    uncited = written(tmp_path, {**RUN, "answer": "Tea is green."})
    done = citespan("score", uncited, "--min-support", "0")
    assert done.exit_code == 1
    assert "gate FAILED: support >= 0 (no data: 0/0 judged cited claims)" in done.out


def test_more_than_5_percent_unjudged_fails_any_gate(citespan: Callable[..., Any], tmp_path: Path) -> None:
    # Two cited claims; the passage of the second was not recorded, so 1/2 cited claims are unjudged.
    answer = "Tea is green [1]. Milk is white [2]."
    passages = [*RUN["passages"], {"id": "b", "text": None}]
    path = written(tmp_path, {"answer": answer, "passages": passages})
    assert citespan("score", path).exit_code == 0
    done = citespan("score", path, "--min-support", "0.5")
    assert done.exit_code == 1
    assert "gate FAILED: unjudged <= 0.05 (1/2 cited claims = 0.500)" in done.out
    assert citespan("score", path, "--min-support", "0.5", "--max-unjudged", "0.5").exit_code == 0


# What a person sees


def test_the_label_table_shows_claim_label_evidence_and_cure(citespan: Callable[..., Any]) -> None:
    out = citespan("score", EXAMPLES).out
    assert max(map(len, out.splitlines())) <= 80
    block = out[out.index("partly_supported") : out.index("Sync runs are logged locally")]
    text = " ".join(block.split())
    assert "Authentication failures are never retried. [P2]" in text
    assert "from [P2] “Permanent errors, such as authentication failures, are not retried" in text
    assert "(overstated)" in text
    assert "3/7 judged cited claims" in out
    assert "mean of per-answer ratios" in out
    assert "citation scope sentence" in out
    assert "neither correctness" in " ".join(out.split())


def test_findings_alone_can_be_shown(citespan: Callable[..., Any]) -> None:
    out = citespan("score", EXAMPLES, "--show", "findings").out
    assert "✗ unsupported" in out
    assert "✓ supported" not in out
    assert "✓ supported" not in citespan("score", EXAMPLES, "--show", "none").out


def test_an_answer_cannot_drive_the_terminal(citespan: Callable[..., Any], tmp_path: Path) -> None:
    evil = "Tea\x1b[2J\x1b]8;;http://evil\x07 is green [1]."
    path = written(tmp_path, {**RUN, "id": "\x1b[31m", "question": "[red]\x9b31m?", "answer": evil})
    out = citespan("score", path).out
    assert not any((ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 for c in out)
    assert "[red]" in out


def test_the_table_holds_what_was_scored(citespan: Callable[..., Any], tmp_path: Path) -> None:
    assert citespan("score", EXAMPLES, "--output", tmp_path / "t.parquet").exit_code == 0
    labels = [row.label for row in read_table(tmp_path / "t.parquet")]
    assert [str(label) for label in labels] == [
        *["supported", "supported", "partly_supported", "supported", "unsupported"],
        *["partly_supported", "contradicted", "uncited"],
    ]


# The process


def test_help_answers_quickly_and_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from citespan.evaluators.command import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: sys.stderr.write(' '.join(sys.modules))"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "Exit codes" in done.stdout
    heavy = {"httpx", "pyarrow", "snowballstemmer", "openai", "phoenix", "onnxruntime", "rich.progress"}
    assert heavy.isdisjoint(done.stderr.split())
    # Measured 0.34 s; processor time, since other tests run beside this one.
    assert after.ru_utime - before.ru_utime < 1.0


def test_every_command_documents_its_exit_codes(citespan: Callable[..., Any]) -> None:
    for command in ("demo", "score", "evaluate", "report", "inspect", "serve", "doctor", "purge"):
        assert "130 interrupted" in " ".join(citespan(command, "--help").out.split())
    assert citespan("--version").out.startswith("citespan 0.")


def test_a_reader_that_leaves_ends_the_command_quietly(tmp_path: Path) -> None:
    path = written(tmp_path, [{**RUN, "id": f"r{n}"} for n in range(400)])
    for arguments in (["--json"], []):
        process = subprocess.Popen(
            [sys.executable, "-m", "citespan", "score", str(path), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141
        process.stderr.close()


@pytest.mark.parametrize("as_json", [True, False])
def test_an_interrupt_keeps_what_was_done_and_ends_with_130(tmp_path: Path, as_json: bool) -> None:
    answer = " ".join(f"Tea number {n} is green and mild in taste [1]." for n in range(40))
    path = written(tmp_path, [{**RUN, "id": f"r{n}", "answer": answer} for n in range(2000)])
    table = tmp_path / "table.jsonl"
    arguments = [str(path), "-o", str(table), *["--json"] * as_json]
    with (tmp_path / "out").open("wb") as out_file:
        process = subprocess.Popen(
            [sys.executable, "-m", "citespan", "score", *arguments],
            stdout=out_file,
            stderr=subprocess.PIPE,
            text=True,
        )
    deadline = time.monotonic() + 60
    while not table.exists() or table.stat().st_size == 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted: the figures are about the" in err
    assert "Traceback" not in err
    done = len({row.run_id for row in read_table(table)})
    assert 0 < done < 2000
    out = (tmp_path / "out").read_text()
    if as_json:
        data = json.loads(out)
        assert (len(data["runs"]), data["cut_short"]) == (done, "interrupted")
    else:
        assert f"Measures over {done} of {done} run" in out


def test_colours_show_on_a_terminal_only() -> None:
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "citespan", "score", str(EXAMPLES)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
    )
    os.close(slave)
    seen = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the terminal's other side has closed
            break
        if not piece:
            break
        seen += piece
    os.close(master)
    assert process.wait(60) == 0
    assert b"\x1b[32m" in seen
    assert "✓ supported".encode() in seen
