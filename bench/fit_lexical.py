"""Fit the lexical judge's model on a folder of human-labelled rows and write it as data.

    python bench/fit_lexical.py --data FOLDER --out evaluators/citespan/evaluators/judges/lexical/model.json

Two things are learnt: how much common words count (their document frequency), and the weights of the named
features (logistic regression; inside each set supported and other rows weigh the same, and a set weighs by the
root of its size). The numbers printed are out of fold, so that they say what to expect on other rows: by rows
(five folds) and by sets (each set judged by a model that never saw it). Calibration and thresholds are taken
from the out-of-fold scores.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rows import RAG_SETS, Row, read_sets
from sklearn.linear_model import LogisticRegression

from citespan.evaluators.judges.lexical.examine import examine
from citespan.evaluators.judges.lexical.features import FEATURES
from citespan.evaluators.judges.lexical.rarity import Rarity
from citespan.evaluators.judges.lexical.readings import read_passage
from citespan.evaluators.judges.lexical.words import read_words
from citespan.evaluators.verdicts import Label

Numbers = NDArray[np.float64]

COMMON = 15
"""Rows in which a word must occur to have a weight of its own; rarer ones all weigh the same."""

STRENGTH = 0.002
"""Inverse regularisation of the regression."""

OTHER_SETS = 0.2
"""Weight of a set that is not about cited passages, beside one that is."""

FREER = {"coded": 6.0}
"""Features that say what kind of claim it is, and how much less than others they are regularised."""

FOLDS = 5
SEEDS = 4
"""Different splits over which out-of-fold scores are averaged."""

RULES_ONLY = ("strengthening", "qualifier", "entity")
"""Findings that keep a claim from being supported but are no feature of the model."""


def main() -> None:
    """Fit, print what to expect, write the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of JSONL files, one per set")
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    arguments = parser.parse_args()
    sets = read_sets(arguments.data)
    table = Table(sets, word_weights(sets))
    by_rows = np.mean([table.out_of_fold(table.folds(seed)) for seed in range(SEEDS)], axis=0)
    by_sets = table.out_of_fold(table.set_names)
    calibration = table.calibrate(by_rows)
    cut = table.best_cut(by_rows)
    print(
        f"out of fold, by rows: macro balanced accuracy {table.macro(by_rows, cut):.3f} at log odds {cut:.2f}"
    )
    print(f"out of fold, by sets: macro balanced accuracy {table.macro(by_sets, cut):.3f}")
    print(f"true claims of these sets that pass: {table.passed(by_rows, cut):.3f}")
    print(f"share of those passed by the model that the rules let pass: {table.kept(by_rows, cut):.3f}")
    model = table.model(cut, calibration, table.best_partly_cut(by_rows, cut, calibration))
    arguments.out.write_text(json.dumps(model, indent=1, ensure_ascii=False) + "\n", "utf-8")


def word_weights(sets: dict[str, list[Row]]) -> Rarity:
    """Return the log inverse share of rows that a word occurs in, for words of at least `COMMON` rows."""
    counts: Counter[str] = Counter()
    rows = [row for rows in sets.values() for row in rows]
    for row in rows:
        read = read_words(" ".join(row.passages)[:3000] + " " + row.claim)
        counts.update({key for key in read.keys if key and key[0] != "#"})
    weights = {
        key: round(math.log((len(rows) + 1) / (count + 0.5)), 2)
        for key, count in sorted(counts.items())
        if count >= COMMON
    }
    return Rarity(weights, round(math.log((len(rows) + 1) / (COMMON / 2)), 2))


