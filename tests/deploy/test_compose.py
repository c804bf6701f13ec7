"""compose.yaml: its schema, its secrets, what its containers may do, and how they find each other."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

Interpolate = Callable[[str, Mapping[str, str]], str]

SCHEMA = [str(Path(sys.executable).with_name("check-jsonschema")), "--builtin-schema", "vendor.compose-spec"]
"""The compose specification's own schema, as check-jsonschema ships it."""

OURS = ("worker", "demo")
"""Services of the image that deploy/Dockerfile makes."""


def strings(value: Any) -> Iterator[str]:
    """Return every text in a YAML value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for child in value.values():
            yield from strings(child)
    elif isinstance(value, list):
        for child in value:
            yield from strings(child)


def dotenv(text: str) -> dict[str, str]:
    """Return the variables that an environment file sets."""
    return dict(re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE))


def fits_schema(path: Path) -> bool:
    return subprocess.run([*SCHEMA, str(path)], capture_output=True, timeout=60, check=False).returncode == 0


def test_it_is_a_compose_file(deploy: Path, tmp_path: Path, compose: Mapping[str, Any]) -> None:
    assert fits_schema(deploy / "compose.yaml")
    wrong = copy.deepcopy(dict(compose))
    wrong["services"]["worker"]["stop_grace"] = "15s"
    (tmp_path / "compose.yaml").write_text(yaml.safe_dump(wrong))
    assert not fits_schema(tmp_path / "compose.yaml")


def test_it_refuses_to_start_without_each_secret(
    compose: Mapping[str, Any], interpolate: Interpolate, deploy: Path
) -> None:
    text = "\n".join(strings(compose["services"]))
    required = set(re.findall(r"\$\{(\w+):\?", text))
    example = dotenv((deploy / ".env.example").read_text())
    assert example == dict.fromkeys(required, ""), "the example names what is required, and fills in nothing"
    filled = dict.fromkeys(required, "x")
    for name in required:
        with pytest.raises(LookupError, match=f"{name}: set it in .env"):
            interpolate(text, {**filled, name: ""})
    assert "${" not in interpolate(text, filled)


def test_no_secret_has_a_default(compose: Mapping[str, Any]) -> None:
    def has_default(text: str) -> bool:
        return any(
            default for name, default in re.findall(r"\$\{(\w*(?:PASSWORD|SECRET|KEY)\w*):-([^${}]+)\}", text)
        )

    secret = re.compile(r"PASSWORD|SECRET|KEY")
    assert has_default("${GF_SECURITY_ADMIN_PASSWORD:-admin}")
    for service in compose["services"].values():
        for name, value in service.get("environment", {}).items():
            assert not has_default(value), name
            assert not secret.search(name) or value.startswith("${"), f"{name} is written into the file"


def test_every_image_has_a_whole_version(compose: Mapping[str, Any]) -> None:
    pinned = re.compile(r":[a-z-]*v?\d+\.\d+(\.\d+)?(-[a-z]+)?$")
    assert not pinned.search("grafana/grafana:latest")
    for name, service in compose["services"].items():
        assert pinned.search(service["image"]), name


def test_phoenix_is_the_version_that_the_tests_run_on(compose: Mapping[str, Any], root: Path) -> None:
    tested = re.search(r"^arize-phoenix==(\S+)$", (root / "constraints.txt").read_text(), re.MULTILINE)
    assert tested is not None
    assert compose["services"]["phoenix"]["image"] == f"arizephoenix/phoenix:version-{tested[1]}-nonroot"


def test_every_service_has_limits_and_restarts_and_is_watched(compose: Mapping[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert set(service["deploy"]["resources"]["limits"]) >= {"cpus", "memory"}, name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert service["logging"]["options"]["max-size"], name
        if name != "demo":  # asks its questions and ends
            assert service["restart"] == "unless-stopped", name
        if name not in OURS:  # those have the image's health check
            assert service["healthcheck"]["test"][0] == "CMD", name


def test_our_containers_may_do_nothing_but_their_work(compose: Mapping[str, Any]) -> None:
    for name in OURS:
        service = compose["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert [t for t in service["tmpfs"] if t.startswith("/tmp")], name


def test_each_service_waits_until_what_it_needs_is_healthy(compose: Mapping[str, Any]) -> None:
    needs = {
        name: {other: how["condition"] for other, how in service.get("depends_on", {}).items()}
        for name, service in compose["services"].items()
    }
    assert needs == {
        "postgres": {},
        "phoenix": {"postgres": "service_healthy"},
        "worker": {"phoenix": "service_healthy"},
        "demo": {"phoenix": "service_healthy"},
        "prometheus": {},
        "grafana": {"prometheus": "service_healthy"},
    }


def test_pages_are_published_to_this_machine_alone(compose: Mapping[str, Any]) -> None:
    published = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert len(published) == 3
    assert [port for port in published if not port.startswith("127.0.0.1:")] == []


def test_what_is_written_is_on_a_named_volume_and_what_is_mounted_exists(
    compose: Mapping[str, Any], deploy: Path
) -> None:
    volumes = [volume for service in compose["services"].values() for volume in service.get("volumes", [])]
    named = {volume.split(":")[0] for volume in volumes if not volume.startswith(".")}
    assert named == set(compose["volumes"])
    for volume in volumes:
        if volume.startswith("."):
            path, _, mode = volume.split(":")
            assert (deploy / path).is_dir(), path
            assert mode == "ro"


def test_services_share_a_network_with_those_they_call(compose: Mapping[str, Any]) -> None:
    services = compose["services"]
    calls = [
        ("phoenix", "postgres"),
        ("worker", "phoenix"),
        ("demo", "phoenix"),
        ("prometheus", "worker"),
        ("grafana", "prometheus"),
    ]
    for caller, called in calls:
        assert set(services[caller]["networks"]) & set(services[called]["networks"]), (caller, called)
    assert not set(services["worker"]["networks"]) & set(services["postgres"]["networks"])


def test_the_worker_has_the_same_port_everywhere(
    compose: Mapping[str, Any], image: Mapping[str, Any], texts: Mapping[str, str]
) -> None:
    command = compose["services"]["worker"]["command"]
    port = command[command.index("--metrics-port") + 1]
    assert compose["services"]["worker"]["command"] == image["cmd"]
    assert image["expose"] == port
    assert f"127.0.0.1:{port}/healthz" in image["healthcheck"][-1]
    scraped = yaml.safe_load(texts["prometheus/prometheus.yml"])["scrape_configs"][0]["static_configs"]
    assert scraped == [{"targets": [f"worker:{port}"]}]
    for name in ("kubernetes/worker/worker.yaml", "systemd/citespan-worker.service"):
        assert re.search(rf"--metrics-port[= ]{port}\b", texts[name]), name
    assert f"port: {port}" in texts["kubernetes/base/networkpolicy.yaml"]
