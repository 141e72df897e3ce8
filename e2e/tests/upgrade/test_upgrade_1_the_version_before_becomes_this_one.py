"""A stack of version 0.1.0, made by that version's operator, is upgraded as docs/how-to/upgrade-servers.md says, goes back to the operator
before, and is upgraded again, all under a writer. No acknowledged row is lost, servers restart one at a time, and a Checkpoint of the
version before is restored by this one. It has a cluster of its own, since both versions have CRDs of the same names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from conftest import EXPLAINED_BY, Stack, begin_anew, ready_stack, say
from under_load import all_anew, during, settled, uids, under_load

from herdkeeper.api.default_images import VERSION
from herdkeeper_e2e.cluster import OPERATOR_NAMESPACE, RELEASE, REPOSITORY, cluster_environment, install_operator, run
from herdkeeper_e2e.conditions import condition
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.kubectl import Kubectl
from herdkeeper_e2e.sql_stack import BOOKIES
from herdkeeper_e2e.tablespaces import wait_until_ready

CLUSTER = "herdkeeper-upgrade"
ROWS = 100
SERVERS = {"ZooKeeperCluster": "zookeeper", "BookKeeperCluster": "bookkeeper", "HerdDBCluster": "herddb"}
"""Each kind with the name of its image."""
NAMES = {"ZooKeeperCluster": "zk", "BookKeeperCluster": "bk", "HerdDBCluster": "db"}


@dataclass(frozen=True)
class Before:
    """The stack of the version before, and the folder with that version's files."""

    stack: Stack
    files: Path

    @property
    def kubectl(self) -> Kubectl:
        """In the namespace of the stack."""
        return self.stack.kubectl


@pytest.fixture
def own_cluster(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> Iterator[Kubectl]:
    """Another cluster than that of the other scenarios; it goes in the end."""
    monkeypatch.setenv("HERDKEEPER_KIND_CLUSTER", CLUSTER)
    run([str(REPOSITORY / "e2e/bootstrap/prepare.sh")], os.environ, say)
    kubectl = Kubectl("upgrade", cluster_environment())
    pytestconfig.stash[EXPLAINED_BY] = kubectl
    yield kubectl
    run([str(REPOSITORY / "e2e/kind/cluster.sh"), "down"], os.environ, say)


@pytest.fixture
def before(own_cluster: Kubectl) -> Before:
    """The quickstart of version 0.1.0, by its own operator and images, Ready."""
    kubectl = own_cluster
    files = Path(run([str(REPOSITORY / "e2e/images/version-before.sh")], os.environ, say).strip())
    values = {"image.tag": "before", "sparkImage": "herdkeeper/spark:before", "resyncSeconds": "5"}
    settings = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
    _helm(kubectl, "install", RELEASE, str(files / "charts/herdkeeper"), "--create-namespace", "--wait", "--timeout", "5m", *settings)
    begin_anew(kubectl)
    documents = list(yaml.safe_load_all((files / "examples/quickstart.yaml").read_text()))
    for document in documents:
        if document["kind"] in SERVERS:
            document["spec"]["image"] = f"herdkeeper/{SERVERS[document['kind']]}:before"
    kubectl.apply_all(documents)
    return Before(ready_stack(kubectl), files)


def _helm(kubectl: Kubectl, *arguments: str) -> None:
    run(["helm", *arguments, "--namespace", OPERATOR_NAMESPACE], kubectl.environment, say)


def upgrade(before: Before) -> None:
    """As the page says: the CRDs, the mode, the chart. All servers get a named port, so all of them restart."""
    pods = uids(before.stack)
    before.kubectl.run("apply", "-f", str(REPOSITORY / "crds"))
    before.kubectl.want("zookeepercluster", "zk", security={"mode": "Insecure"})
    install_operator(before.kubectl.environment, say, 5)
    all_anew(before.stack, pods)


def go_back(before: Before) -> None:
    """As the page says: the release before, and what its operator can't go on with. It gives the servers the ports that it knows."""
    pods, kubectl = uids(before.stack), before.kubectl
    _helm(kubectl, "rollback", RELEASE, "--wait", "--timeout", "5m")
    kubectl.want("tablespace", "flights", fullCheck=None)
    for bookie in kubectl.list("statefulsets", BOOKIES):
        kubectl.want("statefulset", bookie["metadata"]["name"], updateStrategy={"type": "RollingUpdate"})
    all_anew(before.stack, pods)


def follow_the_operator(before: Before) -> None:
    """The servers' images become those of the operator's version."""
    pods = uids(before.stack)
    for kind, name in NAMES.items():
        before.kubectl.want(kind, name, image=None)
    all_anew(before.stack, pods)


def images(before: Before) -> set[str]:
    """What the servers run."""
    pods = before.kubectl.list("pods", "app.kubernetes.io/name in (zookeeper,bookie,herddb,autorecovery)")
    return {str(pod["spec"]["containers"][0]["image"]) for pod in pods}


def test_the_version_before_is_upgraded_goes_back_and_is_upgraded_again(before: Before) -> None:
    kubectl, tools = before.kubectl, before.stack.tools
    tools.run("query", "CREATE TABLE cities (id INT PRIMARY KEY, name STRING)", "INSERT INTO cities (id, name) VALUES (1, 'Bergamo')")
    kubectl.apply(before.files / "examples/checkpoint.yaml")
    wait_until_succeeded(kubectl, "checkpoint", "flights-1", say)
    with under_load(before.stack, "upgraded") as writer:
        writer.acknowledges(ROWS)
        for step, change in (("upgraded", upgrade), ("went back", go_back), ("upgraded again", upgrade)):
            with during(step, writer, ROWS):
                change(before)
        assert {image.rpartition(":")[2] for image in images(before)} == {"before"}
        with during("servers follow the operator", writer, ROWS):
            follow_the_operator(before)
    assert {image.rpartition(":")[2] for image in images(before)} == {VERSION}

    encrypted = condition(before.stack.sql.get("zookeepercluster", "zk"), "Encrypted")
    assert encrypted is not None
    assert encrypted["status"] == "False"
    kubectl.apply(REPOSITORY / "examples/restore.yaml")
    wait_until_ready(kubectl, "restored", say)  # of a Checkpoint of the version before
    settled(before.stack)
