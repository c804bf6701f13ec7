"""What redaction keeps out, everywhere it could come through."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from citespan import tracer
from citespan.tracer import Citation, Hash, Hide, Passage, Redaction, Truncate
from citespan.tracer.redaction import HIDDEN, Redacted, common_length, redact
from citespan.tracer.settings import TracerSettings
from citespan.tracer.testing import RecordedSpans, record_in_memory
from citespan.tracer.text import text_hash

SECRET = "Anna's salary is 5000"
PASSAGE = Passage(
    id="kb-1",
    text=SECRET,
    label="1",
    title=f"title {SECRET}",
    url="https://kb/1",
    metadata={"window": SECRET, "page": 3},
)


def record_everything(redaction: Redaction) -> RecordedSpans:
    """Record a run that says the secret everywhere an app can."""
    with record_in_memory(redaction=redaction) as recorded:
        run = tracer.start_run(SECRET)
        with run.retrieval(SECRET) as retrieval:
            retrieval.retrieved([PASSAGE])
        with run.generation(model="m", prompt=[{"role": "user", "content": SECRET}]) as generation:
            generation.output(SECRET)
        run.answer(SECRET, citations=[Citation("kb-1", start=0, end=4, quote=SECRET)])
        run.finish(ValueError(SECRET))
    return recorded


def everything(recorded: RecordedSpans) -> str:
    """Return all that was recorded as one text."""
    return "\n".join(span.to_json() for span in recorded.spans)


@pytest.mark.parametrize("rule", [Hide(), Hash(), lambda text: None])
def test_a_hidden_text_is_nowhere(rule: Callable[[str], str | Redacted | None]) -> None:
    recorded = record_everything(Redaction(question=rule, answer=rule, passages=rule))
    assert "salary" not in everything(recorded)
    record = recorded.run()
    assert set(record.hidden) == {"question", "answer", "passages"}
    assert record.passages[0].label == "1"
    assert record.passages[0].title is None
    # An offset tells nothing of a hidden answer, and would point into the mask.
    assert record.citations[0].passage_id == "kb-1"
    assert record.citations[0].start is None


def test_hiding_records_no_hash_and_hashing_nothing_else() -> None:
    hidden = record_everything(Redaction(passages=Hide()))
    assert hidden.run().passages[0].sha256 is None
    assert hidden.named("retrieval").attributes is not None
    hashed = record_everything(Redaction(passages=Hash()))
    assert hashed.run().passages[0].sha256 == text_hash(SECRET)
    content = dict(hashed.named("retrieval").attributes or {})["retrieval.documents.0.document.content"]
    assert content == f"sha256:{text_hash(SECRET)}"


def test_an_id_made_from_a_hidden_text_says_nothing_of_it() -> None:
    with record_in_memory(redaction=Redaction(passages=Hide())) as recorded, tracer.run("q") as run:
        run.retrieved(["one", "two"])
    assert [p.id for p in recorded.run().passages] == ["passage-1", "passage-2"]


def test_a_hidden_question_hides_the_prompt_that_repeats_it() -> None:
    redaction = Redaction(question=Hide())
    with (
        record_in_memory(redaction=redaction) as recorded,
        tracer.run(SECRET) as run,
        run.generation(prompt=f"Question: {SECRET}"),
    ):
        pass
    assert "salary" not in everything(recorded)


def test_a_cut_is_visible_and_the_hash_is_of_the_whole() -> None:
    redaction = Redaction(passages=Truncate(4), answer=Truncate(6))
    with record_in_memory(redaction=redaction) as recorded, tracer.run("q") as run:
        run.retrieved([{"id": "a", "text": "0123456789"}, {"id": "b", "text": "0123"}])
        run.answer("One. Two.", citations=[Citation("a", start=0, end=4), Citation("b", start=5, end=9)])
    documents = dict(recorded.named("retrieval").attributes or {})
    # Four of ten code points are kept: six are missing.
    assert documents["retrieval.documents.0.document.content"] == "0123… [6 characters not recorded]"
    assert documents["retrieval.documents.1.document.content"] == "0123"
    record = recorded.run()
    assert set(record.cut) == {"answer", "passage:a"}
    assert record.passages[0].sha256 == text_hash("0123456789")
    # "One. T" is kept: the range of "One." still holds, that of "Two." does not.
    assert record.citations == (Citation("a", start=0, end=4), Citation("b"))


def test_a_custom_rule_that_changes_a_text_counts_as_cutting_it() -> None:
    mask = Redaction(passages=lambda text: text.replace("5000", "****"))
    with record_in_memory(redaction=mask) as recorded, tracer.run("q") as run:
        run.retrieved([PASSAGE, {"id": "b", "text": "harmless"}])
    assert recorded.run().cut == ("passage:kb-1",)
    documents = dict(recorded.named("retrieval").attributes or {})
    metadata = json.loads(str(documents["retrieval.documents.0.document.metadata"]))
    assert metadata == {"window": "Anna's salary is ****", "page": 3}
    assert recorded.run().passages[0].title == "title Anna's salary is ****"


def test_a_rule_that_fails_hides(faults_logged: pytest.LogCaptureFixture) -> None:
    def broken(text: str) -> str:
        raise KeyError("pattern")

    assert redact(broken, SECRET).text == HIDDEN
    assert "a redaction rule failed" in faults_logged.text


def test_without_rules_the_exception_s_message_is_recorded_and_with_rules_only_its_type() -> None:
    assert "salary" in everything(record_everything(Redaction()))
    recorded = record_everything(Redaction(answer=Hide()))
    assert recorded.named("run").status.description == "ValueError"


def test_openinference_s_own_variables_hide() -> None:
    rules = Redaction().under(TracerSettings(hides_inputs=True))
    assert redact(rules.question, SECRET).is_hidden
    assert redact(rules.prompt_rule, SECRET).is_hidden
    assert rules.answer is None
    rules = Redaction(answer=Truncate(3)).under(TracerSettings(hides_outputs=True))
    assert redact(rules.passages, SECRET).is_hidden
    assert redact(rules.answer, SECRET).is_cut  # what the app says counts before the environment


def test_opentelemetry_s_length_limit_cuts_texts_and_never_the_record() -> None:
    rules = Redaction().under(TracerSettings(text_limit=5))
    for rule in (rules.question, rules.answer, rules.passages, rules.prompt_rule):
        assert redact(rule, "1234567").text == "12345… [2 characters not recorded]"


def test_a_negative_length_is_refused() -> None:
    with pytest.raises(ValueError, match="length is -1"):
        Truncate(-1)


@pytest.mark.parametrize(
    ("one", "other", "length"), [("abc", "abc", 3), ("abc", "abd", 2), ("abc", "ab", 2), ("", "x", 0)]
)
def test_ranges_hold_as_far_as_two_texts_agree(one: str, other: str, length: int) -> None:
    assert common_length(one, other) == length
