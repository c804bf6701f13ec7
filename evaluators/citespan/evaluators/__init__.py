"""Judge whether cited passages entail the claims that cite them."""

from __future__ import annotations

from citespan.evaluators.evaluate import evaluate, evaluate_all
from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.options import EvaluateOptions
from citespan.evaluators.runs import Run, RunState
from citespan.evaluators.verdicts import Label, Verdict

__all__ = ["EvaluateOptions", "Evaluation", "Label", "Run", "RunState", "Verdict", "evaluate", "evaluate_all"]
