from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from citespan import tracer
from citespan.evaluators.analysis.tablefile import read_table
from citespan.evaluators.command.moment import moment
from citespan.evaluators.errors import UsageError
from citespan.tracer import Passage
from citespan.tracer.testing import record_in_memory

EXAMPLES = json.loads((Path(__file__).parents[1] / "data" / "worked_examples.json").read_text())


@pytest.fixture
def spans(tmp_path: Path) -> Path:
    """Both worked examples, as `citespan.tracer` records them."""
    with record_in_memory() as recorded:
        for example in EXAMPLES:
            with tracer.run(example.get("question")) as run:
                run.retrieved([Passage(id=item["id"], text=item["text"]) for item in example["passages"]])
                run.answer(example["answer"])
    path = tmp_path / "spans.jsonl"
    path.write_text("\n".join(span.to_json(indent=None) for span in recorded.spans))
    return path


# Spans from a file


def test_spans_from_a_file_are_judged_without_a_server(citespan: Callable[..., Any], spans: Path) -> None:
    done = citespan("evaluate", "--spans", spans, "--json")
    assert (done.exit_code, done.err) == (0, "")
    data = json.loads(done.out)
    assert [[claim["label"] for claim in run["claims"]] for run in data["runs"]] == [
        ["supported", "supported", "partly_supported", "supported", "unsupported"],
        ["partly_supported", "contradicted", "uncited"],
    ]
    assert data["pass"]["traces"] == 2
    assert data["pass"]["rows_written"] == 0


def test_a_trace_without_an_answer_has_a_state_and_no_zero(
    citespan: Callable[..., Any], tmp_path: Path
) -> None:
    with record_in_memory() as recorded, tracer.run("Why?") as run:
        run.retrieved([Passage(id="a", text="Because.")])
    path = tmp_path / "spans.jsonl"
    path.write_text("\n".join(span.to_json(indent=None) for span in recorded.spans))
    data = json.loads(citespan("evaluate", "--spans", path, "--json").out)
    assert [run["state"] for run in data["runs"]] == ["no_answer_recorded"]
    assert data["pass"]["states"] == {"no_answer_recorded": 1}
    assert data["pooled"]["support"]["value"] is None


def test_the_number_of_traces_can_be_limited_and_the_table_written(
    citespan: Callable[..., Any], spans: Path, tmp_path: Path
) -> None:
    table = tmp_path / "table.csv"
    done = citespan("evaluate", "--spans", spans, "--limit", 1, "-o", table, "--show", "none")
    assert done.exit_code == 0
    assert "1 trace read, 1 run judged; nothing was written to Phoenix; ended by --max-traces" in done.err
    rows = list(read_table(table))
    assert [row.claim_index for row in rows] == [0, 1, 2, 3, 4]
    assert len(rows[0].trace_id or "") == 32


def test_a_gate_holds_for_traces_too(citespan: Callable[..., Any], spans: Path) -> None:
    done = citespan("evaluate", "--spans", spans, "--min-support", "0.9", "--show", "none")
    assert done.exit_code == 1
    assert "gate FAILED: support >= 0.9 (3/7 judged cited claims = 0.429)" in done.out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file or directory"),
        ("", "neither JSON nor JSON Lines"),
        ("[]", "holds no spans"),
        ('{"name": "x"}', "spans.txt"),
        ("nonsense", "neither JSON nor JSON Lines"),
        ("17", "expected a list of spans"),
    ],
)
def test_a_file_that_holds_no_spans_is_wrong_input(
    citespan: Callable[..., Any], tmp_path: Path, content: str | None, message: str
) -> None:
    path = tmp_path / "spans.txt"
    if content is not None:
        path.write_text(content)
    for command in (["evaluate", "--spans", path], ["inspect", path]):
        done = citespan(*command, "--json")
        assert (done.exit_code, done.out) == (2, "")
        assert message in done.err
        assert done.err.count("\n") == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
