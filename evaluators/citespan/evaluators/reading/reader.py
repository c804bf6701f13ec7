"""Read the runs of a trace: what the app said explicitly, else what can be inferred."""

from __future__ import annotations

from citespan.evaluators.reading.explicit import read_explicit_runs
from citespan.evaluators.reading.inference import infer_run
from citespan.evaluators.reading.rules import ReadingRules
from citespan.evaluators.runs import Run
from citespan.evaluators.sources.source import Trace

__all__ = ["read_runs"]


def read_runs(trace: Trace, rules: ReadingRules | None = None) -> tuple[Run, ...]:
    """Return the runs of `trace`: every explicit one, else exactly one inferred run or state.

    Args:
        trace: The trace.
        rules: Where an app keeps its answer and passages, if a settings file says so.
    """
    return read_explicit_runs(trace) or (infer_run(trace, rules),)
