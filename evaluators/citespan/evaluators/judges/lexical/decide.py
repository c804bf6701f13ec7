"""Bring rules and model to one verdict, and say why in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from citespan.evaluators.judges.lexical.examine import Examination
from citespan.evaluators.judges.lexical.finding import Finding
from citespan.evaluators.judges.lexical.letters import LetterMatch
from citespan.evaluators.judges.lexical.model import Model
from citespan.evaluators.judges.lexical.readings import PassageReading
from citespan.evaluators.verdicts import Label, Verdict

__all__ = ["decide", "decide_by_letters"]

_SAME_MATTER = 0.5
"""Coverage from which a window speaks of the claim's matter, so that a difference in it means something."""

_DOUBT = 0.07
"""Distance from a threshold within which the judge doubts its label."""

_MOST_WORDS_NAMED = 3
"""Missing words that a reason lists, at most."""

_LETTERS_THRESHOLD = 0.75
_LETTERS_PARTLY = 0.5
"""Shares of letters for supported and partly supported in languages whose words the judge does not know."""


def decide(examination: Examination, model: Model, passage_ids: Sequence[str]) -> Verdict:
    """Return the verdict: the model says how much is carried, a finding says what is wrong.

    Support needs the model's word and no finding. With a finding, the label follows from its nature: a passage
    that says something different contradicts, one that says less supports partly.
    """
    log_odds = model.log_odds(examination.features)
    finding = _telling(examination)
    score = model.score(log_odds, is_faulted=bool(examination.findings))
    carried = model.score(log_odds)
    if finding is None:
        label, rule, reason = _by_model(examination, model, score)
    else:
        label, rule, reason = _by_finding(finding, model, carried)
    aligned = examination.aligned
    near = min(abs(carried - model.threshold), abs(carried - model.partly_threshold)) < _DOUBT
    return Verdict(
        label=label,
        score=round(score, 4),
        reason=reason,
        rule=rule,
        evidence=_evidence(examination, finding),
        evidence_passage_id=passage_ids[aligned.window.passage],
        is_low_confidence=label is Label.CONTRADICTED or near,
    )


def _telling(examination: Examination) -> Finding | None:
    """Return the finding that decides: a clash first; none where the window speaks of something else."""
    findings = examination.findings
    if examination.aligned.window.coverage < _SAME_MATTER:
        return None
    return next((finding for finding in findings if finding.is_clash), findings[0] if findings else None)


def _by_model(examination: Examination, model: Model, score: float) -> tuple[Label, str, str]:
    if score >= model.threshold and not examination.findings:
        return Label.SUPPORTED, "coverage", _said_so(examination)
    missing = _missing(examination)
    reason = (
        f"The passage does not mention {missing}." if missing else "The passage has the words, but apart."
    )
    if score >= model.partly_threshold and examination.features["cov3"] >= _SAME_MATTER:
        return Label.PARTLY_SUPPORTED, "coverage", reason
    return Label.UNSUPPORTED, "coverage", reason


def _by_finding(finding: Finding, model: Model, carried: float) -> tuple[Label, str, str]:
    if finding.is_clash:
        return Label.CONTRADICTED, finding.rule, finding.reason
    is_partly = finding.is_partial or (carried >= model.partly_threshold and finding.rule != "negation")
    return (Label.PARTLY_SUPPORTED if is_partly else Label.UNSUPPORTED), finding.rule, finding.reason


def _said_so(examination: Examination) -> str:
    missing = _missing(examination)
    if not missing:
        return "Every word and figure of the claim is in the passage, in the same sense."
    return f"The passage says so, in other words for {missing}."


def _missing(examination: Examination) -> str:
    read = examination.aligned.claim_text
    numbers = {key: number for number, key in enumerate(examination.found.claim.keys)}
    words = dict.fromkeys(
        f'"{read.shown(index)}"'
        for index, key in enumerate(read.keys)
        if key and not examination.found.loose >> numbers[key] & 1
    )
    named = list(words)[:_MOST_WORDS_NAMED]
    return " or ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)


def _evidence(examination: Examination, finding: Finding | None) -> str:
    """Return the sentence that shows the finding, or else the one of the window that has most of the claim."""
    aligned, found = examination.aligned, examination.found
    read, window = aligned.passage_text, aligned.window
    if finding is not None and finding.place is not None:
        number = aligned.passage.sentence_of[finding.place]
    else:
        masks = found.masks[window.passage]
        number = max(
            range(window.first, window.last),
            key=lambda sentence: found.coverage(*masks.get(sentence, (0, 0))),
        )
    sentence = read.sentences[number]
    return read.text[sentence.start : sentence.end]


def decide_by_letters(
    match: LetterMatch | None, passages: Sequence[PassageReading], passage_ids: Sequence[str]
) -> Verdict:
    """Return the verdict on a claim in a language whose words the judge does not know; always in doubt."""
    if match is None:
        return Verdict(
            label=Label.UNSUPPORTED,
            score=0.0,
            reason="The passage is empty.",
            rule="letters",
            is_low_confidence=True,
        )
    share = match.share
    reason = f"{share:.0%} of the claim's letter sequences are in the passage; its language is not one the judge knows."
    label = Label.SUPPORTED if share >= _LETTERS_THRESHOLD else Label.UNSUPPORTED
    if label is Label.UNSUPPORTED and share >= _LETTERS_PARTLY:
        label = Label.PARTLY_SUPPORTED
    if match.missing_figure is not None:
        share, reason = min(share, 0.3), f'The passage does not give the figure "{match.missing_figure}".'
        label = Label.PARTLY_SUPPORTED if label is Label.SUPPORTED else label
    text = passages[match.passage].text.text
    return Verdict(
        label=label,
        score=round(share, 4),
        reason=reason,
        rule="letters" if match.missing_figure is None else "number",
        evidence=text[match.sentence.start : match.sentence.end],
        evidence_passage_id=passage_ids[match.passage],
        is_low_confidence=True,
    )
