"""Keys are reconciled when their time has come, one worker at a time for each."""

from __future__ import annotations

import threading

from herdkeeper.handlers.queue import DEBOUNCE_SECONDS, LONGEST_RETRY_SECONDS, KeyQueue
from herdkeeper.handlers.references import References
from herdkeeper.reconcile import Key, disturbs_with


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def taken(queue: KeyQueue[str]) -> list[str]:
    """All keys whose time has come and which nobody works on."""
    found = []
    while (key := queue._next()[0]) is not None:
        queue._working.add(key)
        found.append(key)
    return found


def test_a_burst_of_events_is_one_reconcile():
    queue = KeyQueue(clock := Clock())
    for _ in range(5):
        queue.add("a")
    assert taken(queue) == []
    clock.seconds = DEBOUNCE_SECONDS
    assert taken(queue) == ["a"]


def test_an_event_brings_a_key_forward_that_waits_for_its_resync():
    queue = KeyQueue(clock := Clock())
    queue.add("a", 60)
    queue.add("a")
    clock.seconds = 1
    assert taken(queue) == ["a"]
    queue.done("a")
    clock.seconds = 100
    assert taken(queue) == []


def test_a_later_time_does_not_put_a_key_off():
    queue = KeyQueue(clock := Clock())
    queue.add("a")
    queue.add("a", 60)
    clock.seconds = 1
    assert taken(queue) == ["a"]


def test_a_key_that_is_worked_on_waits_until_its_worker_is_done():
    queue = KeyQueue(clock := Clock())
    queue.add("a")
    clock.seconds = 1
    assert taken(queue) == ["a"]
    queue.add("a")
    queue.add("b")
    clock.seconds = 2
    assert taken(queue) == ["b"]
    queue.done("a")
    assert taken(queue) == ["a"]


def test_failures_come_again_later_each_time_and_a_success_forgets_them():
    queue = KeyQueue(Clock())
    delays = [queue.failed("a") for _ in range(8)]
    assert delays[:4] == [1, 2, 4, 8]
    assert delays[-1] == LONGEST_RETRY_SECONDS
    queue.done("a")
    assert queue.failed("a") == 1


def test_a_closed_queue_lets_its_workers_end():
    queue: KeyQueue[str] = KeyQueue()
    found: list[str | None] = ["nothing yet"]
    worker = threading.Thread(target=lambda: found.append(queue.take()))
    worker.start()
    queue.close()
    worker.join(timeout=10)
    assert found[-1] is None


def test_a_resource_s_dependents_and_what_it_refers_to_are_looked_at_with_it():
    zookeeper, bookkeeper, herddb = (
        Key(kind, "demo", name) for kind, name in (("ZooKeeperCluster", "zk"), ("BookKeeperCluster", "bk"), ("HerdDBCluster", "db"))
    )
    references = References()
    references.seen(bookkeeper, {"zooKeeperRef": {"name": "zk"}})
    references.seen(herddb, {"bookKeeperRef": {"name": "bk"}})
    assert references.touched_by(zookeeper) == (zookeeper, bookkeeper)
    assert references.touched_by(bookkeeper) == (bookkeeper, herddb, zookeeper)
    references.gone(herddb)
    assert references.touched_by(bookkeeper) == (bookkeeper, zookeeper)


def test_the_clusters_of_one_stack_are_reconciled_one_after_the_other_and_others_beside_them():
    queue: KeyQueue[Key] = KeyQueue(clock := Clock(), together=disturbs_with)
    bookies, database = Key("BookKeeperCluster", "demo", "bk"), Key("HerdDBCluster", "demo", "db")
    beside = {Key("HerdDBCluster", "elsewhere", "db"), Key("Tablespace", "demo", "flights"), Key("Tablespace", "demo", "weather")}
    for key in (bookies, database, *beside):
        queue.add(key)
    clock.seconds = 1
    first = {queue.take() for _ in range(4)}
    assert first == {bookies, *beside}
    assert queue._next()[0] is None
    queue.done(bookies)
    assert queue.take() == database
    queue.failed(database)
    queue.add(bookies, 0)
    assert queue.take() == bookies
