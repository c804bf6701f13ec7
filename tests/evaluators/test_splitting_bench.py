"""The splitting bench: its figures on the recorded cases, and what it counts as a fault."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "data" / "cases" / "citation_cases.jsonl"


@pytest.fixture(scope="module")
def bench() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("splitting", ROOT / "bench" / "splitting.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["splitting"] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["splitting"]


def test_every_recorded_case_agrees(bench: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--cases", str(CASES), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["cases"]["agreed"] == figures["cases"]["expected"] == 51
    assert figures["pooled"]["share"] is None


def test_a_claim_that_differs_fails_the_bench(
    bench: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = {
        "id": "x",
        "answer": "Tea is hot [1].",
        "documents": [{"id": "a", "label": "1", "text": "t"}],
        "expect": {"claims": [{"text": "Tea is cold."}]},
    }
    file = tmp_path / "cases.jsonl"
    file.write_text(json.dumps(case), encoding="utf-8")
    assert bench.main(["--cases", str(file)]) == 1
    assert "x: no claim 'Tea is cold.'" in capsys.readouterr().out


def test_supported_sentences_that_splitting_turns_are_counted(
    bench: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"claim": "Tea is hot and green.", "passages": ["Tea is hot and green."], "label": "supported"}
    (tmp_path / "tea.jsonl").write_text(json.dumps(row), encoding="utf-8")
    assert bench.main(["--cases", str(CASES), "--data", str(tmp_path), "--json"]) == 0
    pooled = json.loads(capsys.readouterr().out)["pooled"]
    # One supported row, not split, judged supported as a whole: 0/1 turned.
    assert pooled == {"supported": 1, "split": 0, "whole": 1, "turned": 0, "share": 0.0}
