"""A stack whose resources don't mention certificates is founded with them: its ports refuse clients without one; under a writer its
leaders die, all of its servers are rolled, a bookie leaves, and its jobs do their work while all certificates end and are renewed. Nothing
that was acknowledged is lost."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import pytest
from conftest import Stack, say
from own_tablespace import made_anew
from runs import claimed, first_ledger, inflicted, made, with_executors
from secure_steps import (
    CLAIMS,
    all_show,
    certificates_in_secrets,
    held,
    node_hosts,
    only_the_stack_is_served,
    outcomes,
    replace_certificates,
    secure_stack,
    sql,
)
from under_load import SETTLED, all_anew, during, settled, uids, under_load

from herdkeeper_e2e.archives import archived_after
from herdkeeper_e2e.certificate_probe import SERVED
from herdkeeper_e2e.checker.jdbc_pod import JdbcPod
from herdkeeper_e2e.checker.workload_plan import Share
from herdkeeper_e2e.drop_entries import Loss
from herdkeeper_e2e.kubectl import Kubectl, KubectlError
from herdkeeper_e2e.short_lived import Span
from herdkeeper_e2e.volume_claim import volume_claim
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

TOLD = {"zk-zookeeper-0": "Unsuccessful handshake", "bk-bookie-0-0": "TLS Handshake failure", "db-herddb-0": " (plaintext): "}
"""In the log of a server that has refused somebody."""
MISSING = 5
JDBC = Share(first_client=100, adders=1, register=0, readers=0)
LIVES = Span(timedelta(seconds=150), timedelta(seconds=330))
TAKEN_UP = Limit(300, 5)
"""The kubelet brings a changed Secret within about a minute and a half; servers read it at the next connection, or each ten seconds."""


@pytest.fixture(scope="module")
def secure(kubectl: Kubectl) -> Iterator[Stack]:
    began = time.monotonic()
    with secure_stack(kubectl) as stack:
        say(f"founded in {time.monotonic() - began:.0f} s")
        stack.kubectl.apply_all([volume_claim(claim) for claim in CLAIMS])
        yield stack


def test_nobody_is_served_without_a_certificate_of_the_stack(secure: Stack) -> None:
    with under_load(secure, "written_with_certificates"):
        only_the_stack_is_served(secure)
    for pod, told in TOLD.items():
        assert told in secure.kubectl.run("logs", pod, "--tail=-1"), pod

    probe = secure.tools.program("tls_probe", *node_hosts(secure))
    authorities = held(secure, "bk-bookie-readers")["ca.crt"]
    said = secure.kubectl.exec(secure.tools.name, *probe, stdin=authorities.encode())
    assert [json.loads(line)["refused"] for line in said.splitlines()].count(None) == 0
    with pytest.raises(KubectlError, match="CERTIFICATE_VERIFY_FAILED"):
        secure.kubectl.exec(secure.tools.name, *probe, stdin=held(secure, "zk-zookeeper-quorum")["ca.crt"].encode())


def test_leaders_die_all_servers_are_rolled_and_a_bookie_leaves_under_load(secure: Stack) -> None:
    with under_load(secure, "rolled_with_certificates") as writer:
        leaders = {"the SQL leader dies": secure.sql.leader, "the leader of ZooKeeper dies": secure.sql.leader_of_zookeeper}
        for fault, leader in leaders.items():
            with during(fault, writer):
                secure.sql.delete(leader(), "--grace-period=0", "--force")
            settled(secure)

        before = uids(secure)
        with during("all servers are rolled", writer):
            secure.kubectl.want("zookeepercluster", "zk", config={"snapCount": "50000"})
            secure.kubectl.want("bookkeepercluster", "bk", config={"openFileLimit": "10000"})
            secure.kubectl.want("herddbcluster", "db", config={"server.checkpoint.period": "900001"})
            all_anew(secure, before)
        with during("a bookie leaves", writer):
            secure.kubectl.want("bookkeepercluster", "bk", drain=[0])
            wait_for("the drain", lambda: drained(secure, [1, 2, 3]), SETTLED, say)


def drained(stack: Stack, numbers: list[int]) -> bool | Pending:
    """Whether only these bookies are there, all of them writable."""
    bookies = stack.sql.get("bookkeepercluster", "bk")["status"]["bookies"]
    there = {bookie["number"]: bookie["state"] for bookie in bookies}
    doing = "; ".join(bookie["drain"]["message"] for bookie in bookies if "drain" in bookie)
    return True if there == dict.fromkeys(numbers, "Writable") else Pending(f"{there}: {doing}")


def test_jobs_work_while_all_certificates_end_and_are_renewed(secure: Stack) -> None:
    settled(secure)
    with under_load(secure, "in_a_closed_ledger"):
        pass
    secure.sql.switch_over(secure.sql.other())  # closes the log's first ledger
    settled(secure)
    secure.tools.run("checker.tables", "--registers", "1")
    connection = str(secure.sql.get("tablespace", "flights")["status"]["connectionSecret"])
    jdbc = JdbcPod(secure.kubectl, "jdbc", connection, "bk-bookie-readers").start()
    with under_load(secure, "renewed_certificates") as writer:
        driver = jdbc.work(JDBC, "/tmp/history.jsonl").acknowledges()
        with during("entries of a bookie go", writer):
            loss = a_loss(secure)
            settled(secure)

        before, began = uids(secure), time.monotonic()
        writer.marked("certificates come that live for minutes")
        short = replace_certificates(secure, LIVES)
        wait_for("certificates that end soon", lambda: all_show(secure, short), TAKEN_UP, say)
        say(f"all servers show certificates that end soon after {time.monotonic() - began:.0f} s")
        writer.marked("jobs work, certificates are renewed")
        jobs_do_their_work(secure, loss)
        wait_for("renewed certificates", lambda: all_renewed(secure, short), TAKEN_UP, say)
        ends = began + LIVES.end.total_seconds()
        wait_for("the end of the others", lambda: time.monotonic() > ends or Pending("they are still valid"), TAKEN_UP, say)
        settled(secure)
        restarted = {name for name, uid in uids(secure).items() if before.get(name) != uid}
        assert restarted == {f"zk-zookeeper-{number}" for number in range(3)}

        for fault, pod in (("a bookie connects anew", "bk-bookie-1-0"), ("a member connects anew", secure.sql.leader_of_zookeeper())):
            with during(fault, writer):
                secure.sql.delete(pod)
                settled(secure)
            driver.acknowledges()
        driver.stop()
    assert outcomes(secure)["bookie", "a reader"] == {SERVED}


def all_renewed(stack: Stack, short: Mapping[str, str]) -> bool | Pending:
    """Whether the operator has put others in the place of all of these, and each server shows them."""
    now = certificates_in_secrets(stack)
    same = sorted(secret for secret, certificate in short.items() if now[secret] == certificate)
    return Pending(f"not renewed: {', '.join(same)}") if same else all_show(stack, now)


def jobs_do_their_work(stack: Stack, loss: Loss) -> None:
    """A Checkpoint with executors, an audit that repairs the loss, one that finds nothing, an archive; and what is restored is what was
    written."""
    kubectl, job = stack.kubectl, with_executors(1)
    archive = {"destination": claimed("archives"), "everySeconds": 5, "retention": {"keepWithin": "30d"}}
    kubectl.want("tablespace", "flights", log={"archive": archive})
    wanted = {"tablespaceRef": {"name": "flights"}, "destination": claimed("checkpoints"), "verify": "Follower", "job": job}
    checkpoint = made(kubectl, "Checkpoint", "flights-1", **wanted)
    assert checkpoint["verified"].startswith("compared with follower")
    archived_after(kubectl, "flights", datetime.now(UTC), say)

    whole = {"bookKeeperRef": {"name": "bk"}, "job": job}
    repaired = made(kubectl, "ReplicationAudit", "repaired", **whole, repair="Repair")
    say(f"{repaired['entries']} entries, {repaired['replicas']} replicas: {repaired.get('findings')}")
    (found,) = [each for each in repaired["findings"] if each["ledgerId"] == loss.ledger]
    assert (found["kind"], found["firstEntry"], found["lastEntry"], found["repair"]) == ("Missing", loss.first, loss.last, "Repaired")
    left = made(kubectl, "ReplicationAudit", "whole", **whole).get("findings", [])
    assert [each for each in left if each["ledgerId"] == loss.ledger] == []

    with made_anew(kubectl, "restored", replicas=2, checkpoint={"name": "flights-1"}, job=job) as restored:
        restore = restored["status"]["restore"]
        assert (restore["rows"], restore["lsn"]) == (checkpoint["rows"], checkpoint["lsn"])
        for table in checkpoint["tables"]:
            assert sql(stack, "restored", f"SELECT COUNT(*) AS n FROM {table['name']}") == [{"n": table["rows"]}]


def a_loss(stack: Stack) -> Loss:
    """Of some entries of the log's first ledger, which is closed, on the first bookie that holds it."""
    found = first_ledger(stack)
    assert found["closed"]
    (loss,) = inflicted(stack, found, (1, MISSING, False))
    return loss
