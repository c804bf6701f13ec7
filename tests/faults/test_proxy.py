"""The proxy does to an answer what the fault's name says."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from tests.faults.kinds import Fault
from tests.faults.proxy import FaultProxy

BODY = b'{"data": [1, 2, 3, 4]}'


class Upstream(ThreadingHTTPServer):
    """Answers every request with the same JSON, and counts them."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked = 0
        super().__init__(("127.0.0.1", 0), _Answers)


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.asked += 1  # type: ignore[attr-defined]  # Upstream
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is inherited
        """Log no request."""


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
        yield server
        server.shutdown()


@pytest.fixture
def proxy(upstream: Upstream) -> Iterator[FaultProxy]:
    with FaultProxy(f"http://127.0.0.1:{upstream.server_port}", slow_seconds=0.3) as made:
        yield made


HTTP = httpx.Client(
    trust_env=False, verify=False, timeout=0.5, limits=httpx.Limits(max_keepalive_connections=0)
)


def _post(proxy: FaultProxy) -> httpx.Response:
    return HTTP.post(f"{proxy.url}/v1/rows", content=b"{}")


def test_what_is_not_spoiled_passes_unchanged(proxy: FaultProxy) -> None:
    answer = _post(proxy)
    assert (answer.status_code, answer.content) == (200, BODY)
    assert proxy.injected.total() == 0


@pytest.mark.parametrize(
    ("fault", "status", "content", "forwarded"),
    [
        (Fault.ERROR_500, 500, b"injected", 0),
        (Fault.ERROR_502, 502, b"injected", 0),
        (Fault.ERROR_503, 503, b"injected", 0),
        (Fault.ERROR_503_LATER, 503, b"injected", 0),
        (Fault.ERROR_429, 429, b"injected", 0),
        (Fault.ERROR_404, 404, b"injected", 0),
        (Fault.LOST_ERROR_500, 500, b"injected", 1),
        (Fault.CUT_JSON, 200, BODY[:11], 1),
        (Fault.SLOW, 200, BODY, 1),
    ],
)
def test_an_answer_in_the_place_of_phoenixs(
    proxy: FaultProxy, upstream: Upstream, fault: Fault, status: int, content: bytes, forwarded: int
) -> None:
    proxy.storm([fault], share=1.0, seed=1, most=1)
    answer = _post(proxy)
    assert (answer.status_code, answer.content, upstream.asked) == (status, content, forwarded)
    assert answer.headers.get("retry-after") == ("1" if fault is Fault.ERROR_503_LATER else None)
    assert proxy.injected == {fault: 1}
    assert proxy.is_spent
    assert _post(proxy).content == BODY


@pytest.mark.parametrize(
    ("fault", "status", "forwarded"),
    [(Fault.PAGE_200, 200, 0), (Fault.PAGE_404, 404, 0), (Fault.LOST_PAGE, 200, 1)],
)
def test_a_page_in_the_place_of_an_answer(
    proxy: FaultProxy, upstream: Upstream, fault: Fault, status: int, forwarded: int
) -> None:
    proxy.storm([fault], share=1.0, seed=1)
    answer = _post(proxy)
    assert (answer.status_code, upstream.asked) == (status, forwarded)
    assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize(
    ("fault", "error", "forwarded"),
    [
        (Fault.SILENCE, httpx.ReadTimeout, 0),
        (Fault.LOST_SILENCE, httpx.ReadTimeout, 1),
        (Fault.RESET, httpx.ReadError, 0),
        (Fault.LOST_RESET, httpx.ReadError, 1),
        (Fault.CUT_BODY, httpx.RemoteProtocolError, 1),
    ],
)
def test_an_answer_that_does_not_come(
    proxy: FaultProxy, upstream: Upstream, fault: Fault, error: type[Exception], forwarded: int
) -> None:
    proxy.storm([fault], share=1.0, seed=1)
    with pytest.raises(error):
        _post(proxy)
    assert upstream.asked == forwarded


def test_a_drip_never_ends(proxy: FaultProxy) -> None:
    proxy.storm([Fault.DRIP], share=1.0, seed=1)
    began = time.monotonic()
    with HTTP.stream("POST", proxy.url, content=b"{}") as answer:
        for _ in answer.iter_raw():
            if time.monotonic() - began > 1.5:  # three times the patience with one piece
                break
    assert time.monotonic() - began > 1.5


def test_a_seed_decides_what_is_spoiled(proxy: FaultProxy) -> None:
    def statuses(seed: int) -> list[int]:
        proxy.storm([Fault.ERROR_500, Fault.ERROR_503], share=0.5, seed=seed)
        return [_post(proxy).status_code for _ in range(20)]

    assert statuses(1) == statuses(1) != statuses(2)
