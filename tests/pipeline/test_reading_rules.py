"""A settings file names where an app keeps its answer, question and passages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from citespan.evaluators.errors import UsageError
from citespan.evaluators.reading.inspection import citations_of
from citespan.evaluators.reading.reader import read_runs
from citespan.evaluators.reading.rules import load_rules
from citespan.evaluators.runs import Run
from citespan.evaluators.sources.source import Span, Trace

MakeSpan = Callable[..., Span]

RULES = """
[answer]
span = "reply*"
attribute = "app.reply"
path = "data.text"

[question]
span = "request"
attribute = "app.request"

[[passages]]
span = "lookup"
attribute = "app.hits"
path = "hits"
id = "key"
text = "source.body"
label = "rank"
title = "source.title"
"""

HITS = {
    "hits": [
        {"key": "k-1", "rank": 7, "source": {"body": "Tea is dried in the sun.", "title": "Tea"}},
        {"key": "k-2", "rank": 9, "source": {"body": "Ink was made from soot.", "title": "Ink"}},
    ]
}


@pytest.fixture
def odd_trace(span: MakeSpan) -> Trace:
    """Return a trace of an app whose spans have no kinds and whose attributes nobody knows."""
    spans = (
        span(1, "UNKNOWN", {"app.request": "Why?"}, name="request"),
        span(2, "UNKNOWN", {"app.hits": json.dumps(HITS)}, parent=1, start=1, end=2, name="lookup"),
        span(
            3,
            "UNKNOWN",
            {"app.reply": '{"data": {"text": "Ink [9]."}}'},
            parent=1,
            start=3,
            end=4,
            name="reply-v2",
        ),
    )
    return Trace("0" * 31 + "1", spans)


def read(trace: Trace, path: Path, rules: str) -> Run:
    path.write_text(rules, encoding="utf-8")
    return read_runs(trace, load_rules(path))[0]


def test_rules_name_answer_question_and_passages(odd_trace: Trace, tmp_path: Path) -> None:
    run = read(odd_trace, tmp_path / "reading.toml", RULES)
    assert (run.question, run.answer, run.state) == ("Why?", "Ink [9].", None)
    assert [(p.id, p.label, p.text, p.title) for p in run.passages] == [
        ("k-1", "7", "Tea is dried in the sun.", "Tea"),
        ("k-2", "9", "Ink was made from soot.", "Ink"),
    ]
    assert [(c.passage_id, c.certainty) for c in citations_of(run)] == [("k-2", "certain")]
    assert run.origin is not None
    assert run.origin.answer_span_id == f"{3:016x}"


def test_run_read_by_rules_is_inferred_and_says_which_rules(odd_trace: Trace, tmp_path: Path) -> None:
    run = read(odd_trace, tmp_path / "reading.toml", RULES)
    assert run.resolution == "inferred"
    assert {"answer_from_rules", "question_from_rules", "passages_from_rules"} <= set(run.reasons)


def test_rules_may_be_json(odd_trace: Trace, tmp_path: Path) -> None:
    rules = json.dumps({"answer": {"span": "reply*", "attribute": "app.reply", "path": "data.text"}})
    assert read(odd_trace, tmp_path / "reading.json", rules).answer == "Ink [9]."


def test_what_rules_do_not_name_is_inferred(span: MakeSpan, tmp_path: Path) -> None:
    spans = (
        span(
            1, "CHAIN", {"input.value": "Why?", "app.reply": "Tea [1].", "output.value": '{"status": "ok"}'}
        ),
        span(
            2,
            "RETRIEVER",
            {"retrieval.documents.0.document.content": "Tea is dried."},
            parent=1,
            start=1,
            end=2,
        ),
    )
    run = read(Trace("0" * 31 + "1", spans), tmp_path / "r.toml", '[answer]\nattribute = "app.reply"\n')
    assert (run.question, run.answer) == ("Why?", "Tea [1].")
    assert [passage.text for passage in run.passages] == ["Tea is dried."]


def test_rule_that_finds_nothing_is_a_reason(odd_trace: Trace, tmp_path: Path) -> None:
    run = read(odd_trace, tmp_path / "r.toml", '[answer]\nspan = "nothing"\n[[passages]]\nspan = "nothing"\n')
    assert run.answer is None
    assert {"answer_rule_found_nothing", "passages_rule_found_nothing"} <= set(run.reasons)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[answer]\nspam = 1\n", "answer.spam"),
        ("[answer\n", "no TOML"),
        ('answer = "reply"\n', "answer"),
    ],
)
def test_file_that_holds_no_rules_is_a_usage_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "reading.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        load_rules(path)


def test_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_rules(tmp_path / "none.toml")
