"""The embedded judge: no network, no weights, no key."""

from __future__ import annotations

from collections.abc import Sequence

from citespan.evaluators.judges.judge import JudgeCard, JudgeRequest
from citespan.evaluators.judges.lexical.alignment import Aligned, align
from citespan.evaluators.judges.lexical.findings import Finding, find_all
from citespan.evaluators.judges.lexical.windows import Search, Window, read_claim, read_passage, search
from citespan.evaluators.verdicts import Label, Verdict

__all__ = ["LexicalJudge"]

_LIGHT = dict.fromkeys(
    [
        "use",
        "make",
        "includ",
        "provid",
        "offer",
        "say",
        "state",
        "call",
        "know",
        "also",
        "get",
        "take",
        "give",
        "contain",
        "new",
        "year",
        "time",
    ],
    0.3,
)


class LexicalJudge:
    """Judges by the words, numbers and signs that claim and passage share."""

    @property
    def card(self) -> JudgeCard:
        """What the judge is."""
        return JudgeCard(name="lexical", version="1")

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Return one verdict per request, in the same order."""
        return [self._judge_one(request) for request in requests]

    def _judge_one(self, request: JudgeRequest) -> Verdict:
        claim = read_claim(request.claim, _LIGHT, rarest=1.0)
        found = search(claim, [read_passage(passage.text or "") for passage in request.passages])
        candidates = _candidates(found)
        if not candidates:
            return Verdict(
                label=Label.UNSUPPORTED,
                score=0.02,
                reason="The passage has none of the claim's words.",
                rule="coverage",
            )
        weighed = [(aligned, find_all(aligned, found)) for aligned in (align(found, w) for w in candidates)]
        aligned, findings = min(weighed, key=lambda pair: (len(pair[1]), -pair[0].window.coverage))
        score = aligned.window.coverage
        if findings:
            score = min(score, 0.4)
        label, rule, reason = _decide(aligned, findings)
        sentence = found.passages[aligned.window.passage].text
        single = next(w for w in found.singles if w.passage == aligned.window.passage)
        place = sentence.sentences[
            single.first if aligned.window.last - aligned.window.first > 1 else aligned.window.first
        ]
        return Verdict(
            label=label,
            score=score,
            reason=reason,
            rule=rule,
            evidence=None if label is Label.UNSUPPORTED else sentence.text[place.start : place.end],
            evidence_passage_id=request.passages[aligned.window.passage].id,
            is_low_confidence=label is Label.CONTRADICTED,
        )


def _candidates(found: Search) -> list[Window]:
    if not found.singles:
        return []
    best = found.singles[0].coverage
    chosen = [window for window in found.singles[:3] if window.coverage >= 0.85 * best]
    widest = found.best[2]
    if widest is not None and widest.coverage > best + 0.1:
        chosen = [widest]
    return chosen


def _decide(aligned: Aligned, findings: list[Finding]) -> tuple[Label, str, str]:
    coverage = aligned.window.coverage
    clash = next((finding for finding in findings if finding.is_clash), None)
    if clash is not None and coverage >= 0.45:
        return Label.CONTRADICTED, clash.rule, clash.reason
    partial = next((finding for finding in findings if finding.is_partial), None)
    if partial is not None and coverage >= 0.5 and all(finding.is_partial for finding in findings):
        return Label.PARTLY_SUPPORTED, partial.rule, partial.reason
    if findings:
        label = Label.PARTLY_SUPPORTED if coverage >= 0.6 else Label.UNSUPPORTED
        return label, findings[0].rule, findings[0].reason
    missing = _missing(aligned)
    if coverage >= 0.7:
        return Label.SUPPORTED, "coverage", "The passage says this in its own words."
    reason = f"The passage does not mention {missing}."
    return (Label.PARTLY_SUPPORTED if coverage >= 0.55 else Label.UNSUPPORTED), "coverage", reason


def _missing(aligned: Aligned) -> str:
    read = aligned.claim_text
    words = [
        f'"{read.shown(index)}"' for index, key in enumerate(read.keys) if key and index not in aligned.there
    ][:3]
    return " or ".join(words) if words else "it so"
