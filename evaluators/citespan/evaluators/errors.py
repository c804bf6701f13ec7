"""Errors of the evaluators.

::

    CitespanError
    ├── UsageError          wrong arguments or input; exit code 2
    │   └── InputError      a file or record that cannot be read as runs
    └── ServerError         a server could not be reached or refused; exit code 3
        ├── Unreachable     no connection, timeout, or a proxy in the way
        ├── Unauthorized    401 or 403
        ├── NotFound        404: project, trace or span
        ├── Refused         any other 4xx
        └── Unavailable     5xx, or a reply that is not what the API promises

A run that cannot be judged is never an error: it is a `RunState` or an `unjudged` verdict with a reason.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

__all__ = [
    "CitespanError",
    "InputError",
    "NotFound",
    "Refused",
    "ServerError",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
    "UsageError",
]


class CitespanError(Exception):
    """Root of every error the evaluators define; its text is one line a user can act on."""

    exit_code = 1


class UsageError(CitespanError):
    """Wrong arguments or input."""

    exit_code = 2


class InputError(UsageError):
    """A file or record that cannot be read as runs; the message says where and what was expected."""


class ServerError(CitespanError):
    """A server could not be reached or refused.

    Attributes:
        url: The URL that was asked.
        status: HTTP status, or `None` when there was no answer.
    """

    exit_code = 3

    def __init__(self, message: str, *, url: str, status: int | None = None) -> None:
        super().__init__(message)
        self.url = url
        self.status = status

    def __reduce__(self) -> tuple[Callable[..., ServerError], tuple[object, ...]]:
        """Let the error travel to another process: its arguments by name are not in `args`."""
        return partial(type(self), url=self.url, status=self.status), self.args


class Unreachable(ServerError):
    """No connection, a timeout, or a proxy in the way."""


class Unauthorized(ServerError):
    """The server answered 401 or 403."""


class NotFound(ServerError):
    """The server answered 404: the project, trace or span does not exist."""


class Refused(ServerError):
    """The server answered another 4xx; the message carries its reason."""


class Unavailable(ServerError):
    """The server answered 5xx, or something that is not what its API promises."""
