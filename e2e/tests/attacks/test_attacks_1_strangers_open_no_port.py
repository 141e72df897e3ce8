"""The cluster enforces NetworkPolicies, and strangers try every port of every server: without a label in the database's namespace, with the
operator's label in it, and from another namespace. They open SQL, which asks for a password, and nothing else. The database, its jobs and
its failover work all the while."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import partial

import pytest
from conftest import Stack, goes_in_the_end, say

from herdkeeper.shared.names import HERDDB_COMPONENT, HERDDB_SQL_PORT
from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.stranger import Port, Stranger
from herdkeeper_e2e.volume_claim import volume_claim
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

API = "herdkeeper.io/v1alpha1"
ELSEWHERE = "elsewhere"
ENFORCED = Limit(120, 2)
ROWS = 50
OPERATOR = {"app.kubernetes.io/name": "herdkeeper-operator"}
SERVERS = "app.kubernetes.io/name in (zookeeper,bookie,autorecovery,herddb)"


@pytest.fixture(scope="module")
def strangers(request: pytest.FixtureRequest, stack: Stack) -> list[Stranger]:
    """They run before anything is enforced."""
    kubectl, elsewhere = stack.kubectl, Kubectl(ELSEWHERE, stack.kubectl.environment)
    goes_in_the_end(request, kubectl, "namespace", ELSEWHERE)
    kubectl.apply(json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ELSEWHERE}}))
    found = [Stranger(kubectl, "stranger", {}), Stranger(kubectl, "impostor", OPERATOR), Stranger(elsewhere, "neighbour", {})]
    for each in found:
        goes_in_the_end(request, each.kubectl, "pod", each.name)
        each.start()
    return found


def policies(stack: Stack, order: str) -> None:
    script = str(REPOSITORY / "e2e/kind/network-policies.sh")
    subprocess.run([script, order], check=True, env=stack.kubectl.environment)


@pytest.fixture
def enforced(stack: Stack) -> Iterator[None]:
    try:
        policies(stack, "enforce")
        yield
    finally:
        policies(stack, "stop")


def servers(stack: Stack) -> list[Object]:
    return stack.kubectl.list("pods", SERVERS)


def job_succeeds(request: pytest.FixtureRequest, stack: Stack, kind: str, name: str, **spec: object) -> None:
    """With its work in pods of their own, which driver and executors reach."""
    job = {"resources": {"cpu": "100m", "memory": "1536Mi"}, "executors": {"instances": 1, "cpu": "100m", "memory": "512Mi"}}
    goes_in_the_end(request, stack.kubectl, kind, name)
    stack.kubectl.apply(json.dumps({"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": {**spec, "job": job}}))
    wait_until_succeeded(stack.kubectl, kind.lower(), name, say)


def test_strangers_open_nothing_but_sql_and_the_database_works(
    request: pytest.FixtureRequest, stack: Stack, strangers: list[Stranger]
) -> None:
    open_to_all = strangers[0].opens(servers(stack))
    say(f"{len(open_to_all)} ports answer while nothing is enforced")
    request.getfixturevalue("enforced")

    def only_sql(stranger: Stranger) -> bool | Pending:
        pods = servers(stack)
        wanted = {Port(HERDDB_COMPONENT, str(pod["metadata"]["name"]), HERDDB_SQL_PORT) for pod in pods if is_sql(pod)}
        opened = stranger.opens(pods)
        return True if opened == wanted else Pending(f"{stranger.name} opens {sorted(map(str, opened ^ wanted))} against the rules")

    def require_the_rules() -> None:
        for stranger in strangers:
            wait_for(f"the rules for {stranger.name}", partial(only_sql, stranger), ENFORCED)

    require_the_rules()
    writer = WriterProcess(stack.tools, "written_under_policies")
    writer.acknowledges(ROWS)
    claim = "under-policies"
    goes_in_the_end(request, stack.kubectl, "persistentvolumeclaim", claim, "--wait=false")
    stack.kubectl.apply(json.dumps(volume_claim(claim)))
    destination = {"persistentVolumeClaim": {"claimName": claim}}
    job_succeeds(request, stack, "Checkpoint", "under-policies", tablespaceRef={"name": "flights"}, destination=destination)
    job_succeeds(request, stack, "ReplicationAudit", "under-policies", bookKeeperRef={"name": "bk"})
    leader = stack.sql.leader()
    stack.sql.delete(leader)
    writer.acknowledges(ROWS)
    stack.wait_until_ready()
    writer.stop()
    assert writer.read()["violation"] is None
    require_the_rules()  # for the pod that was made meanwhile, too
    listening = {(port.component, port.number) for port in open_to_all}
    assert {("zookeeper", 2181), ("bookie", 3181), ("bookie", 8080), (HERDDB_COMPONENT, 9845)} <= listening


def is_sql(pod: Object) -> bool:
    return bool(pod["metadata"]["labels"]["app.kubernetes.io/name"] == HERDDB_COMPONENT)
