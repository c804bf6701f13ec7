"""Add spans to traces and know when Phoenix has stored them: it only queues what it is sent."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from citespan.evaluators.phoenix.batches import BatchSender
from citespan.evaluators.phoenix.client import PhoenixClient, span_id_of
from citespan.evaluators.phoenix.records import Project

__all__ = ["SpanSink", "SpanWriter"]

_IDS_PER_REQUEST = 100
_FIRST_WAIT_SECONDS = 0.05
_LONGEST_WAIT_SECONDS = 1.0
_LONGEST_WAIT_FOR_LATE_SECONDS = 5.0


class SpanSink(Protocol):
    """Writes spans into one project; `SpanWriter` is the plain one."""

    def add(self, spans: Sequence[Mapping[str, object]]) -> dict[str, str]:
        """Send spans and return, by span id, why Phoenix does not take one; sending one again changes nothing."""
        ...

    def wait(self, span_ids: Sequence[str]) -> set[str]:
        """Wait until Phoenix shows these spans and return those that it does not show in time."""
        ...

    def visible(self, span_ids: Sequence[str]) -> set[str]:
        """Return those of these spans that Phoenix has stored in the project."""
        ...

    def take_back(self, span_ids: Sequence[str]) -> None:
        """Delete spans that were sent, those too that Phoenix stores only now."""
        ...


class SpanWriter:
    """Writes spans into one project."""

    def __init__(
        self,
        client: PhoenixClient,
        project: Project,
        *,
        timeout_seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Prepare to write.

        Args:
            client: The server.
            project: The project.
            timeout_seconds: How long stored spans may take to become visible.
            clock: Monotonic seconds.
            sleep: Waits between two looks.
        """
        self._client = client
        self._project = project
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._sleep = sleep

    def add(self, spans: Sequence[Mapping[str, object]]) -> dict[str, str]:
        """Send spans and return, by span id, why Phoenix does not take one; those it has already stay as they are."""
        sender = BatchSender[Mapping[str, object]](
            lambda batch: self._client.add_spans(self._project, batch), lambda span: len(json.dumps(span))
        )
        return {span_id_of(span): f"span_refused: {error}" for span, error in sender.send(spans)}

    def wait(self, span_ids: Sequence[str]) -> set[str]:
        """Wait until Phoenix shows these spans and return those that it does not show in time."""
        deadline = self._clock() + self._timeout_seconds
        missing, pause = set(span_ids), _FIRST_WAIT_SECONDS
        while missing:
            missing -= self.visible(sorted(missing))
            if not missing or self._clock() >= deadline:
                break
            self._sleep(pause)
            pause = min(pause * 2, _LONGEST_WAIT_SECONDS)
        return missing

    def visible(self, span_ids: Sequence[str]) -> set[str]:
        """Return those of these spans that Phoenix has stored in the project."""
        found: set[str] = set()
        for start in range(0, len(span_ids), _IDS_PER_REQUEST):
            batch = span_ids[start : start + _IDS_PER_REQUEST]
            for page in self._client.span_pages(self._project, span_ids=batch):
                found.update(span_id_of(data) for data in page.spans)
        return found

    def take_back(self, span_ids: Sequence[str]) -> None:
        """Delete spans that were sent, those too that Phoenix stores only now.

        Whether any is still to come cannot be asked, so this looks for them as long as they may take to become visible.
        """
        deadline = self._clock() + self._timeout_seconds
        left, pause = list(span_ids), _FIRST_WAIT_SECONDS
        while left := [span_id for span_id in left if not self._client.delete_span(span_id)]:
            if self._clock() >= deadline:
                return
            self._sleep(pause)
            pause = min(pause * 2, _LONGEST_WAIT_FOR_LATE_SECONDS)
