"""What a platform team sets in the chart: each setting where it belongs, and all of them together accepted by a real API server."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import yaml
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ResourceNotFoundError

from herdkeeper.api import KINDS
from herdkeeper.api.default_images import VERSION
from herdkeeper_e2e.control_plane import CHART, HOME, ControlPlane, apply_crds, make_namespace, rendered
from herdkeeper_e2e.go_module import module_folder
from herdkeeper_e2e.release.chart_settings import settings

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
PEER = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
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
    "networkPolicy": {"scrapers": [PEER]},
}
"""Each of them set."""


def chart(**given: Any) -> Objects:
    """The chart's objects with these settings, by kind and name."""
    found = rendered(*(f"{name}={json.dumps(value)}" for name, value in given.items()), flag="--set-json")
    return {(document["kind"], document["metadata"]["name"]): document for document in found}


def deployment(objects: Objects) -> dict[str, Any]:
    (found,) = (document for (kind, _), document in objects.items() if kind == "Deployment")
    return found


def pod(objects: Objects) -> dict[str, Any]:
    return dict(deployment(objects)["spec"]["template"]["spec"])


def operator(objects: Objects) -> dict[str, Any]:
    """Its container."""
    (found,) = pod(objects)["containers"]
    return dict(found)


def images(objects: Objects) -> list[str]:
    """The operator's, and those that it is told to use."""
    return [operator(objects)["image"], *(value for name, value in environment(objects).items() if name.endswith("_IMAGE"))]


def environment(objects: Objects) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in operator(objects)["env"] if "value" in entry}


def metadata(kind: str, objects: Objects) -> dict[str, Any]:
    """Of the first object of a kind."""
    return dict(next(document["metadata"] for (each, _), document in objects.items() if each == kind))


def number(kind: str, objects: Objects) -> int:
    """How many objects of a kind there are."""
    return sum(each == kind for each, _ in objects)


