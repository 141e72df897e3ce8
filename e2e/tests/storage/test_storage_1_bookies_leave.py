"""While a writer goes on, a bookie in the middle is drained and replaced, and the operator dies meanwhile; nothing is lost, and the audit
finds nothing."""

from __future__ import annotations

import json
import time

import yaml
from conftest import Stack, say

from herdkeeper_e2e.cluster import OPERATOR_NAMESPACE, REPOSITORY
from herdkeeper_e2e.conditions import condition
from herdkeeper_e2e.history import Gap, gap_table
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

DRAIN = Limit(900, 2)
ROWS = 50


def bookies(stack: Stack) -> Object:
    found = stack.kubectl.get("bookkeepercluster", "bk")
    assert found is not None
    return found


def want(stack: Stack, **spec: object) -> None:
    stack.kubectl.run("patch", "bookkeepercluster", "bk", "--type", "merge", "-p", json.dumps({"spec": spec}))


def waits_for(stack: Stack, reason: str) -> None:
    """Until the operator says that it waits for this."""

    def ask() -> bool | Pending:
        progressing = condition(bookies(stack), "Progressing")
        return True if progressing is not None and progressing["reason"] == reason else Pending(str(progressing))

    wait_for(reason, ask, DRAIN, say)


def settled_on(stack: Stack, numbers: list[int]) -> None:
    """Until exactly these bookies are there, writable, and nothing is left to do."""

    def ask() -> bool | Pending:
        found = bookies(stack)
        progressing = condition(found, "Progressing")
        there = [bookie["number"] for bookie in found["status"].get("bookies", []) if bookie["state"] == "Writable"]
        seen = found["status"].get("observedGeneration") == found["metadata"]["generation"]
        if seen and there == numbers and progressing is not None and progressing["reason"] == "Settled":
            return True
        drains = [bookie["drain"]["message"] for bookie in found["status"].get("bookies", []) if "drain" in bookie]
        return Pending(f"bookies {there}; {'; '.join(drains) or progressing}")

    wait_for(f"bookies {numbers}", ask, DRAIN, say)


def kill_the_operator(stack: Stack) -> None:
    operator = stack.kubectl.in_namespace(OPERATOR_NAMESPACE)
    operator.run("delete", "pods", "-l", "app.kubernetes.io/name=herdkeeper-operator", "--grace-period=0", "--force")


def objects_of(stack: Stack, number: int) -> list[str]:
    kinds = "statefulsets,persistentvolumeclaims,jobs,configmaps,pods"
    return [item["metadata"]["name"] for item in stack.kubectl.list(kinds) if item["metadata"]["name"].startswith(f"bk-bookie-{number}")]


def audited(stack: Stack, name: str) -> Object:
    audit = yaml.safe_load((REPOSITORY / "examples/audit.yaml").read_text())
    audit["metadata"]["name"] = name
    stack.kubectl.apply(json.dumps(audit))
    status: Object = wait_until_succeeded(stack.kubectl, "replicationaudit", name, say)["status"]
    return status


def test_a_bookie_in_the_middle_is_drained_under_load(stack: Stack) -> None:
    leaving = bookies(stack)["status"]["bookies"][1]["bookieId"]
    writer = WriterProcess(stack.tools, "drained_under_load")
    writer.acknowledges(ROWS)

    want(stack, bookies=3)
    waits_for(stack, "TooFewBookies")  # ensembles of three, and one to spare
    want(stack, bookies=4, drain=[1])
    began = time.monotonic()
    writer.order("mark a bookie drained")
    waits_for(stack, "MovingLedgers")
    say(f"moving: {bookies(stack)['status']['bookies'][1]}")
    kill_the_operator(stack)
    waits_for(stack, "Retiring")
    kill_the_operator(stack)
    settled_on(stack, [0, 2, 3, 4])
    say(f"drained in {time.monotonic() - began:.0f} s")
    writer.acknowledges(ROWS)

    assert objects_of(stack, 1) == []
    assert not [path for path in stack.tools.run("znodes").splitlines() if leaving in path]
    writer.stop()
    found = writer.read()
    say("\n" + gap_table([Gap(**gap) for gap in found["gaps"]]))
    assert found["violation"] is None
    status = audited(stack, "after-the-drain")
    assert (status["findingsTotal"], status.get("findings", [])) == (0, [])
    assert status["replicas"] == 3 * status["entries"]


def test_one_more_and_one_fewer_ends_with_a_new_number(stack: Stack) -> None:
    want(stack, bookies=5, drain=[])
    settled_on(stack, [0, 2, 3, 4, 5])
    want(stack, bookies=4)
    settled_on(stack, [0, 2, 3, 4])
    want(stack, bookies=5)
    settled_on(stack, [0, 2, 3, 4, 6])
    stack.wait_until_ready()
