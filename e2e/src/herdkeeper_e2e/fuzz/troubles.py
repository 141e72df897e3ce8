"""What happens to the machines of a world in an act of a story."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import assert_never

from herdkeeper_e2e.fuzz.conversation import Note
from herdkeeper_e2e.fuzz.script import Script
from herdkeeper_e2e.fuzz.story import Act, Trouble
from herdkeeper_e2e.fuzz.world import BOOKIES, World

COME_FIRST = (Trouble.LEAVE_BOOKIE, Trouble.CLOSE_UNDER_TRANSACTIONS, Trouble.LONG_ABSENCE, Trouble.FULL_DISK)
"""Troubles that precede the scripts of their act."""
_ABSENT_SECONDS = 27
"""Longer than the log's retention plus the leader's interval of releases."""
_CHECKPOINTS_SECONDS = 1.0
"""For so long HerdDB's activator may ignore a failed follower."""
_FOLLOWS_SECONDS = 20.0
_FAILS_SECONDS = 2.0
"""For so long a node may take to boot a follower, and to fail to apply an entry."""
_PAUSE_SECONDS = 0.02
_CLOSED_SECONDS = 8.0
"""A leader that writes nothing for longer writes to its ledger by itself, and then knows that it is closed."""


def make_trouble(act: Act, world: World, scripts: Sequence[Script], note: Note) -> None:
    """Return when it is over, except for what `World.heal` restarts."""
    match act.trouble:
        case Trouble.NOTHING:
            pass
        case Trouble.KILL_NODE | Trouble.KILL_NODE_AND_WAIT | Trouble.PAUSE_LEADERS | Trouble.PAUSE_NODE:
            _hit_any_node(act, world, scripts, note)
        case Trouble.POWER_CUT_OF_FOLLOWER | Trouble.FULL_DISK | Trouble.LONG_ABSENCE:
            _hit_follower(act, world, scripts, note)
        case Trouble.KILL_BOOKIE | Trouble.LEAVE_BOOKIE | Trouble.PAUSE_BOOKIE:
            _hit_bookie(act, world, note)
        case Trouble.CLOSE_UNDER_TRANSACTIONS:
            _close_under_transactions(act, world, scripts, note)
        case Trouble.RESTART_ZOOKEEPER:
            world.kill("zookeeper")
            world.start("zookeeper")
        case _:
            assert_never(act.trouble)


def _hit_any_node(act: Act, world: World, scripts: Sequence[Script], note: Note) -> None:
    node = world.nodes[act.victim % len(world.nodes)]
    killed = act.trouble in (Trouble.KILL_NODE, Trouble.KILL_NODE_AND_WAIT)
    note(f"{node} {'is killed' if killed else 'stands still'}")
    (world.kill if killed else world.pause)(node)
    if act.trouble in (Trouble.KILL_NODE, Trouble.PAUSE_LEADERS):
        _replace(world, scripts, node)
    if killed:
        world.start(node)
    else:
        time.sleep(act.lasts_millis / 1000)
        world.resume(node)


def _hit_follower(act: Act, world: World, scripts: Sequence[Script], note: Note) -> None:
    node = world.others(scripts[-1].leader)[0]
    _replace(world, scripts, node)
    for script in scripts:
        world.connect(script.name).close()
    note(f"{node} leads nothing any more")
    seconds = act.lasts_millis / 1000
    if act.trouble is Trouble.FULL_DISK:
        for number, script in enumerate(scripts):
            _fill_disk(world, script, node, in_transaction=(act.victim + number) % 2 == 0)
        return
    if act.trouble is Trouble.LONG_ABSENCE:
        for script in scripts:
            script.checkpoint()
        seconds = _ABSENT_SECONDS
    world.kill(node)
    if act.trouble is Trouble.LONG_ABSENCE:
        # Its disk has the beginning of a ledger; only the log has the rest.
        for script in scripts:
            script.end_ledger()
    time.sleep(seconds)
    world.start(node)


def _fill_disk(world: World, script: Script, node: str, *, in_transaction: bool) -> None:
    """One tablespace at a time: the node soon stops one that can't follow, and then writes no checkpoint of it."""
    if in_transaction:
        script.begin_table()
    script.insert()
    _wait(_FOLLOWS_SECONDS, lambda: script.follows(node))
    world.fill_disk(node, full=True)
    script.commit() if in_transaction else script.make_table()
    script.insert()  # a follower sees an entry with the next one
    _wait(_FAILS_SECONDS, lambda: not script.follows(node))
    world.fill_disk(node, full=False)
    end = time.monotonic() + _CHECKPOINTS_SECONDS
    while time.monotonic() < end:
        script.checkpoint()
        time.sleep(_PAUSE_SECONDS)


def _wait(seconds: float, holds: Callable[[], bool]) -> None:
    """Wait until something holds, but not for longer."""
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(_PAUSE_SECONDS)


def _hit_bookie(act: Act, world: World, note: Note) -> None:
    bookie = world.bookies[act.victim % BOOKIES]
    note(f"hit: {bookie}")
    seconds = act.lasts_millis / 1000
    if act.trouble is Trouble.KILL_BOOKIE:
        world.kill(bookie)
    elif act.trouble is Trouble.LEAVE_BOOKIE:
        world.servers.stop_bookie(bookie)
        time.sleep(seconds)
    else:
        world.pause(bookie)
        time.sleep(seconds)
        world.resume(bookie)


def _close_under_transactions(act: Act, world: World, scripts: Sequence[Script], note: Note) -> None:
    """Their leaders do not know that the ledgers are closed. ZooKeeper tells them first, since no bookie answers."""
    bookie = world.bookies[act.victim % BOOKIES]
    for script in scripts:
        script.insert_in_transaction()
    world.servers.stop_bookie(bookie)
    _wait(_CLOSED_SECONDS, lambda: not world.open_ledgers(bookie))
    note(f"{bookie} has ended")
    others = [other for other in world.bookies if world.runs(other)]
    for other in others:
        world.pause(other)
    for script in scripts:
        script.insert_in_transaction()
    time.sleep(act.lasts_millis / 1000)
    for other in others:
        world.resume(other)
    for script in scripts:
        script.commit()


def _replace(world: World, scripts: Sequence[Script], node: str) -> None:
    """Move a node's leaderships to others, where possible."""
    for script in scripts:
        if script.leader == node and (successor := world.successor(script.name)) is not None:
            world.name_leader(script.name, successor)
