"""The chart's admission policies on a real API server: who may create a resource gets no more by it than he has."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError

from herdkeeper.api.herddb_cluster import MOST_USERS
from herdkeeper.api.resource import API_VERSION
from herdkeeper.planning.pods import CONTAINER_SECURITY
from herdkeeper.plugin import session
from herdkeeper.plugin.main import main
from herdkeeper.shared.names import EXECUTOR_COMPONENT, labels
from herdkeeper_e2e.control_plane import CHART, OPERATOR_USER, ControlPlane, make_namespace, rendered
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

Json = dict[str, Any]
TENANT = "tenant"
DRIVER = "flights-1-checkpoint"
CHECKPOINT: Json = {
    "tablespaceRef": {"name": "flights"},
    "destination": {"persistentVolumeClaim": {"claimName": "out"}},
}
STORE: Json = {
    "objectStore": {"uri": "s3://out/flights", "credentialsSecretRef": {"name": "somebody-s"}},
}
LABELS = labels(EXECUTOR_COMPONENT, "Checkpoint", "flights-1")


def container(name: str = "executor", ports: tuple[Json, ...] = (), **security: Any) -> Json:
    return {"name": name, "image": "spark:1", "ports": list(ports), "securityContext": {**CONTAINER_SECURITY, **security}}


EXECUTOR: Json = {
    "metadata": {"generateName": "executor-", "labels": LABELS},
    "spec": {"automountServiceAccountToken": False, "containers": [container()]},
}


def acting_as(plane: ControlPlane, user: str) -> DynamicClient:
    api = plane.api_client()
    api.set_default_header("Impersonate-User", user)
    return DynamicClient(api, cache_file=str(plane.folder / f"discovery-as-{uuid.uuid4().hex}.json"))


def allow(plane: ControlPlane, namespace: str, user: str, *rules: Json) -> None:
    """More rights in the namespace."""
    name = f"r-{uuid.uuid4().hex[:10]}"
    with plane.api_client() as api:
        rbac = client.RbacAuthorizationV1Api(api)
        rbac.create_namespaced_role(namespace, {"metadata": {"name": name}, "rules": list(rules)})
        subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        rbac.create_namespaced_role_binding(namespace, {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]})


def rule(group: str, resource: str, *verbs: str) -> Json:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}


@pytest.fixture(scope="module")
def policies(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The chart's policies are in force."""
    dynamic = control_plane.dynamic_client()
    objects = [document for document in rendered() if document["kind"].startswith("ValidatingAdmissionPolicy")]

    def resource(document: Json) -> Any:
        return dynamic.resources.get(api_version=document["apiVersion"], kind=document["kind"])

    for document in objects:
        resource(document).create(body=document)
    namespace = make_namespace(control_plane, f"policies-{uuid.uuid4().hex[:8]}")
    allow(control_plane, namespace, TENANT, rule("herdkeeper.io", "*", "create"))
    allow(control_plane, namespace, driver_of(namespace), rule("", "pods", "create"), rule("herdkeeper.io", "executors", "drive"))
    wait_for("policies", lambda: _in_force(control_plane, namespace), Limit(120, 0.2))
    yield control_plane
    for document in reversed(objects):
        resource(document).delete(name=document["metadata"]["name"])


def _in_force(plane: ControlPlane, namespace: str) -> bool | Pending:
    """The API server learns of policies and of rights from watches."""
    image = create(plane, namespace, TENANT, "ReplicationAudit", {"bookKeeperRef": {"name": "bk"}, "job": {"image": "mine:1"}})
    stranger = make_pod(plane, namespace, {**EXECUTOR, "metadata": {"generateName": "stranger-"}})
    refused = [answer for answer in (image, stranger) if answer is not None and "ValidatingAdmissionPolicy" in answer]
    return len(refused) == 2 or Pending(f"{image}; {stranger}")


def driver_of(namespace: str) -> str:
    return f"system:serviceaccount:{namespace}:{DRIVER}"


