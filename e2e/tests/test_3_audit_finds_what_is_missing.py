"""The audit finds nothing on a healthy cluster, and exactly what was taken away from a bookie's disk, or damaged there; told to repair it,
it does. Two of these faults BookKeeper's own workers leave as they are: an entry that is missing inside a fragment, and a damaged one."""

from __future__ import annotations

from conftest import Stack, say
from runs import audited, declare_audit, inflicted, newest_ledger, status_of

from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import write_rows

FAULTS = ((0, 0, False), (20, 24, False), (50, 50, True))
"""First and last entry, and whether they are damaged instead of missing."""
COPIES = sum(last - first + 1 for first, last, _ in FAULTS)


def audited_by_executors(stack: Stack, name: str, executors: int) -> Object:
    """The status of an audit that has ended, and whose executors were seen as pods meanwhile."""
    declare_audit(stack.kubectl, name, {"executors": {"instances": executors, "cpu": "100m"}, "pods": {"labels": {"team": "audits"}}})
    wait_for(f"{executors} executors", lambda: executors_of(stack, name, executors), Limit(300), say)
    return status_of(stack.kubectl, "replicationaudit", name)


def test_a_healthy_cluster_has_no_findings_and_each_fault_on_a_disk_is_named_exactly_and_repaired(stack: Stack) -> None:
    healthy = audited_by_executors(stack, "healthy", 2)
    assert healthy.get("findings", []) == []
    assert healthy["findingsTotal"] == 0
    assert healthy["entries"] > max(last for _, last, _ in FAULTS)
    # write quorum 3: each entry is on three bookies
    assert healthy["replicas"] == 3 * healthy["entries"]

    write_rows(stack.tools, "audited", 2 * max(last for _, last, _ in FAULTS))  # the leader may have changed just now
    ledger, kubectl = newest_ledger(stack), stack.kubectl
    losses = inflicted(stack, ledger, *FAULTS)
    stack.wait_until_ready()
    damaged = audited(kubectl, "damaged")
    assert damaged["findings"] == [
        {
            "kind": "CorruptDigest" if loss.damaged else "Missing",
            "severity": "Pending",  # the ledger is still being written
            "ledgerId": loss.ledger,
            "firstEntry": loss.first,
            "lastEntry": loss.last,
            "bookieId": ledger["bookies"][0],
        }
        for loss in losses
    ]
    assert damaged["findingsTotal"] == len(losses)

    # an open ledger is left alone; a new leader closes it
    still_open = audited(kubectl, "too-early", repair="Repair")
    assert [finding["repair"] for finding in still_open["findings"]] == ["Refused"] * len(losses)
    change_leader(stack, ledger)
    repaired = audited(kubectl, "repaired", repair="Repair")
    assert [(finding["severity"], finding["repair"]) for finding in repaired["findings"]] == [("UnderReplicated", "Repaired")] * len(losses)
    assert (repaired["replicasRepaired"], repaired["findingsNotRepaired"]) == (COPIES, 0)
    # what is missing is written, what is damaged is left behind: no writing in its place would last
    done = {finding["kind"]: finding["repairDetail"] for finding in repaired["findings"]}
    assert done["Missing"].endswith("entries were written, 0 were whole already")
    assert " entries of the ledger on " in done["CorruptDigest"]
    assert " were copied to " in done["CorruptDigest"]
    assert audited(kubectl, "whole-again")["findingsTotal"] == 0


def change_leader(stack: Stack, ledger: Object) -> None:
    """Deletes the leader's pod: whoever leads next closes the ledger that the former leader wrote."""
    stack.kubectl.run("delete", "pod", stack.sql.leader())

    def ended() -> bool | Pending:
        return True if newest_ledger(stack)["ledger"] != ledger["ledger"] else Pending("it is the newest one")

    wait_for("the end of the ledger", ended, Limit(300), say)
    stack.wait_until_ready()


def executors_of(stack: Stack, name: str, wanted: int) -> bool | Pending:
    """Whether the driver's executors run as pods of their own."""
    running = [pod for pod in stack.kubectl.list("pods", "spark-role=executor") if pod["status"]["phase"] == "Running"]
    driver = {owner["name"] for pod in running for owner in pod["metadata"].get("ownerReferences", [])}
    assert all(owner.startswith(f"{name}-audit") for owner in driver)
    assert all(pod["metadata"]["labels"].get("team") == "audits" for pod in running)
    return True if len(running) >= wanted else Pending(f"{len(running)} of {wanted} executors run")
