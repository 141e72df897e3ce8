"""A writer while servers restart, and the wait until all of them are other pods."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from conftest import QUICKSTART, Stack, say

from herdkeeper_e2e.conditions import unsettled_reason
from herdkeeper_e2e.disruptions import Absence, absences, together
from herdkeeper_e2e.history import Gap, gap_table
from herdkeeper_e2e.kubectl import SERVERS
from herdkeeper_e2e.pod_watch import PodWatch
from herdkeeper_e2e.steered_process import SOME
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

SETTLED = Limit(900, 2)


def uids(stack: Stack, selector: str = SERVERS) -> dict[str, str]:
    """The servers' pods, and which ones they are."""
    return {str(pod["metadata"]["name"]): str(pod["metadata"]["uid"]) for pod in stack.kubectl.list("pods", selector)}


def all_anew(stack: Stack, before: Mapping[str, str]) -> None:
    """Each of these pods is another one, and all is settled."""
    others(stack, before)
    settled(stack)


def others(stack: Stack, before: Mapping[str, str]) -> None:
    """Each of these pods is another one."""

    def anew() -> bool | Pending:
        now = uids(stack)
        old = sorted(name for name, uid in before.items() if now.get(name) == uid)
        return Pending(f"still the old ones: {', '.join(old)}") if old else True

    wait_for("other pods", anew, SETTLED, say)


def settled(stack: Stack) -> None:
    """All is Ready, with nothing left to do."""
    stack.wait_until_ready()
    wait_for("the stack to be settled", lambda: is_settled(stack), SETTLED, say)


def is_settled(stack: Stack) -> bool | Pending:
    """Whether nothing is left to do."""
    unsettled = ((item["kind"], unsettled_reason(item)) for item in stack.kubectl.list(QUICKSTART))
    return next((Pending(f"{kind}: {why}") for kind, why in unsettled if why is not None), True)


def tell(found: Mapping[str, Any]) -> None:
    """Prints the gaps and the counts of a reader's result."""
    counted = found["verdict"]
    say(f"\n{gap_table([Gap(**gap) for gap in found['gaps']])}")
    say(f"{counted['acknowledged']} acknowledged, {counted['unknown']} answers lost")


class Client(Protocol):
    """Writes until it is stopped."""

    def marked(self, name: str) -> None: ...

    def acknowledges(self, more: int = SOME) -> object: ...


@contextmanager
def during(fault: str, client: Client, more: int = SOME) -> Iterator[None]:
    """The block is what a client has to outlive, which has recorded the fault's name. Prints how long it took, and has so many further rows
    acknowledged behind it."""
    began = time.monotonic()
    client.marked(fault)
    yield
    say(f"{fault}: {time.monotonic() - began:.0f} s")
    client.acknowledges(more)


def lost_nothing(writer: WriterProcess) -> dict[str, Any]:
    """Every acknowledged row is there, and no other one. Stops the writer, prints the gaps, and returns what the reader found."""
    writer.stop()
    found = writer.read()
    tell(found)
    assert found["violation"] is None
    return found


def seen_away(watch: PodWatch) -> list[Absence]:
    """When each watched server was away, printed. Ends the watch."""
    found = absences(watch.stop())
    for absence in found:
        say(absence.sentence)
    return found


def one_at_a_time(found: Sequence[Absence]) -> None:
    """Never were two servers away at once."""
    assert [f"{first.sentence}; {second.sentence}" for first, second in together(found)] == []


@contextmanager
def under_load(stack: Stack, table: str) -> Iterator[WriterProcess]:
    """A writer goes on as long as the block lasts; each row that it was promised is there then, and never two servers were away at once.
    Prints the gaps."""
    watch, writer = PodWatch(stack.kubectl, SERVERS), WriterProcess(stack.tools, table)
    yield writer.acknowledges()
    lost_nothing(writer)
    one_at_a_time(seen_away(watch))