def create(plane: ControlPlane, namespace: str, user: str, kind: str, spec: Json) -> str | None:
    """Why the API server refuses it; None when it takes it."""
    resource = acting_as(plane, user).resources.get(api_version=API_VERSION, kind=kind)
    body = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": f"a-{uuid.uuid4().hex[:8]}"}, "spec": spec}
    return refusal(lambda: resource.create(body=body, namespace=namespace))


def make_pod(plane: ControlPlane, namespace: str, pod: Json) -> str | None:
    """Why a driver may not make the pod; None when it may."""
    resource = acting_as(plane, driver_of(namespace)).resources.get(api_version="v1", kind="Pod")
    return refusal(lambda: resource.create(body={"apiVersion": "v1", "kind": "Pod", **pod}, namespace=namespace))


def refusal(deed: Any) -> str | None:
    try:
        deed()
    except DynamicApiError as error:
        return str(error.body)
    return None


@pytest.fixture
def tenant(policies: ControlPlane, namespace: str) -> str:
    """Who may create herdkeeper's resources in the namespace, and nothing else."""
    allow(policies, namespace, TENANT, rule("herdkeeper.io", "*", "create", "update", "patch", "get"))
    wait_for("rights", lambda: create(policies, namespace, TENANT, "Checkpoint", CHECKPOINT) is None or Pending("not yet"), Limit(60, 0.1))
    return TENANT


OWN_IMAGES = [
    ("ZooKeeperCluster", {"image": "mine:1"}),
    ("Checkpoint", {**CHECKPOINT, "job": {"image": "mine:1", "executors": {"instances": 2}}}),
    ("ScheduledReplicationAudit", {"schedule": "0 3 * * *", "template": {"bookKeeperRef": {"name": "bk"}, "job": {"image": "mine:1"}}}),
]


@pytest.mark.parametrize(("kind", "spec"), OWN_IMAGES, ids=[kind for kind, _ in OWN_IMAGES])
def test_who_may_create_no_pods_runs_no_image_of_his_through_the_operator(
    policies: ControlPlane, namespace: str, tenant: str, kind: str, spec: Json
) -> None:
    assert "it names the image mine:1, and you may not create pods" in str(create(policies, namespace, tenant, kind, spec))
    allow(policies, namespace, tenant, rule("", "pods", "create"))
    wait_for("rights", lambda: create(policies, namespace, tenant, kind, spec) is None or Pending("not yet"), Limit(60, 0.1))


def test_who_may_create_no_pods_has_none_run_as_another_service_account(policies: ControlPlane, namespace: str, tenant: str) -> None:
    spec = {**CHECKPOINT, "destination": {"objectStore": {"uri": "gs://backups", "serviceAccountName": "somebody-s"}}}
    refused = str(create(policies, namespace, tenant, "Checkpoint", spec))
    assert "it names the ServiceAccount somebody-s, and you may not create pods" in refused
    allow(policies, namespace, tenant, rule("", "pods", "create"))
    wait_for("rights", lambda: create(policies, namespace, tenant, "Checkpoint", spec) is None or Pending("not yet"), Limit(60, 0.1))


INJECTED = {"annotations": {"sidecar.istio.io/proxyImage": "mine:1"}}
ANNOTATED = [
    ("BookKeeperCluster", {"zooKeeperRef": {"name": "zk"}, "pods": INJECTED}),
    ("ScheduledReplicationAudit", {"schedule": "0 3 * * *", "template": {"bookKeeperRef": {"name": "bk"}, "job": {"pods": INJECTED}}}),
    ("Tablespace", {"herdDBRef": {"name": "db"}, "log": {"archive": {"destination": CHECKPOINT["destination"], "pods": INJECTED}}}),
]


@pytest.mark.parametrize(("kind", "spec"), ANNOTATED, ids=[kind for kind, _ in ANNOTATED])
def test_who_may_create_no_pods_has_no_annotation_bring_an_image_of_his_into_one(
    policies: ControlPlane, namespace: str, tenant: str, kind: str, spec: Json
) -> None:
    refused = str(create(policies, namespace, tenant, kind, spec))
    assert "it gives its pods the annotation sidecar.istio.io/proxyImage, and you may not create pods" in refused
    allow(policies, namespace, tenant, rule("", "pods", "create"))
    wait_for("rights", lambda: create(policies, namespace, tenant, kind, spec) is None or Pending("not yet"), Limit(60, 0.1))


