"""While a writer goes on, a bookie in the middle is drained and replaced, and the operator dies meanwhile; nothing is lost, and the audit
finds nothing."""

from __future__ import annotations

import time

from bookie_steps import audited, bookies, settled_on, waits_for, want
from conftest import Stack, say

from herdkeeper_e2e.cluster import OPERATOR_NAMESPACE
from herdkeeper_e2e.history import Gap, gap_table
from herdkeeper_e2e.writer_process import WriterProcess

ROWS = 50


def kill_the_operator(stack: Stack) -> None:
    operator = stack.kubectl.in_namespace(OPERATOR_NAMESPACE)
    operator.run("delete", "pods", "-l", "app.kubernetes.io/name=herdkeeper-operator", "--grace-period=0", "--force")


def objects_of(stack: Stack, number: int) -> list[str]:
    kinds = "statefulsets,persistentvolumeclaims,jobs,configmaps,pods"
    return [item["metadata"]["name"] for item in stack.kubectl.list(kinds) if item["metadata"]["name"].startswith(f"bk-bookie-{number}")]


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
