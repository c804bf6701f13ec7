from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citespan.evaluators.judges.chat.quotes import find_quote

TEXT = "The \u201csync\u201d client retries\n\n  up to five times\u2014with back\u00adoff. Caf\u00e9 costs \u20ac5."


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("retries up to five times", "retries\n\n  up to five times"),
        ('the "sync" client', "The \u201csync\u201d client"),
        ("the 'sync' client", None),  # a single mark is no double one
        ("times-with backoff", "times\u2014with back\u00adoff"),
        ("times – with backoff", None),  # a word is not broken by what the passage does not have
        ("CAFÉ COSTS", "Caf\u00e9 costs"),
        ("Cafe\u0301 costs", "Caf\u00e9 costs"),
        ("Cafe costs", None),
        ("\u201cretries up to five times\u201d", "retries\n\n  up to five times"),
        ("… up to five times …", "up to five times"),
        ("**up to five times**", "up to five times"),
        ("  up\tto  five ", "up to five"),
        ("five hundred times", None),
        ("", None),
        ("...", None),
        ("\u2014", None),
    ],
)
def test_a_quote_is_found_whatever_its_spaces_marks_dashes_and_case(quote: str, found: str | None) -> None:
    assert find_quote(TEXT, quote) == found


def test_letters_that_case_folding_lengthens_keep_the_ranges_right() -> None:
    assert find_quote("Die Straße ist frei. Danach.", "die strasse ist frei.") == "Die Straße ist frei."
    assert find_quote("İstanbul'da kalır. Sonra.", "sonra.") == "Sonra."
    assert find_quote("ﬁnal ﬂight", "final flight") == "ﬁnal ﬂight"


def test_a_match_never_ends_inside_a_character() -> None:
    # "ﬁ" is one character: a quote of its first half is no part of the passage.
    assert find_quote("ﬁ", "f") is None
    assert find_quote("Caf\u00e9", "Cafe") is None


@given(st.text(min_size=1, max_size=80), st.data())
def test_any_part_of_a_text_is_found_and_what_is_found_is_a_part(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    found = find_quote(text, text[start:end])
    # What looks like a letter once it is normalised counts as one: U+2F00 is a symbol that reads as a Han letter.
    if any(character.isalnum() for character in unicodedata.normalize("NFKD", text[start:end].strip())):
        # A part that begins or ends inside a combining sequence is no reading of the text, so it may be missed.
        assert found is None or found in text
        if text[start:end].isascii() and text.isascii():
            assert found is not None
    else:
        assert found is None
