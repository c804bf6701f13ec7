"""The Kubernetes manifests: real schemas, the restricted profile, and shards that know how many they are."""

from __future__ import annotations

import copy
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from citespan.evaluators.periodic.sampling import Shard

OLDEST, NEWEST = "1.31", "1.37"
"""Versions of Kubernetes that the manifests are for: ordinals that start at 1 are stable since 1.31."""

OPERATOR = "monitoring.coreos.com/v1"
"""Kinds of the Prometheus operator, of which no schema is at hand."""

needs_kubectl = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl is missing: it builds kustomizations"
)

Resource = Mapping[str, Any]


def resources_in(text: str) -> list[Resource]:
    return [document for document in yaml.safe_load_all(text) if document]


@pytest.fixture(scope="module")
def manifests(deploy: Path) -> Mapping[str, Resource]:
    """Every resource as written, by kind and name."""
    files = [
        path
        for path in (deploy / "kubernetes").rglob("*.yaml")
        if path.name not in ("kustomization.yaml", "shards.yaml")
    ]
    resources = [resource for path in files for resource in resources_in(path.read_text())]
    return {f"{resource['kind']}/{resource['metadata']['name']}": resource for resource in resources}


@pytest.fixture(scope="module")
def build(deploy: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Mapping[str, Resource]]:
    """Build a kustomization as `kubectl apply --kustomize` does."""

    def built(folder: str | Path) -> Mapping[str, Resource]:
        made = subprocess.run(
            ["kubectl", "kustomize", str(deploy / "kubernetes" / folder)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        return {f"{r['kind']}/{r['metadata']['name']}": r for r in resources_in(made.stdout)}

    return built


def pods(resources: Mapping[str, Resource]) -> dict[str, Any]:
    """Return the pod specification of each resource that makes pods."""
    found = {}
    for name, resource in resources.items():
        spec = resource.get("spec", {})
        template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
        if template is not None:
            found[name] = template["spec"]
    return found


def check(resource: Resource) -> None:
    """Hold a resource against the strict schemas.

    Raises:
        kubernetes_validate.ValidationError: A field is wrong, missing, or none of Kubernetes.
    """
    for version in (OLDEST, NEWEST):
        kubernetes_validate.validate(dict(resource), version, strict=True)


def test_every_manifest_fits_the_schema(manifests: Mapping[str, Resource]) -> None:
    kinds = {name.partition("/")[0] for name in manifests}
    assert kinds == {
        "CronJob",
        "NetworkPolicy",
        "PersistentVolumeClaim",
        "PodDisruptionBudget",
        "PodMonitor",
        "PrometheusRule",
        "ServiceAccount",
        "StatefulSet",
    }
    for resource in manifests.values():
        if resource["apiVersion"] != OPERATOR:
            check(resource)


def test_a_field_that_kubernetes_does_not_have_is_found(manifests: Mapping[str, Resource]) -> None:
    wrong = copy.deepcopy(dict(manifests["StatefulSet/citespan-worker"]))
    wrong["spec"]["template"]["spec"]["containers"][0]["readyProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        check(wrong)


@needs_kubectl
@pytest.mark.parametrize("folder", ["worker", "cronjob", "example"])
def test_what_kustomize_builds_fits_the_schema(
    folder: str, build: Callable[[str], Mapping[str, Resource]]
) -> None:
    for resource in build(folder).values():
        if resource["apiVersion"] != OPERATOR:
            check(resource)


@needs_kubectl
def test_every_component_can_be_added(deploy: Path, tmp_path: Path) -> None:
    shutil.copytree(deploy / "kubernetes", tmp_path / "k")
    overlay = tmp_path / "k" / "all"
    overlay.mkdir()
    names = sorted(path.name for path in (deploy / "kubernetes/components").iterdir())
    overlay.joinpath("kustomization.yaml").write_text(
        yaml.safe_dump(
            {"resources": ["../worker"], "components": [f"../components/{name}" for name in names]}
        )
    )
    made = subprocess.run(
        ["kubectl", "kustomize", str(overlay)], capture_output=True, text=True, timeout=60, check=False
    )
    assert made.returncode == 0, made.stderr
    built = {f"{r['kind']}/{r['metadata']['name']}" for r in resources_in(made.stdout)}
    assert {"NetworkPolicy/citespan-judge", "PodMonitor/citespan-worker", "PrometheusRule/citespan"} <= built


@needs_kubectl
@pytest.mark.parametrize(("folder", "count"), [("worker", 1), ("example", 3)])
def test_each_worker_is_told_of_how_many_it_is_one(
    folder: str, count: int, build: Callable[[str], Mapping[str, Resource]]
) -> None:
    worker = build(folder)["StatefulSet/citespan-worker"]["spec"]
    container = worker["template"]["spec"]["containers"][0]
    variables = {variable["name"]: variable for variable in container["env"]}
    assert (worker["replicas"], variables["SHARDS"]["value"]) == (count, str(count))
    # The pod's index begins at 1, as shards do, and Kubernetes puts it into this label.
    assert worker["ordinals"] == {"start": 1}
    assert (
        variables["SHARD"]["valueFrom"]["fieldRef"]["fieldPath"]
        == "metadata.labels['apps.kubernetes.io/pod-index']"
    )
    option = next(a for a in container["args"] if a.startswith("--shard=")).removeprefix("--shard=")
    for index in range(1, count + 1):
        shard = Shard.parse(option.replace("$(SHARD)", str(index)).replace("$(SHARDS)", str(count)))
        assert str(shard) == f"{index}/{count}"


@needs_kubectl
@pytest.mark.parametrize("folder", ["worker", "cronjob", "example"])
def test_pods_find_their_settings_and_secrets(
    folder: str, build: Callable[[str], Mapping[str, Resource]]
) -> None:
    built = build(folder)
    maps = {name.partition("/")[2] for name in built if name.startswith("ConfigMap/")}
    for spec in pods(built).values():
        sources = spec["containers"][0]["envFrom"]
        assert {s["configMapRef"]["name"] for s in sources if "configMapRef" in s} == maps
        assert [s["secretRef"] for s in sources if "secretRef" in s] == [{"name": "citespan"}]
    assert not [name for name in built if name.startswith("Secret/")], "no secret is in the repository"


def test_pods_keep_to_the_restricted_profile(manifests: Mapping[str, Resource]) -> None:
    found = pods(manifests)
    assert set(found) == {"StatefulSet/citespan-worker", "CronJob/citespan-evaluate"}
    for name, spec in found.items():
        context = spec["securityContext"]
        assert (context["runAsNonRoot"], context["runAsUser"]) == (True, 10001), name
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert spec["automountServiceAccountToken"] is False, name
        for container in spec["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, name
            assert set(container["resources"]["limits"]) == {"cpu", "memory"}, name
            assert set(container["resources"]["requests"]) == {"cpu", "memory"}, name
    assert manifests["ServiceAccount/citespan"]["automountServiceAccountToken"] is False


def test_the_user_and_the_state_are_the_images(
    manifests: Mapping[str, Resource], image: Mapping[str, Any]
) -> None:
    for name, spec in pods(manifests).items():
        context = spec["securityContext"]
        assert f"{context['runAsUser']}:{context['runAsGroup']}" == image["user"], name
        mounts = {mount["name"]: mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
        assert mounts["state"] == image["volume"] == image["environment"]["CITESPAN_HOME"], name


def test_probes_ask_what_the_worker_serves(manifests: Mapping[str, Resource]) -> None:
    container = pods(manifests)["StatefulSet/citespan-worker"]["containers"][0]
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "metrics"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics"}
    assert container["ports"] == [{"name": "metrics", "containerPort": 9637}]
    monitor = manifests["PodMonitor/citespan-worker"]["spec"]
    assert [endpoint["port"] for endpoint in monitor["podMetricsEndpoints"]] == ["metrics"]


def test_traffic_goes_to_phoenix_and_dns_and_comes_from_prometheus(manifests: Mapping[str, Resource]) -> None:
    policy = manifests["NetworkPolicy/citespan"]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    out = {port["port"] for rule in policy["egress"] for port in rule["ports"]}
    assert out == {6006, 53}
    assert [rule["ports"] for rule in policy["ingress"]] == [[{"protocol": "TCP", "port": 9637}]]
    for rule in [*policy["egress"], *policy["ingress"]]:
        peers: Sequence[Mapping[str, Any]] = rule.get("to") or rule["from"]
        assert all(peer["namespaceSelector"] and peer["podSelector"] for peer in peers)


def test_a_stop_is_waited_for(manifests: Mapping[str, Resource]) -> None:
    for name, spec in pods(manifests).items():
        assert spec["terminationGracePeriodSeconds"] > 10, name


def test_the_operator_has_the_same_rules_as_prometheus(
    deploy: Path, manifests: Mapping[str, Resource]
) -> None:
    rules = yaml.safe_load((deploy / "prometheus/citespan.rules.yml").read_text())
    assert manifests["PrometheusRule/citespan"]["spec"] == rules
