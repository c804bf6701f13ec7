"""A local Phoenix server as a subprocess, for trying things out, the demo and tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import httpx

from citespan.evaluators.errors import Unavailable, UsageError

if sys.platform != "win32":
    import fcntl

__all__ = ["PhoenixServer"]

_LOG_LINES = 15
"""How much of the log a failed start shows."""

_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - the address that is bound is none to call
"""Where a server is reached that listens on every interface."""

_SETTINGS = {
    "PHOENIX_TELEMETRY_ENABLED": "false",
    "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
    "PHOENIX_LOG_MIGRATIONS": "false",
}


class PhoenixServer:
    """Runs Phoenix with SQLite in one folder, telemetry and outside resources off. Use it in a `with` block."""

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        host: str = "127.0.0.1",
        start_timeout_seconds: float = 120.0,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Describe the server.

        Args:
            folder: Where the database and the log are kept; created if missing.
            port: Port of page, API and OTLP over HTTP; `None` takes a free one.
            host: Interface to listen on.
            start_timeout_seconds: How long it may take to answer.
            variables: More `PHOENIX_*` variables; they win over the defaults here.
        """
        self.folder = folder
        self.host = host
        self.port = port or _free_port(host)
        self.log_path = folder / "phoenix.log"
        self._timeout_seconds = start_timeout_seconds
        self._variables = dict(variables or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where its page and API are, seen from this machine."""
        host = _LOOPBACK.get(self.host, self.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def process_id(self) -> int | None:
        """Process id of the running server; `None` if it does not run."""
        return None if self._process is None else self._process.pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server and wait until it answers.

        Raises:
            UsageError: Phoenix is not installed, the port is taken, or another Phoenix runs on the folder.
            Unavailable: It stopped or did not answer in time; the message ends with its log.
        """
        if not _is_installed():
            raise UsageError('the Phoenix server is not installed: pip install "citespan[phoenix]"')
        if _is_taken(self.host, self.port):
            raise UsageError(f"port {self.port} on {self.host} is taken: choose another with --port")
        self.folder.mkdir(parents=True, exist_ok=True)
        with _lock(self.folder) as lock, self.log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "phoenix.server.main", "serve"],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=() if sys.platform == "win32" else (lock.fileno(),),  # held for as long as it lives
            )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    def detach(self) -> int:
        """Leave the server running after this object is gone, and return its process id."""
        if self._process is None:
            raise ValueError("the server does not run: nothing to detach")
        process, self._process = self._process, None
        process.returncode = 0  # silences the warning about a child left running, which is meant here
        return process.pid

    def wait(self) -> int:
        """Wait until the server stops by itself and return its exit status."""
        return 0 if self._process is None else self._process.wait()

    def stop(self, timeout_seconds: float = 15.0) -> None:
        """Stop the server, by force if it does not stop in time."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """Stop the server at once, as a crash would."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PHOENIX_")}
        return {
            **inherited,
            **_SETTINGS,
            "PHOENIX_HOST": self.host,
            "PHOENIX_PORT": str(self.port),
            "PHOENIX_GRPC_PORT": str(_free_port(self.host)),
            "PHOENIX_WORKING_DIR": str(self.folder.resolve()),
            **self._variables,
        }

    def _wait(self) -> None:
        deadline = time.monotonic() + self._timeout_seconds
        process = self._process
        with httpx.Client(trust_env=False, timeout=2.0) as http:
            while process is not None and process.poll() is None:
                try:
                    if http.get(f"{self.url}/healthz").is_success:
                        return
                except httpx.TransportError:
                    pass  # not listening yet
                if time.monotonic() > deadline:
                    raise self._failed(f"did not answer within {self._timeout_seconds:g} s")
                time.sleep(0.1)
        status = "unknown" if process is None else process.returncode
        raise self._failed(f"stopped with status {status} before it answered")

    def _failed(self, what: str) -> Unavailable:
        lines = self.log_path.read_text(errors="replace").strip().splitlines()[-_LOG_LINES:]
        tail = "\n".join(f"    {line}" for line in lines) or "    (empty)"
        return Unavailable(f"Phoenix at {self.url} {what}; the end of {self.log_path}:\n{tail}", url=self.url)


def _lock(folder: Path) -> BinaryIO:
    """Return a file that is locked while a server of this folder runs: two on one SQLite file would harm it."""
    lock = (folder / "phoenix.lock").open("ab")
    if sys.platform != "win32":
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise UsageError(
                f"another Phoenix runs on {folder}: stop it, or choose another folder with --home"
            ) from error
    return lock


def _is_installed() -> bool:
    """Return whether the server is there; looking for its module would import half of it."""
    try:
        distribution("arize-phoenix")
    except PackageNotFoundError:
        return False
    return True


def _socket(host: str) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)


def _free_port(host: str) -> int:
    with _socket(host) as listener:
        listener.bind((host, 0))
        port: int = listener.getsockname()[1]
        return port


def _is_taken(host: str, port: int) -> bool:
    with _socket(host) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError:
            return True
    return False
