"""`--reading-rules` names the spans and attributes of an app that nobody foresaw."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RULES = """
[answer]
attribute = "app.reply"

[[passages]]
attribute = "app.hits"
text = "body"
label = "rank"
"""


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """One span whose attributes nobody knows."""
    hits = [{"id": "k-2", "rank": 9, "body": "Ink was made from soot."}]
    span = {
        "name": "reply",
        "context": {"trace_id": "0" * 31 + "1", "span_id": "0" * 15 + "1"},
        "parent_id": None,
        "start_time": "2026-07-01T10:00:00.000000Z",
        "end_time": "2026-07-01T10:00:01.000000Z",
        "attributes": {"app.reply": "Ink was made from soot [9].", "app.hits": json.dumps(hits)},
    }
    path = tmp_path / "spans.jsonl"
    path.write_text(json.dumps(span), encoding="utf-8")
    return path


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "reading.toml"
    path.write_text(RULES, encoding="utf-8")
    return path


def test_inspect_reads_by_the_rules(citespan: Callable[..., Any], odd: Path, rules: Path) -> None:
    plain = json.loads(citespan("inspect", odd, "--json").out)
    assert (plain["state"], plain["answer"]) == ("not_rag", None)  # no span with a kind
    ruled = json.loads(citespan("inspect", odd, "--reading-rules", rules, "--json").out)
    assert (ruled["state"], ruled["answer"]) == (None, "Ink was made from soot [9].")
    assert ruled["passages"] == [{"id": "k-2", "label": "9", "text": "Ink was made from soot."}]
    assert [citation["passage_id"] for citation in ruled["citations"]] == ["k-2"]


def test_evaluate_judges_what_the_rules_name(
    citespan: Callable[..., Any], odd: Path, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITESPAN_READING_RULES", str(rules))
    (run,) = json.loads(citespan("evaluate", "--spans", odd, "--json").out)["runs"]
    assert [claim["label"] for claim in run["claims"]] == ["supported"]


@pytest.mark.parametrize("command", [("inspect",), ("evaluate", "--spans")])
def test_missing_rules_are_a_usage_error(
    citespan: Callable[..., Any], odd: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    done = citespan(*command, odd, "--reading-rules", tmp_path / "none.toml")
    assert done.exit_code == 2
    assert "none.toml cannot be read" in done.err
