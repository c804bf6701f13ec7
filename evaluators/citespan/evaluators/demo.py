"""The example app that `citespan demo` runs: `examples/plain_rag.py`, in a process of its own, like any app."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from citespan.evaluators.errors import CitespanError, UsageError

__all__ = ["check_installed", "find_example", "run_example"]

_PLACES = (
    Path(__file__).parents[3] / "examples" / "plain_rag.py",
    Path(sysconfig.get_path("data")) / "share" / "citespan" / "examples" / "plain_rag.py",
)
"""Where the example is: in the checkout, else where the wheel puts it."""

_NEEDED = ("arize-phoenix", "bm25s", "openai", "snowballstemmer")
"""Distributions of the extra `examples` that the demo needs beside the evaluators' own."""

_FOREIGN = ("PHOENIX_", "OTEL_", "OPENINFERENCE_")
"""Variables of the user's own traces, which the demo's must not follow."""


def check_installed() -> None:
    """Return if everything that the demo needs is installed.

    Raises:
        UsageError: Something is missing; the message names the extra that brings it.
    """
    missing = [name for name in _NEEDED if not _is_installed(name)]
    if missing:
        raise UsageError(f"the demo needs {', '.join(missing)}: pip install 'citespan[examples]'")


def find_example() -> Path:
    """Return where the example is.

    Raises:
        CitespanError: It is in neither place, so the install is broken.
    """
    for place in _PLACES:
        if place.is_file():
            return place
    raise CitespanError(f"the example that the demo runs is not at {_PLACES[-1]}: install citespan anew")


def run_example(url: str, project: str, *, timeout_seconds: float = 600.0) -> str:
    """Ask the example app its questions, traced into a project of a local Phoenix, and return what it printed.

    Args:
        url: Where that Phoenix is.
        project: Name of the project.
        timeout_seconds: How long it may take; a model behind `OPENAI_BASE_URL` may be slow.

    Raises:
        CitespanError: The example failed; the message ends with its last line.
    """
    app = find_example()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    destination = {"PHOENIX_COLLECTOR_ENDPOINT": url, "PHOENIX_PROJECT_NAME": project}
    try:
        done = subprocess.run(
            [sys.executable, app],
            env={**inherited, **destination},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CitespanError(f"{app} was still running after {timeout_seconds:g} s") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise CitespanError(f"{app} stopped with status {done.returncode}: {last}")
    return done.stdout.strip()


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
