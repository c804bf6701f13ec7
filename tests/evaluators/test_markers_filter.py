"""What looks like a marker and is none; and what names nothing but was meant as one."""

from __future__ import annotations

import pytest

from citespan.evaluators.markers import find_markers
from citespan.evaluators.markers.filter import shape_of
from citespan.tracer.passages import Passage


def numbered(count: int, first: int = 1) -> list[Passage]:
    return [Passage(f"id-{n}", "Tea is hot.", str(n)) for n in range(first, first + count)]


def labelled(*labels: str) -> list[Passage]:
    return [Passage(f"id-{n}", "Tea is hot.", label) for n, label in enumerate(labels)]


def texts(answer: str, passages: list[Passage]) -> list[str]:
    return [marker.text for marker in find_markers(answer, passages) if marker.labels]


@pytest.mark.parametrize(
    "answer",
    [
        "The top speed is 25 [km/h] on level ground.",
        "The [2024 report] lists [5 reasons] for it.",
        'He said "teh [sic] cat".',
        "[TODO] fill this in.",
        "Add salt [emphasis added].",
        "It began on [2024-01-05] and in [2024].",
        "Born [1990-1995].",
        "At [12:30] it ended.",
        "The factor is [1.5] or [-1].",
        "The value lies in [0, 1].",
        "The interval [1, 2] is closed.",
        "For x in [1, 2] it holds.",
        "- [ ] open\n- [x] done",
        "Call `arr[1]` first.",
        "```\nx = y[1]\n```",
        "    z = w[1]\n",
        "``a`[1]`` is literal.",
        "Let $x[1] = 2$ be.",
        r"Let \(y_{[2]} = 1\) be.",
        "Then dp[i][1] and x[2] hold.",
        "row_sum[2] is 3.",
        "values[1] = 4.",
        "f(x)[1] is.",
        "The area is 20 m² or 10² km².",
        "In (2023) or 4(2) or (1).",
        "See ![1](image.png).",
        "An <inreference word is just text.",
        "[[ ## answer ## ]]",
        "Use {1} as a placeholder.",
        "turn 1 of the game.",
        "We measured [CO2]. It weighs [5kg].",
        "The ratio is [1:3]. It matches [A-Z0-9].",
        "Tea [Note: see below] is.",
        "[Figure 3] shows it.",
    ],
)
def test_prose_code_dates_intervals_and_units_do_not_cite(answer: str) -> None:
    assert texts(answer, numbered(3)) == []


def test_two_prices_are_no_formula() -> None:
    assert texts("It costs $5 [1] and $10 [2].", numbered(2)) == ["[1]", "[2]"]


@pytest.mark.parametrize(
    ("answer", "cites"),
    [
        ("Tea is hot [1]. Register lazily [9].", ["[1]", "[9]"]),
        ("Tea is hot [1]. It is red [6c].", ["[1]", "[6c]"]),
        ("Tea is hot [1]. White tea [0].", ["[1]", "[0]"]),
        ("Tea is hot [Source 1]. Milk [Source 9].", ["[Source 1]", "[Source 9]"]),
        ("Tea is hot [7].", ["[7]"]),
        ("Tea is hot {{source:1}}. Milk {{source:8}}.", ["{{source:1}}", "{{source:8}}"]),
        ("Tea is hot¹. Milk is cold⁹.", ["¹", "⁹"]),
        ("Tea <ref id='1'/>. Milk <ref id='9'/>.", ["<ref id='1'/>", "<ref id='9'/>"]),
        ("Tea is hot [1]. [2024 report] says so [km/h].", ["[1]"]),
        ("Tea is hot [1]. The [CO2] level rises [CO2].", ["[1]"]),
        ("Tea is hot [1], in [2019].", ["[1]"]),
        ("Tea is hot [1]. Sea [Source: Some Book].", ["[1]", "[Source: Some Book]"]),
        ("He left.[1][3] It was 2 [2]—so.", ["[1]", "[3]", "[2]"]),
    ],
)
def test_the_house_style_tells_an_invalid_citation_from_prose(answer: str, cites: list[str]) -> None:
    assert texts(answer, numbered(3)) == cites


@pytest.mark.parametrize(
    ("answer", "labels", "cites"),
    [
        ("Tea [doc-1]. Sea [doc-99].", ["doc-1"], ["[doc-1]", "[doc-99]"]),
        ("Tea [P1]. Sea [P9].", ["P1", "P2"], ["[P1]", "[P9]"]),
        ("Tea [a.pdf]. Sea [other.docx].", ["a.pdf", "b.pdf"], ["[a.pdf]", "[other.docx]"]),
        (
            "Sea [0b6c2c1e-7f0a-4a57-9a3c-1f2e3d4c5b6a].",
            ["a.pdf"],
            ["[0b6c2c1e-7f0a-4a57-9a3c-1f2e3d4c5b6a]"],
        ),
        (
            "Tea (pqac-d79ef6fa). Sea (pqac-0f650d59).",
            ["pqac-d79ef6fa", "pqac-11111111"],
            ["(pqac-d79ef6fa)", "(pqac-0f650d59)"],
        ),
        ("Sea turn0search9.", ["turn0search1"], ["turn0search9"]),
    ],
)
def test_an_unknown_label_shaped_like_the_known_ones_dangles(
    answer: str, labels: list[str], cites: list[str]
) -> None:
    assert texts(answer, labelled(*labels)) == cites


