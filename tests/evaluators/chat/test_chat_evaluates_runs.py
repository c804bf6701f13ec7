from __future__ import annotations

from typing import Any

from citespan.evaluators.evaluate import evaluate
from citespan.evaluators.runs import Run

ANSWER = (
    "Sync retries up to five times. [1] Backoff is exponential. [1] Errors are silent. [2] Logs are kept. [3]"
)


def make_run(passages: int) -> Run:
    texts = [
        "Sync retries up to five times. Backoff is exponential.",
        "Errors surface at once.",
        "Logs are kept.",
    ]
    texts += [f"Passage {n} is about something else." for n in range(passages - 3)]
    return Run.from_dict(
        {"answer": ANSWER, "passages": [{"id": str(n), "text": t} for n, t in enumerate(texts, 1)]}
    )


def test_an_answer_takes_one_call_and_one_more_for_what_is_not_supported(
    server: Any, make_judge: Any
) -> None:
    evaluation = evaluate(make_run(3), make_judge())
    assert [item.label for item in evaluation.claims] == [
        "supported",
        "supported",
        "unsupported",
        "supported",
    ]
    # All four claims together, each with the passage it cites; then the other two passages for the one that failed.
    assert [len(document["claims"]) for document in server.documents] == [4, 2]
    assert evaluation.judge.sends_text_to == server.url.split("/")[2]


def test_other_passages_are_shortlisted_and_the_fix_says_so(server: Any, make_judge: Any) -> None:
    evaluation = evaluate(make_run(30), make_judge())
    assert [len(document["claims"]) for document in server.documents] == [4, 3]
    assert evaluation.claims[2].fix == (
        "Remove the claim or retrieve a source for it. No other passage is known to support it: "
        "only the 3 of 29 that share most words with it were tried."
    )


def test_a_budget_that_ends_within_a_run_leaves_its_claims_unjudged_and_out_of_support(
    server: Any, make_judge: Any
) -> None:
    evaluation = evaluate(make_run(3), make_judge(budget_tokens=100))
    assert {item.label for item in evaluation.claims} == {"unjudged"}
    assert all(item.reason.startswith("budget_exhausted:") for item in evaluation.claims)
    assert evaluation.measures["support"].value is None
    assert str(evaluation.measures["coverage"]) == "4/4 claims"
    assert server.requests == []
