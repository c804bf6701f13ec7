"""Read runs that the app recorded with `citespan.tracer`."""

from __future__ import annotations

from citespan.evaluators.runs import Run
from citespan.evaluators.sources.source import Trace

__all__ = ["read_explicit_runs"]


def read_explicit_runs(trace: Trace) -> tuple[Run, ...]:
    """Return the runs whose spans carry a `citespan.run` record, in start order."""
    return ()
