"""What works in a clean environment, and what it says of something that is not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

pytestmark = [pytest.mark.install, pytest.mark.xdist_group("install"), pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Environment:
    """A virtual environment that holds what was installed into it and nothing else."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def install(self, *arguments: str | Path) -> None:
        """Install with uv, which is quick; the constraints hold for every install."""
        uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", self.python]
        _run([*uv, "--constraint", ROOT / "constraints.txt", *arguments])

    def install_with_pip(self, *arguments: str | Path) -> None:
        """Install as README says."""
        pip = [sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet"]
        _run([*pip, "--constraint", ROOT / "constraints.txt", *arguments])

    def run_python(self, code: str, *, folder: Path) -> str:
        """Return what `code` prints when run in `folder`; fail with its output if it does not end well."""
        return _run([self.python, "-W", "error", "-c", dedent(code)], folder=folder).stdout.strip()

    def run_command(self, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run the installed `citespan` command."""
        return subprocess.run(
            [self.folder / "bin" / "citespan", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def packages(self) -> dict[str, str]:
        """Return the version of each installed package by its normal name."""
        lines = _run(
            [sys.executable, "-m", "uv", "pip", "freeze", "--python", self.python]
        ).stdout.splitlines()
        pins = (line.partition("==") for line in lines if "==" in line)
        return {name.lower().replace("_", "-"): version for name, _, version in pins}


def _run(command: list[str | Path], folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500, check=False)
    if done.returncode:
        pytest.fail(f"{command} exited with {done.returncode}\n{done.stdout}\n{done.stderr}", pytrace=False)
    return done


@pytest.fixture(scope="session")
def new_environment(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Environment]:
    """Creates an empty environment with this Python."""

    def create() -> Environment:
        folder = tmp_path_factory.mktemp("environment")
        _run([sys.executable, "-m", "uv", "venv", "--quiet", "--clear", "--python", sys.executable, folder])
        return Environment(folder)

    return create


@pytest.fixture(scope="session")
def tracer_alone(wheel: Path, new_environment: Callable[[], Environment]) -> Environment:
    """`pip install citespan`."""
    environment = new_environment()
    environment.install_with_pip(wheel)
    return environment


@pytest.fixture(scope="session")
def with_evaluators(wheel: Path, new_environment: Callable[[], Environment]) -> Environment:
    """`pip install citespan[evaluators]`."""
    environment = new_environment()
    environment.install(f"citespan[evaluators] @ {wheel.as_uri()}")
    return environment


@pytest.fixture(scope="session")
def with_example(wheel: Path, new_environment: Callable[[], Environment]) -> Environment:
    """`pip install citespan[examples]`, but for the Phoenix server: it is large, and the example needs none."""
    environment = new_environment()
    environment.install(f"citespan[evaluators] @ {wheel.as_uri()}", "bm25s", "openai")
    return environment


@pytest.fixture(scope="session", params=["pip", "uv"])
def editable(request: pytest.FixtureRequest, new_environment: Callable[[], Environment]) -> Environment:
    """The checkout itself, installed with `--editable` by pip and by uv."""
    environment = new_environment()
    install = environment.install_with_pip if request.param == "pip" else environment.install
    install("--editable", f"{ROOT}[evaluators]")
    return environment


def test_the_tracer_needs_none_of_the_packages_of_the_evaluators(
    tracer_alone: Environment, tmp_path: Path
) -> None:
    code = """
        import sys
        import citespan.tracer
        assert citespan.tracer.__all__
        print(*sorted({"httpx", "pydantic", "rich", "phoenix", "citespan.evaluators"} & set(sys.modules)))
    """
    assert tracer_alone.run_python(code, folder=tmp_path) == ""
    assert not {"httpx", "pydantic", "rich", "arize-phoenix"} & set(tracer_alone.packages())


def test_the_command_names_the_missing_extra_in_one_line(tracer_alone: Environment, tmp_path: Path) -> None:
    done = tracer_alone.run_command("score", "runs.json", folder=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "pip install 'citespan[evaluators]'" in done.stderr


def test_the_demo_names_the_missing_extra_in_one_line(with_evaluators: Environment, tmp_path: Path) -> None:
    done = with_evaluators.run_command("demo", "--once", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "pip install 'citespan[" in done.stderr


def test_installed_versions_are_those_of_the_constraints(with_evaluators: Environment) -> None:
    lines = (ROOT / "constraints.txt").read_text().lower().replace("_", "-").splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    installed = {name: version for name, version in with_evaluators.packages().items() if name != "citespan"}
    assert {"httpx", "pydantic", "opentelemetry-sdk"} <= set(installed)
    assert installed == {name: pinned.get(name) for name in installed}


def test_the_installed_command_scores_a_run(with_evaluators: Environment, tmp_path: Path) -> None:
    run = {
        "question": "How is sencha brewed?",
        "answer": "Sencha is brewed at 70 degrees [1].",
        "passages": [{"id": "tea", "text": "Sencha is brewed at 70 degrees.", "label": "1"}],
    }
    (tmp_path / "run.json").write_text(json.dumps(run))
    done = with_evaluators.run_command("score", "run.json", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (scored,) = json.loads(done.stdout)["runs"]
    assert [claim["label"] for claim in scored["claims"]] == ["supported"]


def test_the_example_runs_from_where_the_wheel_puts_it(with_example: Environment, tmp_path: Path) -> None:
    code = """
        import os, subprocess, sys
        from citespan.evaluators.demo import find_example
        ask = [sys.executable, str(find_example()), "Can gift cards be refunded?"]
        environment = {**os.environ, "OTEL_TRACES_EXPORTER": "none"}
        print(find_example().is_relative_to(sys.prefix))
        print(subprocess.run(ask, env=environment, capture_output=True, text=True, check=True).stdout)
    """
    is_installed, answer = with_example.run_python(code, folder=tmp_path).splitlines()
    assert is_installed == "True"
    assert answer == "Gift cards and downloaded software cannot be refunded. [1]"


def test_an_editable_install_runs_the_checkout(editable: Environment, tmp_path: Path) -> None:
    code = "import citespan.tracer, citespan.evaluators as e; print(citespan.tracer.__file__, e.__file__)"
    tracer, evaluators = editable.run_python(code, folder=tmp_path).split()
    assert Path(tracer) == ROOT / "tracer" / "citespan" / "tracer" / "__init__.py"
    assert Path(evaluators) == ROOT / "evaluators" / "citespan" / "evaluators" / "__init__.py"


HOST = (
    "import tracer, evaluators, citespan.tracer, citespan.evaluators; print(tracer.OWNER, evaluators.OWNER)"
)


def test_the_tracer_and_evaluators_modules_of_a_host_app_stay_its_own(
    with_evaluators: Environment, tmp_path: Path
) -> None:
    _write_host_app(tmp_path)
    assert with_evaluators.run_python(HOST, folder=tmp_path) == "host host"


def test_they_stay_its_own_beside_an_editable_install(editable: Environment, tmp_path: Path) -> None:
    _write_host_app(tmp_path)
    assert editable.run_python(HOST, folder=tmp_path) == "host host"


def test_another_distribution_can_live_in_the_namespace(with_evaluators: Environment, tmp_path: Path) -> None:
    (tmp_path / "citespan" / "house").mkdir(parents=True)
    (tmp_path / "citespan" / "house" / "__init__.py").write_text("OWNER = 'house'")
    code = "import citespan.house, citespan.tracer, citespan.evaluators; print(citespan.house.OWNER)"
    assert with_evaluators.run_python(code, folder=tmp_path) == "house"


def _write_host_app(folder: Path) -> None:
    for name in ("tracer.py", "evaluators.py"):
        (folder / name).write_text("OWNER = 'host'")
