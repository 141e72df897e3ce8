"""Deleting resources removes pods and keeps data, unless deletionPolicy is Delete: then nothing stays behind."""

from __future__ import annotations

from conftest import NAMESPACE, START, Stack, say

from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.conditions import all_ready
from herdkeeper_e2e.kubectl import Kubectl
from herdkeeper_e2e.tools_pod import Database, ToolsPod
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

RESOURCES = "zookeeperclusters,bookkeeperclusters,herddbclusters,tablespaces,checkpoints,replicationaudits"
MANAGED = "app.kubernetes.io/managed-by=herdkeeper"
WORKLOADS = "statefulsets,deployments,jobs,pods,services,configmaps,poddisruptionbudgets,networkpolicies,serviceaccounts,roles,rolebindings"
PATIENCE = Limit(600, 2)


def nothing_left(kubectl: Kubectl, kinds: str, selector: str = MANAGED) -> bool | Pending:
    left = [f"{item['kind']}/{item['metadata']['name']}" for item in kubectl.list(kinds, selector)]
    return Pending(f"still there: {', '.join(left)}") if left else True


def authorities(kubectl: Kubectl) -> dict[str, str]:
    """The uids of the authorities' Secrets, by name."""
    found = kubectl.list("secrets", MANAGED)
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in found if item["metadata"]["name"].endswith("-authority")}


def claims(kubectl: Kubectl) -> dict[str, str]:
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in kubectl.list("persistentvolumeclaims", MANAGED)}


def test_by_default_pods_go_and_volumes_stay_and_a_resource_of_the_same_name_finds_its_data(stack: Stack) -> None:
    kubectl = stack.kubectl
    rows = stack.tools.query("SELECT COUNT(*) AS n FROM weather")
    before, signers = claims(kubectl), authorities(kubectl)
    assert set(signers) == {"zk-zookeeper-authority", "zk-zookeeper-quorum-authority"}
    kubectl.run("delete", RESOURCES, "--all", "--timeout=600s", timeout_seconds=610)
    wait_for("the end of everything but data", lambda: nothing_left(kubectl, WORKLOADS), PATIENCE)
    assert (claims(kubectl), authorities(kubectl)) == (before, signers)
    assert len(before) == 3 + 2 * 4 + 2

    kubectl.apply(REPOSITORY / "examples/quickstart.yaml")
    stack.wait_until_ready()
    assert (claims(kubectl), authorities(kubectl)) == (before, signers)
    assert stack.tools.query("SELECT COUNT(*) AS n FROM weather") == rows


def test_with_deletion_policy_delete_nothing_stays_behind(stack: Stack) -> None:
    kubectl = stack.kubectl
    kubectl.run("delete", RESOURCES, "--all", "--timeout=600s", timeout_seconds=610)
    wait_for("the end of everything but data", lambda: nothing_left(kubectl, WORKLOADS), PATIENCE)
    kept = claims(kubectl)

    kubectl.apply(REPOSITORY / "examples/throwaway.yaml")
    names = ("temporary-zk", "temporary-bk", "temporary-db", "temporary")
    wait_for("the throwaway stack", lambda: all_ready(kubectl.list(RESOURCES), len(names)), START, say)
    volumes = {
        item["spec"]["volumeName"] for item in kubectl.list("persistentvolumeclaims", MANAGED) if item["metadata"]["name"] not in kept
    }
    assert volumes
    tools = ToolsPod(kubectl, "temporary-tools", Database.of(kubectl, "temporary-db", "temporary-bk", "temporary")).start()
    assert f"/{NAMESPACE}/temporary-bk/ledgers/INSTANCEID" in tools.znodes()

    # the ensemble last, so that it can be asked what the others left in it
    kubectl.run("delete", "tablespaces,herddbclusters,bookkeeperclusters", "--all", "--timeout=600s", timeout_seconds=610)
    assert tools.znodes() == []
    kubectl.run("delete", "pod", tools.name)
    kubectl.run("delete", RESOURCES, "--all", "--timeout=600s", timeout_seconds=610)
    wait_for("the end of everything", lambda: nothing_left(kubectl, WORKLOADS), PATIENCE)
    assert claims(kubectl) == kept
    secrets = [item["metadata"]["name"] for item in kubectl.list("secrets", MANAGED)]
    assert [name for name in secrets if name.startswith("temporary")] == []
    wait_for("the end of its volumes", lambda: _released(kubectl, volumes), PATIENCE)
    given_up = [event["message"] for event in kubectl.list("events") if event["reason"] == "DeletionGivenUp"]
    assert given_up == [], f"metadata was left behind in {NAMESPACE}"


def _released(kubectl: Kubectl, volumes: set[str]) -> bool | Pending:
    left = sorted(item["metadata"]["name"] for item in kubectl.list("persistentvolumes") if item["metadata"]["name"] in volumes)
    return Pending(f"volumes {', '.join(left)} are still there") if left else True
