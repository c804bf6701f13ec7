"""What a supervisor asks a worker over HTTP: is it alive, is it ready, what has it done."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from citespan.evaluators.errors import UsageError

__all__ = ["Health", "HealthServer"]

_STALE_SECONDS = 600.0
"""A worker that has shown no sign of life for this long hangs: one batch takes far less."""


@dataclass(slots=True)
class Health:
    """Signs of life, set by the worker and read by the server's threads."""

    monotonic: Callable[[], float]
    """Seconds on a clock that is never set."""

    last_sign: float = 0.0
    """When the worker last showed that it goes on."""

    not_ready: str | None = "the project has not been read yet"
    """Why the project could not be read, or not be written, when it was last tried; `None` if it could."""

    def __post_init__(self) -> None:
        """A start is a sign of life."""
        self.beat()

    def beat(self) -> None:
        """Show a sign of life."""
        self.last_sign = self.monotonic()

    @property
    def not_alive(self) -> str | None:
        """Why the worker seems to hang; `None` if it does not."""
        silent = self.monotonic() - self.last_sign
        return f"no sign of life for {silent:.0f} s" if silent > _STALE_SECONDS else None


class HealthServer:
    """Serves `/healthz`, `/readyz` and `/metrics`. Use it in a `with` block."""

    def __init__(self, health: Health, metrics: Callable[[], bytes], *, host: str, port: int) -> None:
        """Begin to listen; port 0 takes a free one.

        Raises:
            UsageError: The port cannot be had.
        """
        try:
            self._server = ThreadingHTTPServer((host, port), _handler(health, metrics))
        except OSError as error:
            raise UsageError(
                f"cannot serve metrics on {host}:{port} ({error}): choose another --metrics-port"
            ) from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="health", daemon=True)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._server.server_port

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(health: Health, metrics: Callable[[], bytes]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._answer(200, "text/plain; version=0.0.4; charset=utf-8", metrics())
            elif path == "/healthz":
                self._status(health.not_alive)
            elif path == "/readyz":
                self._status(health.not_alive or health.not_ready)
            else:
                self._answer(404, "text/plain", b"/healthz, /readyz, /metrics\n")

        def _status(self, trouble: str | None) -> None:
            body = {"status": "ok"} if trouble is None else {"status": "unavailable", "reason": trouble}
            self._answer(200 if trouble is None else 503, "application/json", json.dumps(body).encode())

        def _answer(self, status: int, content_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is inherited
            """Log no request: a probe every few seconds is no news."""

    return Handler
