"""What stands between citespan and Phoenix in companies: proxies, and certificates of their own."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

import pytest

from citespan.evaluators.errors import Unreachable
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.doctor import check_phoenix


@pytest.fixture(autouse=True)
def _no_variables_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


class _Server(ThreadingHTTPServer):
    """Answers every request with a version, and remembers what was asked for."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self._answer()

    def do_CONNECT(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = b'"20.26.1"'
        self.send_response(self.server.status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@contextmanager
def _serving(server: _Server) -> Iterator[_Server]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_proxy_of_the_environment_is_used_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with _serving(_Server()) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://{proxy.address}")
        with PhoenixClient(Connection("http://phoenix.invalid"), retries=0) as client:
            assert client.version() == "20.26.1"
            connection, *_ = check_phoenix(client, "demo")
    assert proxy.asked[0] == "http://phoenix.invalid/arize_phoenix_version"
    assert f"through the proxy http://{proxy.address}" in connection.detail


def test_no_proxy_goes_straight(monkeypatch: pytest.MonkeyPatch) -> None:
    with _serving(_Server()) as phoenix:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        with PhoenixClient(Connection(f"http://{phoenix.address}"), retries=0) as client:
            assert client.version() == "20.26.1"
            connection, *_ = check_phoenix(client, "demo")
    assert "proxy" not in connection.detail


def test_a_proxy_that_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with _serving(_Server(status=403)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy.address}")
        client = PhoenixClient(Connection("https://phoenix.invalid"), retries=0)
        with client, pytest.raises(Unreachable, match="NO_PROXY"):
            client.version()


def test_a_certificate_authority_of_ones_own_is_honoured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    certificate, key = _make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = _Server()
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with _serving(server) as phoenix:
        url = f"https://{phoenix.address}"
        distrustful = PhoenixClient(Connection(url), retries=0)
        with distrustful, pytest.raises(Unreachable, match="SSL_CERT_FILE"):
            distrustful.version()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with PhoenixClient(Connection(url), retries=0) as client:
            assert client.version() == "20.26.1"


def _make_certificate(folder: Path) -> tuple[Path, Path]:
    """Return a certificate for 127.0.0.1 that signs itself, and its key."""
    pytest.importorskip("cryptography", reason="comes with Phoenix")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "phoenix.test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "phoenix.crt", folder / "phoenix.key"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths
