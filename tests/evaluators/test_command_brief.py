from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "data" / "worked_examples.json"


def test_each_run_is_one_line_with_a_mark_per_claim(citespan: Callable[..., Any]) -> None:
    lines = citespan("score", EXAMPLES, "--show", "brief").out.splitlines()
    (sync,) = [line for line in lines if line.startswith("✓✓◐✓✗ ")]
    (refunds,) = [line for line in lines if line.startswith("◐≠○ ")]
    assert "How does the sync client handle failures?" in sync
    assert sync.rstrip().endswith("3/5 supported")
    assert refunds.rstrip().endswith("0/2 supported")


def test_the_answer_with_most_to_mend_is_shown_in_full(citespan: Callable[..., Any]) -> None:
    # refunds: overstated, contradicted, missing citation; sync: overstated, not in passages.
    _, _, shown = citespan("score", EXAMPLES, "--show", "brief").out.partition("most to mend:")
    assert shown.strip().startswith("refunds ")
    assert "Premium support is included at no charge." in shown
    assert "Authentication failures" not in shown


def test_no_answer_is_shown_in_full_where_nothing_is_to_mend(
    citespan: Callable[..., Any], tmp_path: Path
) -> None:
    passage = {"id": "tea", "text": "Sencha is brewed at 70 degrees.", "label": "1"}
    run = {"answer": "Sencha is brewed at 70 degrees [1].", "passages": [passage]}
    (tmp_path / "run.json").write_text(json.dumps(run))
    out = citespan("score", tmp_path / "run.json", "--show", "brief").out
    assert "1/1 supported" in out
    assert "most to mend" not in out


def test_a_run_that_cannot_be_judged_says_so(citespan: Callable[..., Any], tmp_path: Path) -> None:
    run = {"question": "Why?", "answer": "", "passages": []}
    (tmp_path / "run.json").write_text(json.dumps(run))
    assert "not judged: no_answer_recorded" in citespan("score", tmp_path / "run.json", "--show", "brief").out
