"""The protocol every engine keeps, and what passes between it and whoever chooses the traces.

Contract:

- A batch is pulled only when there is room to work on it: whoever gives batches decides at that moment whether a budget
  or a stop ends the pass.
- There is one result per batch, in the order of the batches.
- A batch can be worked on twice, wholly or in part, as after a crash: what is written is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from citespan.evaluators.errors import ServerError
from citespan.evaluators.worker import EvaluatedRun, PassSummary

__all__ = ["Batch", "BatchResult", "Engine"]


@dataclass(frozen=True, slots=True)
class Batch:
    """A few traces to evaluate and write together."""

    notes: Mapping[str, Mapping[str, object]]
    """By trace id, what its `cite_state` is to keep beside the mark, such as why it was taken."""

    trusts_phoenix: bool = False
    """Whether Phoenix has taken other traces of this pass, so that a failure is rather the trace's doing."""

    @property
    def trace_ids(self) -> tuple[str, ...]:
        """The traces, in order."""
        return tuple(self.notes)


@dataclass(slots=True)
class BatchResult:
    """What became of the traces of a batch; one that is named nowhere here was not tried."""

    summary: PassSummary = field(default_factory=PassSummary)
    """What was evaluated and written; holds the traces that failed, with the reasons."""

    runs: list[EvaluatedRun] = field(default_factory=list[EvaluatedRun])
    """Every run evaluated whose trace did not fail, in order of the traces."""

    finished: dict[str, int] = field(default_factory=dict[str, int])
    """Traces that are done, with the number, in order of arrival, of the last span that was read of each."""

    skipped: dict[str, str] = field(default_factory=dict[str, str])
    """Traces that there was nothing to do for, with the reason: `evaluator_trace`, `trace_deleted`."""

    suspects: dict[str, ServerError] = field(default_factory=dict[str, ServerError])
    """Traces that Phoenix failed on, alone; it may be Phoenix that is at fault."""

    error: ServerError | None = None
    """Why the batch was broken off."""

    has_written: bool = False
    """Whether Phoenix took anything, so that it is not Phoenix that fails on everything."""

    phoenix_waits: int = 0
    """How often claim spans waited because Phoenix was full or behind."""

    visible_seconds: float = 0.0
    """How long the last claim spans took from POST to visible; 0 if none were sent."""


class Engine(Protocol):
    """Evaluates batches of traces of one project; see the module's contract."""

    def evaluate(self, batches: Iterable[Batch]) -> Iterator[BatchResult]:
        """Yield what became of each batch, in order."""
        ...
