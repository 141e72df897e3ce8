"""The Helm chart: it renders, its pod suits the restricted Pod Security Standard, its rules give what the operator needs and no more."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from herdkeeper.api import KINDS
from herdkeeper.process.lease import NAME
from herdkeeper.schema.access import ACCESS, Scope
from herdkeeper.shared.names import DRIVER_ROLE
from herdkeeper_e2e.control_plane import CHART, HOME, REPOSITORY, ControlPlane, apply_rules, helm, make_namespace, rendered
from herdkeeper_e2e.waiting import Limit, Pending, wait_for


def of_kind(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [document for document in objects if document["kind"] == kind]


def may(plane: ControlPlane, namespace: str | None, verb: str, group: str, resource: str) -> bool:
    """Whether the operator's ServiceAccount may do it; the API server's own answer."""
    plural, _, subresource = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource, "namespace": namespace}
    with plane.api_client(token="operator-token") as api:
        review = client.AuthorizationV1Api(api).create_self_subject_access_review({"spec": {"resourceAttributes": attributes}})
    return bool(review.status.allowed)


def test_helm_finds_nothing_wrong_with_the_chart() -> None:
    answer = subprocess.run([str(helm()), "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout
    assert "[INFO]" not in answer.stdout, "what it recommends"


def test_the_charts_icon_is_that_of_the_documentation() -> None:
    kind, _, text = yaml.safe_load((CHART / "Chart.yaml").read_text())["icon"].partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert base64.b64decode(text) == (REPOSITORY / "docs/assets/favicon.svg").read_bytes()


def test_the_chart_carries_the_definitions_unless_told_not_to() -> None:
    names = {document["metadata"]["name"] for document in of_kind(rendered(), "CustomResourceDefinition")}
    assert names == {f"{kind.PLURAL}.herdkeeper.io" for kind in KINDS}
    assert of_kind(rendered("crds.install=false"), "CustomResourceDefinition") == []


def test_the_charts_definitions_are_the_ones_that_are_tested() -> None:
    for document in of_kind(rendered(), "CustomResourceDefinition"):
        plain = yaml.safe_load((REPOSITORY / "crds" / f"{document['spec']['names']['plural']}.yaml").read_text())
        assert document["spec"] == plain["spec"]


@pytest.mark.parametrize(
    "setting",
    ["logLevel=loud", "replicas=many", "watchNamespace={a}", "resyncSeconds=0", "images.registry=example.com/", "images.digests.spark=1"],
)
def test_a_setting_that_nothing_reads_or_understands_is_refused(setting: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        rendered(setting)
    assert setting.partition("=")[0].rpartition(".")[2] in caught.value.stderr


def images_of(*settings: str) -> dict[str, str]:
    """By name, what the operator runs and what it is told to run."""
    (deployment,) = of_kind(rendered(*settings), "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    told = {entry["name"]: entry.get("value") for entry in container["env"]}
    names = ("zookeeper", "bookkeeper", "herddb", "spark")
    return {"operator": container["image"], **{name: told[f"HERDKEEPER_{name.upper()}_IMAGE"] for name in names}}


def test_a_version_with_build_metadata_is_no_invalid_label(tmp_path: Path) -> None:
    """Flux gives the chart of each commit a version such as 0.2.0+1f2e3d4c5b6a."""
    chart = tmp_path / "herdkeeper"
    shutil.copytree(CHART, chart)
    file = chart / "Chart.yaml"
    file.write_text(re.sub(r"(?m)^version: (\S+)$", r"version: \1+1f2e3d4c5b6a", file.read_text()))
    shown = subprocess.run([str(helm()), "template", "herdkeeper", str(chart)], check=True, capture_output=True, text=True).stdout
    labels = [str(value) for each in yaml.safe_load_all(shown) if each for value in (each["metadata"].get("labels") or {}).values()]
    assert [value for value in labels if not re.fullmatch(r"[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?", value)] == []
    assert any(value.endswith("_1f2e3d4c5b6a") for value in labels)


def test_one_registry_and_one_tag_serve_every_image() -> None:
    names = ("operator", "zookeeper", "bookkeeper", "herddb", "spark")
    assert images_of("images.registry=example.com:5000/mirror", "images.tag=0.2.0") == {
        name: f"example.com:5000/mirror/herdkeeper/{name}:0.2.0" for name in names
    }


def test_an_image_with_a_digest_is_pulled_by_it() -> None:
    digest = f"sha256:{'ab' * 32}"
    images = images_of("images.registry=example.com", f"images.digests.herddb={digest}")
    assert images["herddb"] == f"example.com/herdkeeper/herddb@{digest}"
    assert images["spark"] == "example.com/herdkeeper/spark:0.2.0"


@pytest.mark.parametrize(("setting", "chosen"), [((), set()), (("watchNamespaces={a,b}",), {"a", "b"})], ids=["all", "some"])
def test_admission_policies_hold_where_the_operator_watches(setting: tuple[str, ...], chosen: set[str]) -> None:
    """Elsewhere the operator of another release may act, which they don't know."""
    selectors = [each["spec"]["matchConstraints"]["namespaceSelector"] for each in of_kind(rendered(*setting), "ValidatingAdmissionPolicy")]
    assert len(selectors) > 2
    for selector in selectors:
        named = [(each["key"], each["operator"], set(each["values"])) for each in selector.get("matchExpressions", ())]
        assert named == ([("kubernetes.io/metadata.name", "In", chosen)] if chosen else [])


