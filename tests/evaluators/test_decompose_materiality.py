"""Which claims are not material, and by which rule."""

from __future__ import annotations

import pytest

from citespan.evaluators.decompose import decompose
from citespan.evaluators.decompose.materiality import is_pointer


def reasons(answer: str, question: str | None = None) -> list[str | None]:
    claims = decompose(answer, (), question=question)
    assert all(claim.material is (claim.material_reason is None) for claim in claims)
    return [claim.material_reason for claim in claims]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I think tea is nice.", "opinion"),
        ("In my opinion, tea is nice.", "opinion"),
        ("Ich finde Tee gut und die Tasse ist schön.", "opinion"),
        ("Hello!", "greeting"),
        ("Hi there!", "greeting"),
        ("Great question!", "greeting"),
        ("Thanks for asking!", "greeting"),
        ("You're welcome.", "greeting"),
        ("¡Hola! El té es verde y la taza es de la casa.", "greeting"),
        ("Let me know if you need more.", "offer_of_help"),
        ("I hope this helps!", "offer_of_help"),
        ("If you have more questions, feel free to ask.", "offer_of_help"),
        ("I'm happy to help.", "offer_of_help"),
        ("Is that enough?", "question"),
        ("The passages do not say how hot.", "hedge"),
        ("The provided documents don't mention the price.", "hedge"),
        ("I'm not sure.", "hedge"),
        ("I could not find the price.", "hedge"),
        ("There is no information about that in the context.", "hedge"),
        ("Les passages ne le disent pas dans le texte et la suite.", "hedge"),
        ("You asked about tea.", "restatement"),
        ("Here is how it works:", "lead_in"),
        ("The client has three modes:", "lead_in"),
        ("Tee hat drei Stufen:", "lead_in"),
        ("# Tea", "heading"),
        ("**Brewing**", "heading"),
        ("Tea\n===", "heading"),
    ],
)
def test_what_asserts_nothing_names_its_rule(text: str, reason: str) -> None:
    assert reasons(text)[0] == reason


@pytest.mark.parametrize(
    "text",
    [
        "You can cancel any time.",
        "Sure, refunds take five days.",
        "Hi-res images are supported.",
        "Welcome emails are sent to new users.",
        "Thanks to exponential backoff, retries are rare.",
        "The document is signed by both parties.",
        "The results do not include tax.",
        "The information is not stored.",
        "In summary, tea is hot.",
        "Visit the office on Monday.",
        "Check the water temperature first.",
        "Use a list for the values.",
        "The user asked for a refund.",
        "**Note:** tea is hot.",
        "Natürlich ist der Tee heiß und nicht kalt.",
        "Gracias a la energía de la casa el té es barato.",
    ],
)
def test_what_can_be_checked_is_material(text: str) -> None:
    assert reasons(text) == [None]


def test_in_a_language_without_rules_everything_is_material() -> None:
    assert reasons("هل الشاي الأخضر ساخن؟ مرحبا!") == [None, None]


def test_the_question_said_again_is_a_restatement() -> None:
    question = "How does the sync client handle failures?"
    assert reasons("How does the sync client handle failures? It retries them.", question) == [
        "restatement",
        None,
    ]


def test_a_table_row_is_material() -> None:
    assert reasons("| Tea | Heat |\n|---|---|\n| Hello | 80 C |") == [None]


@pytest.mark.parametrize(
    "text",
    [
        "See the guide for more.",
        "See also https://x.example.",
        "For more details, see the manual.",
        "Refer to section 3.",
        "Visit https://x.example/a for details.",
        "More information is available in the documentation.",
        "Sources: a.md",
    ],
)
def test_a_sentence_that_only_sends_the_reader_elsewhere_is_a_pointer(text: str) -> None:
    assert is_pointer(text, language="en")


@pytest.mark.parametrize(
    "text",
    [
        "Visit the office on Monday.",
        "The guide is long.",
        "See that the water is hot.",
        "Visits cost 5 euros.",
    ],
)
def test_an_instruction_is_no_pointer(text: str) -> None:
    assert not is_pointer(text, language="en")
