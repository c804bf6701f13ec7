"""Every command, option and environment variable that deploy/ names exists in the code."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from citespan.evaluators.settings import CHAT_VARIABLES, VARIABLES, ChatSettings, Settings

ParseCommand = Callable[[Sequence[str]], None]

_WRITTEN = re.compile(r"(?:`|^\s*(?:\$ )?|(?<=-- )|(?<=exec worker ))citespan +([a-z][^`\n]*)", re.MULTILINE)
"""A command as people read it: in backticks, at the start of a line of a code block, or after another tool's."""


def commands_in_prose(text: str) -> list[list[str]]:
    """Return the arguments of each `citespan` command that a text names in backticks or in a code block."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    inline = re.findall(r"`[^`\n]+`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    found = [match for part in [*blocks, *inline] for match in _WRITTEN.findall(part)]
    return [shlex.split(command, comments=True) for command in found]


def options_in_prose(text: str) -> set[str]:
    """Return each option that a text names alone in backticks, such as `--claims findings`."""
    return set(re.findall(r"`(--[a-z][a-z-]*)[^`\n]*`", text))


def containers_in(text: str) -> list[Mapping[str, Any]]:
    """Return the containers of Kubernetes manifests."""
    found: list[Mapping[str, Any]] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            found.extend(c for c in value.get("containers", []) if isinstance(c, dict))
            for child in value.values():
                walk(child)
        elif isinstance(value, list):
            for child in value:
                walk(child)

    for document in yaml.safe_load_all(text):
        walk(document)
    return found


@pytest.fixture(scope="module")
def commands(
    texts: Mapping[str, str], compose: Mapping[str, Any], image: Mapping[str, Any]
) -> dict[str, list[list[str]]]:
    """Every command by the file it stands in: the arguments after `citespan`."""
    found = {name: commands_in_prose(text) for name, text in texts.items()}
    found["Dockerfile"].append(image["cmd"])
    found["compose.yaml"].append(compose["services"]["worker"]["command"])
    for name, text in texts.items():
        if name.endswith(".service"):
            starts = re.findall(r"^Exec\w+=(.*)$", text, re.MULTILINE)
            found[name] += [shlex.split(start)[1:] for start in starts]
        if name.startswith("kubernetes/"):
            args = [c["args"] for c in containers_in(text)]
            found[name] += [
                [a.replace("$(SHARD)", "1").replace("$(SHARDS)", "3") for a in some] for some in args
            ]
    return found


def test_every_command_parses(commands: dict[str, list[list[str]]], parse_command: ParseCommand) -> None:
    for name, some in commands.items():
        for arguments in some:
            try:
                parse_command(arguments)
            except typer.TyperException as error:
                pytest.fail(f"deploy/{name}: citespan {shlex.join(arguments)}: {error.format_message()}")


def test_each_way_to_run_it_has_a_command(commands: dict[str, list[list[str]]]) -> None:
    ways = [
        "Dockerfile",
        "compose.yaml",
        "kubernetes/worker/worker.yaml",
        "kubernetes/cronjob/cronjob.yaml",
        "systemd/citespan-worker.service",
        "systemd/citespan-evaluate.service",
    ]
    assert [name for name in ways if not commands[name]] == []
    assert len(commands["README.md"]) >= 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["workr"],
        ["worker", "--sample-rat", "0.1"],
        ["worker", "--sample-rate", "often"],
        ["worker", "failures", "--again"],
        ["worker", "--claims", "everything"],
    ],
)
def test_a_command_that_does_not_exist_is_found(arguments: list[str], parse_command: ParseCommand) -> None:
    with pytest.raises(typer.TyperException):
        parse_command(arguments)


def test_commands_are_found_in_prose() -> None:
    text = "Run `citespan worker --once` or\n```sh\n$ kubectl exec w-1 -- citespan worker failures  # why\n```\ncitespan is fine.\n"
    assert commands_in_prose(text) == [["worker", "failures"], ["worker", "--once"]]
    assert options_in_prose("Use `--claims findings`, or not.") == {"--claims"}


def test_every_option_named_in_prose_exists(
    texts: Mapping[str, str], command_options: frozenset[str]
) -> None:
    named = {name: options_in_prose(text) - command_options for name, text in texts.items()}
    assert {name: wrong for name, wrong in named.items() if wrong} == {}
    assert "--claim" not in command_options, "the check would pass a wrong option"


def variables_in(text: str) -> set[str]:
    """Return the variables of citespan and Phoenix that a text names."""
    return set(re.findall(r"\b(?:CITESPAN|PHOENIX)_[A-Z0-9_]+\b", text))


def test_every_variable_exists(
    texts: Mapping[str, str], citespan_variables: frozenset[str], phoenix_variables: frozenset[str]
) -> None:
    known = citespan_variables | phoenix_variables
    named = {name: variables_in(text) - known for name, text in texts.items()}
    assert {name: wrong for name, wrong in named.items() if wrong} == {}
    assert variables_in("set CITESPAN_JUGDE or PHOENIX_SQL_URL") - known == {
        "CITESPAN_JUGDE",
        "PHOENIX_SQL_URL",
    }


def test_phoenix_is_given_variables_that_it_reads(
    compose: Mapping[str, Any], phoenix_variables: frozenset[str]
) -> None:
    assert set(compose["services"]["phoenix"]["environment"]) - phoenix_variables == set()


def test_a_worker_is_given_variables_that_it_reads(
    compose: Mapping[str, Any], image: Mapping[str, Any], deploy: Path
) -> None:
    read = {name for names in (*VARIABLES.values(), *CHAT_VARIABLES.values()) for name in names}
    given = {
        "compose.yaml": set(compose["services"]["worker"]["environment"]),
        "Dockerfile": {name for name in image["environment"] if name.startswith("CITESPAN_")},
        **{
            str(path.relative_to(deploy)): set(re.findall(r"^([A-Z_]+)=", path.read_text(), re.MULTILINE))
            for path in (deploy / "kubernetes/base/citespan.env", deploy / "systemd/citespan.env.example")
        },
    }
    assert {name: variables - read for name, variables in given.items() if variables - read} == {}


def test_an_app_is_given_variables_that_the_tracer_reads(
    compose: Mapping[str, Any], citespan_variables: frozenset[str]
) -> None:
    assert set(compose["services"]["demo"]["environment"]) - citespan_variables == set()


def test_the_settings_of_each_file_are_usable(
    compose: Mapping[str, Any], deploy: Path, interpolate: Callable[[str, Mapping[str, str]], str]
) -> None:
    secrets = {"PHOENIX_ADMIN_SECRET": "s3cret"}
    worker = {
        name: interpolate(value, secrets)
        for name, value in compose["services"]["worker"]["environment"].items()
    }
    files = [deploy / "kubernetes/base/citespan.env", deploy / "systemd/citespan.env.example"]
    pairs = [re.findall(r"^([A-Z_]+)=(.*)$", path.read_text(), re.MULTILINE) for path in files]
    for environ in [worker, *map(dict, pairs)]:
        settings = Settings.load(environ=environ)
        assert (settings.judge, settings.claims, settings.project) == ("lexical", "spans", "default")
        assert ChatSettings.load(environ=environ) == ChatSettings()
    # Without a key of its own the worker has Phoenix's admin secret; with one it has that.
    assert worker["PHOENIX_API_KEY"] == "s3cret"
    key = compose["services"]["worker"]["environment"]["PHOENIX_API_KEY"]
    assert interpolate(key, {**secrets, "PHOENIX_API_KEY": "own"}) == "own"