def test_a_namespace_may_have_a_name_that_yaml_takes_for_something_else() -> None:
    """A tenant's number, for instance."""
    bindings = of_kind(rendered('watchNamespaces=["7", "on"]', flag="--set-json"), "RoleBinding")
    assert [binding["metadata"]["namespace"] for binding in bindings] == [HOME, "7", "on"]


def test_the_operators_pod_is_admitted_where_only_restricted_pods_are(control_plane: ControlPlane) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = make_namespace(control_plane, f"restricted-{uuid.uuid4().hex[:8]}", labels)
    (deployment,) = of_kind(rendered(), "Deployment")
    pod = {"metadata": {"name": "operator"}, "spec": deployment["spec"]["template"]["spec"]}
    with control_plane.api_client() as api:
        core = client.CoreV1Api(api)
        assert core.create_namespaced_pod(namespace, pod, dry_run="All").metadata.name == "operator"
        del pod["spec"]["containers"][0]["securityContext"]
        with pytest.raises(ApiException, match="violates PodSecurity"):
            core.create_namespaced_pod(namespace, pod, dry_run="All")


def test_the_operator_is_told_its_settings() -> None:
    (deployment,) = of_kind(rendered("watchNamespaces={a,b}", "resyncSeconds=5", "logLevel=debug"), "Deployment")
    environment = {entry["name"]: entry.get("value") for entry in deployment["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert environment == {
        "HERDKEEPER_POD_IDS": "Auto",
        "HERDKEEPER_WATCH_NAMESPACES": "a,b",
        "HERDKEEPER_ZOOKEEPER_IMAGE": "herdkeeper/zookeeper:0.2.0",
        "HERDKEEPER_BOOKKEEPER_IMAGE": "herdkeeper/bookkeeper:0.2.0",
        "HERDKEEPER_HERDDB_IMAGE": "herdkeeper/herddb:0.2.0",
        "HERDKEEPER_SPARK_IMAGE": "herdkeeper/spark:0.2.0",
        "HERDKEEPER_DRIVER_ROLE": DRIVER_ROLE,
        "HERDKEEPER_RESYNC_SECONDS": "5",
        "HERDKEEPER_LOG_LEVEL": "debug",
        "HERDKEEPER_POD_NAMESPACE": None,
        "HERDKEEPER_POD_NAME": None,
    }


def test_cluster_wide_the_operator_may_do_what_its_table_says_and_nothing_beside(clean_access: ControlPlane, namespace: str) -> None:
    assert not may(clean_access, namespace, "list", "herdkeeper.io", "tablespaces")
    apply_rules(clean_access, rendered())
    for rule in (each for each in ACCESS if each.only is None and each.scope is not Scope.CHOSEN):
        where = {Scope.WATCHED: namespace, Scope.CLUSTER: None, Scope.HOME: HOME}[rule.scope]
        assert may(clean_access, where, rule.verbs[0], rule.group, rule.resources[0]), rule
    for verb, group, resource in (("create", "", "pods/exec"), ("delete", "", "nodes"), ("escalate", "rbac.authorization.k8s.io", "roles")):
        assert not may(clean_access, namespace, verb, group, resource)
    assert not may(clean_access, namespace, "patch", "coordination.k8s.io", "leases")


def test_with_watched_namespaces_the_operator_may_nothing_elsewhere(clean_access: ControlPlane, namespace: str) -> None:
    elsewhere = make_namespace(clean_access, f"elsewhere-{uuid.uuid4().hex[:8]}")
    apply_rules(clean_access, rendered(f"watchNamespaces={{{namespace}}}"))
    assert may(clean_access, namespace, "get", "", "secrets")
    assert not may(clean_access, elsewhere, "get", "", "secrets")
    assert not may(clean_access, elsewhere, "list", "herdkeeper.io", "tablespaces")
    assert not may(clean_access, None, "list", "", "secrets")


def test_the_operator_lists_namespaces_only_where_the_watched_ones_are_named(clean_access: ControlPlane, namespace: str) -> None:
    def listed(expected: bool) -> bool | Pending:
        return may(clean_access, None, "list", "", "namespaces") is expected or Pending("not yet")

    for settings, expected in (((), False), ((f"watchNamespaces={{{namespace}}}",), True)):
        apply_rules(clean_access, rendered(*settings))
        wait_for("the chart's rules", partial(listed, expected), Limit(60, 0.05))


def test_the_operator_reads_its_own_namespace_and_no_other(clean_access: ControlPlane, namespace: str) -> None:
    apply_rules(clean_access, rendered())
    with clean_access.api_client(token="operator-token") as api:
        assert client.CoreV1Api(api).read_namespace(HOME).metadata.name == HOME
        with pytest.raises(ApiException, match="Forbidden"):
            client.CoreV1Api(api).read_namespace(namespace)


def test_the_operator_may_change_no_lease_but_its_own(clean_access: ControlPlane) -> None:
    apply_rules(clean_access, rendered())
    own, another = ({"verb": "update", "group": "coordination.k8s.io", "resource": "leases", "name": name} for name in (NAME, "another"))
    with clean_access.api_client(token="operator-token") as api:
        review = client.AuthorizationV1Api(api).create_self_subject_access_review
        answers = [review({"spec": {"resourceAttributes": {**each, "namespace": HOME}}}).status.allowed for each in (own, another)]
    assert answers == [True, False]
