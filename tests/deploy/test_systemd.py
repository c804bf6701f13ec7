"""The systemd units: verified by systemd itself, and as closed as a service of this kind can be."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

SERVICES = ("citespan-worker.service", "citespan-evaluate.service")
UNITS = (*SERVICES, "citespan-evaluate.timer")

MOST_EXPOSED = 15
"""Tenths of systemd's exposure level, from 0 (closed) to 100."""

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing: apt-get install systemd"
)


@pytest.fixture
def units(deploy: Path, tmp_path: Path) -> Path:
    """The units in a folder, with the command that this environment has."""
    command = Path(sys.executable).with_name("citespan")
    for name in UNITS:
        text = (deploy / "systemd" / name).read_text()
        (tmp_path / name).write_text(text.replace("/usr/local/lib/citespan/bin/citespan", str(command)))
    return tmp_path


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


@needs_systemd
def test_systemd_has_nothing_to_say(units: Path) -> None:
    verified = analyze("verify", *(units / name for name in UNITS))
    # Other units of the machine are read too, and may be wrong.
    assert [line for line in verified.stderr.splitlines() if "citespan" in line] == []
    worker = units / SERVICES[0]
    worker.write_text(worker.read_text().replace("StateDirectory=", "StateFolder=", 1))
    assert "StateFolder" in analyze("verify", worker).stderr


@needs_systemd
@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_exposed_to_little(name: str, units: Path) -> None:
    judged = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", units / name)
    assert judged.returncode == 0, judged.stdout.splitlines()[-1]
    opened = units / name
    opened.write_text(
        re.sub(r"^(Protect|Private|Restrict|SystemCall).*\n", "", opened.read_text(), flags=re.MULTILINE)
    )
    assert analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", opened).returncode != 0


def settings(text: str) -> dict[str, str]:
    """Return the directives of a unit; of one that stands twice the last."""
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_writes_to_its_own_folder_alone(name: str, texts: Mapping[str, str]) -> None:
    unit = settings(texts[f"systemd/{name}"])
    folder = f"/var/lib/{unit['StateDirectory']}"
    assert unit["StateDirectory"] == name.removesuffix(".service")
    assert f"CITESPAN_HOME={folder}" in unit["Environment"].split()
    assert unit["WorkingDirectory"] == folder
    assert (unit["DynamicUser"], unit["ProtectSystem"], unit["CapabilityBoundingSet"]) == (
        "yes",
        "strict",
        "",
    )
    assert unit["EnvironmentFile"] == "/etc/citespan/citespan.env"
    assert int(unit["TimeoutStopSec"]) > 10


def test_the_worker_comes_back_and_the_pass_is_started_by_its_timer(texts: Mapping[str, str]) -> None:
    worker, job = (settings(texts[f"systemd/{name}"]) for name in SERVICES)
    assert (worker["Restart"], worker["RestartPreventExitStatus"]) == ("always", "2")
    assert job["Type"] == "oneshot"
    assert "[Install]" not in texts["systemd/citespan-evaluate.service"]
    timer = settings(texts["systemd/citespan-evaluate.timer"])
    assert (timer["OnCalendar"], timer["Persistent"]) == ("hourly", "true")
