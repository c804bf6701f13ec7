"""What the model weighs: named figures about how a claim lies in its passages.

None is about the passage alone: its length tells which collection a row comes from, not whether it supports.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from citespan.evaluators.judges.lexical.alignment import Aligned
from citespan.evaluators.judges.lexical.finding import Finding
from citespan.evaluators.judges.lexical.name_rule import place_names
from citespan.evaluators.judges.lexical.windows import Search

__all__ = ["FEATURES", "describe"]

FEATURES = {
    "cov1": "weighted share of the claim's words in the best sentence",
    "cov3": "the same in the best three sentences",
    "cov_all": "the same in all passages",
    "exact3": "cov3 without synonyms and words of the same family",
    "exact_all": "cov_all without them",
    "plain3": "cov3 of the words that are neither names nor figures",
    "tail_all": "cov_all of the claim's last two words, where a sentence puts what is new",
    "new3": "cov3 of the words that are not in the question",
    "new_all": "cov_all of those words",
    "rare3_all": "share of the claim's three rarest words that are found",
    "rare6_3": "share of its six rarest words in the best three sentences",
    "rarest_missing": "weight of the rarest word that is nowhere",
    "local3": "cov3 with less weight for words that most sentences of the passages have",
    "tight": "weighted share found within a stretch of twice the claim's length",
    "clause_mean": "weighted share of each clause in its own best sentence, averaged",
    "clause_min": "the least of those shares",
    "lcs": "longest run of the claim's words in the same order in the window, per word",
    "bigrams": "share of neighbouring words that are neighbours in the window",
    "copied2": "share of word pairs, grammar included, that occur literally",
    "letters": "share of the claim's four-letter stretches in the window",
    "longest_gap": "longest run of words that the window lacks, per word",
    "window_used": "share of the window's words that the claim takes up",
    "name_bound": "share of the claim's names that stand by their neighbours in the window",
    "name_absent": "names that are nowhere",
    "name_away": "names that are elsewhere",
    "name_far": "names in the window but away from their neighbours",
    "question3": "share of the question's words in the window; -1 without a question",
    "personal": "share of the claim's words that speak of speaker or listener",
    "asks": "whether the claim holds a question mark",
    "coded": "share of the claim's words that are codes: capitals inside, or letters with figures",
    "number": "findings of the rule `number`",
    "negation": "findings of the rule `negation`",
    "antonym": "findings of the rule `antonym`",
}
"""Every feature with what it says; the model file lists the ones it uses by these names."""

_PERSONAL = frozenset(
    ["i", "i'm", "i've", "i'd", "i'll", "me", "my", "mine", "myself", "you", "your", "you're", "yours"]
)
_CLAUSE_WORDS = frozenset(
    ["and", "but", "while", "which", "who", "because", "although", "after", "before", "when"]
)
_CLAUSE_MARKS = frozenset(",;:().!?—–")
_NONE = -0.1
"""Value of a share over no words."""


@dataclass(slots=True)
class _Scene:
    """A claim beside its window, with what several features need."""

    found: Search
    aligned: Aligned
    content: list[int]
    """Word indexes of the claim's content words."""

    numbers: dict[str, int]
    """The claim's keys by their index."""

    wide: int
    """Bit mask of the keys in the best three sentences."""

    def share(self, indexes: Iterable[int], mask: int) -> float:
        """Return the weighted share of some of the claim's words that are in a bit mask."""
        claim = self.found.claim
        total = hit = 0.0
        for index in indexes:
            number = self.numbers[claim.text.keys[index]]
            total += claim.weights[number]
            if mask >> number & 1:
                hit += claim.weights[number]
        return hit / total if total else _NONE


def describe(
    found: Search, aligned: Aligned, findings: Sequence[Finding], question: frozenset[str]
) -> dict[str, float]:
    """Return the features of a claim laid beside a window.

    Args:
        found: The search of the passages.
        aligned: The claim beside the window.
        findings: What the rules found there.
        question: Content keys of the run's question.
    """
    claim = found.claim
    scene = _Scene(
        found,
        aligned,
        [index for index, key in enumerate(claim.text.keys) if key],
        {key: number for number, key in enumerate(claim.keys)},
        found.best[2].loose if found.best[2] else 0,
    )
    return {
        **_coverage(scene, question),
        **_rarity(scene),
        **_clauses(scene),
        **_order(scene),
        **_letters(scene),
        **_names(scene),
        **_tone(scene, question),
        **{rule: float(sum(f.rule == rule for f in findings)) for rule in ("number", "negation", "antonym")},
    }


