"""Prometheus's own tools on the files of deploy/prometheus: configuration, rules, and what each alert does when."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is missing: apt-get install prometheus"
)


def promtool(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["promtool", *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture(scope="module")
def alerts(deploy: Path) -> list[Mapping[str, Any]]:
    data = yaml.safe_load((deploy / "prometheus/citespan.rules.yml").read_text())
    return [rule for group in data["groups"] for rule in group["rules"] if "alert" in rule]


@pytest.fixture(scope="module")
def rule_tests(deploy: Path) -> Sequence[Mapping[str, Any]]:
    return yaml.safe_load((deploy / "prometheus/citespan.rules.test.yml").read_text())["tests"]


@needs_promtool
def test_configuration_and_rules_are_what_prometheus_reads(deploy: Path) -> None:
    checked = promtool("check", "config", "prometheus.yml", folder=deploy / "prometheus")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "rules found" in checked.stdout


@needs_promtool
def test_every_alert_does_what_its_tests_say(deploy: Path) -> None:
    tested = promtool("test", "rules", "citespan.rules.test.yml", folder=deploy / "prometheus")
    assert tested.returncode == 0, tested.stdout + tested.stderr


@needs_promtool
@pytest.mark.parametrize(
    ("alert", "what", "by"),
    [
        ("CitespanSupportBelowFloor", r"and project_measure:\S+denominator:\S+ >= 50", ""),
        ("CitespanUnjudgedAboveCeiling", r"and project:citespan_cited_claims:increase1h >= 50", ""),
        ("CitespanWorkerAbsent", r" or absent\(up\{job=\"citespan-worker\"\}\)", ""),
        (
            "CitespanWorkerStuck",
            r"sum by \(job, instance\) \(increase\(citespan_traces_taken_total\[30m\]\)\)",
            "0",
        ),
        ("CitespanShardAbsent", r"\n +and on \(project, shards\).*", ""),
        ("CitespanLagHigh", r"and citespan_traces_pending >= 10", ""),
        ("CitespanTracesSetAside", r"(?<=set_aside\[1h\]\) )>= 5", "> 0"),
        ("CitespanPhoenixErrors", r"(?<=\[15m\]\) )>= 3", "> 0"),
        ("CitespanPhoenixBehind", r"(?<=\[30m\]\) )>= 30", "> 0"),
        ("CitespanWorkDoubled", r"(?<=runs_doubled_total\[1h\]\) )>= 10", "> 0"),
        ("CitespanStateNotSaved", r"(?<=state_errors_total\[1h\]\) )>= 3", "> 0"),
    ],
)
def test_a_rule_without_its_least_count_fails_its_tests(
    deploy: Path, tmp_path: Path, rule_tests: Sequence[Mapping[str, Any]], alert: str, what: str, by: str
) -> None:
    text, changes = re.subn(what, by, (deploy / "prometheus/citespan.rules.yml").read_text())
    assert changes == 1
    (tmp_path / "rules.yml").write_text(text)
    mine = [test for test in rule_tests if test["name"].startswith(f"{alert}:")]
    tests = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": mine}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(tests, width=10_000))
    tested = promtool("test", "rules", "tests.yml", folder=tmp_path)
    assert "FAILED" in tested.stdout + tested.stderr
    assert tested.returncode == 1


def test_each_alert_is_tested_to_fire_and_to_be_silent_on_too_little_and_on_nothing(
    alerts: list[Mapping[str, Any]], rule_tests: Sequence[Mapping[str, Any]]
) -> None:
    cases = [(test, case) for test in rule_tests for case in test.get("alert_rule_test", [])]
    for alert in alerts:
        name = alert["alert"]
        mine = [(test, case) for test, case in cases if case["alertname"] == name]
        fires = [test for test, case in mine if case["exp_alerts"]]
        silent = [test for test, case in mine if not case["exp_alerts"]]
        assert fires, name
        assert [test for test in silent if test["input_series"]], name
        if name == "CitespanWorkerAbsent":
            assert [test for test in fires if not test["input_series"]], "no worker is what it is for"
        else:
            assert [test for test in silent if not test["input_series"]], name


def test_each_alert_says_what_happened_and_what_to_do(
    alerts: list[Mapping[str, Any]], texts: Mapping[str, str]
) -> None:
    for alert in alerts:
        assert alert["labels"]["severity"] in ("critical", "warning", "info"), alert["alert"]
        assert len(alert["annotations"]["summary"]) > 20, alert["alert"]
        assert len(alert["annotations"]["description"]) > 50, alert["alert"]
    named = set(re.findall(r"`(Citespan\w+)`", texts["README.md"]))
    assert named == {alert["alert"] for alert in alerts}


def test_rules_know_workers_by_the_job_that_is_scraped(deploy: Path, texts: Mapping[str, str]) -> None:
    config = yaml.safe_load(texts["prometheus/prometheus.yml"])
    jobs = {job["job_name"] for job in config["scrape_configs"]}
    assert set(re.findall(r'job="([^"]+)"', texts["prometheus/citespan.rules.yml"])) == jobs
    # The operator makes the job's name from this label of the pod.
    monitor = yaml.safe_load(texts["kubernetes/components/monitoring/podmonitor.yaml"])
    worker = yaml.safe_load(texts["kubernetes/worker/worker.yaml"])
    assert {worker["spec"]["template"]["metadata"]["labels"][monitor["spec"]["jobLabel"]]} == jobs