def test_without_passages_numbers_at_a_clause_end_dangle() -> None:
    assert texts("Tea is hot [1]. Milk [sic]. In [2024].", []) == ["[1]"]


def test_a_link_that_names_no_passage_is_no_marker_and_hides_none() -> None:
    answer = "Tea [doc-1]. Sea [doc-99]. See [doc-99](https://example.com) for more."
    assert texts(answer, labelled("doc-1")) == ["[doc-1]", "[doc-99]"]


def test_where_citations_stand_apart_an_attached_number_amid_a_clause_is_an_index() -> None:
    assert texts("Set items[0] first [1]. Then values[1] holds it [2].", numbered(2)) == ["[1]", "[2]"]


def test_attached_citations_are_read_where_the_answer_attaches_them() -> None:
    assert texts("Tea takes 80[1]; coffee 95[2].", numbered(2)) == ["[1]", "[2]"]


def test_round_numbers_cite_only_where_labels_are_shown_in_parentheses() -> None:
    assert texts("Tea (1). In (2023).", numbered(2)) == []
    assert texts("Tea (1). In (2023).", labelled("(1)", "(2)")) == ["(1)"]


def test_zero_names_a_passage_only_where_labels_show_a_zero() -> None:
    assert texts("Tea is hot [0, 1].", numbered(2, first=0)) == ["[0, 1]"]


@pytest.mark.parametrize(
    "answer",
    [
        "Tea is hot.\n\n### References\n\n- [2] b.md\n- [1] a.md",
        "Tea is hot.\n\nSources:\n[1] a.md\n[2] b.md",
        "Tea is hot.\n\n**Sources**\n\n1. [1] Guide\n2. [2] Book",
        "Tea is hot.\n\nSources: [1], [2]",
        "Tea is hot.\n\n[1] Brewing guide\n[2] https://x.example/z",
        "Tea is hot.\n\n[^1]: Tea guide\n[^2]: Another guide.",
        "Tea is hot.\n\n[1]: https://x.example/a",
        "茶は熱いです。\n\n参考文献\n\n[1] 茶の本\n[2] 別の本",
        "CITATION LIST\n\nCITATION【1】\n\nSTART_PHRASE: Tea\nEND_PHRASE: hot\n\nFINAL ANSWER\nTea is hot.",
        "Tea is hot.\n\n## Sources\n\n| # | File |\n|---|---|\n| [1] | a.md |",
    ],
)
def test_entries_of_a_reference_list_do_not_cite(answer: str) -> None:
    assert texts(answer, numbered(2)) == []


def test_last_lines_led_by_markers_that_the_text_cites_are_its_reference_list() -> None:
    answer = "Tea is hot [1].\n\n[1] Brewing guide, 2020.\n[2] A book on tea."
    assert [m.start for m in find_markers(answer, numbered(2))] == [11]


def test_a_last_line_led_by_a_marker_of_its_own_is_a_claim() -> None:
    assert texts("Tea is hot. [1]\n\n[2] Coffee takes 95 degrees.", numbered(2)) == ["[1]", "[2]"]


def test_a_heading_called_sources_over_prose_starts_no_reference_list() -> None:
    answer = "## Sources\n\nOranges are good sources of vitamin C [1]."
    assert texts(answer, numbered(2)) == ["[1]"]


def test_text_after_a_reference_list_cites_again() -> None:
    answer = "Tea [1].\n\n## References\n\n- [1] a.md\n\n## More\n\nCoffee is warm [2]."
    assert texts(answer, numbered(2)) == ["[1]", "[2]"]


def test_lines_led_by_markers_are_claims_where_they_are_all_there_is() -> None:
    assert texts("[1] Tea takes 80 degrees.\n[2] Coffee takes 95.", numbered(2)) == ["[1]", "[2]"]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("3", "12", True),
        ("doc-1", "doc-99", True),
        ("doc-1", "file-1", False),
        ("a.pdf", "b.docx", True),
        ("pqac-d79ef6fa", "pqac-0f650d59", True),
        ("kb-tea-03", "kb-milk-9", True),
        ("1", "6c", False),
        ("4:0", "4:1", True),
    ],
)
def test_labels_of_one_kind_share_a_shape(one: str, other: str, alike: bool) -> None:
    assert (shape_of(one) == shape_of(other)) is alike
