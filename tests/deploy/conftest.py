"""What the tests of deploy/ read: its files, the `citespan` command, the worker's metrics, Phoenix's variables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from citespan.evaluators.command import app

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def deploy() -> Path:
    return DEPLOY


@pytest.fixture(scope="session")
def texts() -> Mapping[str, str]:
    """Every file under deploy/ by its path there."""
    files = sorted(path for path in DEPLOY.rglob("*") if path.is_file())
    return {str(path.relative_to(DEPLOY)): path.read_text(encoding="utf-8") for path in files}


@pytest.fixture(scope="session")
def compose() -> Mapping[str, Any]:
    """compose.yaml, not interpolated."""
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


@pytest.fixture(scope="session")
def interpolate() -> Callable[[str, Mapping[str, str]], str]:
    """Fill in `${NAME}`, `${NAME:-default}` and `${NAME:?complaint}` as compose does; an empty value counts as unset.

    Raises:
        LookupError: A variable has no value, and the text has no default for it.
    """
    innermost = re.compile(r"\$\{([A-Za-z_]\w*)(?::(-|\?)([^${}]*))?\}")

    def fill(text: str, variables: Mapping[str, str]) -> str:
        def value(match: re.Match[str]) -> str:
            name, kind, rest = match.groups()
            given = variables.get(name, "")
            if not given and kind != "-":
                raise LookupError(f"{name}: {rest or 'is not set'}")
            return given or rest

        before = ""
        while before != text:
            before, text = text, innermost.sub(value, text, count=1)
        return text

    return fill


@pytest.fixture(scope="session")
def image() -> Mapping[str, Any]:
    """What the Dockerfile's last stage makes of a container: environment, entry point, command, health check."""
    lines = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    stages: dict[str, list[tuple[str, str]]] = {}
    last = ""
    for line in lines:
        keyword, _, rest = line.strip().partition(" ")
        if keyword == "FROM":
            parent, _, name = rest.partition(" AS ")
            last = name
            stages[name] = list(stages.get(parent, []))
        elif keyword and not keyword.startswith("#") and last:
            stages[last].append((keyword, rest.strip()))
    found: dict[str, Any] = {"stages": stages, "environment": {}}
    for keyword, rest in stages[last]:
        if keyword == "ENV":
            found["environment"].update(pair.split("=", 1) for pair in shlex.split(rest))
        elif keyword in ("ENTRYPOINT", "CMD"):
            found[keyword.lower()] = yaml.safe_load(rest)
        elif keyword == "HEALTHCHECK":
            found["healthcheck"] = yaml.safe_load(rest.partition("CMD ")[2])
        elif keyword in ("USER", "EXPOSE", "VOLUME", "STOPSIGNAL"):
            found[keyword.lower()] = rest
    return found


@pytest.fixture(scope="session")
def parse_command() -> Callable[[Sequence[str]], None]:
    """Let the real command line parse arguments after `citespan`, and run nothing.

    Raises:
        typer.TyperException: There is no such command or option, or a value is wrong.
    """

    def parse(arguments: Sequence[str]) -> None:
        command: Any = typer.main.get_command(app)
        name, rest, parent = "citespan", list(arguments), None
        while True:
            context = command.make_context(name, rest, parent=parent)
            # A group keeps the name of the subcommand, and what follows it, apart from its own options.
            left = [*getattr(context, "_protected_args", []), *context.args]
            if not left:
                return
            name, command, rest = command.resolve_command(context, left)
            parent = context

    return parse


@pytest.fixture(scope="session")
def command_options() -> frozenset[str]:
    """Every option of every citespan command."""

    def options(command: Any) -> set[str]:
        own = {name for parameter in command.params for name in parameter.opts}
        return own.union(*(options(sub) for sub in getattr(command, "commands", {}).values()))

    return frozenset(options(typer.main.get_command(app)))


@pytest.fixture(scope="session")
def citespan_variables() -> frozenset[str]:
    """Every environment variable that citespan's code names."""
    sources = (
        path.read_text() for folder in ("tracer", "evaluators") for path in (ROOT / folder).rglob("*.py")
    )
    return frozenset(name for text in sources for name in re.findall(r'"([A-Z]+_[A-Z0-9_]+)"', text))


@pytest.fixture(scope="session")
def phoenix_variables() -> frozenset[str]:
    """Every environment variable that the installed Phoenix server names."""
    text = Path(str(distribution("arize-phoenix").locate_file("phoenix/config.py"))).read_text()
    return frozenset(re.findall(r'"(PHOENIX_[A-Z0-9_]+)"', text))
