"""How an answer becomes claims: blocks, sentences, plain text, ranges."""

from __future__ import annotations

import pytest

from citespan.evaluators.claims import Claim
from citespan.evaluators.decompose import decompose
from citespan.evaluators.markers import find_markers
from citespan.evaluators.options import Splitting
from citespan.tracer.passages import Passage

PASSAGES = [Passage(f"id-{n}", "Tea is hot.", str(n)) for n in range(1, 6)]


def claims_of(answer: str, splitting: Splitting = Splitting.ATOMIC) -> tuple[Claim, ...]:
    return decompose(answer, find_markers(answer, PASSAGES), splitting=splitting)


def texts(answer: str) -> list[str]:
    return [claim.text for claim in claims_of(answer)]


def slices(answer: str) -> list[str]:
    return [answer[claim.start : claim.end] for claim in claims_of(answer)]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Tea is hot [1]. Coffee is warm [2].", ["Tea is hot.", "Coffee is warm."]),
        ("Tea is hot. [1] Coffee is warm. [2]", ["Tea is hot.", "Coffee is warm."]),
        ("Tea is hot.[1]Coffee is warm.[2]", ["Tea is hot.", "Coffee is warm."]),
        ("Tea is hot [1]. then it cools [2].", ["Tea is hot.", "then it cools."]),
        ("Tea is hot [1], [2] and [3].", ["Tea is hot."]),
        ("Tea is hot. [1].", ["Tea is hot."]),
        ("Tea is hot... [1] Coffee is warm… [2] Milk.", ["Tea is hot...", "Coffee is warm…", "Milk."]),
        ("Dr. Smith paid $3.50 to J. R. Hill, e.g. in cash [1].", ["Dr. Smith paid $3.50 to J. R. Hill, e.g. in cash."]),
        ("It runs v2.1 at https://a.example/c.html?x=1 [1]. Fine.", ["It runs v2.1 at https://a.example/c.html?x=1.", "Fine."]),
        ("The U.S. is big. It costs approx. 5 km. No. 5 is last.", ["The U.S. is big.", "It costs approx. 5 km.", "No. 5 is last."]),
        ("Leave is 25 days [a.pdf]. Fine.", ["Leave is 25 days.", "Fine."]),
        ('He said "Tea is hot. It burns." Then he left [1].', ['He said "Tea is hot. It burns."', "Then he left."]),
        ("Step 1. Boil the water [1]. Step 2. Add leaves [2].", ["Step 1. Boil the water.", "Step 2. Add leaves."]),
        ("End **bold.** Next one.", ["End bold.", "Next one."]),
    ],
)  # fmt: skip
def test_sentences_end_where_a_reader_ends_them(answer: str, expected: list[str]) -> None:
    assert texts(answer) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("绿茶要80度[1]。红茶要95度。[2]真的吗？", ["绿茶要80度。", "红茶要95度。", "真的吗？"]),
        ("绿茶要80度【1】。价格是3.5元【2】。", ["绿茶要80度。", "价格是3.5元。"]),
        ("“好的。”他说。然后走了[1]。", ["“好的。”他说。", "然后走了。"]),
        ("緑茶は80度です[1]。「はい。」と言った。", ["緑茶は80度です。", "「はい。」と言った。"]),
        ("الشاي الأخضر عند 80 درجة [1]؟ الشاي الأسود عند 95 درجة [2]۔", ["الشاي الأخضر عند 80 درجة؟", "الشاي الأسود عند 95 درجة۔"]),
        ("El Sr. López llegó a las 5 p. m. [1]. ¡Hola! Cuesta 3,5 euros [2].", ["El Sr. López llegó a las 5 p. m.", "¡Hola!", "Cuesta 3,5 euros."]),
        ("Der Tee braucht z. B. 80 °C [1]. Am 3. Oktober ist frei. Die 3. Auflage ist neu.", ["Der Tee braucht z. B. 80 °C.", "Am 3. Oktober ist frei.", "Die 3. Auflage ist neu."]),
        ("M. Dupont est là [1]. Qu'est-ce que c'est ?", ["M. Dupont est là.", "Qu'est-ce que c'est ?"]),
        ("Чай горячий [1]. Это стоит 5 руб. в день.", ["Чай горячий.", "Это стоит 5 руб. в день."]),
        ("चाय गरम है [१]। यह हरी है।", ["चाय गरम है।", "यह हरी है।"]),
        ("ชาเขียว 80 องศา [1] ชาดำ 95 องศา [2]", ["ชาเขียว 80 องศา", "ชาดำ 95 องศา"]),
        ("차는 뜨겁습니다[1]. 커피는 3.5도입니다.", ["차는 뜨겁습니다.", "커피는 3.5도입니다."]),
    ],
)  # fmt: skip
def test_sentences_of_other_languages(answer: str, expected: list[str]) -> None:
    assert texts(answer) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("**Green tea** takes *80* degrees [1].", "Green tea takes 80 degrees."),
        ("Black tea takes `95` C **[2]**.", "Black tea takes 95 C."),
        ("The snake_case_name stays [3].", "The snake_case_name stays."),
        ("2 * 3 * 4 is 24 [1].", "2 * 3 * 4 is 24."),
        ("**Tea is hot [1]**.", "Tea is hot."),
        ('Tea is hot <a href="#1">[1]</a>.', "Tea is hot."),
        ("\ue203Tea is hot\ue204\ue202turn0file0.", "Tea is hot."),
        ("3 people died[4]—a fifth.", "3 people died—a fifth."),
        ("Tea is hot (see [1]).", "Tea is hot."),
        ("Tea is hot (Source: [1]).", "Tea is hot."),
        ("According to [1], green tea is hot.", "green tea is hot."),
        ("Tea is hot, according to [1].", "Tea is hot."),
        ("Tea is <b>hot</b> [1].", "Tea is hot."),
        ("Tea is hot [docs](https://x.example/a) now.", "Tea is hot docs now."),
        ("Le thé vert : 80 °C [1] !", "Le thé vert : 80 °C!"),
        ("Tea takes 95[2] degrees.", "Tea takes 95 degrees."),
        ("“Tea” is hot.” [1]", "“Tea” is hot.”"),
        ("Tea is hot 🔥 [1].", "Tea is hot 🔥."),
        ("Tea is hot [1] (and green [2]).", "Tea is hot (and green)."),
        (r"Tea costs 5\* euros [1].", "Tea costs 5* euros."),
    ],
)
def test_claims_read_as_plain_text_without_markers(answer: str, expected: str) -> None:
    assert texts(answer) == [expected]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Tea is hot [1]. Coffee is warm.", ["Tea is hot", "Coffee is warm."]),
        ("Tea is hot. [1] Coffee is warm [2]!", ["Tea is hot.", "Coffee is warm"]),
        ("- **Tea** is hot [1]\n- -5 degrees is cold", ["Tea** is hot", "-5 degrees is cold"]),
        ("| Tea | Heat |\n| --- | --- |\n| Green | 80 C [1] |", ["Green | 80 C"]),
        ("> Tea is hot [1].\n> Coffee is warm.", ["Tea is hot", "Coffee is warm."]),
        ("  \n\n   Tea is hot.", ["Tea is hot."]),
    ],
)
def test_a_range_holds_the_claims_own_words_without_its_marker(answer: str, expected: list[str]) -> None:
    assert slices(answer) == expected


