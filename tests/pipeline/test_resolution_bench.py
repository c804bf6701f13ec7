"""The bench of reading and resolving meets its bars on the recorded spans and cases, and fails when it should."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
CASES = DATA / "cases" / "citation_cases.jsonl"


@pytest.fixture(scope="module")
def bench() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("resolution_bench", ROOT / "bench" / "resolution.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["resolution_bench"] = module  # where its dataclasses look up their annotations
    sys.path.insert(0, str(ROOT / "bench"))  # as when the script runs
    spec.loader.exec_module(module)
    sys.path.remove(str(ROOT / "bench"))
    yield module
    del sys.modules["resolution_bench"]


def test_recorded_spans_and_cases_meet_the_bars(
    bench: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(["--spans", str(DATA / "spans"), "--cases", str(CASES), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["passed"] is True
    assert figures["wrong_certain"] == 0
    # 26 cases derived from public bug reports.
    assert figures["cases"]["runs"] == {"right": 26, "total": 26}
    assert figures["runs"]["right"] / figures["runs"]["total"] >= 0.95


def test_table_names_every_family(bench: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--spans", str(DATA / "spans")]) == 0
    table = capsys.readouterr().out
    for family in (
        "langchain",
        "llamaindex",
        "haystack",
        "anthropic",
        "otelgenai",
        "traceloop",
        "pydantic_ai",
    ):
        assert f"\n{family} " in table


def test_run_read_wrong_fails_the_bench(
    bench: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "spans").mkdir()
    (tmp_path / "expect").mkdir()
    dump = DATA / "spans" / "langchain_lcel_ids.json"
    (tmp_path / "spans" / dump.name).write_bytes(dump.read_bytes())
    expected = json.loads((DATA / "expectations" / dump.name).read_text(encoding="utf-8"))
    expected["runs"][0]["citations"][0]["passage_id"] = "kb-tea-03"
    (tmp_path / "expect" / dump.name).write_text(json.dumps(expected), encoding="utf-8")
    options = ["--spans", str(tmp_path / "spans"), "--expect", str(tmp_path / "expect"), "--json"]
    assert bench.main(options) == 1
    # [1] is found to be kb-tea-01, with certainty, where the expectation now says kb-tea-03.
    assert json.loads(capsys.readouterr().out)["wrong_certain"] == 1


def test_case_that_comes_out_wrong_fails_the_bench(bench: ModuleType, tmp_path: Path) -> None:
    case = json.loads(CASES.read_text(encoding="utf-8").splitlines()[0])
    case["expect"]["invalid"] = []
    case["expect"]["markers"][1]["docs"] = ["t3"]
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(case), encoding="utf-8")
    assert bench.main(["--cases", str(path)]) == 1


GREEN = "Green tea needs 80 degrees."


@pytest.mark.parametrize(
    "structured",
    [
        {"supports": [{"segment": {"endIndex": 27}, "groundingChunkIndices": [0]}]},
        {"annotations": [{"type": "file_citation", "file_id": "d0", "index": 27}]},
        {
            "annotations": [
                {"type": "url_citation", "url_citation": {"url": "u", "start_index": 0, "end_index": 27}}
            ]
        },
        {
            "content": [
                {"type": "text", "text": GREEN, "citations": [{"document_index": 0, "cited_text": "Green"}]},
                {"type": "text", "text": " Enjoy."},
            ]
        },
        {"content": [{"type": "text", "text": GREEN}, {"type": "reference", "reference_ids": [0]}]},
        {
            "content": [
                {
                    "citationsContent": {
                        "content": [{"text": GREEN}],
                        "citations": [{"location": {"documentChar": {"documentIndex": 0}}}],
                    }
                }
            ]
        },
        {"citations": [{"start": 0, "end": 27, "text": GREEN, "sources": [{"id": "d0"}]}]},
        {"citations": [{"start": 0, "end": 27, "text": GREEN, "document_ids": ["d0"]}]},
        {
            "citations": [
                {
                    "generatedResponsePart": {"textResponsePart": {"text": GREEN}},
                    "retrievedReferences": [{"location": {"s3Location": {"uri": "u"}}}],
                }
            ]
        },
    ],
)
def test_case_s_payload_is_read_by_the_adapter_that_knows_its_shape(
    bench: ModuleType, structured: dict[str, object]
) -> None:
    documents = [{"id": "d0", "label": "0", "text": "Green tea: 80.", "uri": "u"}]
    case = {"id": "case", "answer": f"{GREEN} Enjoy.", "documents": documents, "structured": structured}
    assert [(c.passage_id, c.start, c.end) for c in bench.run_of_case(case).citations] == [("d0", 0, 27)]


def test_case_with_a_payload_of_no_provider_comes_out_wrong(
    bench: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = CASES.read_text(encoding="utf-8").splitlines()
    case = next(case for line in lines if "structured" in (case := json.loads(line)))
    case["structured"] = {"format": "of nobody", "data": []}
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(case), encoding="utf-8")
    assert bench.main(["--cases", str(path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["cases"]["runs"] == {"right": 0, "total": 1}


def test_dumps_without_an_expectation_are_read_and_counted(
    bench: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = DATA / "spans" / "langgraph_rag.json"
    (tmp_path / "unknown_app.json").write_bytes(dump.read_bytes())
    assert bench.main(["--spans", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["families"]["unknown"]["unchecked"] == 1