OTHERS_SECRETS = [
    ("ZooKeeperCluster", {"security": {"authority": {"secretName": "somebody-s"}}}),
    ("HerdDBCluster", {"bookKeeperRef": {"name": "bk"}, "users": [{"secretName": "somebody-s"}]}),
    ("Checkpoint", {**CHECKPOINT, "destination": STORE}),
    ("Tablespace", {"herdDBRef": {"name": "db"}, "log": {"archive": {"destination": STORE}}}),
]


@pytest.mark.parametrize(("kind", "spec"), OTHERS_SECRETS, ids=[kind for kind, _ in OTHERS_SECRETS])
def test_who_may_not_get_a_secret_has_the_operator_give_it_to_no_pod(
    policies: ControlPlane, namespace: str, tenant: str, kind: str, spec: Json
) -> None:
    assert "it names a Secret that you may not get" in str(create(policies, namespace, tenant, kind, spec))
    allow(policies, namespace, tenant, {**rule("", "secrets", "get"), "resourceNames": ["somebody-s"]})
    wait_for("rights", lambda: create(policies, namespace, tenant, kind, spec) is None or Pending("not yet"), Limit(60, 0.1))


def test_who_may_create_no_pods_names_no_secret_in_a_status(policies: ControlPlane, namespace: str, tenant: str) -> None:
    """Where a restore that has begun reads, and with which Secret, is in the status."""
    allow(policies, namespace, tenant, rule("herdkeeper.io", "tablespaces/status", "patch"))
    tablespaces = acting_as(policies, tenant).resources.get(api_version=API_VERSION, kind="Tablespace")
    body = {"apiVersion": API_VERSION, "kind": "Tablespace", "metadata": {"name": "t"}, "spec": {"herdDBRef": {"name": "db"}}}
    tablespaces.create(body=body, namespace=namespace)
    path = f"{tablespaces.path(name='t', namespace=namespace)}/status"
    patch = {"status": {"restore": {"manifest": "m.json", **STORE}}}

    def written() -> str | None:
        return refusal(lambda: tablespaces.client.request("patch", path, body=patch, content_type="application/merge-patch+json"))

    assert "so you may not write a status: the operator acts on it" in str(written())
    allow(policies, namespace, tenant, rule("", "pods", "create"))
    wait_for("rights", lambda: written() is None or Pending("not yet"), Limit(60, 0.1))


