"""Workers outlive what one resource brings up, and say whether they ended."""

from __future__ import annotations

import threading
import time

import pytest

from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.engine.execute import Clients
from herdkeeper.engine.key import Key
from herdkeeper.engine.queue import KeyQueue
from herdkeeper.engine.result import Outcome, Result
from herdkeeper.process import workers as module
from herdkeeper.process.workers import Workers
from herdkeeper.settings import Settings

HANDS = Clients(None, ClusterReader(None, None, None), None, lambda: True, None)
KEY, OTHER = Key("ZooKeeperCluster", "demo", "zk"), Key("ZooKeeperCluster", "demo", "other")


@pytest.fixture
def queue() -> KeyQueue[Key]:
    return KeyQueue()


def working(queue, monkeypatch, reconcile) -> Workers:
    monkeypatch.setattr(module, "STOP_SECONDS", 120)
    workers = Workers(Settings(), HANDS, queue, reconcile, queue.add)
    workers.start()
    return workers


def test_workers_that_are_idle_end_at_once(queue, monkeypatch):
    workers = working(queue, monkeypatch, lambda *_: Result(Outcome.OK))
    assert workers.trouble() is None
    assert workers.stop()


def test_a_worker_that_is_still_at_work_is_told_of_so_that_its_lease_is_not_given_away(queue, monkeypatch):
    at_work, goes_on = threading.Event(), threading.Event()

    def reconcile(*_):
        at_work.set()
        goes_on.wait(120)
        return Result(Outcome.OK)

    workers = working(queue, monkeypatch, reconcile)
    queue.add(KEY, 0)
    assert at_work.wait(120)
    monkeypatch.setattr(module, "STOP_SECONDS", 0.2)
    assert not workers.stop()
    goes_on.set()
    monkeypatch.setattr(module, "STOP_SECONDS", 120)
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
    assert done.wait(120)
    assert workers.trouble() is None
    assert workers.stop()
    assert tries == [KEY] * 3


def test_what_zookeeper_s_watches_tell_of_a_resource_has_it_looked_at(queue):
    woken, watches = [], []

    def reconcile(_, clients):
        watches.append(clients.reader.wake)
        return Result(Outcome.OK)

    Workers(Settings(), HANDS, queue, reconcile, woken.append)._reconcile(KEY)
    Workers(Settings(), HANDS, queue, reconcile, woken.append)._reconcile(KEY)
    watches[0](None)
    assert woken == [KEY]
    assert watches[0] == watches[1], "one watcher for each resource, however often it was looked at"


def delays(monkeypatch, result, seconds=0.0):
    """When the key comes back after each of three reconciles with this result, each of which takes so many seconds."""
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    queue: KeyQueue[Key] = KeyQueue(now=lambda: clock[0])

    def reconcile(*_):
        clock[0] += seconds
        return result

    workers, found = Workers(Settings(), HANDS, queue, reconcile, queue.add), []
    for _ in range(3):
        workers._reconcile(KEY)
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
