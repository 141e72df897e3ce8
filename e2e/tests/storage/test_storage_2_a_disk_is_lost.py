"""While a writer goes on, a bookie loses both disks: what it held is copied, its identity retired, and another one takes its place."""

from __future__ import annotations

import time

from bookie_steps import audited, bookies, settled_on, waits_for, want
from conftest import Stack, say

from herdkeeper_e2e.history import Gap, gap_table
from herdkeeper_e2e.writer_process import WriterProcess

DELAY_SECONDS = 30
ROWS = 50


def test_a_bookie_that_lost_its_disks_is_replaced_under_load(stack: Stack) -> None:
    settled_on(stack, [bookie["number"] for bookie in bookies(stack)["status"]["bookies"]])
    want(stack, autoRecovery={"lostBookieRecoveryDelaySeconds": DELAY_SECONDS})
    before = {bookie["number"]: bookie["bookieId"] for bookie in bookies(stack)["status"]["bookies"]}
    settled_on(stack, sorted(before))
    number = min(before)
    writer = WriterProcess(stack.tools, "disk_lost_under_load")
    writer.acknowledges(ROWS)

    began = time.monotonic()
    writer.order("mark a disk lost")
    claims = [f"bk-bookie-{number}-{volume}" for volume in ("journal", "ledgers")]
    stack.kubectl.run("delete", "persistentvolumeclaims", *claims, "--wait=false")
    stack.kubectl.run("delete", "pod", f"bk-bookie-{number}-0", "--grace-period=0", "--force")
    waits_for(stack, "Recovering")
    say(bookies(stack)["status"]["message"])
    settled_on(stack, [*sorted(set(before) - {number}), max(before) + 1])
    say(f"replaced in {time.monotonic() - began:.0f} s")
    writer.acknowledges(ROWS)

    assert not [path for path in stack.tools.run("znodes").splitlines() if before[number] in path]
    writer.stop()
    found = writer.read()
    say("\n" + gap_table([Gap(**gap) for gap in found["gaps"]]))
    assert found["violation"] is None
    status = audited(stack, "after-the-loss")
    assert (status["findingsTotal"], status.get("findings", [])) == (0, [])
    stack.wait_until_ready()