def _coverage(scene: _Scene, question: frozenset[str]) -> dict[str, float]:
    found, keys = scene.found, scene.found.claim.text.keys
    one, wide = found.best[0], found.best[2]
    exact = wide.exact if wide else 0
    names = scene.aligned.name_words
    plain = [index for index in scene.content if index not in names and keys[index][0] != "#"]
    cov3, cov_all = wide.coverage if wide else 0.0, found.coverage(found.exact, found.loose)
    new = [index for index in scene.content if keys[index] not in question] if question else []
    return {
        "cov1": one.coverage if one else 0.0,
        "cov3": cov3,
        "cov_all": cov_all,
        "exact3": found.coverage(exact, exact),
        "exact_all": found.coverage(found.exact, found.exact),
        "plain3": scene.share(plain, scene.wide),
        "tail_all": scene.share(scene.content[-2:], found.loose),
        "new3": scene.share(new, scene.wide) if new else cov3,
        "new_all": scene.share(new, found.loose) if new else cov_all,
    }


def _rarity(scene: _Scene) -> dict[str, float]:
    claim, found = scene.found.claim, scene.found
    order = sorted(range(len(claim.keys)), key=lambda number: -claim.weights[number])
    three, six = order[:3], order[:6]
    missing = [weight for number, weight in enumerate(claim.weights) if not found.loose >> number & 1]
    return {
        "rare3_all": sum(found.loose >> number & 1 for number in three) / max(len(three), 1),
        "rare6_3": sum(scene.wide >> number & 1 for number in six) / max(len(six), 1),
        "rarest_missing": max(missing, default=0.0),
        "local3": _local_coverage(scene),
        "tight": _tight_coverage(scene),
    }


def _local_coverage(scene: _Scene) -> float:
    """Return cov3 with less weight for what a passage says all the time: its topic proves nothing."""
    claim, found = scene.found.claim, scene.found
    sentences = sum(len(passage.text.sentences) for passage in found.passages)
    counts = [0] * len(claim.keys)
    for masks in found.masks:
        for _, loose in masks.values():
            for number in range(len(counts)):
                counts[number] += loose >> number & 1
    total = hit = 0.0
    for number, weight in enumerate(claim.weights):
        local = weight * max(0.15, 1 - 1.5 * counts[number] / sentences) if sentences > 3 else weight
        total += local
        hit += local if scene.wide >> number & 1 else 0.0
    return hit / total if total else 0.0


def _tight_coverage(scene: _Scene) -> float:
    claim = scene.found.claim
    span = 2 * len(claim.text.words) + 10
    best = 0.0
    for hits in scene.found.hits:
        places = sorted(hits)
        counts: dict[int, int] = {}
        current, low = 0.0, 0
        for place in places:
            number = hits[place] if hits[place] >= 0 else -1 - hits[place]
            counts[number] = counts.get(number, 0) + 1
            if counts[number] == 1:
                current += claim.weights[number]
            while places[low] < place - span:
                left = hits[places[low]] if hits[places[low]] >= 0 else -1 - hits[places[low]]
                counts[left] -= 1
                if not counts[left]:
                    current -= claim.weights[left]
                low += 1
            best = max(best, current)
    return best / claim.total if claim.total else 0.0


def _clauses(scene: _Scene) -> dict[str, float]:
    claim = scene.found.claim
    sentences = {loose for masks in scene.found.masks for _, loose in masks.values()}
    shares: list[float] = []
    sizes: list[float] = []
    for clause in clauses_of(scene.aligned):
        mask = 0
        for index in clause:
            mask |= 1 << scene.numbers[claim.text.keys[index]]
        size = _weight(claim.weights, mask)
        best = max(
            (_weight(claim.weights, part) for part in {mask & loose for loose in sentences}), default=0.0
        )
        shares.append(best / size if size else 0.0)
        sizes.append(size)
    whole = sum(sizes)
    mean = sum(share * size for share, size in zip(shares, sizes, strict=True)) / whole if whole else 0.0
    return {"clause_mean": mean, "clause_min": min(shares, default=0.0)}


