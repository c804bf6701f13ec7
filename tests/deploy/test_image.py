"""The Dockerfile: linted, and compared with what it builds from."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

HADOLINT = str(Path(sys.executable).with_name("hadolint"))


def lint(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([HADOLINT, str(path)], capture_output=True, text=True, timeout=60, check=False)


def test_the_linter_has_nothing_to_say(deploy: Path, tmp_path: Path) -> None:
    linted = lint(deploy / "Dockerfile")
    assert (linted.returncode, linted.stdout) == (0, "")
    wrong = tmp_path / "Dockerfile"
    wrong.write_text((deploy / "Dockerfile").read_text().replace("python:3.11.15-slim-bookworm", "python"))
    wrong.write_text(wrong.read_text() + "RUN apt-get install gcc\n")
    assert lint(wrong).returncode == 1


def test_it_runs_as_a_user_with_a_number(image: Mapping[str, Any]) -> None:
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", image["user"])


def test_python_is_of_the_minor_version_that_ci_runs(deploy: Path) -> None:
    found = re.search(
        r"^ARG PYTHON_IMAGE=python:(\d+\.\d+)\.\d+-slim-\w+$", (deploy / "Dockerfile").read_text(), re.M
    )
    assert found is not None
    assert found[1] == "3.11"


def test_nothing_is_built_or_installed_in_the_last_stage(image: Mapping[str, Any]) -> None:
    runs = [rest for keyword, rest in image["stages"]["citespan"] if keyword == "RUN"]
    assert [run for run in runs if re.search(r"apt-get|pip install|gcc|curl", run)] == []
    assert any("pip uninstall" in run for run in runs), "no pip in a running container"


def test_what_is_copied_exists_and_reaches_the_builder(
    deploy: Path, root: Path, image: Mapping[str, Any]
) -> None:
    lines = (deploy / "Dockerfile.dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]

    def reaches_builder(name: str) -> bool:
        is_ignored = False
        for pattern in patterns:  # the last one that fits wins
            if fnmatch(name, pattern.removeprefix("!")):
                is_ignored = not pattern.startswith("!")
        return not is_ignored

    copied = [
        source
        for instructions in image["stages"].values()
        for keyword, rest in instructions
        if keyword == "COPY" and "--from" not in rest
        for source in rest.split()[:-1]
    ]
    assert {"pyproject.toml", "tracer", "evaluators"} <= set(copied)
    for source in copied:
        assert (root / source).exists(), source
        assert reaches_builder(source), source
    assert not reaches_builder("deploy/.env")
    assert not reaches_builder(".git")


def test_only_the_evaluators_are_installed_unless_asked(deploy: Path, root: Path) -> None:
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    text = (deploy / "Dockerfile").read_text()
    assert re.findall(r"^ARG EXTRAS=(.*)$", text, re.MULTILINE) == ["evaluators"]
    named = {extra for some in re.findall(r"`(evaluators[a-z,]*)`", text) for extra in some.split(",")}
    assert named <= set(extras)


def test_what_the_demo_needs_is_pinned(root: Path) -> None:
    pinned = (root / "constraints.txt").read_text()
    for package in ("bm25s", "snowballstemmer"):
        assert re.search(rf"^{package}==", pinned, re.MULTILINE)


def test_the_health_check_asks_a_path_that_is_served(image: Mapping[str, Any]) -> None:
    command = image["healthcheck"]
    assert command[:2] == ["python", "-c"]
    compile(command[2], "healthcheck", "exec")
    assert "/healthz" in command[2]
