"""The audit finds nothing on a healthy cluster, and exactly what was taken away from a bookie's disk; told to repair it, it does."""

from __future__ import annotations

import json

import yaml
from conftest import Stack, say

from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.drop_entries import Loss, drop_entries
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

FIRST, LAST = 20, 24


def audited(stack: Stack, name: str, executors: int = 0, repair: str = "Report") -> Object:
    """The status of an audit that has ended; with executors, these were seen as pods meanwhile."""
    audit = yaml.safe_load((REPOSITORY / "examples/audit.yaml").read_text())
    audit["metadata"]["name"] = name
    audit["spec"]["repair"] = repair
    if executors:
        audit["spec"]["job"] |= {"executors": {"instances": executors, "cpu": "100m"}, "pods": {"labels": {"team": "audits"}}}
    stack.kubectl.apply(json.dumps(audit))
    if executors:
        wait_for(f"{executors} executors", lambda: executors_of(stack, name, executors), Limit(300), say)
    status: Object = wait_until_succeeded(stack.kubectl, "replicationaudit", name, say)["status"]
    say(f"{status['ledgers']} ledgers, {status['entries']} entries, {status['replicas']} replicas in {status['durationSeconds']} s")
    return status


def test_a_healthy_cluster_has_no_findings_dropped_entries_are_named_exactly_and_repaired(stack: Stack) -> None:
    healthy = audited(stack, "healthy", executors=2)
    assert healthy.get("findings", []) == []
    assert healthy["findingsTotal"] == 0
    assert healthy["entries"] > LAST
    # write quorum 3: each entry is on three bookies
    assert healthy["replicas"] == 3 * healthy["entries"]

    loss = dropped(stack)
    stack.wait_until_ready()
    damaged = audited(stack, "damaged")
    assert damaged["findings"] == [
        {
            "kind": "Missing",
            "severity": "Pending",  # the ledger is still being written
            "ledgerId": loss.ledger,
            "firstEntry": FIRST,
            "lastEntry": LAST,
            "bookieId": bookie_id(stack, loss.number),
        }
    ]
    assert damaged["findingsTotal"] == 1

    # an open ledger is left alone; a new leader closes it
    still_open = audited(stack, "too-early", repair="Repair")
    assert [finding["repair"] for finding in still_open["findings"]] == ["Refused"]
    close_first_ledger(stack)
    repaired = audited(stack, "repaired", repair="Repair")
    assert [(finding["severity"], finding["repair"]) for finding in repaired["findings"]] == [("UnderReplicated", "Repaired")]
    assert (repaired["replicasRepaired"], repaired["findingsNotRepaired"]) == (LAST - FIRST + 1, 0)
    assert audited(stack, "whole-again")["findingsTotal"] == 0


def close_first_ledger(stack: Stack) -> None:
    """Deletes the leader's pod: whoever leads next closes the ledger that the former leader wrote."""
    tablespace = stack.kubectl.get("tablespace", "flights")
    assert tablespace is not None
    stack.kubectl.run("delete", "pod", str(tablespace["status"]["leader"]))
    wait_for("the end of the first ledger", lambda: first_ledger(stack)["closed"] or Pending("it is open"), Limit(300), say)
    stack.wait_until_ready()


def first_ledger(stack: Stack) -> Object:
    cluster = stack.kubectl.get("bookkeepercluster", "bk")
    assert cluster is not None
    found: Object = json.loads(stack.tools.run("first_ledger", "--ledgers-root", cluster["status"]["ledgersRoot"]))
    return found


def executors_of(stack: Stack, name: str, wanted: int) -> bool | Pending:
    """Whether the driver's executors run as pods of their own."""
    running = [pod for pod in stack.kubectl.list("pods", "spark-role=executor") if pod["status"]["phase"] == "Running"]
    driver = {owner["name"] for pod in running for owner in pod["metadata"].get("ownerReferences", [])}
    assert all(owner.startswith(f"{name}-audit") for owner in driver)
    assert all(pod["metadata"]["labels"].get("team") == "audits" for pod in running)
    return True if len(running) >= wanted else Pending(f"{len(running)} of {wanted} executors run")


def dropped(stack: Stack) -> Loss:
    """Entries of the log's first ledger, on the first bookie that holds it."""
    cluster = stack.kubectl.get("bookkeepercluster", "bk")
    assert cluster is not None
    found = first_ledger(stack)
    number = next(bookie["number"] for bookie in cluster["status"]["bookies"] if bookie["bookieId"] == found["bookies"][0])
    loss = Loss("bk", number, found["ledger"], FIRST, LAST)
    say(f"taking entries {FIRST}..{LAST} of ledger {loss.ledger} away from {found['bookies'][0]}")
    drop_entries(stack.kubectl, loss)
    return loss


def bookie_id(stack: Stack, number: int) -> str:
    cluster = stack.kubectl.get("bookkeepercluster", "bk")
    assert cluster is not None
    return str(next(bookie["bookieId"] for bookie in cluster["status"]["bookies"] if bookie["number"] == number))
