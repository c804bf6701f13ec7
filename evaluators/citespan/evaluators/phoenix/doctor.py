"""Check that citespan can work with a Phoenix server, and say what to mend where it cannot."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from citespan.evaluators.errors import NotFound, ServerError
from citespan.evaluators.phoenix.client import PhoenixClient

__all__ = ["SUPPORTED", "Check", "Outcome", "check_phoenix"]

SUPPORTED = ((20, 26), (21, 0))
"""Versions of Phoenix that citespan is tested with: from the first, below the second."""


class Outcome(StrEnum):
    """How a check went."""

    OK = "ok"
    """Nothing to do."""

    WARNING = "warning"
    """It may work; the fix makes sure."""

    FAILED = "failed"
    """It cannot work before the fix."""

    SKIPPED = "skipped"
    """Not tried, because an earlier check failed."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check and its outcome."""

    name: str
    """What was checked, in one or two words."""

    outcome: Outcome
    """How it went."""

    detail: str
    """What was found, on one line."""

    fix: str | None = None
    """What to do; `None` where there is nothing to do."""


def check_phoenix(client: PhoenixClient, project: str) -> list[Check]:
    """Return every check in the order of dependence; after a failure the rest is skipped. Writes nothing."""
    steps: list[tuple[str, Callable[[], Check]]] = [
        ("connection", lambda: _connection(client)),
        ("version", lambda: _version(client)),
        ("authentication", lambda: _authentication(client)),
        ("project", lambda: _project(client, project)),
        ("permission", lambda: _permission(client, project)),
    ]
    checks: list[Check] = []
    for name, step in steps:
        if any(check.outcome is Outcome.FAILED for check in checks):
            failed = next(check.name for check in checks if check.outcome is Outcome.FAILED)
            checks.append(Check(name, Outcome.SKIPPED, f"not tried: {failed} failed"))
            continue
        try:
            checks.append(step())
        except ServerError as error:
            detail, fix = _split(str(error))
            checks.append(Check(name, Outcome.FAILED, detail, fix))
    return checks


def _connection(client: PhoenixClient) -> Check:
    client.version()
    base = client.connection.base_url
    proxy = _proxy_for(base)
    through = f", through the proxy {proxy}" if proxy else ""
    return Check("connection", Outcome.OK, f"{base} answers{through}")


def _version(client: PhoenixClient) -> Check:
    version = client.version()
    (low, low_minor), (high, high_minor) = SUPPORTED
    supported = f"{low}.{low_minor} or later, below {high}.{high_minor}"
    numbers = version.split(".")
    try:
        major_minor = (int(numbers[0]), int(numbers[1]))
    except (IndexError, ValueError):
        return Check(
            "version", Outcome.WARNING, f"Phoenix {version!r} is no version", f"run Phoenix {supported}"
        )
    if SUPPORTED[0] <= major_minor < SUPPORTED[1]:
        return Check("version", Outcome.OK, f"Phoenix {version}; tested with {supported}")
    is_older = major_minor < SUPPORTED[0]
    return Check(
        "version",
        Outcome.FAILED if is_older else Outcome.WARNING,
        f"Phoenix {version} is not among the versions citespan is tested with",
        f"run Phoenix {supported}" + ("" if is_older else ", or look for a newer citespan"),
    )


def _authentication(client: PhoenixClient) -> Check:
    next(iter(client.projects()), None)
    key = "the API key is accepted" if client.connection.has_key else "no API key is needed"
    return Check("authentication", Outcome.OK, key)


def _project(client: PhoenixClient, name: str) -> Check:
    try:
        project = client.project(name)
    except NotFound as error:
        detail, _ = _split(str(error))
        fix = f"send a first trace: citespan.tracer.configure(project={name!r}), or name another project"
        return Check("project", Outcome.FAILED, detail, fix)
    return Check("project", Outcome.OK, f"{project.name} is there ({project.id})")


def _permission(client: PhoenixClient, name: str) -> Check:
    client.check_write(client.project(name))
    return Check("permission", Outcome.OK, "spans and annotations may be written")


def _split(text: str) -> tuple[str, str | None]:
    """Return what an error says and, where its text goes on after `: `, what to do."""
    detail, separator, fix = text.rpartition("): ")
    return (f"{detail})", fix) if separator else (text, None)


def _proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for `url`, as httpx finds it."""
    parts = urlsplit(url)
    if urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return urllib.request.getproxies().get(parts.scheme)
