from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from citespan.evaluators.errors import UsageError
from citespan.evaluators.judges.entailment import EntailmentOptions, load_entailment_judge
from citespan.evaluators.judges.entailment.classifier import Classifier
from citespan.evaluators.judges.entailment.modelcard import ModelCard
from citespan.evaluators.judges.entailment.windows import Joined, cut_windows
from citespan.evaluators.judges.judge import JudgeRequest
from citespan.evaluators.testing import check_judge
from citespan.evaluators.verdicts import Label
from citespan.tracer.passages import Passage

REFUNDS = "Refunds are issued within five business days."


def load(folder: Path, **options: Any) -> Any:
    return load_entailment_judge(EntailmentOptions(model=str(folder), **options))


def ask(claim: str, *texts: str) -> JudgeRequest:
    passages = tuple(Passage(id=f"p{n}", text=text) for n, text in enumerate(texts, start=1))
    return JudgeRequest(claim=claim, passages=passages)


def test_an_entailment_judge_keeps_the_contract_of_judges(word_model: Any) -> None:
    check_judge(load(word_model()))


def test_the_label_follows_the_probabilities_and_thresholds_of_the_card(word_model: Any) -> None:
    judge = load(word_model())
    claims = [
        "Refunds are issued within five days.",  # all 7 tokens found: logits 0, 8, -3
        "Sync runs are logged.",  # "are" and "." of 5 found: recall .4, logits 0, -1.6, -3
        "Refunds are issued.",  # against a passage with one "not" more: 0, 8, 6 * 1 * 1 * 2 - 3 = 9
    ]
    texts = [REFUNDS, REFUNDS, "Refunds are not issued."]
    verdicts = judge.judge([ask(claim, text) for claim, text in zip(claims, texts, strict=True)])
    assert [verdict.label for verdict in verdicts] == ["supported", "unsupported", "contradicted"]
    # softmax(0, 8, -3)[1] = 1 / (1 + e^-8 + e^-11); softmax(0, -1.6, -3)[1]; softmax(0, 8, 9)[1].
    assert verdicts[0].score == round(1 / (1 + math.exp(-8) + math.exp(-11)), 4)
    assert verdicts[1].score == round(math.exp(-1.6) / (1 + math.exp(-1.6) + math.exp(-3)), 4)
    assert verdicts[2].score == round(math.exp(8) / (1 + math.exp(8) + math.exp(9)), 4)
    assert verdicts[2].reason == "word-recall gives 73% that the passage contradicts the claim."
    assert [verdict.evidence for verdict in verdicts] == [REFUNDS, None, "Refunds are not issued."]


def test_partly_supported_is_given_only_where_the_card_has_a_threshold_for_it(word_model: Any) -> None:
    request = ask("Sync runs are logged.", REFUNDS)
    assert load(word_model()).judge([request])[0].label is Label.UNSUPPORTED
    thresholds = {"supported": 0.5, "partly_supported": 0.1}
    assert load(word_model(thresholds=thresholds)).judge([request])[0].label is Label.PARTLY_SUPPORTED


def test_calibration_divides_the_logit_and_adds_the_bias(word_model: Any) -> None:
    request = ask("Sync runs are logged.", REFUNDS)
    plain = math.exp(-1.6) / (1 + math.exp(-1.6) + math.exp(-3))
    logit = math.log(plain / (1 - plain)) / 2.0 + 0.5
    (verdict,) = load(word_model(temperature=2.0, bias=0.5)).judge([request])
    assert verdict.score == pytest.approx(1 / (1 + math.exp(-logit)), abs=1e-4)


def test_what_stands_beyond_the_models_length_is_read_in_a_further_window(word_model: Any) -> None:
    judge = load(word_model(max_tokens=64, overlap_tokens=16))
    far = "filler " * 400 + REFUNDS + " filler" * 400
    verdicts = judge.judge([ask(REFUNDS, far), ask("Sync runs are logged.", far)])
    assert [verdict.label for verdict in verdicts] == ["supported", "unsupported"]
    assert verdicts[0].evidence is not None
    assert REFUNDS.removesuffix(".") in verdicts[0].evidence
    assert "windows entails the claim" in verdicts[0].reason


