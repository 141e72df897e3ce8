"""Keys are reconciled when their time has come, one worker at a time for each."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stepped_workers import SteppedWorkers, Worker, stepped_workers

from herdkeeper.clients.deleted_resources import DeletedResources
from herdkeeper.clients.object_cache import ObjectCache
from herdkeeper.engine.key import Key, locks_of
from herdkeeper.engine.queue import (
    BURST,
    CHANGE_SECONDS,
    DEBOUNCE_SECONDS,
    LONGEST_RETRY_SECONDS,
    SILENT_SECONDS,
    SLOW_SECONDS,
    KeyQueue,
    Places,
)
from herdkeeper.process.queues import Queues
from herdkeeper.process.references import References
from herdkeeper.process.watched_kinds import WATCHED_KINDS
from herdkeeper.process.watches import WatchEvents
from herdkeeper.process.workers import PLACES

TOUCHES = partial(locks_of, References().stacks_of)


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def taken(queue: KeyQueue[str]) -> list[str]:
    """All keys whose time has come and which nobody works on."""
    found = []
    while (key := queue._next()[0]) is not None:
        queue._working[key], queue._begun[key] = queue.locks(key), queue.now()
        found.append(key)
    return found


def test_a_burst_of_changes_is_one_reconcile():
    queue = KeyQueue(clock := Clock())
    for _ in range(5):
        queue.changed("a")
    assert taken(queue) == []
    clock.seconds = DEBOUNCE_SECONDS
    assert taken(queue) == ["a"]


def test_an_event_brings_a_key_forward_that_waits_for_its_resync():
    queue = KeyQueue(clock := Clock())
    queue.add("a", 60)
    queue.changed("a")
    clock.seconds = 1
    assert taken(queue) == ["a"]
    queue.done("a")
    clock.seconds = 100
    assert taken(queue) == []


def looks_at_a_noisy_key(seconds: float, queue: KeyQueue[str], clock: Clock) -> list[float]:
    """When a key is taken that changes fifty times a second, and takes no time."""
    times, begun = [], clock.seconds
    while clock.seconds < begun + seconds:
        queue.changed("noisy")
        for key in taken(queue):
            queue.done(key)
            times.append(round(clock.seconds - begun, 2))
        clock.seconds = round(clock.seconds + 0.02, 2)
    return times


def test_a_key_that_changes_all_the_time_is_looked_at_each_second_after_a_burst():
    times = looks_at_a_noisy_key(60, KeyQueue(clock := Clock()), clock)
    assert len(times) <= 60 + BURST
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert max(gaps[:5]) < 0.3, "a burst is answered as ever"
    assert max(gaps) <= CHANGE_SECONDS + 0.05, "and a noisy one is looked at, too"


def test_a_noisy_key_that_fell_silent_is_looked_at_soon_again():
    queue = KeyQueue(clock := Clock())
    looks_at_a_noisy_key(60, queue, clock)
    clock.seconds += 1 + BURST * CHANGE_SECONDS
    taken(queue)
    queue.done("noisy")
    queue.changed("noisy")
    clock.seconds += DEBOUNCE_SECONDS
    assert taken(queue) == ["noisy"]


def test_a_noisy_key_is_looked_at_at_once_where_a_server_is_lost():
    queue = KeyQueue(clock := Clock())
    looks_at_a_noisy_key(60, queue, clock)
    queue.add("noisy", 0)
    assert taken(queue) == ["noisy"]


def test_a_key_that_is_forgotten_and_made_anew_has_a_burst_again():
    queue = KeyQueue(clock := Clock())
    looks_at_a_noisy_key(60, queue, clock)
    queue.forget("noisy")
    assert len(looks_at_a_noisy_key(1, queue, clock)) >= 3


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
    worker.join(timeout=120)
    assert found[-1] is None


def test_a_resource_s_dependents_and_what_it_refers_to_are_looked_at_with_it():
    zookeeper, bookkeeper, herddb = (
        Key(kind, "demo", name) for kind, name in (("ZooKeeperCluster", "zk"), ("BookKeeperCluster", "bk"), ("HerdDBCluster", "db"))
    )
    references = References()
    references.seen(bookkeeper, {"zooKeeperRef": {"name": "zk"}})
    references.seen(herddb, {"bookKeeperRef": {"name": "bk"}})
    assert references.affected_by(zookeeper) == (zookeeper, bookkeeper)
    assert references.affected_by(bookkeeper) == (bookkeeper, herddb, zookeeper)
    references.gone(herddb)
    assert references.affected_by(bookkeeper) == (bookkeeper, zookeeper)


@pytest.mark.parametrize(("policy", "looked_at"), [("Retain", True), ("Delete", False)])
def test_a_tablespace_that_is_refused_for_a_name_is_looked_at_when_the_one_that_holds_it_goes(policy, looked_at):
    """Not while that is about to be dropped: the other one would take it over."""
    queues = Queues(KeyQueue(clock := Clock()), KeyQueue())
    watched = WatchEvents(queues, ObjectCache(), SimpleNamespace(), References(), DeletedResources())
    kind = next(each for each in WATCHED_KINDS if each.kind == "Tablespace")

    def tablespace(name: str, database: str, **spec: str) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "demo", "uid": name, "resourceVersion": str(len(name))}
        stored = {"herdDBRef": {"name": database}, "replicas": 1, **spec}
        return {"apiVersion": "herdkeeper.io/v1alpha1", "kind": "Tablespace", "metadata": metadata, "spec": stored}

    holder, refused = tablespace("my-flights", "db", deletionPolicy=policy), tablespace("refused", "db", tablespaceName="my_flights")
    others = (tablespace("another", "db"), tablespace("elsewhere", "db2", tablespaceName="my_flights"))
    for each in (holder, refused, *others):
        watched.event(kind, {"type": "ADDED", "object": each})
    clock.seconds = 100
    for key in taken(queues.resources):
        queues.resources.done(key)
    watched.event(kind, {"type": "DELETED", "object": holder})
    clock.seconds = 200
    found = {Key("Tablespace", "demo", "my-flights"), Key("HerdDBCluster", "demo", "db")}
    assert set(taken(queues.resources)) == found | ({Key("Tablespace", "demo", "refused")} if looked_at else set())


def test_the_clusters_of_one_stack_are_reconciled_one_after_the_other_and_others_beside_them():
    queue: KeyQueue[Key] = KeyQueue(clock := Clock(), locks=TOUCHES)
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


def test_a_stack_does_not_wait_for_another_one_of_its_namespace_once_it_is_known_what_belongs_to_which():
    references = References()
    clusters = [(Key("BookKeeperCluster", "demo", name), Key("HerdDBCluster", "demo", f"{name}-db")) for name in ("a", "b")]
    for bookies, database in clusters:
        references.seen(bookies, {"zooKeeperAddress": "elsewhere:2181"})
        references.seen(database, {"bookKeeperRef": {"name": bookies.name}})
    queue: KeyQueue[Key] = KeyQueue(clock := Clock(), locks=partial(locks_of, references.stacks_of))
    (bookies, database), (others, _) = clusters
    unknown = Key("HerdDBCluster", "demo", "just-made")
    for key in (bookies, database, others, unknown):
        queue.add(key)
        clock.seconds += 1
    assert [queue.take(), queue.take()] == [bookies, others]
    assert queue._next()[0] is None, "its own stack is worked on, and nobody knows yet to which the new one belongs"
    queue.done(bookies)
    assert queue.take() == database


def test_what_a_key_touched_when_it_was_taken_is_let_go_though_it_touches_something_else_by_then():
    references = References()
    bookies, other = Key("BookKeeperCluster", "demo", "bk"), Key("BookKeeperCluster", "demo", "other")
    references.seen(other, {"zooKeeperRef": {"name": "zk"}})
    queue: KeyQueue[Key] = KeyQueue(Clock(), locks=partial(locks_of, references.stacks_of))
    queue.add(bookies, 0)
    assert queue.take() == bookies
    references.seen(bookies, {"zooKeeperAddress": "elsewhere:2181"})
    queue.add(other, 0)
    assert queue._next()[0] is None
    queue.done(bookies)
    assert queue.take() == other


def test_who_was_taken_before_a_watch_told_of_a_stack_has_it_to_itself_until_it_is_done():
    zookeeper, bookies, database = (
        Key(kind, "demo", name) for kind, name in (("ZooKeeperCluster", "zk"), ("BookKeeperCluster", "bk"), ("HerdDBCluster", "db"))
    )
    references = References()
    queue: KeyQueue[Key] = KeyQueue(Clock(), locks=partial(locks_of, references.stacks_of))
    queue.add(bookies, 0)
    assert queue.take() == bookies
    references.seen(zookeeper, {})
    references.seen(bookies, {"zooKeeperRef": {"name": "zk"}})
    references.seen(database, {"bookKeeperRef": {"name": "bk"}})
    queue.add(zookeeper, 0)
    queue.add(database, 0)
    assert queue._next()[0] is None, "two of one stack would each see the other undisturbed"
    queue.done(bookies)
    assert queue.take() == zookeeper


BOOKIES, DATABASE = Key("BookKeeperCluster", "demo", "bk"), Key("HerdDBCluster", "demo", "db")


def busy_stack() -> KeyQueue[Key]:
    """A queue in which the bookies are worked on, and their database waits."""
    queue: KeyQueue[Key] = KeyQueue(Clock(), locks=TOUCHES)
    queue.add(BOOKIES, 0)
    assert queue.take() == BOOKIES
    queue.add(DATABASE, 0)
    return queue


def test_who_waits_for_its_stack_is_not_overtaken_by_the_rest_of_it():
    queue = busy_stack()
    queue.add(Key("ZooKeeperCluster", "demo", "zk"), 0)
    assert queue._next()[0] is None
    queue.done(BOOKIES)
    queue.add(BOOKIES, 0)
    assert queue.take() == DATABASE


def test_who_waits_in_one_namespace_holds_up_nobody_in_another():
    queue = busy_stack()
    elsewhere = replace(BOOKIES, namespace="elsewhere")
    queue.add(elsewhere, 0)
    assert queue.take() == elsewhere


def test_a_database_is_in_the_queue_of_leadership_too_where_its_stack_holds_it_up_no_more():
    queues = Queues(busy_stack(), KeyQueue(Clock()))
    queues.hurry(DATABASE)
    queues.hurry(Key("Tablespace", "demo", "flights"))
    assert queues.leadership.take() == DATABASE
    assert len(queues.leadership) == 0
    assert queues.resources.take() == Key("Tablespace", "demo", "flights")
    queues.close()
    assert queues.leadership.take() is queues.resources.take() is None


def test_of_one_namespace_one_worker_less_than_all_is_taken_so_that_the_others_never_wait_for_its_servers():
    queue = KeyQueue(clock := Clock(), share=lambda key: key[0], most_of_a_share=3)
    for key in ("a1", "a2", "a3", "a4", "b1"):
        queue.add(key)
    clock.seconds = 1
    assert taken(queue) == ["a1", "a2", "a3", "b1"]
    queue.done("b1")
    assert taken(queue) == []
    queue.done("a2")
    assert taken(queue) == ["a4"]


def test_where_only_one_namespace_is_watched_it_has_all_workers():
    queue = KeyQueue(clock := Clock(), share=lambda key: key[0])
    for key in ("a1", "a2", "a3", "a4"):
        queue.add(key)
    clock.seconds = 1
    assert taken(queue) == ["a1", "a2", "a3", "a4"]


def test_many_silent_servers_delay_no_other_key():
    queue = KeyQueue(clock := Clock(), share=lambda key: key[0], places=Places(fast=2, slow=3))
    for key in ("a1", "b1", "c1", "d1", "e1"):
        queue.add(key)
    clock.seconds = 1
    assert taken(queue) == ["a1", "b1"]
    assert queue._next() == (None, clock.seconds + SLOW_SECONDS)
    clock.seconds += SLOW_SECONDS
    assert taken(queue) == ["c1", "d1"], "two are slow, and leave their places"
    queue.done("c1")
    assert taken(queue) == ["e1"]


def test_forty_silent_namespaces_leave_a_place_to_one_whose_servers_are_slow():
    queue = KeyQueue(clock := Clock(), share=lambda key: key.partition("/")[0], places=PLACES)
    names = [f"silent-{number}" for number in range(40)]
    for name in (*names, "slow"):
        queue.add(f"{name}/zk", 0)
    while found := taken(queue):
        clock.seconds += SILENT_SECONDS
        for key in found:
            queue.done(key)
    for name in (*names, "slow"):
        queue.add(f"{name}/bk", 0)
    assert "slow/bk" in taken(queue)


def test_a_share_whose_last_key_was_slow_takes_no_place_of_fast_ones_until_one_is_fast_again():
    queue = KeyQueue(clock := Clock(), share=lambda key: key[0], places=Places(fast=2, slow=1))
    queue.add("a1")
    clock.seconds = 1
    assert taken(queue) == ["a1"]
    clock.seconds += SILENT_SECONDS
    queue.failed("a1")
    for key in ("a2", "a3", "b1", "b2", "b3"):
        queue.add(key, 0)
    assert taken(queue) == ["a2", "b1", "b2"]
    queue.done("a2")
    assert taken(queue) == []
    queue.done("b1")
    assert taken(queue) == ["a3"], "since a2 was fast"


def test_a_worker_that_waits_for_a_place_goes_on_once_one_is_slow(monkeypatch):
    monkeypatch.setattr("herdkeeper.engine.queue.SLOW_SECONDS", 0.1)
    queue: KeyQueue[str] = KeyQueue(places=Places(fast=1, slow=1))
    queue.add("a", 0)
    queue.add("b", 0)
    assert (queue.take(), queue.take()) == ("a", "b")


def test_a_key_that_took_long_on_a_busy_machine_does_not_queue_its_share_behind_silent_ones():
    queue = KeyQueue(clock := Clock(), share=lambda key: key[0], places=Places(fast=1, slow=1))
    queue.add("a1", 0)
    assert taken(queue) == ["a1"]
    clock.seconds += SLOW_SECONDS
    queue.add("b1", 0)
    assert taken(queue) == ["b1"]
    clock.seconds += SLOW_SECONDS
    queue.done("b1")
    queue.add("b2", 0)
    assert taken(queue) == ["b2"], "a1 has the place of slow ones for long"


IDLE, MOMENTS = 64, 50


def rounds(workers: SteppedWorkers, seconds: float) -> None:
    """All that the workers do in this time; each gives its key back at once."""
    until = workers.seconds + seconds
    while True:
        workers.settle()
        while busy := workers.busy:
            busy[0].fails = False
            busy[0].step()
            workers.settle()
        if (moment := min(each.until for each in workers.waiting)) > until:
            break
        workers.seconds = moment
    workers.seconds = until


def test_a_key_that_becomes_due_wakes_two_workers_however_many_are_idle():
    with stepped_workers(IDLE) as workers:
        workers.settle()
        for number in range(MOMENTS):
            workers.queue.add(f"key-{number}", 1.0 + number)
        workers.queue.add("resync", 600.0)
        workers.settle()
        before = workers.wake_ups
        rounds(workers, 1.0 + MOMENTS)
        assert len(workers.queue) == 1
        assert workers.wake_ups - before <= 2 * MOMENTS


def test_changes_wake_the_timekeeper_alone():
    with stepped_workers(IDLE) as workers:
        workers.queue.add("resync", 600.0)
        workers.settle()
        before = workers.wake_ups
        for number in range(MOMENTS):
            workers.queue.changed(f"key-{number}")
        workers.settle()
        assert workers.wake_ups - before == 1
        rounds(workers, 1.0)
        assert len(workers.queue) == 1
        assert workers.wake_ups - before <= 2 * MOMENTS + 1


def test_workers_that_are_not_needed_never_wake():
    """A thread that runs for the first time takes memory for its stack."""
    with stepped_workers(IDLE) as workers:
        workers.settle()
        for number in range(MOMENTS):
            workers.queue.add(f"key-{number}", 1.0 + number)
        used = set()
        for _ in range(MOMENTS):
            rounds(workers, 1.0)
            used |= {each for each in workers.waiting if each.until < math.inf}
        assert len(used) <= 2


def test_a_closed_queue_ends_the_timekeeper_and_all_others():
    with stepped_workers(IDLE) as workers:
        workers.queue.add("resync", 600.0)
        workers.settle()
        workers.queue.close()
        workers.settle()
        assert all(each.ended for each in workers.all)


def test_a_key_whose_place_is_free_before_its_time_waits_no_longer():
    with stepped_workers(3, places=Places(fast=1, slow=1)) as workers:
        workers.queue.add("a", 0.0)
        workers.settle()
        workers.queue.add("b", SLOW_SECONDS / 2)
        workers.settle()
        assert [each.until for each in workers.waiting if each.until < math.inf] == [SLOW_SECONDS], "when `a` leaves its place"
        workers.busy[0].step()
        workers.settle()
        workers.seconds = SLOW_SECONDS / 2
        workers.settle()
        assert [each.has for each in workers.busy] == ["b"]


KEYS = ("a1", "a2", "a3", "b1", "b2", "c1", "d1")
LOCKS = {"a1": "a", "a2": "a"}
SHARE_OF_NAMESPACE = 2


def moves(workers: SteppedWorkers) -> list[list[Callable[[], object]]]:
    """All that can happen next, by sort. Moments meet: delays and time pass by quarters, as SLOW_SECONDS and SILENT_SECONDS are."""

    def give_back(worker: Worker, fails: bool) -> None:
        worker.fails = fails
        worker.step()

    def pass_time(seconds: float) -> None:
        workers.seconds += seconds

    sorts: list[list[Callable[[], object]]] = [
        [each.step for each in workers.runnable],
        [workers.settle] if workers.runnable else [],
        [partial(give_back, each, fails) for each in workers.busy for fails in (False, True)],
        [partial(workers.queue.add, key, delay) for key in KEYS for delay in (0.0, 0.25, 1.0)],
        [partial(pass_time, seconds) for seconds in (0.25, 0.5, 2.0)],
    ]
    return [each for each in sorts if each]


def wrong(workers: SteppedWorkers) -> str | None:
    """What a queue must never allow."""
    held = [LOCKS.get(each.has, each.has) for each in workers.busy]
    if len(set(held)) < len(held):
        return f"two workers have keys with one lock: {held}"
    namespaces = [each.has[0] for each in workers.busy]
    if any(namespaces.count(each) > SHARE_OF_NAMESPACE for each in namespaces):
        return f"one namespace has too many workers: {namespaces}"
    if len([each for each in workers.waiting if each.until < math.inf]) > 1:
        return "two workers wait for a moment"
    return workers.overlooked()


@settings(max_examples=500, deadline=None)
@given(st.integers(1, 4), st.lists(st.integers(0, 10**4), max_size=60))
def test_whatever_happens_in_whichever_order_no_key_waits_while_a_worker_that_may_take_it_does(count, choices):
    with stepped_workers(
        count,
        locks=lambda key: frozenset({key, LOCKS.get(key, key)}),
        share=lambda key: key[0],
        most_of_a_share=SHARE_OF_NAMESPACE,
        places=Places(fast=2, slow=1),
    ) as workers:
        for choice in choices:
            sorts = moves(workers)
            which, sort = divmod(choice, len(sorts))
            sorts[sort][which % len(sorts[sort])]()
            assert wrong(workers) is None
        for _ in range(len(KEYS) + 1):  # each is taken in the end
            workers.settle()
            assert wrong(workers) is None
            if not len(workers.queue):
                break
            rounds(workers, LONGEST_RETRY_SECONDS)
        assert len(workers.queue) == 0
