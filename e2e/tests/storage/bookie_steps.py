"""What the storage scenarios do with the stack's bookies, and wait for."""

from __future__ import annotations

from collections.abc import Callable

from conftest import Stack, say

from herdkeeper_e2e.conditions import message_of, unsettled_reason
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

LONG = Limit(900, 2)


def bookies(stack: Stack) -> Object:
    return stack.sql.get("bookkeepercluster", "bk")


def numbers_of(stack: Stack) -> list[int]:
    """Of the bookies that there are."""
    return [int(bookie["number"]) for bookie in bookies(stack)["status"]["bookies"]]


def want(stack: Stack, **spec: object) -> None:
    stack.kubectl.want("bookkeepercluster", "bk", **spec)


def waits_for(stack: Stack, reason: str) -> None:
    """Until the operator says that it waits for this."""
    wait_for(reason, lambda: message_of(bookies(stack), "Progressing", reason), LONG, say)


def settled_on(stack: Stack, numbers: list[int], meanwhile: Callable[[], None] = lambda: None) -> None:
    """Until exactly these bookies are there, writable, and nothing is left to do."""

    def there(found: list[int]) -> bool:
        meanwhile()
        return found == numbers

    _settled(stack, f"bookies {numbers}", there)


def settled_with_others_for(stack: Stack, gone: set[int], count: int) -> None:
    """The same of so many bookies, none of these among them. Numbers are never used twice, so those of others depend on what was before."""
    _settled(stack, f"{count} bookies without {sorted(gone)}", lambda there: len(there) == count and not gone & set(there))


def _settled(stack: Stack, what: str, enough: Callable[[list[int]], bool]) -> None:
    def ask() -> bool | Pending:
        found = bookies(stack)
        unsettled = unsettled_reason(found)
        there = [bookie["number"] for bookie in found["status"].get("bookies", []) if bookie["state"] == "Writable"]
        if enough(there) and unsettled is None:
            return True
        drains = [bookie["drain"]["message"] for bookie in found["status"].get("bookies", []) if "drain" in bookie]
        return Pending(f"bookies {there}; {'; '.join(drains) or unsettled}")

    wait_for(what, ask, LONG, say)


def lose_the_disks_of_one(stack: Stack) -> str:
    """The bookie with the lowest number loses both volumes; returns its identity once another one has taken its place."""
    before = {bookie["number"]: bookie["bookieId"] for bookie in bookies(stack)["status"]["bookies"]}
    number = min(before)
    claims = [f"bk-bookie-{number}-{volume}" for volume in ("journal", "ledgers")]
    stack.kubectl.run("delete", "persistentvolumeclaims", *claims, "--wait=false")
    stack.kubectl.run("delete", "pod", f"bk-bookie-{number}-0", "--grace-period=0", "--force")
    waits_for(stack, "Recovering")
    say(bookies(stack)["status"]["message"])
    settled_with_others_for(stack, {number}, len(before))
    return str(before[number])
