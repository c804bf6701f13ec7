"""The tree names no machine of ours: what works here works anywhere."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

MACHINE = re.compile(r"""(?x)
    (?<![\w.])/(?:work|opt|home|Users)/\w   # a folder of one machine
    | (?<![\w.])/root/\.                    # the home of its administrator
    | \b(?:pypi|pythonhosted|npmjs)\.\w{2,3}\b    # a package registry
    | \b(?:deb|security|ftp)\.debian\.org\b
""")


def _tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout: there is no list of tracked files")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_a_folder_of_a_machine_or_a_registry() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in _tracked_files()
        for match in MACHINE.finditer(path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert found == []


def test_constraints_are_exact_versions() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert [line for line in lines if not re.fullmatch(r"#.*|[\w.-]+==[\w.+!]+", line)] == []


def test_everything_that_the_tests_need_is_pinned() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    not_for_tests = {"llama", "bench"}  # what builds from source, and what fits the embedded judge
    needed = {_name(line) for extra, lines in extras.items() if extra not in not_for_tests for line in lines}
    pinned = {_name(line) for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert needed - pinned == {"citespan"}


def _name(requirement: str) -> str:
    """Return the distribution that a requirement is about, its name written as package indexes do."""
    return re.split(r"[\[=<>~!; ]", requirement, maxsplit=1)[0].lower().replace("_", "-")
