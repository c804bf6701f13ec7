"""The record on the run's span: what is written is what is read back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citespan.tracer.attributes import RecordedPassage, RunRecord
from citespan.tracer.citations import Citation
from citespan.tracer.errors import RecordError

texts = st.text(st.characters(exclude_categories=["Cs"]))
passages = st.builds(
    RecordedPassage,
    id=texts,
    label=st.none() | texts,
    sha256=st.none() | texts,
    title=st.none() | texts,
    url=st.none() | texts,
)
citations = st.builds(Citation, texts, origin=st.text("ab", min_size=1), quote=st.none() | texts) | st.builds(
    Citation, texts, start=st.integers(0, 9), end=st.integers(10, 99)
)


@given(
    st.builds(
        RunRecord,
        passages=st.lists(passages).map(tuple),
        passage_count=st.integers(0, 10**6),
        citations=st.lists(citations).map(tuple),
        hidden=st.lists(texts).map(tuple),
        cut=st.lists(texts).map(tuple),
    )
)
def test_any_record_reads_back_as_it_was(record: RunRecord) -> None:
    assert RunRecord.from_json(record.to_json()) == record


def test_the_record_written_is_json_in_this_shape() -> None:
    """One record kept for each schema: the reader must go on reading it."""
    record = RunRecord(
        passages=(
            RecordedPassage("a", "1", "ff", 'Title "quoted"', "https://u"),
            RecordedPassage("b", None, None),
        ),
        passage_count=3,
        citations=(Citation("a", start=0, end=2, origin="openai", quote="q"), Citation("b")),
        hidden=("question",),
        cut=("passage:b",),
    )
    assert record.to_json() == (
        '{"schema":1,"passages":['
        '{"id":"a","label":"1","sha256":"ff","title":"Title \\"quoted\\"","url":"https://u"},'
        '{"id":"b","label":null,"sha256":null}],"passage_count":3,"citations":['
        '{"passage_id":"a","origin":"openai","start":0,"end":2,"quote":"q"},{"passage_id":"b","origin":"app"}],'
        '"hidden":["question"],"cut":["passage:b"]}'
    )
    assert RunRecord.from_json(json.loads(record.to_json())) == record


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("{", "invalid_json"),
        ("[]", "invalid_record"),
        ('{"schema": 99}', "unknown_schema:99"),
        ("{}", "unknown_schema:None"),
        ('{"schema": 1, "passages": [{"label": "1"}]}', "invalid_record"),
        ('{"schema": 1, "citations": "a"}', "invalid_record"),
    ],
)
def test_what_is_no_record_is_a_named_reason(value: str, reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        RunRecord.from_json(value)
    assert caught.value.reason == reason
