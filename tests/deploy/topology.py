"""compose.yaml's services as processes of this machine: what to start, with which variables, and how to ask it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx

_T = TypeVar("_T")

SECRET = "0123456789abcdef0123456789abcdef"


def postgres_programs() -> Path | None:
    """Return the folder with initdb and postgres: Debian keeps them out of PATH."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    usable = [folder for folder in folders if (folder / "initdb").exists()]
    if usable:
        return usable[-1]
    found = shutil.which("initdb")
    return None if found is None else Path(found).resolve().parent


def wait_for(look: Callable[[], _T | None], what: str, *, timeout_seconds: float) -> _T:
    """Return what `look` finds, as soon as it finds something."""
    deadline = time.monotonic() + timeout_seconds
    while (found := look()) is None:
        assert time.monotonic() < deadline, f"no {what} within {timeout_seconds} s"
        time.sleep(0.5)
    return found


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


@contextmanager
def running(
    command: Sequence[str | Path], log: Path, *, stop: signal.Signals = signal.SIGTERM, **how: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command during the block; its output goes to `log`, which a failure shows the end of."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output, **how
        )
    try:
        yield process
    except BaseException:
        sys.stderr.write(f"\n{log.name}:\n{log.read_text(errors='replace')[-3000:]}\n")
        raise
    finally:
        if process.poll() is None:
            process.send_signal(stop)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@dataclass
class Deployment:
    """compose.yaml on this machine."""

    compose: Mapping[str, Any]
    image: Mapping[str, Any]
    interpolate: Callable[[str, Mapping[str, str]], str]
    root: Path
    folder: Path
    ports: dict[str, int] = field(default_factory=dict)

    @property
    def secrets(self) -> dict[str, str]:
        """What a person would write into .env: a different secret for each variable of the example."""
        names = re.findall(r"^([A-Z_]+)=$", (self.root / "deploy/.env.example").read_text(), re.MULTILINE)
        return {name: f"{SECRET}{n}" for n, name in enumerate(names)}

    def environment(self, service: str) -> dict[str, str]:
        """Return the variables of a service, hosts and ports replaced, and nothing of this process but PATH."""
        given = self.compose["services"][service]["environment"]
        found = {name: self._here(self.interpolate(value, self.secrets)) for name, value in given.items()}
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LANG": "C.UTF-8", **found}

    def command(self, service: str) -> list[str]:
        """Return the command of a service, hosts and ports replaced."""
        return [self._here(part) for part in self.compose["services"][service]["command"]]

    def _here(self, text: str) -> str:
        for host, inside in (("phoenix", 6006), ("postgres", 5432), ("worker", 9637)):
            if text == str(inside):
                return str(self.ports[host])
            text = re.sub(rf"\b{host}:{inside}\b", f"127.0.0.1:{self.ports[host]}", text)
        return "127.0.0.1" if text == "0.0.0.0" else text

    @property
    def state(self) -> Path:
        """Where the worker keeps its state: the image's folder, here."""
        return self.folder / "state"

    def worker_environment(self) -> dict[str, str]:
        """Return the variables of the worker's container: the image's, then the service's."""
        built = {
            name: value.replace("/var/lib/citespan", str(self.state))
            for name, value in self.image["environment"].items()
            if name != "PATH"
        }
        assert built["CITESPAN_HOME"] == str(self.state)
        return {**built, **self.environment("worker")}


def build(deployment: Deployment) -> Path:
    """Make an environment that holds what the Dockerfile's build stage installs and nothing else."""
    source, target = deployment.folder / "source", deployment.folder / "citespan"
    source.mkdir()
    for keyword, rest in deployment.image["stages"]["build"]:
        if keyword == "COPY":
            *names, place = rest.split()
            for name in names:
                if (deployment.root / name).is_dir():
                    ignored = shutil.ignore_patterns("__pycache__")
                    shutil.copytree(deployment.root / name, source / place, ignore=ignored)
                else:
                    shutil.copy(deployment.root / name, source / place)
        elif keyword == "RUN":
            command = rest.replace("/usr/local/lib/citespan", str(target)).replace(
                "python -m", f"{sys.executable} -m", 1
            )
            environment = {**os.environ, "EXTRAS": "evaluators", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
            built = subprocess.run(
                ["sh", "-c", command],
                cwd=source,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert built.returncode == 0, built.stdout + built.stderr
    return target / "bin" / "citespan"


@dataclass
class Prometheus:
    """A Prometheus that scrapes the worker."""

    client: httpx.Client

    def query(self, expression: str) -> list[Mapping[str, Any]]:
        """Return what an instant query finds.

        Raises:
            httpx.HTTPStatusError: Prometheus does not understand it.
        """
        answer = self.client.get("/api/v1/query", params={"query": expression})
        answer.raise_for_status()
        return answer.json()["data"]["result"]

    def value(self, expression: str) -> float | None:
        """Return the one number that a query finds; `None` if there is none."""
        found = self.query(expression)
        assert len(found) < 2, f"{expression}: {found}"
        return float(found[0]["value"][1]) if found else None

    def rules(self) -> list[Mapping[str, Any]]:
        """Return the rules as they were last evaluated."""
        groups = self.client.get("/api/v1/rules").json()["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]


def record_nul(deployment: Deployment, *ways: str) -> Mapping[str, str]:
    """Record answers that hold NUL and return the traces by the way they were recorded."""
    app = [sys.executable, Path(__file__).with_name("nul_app.py"), *ways]
    told = subprocess.run(
        app, env=deployment.environment("demo"), check=True, capture_output=True, timeout=120
    )
    return json.loads(told.stdout)
