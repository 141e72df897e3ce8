"""What a platform team sets in the chart: each setting where it belongs, and all of them together accepted by a real API server."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ResourceNotFoundError

from herdkeeper.api import KINDS
from herdkeeper_e2e.control_plane import CHART, HOME, ControlPlane, apply_crds, make_namespace, rendered
from herdkeeper_e2e.go_module import module_folder

Objects = dict[tuple[str, str], dict[str, Any]]

TOLERATION = {"key": "pool", "operator": "Exists"}
AFFINITY = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}}
        ]
    }
}
SPREAD = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
RESOURCES = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}
PROXY = {"name": "HTTPS_PROXY", "value": "http://proxy:3128"}
SETTINGS: dict[str, Any] = {
    "resources": RESOURCES,
    "priorityClassName": "system-cluster-critical",
    "nodeSelector": {"pool": "control"},
    "tolerations": [TOLERATION],
    "affinity": AFFINITY,
    "topologySpreadConstraints": [SPREAD],
    "imagePullSecrets": [{"name": "registry"}],
    "podAnnotations": {"example.com/note": "a"},
    "podLabels": {"team": "data"},
    "serviceAccount": {"name": "keeper", "annotations": {"example.com/role": "r"}},
    "extraEnv": [PROXY],
    "fullnameOverride": "keeper",
    "replicas": 2,
    "podDisruptionBudget": {"create": True},
    "metrics": {name: {"create": True} for name in ("serviceMonitor", "podMonitor", "alerts", "dashboards")},
}
"""Each of them set."""
PLACES: dict[str, tuple[Callable[[dict[str, Any]], Any], Any]] = {
    "resources": (lambda pod: pod["containers"][0]["resources"], RESOURCES),
    "priorityClassName": (lambda pod: pod["priorityClassName"], "system-cluster-critical"),
    "nodeSelector": (lambda pod: pod["nodeSelector"], {"pool": "control"}),
    "tolerations": (lambda pod: pod["tolerations"], [TOLERATION]),
    "affinity": (lambda pod: pod["affinity"], AFFINITY),
    "topologySpreadConstraints": (lambda pod: pod["topologySpreadConstraints"], [SPREAD]),
    "imagePullSecrets": (lambda pod: pod["imagePullSecrets"], [{"name": "registry"}]),
    "extraEnv": (lambda pod: pod["containers"][0]["env"][-1:], [PROXY]),
    "serviceAccount": (lambda pod: pod["serviceAccountName"], "keeper"),
}
"""Where it stands in the pod's spec, and as what."""


def chart(**settings: Any) -> Objects:
    """The chart's objects with these settings, by kind and name."""
    found = rendered(*(f"{name}={json.dumps(value)}" for name, value in settings.items()), flag="--set-json")
    return {(document["kind"], document["metadata"]["name"]): document for document in found}


def deployment(objects: Objects) -> dict[str, Any]:
    (found,) = (document for (kind, _), document in objects.items() if kind == "Deployment")
    return found


@pytest.mark.parametrize("setting", PLACES)
def test_a_setting_of_the_pod_is_in_its_spec_and_nothing_is_there_without_it(setting: str) -> None:
    place, value = PLACES[setting]
    assert place(deployment(chart(**{setting: SETTINGS[setting]}))["spec"]["template"]["spec"]) == value
    with contextlib.suppress(KeyError):  # most are absent
        assert place(deployment(chart())["spec"]["template"]["spec"]) != value


def test_labels_and_annotations_are_the_pods_and_can_not_take_the_charts_own() -> None:
    found = deployment(chart(podLabels={"team": "data", "app.kubernetes.io/name": "other"}, podAnnotations={"example.com/note": "a"}))
    metadata = found["spec"]["template"]["metadata"]
    assert (metadata["labels"]["team"], metadata["annotations"]) == ("data", {"example.com/note": "a"})
    assert found["spec"]["selector"]["matchLabels"].items() <= metadata["labels"].items()


