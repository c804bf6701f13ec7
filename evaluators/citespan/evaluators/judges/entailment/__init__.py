"""The entailment judge: a sequence classifier that runs on this machine."""

from __future__ import annotations

from citespan.evaluators.judges.entailment.folder import EntailmentOptions, load_entailment_judge
from citespan.evaluators.judges.entailment.judge import EntailmentJudge
from citespan.evaluators.judges.entailment.modelcard import ModelCard

__all__ = ["EntailmentJudge", "EntailmentOptions", "ModelCard", "load_entailment_judge"]