def test_a_table_row_is_one_claim_and_header_and_rule_are_none() -> None:
    answer = "| Tea | Heat | Source |\n|:--|--:|---|\n| Green | 80 C | [1] |\n| Black | 95 C [2] | |\n| | | |"
    assert texts(answer) == ["Green | 80 C", "Black | 95 C"]


def test_a_table_row_keeps_its_column_names_as_context() -> None:
    answer = "| Tea | Heat | Source |\n|---|---|---|\n| Green | 80 C | [1] |"
    assert claims_of(answer)[0].sentence == "Tea: Green | Heat: 80 C"


def test_surplus_cells_of_a_row_are_kept() -> None:
    assert texts("| a | b |\n|---|---|\n| x | y | z |") == ["x | y | z"]


def test_list_items_are_claims_with_their_sentences() -> None:
    answer = "1. **Green tea**: takes 80 C [1].\n   It is mild [2].\n2. Black tea\n   - takes 95 C [1]."
    assert texts(answer) == ["Green tea: takes 80 C.", "It is mild.", "Black tea", "takes 95 C."]


def test_code_reference_lists_and_pointers_hold_no_claim() -> None:
    answer = (
        "Tea is hot [1].\n\n```python\nx = y[1]\n```\n\n    z = w[2]\n\nSee the guide for more.\n\n"
        "Visit https://x.example/a.\n\n### References\n\n- [1] a.md\n- b.md"
    )
    assert texts(answer) == ["Tea is hot."]


def test_an_indented_paragraph_of_prose_is_no_code() -> None:
    assert texts("    Green tea is hot [1].\n    Black tea is hotter [2].") == [
        "Green tea is hot.",
        "Black tea is hotter.",
    ]


def test_a_line_made_on_purpose_ends_a_claim_and_a_margin_does_not() -> None:
    assert texts("Green tea: 80 C\nBlack tea: 95 C [2]\nWhite tea: 70 C") == [
        "Green tea: 80 C",
        "Black tea: 95 C",
        "White tea: 70 C",
    ]
    wrapped = (
        "The sync client retries transient network failures up to five\ntimes with exponential backoff [1]."
    )
    assert texts(wrapped) == [
        "The sync client retries transient network failures up to five times with exponential backoff."
    ]


def test_bullets_that_are_no_markdown_are_items_too() -> None:
    assert texts("• Tea is hot [1]\n• Coffee is warm [2]") == ["Tea is hot", "Coffee is warm"]


def test_dspy_field_names_are_no_claims() -> None:
    assert texts("[[ ## answer ## ]]\nTea is hot [1].\n\n[[ ## completed ## ]]") == ["Tea is hot."]


def test_text_nested_deeper_than_the_parser_goes_is_kept() -> None:
    answer = "".join(f"{'  ' * depth}- Item {depth} is here [1]\n" for depth in range(40))
    assert len(texts(answer)) == 40


def test_an_answer_without_words_has_no_claims() -> None:
    for answer in ("", "   ", "***", "[1]", "| | |", "...", "\n\n---\n\n", "```\n```", "**[1]**"):
        assert claims_of(answer) == ()


def test_sentence_mode_leaves_every_sentence_whole() -> None:
    answer = "Authentication failures are never retried and surface immediately [1]."
    assert [c.text for c in claims_of(answer, Splitting.SENTENCE)] == [
        "Authentication failures are never retried and surface immediately."
    ]


def test_a_part_keeps_the_sentence_it_came_from() -> None:
    (first, second) = claims_of("Tea is grown on hills, and it is exported by sea [1].")
    assert first.sentence == second.sentence == "Tea is grown on hills, and it is exported by sea."
    assert second.text == "it is exported by sea."


def test_windows_line_ends_do_not_move_ranges() -> None:
    answer = "Tea is hot [1].\r\n\r\n- Coffee is warm [2]\r\n- Milk is cold\r\n"
    assert slices(answer) == ["Tea is hot", "Coffee is warm", "Milk is cold"]