def test_no_user_is_named_so_that_a_platform_can_give_one() -> None:
    pod = deployment(chart())["spec"]["template"]["spec"]
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert "USER 10001:10001" in (CHART.parents[1] / "images/operator/Dockerfile").read_text(), "not root, and by number"


def test_another_name_is_that_of_every_object_and_of_what_refers_to_them() -> None:
    objects = chart(fullnameOverride="keeper")
    names = {name for kind, name in objects if kind != "CustomResourceDefinition" and not kind.startswith("ValidatingAdmissionPolicy")}
    assert names == {"keeper", "keeper-leadership", "keeper-metrics", *(f"{HOME}-keeper{end}" for end in ("", "-view", "-edit"))}
    for (kind, _), document in objects.items():
        if kind == "ValidatingAdmissionPolicyBinding":
            assert ("ValidatingAdmissionPolicy", document["spec"]["policyName"]) in objects
            assert document["metadata"]["name"].startswith(f"{HOME}-keeper-")
        if kind in ("RoleBinding", "ClusterRoleBinding"):
            assert ("Role" if kind == "RoleBinding" else "ClusterRole", document["roleRef"]["name"]) in objects
            assert ("ServiceAccount", document["subjects"][0]["name"]) in objects


def test_a_service_account_that_is_there_is_used_and_must_be_named() -> None:
    objects = chart(serviceAccount={"create": False, "name": "given"})
    assert "ServiceAccount" not in {kind for kind, _ in objects}
    assert deployment(objects)["spec"]["template"]["spec"]["serviceAccountName"] == "given"
    with pytest.raises(subprocess.CalledProcessError) as caught:
        chart(serviceAccount={"create": False})
    assert "set the name of a ServiceAccount" in caught.value.stderr


def test_the_service_account_has_its_annotations() -> None:
    objects = chart(serviceAccount={"annotations": {"example.com/role": "r"}})
    assert objects[("ServiceAccount", "herdkeeper")]["metadata"]["annotations"] == {"example.com/role": "r"}


def test_the_metrics_service_finds_the_pod_and_its_port() -> None:
    objects = chart()
    service, template = objects[("Service", "herdkeeper-metrics")]["spec"], deployment(objects)["spec"]["template"]
    assert service["selector"].items() <= template["metadata"]["labels"].items()
    assert service["ports"][0]["targetPort"] in {port["name"] for port in template["spec"]["containers"][0]["ports"]}
    assert ("Service", "herdkeeper-metrics") not in chart(metrics={"service": False})


def test_prometheus_is_told_of_the_service_and_of_the_alerts_where_it_is_asked_for() -> None:
    assert not {kind for kind, _ in chart()} & {"ServiceMonitor", "PrometheusRule"}
    labels = {"release": "prometheus"}
    objects = chart(
        metrics={"serviceMonitor": {"create": True, "labels": labels, "interval": "30s"}, "alerts": {"create": True, "labels": labels}}
    )
    monitor, rule = objects[("ServiceMonitor", "herdkeeper")], objects[("PrometheusRule", "herdkeeper")]
    service = objects[("Service", "herdkeeper-metrics")]
    assert labels.items() <= monitor["metadata"]["labels"].items()
    assert labels.items() <= rule["metadata"]["labels"].items()
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
    assert rule["spec"] == yaml.safe_load((CHART / "files/alerts.yaml").read_text())


def test_prometheus_is_told_of_the_servers_in_the_watched_namespaces_where_it_is_asked_for() -> None:
    assert ("PodMonitor", "herdkeeper") not in chart()
    wanted = {"create": True, "labels": {"release": "prometheus"}, "interval": "30s"}
    monitor = chart(metrics={"podMonitor": wanted})[("PodMonitor", "herdkeeper")]
    assert wanted["labels"].items() <= monitor["metadata"]["labels"].items()
    assert monitor["spec"]["namespaceSelector"] == {"any": True}
    assert (monitor["spec"]["podMetricsEndpoints"][0]["port"], monitor["spec"]["podMetricsEndpoints"][0]["interval"]) == ("metrics", "30s")
    some = chart(metrics={"podMonitor": {"create": True}}, watchNamespaces=["a", "b"])[("PodMonitor", "herdkeeper")]
    assert some["spec"]["namespaceSelector"] == {"matchNames": ["a", "b"]}
    assert "interval" not in some["spec"]["podMetricsEndpoints"][0]


