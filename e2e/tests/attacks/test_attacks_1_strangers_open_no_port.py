"""The cluster enforces NetworkPolicies, and strangers try every port of every server: without a label in the database's namespace, with the
operator's label in it, and from another namespace. They open SQL, which asks for a password, and nothing else. The database, its jobs and
its failover work all the while. Then they try the same at a stack in plain text, which only the policies protect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import pytest
from conftest import Stack, goes_in_the_end, say
from own_stack import plain_stack
from runs import made, own_volume, with_executors
from under_load import lost_nothing

from herdkeeper.shared.names import BOOKIE_ADMIN_PORT, BOOKIE_COMPONENT, HERDDB_COMPONENT, HERDDB_SQL_PORT
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.stranger import Port, Stranger
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

ELSEWHERE = "elsewhere"
ENFORCED = Limit(120, 2)
OPERATOR = {"app.kubernetes.io/name": "herdkeeper-operator"}
ORDER = """
import json, re, sys, urllib.error, urllib.request
def count():
    metrics = urllib.request.urlopen(sys.argv[1] + "/metrics", timeout=10).read().decode()
    return float(re.search('^herdkeeper_refused_total.reason="token". (.+)$', metrics, re.MULTILINE)[1])
before = count()
body, kind = b'{"readOnly": true}', {"Content-Type": "application/json"}
order = urllib.request.Request(sys.argv[1] + "/api/v1/bookie/state/readonly", body, kind, method="PUT")
try:
    status = urllib.request.urlopen(order, timeout=10).status
except urllib.error.HTTPError as error:
    status = error.code
print(json.dumps([status, count() - before]))
"""
SERVERS = "app.kubernetes.io/name in (zookeeper,bookie,autorecovery,herddb)"


@pytest.fixture
def plain(kubectl: Kubectl) -> Iterator[Stack]:
    with plain_stack(kubectl) as stack:
        yield stack


def strangers_to(request: pytest.FixtureRequest, stack: Stack) -> list[Stranger]:
    """They run as long as the test. Nothing is enforced yet."""
    kubectl, elsewhere = stack.kubectl, Kubectl(ELSEWHERE, stack.kubectl.environment)
    goes_in_the_end(request, kubectl, "namespace", ELSEWHERE)
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ELSEWHERE}})
    found = [Stranger(kubectl, "stranger", {}), Stranger(kubectl, "impostor", OPERATOR), Stranger(elsewhere, "neighbour", {})]
    for each in found:
        goes_in_the_end(request, each.kubectl, "pod", each.name)
        each.start()
    return found


def servers(stack: Stack) -> list[Object]:
    return stack.kubectl.list("pods", SERVERS)


def job_succeeds(request: pytest.FixtureRequest, stack: Stack, kind: str, name: str, **spec: object) -> None:
    """With its work in pods of their own, which driver and executors reach."""
    goes_in_the_end(request, stack.kubectl, kind, name)
    made(stack.kubectl, kind, name, **spec, job=with_executors(1))


def only_sql(stack: Stack, stranger: Stranger) -> bool | Pending:
    """Whether a stranger opens the SQL port of each SQL node, and no other port of any server."""
    pods = servers(stack)
    wanted = {Port(HERDDB_COMPONENT, str(pod["metadata"]["name"]), HERDDB_SQL_PORT) for pod in pods if is_sql(pod)}
    opened = stranger.opens(pods)
    return True if opened == wanted else Pending(f"{stranger.name} opens {sorted(map(str, opened ^ wanted))} against the rules")


def told_without_the_token(stack: Stack, stranger: Stranger) -> dict[int, float]:
    """The status of a stranger's order to become read-only, to a bookie whose port it reaches, and how many refusals the bookie counts."""
    bookie = next(pod for pod in servers(stack) if pod["metadata"]["labels"]["app.kubernetes.io/name"] == BOOKIE_COMPONENT)
    address = f"http://{bookie['status']['podIP']}:{BOOKIE_ADMIN_PORT}"
    status, count = json.loads(stranger.kubectl.exec(stranger.name, "python3", "-c", ORDER, address))
    return {status: count}


def require_the_rules(stack: Stack, strangers: list[Stranger]) -> None:
    for stranger in strangers:
        wait_for(f"the rules for {stranger.name}", partial(only_sql, stack, stranger), ENFORCED)


def open_while_nothing_is_enforced(stack: Stack, stranger: Stranger) -> set[tuple[str, int]]:
    found = stranger.opens(servers(stack))
    say(f"{len(found)} ports answer while nothing is enforced")
    return {(port.component, port.number) for port in found}


def test_strangers_open_nothing_but_sql_and_the_database_works(request: pytest.FixtureRequest, stack: Stack) -> None:
    strangers = strangers_to(request, stack)
    listening = open_while_nothing_is_enforced(stack, strangers[0])
    assert told_without_the_token(stack, strangers[0]) == {401: 1.0}
    request.getfixturevalue("enforced")

    require_the_rules(stack, strangers)
    writer = WriterProcess(stack.tools, "written_under_policies").acknowledges()
    place = own_volume(request, stack.kubectl, "under-policies")
    job_succeeds(request, stack, "Checkpoint", "under-policies", tablespaceRef={"name": "flights"}, destination=place)
    job_succeeds(request, stack, "ReplicationAudit", "under-policies", bookKeeperRef={"name": "bk"})
    leader = stack.sql.leader()
    stack.sql.delete(leader)
    writer.acknowledges()
    stack.wait_until_ready()
    lost_nothing(writer)
    require_the_rules(stack, strangers)  # for the pod that was made meanwhile, too
    assert {("zookeeper", 2281), ("bookie", 3181), ("bookie", 8080), (HERDDB_COMPONENT, 9845)} <= listening
    assert ("zookeeper", 2181) not in listening, "without a certificate nobody is served, policies or not"


def test_strangers_open_nothing_but_sql_of_a_stack_in_plain_text(request: pytest.FixtureRequest, plain: Stack) -> None:
    strangers = strangers_to(request, plain)
    listening = open_while_nothing_is_enforced(plain, strangers[0])
    assert {("zookeeper", 2181), ("bookie", 3181), ("bookie", 8080), (HERDDB_COMPONENT, 9845)} <= listening
    assert told_without_the_token(plain, strangers[0]) == {401: 1.0}
    request.getfixturevalue("enforced")
    require_the_rules(plain, strangers)


def is_sql(pod: Object) -> bool:
    return bool(pod["metadata"]["labels"]["app.kubernetes.io/name"] == HERDDB_COMPONENT)