records = st.sampled_from(
    [
        '{"schema": 1}',
        '{"schema": 9}',
        '{"schema": 1, "passages": [{"id": "a", "label": "1", "sha256": null}]}',
        '{"schema": 1, "citations": [{"passage_id": "a", "start": 0, "end": 99}]}',
    ]
)
odd_spans = st.fixed_dictionaries(
    {
        "name": st.text(max_size=4),
        "trace_id": st.sampled_from(["0" * 32, "ab" * 16]),
        "span_id": st.sampled_from(["1" * 16, "2" * 16]),
        "parent_id": st.none() | st.sampled_from(["1" * 16, "9" * 16]),
        "start": st.integers(0, 2**63),
        "end": st.integers(0, 2**63),
        "attributes": st.dictionaries(
            st.sampled_from(
                [
                    "citespan.run",
                    "output.value",
                    "retrieval.documents.0.document.id",
                    "openinference.span.kind",
                ]
            ),
            json_values | records,
        ),
    },
    optional={"kind": json_values, "status": json_values, "events": json_values},
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(value=json_values | st.lists(odd_spans, max_size=4) | st.lists(odd_spans | json_values, max_size=3))
def test_any_json_value_taken_for_spans_ends_with_a_documented_code(
    citespan: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory, value: object
) -> None:
    path = tmp_path_factory.mktemp("any") / "spans.json"
    path.write_text(json.dumps(value))
    for command in (["evaluate", "--spans", path], ["inspect", path]):
        done = citespan(*command, "--json")
        assert done.exit_code in (0, 2, 4)
        assert done.exit_code == 2 or json.loads(done.out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--spans", "x", "--since", "1h"],
            "--spans reads a file and writes nothing back: leave out --since",
        ),
        (["--spans", "x", "--settle", "60s", "--state", "s"], "leave out --settle, --state"),
        (["--trace", "ab" * 16, "--filter", "num_spans > 1"], "--trace names the traces: leave out --filter"),
        (["--dry-run", "--state", "s"], "--dry-run writes nothing, so --state must not remember"),
    ],
)
def test_options_that_mean_nothing_together_are_refused_with_the_reason(
    citespan: Callable[..., Any], options: list[str], message: str
) -> None:
    done = citespan("evaluate", *options)
    assert (done.exit_code, done.out) == (2, "")
    assert message in done.err


def test_the_traces_of_a_file_are_sampled_and_divided_like_those_of_a_project(
    citespan: Callable[..., Any], spans: Path
) -> None:
    none = citespan("evaluate", "--spans", spans, "--sample-rate", "0")
    assert (none.exit_code, none.out) == (0, "")
    assert "0 traces read, 0 runs judged; nothing was written to Phoenix; left out: 2 not sampled" in none.err
    halves = [
        json.loads(citespan("evaluate", "--spans", spans, "--json", "--shard", f"{n}/2").out)["pass"]
        for n in (1, 2)
    ]
    assert [half["traces"] + half["skipped"].get("other_shard", 0) for half in halves] == [2, 2]
    assert sum(half["traces"] for half in halves) == 2


# How a trace was read


