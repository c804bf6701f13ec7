"""What a Ray actor keeps and does: a process of its own with a client, a judge and an annotator, each made once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

from pydantic import SecretStr

from citespan.evaluators.engines.engine import Batch, BatchResult
from citespan.evaluators.engines.evaluator import BatchEvaluator
from citespan.evaluators.judges.chat.clock import SYSTEM_CLOCK
from citespan.evaluators.judges.judge import Judge, JudgeCard, JudgeRequest
from citespan.evaluators.judges.notes import notes_of
from citespan.evaluators.periodic.pacing import PacedSpans
from citespan.evaluators.periodic.plan import Plan
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.records import Project
from citespan.evaluators.phoenix.span_writer import SpanWriter
from citespan.evaluators.settings import set_missing_variables
from citespan.evaluators.verdicts import Verdict

__all__ = ["DeskOrder", "RayDesk"]


@dataclass(frozen=True, slots=True)
class DeskOrder:
    """What an actor is told when it starts; it travels to the actor's process, and is never logged."""

    connection: Connection
    """The server."""

    plan: Plan
    """How runs are read, judged and shown."""

    open_judge: Callable[[], AbstractContextManager[Judge]]
    """Makes the judge in the actor's process."""

    variables: Mapping[str, SecretStr]
    """Environment variables that the judge reads, such as its key."""

    spans_per_second: float | None
    """Most claim spans that this actor sends a second."""


class RayDesk:
    """The actor: its methods are called one after the other, in its own process."""

    def __init__(self, order: DeskOrder) -> None:
        self._order = order
        self._held = ExitStack()
        self._client: PhoenixClient | None = None
        self._judge: Judge | None = None
        self._project: Project | None = None
        self._evaluator: BatchEvaluator | None = None

    def card(self) -> JudgeCard:
        """Return what the judge is.

        Raises:
            UsageError: There is no such judge.
        """
        return self._open_judge().card

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Return one verdict per request, in the same order."""
        return self._open_judge().judge(requests)

    def notes(self) -> tuple[str, ...]:
        """Return what the judge says of its work so far."""
        return notes_of(self._open_judge())

    def process_id(self) -> int:
        """Return the number of the actor's process on its machine."""
        return os.getpid()

    def evaluate(self, project: Project, batch: Batch) -> BatchResult:
        """Evaluate and write a batch of a project."""
        if self._evaluator is None or self._project != project:
            self._project, self._evaluator = project, self._evaluator_of(project)
        return self._evaluator.evaluate(batch)

    def _open_judge(self) -> Judge:
        """Return the judge; an actor that Ray has started anew makes it again."""
        if self._judge is None:
            variables = {name: value.get_secret_value() for name, value in self._order.variables.items()}
            set_missing_variables(variables)
            self._judge = self._held.enter_context(self._order.open_judge())
        return self._judge

    def _evaluator_of(self, project: Project) -> BatchEvaluator:
        order = self._order
        if self._client is None:
            self._client = self._held.enter_context(PhoenixClient(order.connection))
        spans = PacedSpans(
            SpanWriter(self._client, project), per_second=order.spans_per_second, clock=SYSTEM_CLOCK
        )
        return BatchEvaluator(self._client, project, order.plan, self._open_judge(), spans)
