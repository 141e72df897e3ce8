"""Workers outlive what one resource brings up, and say whether they ended."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest

from herdkeeper.clients.object_cache import ObjectCache
from herdkeeper.clients.world import World
from herdkeeper.engine.execute import Hands
from herdkeeper.engine.queue import KeyQueue
from herdkeeper.engine.reconcile import Key, Outcome, Result, leaders_of, touched_by
from herdkeeper.process import workers as module
from herdkeeper.process.references import References
from herdkeeper.process.workers import Workers
from herdkeeper.settings import Settings

TOUCHES = partial(touched_by, References().stacks_of)
HANDS = Hands(None, World(None, None, None), None, lambda: True, None)
KEY, OTHER = Key("ZooKeeperCluster", "demo", "zk"), Key("ZooKeeperCluster", "demo", "other")


@pytest.fixture
def queue() -> KeyQueue[Key]:
    return KeyQueue()


def working(queue, monkeypatch, reconcile) -> Workers:
    monkeypatch.setattr(module, "reconcile", reconcile)
    workers = Workers(Settings(), HANDS, queue, ObjectCache())
    workers.start()
    return workers


def test_workers_that_are_idle_end_at_once(queue, monkeypatch):
    workers = working(queue, monkeypatch, lambda *_: Result(Outcome.OK))
    assert workers.trouble() is None
    assert workers.stop()


def test_a_worker_that_is_still_at_work_is_told_of_so_that_its_lease_is_not_given_away(queue, monkeypatch):
    monkeypatch.setattr(module, "STOP_SECONDS", 0.2)
    at_work, goes_on = threading.Event(), threading.Event()

    def reconcile(*_):
        at_work.set()
        goes_on.wait(20)
        return Result(Outcome.OK)

    workers = working(queue, monkeypatch, reconcile)
    queue.add(KEY, 0)
    assert at_work.wait(20)
    assert not workers.stop()
    goes_on.set()
    monkeypatch.setattr(module, "STOP_SECONDS", 20)
    assert workers.stop()


def test_a_failure_ends_no_worker_and_comes_again(queue, monkeypatch):
    monkeypatch.setattr("herdkeeper.engine.queue.FIRST_RETRY_SECONDS", 0.01)
    tries, done = [], threading.Event()

    def reconcile(key, *_):
        tries.append(key)
        if len(tries) < 3:
            raise RuntimeError("something that nobody expected")
        done.set()
        return Result(Outcome.GONE)

    workers = working(queue, monkeypatch, reconcile)
    queue.add(KEY, 0)
    assert done.wait(20)
    assert workers.trouble() is None
    assert workers.stop()
    assert tries == [KEY] * 3


DATABASE = Key("HerdDBCluster", "demo", "db")


def test_a_lost_leader_does_not_wait_for_what_else_is_looked_at_in_its_stack(monkeypatch):
    queue: KeyQueue[Key] = KeyQueue(touches=TOUCHES, meanwhile=leaders_of)
    scanning, scanned, looked = threading.Event(), threading.Event(), threading.Event()
    done = []

    def reconcile(key, *_):
        if key.kind == "BookKeeperCluster":
            scanning.set()
            assert scanned.wait(20)
        done.append(key)
        if key.kind == "HerdDBCluster":
            looked.set()
        return Result(Outcome.OK, 30.0)

    workers = working(queue, monkeypatch, reconcile)
    queue.add(Key("BookKeeperCluster", "demo", "bk"), 0)
    assert scanning.wait(20)
    queue.add(DATABASE, 0)
    assert looked.wait(20)
    assert done == [leaders_of(DATABASE)]
    looked.clear()
    scanned.set()
    assert looked.wait(20)
    assert workers.stop()
    assert done[1:] == [Key("BookKeeperCluster", "demo", "bk"), DATABASE]


@pytest.mark.parametrize(
    ("situation", "waits", "result", "again"),
    [
        ("its stack is still busy, and a leader is waited for", True, Result(Outcome.OK, 3.0), True),
        ("its stack is still busy, and all leaders lead", True, Result(Outcome.OK), False),
        ("its whole database has been looked at since", False, Result(Outcome.OK, 3.0), False),
    ],
)
def test_leaders_are_looked_at_again_by_themselves_only_while_their_database_waits(monkeypatch, situation, waits, result, again):
    queue: KeyQueue[Key] = KeyQueue(touches=TOUCHES, meanwhile=leaders_of)
    monkeypatch.setattr(module, "reconcile", lambda *_: result)
    if waits:
        queue.add(DATABASE, 0)
    Workers(Settings(), HANDS, queue, ObjectCache())._reconcile(leaders_of(DATABASE), None)
    assert (leaders_of(DATABASE) in queue) is again, situation


def delays(monkeypatch, result, seconds=0.0):
    """When the key comes back after each of three reconciles with this result, each of which takes so many seconds."""
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    queue: KeyQueue[Key] = KeyQueue(now=lambda: clock[0])

    def reconcile(*_):
        clock[0] += seconds
        return result

    monkeypatch.setattr(module, "reconcile", reconcile)
    workers, found = Workers(Settings(), HANDS, queue, ObjectCache()), []
    for _ in range(3):
        workers._reconcile(KEY, None)
        found.append(round(queue._due.pop(KEY) - clock[0], 6))
    return found


def test_what_is_looked_at_soon_is_looked_at_though_an_action_failed_and_is_tried_later_each_time(monkeypatch):
    assert delays(monkeypatch, Result(Outcome.FAILED)) == [1.0, 2.0, 4.0]
    assert delays(monkeypatch, Result(Outcome.FAILED, 1.5)) == [1.0, 1.5, 1.5]


def test_back_off_is_kept_where_it_is_the_sooner_one(monkeypatch):
    assert delays(monkeypatch, Result(Outcome.FAILED, 3.0)) == [1.0, 2.0, 3.0]


def test_the_time_that_a_reconcile_took_is_no_part_of_the_next_delay_but_half_of_it_stays(monkeypatch):
    assert delays(monkeypatch, Result(Outcome.OK, 1.5), seconds=0.25) == [1.25] * 3
    assert delays(monkeypatch, Result(Outcome.OK, 1.5), seconds=9.0) == [0.75] * 3
