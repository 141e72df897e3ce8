"""Plays a story on a world: the scripts of its tablespaces and the machines' troubles concurrently, then the judgement."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from herdkeeper.sql.connection import DEFAULT_TABLESPACE
from herdkeeper_e2e.fuzz.conversation import Note
from herdkeeper_e2e.fuzz.judgement import Kind, Violation, fenced_writers
from herdkeeper_e2e.fuzz.script import Script
from herdkeeper_e2e.fuzz.story import Act, Story
from herdkeeper_e2e.fuzz.troubles import COME_FIRST, make_trouble
from herdkeeper_e2e.fuzz.world import Stuck, World

_ACT_SECONDS = 240


def tell(story: Story, world: World, note: Note) -> list[Violation]:
    """Play a story, and return its violations."""
    names = [f"s{story.seed}x{number}" for number in range(len(story.habits))]
    if story.tells_default:
        names[-1] = DEFAULT_TABLESPACE
    said = {node: len(world.words(node)) for node in world.nodes}
    scripts = [Script(name, note, world=world) for name in names]
    violations: list[Violation] = []
    try:
        _bear(story, world, names, note)
        _all([partial(script.begin, number) for number, script in enumerate(scripts)])
        for node in tuple(world.paused):
            world.resume(node)
        for act in story.acts:
            _act(act, world, scripts, note)
    except Stuck as error:
        violations.append(Violation(Kind.NO_LEADER, "the cluster", str(error)))
    try:
        world.heal()
        _all([script.judge for script in scripts])
    except Stuck as error:
        violations.append(Violation(Kind.ENDED, "the cluster", str(error)))
    for script in scripts:
        violations += script.violations
    for node in world.nodes:
        violations += fenced_writers(node, world.words(node)[said[node] :].splitlines())
    violations += [Violation(Kind.ENDED, "the cluster", words) for words in world.ended]
    world.ended.clear()
    for name in names:
        world.drop(name)
    return violations


def _bear(story: Story, world: World, names: list[str], note: Note) -> None:
    """Create all tablespaces on one node. If it is frozen meanwhile, another one boots them, too."""
    first, second = world.nodes[:2]
    ids = world.ledger_ids()
    for name in names:
        world.create(name, first)
    world.wake()
    number = story.birth.stop_at_ledger
    if number is not None:
        # It has read the ledger list and is about to add a ledger: only now can two lists arise.
        last = ids + 2 * number - 1
        world.wait(f"{first} makes its ledger number {number}", lambda: world.ledger_ids() >= last, pause_seconds=0.001)
        world.pause(first)
        note(f"{first} stands still, and {second} shall lead")
        for name in names:
            world.name_leader(name, second)
    elif story.tells_default:
        # The others follow it from now on, while it continues its own ledger.
        world.name_leader(DEFAULT_TABLESPACE, world.record(DEFAULT_TABLESPACE).leader)


def _act(act: Act, world: World, scripts: list[Script], note: Note) -> None:
    first = act.trouble in COME_FIRST
    note(f"trouble {'first' if first else f'after {act.after_millis} ms'}: {act.trouble.value}")
    if first:
        make_trouble(act, world, scripts, note)
    threads = [threading.Thread(target=script.tell, args=(steps,), daemon=True) for script, steps in zip(scripts, act.scripts, strict=True)]
    for thread in threads:
        thread.start()
    if not first:
        time.sleep(act.after_millis / 1000)
        make_trouble(act, world, scripts, note)
    deadline = time.monotonic() + _ACT_SECONDS
    for script, thread in zip(scripts, threads, strict=True):
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            raise Stuck(f"the script of {script.name} does not come to the end of its act")
    world.heal()


def _all(calls: Sequence[Callable[[], None]]) -> None:
    """Run all concurrently; return when the last one has finished."""
    threads = [threading.Thread(target=call, daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
