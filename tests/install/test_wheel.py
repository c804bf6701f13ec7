"""The wheel holds both packages and nothing else."""

from __future__ import annotations

import subprocess
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = [pytest.mark.install, pytest.mark.xdist_group("install")]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def names(wheel: Path) -> set[str]:
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="session")
def metadata(wheel: Path, names: set[str]) -> Message:
    (name,) = (name for name in names if name.endswith(".dist-info/METADATA"))
    with ZipFile(wheel) as archive:
        return Parser().parsestr(archive.read(name).decode())


def test_the_wheel_holds_every_tracked_file_of_both_packages(names: set[str]) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "tracer/citespan", "evaluators/citespan"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout: there is no list of tracked files")
    tracked = {name.partition("/")[2] for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    assert tracked
    assert tracked <= names


def test_the_wheel_holds_the_example_that_the_demo_runs(names: set[str]) -> None:
    shared = {name.partition(".data/data/")[2] for name in names}
    folder = "share/citespan/examples"
    assert {f"{folder}/plain_rag.py", f"{folder}/data/documents/refunds.md"} <= shared


def test_the_wheel_holds_nothing_outside_the_namespace(names: set[str]) -> None:
    imported = {name for name in names if ".dist-info/" not in name and ".data/" not in name}
    assert {name.partition("/")[0] for name in imported} == {"citespan"}


def test_the_namespace_has_no_init_of_its_own(names: set[str]) -> None:
    assert "citespan/__init__.py" not in names


def test_both_packages_say_that_they_are_typed(names: set[str]) -> None:
    assert {"citespan/tracer/py.typed", "citespan/evaluators/py.typed"} <= names


def test_the_licence_travels_with_the_wheel(names: set[str]) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_without_extras_the_wheel_asks_for_opentelemetry_alone(metadata: Message) -> None:
    required = [value for value in metadata.get_all("Requires-Dist", []) if "extra ==" not in value]
    assert sorted(value.partition(">")[0] for value in required) == [
        "openinference-semantic-conventions",
        "opentelemetry-exporter-otlp",
        "opentelemetry-sdk",
    ]


def test_the_extras_are_those_that_readme_names(metadata: Message) -> None:
    assert {"evaluators", "phoenix", "examples", "dev"} <= set(metadata.get_all("Provides-Extra", []))
