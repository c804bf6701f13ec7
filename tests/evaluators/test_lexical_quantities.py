from __future__ import annotations

import pytest

from citespan.evaluators.judges.lexical.quantities import Quantity, read_quantities
from citespan.evaluators.judges.lexical.words import read_words


def quantities(text: str) -> list[Quantity]:
    return read_quantities(read_words(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("five", 5),
        ("twenty-five", 25),
        ("one hundred and twenty-five", 125),
        ("1,200,000", 1_200_000),
        ("1.2 million", 1_200_000),
        ("$5.5bn", 5_500_000_000),
        ("$750M", 750_000_000),
        ("two thousand three hundred", 2300),
        ("a dozen", 12),
        ("3,5", 3.5),
    ],
)
def test_numbers_are_read_as_values_however_they_are_written(text: str, value: float) -> None:
    assert [quantity.value for quantity in quantities(text)] == [value]


@pytest.mark.parametrize(
    ("text", "kind", "unit", "qualifier"),
    [
        ("five days", "time", "day", ""),
        ("five business days", "time", "day", "busi"),
        ("five full days", "time", "day", ""),
        ("5 nautical miles", "length", "mile", "nautic"),
        ("100km", "length", "km", ""),
        ("12 per cent", "percent", "percent", ""),
        ("$12", "dollar", "dollar", ""),
        ("twelve dollars", "dollar", "dollar", ""),
        ("40 users", "count", "user", ""),
        ("1999", "year", "", ""),
        ("3rd", "ordinal", "", ""),
        ("2.0.1", "code", "", ""),
    ],
)
def test_units_and_what_changes_them_are_read(text: str, kind: str, unit: str, qualifier: str) -> None:
    quantity = quantities(text)[0]
    assert (quantity.kind, quantity.unit, quantity.qualifier) == (kind, unit, qualifier)


def test_measures_are_comparable_across_units() -> None:
    # 90 min = 90 * 60 s = 5400 s; 1.5 h = 1.5 * 3600 s = 5400 s
    assert [quantities(text)[0].amount for text in ("90 minutes", "1.5 hours")] == [5400, 5400]


def test_range_gives_its_unit_to_both_ends() -> None:
    assert [(q.value, q.unit) for q in quantities("3-7 days")] == [(3, "day"), (7, "day")]
    assert [(q.value, q.unit) for q in quantities("three to seven days")] == [(3, "day"), (7, "day")]


def test_second_year_of_a_season_is_no_measure() -> None:
    assert [quantity.kind for quantity in quantities("the 2017-18 school year")] == ["year", "year"]


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("up to five times", "<="),
        ("at least 3 hours", ">="),
        ("more than 40", ">"),
        ("fewer than ten", "<"),
        ("about 300", "~"),
        ("no more than 5", "<="),
        ("exactly 5", "="),
    ],
)
def test_bounds_are_read(text: str, bound: str) -> None:
    assert quantities(text)[0].bound == bound
