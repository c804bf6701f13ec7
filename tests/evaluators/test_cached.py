from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from citespan.evaluators.errors import UsageError
from citespan.evaluators.judges.cached import CachedJudge
from citespan.evaluators.judges.judge import JudgeCard, JudgeRequest
from citespan.evaluators.testing import ScriptedJudge, check_judge
from citespan.evaluators.verdicts import Label, Usage, Verdict
from citespan.tracer.passages import Passage


def ask(claim: str, *texts: str, ids: str = "p", **context: str) -> JudgeRequest:
    passages = tuple(Passage(id=f"{ids}{n}", text=text) for n, text in enumerate(texts or ("Text.",)))
    return JudgeRequest(claim=claim, passages=passages, **context)  # type: ignore[arg-type]


PAID = Verdict(
    label=Label.SUPPORTED,
    score=0.9,
    reason="Said.",
    evidence="Second.",
    evidence_passage_id="p1",
    usage=Usage(prompt_tokens=10, completion_tokens=1, cost_usd=0.5),
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "verdicts.sqlite"


def test_a_cached_judge_keeps_the_contract_of_judges(store: Path) -> None:
    check_judge(CachedJudge(ScriptedJudge(), store))


def test_what_was_asked_before_is_not_asked_again_and_costs_nothing(store: Path) -> None:
    inner = ScriptedJudge(default=PAID)
    requests = [ask("A.", "First.", "Second."), ask("B.", "First.", "Second.")]
    first = CachedJudge(inner, store).judge(requests)
    again = CachedJudge(inner, store)
    second = again.judge(requests)
    assert len(inner.asked) == 2
    assert [verdict.usage for verdict in first] == [PAID.usage] * 2
    assert [verdict.usage for verdict in second] == [None, None]
    assert [verdict.model_copy(update={"usage": PAID.usage}) for verdict in second] == first
    assert (again.report.asked, again.report.found, again.report.saved_usd) == (2, 2, 1.0)


def test_the_same_texts_under_other_ids_are_found_and_the_evidence_names_the_new_id(store: Path) -> None:
    inner = ScriptedJudge(default=PAID)
    judge = CachedJudge(inner, store)
    judge.judge([ask("A.", "First.", "Second.")])
    (verdict,) = judge.judge([ask("A.", "First.", "Second.", ids="q")])
    assert verdict.evidence_passage_id == "q1"
    assert len(inner.asked) == 1


@pytest.mark.parametrize(
    "other",
    [
        ask("B.", "First.", "Second."),
        ask("A.", "Second.", "First."),
        ask("A.", "First."),
        ask("A.", "First.", "Second.", sentence="It is A."),
        ask("A.", "First.", "Second.", question="A?"),
    ],
)
def test_whatever_can_change_the_verdict_is_asked_anew(store: Path, other: JudgeRequest) -> None:
    inner = ScriptedJudge()
    CachedJudge(inner, store).judge([ask("A.", "First.", "Second."), other])
    assert len(inner.asked) == 2


def test_another_judge_finds_nothing_of_the_first(store: Path) -> None:
    CachedJudge(ScriptedJudge(), store).judge([ask("A.")])
    other = ScriptedJudge(card=JudgeCard(name="scripted", version="2"))
    CachedJudge(other, store).judge([ask("A.")])
    assert len(other.asked) == 1


def test_context_is_ignored_for_a_judge_that_does_not_read_it(store: Path) -> None:
    inner = ScriptedJudge(card=JudgeCard(name="scripted", version="1", uses_context=False))
    CachedJudge(inner, store).judge([ask("A.", question="One?"), ask("A.", question="Two?", sentence="S.")])
    assert len(inner.asked) == 1


def test_a_request_that_comes_twice_in_a_batch_is_asked_once(store: Path) -> None:
    inner = ScriptedJudge(default=PAID)
    verdicts = CachedJudge(inner, store).judge([ask("A."), ask("B."), ask("A.")])
    assert [request.claim for request in inner.asked] == ["A.", "B."]
    assert [verdict.usage for verdict in verdicts] == [PAID.usage, PAID.usage, None]


def test_an_unjudged_verdict_is_never_kept(store: Path) -> None:
    inner = ScriptedJudge({("A.", "p0"): Label.UNJUDGED})
    judge = CachedJudge(inner, store)
    for _ in range(2):
        assert [verdict.label for verdict in judge.judge([ask("A."), ask("B.")])] == [
            "unjudged",
            "unsupported",
        ]
    assert [request.claim for request in inner.asked] == ["A.", "B.", "A."]


def test_an_entry_that_cannot_be_read_is_asked_anew(store: Path) -> None:
    inner = ScriptedJudge()
    CachedJudge(inner, store).judge([ask("A."), ask("B."), ask("C.")])
    with sqlite3.connect(store) as connection:
        texts = ["{", '{"place": 0, "verdict": {"label": "perhaps"}}', "[]"]
        keys = [row[0] for row in connection.execute("SELECT key FROM verdicts")]
        connection.executemany("UPDATE verdicts SET verdict = ? WHERE key = ?", zip(texts, keys, strict=True))
    connection.close()
    verdicts = CachedJudge(inner, store).judge([ask("A."), ask("B."), ask("C.")])
    assert {verdict.label for verdict in verdicts} == {Label.UNSUPPORTED}
    assert len(inner.asked) == 6


def test_many_requests_are_looked_up_in_parts(store: Path) -> None:
    inner = ScriptedJudge()
    requests = [ask(f"Claim {n}.") for n in range(1_201)]
    CachedJudge(inner, store).judge(requests)
    assert CachedJudge(inner, store).judge(requests)
    assert inner.batches == [1_201]


def test_a_store_that_fails_costs_the_saving_and_no_verdict(
    store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    inner = ScriptedJudge()
    judge = CachedJudge(inner, store)
    for path in store.parent.glob("verdicts.sqlite*"):
        path.unlink()
    store.mkdir()
    for _ in range(2):
        assert judge.judge([ask("A.")])[0].label is Label.UNSUPPORTED
    assert len(inner.asked) == 2
    assert [record.message.split(" failed")[0] for record in caplog.records] == [f"the cache {store}"]


def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("Do not lose me. " * 100)
    with pytest.raises(UsageError, match=r"notes.txt cannot be opened: file is not a database"):
        CachedJudge(ScriptedJudge(), text)
    assert text.read_text().startswith("Do not lose me.")
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()
    with pytest.raises(UsageError, match=r"other.sqlite is no store of verdicts"):
        CachedJudge(ScriptedJudge(), other)
    with pytest.raises(UsageError, match="cannot be opened"):
        CachedJudge(ScriptedJudge(), tmp_path)


def test_a_store_of_a_later_version_is_refused(store: Path) -> None:
    CachedJudge(ScriptedJudge(), store)
    with sqlite3.connect(store) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(UsageError, match="is no store of verdicts that this version reads"):
        CachedJudge(ScriptedJudge(), store)


def test_one_cached_judge_serves_many_threads(store: Path) -> None:
    judge = CachedJudge(ScriptedJudge(), store)
    wrong: list[object] = []

    def work() -> None:
        verdicts = judge.judge([ask(f"Claim {n}.") for n in range(50)])
        if len(verdicts) != 50 or any(verdict.label is not Label.UNSUPPORTED for verdict in verdicts):
            wrong.append(verdicts)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert judge.report.asked == 400


PROCESS = """
import sys
from citespan.evaluators.judges.cached import CachedJudge
from citespan.evaluators.judges.judge import JudgeRequest
from citespan.evaluators.testing import ScriptedJudge
from citespan.tracer.passages import Passage

for n in range(60):
    judge = CachedJudge(ScriptedJudge(), sys.argv[1])
    passage = Passage(id="p0", text="Text.")
    requests = [JudgeRequest(claim=f"Claim {n} {m}.", passages=(passage,)) for m in range(5)]
    assert len(judge.judge(requests)) == 5
"""


def test_several_processes_share_a_store_from_its_first_second_on(
    store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = tmp_path / "process.py"
    script.write_text(PROCESS)
    command = [sys.executable, "-W", "error", str(script), str(store)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")
    inner = ScriptedJudge()
    again = [ask(f"Claim {n} {m}.") for n in range(60) for m in range(5)]
    CachedJudge(inner, store).judge([replace(request, run_id="other") for request in again])
    assert inner.asked == []
