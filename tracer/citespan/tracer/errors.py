"""Errors of the tracer.

::

    CitespanTracerError
    ├── ConfigurationError   wrong arguments to configure(); raised to the caller
    └── RecordError          a recorded value cannot be read back

Nothing else leaves the tracer: inside a host program a failure records less, logs once and goes on.
"""

from __future__ import annotations

__all__ = ["CitespanTracerError", "ConfigurationError", "RecordError"]


class CitespanTracerError(Exception):
    """Root of every error the tracer defines."""


class ConfigurationError(CitespanTracerError, ValueError):
    """`configure()` was given something that cannot work."""


class RecordError(CitespanTracerError, ValueError):
    """A recorded attribute cannot be read back.

    Attributes:
        reason: Machine-readable reason, for example `unknown_schema:7` or `invalid_json`.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