def test_inspect_shows_how_a_run_was_read(citespan: Callable[..., Any], spans: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.jsonl"
    lines = [json.loads(line) for line in spans.read_text().splitlines()]
    first = lines[0]["context"]["trace_id"]
    one.write_text("\n".join(json.dumps(line) for line in lines if line["context"]["trace_id"] == first))
    done = citespan("inspect", one, "--json")
    assert done.exit_code == 0
    data = json.loads(done.out)
    assert (data["state"], data["resolution"]) == (None, "explicit")
    assert data["question"] == EXAMPLES[0]["question"]
    assert data["answer"] == EXAMPLES[0]["answer"]
    assert [passage["id"] for passage in data["passages"]] == ["P1", "P2", "P3"]
    assert [(c["marker"], c["passage_id"], c["certainty"]) for c in data["citations"]] == [
        ("[P1]", "P1", "certain"),
        ("[P1]", "P1", "certain"),
        ("[P2]", "P2", "certain"),
        ("[P3]", "P3", "certain"),
        ("[P1]", "P1", "certain"),
    ]
    assert all(data["answer"][c["start"] : c["end"]] == c["marker"] for c in data["citations"])


def test_inspect_puts_several_runs_in_a_list_and_reads_well(
    citespan: Callable[..., Any], spans: Path
) -> None:
    data = json.loads(citespan("inspect", spans, "--json").out)
    assert [run["question"] for run in data["runs"]] == [EXAMPLES[0]["question"], None]
    out = citespan("inspect", spans).out
    assert max(map(len, out.splitlines())) <= 80
    assert "question   not recorded" in out
    assert "[2] at 82 → plans, " in out


# A server that is not there, or is none


@pytest.fixture
def server() -> Iterator[Callable[[int, str, str], str]]:
    """Start a server that answers every request the same way, and return its URL."""
    started: list[ThreadingHTTPServer] = []

    def start(status: int, body: str, content_type: str) -> str:
        class Answer(BaseHTTPRequestHandler):
            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                self.send_response(status)
                self.send_header("content-type", content_type)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            do_GET = do_POST = answer  # noqa: N815  # the names that http.server calls

            def log_message(self, *_: object) -> None:
                pass

        started.append(ThreadingHTTPServer(("127.0.0.1", 0), Answer))
        threading.Thread(target=started[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{started[-1].server_address[1]}"

    yield start
    for running in started:
        running.shutdown()
        running.server_close()


COMMANDS = [["evaluate"], ["purge"], ["inspect", "0" * 32], ["evaluate", "--dry-run", "--json"]]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_server_that_is_down_is_named_with_the_cure(
    citespan: Callable[..., Any], command: list[str]
) -> None:
    # Port 9 (discard) is never listened on by a test machine.
    done = citespan(*command, "--endpoint", "http://127.0.0.1:9")
    assert (done.exit_code, done.out) == (3, "")
    assert done.err.count("\n") == 1
    assert "cannot reach Phoenix at http://127.0.0.1:9" in done.err
    assert "citespan serve" in done.err


@pytest.mark.parametrize(
    ("status", "body", "content_type", "message"),
    [
        (401, "", "text/plain", "PHOENIX_API_KEY"),
        (403, "", "text/plain", "use a key of a member or admin"),
        (200, "<html>Welcome</html>", "text/html", "Phoenix"),
    ],
)
def test_a_refusal_names_the_url_and_the_cure(
    citespan: Callable[..., Any],
    server: Callable[[int, str, str], str],
    status: int,
    body: str,
    content_type: str,
    message: str,
) -> None:
    url = server(status, body, content_type)
    done = citespan("evaluate", "--endpoint", url)
    assert (done.exit_code, done.out) == (3, "")
    assert done.err.count("\n") == 1
    assert url in done.err
    assert message in done.err


def test_doctor_names_the_first_failure_and_its_fix(citespan: Callable[..., Any]) -> None:
    done = citespan("doctor", "--endpoint", "http://127.0.0.1:9", "--json")
    assert done.exit_code == 3
    checks = json.loads(done.out)["checks"]
    assert [check["outcome"] for check in checks] == ["failed", *["skipped"] * (len(checks) - 1)]
    assert "citespan serve" in checks[0]["fix"]
    assert "failed" in citespan("doctor", "--endpoint", "http://127.0.0.1:9").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--since", "yesterday"], "'yesterday' is no point in time"),
        (["--max-traces", "0"], "Invalid value for '--max-traces' / '--limit'"),
        (["--settle", "soon"], "'soon' is no length of time"),
        (["--shard", "3/2"], "--shard '3/2': expected i/n"),
        (["--claims", "all"], "Invalid value for '--claims'"),
        (["--endpoint", "ftp://host"], "--endpoint is 'ftp://host'"),
        (["--project", ""], "--project is ''"),
    ],
)
def test_wrong_arguments_are_named(citespan: Callable[..., Any], arguments: list[str], message: str) -> None:
    done = citespan("evaluate", *arguments)
    assert (done.exit_code, done.out) == (2, "")
    assert message in done.err


# Points in time


NOW = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=1)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", datetime(2026, 3, 1, 10, 58, 30, tzinfo=UTC)),
        ("24h", datetime(2026, 2, 28, 11, tzinfo=UTC)),
        ("7D", datetime(2026, 2, 22, 11, tzinfo=UTC)),
        ("2026-02-01", datetime(2026, 1, 31, 23, tzinfo=UTC)),
        ("2026-02-01T09:00Z", datetime(2026, 2, 1, 9, tzinfo=UTC)),
    ],
)
def test_an_age_or_a_date_is_a_point_in_time(text: str, expected: datetime) -> None:
    assert moment(text, now=NOW) == expected


@pytest.mark.parametrize("text", ["", "soon", "5", "-1h", "5y", "2026-13-01"])
def test_anything_else_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="is no point in time: expected an age such as"):
        moment(text, now=NOW)
