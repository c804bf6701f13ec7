from __future__ import annotations

import inspect
from typing import Any

import pytest

from citespan.evaluators.errors import InputError
from citespan.evaluators.measures import MEASURES
from citespan.evaluators.plugins.phoenix_evals import SCORES, evals_evaluator, experiment_evaluator, read_run
from citespan.evaluators.testing import ScriptedJudge
from citespan.evaluators.verdicts import Label

ANSWER = "Refunds take five days [1]. Support is free [2]. You can cancel any time."
PASSAGES = ["Refunds are issued within five business days.", "Support is a paid add-on."]


def judge() -> ScriptedJudge:
    return ScriptedJudge(
        {
            ("Refunds take five days.", "1"): Label.SUPPORTED,
            ("Support is free.", "2"): Label.CONTRADICTED,
        }
    )


def test_the_callable_returns_every_measure_by_name() -> None:
    rows = experiment_evaluator(judge())({"answer": ANSWER, "passages": PASSAGES}, {"question": "How?"})
    assert {row["name"] for row in rows} == set(SCORES.values())
    assert set(SCORES) == set(MEASURES)
    by_name = {row["name"]: row for row in rows}
    # Two of three claims are cited, one of the two is supported, both citations resolve.
    assert (by_name["cite_cov"]["label"], by_name["cite_sup"]["label"]) == ("2/3", "1/2")
    assert (by_name["cite_sup"]["score"], by_name["cite_valid"]["score"]) == (0.5, 1.0)
    assert (by_name["cite_links"]["score"], by_name["cite_links"]["label"]) == (None, "not measured")
    assert "contradicted: Support is free. (The script says contradicted.)" in str(
        by_name["cite_sup"]["explanation"]
    )
    assert by_name["cite_sup"]["metadata"]["unit"] == "judged cited claims"  # type: ignore[index]


def test_a_run_that_cannot_be_judged_has_its_state_and_no_score() -> None:
    rows = experiment_evaluator(judge())({"answer": "", "passages": PASSAGES})
    assert all(row["score"] is None for row in rows)
    assert rows[-1]["name"] == "cite_state"
    assert (rows[-1]["label"], rows[-1]["explanation"]) == ("no_answer_recorded", "answer_empty")


def test_a_run_is_read_from_output_input_and_metadata_in_this_order() -> None:
    run = read_run(
        ANSWER, {"question": "How?", "passages": ["One."]}, {"passages": ["Two."], "question": "What?"}
    )
    assert (run.answer, run.question) == (ANSWER, "How?")
    assert [(passage.id, passage.text) for passage in run.passages] == [("1", "One.")]
    run = read_run(
        {"answer": "A.", "passages": [{"id": "kb-7", "text": "T.", "label": "P1"}]}, {"passages": ["x"]}
    )
    assert (run.passages[0].id, run.passages[0].label) == ("kb-7", "P1")


def test_an_example_without_passages_says_what_to_return() -> None:
    with pytest.raises(InputError, match='no "passages" in the task'):
        read_run("Just text.", {"question": "How?"})


def test_the_run_can_be_read_by_a_function_of_the_users_own() -> None:
    def read(output: Any, question: Any, metadata: Any) -> Any:
        return read_run({"answer": output["text"], "passages": question["context"]})

    rows = experiment_evaluator(judge(), read=read)({"text": ANSWER}, {"context": PASSAGES}, {})
    assert {row["name"]: row["label"] for row in rows}["cite_sup"] == "1/2"


def test_phoenix_takes_the_callable_and_keeps_every_score() -> None:
    evaluators = pytest.importorskip("phoenix.client.resources.experiments.evaluators")
    function = experiment_evaluator(judge())
    evaluators.validate_evaluator_signature(inspect.signature(function))
    wrapped = evaluators.create_evaluator(kind="CODE")(function)
    result = wrapped.evaluate(
        output={"answer": ANSWER, "passages": PASSAGES}, input={}, metadata={}, expected={}, reference={}
    )
    assert len(result) == len(MEASURES)
    assert wrapped.name == "citations"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_evaluator_returns_every_measure_as_a_score_of_phoenix_evals() -> None:
    evals = pytest.importorskip("phoenix.evals")
    evaluator = evals_evaluator(judge())
    assert isinstance(evaluator, evals.Evaluator)
    scores = {score.name: score for score in evaluator.evaluate({"answer": ANSWER, "passages": PASSAGES})}
    assert set(scores) == set(SCORES.values())
    assert (scores["cite_sup"].score, scores["cite_sup"].label) == (0.5, "1/2")
    assert (scores["cite_contra"].direction, scores["cite_sup"].direction) == ("minimize", "maximize")
    assert scores["cite_sup"].kind == "code"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_phoenix_evaluates_a_dataframe_with_the_evaluator() -> None:
    evals = pytest.importorskip("phoenix.evals")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        [{"answer": ANSWER, "passages": PASSAGES}, {"answer": "Fine.", "passages": PASSAGES}]
    )
    found = evals.evaluate_dataframe(
        dataframe=frame, evaluators=[evals_evaluator(judge())], hide_tqdm_bar=True
    )
    scores = found["cite_sup_score"].tolist()
    assert scores[0]["score"] == 0.5
    assert scores[1]["label"] == "0/0"
