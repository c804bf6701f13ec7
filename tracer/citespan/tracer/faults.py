"""Errors inside the tracer: less is recorded, the host program goes on.

Each kind (where and which exception) is logged once, so that a broken integration costs one line and not a
full disk. Under pytest, or with `CITESPAN_INTERNAL_ERRORS=raise`, the error is raised instead.
"""

from __future__ import annotations

import logging

from citespan.tracer.settings import raises_internal_errors

__all__ = ["forget_faults", "log_fault", "warn_once"]

logger = logging.getLogger("citespan.tracer")

_logged: set[str] = set()


def log_fault(where: str, error: Exception) -> None:
    """Log an error of the tracer, the first time it happens there.

    Raises:
        Exception: `error` itself, where internal errors are to be raised.
    """
    if raises_internal_errors():
        raise error
    kind = f"{where}:{type(error).__name__}"
    if kind not in _logged:
        _logged.add(kind)
        logger.error("%s failed: recorded less, the program goes on (logged once)", where, exc_info=error)


def warn_once(kind: str, message: str) -> None:
    """Log a warning, the first time for its kind."""
    if kind not in _logged:
        _logged.add(kind)
        logger.warning("%s (logged once)", message)


def forget_faults() -> None:
    """Let every kind be logged again; for tests."""
    _logged.clear()
