"""What happens to the machines of a world in an act of a story."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from herdkeeper_e2e.fuzz.conversation import Note
from herdkeeper_e2e.fuzz.story import Act, Trouble
from herdkeeper_e2e.fuzz.world import BOOKIES, World

if TYPE_CHECKING:
    from herdkeeper_e2e.fuzz.telling import Script

COME_FIRST = (Trouble.LEAVE_BOOKIE, Trouble.LONG_ABSENCE, Trouble.FULL_DISK)
"""Troubles that precede the scripts of their act."""
_ABSENT_SECONDS = 27
"""Longer than the log's retention plus the leader's interval of releases."""
_CHECKPOINTS_SECONDS = 1.2
"""For so long HerdDB's activator may ignore a failed follower."""


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
        world.fill_disk(node, full=True)
        for script in scripts:
            script.make_table()
        time.sleep(seconds / 4)
        world.fill_disk(node, full=False)
        end = time.monotonic() + _CHECKPOINTS_SECONDS
        while time.monotonic() < end:
            for script in scripts:
                script.checkpoint()
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


def _replace(world: World, scripts: Sequence[Script], node: str) -> None:
    """Move a node's leaderships to others, where possible."""
    for script in scripts:
        if script.leader == node and (successor := world.successor(script.name)) is not None:
            world.name_leader(script.name, successor)
