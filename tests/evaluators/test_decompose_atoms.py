"""A sentence is split only where both parts stand alone as assertions."""

from __future__ import annotations

import pytest

from citespan.evaluators.decompose import decompose
from citespan.evaluators.markers import find_markers
from citespan.tracer.passages import Passage

PASSAGES = [Passage(f"id-{n}", "Tea is hot.", str(n)) for n in range(1, 4)]


def texts(answer: str) -> list[str]:
    return [claim.text for claim in decompose(answer, find_markers(answer, PASSAGES))]


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        (
            "Authentication failures are never retried and surface immediately.",
            ["Authentication failures are never retried", "Authentication failures surface immediately."],
        ),
        (
            "The client retries failures and logs the errors.",
            ["The client retries failures", "The client logs the errors."],
        ),
        (
            "Premium support is a paid add-on and is available to all plans.",
            ["Premium support is a paid add-on", "Premium support is available to all plans."],
        ),
        (
            "Tea is grown on hills, and it is exported by sea.",
            ["Tea is grown on hills", "it is exported by sea."],
        ),
        (
            "The plan is cheap, but the setup costs 5 euros.",
            ["The plan is cheap", "the setup costs 5 euros."],
        ),
        ("Tea is hot; coffee is hotter.", ["Tea is hot", "coffee is hotter."]),
        ("Black tea takes 95[2]; white tea is milder[3].", ["Black tea takes 95", "white tea is milder."]),
        (
            "Green tea takes 80[1], black tea takes 95[2], and white tea is mild[3].",
            ["Green tea takes 80", "black tea takes 95", "white tea is mild."],
        ),
        ("Tea is hot [1] and coffee is cold [2].", ["Tea is hot", "coffee is cold."]),
        ("Tea is hot [1] Coffee is cold [2]", ["Tea is hot", "Coffee is cold"]),
        ("Backups run nightly and are kept for 30 days.", ["Backups run nightly", "Backups are kept for 30 days."]),
        ("Die Auflage ist neu und teuer; sie kostet nur 5 Euro.", ["Die Auflage ist neu und teuer", "sie kostet nur 5 Euro."]),
    ],
)  # fmt: skip
def test_assertions_that_stand_alone_are_claims_of_their_own(sentence: str, parts: list[str]) -> None:
    assert texts(sentence) == parts


@pytest.mark.parametrize(
    "sentence",
    [
        "Tea and coffee are hot and black.",
        "Green tea, black tea, and white tea are grown in China.",
        "If tea is hot, it burns and it hurts.",
        "When the client starts, it reads the file and it logs the run.",
        "Tea is hotter than milk and is cheaper than coffee.",
        "The range is between 5 and 10 degrees.",
        "Both the client and the server are fast.",
        "Either the client is slow, or the server is down.",
        "Systems that fail are restarted and users are told.",
        "The report says that tea is hot, and coffee is cold.",
        "Unless it is renewed, the plan ends and the data is deleted.",
        "It is used in cars and trucks.",
        "The service supports reads and writes.",
        "Users can read and write files.",
        "The client can retry the call and log the error.",
        "It does not retry and log.",
        "Smith wrote and directed the film.",
        'He said "tea is hot, and coffee is cold" in May.',
        "The mode (it is fast, and it is cheap) is on.",
        "Tea; milk; sugar.",
        "The box holds tea; milk; sugar.",
        "In 2020 the fee was 5 euros, and the limit was 10.",
        "There is a fee and is a limit.",
        "The more it is used, the faster it is and the less it costs.",
        "Is tea hot, and is coffee cold?",
        "Prices include tax, and shipping costs.",
        "She is a doctor and author of the book.",
        "The client retries failures, logs errors, and surfaces them.",
        "He left due to his experience, charismatic skills, and passionate will to satisfy customers.",
        "Gaining insight into his thought processes, inspirations, and his views would help.",
    ],
)
def test_conditions_comparisons_lists_and_quotes_stay_whole(sentence: str) -> None:
    assert texts(sentence) == [sentence]


def test_other_languages_are_not_split_at_a_conjunction() -> None:
    for sentence in (
        "Der Tee ist heiß und er ist grün.",
        "El té es verde y es caliente.",
        "茶很热，而且很绿。",
    ):
        assert texts(sentence) == [sentence]


def test_a_text_too_long_for_a_sentence_is_left_whole() -> None:
    assert len(texts("tea is hot; coffee is cold; " * 200)) == 1