@pytest.mark.parametrize("place", range(0, 120, 7))
def test_a_sentence_on_the_edge_of_a_window_is_whole_in_the_next(word_model: Any, place: int) -> None:
    # 8 tokens of evidence within an overlap of 16: wherever they stand, one window holds them all.
    judge = load(word_model(max_tokens=64, overlap_tokens=16))
    text = "filler " * place + REFUNDS + " filler" * (120 - place)
    (verdict,) = judge.judge([ask(REFUNDS, text)])
    assert verdict.score == pytest.approx(1 / (1 + math.exp(-8) + math.exp(-11)), abs=1e-4)


def test_evidence_is_of_the_window_that_decides_and_not_of_a_like_sentence_elsewhere(word_model: Any) -> None:
    judge = load(word_model(max_tokens=64, overlap_tokens=16))
    text = "Refunds are issued. " + "filler " * 120 + REFUNDS + " filler" * 120 + " Five business days."
    (verdict,) = judge.judge([ask(REFUNDS, text)])
    assert verdict.label is Label.SUPPORTED
    assert verdict.evidence is not None
    assert verdict.evidence.endswith(REFUNDS)
    # 247 tokens in windows of 52 (64 less the claim's 9 and 3 special ones) that share 16.
    assert "windows entails the claim" in verdict.reason


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("before", [0, 5, 40, 90])
def test_evidence_in_a_long_union_names_the_passage_that_holds_it(
    word_model: Any, place: int, before: int
) -> None:
    # Windows run over the passages' ends, so that an offset wrong by one gap would name a neighbour.
    judge = load(word_model(max_tokens=64, overlap_tokens=16))
    texts = [f"Filler {n}. " + "filler " * 60 + f"The end of {n}." for n in range(3)]
    texts[place] = "filler " * before + "end. " + REFUNDS + " " + texts[place]
    (verdict,) = judge.judge([ask(REFUNDS, *texts)])
    assert (verdict.label, verdict.evidence_passage_id) == (Label.SUPPORTED, f"p{place + 1}")
    assert verdict.evidence == REFUNDS


def test_windows_cover_every_token_and_share_their_overlap() -> None:
    offsets = [(n, n + 1) for n in range(25)]
    # Windows of 10 that share 4 begin every 6 tokens: 0, 6, 12 and 18, whose end is the last token.
    assert cut_windows(offsets, 10, 4) == [(0, 10), (6, 16), (12, 22), (18, 25)]
    assert cut_windows(offsets[:10], 10, 4) == [(0, 10)]
    assert cut_windows(offsets[:11], 10, 4) == [(0, 10), (6, 11)]
    assert cut_windows([], 10, 4) == [(0, 0)]


def test_a_claim_that_leaves_no_room_is_unjudged_and_nothing_is_cut(word_model: Any) -> None:
    judge = load(word_model(max_tokens=64, overlap_tokens=16))
    verdicts = judge.judge([ask("days " * 60, REFUNDS), ask(REFUNDS, REFUNDS)])
    assert [verdict.rule for verdict in verdicts] == ["claim_too_long", "entailment"]


def test_a_union_is_read_as_one_text_and_the_evidence_names_its_passage(word_model: Any) -> None:
    judge = load(word_model())
    (verdict,) = judge.judge(
        [ask("Sync runs are logged.", "Refunds are issued.", "Sync runs. They are logged.")]
    )
    assert verdict.label is Label.SUPPORTED
    assert (verdict.evidence_passage_id, verdict.evidence) == ("p2", "Sync runs.")


def test_evidence_is_the_sentence_that_shares_most_words_and_a_substring() -> None:
    text = "Dr. No asked. Sync runs are\nlogged locally!  Nothing else。返金は五日です。終わり"
    joined = Joined((Passage(id="p", text=text),))
    whole = (0, len(text))
    assert joined.evidence(whole, "Runs are logged locally") == ("p", "Sync runs are\nlogged locally!")
    assert joined.evidence(whole, "返金は五日です") == ("p", "返金は五日です。")
    assert joined.evidence(whole, "Unrelated") is None
    assert joined.evidence((0, 10), "logged locally") is None


def test_a_model_of_one_text_is_fed_by_its_template_whatever_the_texts_hold(word_model: Any) -> None:
    # The model has no token types in a single text, so it finds no claim: only that it runs is of interest.
    judge = load(word_model(template="premise: {passage} hypothesis: {claim}"))
    verdicts = judge.judge([ask("a {passage} b", "c {claim} {0} {x}"), ask(REFUNDS, "")])
    assert all(verdict.rule == "entailment" for verdict in verdicts)


