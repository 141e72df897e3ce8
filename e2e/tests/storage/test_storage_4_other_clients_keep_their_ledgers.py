"""While a plain BookKeeper client with striped ledgers, a DistributedLog client and a SQL writer go on, a bookie is lost for good: all
three keep what was acknowledged, and another bookie takes its place."""

from __future__ import annotations

import time

from bookie_steps import lose_the_disks_of_one, numbers_of, settled_with_others_for, want
from conftest import Stack, say
from proof import kept_all, made_whole
from stops import CountedStops
from under_load import lost_nothing

from herdkeeper_e2e.ledger_clients import DistributedLogClient, Place, StripedClient, Striping
from herdkeeper_e2e.writer_process import WriterProcess

STRIPING = Striping(ensemble_size=4)
DELAY_SECONDS = 30
ENTRIES = 500


def test_striped_ledgers_and_a_stream_of_distributed_log_outlive_a_bookie(stack: Stack) -> None:
    there = numbers_of(stack)
    lacking = max(0, STRIPING.ensemble_size + 1 - len(there))
    want(stack, bookies=len(there) + lacking, autoRecovery={"lostBookieRecoveryDelaySeconds": DELAY_SECONDS})
    settled_with_others_for(stack, set(), len(there) + lacking)
    writer = WriterProcess(stack.tools, "beside_other_clients")
    place = Place(stack.kubectl)
    clients = (StripedClient(place, "striped-and-a-loss", STRIPING), DistributedLogClient(place, "stream-and-a-loss"))
    stops = CountedStops(stack, writer, *clients)
    for client in clients:
        client.acknowledges(ENTRIES)

    began = time.monotonic()
    for each in (writer, *clients):
        each.order("mark a bookie lost")
    lost = lose_the_disks_of_one(stack)
    say(f"replaced in {time.monotonic() - began:.0f} s")
    for client in clients:
        client.acknowledges(ENTRIES)
    assert not [path for path in stack.tools.znodes() if lost in path]

    for client in clients:
        report = kept_all(client)
        assert report.acknowledged >= 2 * ENTRIES
        assert [gap.fault for gap in report.gaps] == ["a bookie lost"]
    lost_nothing(writer)
    stack.wait_until_ready()
    made_whole(stack, "after-the-clients", stops.end())