def test_the_plan_of_a_change_is_shown_only_to_who_may_revert_it(
    policies: ControlPlane, namespace: str, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who may create no pods may take out the image that somebody else named, and not put it back."""
    clusters = policies.dynamic_client().resources.get(api_version=API_VERSION, kind="BookKeeperCluster")
    spec = {"zooKeeperRef": {"name": "zk"}, "image": "theirs:1"}
    clusters.create(
        body={"apiVersion": API_VERSION, "kind": "BookKeeperCluster", "metadata": {"name": "bk"}, "spec": spec}, namespace=namespace
    )
    file = tmp_path / "change.json"
    file.write_text(json.dumps({"kind": "BookKeeperCluster", "metadata": {"name": "bk"}, "spec": {"image": None}}))
    api = acting_as(policies, tenant).client
    monkeypatch.setattr(session, "open_session", lambda _: (api, namespace))

    def planned() -> str:
        main(["plan", "-f", str(file), "--timeout", "1"], pause=lambda _: None)
        found = clusters.get(name="bk", namespace=namespace)
        assert (found.spec.image, found.metadata.annotations) == ("theirs:1", None)
        shown = capsys.readouterr()
        return shown.out + shown.err

    assert "could not be reverted with your rights" in planned()
    allow(policies, namespace, tenant, rule("", "pods", "create"))
    wait_for("rights", lambda: "no result within 1 s" in planned() or Pending("not yet"), Limit(60, 0.1))


def test_two_secrets_are_asked_for_by_name_and_more_together(policies: ControlPlane, namespace: str, tenant: str) -> None:
    def made(users: int) -> bool | Pending:
        spec = {"bookKeeperRef": {"name": "bk"}, "users": [{"secretName": f"login-{number}"} for number in range(users)]}
        refused = create(policies, namespace, tenant, "HerdDBCluster", spec)
        return refused is None or Pending(refused)

    allow(policies, namespace, tenant, {**rule("", "secrets", "get"), "resourceNames": [f"login-{number}" for number in range(MOST_USERS)]})
    wait_for("two", lambda: made(2), Limit(60, 0.1))
    assert "it names more than two Secrets" in str(made(3))
    allow(policies, namespace, tenant, rule("", "secrets", "get"))
    wait_for("as many as there may be", lambda: made(MOST_USERS), Limit(60, 0.1))


def test_the_operator_makes_the_runs_of_a_schedule_and_metadata_change_whatever_the_spec_names(
    policies: ControlPlane, namespace: str, tenant: str
) -> None:
    named = {**CHECKPOINT, "destination": STORE, "job": {"image": "mine:1"}}
    allow(policies, namespace, OPERATOR_USER, rule("herdkeeper.io", "*", "create"))
    wait_for(
        "rights", lambda: create(policies, namespace, OPERATOR_USER, "Checkpoint", named) is None or Pending("not yet"), Limit(60, 0.1)
    )
    checkpoints = acting_as(policies, tenant).resources.get(api_version=API_VERSION, kind="Checkpoint")
    made = next(
        item
        for item in policies.dynamic_client().resources.get(api_version=API_VERSION, kind="Checkpoint").get(namespace=namespace).items
        if item.spec.job.image == "mine:1"
    )
    patch = {"metadata": {"annotations": {"a": "b"}}}
    checkpoints.patch(name=made.metadata.name, namespace=namespace, body=patch, content_type="application/merge-patch+json")


def token_for(audience: str) -> Json:
    return {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token", "audience": audience}}]}}


def volume_of(secret: str, number: int = 0) -> Json:
    return {"name": f"secret-{number}", "secret": {"secretName": secret}}


def variable_of(secret: str) -> Json:
    return {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": secret, "key": "key"}}}


def changed(labels: Json | None = None, **spec: Any) -> Json:
    metadata = {**EXECUTOR["metadata"], "labels": EXECUTOR["metadata"]["labels"] if labels is None else labels}
    return {"metadata": metadata, "spec": {**EXECUTOR["spec"], **spec}}


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (changed({}), "makes and deletes its own executors"),
        (changed({**LABELS, "app.kubernetes.io/name": "herddb"}), "its own executors"),
        (changed({**LABELS, "herdkeeper.io/owner-name": "another"}), "its own executors"),
        (changed({**LABELS, "herdkeeper.io/owner-name": "flights"}), "its own executors"),
        (changed({**LABELS, "herdkeeper.io/owner-kind": "ReplicationAudit"}), "its own executors"),
        (changed(automountServiceAccountToken=True), "an executor has no token"),
        (changed(hostNetwork=True), "nothing of the machine"),
        (changed(volumes=[{"name": "disk", "hostPath": {"path": "/"}}]), "nothing of the machine"),
        (
            changed(
                serviceAccountName=DRIVER, volumes=[{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]
            ),
            "has no token",
        ),
        (changed(containers=[container(privileged=True, allowPrivilegeEscalation=True)]), "no privileges"),
        (changed(initContainers=[container("init", privileged=True, allowPrivilegeEscalation=True)]), "no privileges"),
        (changed(containers=[container(allowPrivilegeEscalation=True)]), "no privileges"),
        (changed(containers=[{"name": "executor", "image": "spark:1"}]), "no privileges"),
        (changed(containers=[container(capabilities={"add": ["NET_RAW"]})]), "no privileges"),
        (changed(containers=[container(ports=({"containerPort": 80, "hostPort": 80},))]), "no port of the machine"),
        (changed(serviceAccountName="somebody-s"), "runs as no other ServiceAccount than its job"),
        (changed(serviceAccountName="default", volumes=[token_for("https://kubernetes.default.svc")]), "has no token"),
        (changed(volumes=[volume_of("zk-zookeeper-authority")]), "no Secrets but those of its job"),
        (changed(containers=[{**container(), "env": [variable_of("somebody-s")]}]), "no Secrets but those of its job"),
        (changed(initContainers=[{**container("init"), "envFrom": [{"secretRef": {"name": "somebody-s"}}]}]), "no Secrets but"),
    ],
    ids=[
        "no label",
        "a server",
        "another job's",
        "one's with the beginning of its name",
        "another kind's",
        "a token",
        "the network",
        "a disk",
        "a token as a volume",
        "all privileges",
        "all privileges at the start",
        "privileges that a program gains",
        "privileges that nobody forbids",
        "a capability",
        "a port of the machine",
        "an account",
        "its token",
        "an authority's key",
        "a Secret as a variable",
        "a Secret as all variables",
    ],
)
def test_a_spark_driver_makes_nothing_but_its_executors(policies: ControlPlane, namespace: str, pod: Json, words: str) -> None:
    allow(policies, namespace, driver_of(namespace), rule("", "pods", "create", "delete"), rule("herdkeeper.io", "executors", "drive"))
    wait_for("rights", lambda: make_pod(policies, namespace, EXECUTOR) is None or Pending("not yet"), Limit(60, 0.1))
    assert words in str(make_pod(policies, namespace, pod))


def test_a_spark_driver_makes_no_server_of_its_executor_by_other_labels(policies: ControlPlane, namespace: str) -> None:
    """A Service would lead clients there, with their passwords, and a StatefulSet adopt it."""
    allow(policies, namespace, driver_of(namespace), rule("", "pods", "create", "patch"), rule("herdkeeper.io", "executors", "drive"))
    wait_for("rights", lambda: make_pod(policies, namespace, EXECUTOR) is None or Pending("not yet"), Limit(60, 0.1))
    pods = acting_as(policies, driver_of(namespace)).resources.get(api_version="v1", kind="Pod")
    own = policies.dynamic_client().resources.get(api_version="v1", kind="Pod").get(namespace=namespace).items[0].metadata.name

    def relabelled(labels: Json) -> str | None:
        patch = {"metadata": {"labels": labels}}
        return refusal(lambda: pods.patch(name=own, namespace=namespace, body=patch, content_type="application/merge-patch+json"))

    wait_for("rights", lambda: relabelled({"phase": "running"}) is None or Pending("not yet"), Limit(60, 0.1))
    assert "its own executors" in str(relabelled({"app.kubernetes.io/name": "herddb"}))
    assert "its own executors" in str(relabelled({"herdkeeper.io/owner-name": "db"}))


def test_executors_run_as_the_account_of_their_job_with_the_tokens_of_its_cloud(policies: ControlPlane, namespace: str) -> None:
    with policies.api_client() as api:
        client.CoreV1Api(api).create_namespaced_service_account(namespace, {"metadata": {"name": "backups"}})
    runs = {**rule("herdkeeper.io", "executors", "run"), "resourceNames": ["backups"]}
    allow(policies, namespace, driver_of(namespace), rule("", "pods", "create"), rule("herdkeeper.io", "executors", "drive"), runs)
    executor = changed(serviceAccountName="backups", volumes=[token_for("sts.amazonaws.com")])
    wait_for("rights", lambda: make_pod(policies, namespace, executor) is None or Pending("not yet"), Limit(60, 0.1))
    assert make_pod(policies, namespace, changed(serviceAccountName="backups", volumes=[token_for("api://AzureADTokenExchange")])) is None
    assert "runs as no other" in str(make_pod(policies, namespace, changed(serviceAccountName=DRIVER)))


def test_executors_have_the_secrets_of_their_job_as_often_as_it_names_them(policies: ControlPlane, namespace: str) -> None:
    """As many as a job with two object stores, keys and a certificate has: some in more variables than one."""
    secrets = [f"job-s-{number}" for number in range(8)]
    mounts = {**rule("herdkeeper.io", "executors", "mount"), "resourceNames": secrets}
    allow(policies, namespace, driver_of(namespace), rule("", "pods", "create"), rule("herdkeeper.io", "executors", "drive"), mounts)

    def executor(volumes: list[str], variables: list[str]) -> Json:
        mounted = [volume_of(secret, number) for number, secret in enumerate(volumes)]
        return changed(containers=[{**container(), "env": [*map(variable_of, variables)]}], volumes=mounted)

    all_of_them = executor(secrets[:4], [*secrets[4:], *secrets])
    wait_for("rights", lambda: make_pod(policies, namespace, all_of_them) is None or Pending("not yet"), Limit(60, 0.1))
    for place in range(8):
        others = [*secrets[:place], "zk-zookeeper-authority", *secrets[place + 1 :]]
        assert "no Secrets but those of its job" in str(make_pod(policies, namespace, executor(others[:4], others[4:]))), place
    assert "at most 16" in str(make_pod(policies, namespace, executor(secrets, [*secrets, secrets[0]])))


def test_a_spark_driver_deletes_neither_servers_nor_anybody_s_configuration(policies: ControlPlane, namespace: str) -> None:
    verbs = ("create", "delete", "deletecollection", "list")
    allow(
        policies,
        namespace,
        driver_of(namespace),
        rule("", "pods", *verbs),
        rule("", "configmaps", *verbs),
        rule("herdkeeper.io", "executors", "drive"),
    )
    wait_for("rights", lambda: make_pod(policies, namespace, EXECUTOR) is None or Pending("not yet"), Limit(60, 0.1))
    admin, driver = policies.dynamic_client(), acting_as(policies, driver_of(namespace))
    server = {"metadata": {"name": "db-herddb-0", "labels": {"app.kubernetes.io/name": "herddb"}}, "spec": EXECUTOR["spec"]}
    admin.resources.get(api_version="v1", kind="Pod").create(body={"apiVersion": "v1", "kind": "Pod", **server}, namespace=namespace)
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "zk-zookeeper"}, "data": {"zoo.cfg": ""}}
    admin.resources.get(api_version="v1", kind="ConfigMap").create(body=settings, namespace=namespace)
    pods, config_maps = (driver.resources.get(api_version="v1", kind=kind) for kind in ("Pod", "ConfigMap"))
    assert "its own executors" in str(refusal(lambda: pods.delete(name="db-herddb-0", namespace=namespace)))
    assert "its own executors" in str(refusal(lambda: pods.delete(namespace=namespace, label_selector="app.kubernetes.io/name=herddb")))
    assert "own ConfigMaps, and no others" in str(refusal(lambda: config_maps.delete(name="zk-zookeeper", namespace=namespace)))
    executors = pods.get(namespace=namespace, label_selector="app.kubernetes.io/name=executor").items
    assert refusal(lambda: pods.delete(name=executors[0].metadata.name, namespace=namespace)) is None


def test_who_may_do_everything_is_no_driver(policies: ControlPlane, namespace: str) -> None:
    allow(policies, namespace, driver_of(namespace), {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]})
    wait_for("rights", lambda: make_pod(policies, namespace, changed({})) is None or Pending("not yet"), Limit(60, 0.1))


def test_an_operator_in_the_namespace_of_its_own_pod_is_no_driver(policies: ControlPlane, namespace: str) -> None:
    watched = yaml.safe_load((CHART / "files/rules/watched.yaml").read_text())
    # with those of drivers that operators of earlier versions had
    allow(policies, namespace, driver_of(namespace), *watched, rule("herdkeeper.io", "executors", "drive"))
    config_maps = acting_as(policies, driver_of(namespace)).resources.get(api_version="v1", kind="ConfigMap")
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "zk-zookeeper"}, "data": {"zoo.cfg": ""}}
    made = partial(refusal, lambda: config_maps.create(body=settings, namespace=namespace))
    wait_for("rights", lambda: made() is None or Pending("not yet"), Limit(60, 0.1))