def clauses_of(aligned: Aligned) -> list[list[int]]:
    """Return the claim's content words clause by clause, as word indexes."""
    read = aligned.claim_text
    clauses: list[list[int]] = [[]]
    for index, key in enumerate(read.keys):
        if read.words[index] in _CLAUSE_WORDS:
            clauses.append([])
        if key:
            clauses[-1].append(index)
        if not _CLAUSE_MARKS.isdisjoint(read.gap(index)):
            clauses.append([])
    return [clause for clause in clauses if clause]


def _weight(weights: Sequence[float], mask: int) -> float:
    return sum(weight for number, weight in enumerate(weights) if mask >> number & 1)


def _order(scene: _Scene) -> dict[str, float]:
    there, content = scene.aligned.there, scene.content
    count = max(len(content), 1)
    places = [there[index] for index in content if index in there]
    near = sum(
        a in there and b in there and 0 < there[b] - there[a] <= 3 + b - a
        for a, b in itertools.pairwise(content)
    )
    keys = scene.aligned.passage_text.keys
    used = sum(1 for index in range(scene.aligned.first, scene.aligned.last) if keys[index])
    return {
        "lcs": _longest_rising(places) / count,
        "bigrams": near / max(len(content) - 1, 1),
        "longest_gap": _longest_gap(scene) / count,
        "window_used": len(places) / max(used, 1),
    }


def _longest_rising(places: Iterable[int]) -> int:
    ends: list[int] = []
    for place in places:
        at = bisect_left(ends, place)
        ends[at : at + 1] = [place]
    return len(ends)


def _longest_gap(scene: _Scene) -> int:
    longest = run = 0
    for index in scene.content:
        run = 0 if index in scene.aligned.there else run + 1
        longest = max(longest, run)
    return longest


def _letters(scene: _Scene) -> dict[str, float]:
    ours = scene.found.claim.text.words
    pairs = list(itertools.pairwise(ours))
    wanted = set(pairs)
    copied: set[tuple[str, str]] = set()
    for passage in scene.found.passages:
        words = passage.text.words
        copied |= wanted.intersection(itertools.pairwise(words))
    stretches = _stretches(ours)
    there = _stretches(scene.aligned.passage_text.words[scene.aligned.first : scene.aligned.last])
    return {
        "copied2": sum(pair in copied for pair in pairs) / len(pairs) if pairs else 0.0,
        "letters": len(stretches & there) / max(len(stretches), 1),
    }


def _stretches(words: Iterable[str]) -> set[str]:
    text = " " + " ".join(words)
    return {text[at : at + 4] for at in range(len(text) - 3)}


def _names(scene: _Scene) -> dict[str, float]:
    places = place_names(scene.aligned, scene.found)
    count = len(places)
    return {
        "name_bound": places.count("bound") / count if count else 1.0,
        "name_absent": float(places.count("absent")),
        "name_away": float(places.count("away")),
        "name_far": float(places.count("far")),
    }


def _tone(scene: _Scene, question: frozenset[str]) -> dict[str, float]:
    read, aligned = scene.found.claim.text, scene.aligned
    window = aligned.passage_text.keys[aligned.first : aligned.last]
    said = set(aligned.passage_text.words[aligned.first : aligned.last])
    personal = sum(word in _PERSONAL and word not in said for word in read.words)
    return {
        "question3": len(question.intersection(window)) / len(question) if question else -1.0,
        "personal": personal / max(len(read.words), 1),
        "asks": float("?" in read.text),
        "coded": sum(_is_code(read.shown(index)) for index in scene.content) / max(len(scene.content), 1),
    }


def _is_code(written: str) -> bool:
    """Return whether a word is written as a code: `ACE2`, `miR`, `53BP1`."""
    letters = written.lower() != written.upper()
    return letters and (any(sign.isdigit() for sign in written) or written[1:] != written[1:].lower())