IMAGES = ("operator", "zookeeper", "bookkeeper", "herddb", "spark")
DIGESTS = {name: f"sha256:{number:064x}" for number, name in enumerate(IMAGES)}
NOTE = {"example.com/note": "a"}
TEAM = {"team": "data"}
ROWS: dict[str, tuple[Any, Callable[[Objects], Any], Any]] = {
    "images.registry": ("example.com/a", images, [f"example.com/a/herdkeeper/{name}:{VERSION}" for name in IMAGES]),
    "images.tag": ("9.9.9", images, [f"herdkeeper/{name}:9.9.9" for name in IMAGES]),
    "images.digests": (DIGESTS, images, [f"herdkeeper/{name}@{DIGESTS[name]}" for name in IMAGES]),
    "images.pullPolicy": ("Always", lambda objects: operator(objects)["imagePullPolicy"], "Always"),
    "imagePullSecrets": ([{"name": "registry"}], lambda objects: pod(objects)["imagePullSecrets"], [{"name": "registry"}]),
    "fullnameOverride": ("keeper", lambda objects: metadata("Deployment", objects)["name"], "keeper"),
    "replicas": (2, lambda objects: deployment(objects)["spec"]["replicas"], 2),
    "watchNamespaces": (["a", "b"], lambda objects: environment(objects)["HERDKEEPER_WATCH_NAMESPACES"], "a,b"),
    "podIds": ("Assigned", lambda objects: environment(objects)["HERDKEEPER_POD_IDS"], "Assigned"),
    "resyncSeconds": (5, lambda objects: environment(objects)["HERDKEEPER_RESYNC_SECONDS"], "5"),
    "logLevel": ("debug", lambda objects: environment(objects)["HERDKEEPER_LOG_LEVEL"], "debug"),
    "extraEnv": ([PROXY], lambda objects: operator(objects)["env"][-1], PROXY),
    "resources": (RESOURCES, lambda objects: operator(objects)["resources"], RESOURCES),
    "crds.install": (False, partial(number, "CustomResourceDefinition"), 0),
    "userRoles.create": (False, partial(number, "ClusterRole"), 2),
    "admissionPolicies.create": (
        False,
        lambda objects: [number(f"ValidatingAdmissionPolicy{end}", objects) for end in ("", "Binding")],
        [0, 0],
    ),
    "serviceAccount.create": (False, partial(number, "ServiceAccount"), 0),
    "serviceAccount.name": ("given", lambda objects: pod(objects)["serviceAccountName"], "given"),
    "serviceAccount.annotations": (NOTE, lambda objects: metadata("ServiceAccount", objects)["annotations"], NOTE),
    "metrics.service": (False, partial(number, "Service"), 0),
    "metrics.serviceMonitor.create": (True, partial(number, "ServiceMonitor"), 1),
    "metrics.serviceMonitor.labels": (TEAM, lambda objects: metadata("ServiceMonitor", objects)["labels"]["team"], "data"),
    "metrics.serviceMonitor.interval": (
        "7s",
        lambda objects: objects[("ServiceMonitor", "herdkeeper")]["spec"]["endpoints"][0]["interval"],
        "7s",
    ),
    "metrics.podMonitor.create": (True, partial(number, "PodMonitor"), 1),
    "metrics.podMonitor.labels": (TEAM, lambda objects: metadata("PodMonitor", objects)["labels"]["team"], "data"),
    "metrics.podMonitor.interval": (
        "7s",
        lambda objects: objects[("PodMonitor", "herdkeeper")]["spec"]["podMetricsEndpoints"][0]["interval"],
        "7s",
    ),
    "metrics.alerts.create": (True, partial(number, "PrometheusRule"), 1),
    "metrics.alerts.labels": (TEAM, lambda objects: metadata("PrometheusRule", objects)["labels"]["team"], "data"),
    "metrics.alerts.runbooks": (
        "https://wiki.example.com/runbooks",
        lambda objects: {
            rule["annotations"]["runbook_url"].partition("#")[0]
            for group in objects[("PrometheusRule", "herdkeeper")]["spec"]["groups"]
            for rule in group["rules"]
        },
        {"https://wiki.example.com/runbooks"},
    ),
    "metrics.dashboards.create": (True, partial(number, "ConfigMap"), 3),
    "metrics.dashboards.labels": (TEAM, lambda objects: metadata("ConfigMap", objects)["labels"]["team"], "data"),
    "metrics.dashboards.annotations": (NOTE, lambda objects: metadata("ConfigMap", objects)["annotations"], NOTE),
    "podDisruptionBudget.create": (True, partial(number, "PodDisruptionBudget"), 1),
    "networkPolicy.create": (False, partial(number, "NetworkPolicy"), 0),
    "networkPolicy.scrapers": (
        [PEER],
        lambda objects: [rule["from"] for rule in objects[("NetworkPolicy", "herdkeeper")]["spec"]["ingress"]],
        [[PEER]],
    ),
    "podSecurity": (
        {"fsGroup": 7},
        lambda objects: pod(objects)["securityContext"],
        {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}, "fsGroup": 7},
    ),
    "podAnnotations": (NOTE, lambda objects: deployment(objects)["spec"]["template"]["metadata"]["annotations"], NOTE),
    "podLabels": (TEAM, lambda objects: deployment(objects)["spec"]["template"]["metadata"]["labels"]["team"], "data"),
    "priorityClassName": ("system-cluster-critical", lambda objects: pod(objects)["priorityClassName"], "system-cluster-critical"),
    "nodeSelector": ({"pool": "control"}, lambda objects: pod(objects)["nodeSelector"], {"pool": "control"}),
    "tolerations": ([TOLERATION], lambda objects: pod(objects)["tolerations"], [TOLERATION]),
    "affinity": (AFFINITY, lambda objects: pod(objects)["affinity"], AFFINITY),
    "topologySpreadConstraints": ([SPREAD], lambda objects: pod(objects)["topologySpreadConstraints"], [SPREAD]),
}
"""Each setting of values.yaml: another value, where the rendered objects have it, and what is there."""


def beside(setting: str) -> dict[str, Any]:
    """What else must be set so that a setting means something."""
    group, _, name = setting.rpartition(".")
    if f"{group}.create" in ROWS and name != "create" and group != "serviceAccount":
        return {f"{group}.create": True}
    return {"serviceAccount.name": "given"} if setting == "serviceAccount.create" else {}


