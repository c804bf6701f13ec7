"""An HTTP proxy that stands before a real Phoenix and spoils some of its answers, as networks and gateways do."""

from __future__ import annotations

import random
import select
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tests.faults.kinds import NOT_FORWARDED, OF_THE_BODY, STATUSES, Fault

Headers = Sequence[tuple[str, str]]

_HOP_BY_HOP = frozenset(
    {"connection", "content-length", "transfer-encoding", "keep-alive", "accept-encoding"}
)
_PAGE = b"<!doctype html><html><body><h1>Please log in</h1></body></html>"
_RST_ON_CLOSE = struct.pack("ii", 1, 0)
_UPSTREAM_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What Phoenix answered."""

    status: int
    headers: Headers
    body: bytes


class FaultProxy:
    """Forwards to `upstream` and injects faults between `storm()` and `calm()`. Use it in a `with` block."""

    def __init__(self, upstream: str, *, slow_seconds: float = 0.6) -> None:
        """Begin to listen on a free port; `slow_seconds` is how long a slow answer takes."""
        address = urlsplit(upstream)
        self.host, self.port = str(address.hostname), int(address.port or 80)
        self.slow_seconds = slow_seconds
        self.injected: Counter[str] = Counter()
        """How often each fault was injected."""
        self.requests = 0
        """How many requests came."""
        self._plan: tuple[int, Callable[[], object]] | None = None
        self.is_over = threading.Event()
        self._lock = threading.Lock()
        self._draw: random.Random | None = None
        self._kinds: tuple[Fault, ...] = ()
        self._share, self._left, self._methods = 0.0, 0, frozenset[str]()
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def storm(
        self,
        kinds: Sequence[Fault],
        *,
        share: float,
        seed: int,
        most: int = 1_000_000,
        methods: frozenset[str] = frozenset(),
    ) -> None:
        """Spoil a share of the requests with these methods, at most so many, in ways that the seed draws from `kinds`."""
        with self._lock:
            self._draw, self._kinds, self._share, self._left = random.Random(seed), tuple(kinds), share, most
            self._methods = methods

    def when(self, requests: int, action: Callable[[], object]) -> None:
        """Do something once so many more requests have come, before the last of them is forwarded."""
        with self._lock:
            self._plan = (self.requests + requests, action)

    def calm(self) -> None:
        """Spoil nothing more."""
        with self._lock:
            self._draw = None

    @property
    def is_spent(self) -> bool:
        """Whether the storm has injected as many faults as it was to."""
        return self._left <= 0

    def next_fault(self, method: str) -> Fault | None:
        with self._lock:
            self.requests += 1
            if self._plan is not None and self.requests >= self._plan[0]:
                action, self._plan = self._plan[1], None
                action()
            if self._draw is None or self._left <= 0 or (self._methods and method not in self._methods):
                return None
            if self._draw.random() >= self._share:
                return None
            return self._draw.choice(self._kinds)

    def count(self, fault: Fault) -> None:
        with self._lock:
            self.injected[fault] += 1
            self._left -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def shutdown_request(self, request: Any) -> None:
        """Close without a farewell, so that a reset is one."""
        self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: FaultProxy

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        fault = self.proxy.next_fault(self.command)
        if fault in NOT_FORWARDED:
            self._spoil(fault, None)
            return
        answer = self._forward(body)
        if answer is None:  # Phoenix itself is down: the client sees the line go dead
            self._reset()
        elif fault is None:
            self._send(answer.status, answer.body, answer.headers)
        else:
            self._spoil(fault, answer)

    do_POST = do_PUT = do_DELETE = do_PATCH = do_GET  # noqa: N815 - the names are inherited

    def _forward(self, body: bytes) -> Answer | None:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
        upstream = HTTPConnection(self.proxy.host, self.proxy.port, timeout=_UPSTREAM_SECONDS)
        try:
            upstream.request(self.command, self.path, body or None, headers)
            response = upstream.getresponse()
            return Answer(response.status, tuple(response.getheaders()), response.read())
        except (OSError, HTTPException):
            return None
        finally:
            upstream.close()

    def _spoil(self, fault: Fault, answer: Answer | None) -> None:
        """Do what the fault says, and count it; half of an answer without a body is all of it, and no fault."""
        half = b"" if answer is None else answer.body[: len(answer.body) // 2]
        if answer is not None and fault in OF_THE_BODY and not half:
            self._send(answer.status, answer.body, answer.headers)
            return
        self.proxy.count(fault)
        if fault in STATUSES:
            later = (("Retry-After", "1"),) if fault is Fault.ERROR_503_LATER else ()
            self._send(STATUSES[fault], b"injected", (("Content-Type", "text/plain"), *later))
        elif fault in (Fault.PAGE_200, Fault.PAGE_404, Fault.LOST_PAGE):
            status = 404 if fault is Fault.PAGE_404 else 200
            self._send(status, _PAGE, (("Content-Type", "text/html; charset=utf-8"),))
        elif fault in (Fault.SILENCE, Fault.LOST_SILENCE):
            self._wait_for_the_client_to_go()
        elif fault in (Fault.RESET, Fault.LOST_RESET) or answer is None:
            self._reset()
        elif fault is Fault.CUT_JSON:
            self._send(answer.status, half, answer.headers)
        elif fault is Fault.CUT_BODY:
            self._send(answer.status, half, answer.headers, length=len(answer.body))
            self.close_connection = True
        else:
            self._trickle(fault, answer)

    def _trickle(self, fault: Fault, answer: Answer) -> None:
        body, size, pause_seconds = answer.body, len(answer.body) // 6 + 1, self.proxy.slow_seconds / 6
        if fault is Fault.DRIP:
            body, size, pause_seconds = body + b" " * 10_000, 1, 0.2
        self._head(answer.status, answer.headers, length=len(body))
        for start in range(0, len(body), size):
            if self.proxy.is_over.wait(pause_seconds):
                break
            self.wfile.write(body[start : start + size])

    def _send(self, status: int, body: bytes, headers: Headers, length: int | None = None) -> None:
        self._head(status, headers, length=len(body) if length is None else length)
        if status != 204:
            self.wfile.write(body)

    def _head(self, status: int, headers: Headers, *, length: int) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST_ON_CLOSE)
        self.close_connection = True

    def _wait_for_the_client_to_go(self) -> None:
        while not self.proxy.is_over.is_set() and not select.select([self.connection], [], [], 0.1)[0]:
            continue
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is inherited
        """Log no request."""