def test_runbooks_are_where_the_team_reads_them() -> None:
    wiki = "https://wiki.example.com/runbooks"
    rule = chart(metrics={"alerts": {"create": True, "runbooks": wiki}})[("PrometheusRule", "herdkeeper")]
    urls = [rule["annotations"]["runbook_url"] for group in rule["spec"]["groups"] for rule in group["rules"]]
    assert urls
    assert all(url.startswith(f"{wiki}#") for url in urls)


def test_grafanas_sidecar_finds_the_dashboards_where_it_is_asked_for() -> None:
    assert "ConfigMap" not in {kind for kind, _ in chart()}
    objects = chart(metrics={"dashboards": {"create": True, "annotations": {"grafana_folder": "Herdkeeper"}}})
    found = {name: document for (kind, name), document in objects.items() if kind == "ConfigMap"}
    assert found.keys() == {f"herdkeeper-dashboard-{name}" for name in ("stack", "bookkeeper", "sql")}
    for document in found.values():
        assert document["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert document["metadata"]["annotations"] == {"grafana_folder": "Herdkeeper"}
        ((name, text),) = document["data"].items()
        assert json.loads(text) == json.loads((CHART / "files/dashboards" / name).read_text())


def test_a_service_monitor_without_the_service_is_refused() -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        chart(metrics={"service": False, "serviceMonitor": {"create": True}})
    assert "set metrics.service to true" in caught.value.stderr


def extended_by(role: dict[str, Any]) -> set[str]:
    """The cluster's own roles that a ClusterRole is added to."""
    aggregated = "rbac.authorization.k8s.io/aggregate-to-"
    return {label.removeprefix(aggregated) for label in role["metadata"]["labels"] if label.startswith(aggregated)}


def test_the_clusters_own_roles_are_extended_unless_told_not_to() -> None:
    objects = chart()
    view, edit = (objects[("ClusterRole", f"{HOME}-herdkeeper-{role}")] for role in ("view", "edit"))
    assert (extended_by(view), extended_by(edit)) == ({"view", "edit", "admin"}, {"edit", "admin"})
    assert set(view["rules"][0]["verbs"]) == {"get", "list", "watch"}
    assert [rule["apiGroups"] for role in (view, edit) for rule in role["rules"]] == [["herdkeeper.io"]] * 2
    assert [set(rule["resources"]) for role in (view, edit) for rule in role["rules"]] == [{kind.PLURAL for kind in KINDS}] * 2, "no status"
    assert {name for kind, name in chart(userRoles={"create": False}) if kind == "ClusterRole"} == {f"{HOME}-herdkeeper"}


def test_a_real_api_server_accepts_the_chart_with_every_setting_at_once(control_plane: ControlPlane, dynamic: DynamicClient) -> None:
    """Also of what the Prometheus operator defines: its CRDs are served."""
    make_namespace(control_plane, HOME)
    monitors = module_folder("scrape-config", "github.com/prometheus-operator/prometheus-operator")
    for plural in ("servicemonitors", "podmonitors", "prometheusrules"):
        apply_crds(control_plane, monitors / "example/prometheus-operator-crd", f"*_{plural}.yaml")
    for (kind, name), document in chart(**SETTINGS).items():
        try:
            resource = dynamic.resources.get(api_version=document["apiVersion"], kind=kind)
        except ResourceNotFoundError:
            pytest.fail(f"the API server knows no {kind}")
        namespace = document["metadata"].get("namespace")
        resource.server_side_apply(body=document, name=name, namespace=namespace, field_manager="helm", dry_run="All", force_conflicts=True)
