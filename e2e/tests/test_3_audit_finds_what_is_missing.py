"""The audit finds nothing on a healthy cluster, and exactly what was taken away from a bookie's disk, or damaged there; told to repair it,
it does. Two of these faults BookKeeper's own workers leave as they are: an entry that is missing inside a fragment, and a damaged one."""

from __future__ import annotations

import json

import yaml
from conftest import Stack, say

from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.drop_entries import Loss, drop_entries
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

FAULTS = ((0, 0, False), (20, 24, False), (50, 50, True))
"""First and last entry, and whether they are damaged instead of missing."""
COPIES = sum(last - first + 1 for first, last, _ in FAULTS)


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


def test_a_healthy_cluster_has_no_findings_and_each_fault_on_a_disk_is_named_exactly_and_repaired(stack: Stack) -> None:
    healthy = audited(stack, "healthy", executors=2)
    assert healthy.get("findings", []) == []
    assert healthy["findingsTotal"] == 0
    assert healthy["entries"] > max(last for _, last, _ in FAULTS)
    # write quorum 3: each entry is on three bookies
    assert healthy["replicas"] == 3 * healthy["entries"]

    losses = inflicted(stack)
    stack.wait_until_ready()
    damaged = audited(stack, "damaged")
    assert damaged["findings"] == [
        {
            "kind": "CorruptDigest" if loss.damaged else "Missing",
            "severity": "Pending",  # the ledger is still being written
            "ledgerId": loss.ledger,
            "firstEntry": loss.first,
            "lastEntry": loss.last,
            "bookieId": bookie_id(stack, loss.number),
        }
        for loss in losses
    ]
    assert damaged["findingsTotal"] == len(losses)

    # an open ledger is left alone; a new leader closes it
    still_open = audited(stack, "too-early", repair="Repair")
    assert [finding["repair"] for finding in still_open["findings"]] == ["Refused"] * len(losses)
    close_first_ledger(stack)
    repaired = audited(stack, "repaired", repair="Repair")
    assert [(finding["severity"], finding["repair"]) for finding in repaired["findings"]] == [("UnderReplicated", "Repaired")] * len(losses)
    assert (repaired["replicasRepaired"], repaired["findingsNotRepaired"]) == (COPIES, 0)
    # what is missing is written, what is damaged is left behind: no writing in its place would last
    done = {finding["kind"]: finding["repairDetail"] for finding in repaired["findings"]}
    assert done["Missing"].endswith("entries were written, 0 were whole already")
    assert " entries of the ledger on " in done["CorruptDigest"]
    assert " were copied to " in done["CorruptDigest"]
    assert audited(stack, "whole-again")["findingsTotal"] == 0


def close_first_ledger(stack: Stack) -> None:
    """Deletes the leader's pod: whoever leads next closes the ledger that the former leader wrote."""
    tablespace = stack.sql.get("tablespace", "flights")
    stack.kubectl.run("delete", "pod", str(tablespace["status"]["leader"]))
    wait_for("the end of the first ledger", lambda: first_ledger(stack)["closed"] or Pending("it is open"), Limit(300), say)
    stack.wait_until_ready()


def first_ledger(stack: Stack) -> Object:
    cluster = stack.sql.get("bookkeepercluster", "bk")
    found: Object = json.loads(stack.tools.run("first_ledger", "--ledgers-root", cluster["status"]["ledgersRoot"]))
    return found


def executors_of(stack: Stack, name: str, wanted: int) -> bool | Pending:
    """Whether the driver's executors run as pods of their own."""
    running = [pod for pod in stack.kubectl.list("pods", "spark-role=executor") if pod["status"]["phase"] == "Running"]
    driver = {owner["name"] for pod in running for owner in pod["metadata"].get("ownerReferences", [])}
    assert all(owner.startswith(f"{name}-audit") for owner in driver)
    assert all(pod["metadata"]["labels"].get("team") == "audits" for pod in running)
    return True if len(running) >= wanted else Pending(f"{len(running)} of {wanted} executors run")


def inflicted(stack: Stack) -> list[Loss]:
    """The faults, on entries of the log's first ledger, on the first bookie that holds it."""
    cluster = stack.sql.get("bookkeepercluster", "bk")
    found = first_ledger(stack)
    number = next(bookie["number"] for bookie in cluster["status"]["bookies"] if bookie["bookieId"] == found["bookies"][0])
    losses = [Loss("bk", number, found["ledger"], *fault) for fault in FAULTS]
    say(f"on {found['bookies'][0]}: {losses}")
    drop_entries(stack.kubectl, *losses)
    return losses


def bookie_id(stack: Stack, number: int) -> str:
    cluster = stack.sql.get("bookkeepercluster", "bk")
    return str(next(bookie["bookieId"] for bookie in cluster["status"]["bookies"] if bookie["number"] == number))
