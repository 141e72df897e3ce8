"""What docs/how-to has a person do by hand, and what the operator does where metadata lost a bookie's cookie, under SQL and striped
ledgers."""

from __future__ import annotations

import re
import time

from bookie_steps import LONG, bookies, numbers_of, settled_on
from conftest import Stack, say
from load import Load
from proof import all_is_whole
from under_load import during

from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.waiting import Pending, wait_for

SHELL = "/opt/bookkeeper/entrypoint.sh"
DELETE = """
import sys
from herdkeeper_e2e.session import zookeeper_client
with zookeeper_client(sys.argv[1]) as zookeeper:
    zookeeper.delete(sys.argv[2])
"""
READ = """
import sys
from herdkeeper_e2e.session import zookeeper_client
with zookeeper_client(sys.argv[1]) as zookeeper:
    print(zookeeper.get(sys.argv[2])[0].decode())
"""
LEDGER = re.compile(r"ledgerId=(\d+),.*state=(\w+)")


def in_autorecovery(stack: Stack, *command: str) -> str:
    """What a program said in a pod of autorecovery, where the how-to has people run BookKeeper's shell."""
    return str(stack.kubectl.run("exec", "deploy/bk-autorecovery", "--", *command, timeout_seconds=300))


def closed_ledgers_of(stack: Stack, bookie_id: str) -> set[int]:
    """Those whose metadata names a bookie."""
    said = in_autorecovery(stack, SHELL, "shell", "listledgers", "-meta", "-bookieid", bookie_id)
    return {int(number) for number, state in LEDGER.findall(said) if state == "CLOSED"}


def the_command(bookie_id: str) -> list[str]:
    """The command of docs/how-to/tune-bookies.md that copies the ledgers of one bookie now, for this one."""
    page = (REPOSITORY / "docs/how-to/tune-bookies.md").read_text()
    found = re.search(r"^kubectl exec deploy/bk-autorecovery -- (\S+ shell recover .*)$", page, re.MULTILINE)
    assert found is not None
    return [*found.group(1).split()[:-1], bookie_id]


def test_a_bookie_that_is_away_has_its_closed_ledgers_copied_when_a_person_asks_for_it(stack: Stack) -> None:
    stack.wait_until_ready()
    load = Load(stack, "recovered_by_hand").acknowledges()
    stack.sql.switch_over(stack.sql.other())  # closes the log's ledger
    load.acknowledges()
    held = {each["bookieId"]: closed_ledgers_of(stack, each["bookieId"]) for each in bookies(stack)["status"]["bookies"]}
    bookie = next(each for each in bookies(stack)["status"]["bookies"] if held[each["bookieId"]])
    name, bookie_id = f"bk-bookie-{bookie['number']}", bookie["bookieId"]

    def away() -> bool | Pending:
        found = next(each for each in bookies(stack)["status"]["bookies"] if each["bookieId"] == bookie_id)
        return True if found["state"] == "Away" else Pending(f"{name}: {found['state']}")

    with during("a bookie away, and its ledgers copied by a person", load):
        with stack.kubectl.paused("bookkeepercluster", "bk"):
            stack.kubectl.run("scale", "statefulset", name, "--replicas=0")
            wait_for(f"{name} to be away", away, LONG, say)
            load.acknowledges()
            began, closed = time.monotonic(), closed_ledgers_of(stack, bookie_id)
            in_autorecovery(stack, *the_command(bookie_id))
            say(f"{len(closed)} closed ledgers of a bookie were copied in {time.monotonic() - began:.0f} s")
            assert held[bookie_id] <= closed
            # striped ledgers that were open when it went are closed meanwhile, and name it for their beginning
            assert closed & closed_ledgers_of(stack, bookie_id) == set()
        settled_on(stack, numbers_of(stack))
        stack.wait_until_ready()
    all_is_whole(load, "after-a-recovery-by-hand")


def test_a_cookie_that_is_gone_from_zookeeper_is_put_back_and_the_bookie_serves_its_data(stack: Stack) -> None:
    stack.wait_until_ready()
    found = bookies(stack)["status"]
    bookie = found["bookies"][0]
    pod = f"bk-bookie-{bookie['number']}-0"
    path = f"{found['ledgersRoot']}/cookies/{bookie['bookieId']}"
    operator = stack.tools.as_operator()
    load = Load(stack, "without_a_cookie").acknowledges()
    cookie = operator.script(READ, found["zooKeeperAddress"], path)

    def restored() -> bool | Pending:
        events = [each for each in stack.kubectl.list("events") if each["reason"] == "CookieRestored"]
        return bool(events) or Pending("no event CookieRestored yet")

    with during("a cookie deleted, and its bookie restarted", load):
        operator.script(DELETE, found["zooKeeperAddress"], path)
        stack.sql.delete(pod)
        wait_for("the cookie", restored, LONG, say)
        # the kubelet tries again after minutes: the how-to says how not to wait
        stack.sql.delete(pod)
        settled_on(stack, [each["number"] for each in found["bookies"]])
        stack.wait_until_ready()
        assert operator.script(READ, found["zooKeeperAddress"], path) == cookie
    all_is_whole(load, "after-a-cookie")
