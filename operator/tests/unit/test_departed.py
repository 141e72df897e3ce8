"""A resource whose policy became Delete in the moment of its deletion takes its data along all the same."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from situations import objects, quickstart

from herdkeeper.bookkeeper.state.bookies import BookKeeperObserved, MetadataAbsent, MetadataStore
from herdkeeper.clients.departed import Departed
from herdkeeper.clients.object_cache import ObjectCache
from herdkeeper.engine.execute import Hands
from herdkeeper.engine.queue import KeyQueue
from herdkeeper.engine.reconcile import Key, reconcile, steps_by_kind
from herdkeeper.process.references import References
from herdkeeper.process.watched_kinds import WATCHED_KINDS
from herdkeeper.process.watches import Told
from herdkeeper.settings import Settings
from herdkeeper.shared import names
from herdkeeper.shared.dependents import NOBODY, Dependents


def document(kind: str, policy: str, *finalizers: str, **annotations: str):
    resource = quickstart(kind)
    metadata = {"name": "a", "namespace": "demo", "uid": "its-uid", "finalizers": list(finalizers), "annotations": annotations}
    metadata["resourceVersion"] = "1"
    spec = {**resource.spec.model_dump(mode="json", by_alias=True, exclude_none=True), "deletionPolicy": policy}
    return {"apiVersion": "herdkeeper.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def tell(event: str, document: dict, departed: Departed, queue: KeyQueue) -> None:
    kind = next(each for each in WATCHED_KINDS if each.kind == document["kind"])
    Told(queue, ObjectCache(), SimpleNamespace(), References(), departed).event(kind, {"type": event, "object": document})


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
    departed, queue = Departed(), KeyQueue()
    tell(event, document(kind, policy, **marks), departed, queue)
    key = Key(kind, "demo", "a")
    assert (departed.get(key) is not None) is remembered, situation
    assert key in queue


def test_what_its_finalizer_held_has_been_deleted_already():
    departed = Departed()
    tell("DELETED", document("ZooKeeperCluster", "Delete", names.FINALIZER), departed, KeyQueue())
    assert departed.get(Key("ZooKeeperCluster", "demo", "a")) is None


def test_how_long_it_has_been_gone_is_known_and_it_is_forgotten_when_all_is_done():
    clock = [100.0]
    departed = Departed(lambda: clock[0])
    departed.add("a", {"kind": "x"})
    clock[0] += 30
    found = departed.get("a")
    assert found is not None
    assert (found.document, found.seconds) == ({"kind": "x"}, 30.0)
    departed.forget("a")
    departed.forget("a")
    assert departed.get("a") is None


def test_its_data_stays_while_a_living_resource_uses_it():
    departed, key = Departed(), Key("BookKeeperCluster", "demo", "a")
    departed.add(key, document("BookKeeperCluster", "Delete"))
    found = []
    world = SimpleNamespace(departed=departed, kubernetes=SimpleNamespace(resource=lambda *_: None))
    writer = SimpleNamespace(event=lambda *told: found.append(told))
    hands = Hands(writer, world, None, lambda: True, None)
    seen = BookKeeperObserved(objects(), MetadataStore("zk-0:2181", serving=True), MetadataAbsent(), ())
    steps = steps_by_kind(Settings.from_environment({}))["BookKeeperCluster"]
    for users, left in ((Dependents(living=("HerdDBCluster db",)), True), (NOBODY, False)):
        reconcile(key, replace(steps, observe=lambda *_, users=users: replace(seen, dependents=users)), hands)
        assert (departed.get(key) is not None) is left
        assert bool(found) is not left
