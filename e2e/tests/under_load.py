"""A writer while servers restart, and the wait until all of them are other pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from conftest import QUICKSTART, Stack, say

from herdkeeper_e2e.conditions import unsettled_reason
from herdkeeper_e2e.disruptions import absences, together
from herdkeeper_e2e.history import Gap, gap_table
from herdkeeper_e2e.pod_watch import PodWatch
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

SETTLED = Limit(900, 2)
SERVERS = "app.kubernetes.io/name in (zookeeper,bookie,herddb)"


def uids(stack: Stack, selector: str = SERVERS) -> dict[str, str]:
    """The servers' pods, and which ones they are."""
    return {str(pod["metadata"]["name"]): str(pod["metadata"]["uid"]) for pod in stack.kubectl.list("pods", selector)}


def all_anew(stack: Stack, before: Mapping[str, str]) -> None:
    """Each of these pods is another one, and all is settled."""

    def anew() -> bool | Pending:
        now = uids(stack)
        old = sorted(name for name, uid in before.items() if now.get(name) == uid)
        return Pending(f"still the old ones: {', '.join(old)}") if old else True

    wait_for("other pods", anew, SETTLED, say)
    settled(stack)


def settled(stack: Stack) -> None:
    """All is Ready, with nothing left to do."""

    def ask() -> bool | Pending:
        unsettled = ((item["kind"], unsettled_reason(item)) for item in stack.kubectl.list(QUICKSTART))
        return next((Pending(f"{kind}: {why}") for kind, why in unsettled if why is not None), True)

    stack.wait_until_ready()
    wait_for("the stack to be settled", ask, SETTLED, say)


@contextmanager
def under_load(stack: Stack, table: str) -> Iterator[WriterProcess]:
    """A writer goes on as long as the block lasts; each row that it was promised is there then, and never two servers were away at once.
    Prints the gaps."""
    watch, writer = PodWatch(stack.kubectl, SERVERS), WriterProcess(stack.tools, table)
    yield writer
    writer.stop()
    away = absences(watch.stop())
    for absence in away:
        say(absence.sentence)
    found = writer.read()
    say(f"\n{gap_table([Gap(**gap) for gap in found['gaps']])}\n{found['verdict']['acknowledged']} rows acknowledged")
    assert found["violation"] is None
    assert [f"{first.sentence}; {second.sentence}" for first, second in together(away)] == []
