"""A resource whose policy became Delete in the moment of its deletion takes its data along all the same."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from situations import objects, quickstart

from herdkeeper.bookkeeper.state.bookies import MetadataAbsent, MetadataStore
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.clients.deleted_resources import DeletedResources
from herdkeeper.clients.object_cache import ObjectCache
from herdkeeper.engine.execute import Clients
from herdkeeper.engine.key import Key
from herdkeeper.engine.kinds import steps_by_kind
from herdkeeper.engine.queue import KeyQueue
from herdkeeper.engine.reconcile import reconcile
from herdkeeper.process.references import References
from herdkeeper.process.watched_kinds import WATCHED_KINDS
from herdkeeper.process.watches import WatchEvents
from herdkeeper.settings import Settings
from herdkeeper.shared import names
from herdkeeper.shared.dependents import NO_DEPENDENTS, Dependents


def document(kind: str, policy: str, *finalizers: str, **annotations: str):
    resource = quickstart(kind)
    metadata = {"name": "a", "namespace": "demo", "uid": "its-uid", "finalizers": list(finalizers), "annotations": annotations}
    metadata["resourceVersion"] = "1"
    spec = {**resource.spec.model_dump(mode="json", by_alias=True, exclude_none=True), "deletionPolicy": policy}
    return {"apiVersion": "herdkeeper.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def tell(event: str, document: dict, deleted: DeletedResources, queue: KeyQueue) -> None:
    kind = next(each for each in WATCHED_KINDS if each.kind == document["kind"])
    WatchEvents(queue, ObjectCache(), SimpleNamespace(), References(), deleted).event(kind, {"type": event, "object": document})


@pytest.mark.parametrize("kind", ["ZooKeeperCluster", "BookKeeperCluster", "HerdDBCluster", "Tablespace"])
@pytest.mark.parametrize(
    ("situation", "event", "policy", "marks", "remembered"),
    [
        ("it is gone before its finalizer was there", "DELETED", "Delete", {}, True),
        ("it has changed", "MODIFIED", "Delete", {}, False),
        ("its data stays", "DELETED", "Retain", {}, False),
        ("it was left alone", "DELETED", "Delete", {names.PAUSED_ANNOTATION: "true"}, False),
    ],
)
def test_the_last_word_of_a_resource_is_remembered(kind, situation, event, policy, marks, remembered):
    deleted, queue = DeletedResources(), KeyQueue()
    tell(event, document(kind, policy, **marks), deleted, queue)
    key = Key(kind, "demo", "a")
    assert (deleted.get(key) is not None) is remembered, situation
    assert key in queue


def test_what_its_finalizer_held_has_been_deleted_already():
    deleted = DeletedResources()
    tell("DELETED", document("ZooKeeperCluster", "Delete", names.FINALIZER), deleted, KeyQueue())
    assert deleted.get(Key("ZooKeeperCluster", "demo", "a")) is None


def test_how_long_it_has_been_gone_is_known_and_it_is_forgotten_when_all_is_done():
    clock = [100.0]
    deleted = DeletedResources(lambda: clock[0])
    deleted.add("a", {"kind": "x"})
    clock[0] += 30
    found = deleted.get("a")
    assert found is not None
    assert (found.document, found.seconds) == ({"kind": "x"}, 30.0)
    deleted.forget("a", found)
    deleted.forget("a", found)
    assert deleted.get("a") is None


def test_its_data_stays_while_a_living_resource_uses_it():
    deleted, key = DeletedResources(), Key("BookKeeperCluster", "demo", "a")
    deleted.add(key, document("BookKeeperCluster", "Delete"))
    found = []
    reader = SimpleNamespace(deleted=deleted, kubernetes=SimpleNamespace(resource=lambda *_: None))
    writer = SimpleNamespace(event=lambda *told: found.append(told))
    clients = Clients(writer, reader, None, lambda: True, None)
    seen = BookieFleet(quickstart("BookKeeperCluster"), objects(), MetadataStore("zk-0:2181", serving=True), MetadataAbsent(), ())
    steps = steps_by_kind(Settings.from_environment({}))["BookKeeperCluster"]
    for users, left in ((Dependents(not_deleted=("HerdDBCluster db",)), True), (NO_DEPENDENTS, False)):
        reconcile(key, replace(steps, observe=lambda *_, users=users: replace(seen, dependents=users)), clients)
        assert (deleted.get(key) is not None) is left
        assert bool(found) is not left


def test_what_is_deleted_while_it_is_being_read_is_remembered_so_that_its_data_goes():
    """The read found it, and only then came the word of its deletion."""
    deleted, key, last = DeletedResources(), Key("ZooKeeperCluster", "demo", "a"), document("ZooKeeperCluster", "Delete")

    def read_late(*_):
        deleted.add(key, last)
        return quickstart("ZooKeeperCluster")

    steps = replace(steps_by_kind(Settings.from_environment({}))["ZooKeeperCluster"], observe=lambda *_: next(iter(())))
    reader = SimpleNamespace(deleted=deleted, kubernetes=SimpleNamespace(resource=read_late))
    with pytest.raises(StopIteration):  # nothing more of the reconcile counts
        reconcile(key, steps, Clients(None, reader, None, lambda: True, None))
    assert deleted.get(key) is not None


def test_one_that_was_made_anew_takes_the_name_over_and_only_the_earlier_one_is_forgotten():
    deleted, key = DeletedResources(), Key("ZooKeeperCluster", "demo", "a")
    earlier, later = document("ZooKeeperCluster", "Delete"), document("ZooKeeperCluster", "Delete")
    deleted.add(key, earlier)
    known = deleted.get(key)
    assert known is not None
    deleted.add(key, later)
    deleted.forget(key, known)
    found = deleted.get(key)
    assert found is not None
    assert found.document is later
    deleted.forget(key, found)
    assert deleted.get(key) is None