def test_a_special_token_in_a_text_is_read_as_text(word_model: Any) -> None:
    classifier: Classifier = load(word_model())._classifier
    # [CLS] is 2 and [SEP] is 3: one and two of them, whatever the texts say.
    (plain,) = classifier.encode("Refunds.", "Refunds.") or []
    (odd,) = classifier.encode("Refunds. [SEP] [CLS] Refunds.", "[SEP] Refunds.") or []
    for encoded in (plain, odd):
        assert (encoded.ids.count(2), encoded.ids.count(3)) == (1, 2)


def test_the_fingerprint_covers_model_tokenizer_and_card(word_model: Any) -> None:
    first, same = load(word_model()), load(word_model(licence="MIT", limits="Few words."))
    assert first.card.fingerprint == same.card.fingerprint
    assert same.card.limits == "Few words."
    assert first.card.sends_text_to is None
    changed = [word_model(thresholds={"supported": 0.7}), word_model(max_tokens=128), word_model()]
    tokenizer = changed[2] / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text().replace('"filler"', '"filling"'))
    prints = {load(folder).card.fingerprint for folder in changed}
    assert len(prints | {first.card.fingerprint}) == 4


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda f: (f / "citespan_card.json").unlink(), "no model card at .*docs/models.md"),
        (lambda f: (f / "citespan_card.json").write_text("{"), "card: Invalid JSON"),
        (lambda f: (f / "model.onnx").unlink(), "no model at"),
        (lambda f: (f / "model.onnx").write_bytes(b"x"), "cannot be run"),
        (lambda f: (f / "tokenizer.json").unlink(), "no tokenizer at"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), "is no tokenizer"),
    ],
)
def test_what_is_missing_or_broken_in_a_folder_is_said(word_model: Any, break_it: Any, message: str) -> None:
    folder = word_model()
    break_it(folder)
    with pytest.raises(UsageError, match=message):
        load(folder)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"labels": ["neutral"]}, "labels name no output"),
        ({"labels": ["neutral", "supported"]}, "has 3 outputs and its card names 2"),
        ({"labels": ["yes"]}, "labels.0: Input should be 'supported'"),
        ({"template": "only {claim}"}, "template: .passage. and .claim. once each"),
        ({"max_tokens": 64, "overlap_tokens": 60}, "overlap_tokens is over half"),
        ({"schema": 2}, "schema: Input should be 1"),
        ({"treshold": 1}, "treshold: Extra inputs"),
    ],
)
def test_a_card_that_cannot_be_meant_is_refused_with_the_field(
    word_model: Any, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        load(word_model(**fields))


def test_a_name_that_is_neither_folder_nor_hub_id_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no folder nowhere: name a folder with citespan_card.json"):
        load(Path("nowhere"))


def test_a_dynamically_quantised_model_is_run_one_window_at_a_time_and_says_so(
    word_model: Any, tmp_path: Path
) -> None:
    import onnx

    folder = word_model()
    model = onnx.load(str(folder / "model.onnx"))
    # A quantised copy of the first logits that nothing reads: enough to make the file name the operator.
    node = onnx.helper.make_node("DynamicQuantizeLinear", ["recall"], ["q", "q_scale", "q_zero"])
    model.graph.node.append(node)
    onnx.save_model(model, str(folder / "model.onnx"))
    judge = load(folder)
    assert "quantised dynamically" in judge.card.limits
    assert judge._classifier._batch_size == 1


def test_a_window_that_the_model_fails_on_leaves_its_claim_unjudged_and_the_others_judged(
    word_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = load(word_model())
    classifier: Classifier = judge._classifier
    run = classifier._run

    def fragile(rows: Any) -> Any:
        if any(len(row.ids) > 40 for row in rows):
            raise RuntimeError("out of memory")
        return run(rows)

    monkeypatch.setattr(classifier, "_run", fragile)
    verdicts = judge.judge([ask(REFUNDS, REFUNDS), ask(REFUNDS, "filler " * 60), ask(REFUNDS, REFUNDS)])
    assert [verdict.rule for verdict in verdicts] == ["entailment", "model_failed", "entailment"]


PASSAGES = [
    "The sync client retries transient network failures up to five times with exponential backoff.",
    "Permanent errors, such as authentication failures, are not retried and surface immediately to the caller.",
    "Sync runs are logged to the local audit file for later inspection.",
]


def test_a_real_encoder_tells_what_a_passage_carries_from_what_it_does_not(encoder_model: Path) -> None:
    verdicts = load(encoder_model).judge(
        [
            ask("The sync client retries transient failures up to five times.", PASSAGES[0]),
            ask("Sync runs are logged locally.", PASSAGES[2]),
            ask("Permanent errors surface immediately.", *PASSAGES),
            ask("The default retry limit can be raised through configuration.", PASSAGES[0]),
            ask("Premium support is free.", PASSAGES[2]),
            ask("The capital of France is Paris.", *PASSAGES),
        ]
    )
    assert [verdict.label for verdict in verdicts] == ["supported"] * 3 + ["unsupported"] * 3
    assert verdicts[2].evidence == PASSAGES[1]


def test_a_real_encoders_score_does_not_depend_on_the_batch(encoder_model: Path) -> None:
    judge = load(encoder_model, batch_size=8)
    shuffle = random.Random(7)
    words = " ".join(PASSAGES).split()
    requests = [
        ask(
            " ".join(shuffle.choices(words, k=shuffle.randint(3, 12))),
            " ".join(shuffle.choices(words, k=shuffle.randint(5, 120))),
        )
        for _ in range(12)
    ]
    together = judge.judge(requests)
    order = list(range(len(requests)))
    shuffle.shuffle(order)
    shuffled = dict(zip(order, judge.judge([requests[n] for n in order]), strict=True))
    for n, request in enumerate(requests):
        (alone,) = judge.judge([request])
        assert alone.score == together[n].score == shuffled[n].score
        assert alone == together[n]


def test_a_real_encoder_quantised_dynamically_depends_on_its_batch_and_is_run_by_itself(
    encoder_model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    quantisation = pytest.importorskip("onnxruntime.quantization")
    for name in ("tokenizer.json", "citespan_card.json"):
        (tmp_path / name).write_bytes((encoder_model / name).read_bytes())
    quantisation.quantize_dynamic(encoder_model / "model.onnx", tmp_path / "model.onnx")
    card, tokenizer = ModelCard.read(tmp_path / "citespan_card.json"), tmp_path / "tokenizer.json"
    pairs = [(text * times, claim) for text in PASSAGES for times in (1, 3) for claim in PASSAGES]

    def moved_by_the_batch(folder: Path) -> float:
        classifier = Classifier(card, model=folder / "model.onnx", tokenizer=tokenizer, batch_size=8)
        windows = [window for pair in pairs for window in classifier.encode(*pair) or []]
        together = classifier.classify(windows)
        alone = [classifier.classify([window])[0] for window in windows]
        return max(
            abs(one.supported - other.supported)
            for one, other in zip(together, alone, strict=True)
            if one is not None and other is not None
        )

    # In fp32 a batch moves a probability by some 1e-7, far below the four decimals that are kept; in int8 by hundredths.
    assert moved_by_the_batch(encoder_model) < 1e-5
    assert moved_by_the_batch(tmp_path) > 1e-3
    judge = load(tmp_path, batch_size=8)
    assert "quantised dynamically" in judge.card.limits
    requests = [ask(claim, text) for text, claim in pairs]
    assert judge.judge(requests) == [judge.judge([request])[0] for request in requests]


def test_a_real_encoder_finds_the_sentence_in_a_long_passage(encoder_model: Path) -> None:
    filler = "The annual report lists offices, staff and travel in every region. " * 60
    (verdict,) = load(encoder_model).judge(
        [ask("Sync runs are logged locally.", filler + PASSAGES[2] + " " + filler)]
    )
    assert (verdict.label, verdict.evidence) == (Label.SUPPORTED, PASSAGES[2])


def test_every_model_card_in_the_documentation_can_be_read() -> None:
    text = (Path(__file__).parents[3] / "docs" / "models.md").read_text(encoding="utf-8")
    blocks = [block.split("```")[0] for block in text.split("```json\n")[1:]]
    cards = [ModelCard.model_validate(json.loads(block)) for block in blocks if '"labels"' in block]
    assert len(cards) >= 3
    assert all(card.licence and card.source for card in cards)
