"""Identities of evaluations: what was judged, how, and under which span ids it is shown."""

from __future__ import annotations

import hashlib
import json

from citespan.evaluators.judges.judge import JudgeCard
from citespan.evaluators.measures import MEASURES_VERSION
from citespan.evaluators.options import EvaluateOptions
from citespan.evaluators.runs import Run
from citespan.tracer.text import text_hash

__all__ = ["claim_span_id", "generation", "run_fingerprint"]

DECOMPOSER_VERSION = "1"
"""Raised with every change that can split an answer differently."""

RESOLVER_VERSION = "1"
"""Raised with every change that can find, resolve or attach a citation differently."""


def _digest(content: object) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _read(run: Run) -> dict[str, object]:
    """Return what both identities share: the answer, what was shown, and how it is split and resolved."""
    return {
        "answer": None if run.answer is None else text_hash(run.answer),
        "passages": [[p.id, p.label, p.text_sha256, p.text is not None, p.is_cut] for p in run.passages],
        "citations": [[c.passage_id, c.start, c.end, c.origin] for c in run.citations],
        "lost": run.passages_lost,
        "decomposer": DECOMPOSER_VERSION,
        "resolver": RESOLVER_VERSION,
    }


def generation(run: Run, options: EvaluateOptions) -> str:
    """Return the 16 hex digits that name this reading of the answer: the same claims get the same span ids.

    It covers answer, passages shown, recorded citations, splitting, citation scope, resolver and decomposer
    versions; not the judge.
    """
    scope = {"splitting": options.splitting, "citation_scope": options.citation_scope}
    return _digest({**_read(run), **scope})[:16]


def run_fingerprint(run: Run, judge: JudgeCard, options: EvaluateOptions) -> str:
    """Return the 64 hex digits that change whenever the evaluation of `run` could.

    sha256 of canonical JSON of question, answer, passages, citations, versions, options and judge fingerprint.
    """
    return _digest(
        {
            **_read(run),
            "question": run.question,
            "state": run.state,
            "measures": MEASURES_VERSION,
            "options": {
                "splitting": options.splitting,
                "citation_scope": options.citation_scope,
                "label_policy": options.label_policy,
                "citation_sets": options.citation_sets,
                "other_passages": options.other_passages,
            },
            "judge": judge.fingerprint,
        }
    )


def claim_span_id(trace_id: str, answer_span_id: str, generation: str, claim_index: int) -> str:
    """Return the claim span's id: the first 8 bytes, as hex, of sha256 over where it belongs."""
    content = f"{trace_id}:{answer_span_id}:{generation}:{claim_index}"
    return hashlib.sha256(content.encode()).hexdigest()[:16]
