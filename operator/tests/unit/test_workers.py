"""Workers outlive what one resource brings up, and say whether they ended."""

from __future__ import annotations

import threading

import pytest

from herdkeeper.handlers import workers as module
from herdkeeper.handlers.queue import KeyQueue
from herdkeeper.handlers.workers import Workers
from herdkeeper.reconcile import Key, Outcome, Result
from herdkeeper.settings import Settings

KEY, OTHER = Key("ZooKeeperCluster", "demo", "zk"), Key("ZooKeeperCluster", "demo", "other")


@pytest.fixture
def queue() -> KeyQueue[Key]:
    return KeyQueue()


def working(queue, monkeypatch, reconcile) -> Workers:
    monkeypatch.setattr(module, "reconcile", reconcile)
    workers = Workers(Settings(), None, queue)
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
    monkeypatch.setattr("herdkeeper.handlers.queue.FIRST_RETRY_SECONDS", 0.01)
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
