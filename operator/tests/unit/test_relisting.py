"""What no event told of is found all the same, and what is known is left to its own time."""

from __future__ import annotations

from kubernetes.client import ApiException

from herdkeeper.handlers.queue import KeyQueue
from herdkeeper.handlers.relisting import Relisting
from herdkeeper.reconcile import Key
from herdkeeper.settings import Settings


class Listed:
    """Lists the keys that it was given; of the kinds in `silent` no list comes."""

    def __init__(self, *keys: Key, silent: tuple[str, ...] = ()) -> None:
        self.keys, self.silent = keys, silent
        self.asked: set[str | None] = set()

    def documents(self, kind, namespace):
        self.asked.add(namespace)
        if kind.KIND in self.silent:
            raise ApiException(status=503, reason="silence")
        found = (key for key in self.keys if key.kind == kind.KIND and namespace in (None, key.namespace))
        return tuple({"metadata": {"namespace": key.namespace, "name": key.name}} for key in found)


KNOWN, MISSED, ELSEWHERE = Key("ZooKeeperCluster", "a", "known"), Key("Tablespace", "a", "missed"), Key("Tablespace", "b", "elsewhere")


def relisted(listed: Listed, **settings) -> dict[Key, float]:
    """When each key is due after one round, at second 0; the known one was due at 60."""
    queue: KeyQueue[Key] = KeyQueue(now=lambda: 0.0)
    queue.add(KNOWN, 60)
    Relisting(Settings(**settings), listed, queue).once()
    return dict(queue._due)


def test_a_resource_that_no_event_told_of_is_queued_and_a_known_one_keeps_its_time():
    due = relisted(Listed(KNOWN, MISSED))
    assert due[KNOWN] == 60
    assert due[MISSED] < 1


def test_a_kind_that_can_t_be_listed_does_not_keep_the_others_from_it():
    assert MISSED in relisted(Listed(KNOWN, MISSED, silent=("ZooKeeperCluster", "Checkpoint")))


def test_only_the_watched_namespaces_are_listed():
    listed = Listed(MISSED, ELSEWHERE)
    assert set(relisted(listed, watch_namespaces=("b",))) == {KNOWN, ELSEWHERE}
    assert listed.asked == {"b"}
    assert set(relisted(Listed(MISSED, ELSEWHERE))) == {KNOWN, MISSED, ELSEWHERE}
