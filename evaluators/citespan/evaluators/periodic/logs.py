"""The worker's log: one JSON object a line on stderr, for machines to read."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Protocol, TextIO

__all__ = ["JsonLog", "Log", "no_log"]


class Log(Protocol):
    """Takes note of an event."""

    def __call__(
        self, event: str, fields: Mapping[str, object] | None = None, /, *, level: str = "info"
    ) -> None:
        """Note an event; `fields` are JSON values, and never texts of a run."""
        ...


def no_log(event: str, fields: Mapping[str, object] | None = None, /, *, level: str = "info") -> None:
    """Note nothing."""


class JsonLog:
    """Writes `{"time": ..., "level": ..., "event": ..., ...}`."""

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        always: Mapping[str, object] | None = None,
    ) -> None:
        """Prepare to write; `always` are fields of every line."""
        self._stream = stream or sys.stderr
        self._now = now
        self._always = dict(always or {})
        self._lock = threading.Lock()

    def __call__(
        self, event: str, fields: Mapping[str, object] | None = None, /, *, level: str = "info"
    ) -> None:
        """Write one line; a log that cannot be written stops nothing."""
        moment = self._now().isoformat(timespec="milliseconds")
        line = {"time": moment, "level": level, "event": event, **self._always, **(fields or {})}
        text = json.dumps(line, default=str)
        try:
            with self._lock:
                self._stream.write(f"{text}\n")
                self._stream.flush()
        except (OSError, ValueError):
            return