def test_each_setting_of_the_chart_is_rendered_here() -> None:
    declared = {setting.path for setting in settings((CHART / "values.yaml").read_text())}
    assert sorted(declared - ROWS.keys()) == [], "no test renders the chart with another value: add a row to ROWS"
    assert sorted(ROWS.keys() - declared) == [], "values.yaml has no such setting"


@pytest.mark.parametrize("setting", ROWS)
def test_a_setting_is_where_it_belongs_and_is_not_there_without_it(setting: str) -> None:
    value, place, expected = ROWS[setting]
    assert place(chart(**beside(setting), **{setting: value})) == expected
    with contextlib.suppress(KeyError):  # most are absent
        assert place(chart(**beside(setting))) != expected


def test_an_api_server_that_would_let_no_stored_resource_go_is_refused() -> None:
    """Kubernetes 1.29 refuses to take the finalizer off a resource that a newer rule refuses; 1.30 checks only what changes."""
    with pytest.raises(subprocess.CalledProcessError):
        rendered("v1.29.0", flag="--kube-version")
    assert rendered("v1.30.0", flag="--kube-version")


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
    assert names == {"keeper", "keeper-leadership", "keeper-metrics", *(f"{HOME}-keeper{end}" for end in ("", "-driver", "-view", "-edit"))}
    told = deployment(objects)["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "HERDKEEPER_DRIVER_ROLE", "value": f"{HOME}-keeper-driver"} in told
    (bound,) = (rule for rule in objects[("ClusterRole", f"{HOME}-keeper")]["rules"] if rule["verbs"] == ["bind"])
    assert bound["resourceNames"] == [f"{HOME}-keeper-driver"]
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


def test_the_metrics_service_finds_the_pod_and_its_port() -> None:
    objects = chart()
    service, template = objects[("Service", "herdkeeper-metrics")]["spec"], deployment(objects)["spec"]["template"]
    assert service["selector"].items() <= template["metadata"]["labels"].items()
    assert service["ports"][0]["targetPort"] in {port["name"] for port in template["spec"]["containers"][0]["ports"]}
    assert ("Service", "herdkeeper-metrics") not in chart(metrics={"service": False})


def test_of_the_operator_only_the_metrics_can_be_reached_by_whom_the_chart_is_told() -> None:
    objects = chart(networkPolicy={"scrapers": [PEER]})
    policy, template = objects[("NetworkPolicy", "herdkeeper")]["spec"], deployment(objects)["spec"]["template"]
    assert policy["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert policy["ingress"] == [{"from": [PEER], "ports": [{"port": port["name"]} for port in operator(objects)["ports"]]}]
    assert policy["policyTypes"] == ["Ingress"], "connections of the operator are not limited"
    assert "ingress" not in chart()[("NetworkPolicy", "herdkeeper")]["spec"], "an empty list admits nobody"


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
    wanted: dict[str, Any] = {"create": True, "labels": {"release": "prometheus"}, "interval": "30s"}
    monitor = chart(metrics={"podMonitor": wanted})[("PodMonitor", "herdkeeper")]
    assert wanted["labels"].items() <= monitor["metadata"]["labels"].items()
    assert monitor["spec"]["namespaceSelector"] == {"any": True}
    assert (monitor["spec"]["podMetricsEndpoints"][0]["port"], monitor["spec"]["podMetricsEndpoints"][0]["interval"]) == ("metrics", "30s")
    some = chart(metrics={"podMonitor": {"create": True}}, watchNamespaces=["a", "b"])[("PodMonitor", "herdkeeper")]
    assert some["spec"]["namespaceSelector"] == {"matchNames": ["a", "b"]}
    assert "interval" not in some["spec"]["podMetricsEndpoints"][0]


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
    assert {name for kind, name in chart(userRoles={"create": False}) if kind == "ClusterRole"} == {
        f"{HOME}-herdkeeper{end}" for end in ("", "-driver")
    }


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
