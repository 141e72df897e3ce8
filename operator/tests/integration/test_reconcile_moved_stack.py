"""A whole stack in plain text is moved to certificates in place, on a real API server, one pod at a time."""

from __future__ import annotations

import base64
import json

import pytest
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import UnprocessibleEntityError
from played_stack import PlayedStack
from stage import Json, nothing_written

from herdkeeper.shared import names
from herdkeeper.shared.objects import job_ended

KIND, TURNS = "ZooKeeperCluster", 120
MEMBERS, BOOKIES = [f"zk-zookeeper-{number}" for number in range(3)], [f"bk-bookie-{number}-0" for number in range(4)]
NODES = ["db-herddb-0", "db-herddb-1"]


def change(stack: PlayedStack, kind: str, name: str, spec: Json) -> None:
    stack.disrupted.clear()
    stack.stage.patch(kind, name, {"spec": spec})
    stack.settle(TURNS)


def refused(stack: PlayedStack, mode: str) -> str:
    with pytest.raises(UnprocessibleEntityError) as caught:
        stack.stage.patch(KIND, "zk", {"spec": {"security": {"mode": mode}}})
    return str(caught.value.summary())


def status(stack: PlayedStack, kind: str, name: str) -> Json:
    found: Json = stack.stage.found(kind, name)["status"]
    return found


def url_of(stack: PlayedStack) -> str:
    """How applications find the leader."""
    url = base64.b64decode(stack.stage.found("Secret", "flights-connection")["data"]["url"]).decode()
    assert status(stack, "HerdDBCluster", "db")["jdbcUrl"] == url
    return url


def end_jobs(stack: PlayedStack) -> None:
    """Those that run have ended; how does not matter."""
    moment = "2026-01-01T00:01:00Z"
    told = {"status": "True", "lastTransitionTime": moment, "reason": "BackoffLimitExceeded", "message": "ended"}
    for job in stack.stage.listed("Job"):
        if job_ended(job) is None:
            ended = {"startTime": moment, "conditions": [{**told, "type": kind} for kind in ("FailureTarget", "Failed")]}
            stack.stage.set_status("Job", job["metadata"]["name"], ended)


def ready(stack: PlayedStack) -> None:
    for kind, name in (("ZooKeeperCluster", "zk"), ("BookKeeperCluster", "bk"), ("HerdDBCluster", "db"), ("Tablespace", "flights")):
        assert stack.stage.condition(kind, name) == ("True", "Ready")
    with nothing_written(stack.stage):
        for kind, name in stack.resources:
            stack.reconcile(kind, name)


def certificates_are_not_required_of_servers_that_have_none(stack: PlayedStack) -> None:
    assert "spec.security.mode can't change from Insecure to TLS" in refused(stack, "TLS")
    assert "from Insecure to Permissive, and then to TLS" in refused(stack, "TLS")


def one_pod_after_the_other_gets_certificates_members_first_and_twice(stack: PlayedStack) -> None:
    assert stack.stage.ensembles.address == stack.members.named.address(3)
    change(stack, KIND, "zk", {"security": {"mode": "Permissive"}})
    restarted = [name for name in stack.disrupted if name in (*MEMBERS, *BOOKIES, *NODES)]
    assert [sorted(part) for part in (restarted[:3], restarted[3:6], restarted[6:10], restarted[10:])] == [MEMBERS, MEMBERS, BOOKIES, NODES]
    ready(stack)
    assert stack.stage.ensembles.address == stack.members.named.address(3, names.ZOOKEEPER_SECURE_PORT)
    assert status(stack, "BookKeeperCluster", "bk")["acceptsPlaintext"] is True
    for name in ("bk-bookie", "bk-autorecovery"):
        lines = stack.stage.found("ConfigMap", name)["data"]["bk_server.conf"]
        assert ("tlsProviderFactoryClass" in lines, "authorizedRoles" in lines) == (True, False)
    assert (":2181" in url_of(stack), ":2281" in url_of(stack)) == (True, False), "applications have no certificate yet"


def when_every_status_is_lost_meanwhile_no_server_restarts(stack: PlayedStack) -> None:
    stack.lose_every_status()
    assert [name for name in stack.disrupted if name in (*MEMBERS, *BOOKIES, *NODES)] == []
    ready(stack)
    assert status(stack, "BookKeeperCluster", "bk")["acceptsPlaintext"] is True
    assert stack.stage.ensembles.address == stack.members.named.address(3, names.ZOOKEEPER_SECURE_PORT)


def plain_text_is_not_refused_while_a_job_or_a_database_needs_it(stack: PlayedStack) -> None:
    needed = status(stack, KIND, "zk")["plaintextNeededBy"]
    assert "the Job once-checkpoint" in needed
    end_jobs(stack)
    stack.settle(TURNS)
    fix = "set spec.tls.secretName to db-herddb-identity and spec.tls.plaintext to Accepted"
    lagging = f"the HerdDBCluster db (it has no spec.tls: {fix})"
    assert status(stack, KIND, "zk")["plaintextNeededBy"] == lagging
    assert f"can't become TLS yet, since plain text is still needed by {lagging}" in refused(stack, "TLS")
    assert "can't change from Permissive to Insecure" in refused(stack, "Insecure")


def plain_text_is_refused_once_nobody_needs_it(stack: PlayedStack) -> None:
    change(stack, "HerdDBCluster", "db", {"tls": {"secretName": "db-herddb-identity", "plaintext": "Accepted"}})
    assert status(stack, KIND, "zk")["plaintextNeededBy"] == "nobody"
    change(stack, KIND, "zk", {"security": {"mode": "TLS"}})
    assert sorted(stack.disrupted) == sorted([*MEMBERS, *BOOKIES])
    ready(stack)
    assert "plaintextNeededBy" not in status(stack, KIND, "zk")
    assert {server.client for server in stack.members.membership.servers} == {"127.0.0.1:2182"}
    assert "authorizedRoles" in stack.stage.found("ConfigMap", "bk-bookie")["data"]["bk_server.conf"]
    assert ":2181" not in json.dumps([item for key, item in stack.stage.made().items() if key[0] not in ("Secret", "Job")])
    assert (":2181" in url_of(stack), ":2281" in url_of(stack)) == (False, True)


def there_is_no_way_back(stack: PlayedStack) -> None:
    for mode in ("Permissive", "Insecure"):
        assert f"can't change from TLS to {mode}" in refused(stack, mode)


def test_a_stack_in_plain_text_moves_to_certificates_in_place(dynamic: DynamicClient) -> None:
    """One test, since each step goes on from the one before."""
    stack = PlayedStack(dynamic, {"zk": {"security": {"mode": "Insecure"}}})
    certificates_are_not_required_of_servers_that_have_none(stack)
    one_pod_after_the_other_gets_certificates_members_first_and_twice(stack)
    when_every_status_is_lost_meanwhile_no_server_restarts(stack)
    plain_text_is_not_refused_while_a_job_or_a_database_needs_it(stack)
    plain_text_is_refused_once_nobody_needs_it(stack)
    there_is_no_way_back(stack)