class Table:
    """Features and labels of every row that shares a word with its passages."""

    def __init__(self, sets: dict[str, list[Row]], rarity: Rarity) -> None:
        self.rarity = rarity
        self.names = list(FEATURES)
        values: list[list[float]] = []
        labels: list[Label] = []
        names: list[str] = []
        ids: list[str] = []
        faults: list[bool] = []
        for name, rows in sets.items():
            for row in rows:
                found = examine(
                    row.claim, [read_passage(text) for text in row.passages], row.question, rarity
                )
                if found is None:
                    continue
                values.append([found.features[feature] for feature in self.names])
                labels.append(row.label)
                names.append(name)
                ids.append(row.id)
                faults.append(bool(found.findings))
        self.values: Numbers = np.array(values)
        self.labels = np.array([label.value for label in labels])
        self.supported = self.labels == Label.SUPPORTED.value
        self.set_names = np.array(names)
        self.ids = ids
        self.faulted = np.array(faults)
        self.is_rag = np.isin(self.set_names, RAG_SETS)

    def folds(self, seed: int) -> NDArray[np.str_]:
        """Return the fold of every row, by a hash of set and id."""
        keys = (f"{seed}{name}{row}" for name, row in zip(self.set_names, self.ids, strict=True))
        return np.array([str(int(hashlib.sha256(key.encode()).hexdigest(), 16) % FOLDS) for key in keys])

    def out_of_fold(self, folds: NDArray[np.str_]) -> Numbers:
        """Return log odds, each row's by a model fitted on the other folds."""
        odds = np.zeros(len(self.supported))
        for fold in np.unique(folds):
            held = folds == fold
            mean, scale, weights, intercept = self._fit(~held)
            odds[held] = (self.values[held] - mean) / scale @ weights + intercept
        return odds

    def _fit(self, rows: NDArray[np.bool_]) -> tuple[Numbers, Numbers, Numbers, float]:
        sample = self._sample_weights(rows)[rows]
        mean = np.average(self.values[rows], axis=0, weights=sample)
        scale = np.sqrt(np.average((self.values[rows] - mean) ** 2, axis=0, weights=sample)) + 1e-6
        scale /= np.array([FREER.get(name, 1.0) for name in self.names])
        regression = LogisticRegression(C=STRENGTH, max_iter=1000)
        regression.fit((self.values[rows] - mean) / scale, self.supported[rows], sample_weight=sample)
        return mean, scale, regression.coef_[0], float(regression.intercept_[0])

    def _sample_weights(self, rows: NDArray[np.bool_]) -> Numbers:
        weights = np.zeros(len(self.supported))
        for name in np.unique(self.set_names):
            for supported in (True, False):
                chosen = rows & (self.set_names == name) & (self.supported == supported)
                size = chosen.sum()
                if size:
                    share = 1.0 if name in RAG_SETS else OTHER_SETS
                    weights[chosen] = share * 10 * math.sqrt(min(size, 150)) / size
        return weights

    def macro(self, odds: Numbers, cut: float) -> float:
        """Return the mean over the RAG sets of balanced accuracy, a finding overruling the model."""
        passed = (odds >= cut) & ~self.faulted
        shares: list[float] = []
        for name in RAG_SETS:
            chosen = self.set_names == name
            if chosen.any():
                right = passed[chosen & self.supported].mean(), 1 - passed[chosen & ~self.supported].mean()
                shares.append(float(np.mean(right)))
        return float(np.mean(shares))

    def passed(self, odds: Numbers, cut: float) -> float:
        """Return the share of the RAG sets' true claims that pass."""
        true = self.supported & self.is_rag
        return float(((odds >= cut) & ~self.faulted)[true].mean())

    def kept(self, odds: Numbers, cut: float) -> float:
        """Return the share of the RAG sets' true claims passed by the model that no finding overrules."""
        passed = (odds >= cut) & self.supported & self.is_rag
        return float((~self.faulted[passed]).mean())

    def best_cut(self, odds: Numbers) -> float:
        """Return the middle of the log odds at which the macro figure is within .003 of its best."""
        cuts = np.linspace(-1.2, 0.6, 73)
        figures = np.array([self.macro(odds, cut) for cut in cuts])
        return float(np.median(cuts[figures >= figures.max() - 0.003]))

    def calibrate(self, odds: Numbers) -> list[float]:
        """Return slope, intercept, and what a finding adds to both, from out-of-fold log odds."""
        faulted = self.faulted.astype(float)
        inputs = np.column_stack([odds, faulted * odds, faulted])
        weights = np.where(self.is_rag, 1.0, OTHER_SETS)
        regression = LogisticRegression(C=100.0).fit(inputs, self.supported, sample_weight=weights)
        slope, fault_slope, fault = (float(number) for number in regression.coef_[0])
        return [slope, float(regression.intercept_[0]), fault_slope, fault]

    def best_partly_cut(self, odds: Numbers, cut: float, calibration: list[float]) -> float:
        """Return the log odds from which "partly" is the better word, where sets know partly and unsupported."""
        best, best_cut = -1.0, cut
        unclear = (odds < cut) & ~self.faulted
        is_partly = self.labels == Label.PARTLY_SUPPORTED.value
        with_both = [
            name
            for name in np.unique(self.set_names)
            if (is_partly & (self.set_names == name)).any()
            and ((self.labels == Label.UNSUPPORTED.value) & (self.set_names == name)).any()
        ]
        for candidate in np.linspace(cut - 2.0, cut, 41):
            figures: list[float] = []
            for name in with_both:
                chosen = unclear & (self.set_names == name)
                said = odds >= candidate
                partly, rest = chosen & is_partly, chosen & (self.labels == Label.UNSUPPORTED.value)
                if partly.any() and rest.any():
                    figures.append(float(said[partly].mean() + 1 - said[rest].mean()) / 2)
            if figures and np.mean(figures) > best:
                best, best_cut = float(np.mean(figures)), float(candidate)
        return best_cut

    def model(self, cut: float, calibration: list[float], partly_cut: float) -> dict[str, object]:
        """Return the model fitted on all rows, as the data that the judge reads."""
        mean, scale, weights, intercept = self._fit(np.ones(len(self.supported), dtype=bool))
        slope, offset, fault_slope, fault = calibration
        model: dict[str, object] = {
            "intercept": round(intercept, 5),
            "features": {
                name: {"mean": round(float(m), 5), "scale": round(float(s), 5), "weight": round(float(w), 5)}
                for name, m, s, w in zip(self.names, mean, scale, weights, strict=True)
            },
            "calibration": [round(slope, 4), round(offset, 4)],
            "fault": [round(fault_slope, 4), round(fault, 4)],
            "threshold": round(_probability(slope * cut + offset), 4),
            "partly_threshold": round(_probability(slope * partly_cut + offset), 4),
            "rarest": self.rarity.rarest,
            "rarity": dict(self.rarity.weights),
        }
        digest = hashlib.sha256(json.dumps(model, sort_keys=True).encode()).hexdigest()[:12]
        return {"version": digest, **model}


def _probability(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds))


if __name__ == "__main__":
    main()
