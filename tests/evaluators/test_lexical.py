from __future__ import annotations

import pytest

from citespan.evaluators.judges.judge import JudgeRequest
from citespan.evaluators.judges.lexical import LexicalJudge
from citespan.evaluators.verdicts import Label, Verdict
from citespan.tracer.passages import Passage

RETRIES = "The sync client retries transient network failures up to five times with exponential backoff."
PERMANENT = "Permanent errors, such as authentication failures, are not retried and surface immediately to the caller."
AUDIT = "Sync runs are logged to the local audit file for later inspection."
REFUNDS = "Refunds are issued within five business days of the request."
PRICING = "Pricing. Premium support is available as a paid add-on for all plans."
CONFIGURABLE = "The client supports configurable retry behavior for transient failures."


def judge_one(claim: str, *passages: str) -> Verdict:
    request = JudgeRequest(claim, tuple(Passage(str(n), text) for n, text in enumerate(passages, start=1)))
    return LexicalJudge().judge([request])[0]


@pytest.mark.parametrize(
    ("claim", "passage", "label"),
    [
        ("The sync client retries transient failures up to five times.", RETRIES, "supported"),
        ("Retries use exponential backoff.", RETRIES, "supported"),
        ("Authentication failures are never retried.", PERMANENT, "partly_supported"),
        ("Sync runs are logged locally.", AUDIT, "supported"),
        ("The default retry limit can be raised through configuration.", RETRIES, "unsupported"),
        ("The default retry limit can be raised through configuration.", PERMANENT, "unsupported"),
        ("The default retry limit can be raised through configuration.", AUDIT, "unsupported"),
        ("Authentication failures surface immediately.", PERMANENT, "supported"),
        ("The retry limit defaults to five attempts.", CONFIGURABLE, "unsupported"),
        ("Refunds are issued within five days.", REFUNDS, "partly_supported"),
        ("Refunds are issued within 5 business days.", REFUNDS, "supported"),
        ("Premium support is included at no charge.", PRICING, "contradicted"),
        ("Premium support is available as a paid add-on.", PRICING, "supported"),
    ],
)
def test_worked_examples_come_out_as_the_design_states(claim: str, passage: str, label: str) -> None:
    assert judge_one(claim, passage).label == Label(label)
