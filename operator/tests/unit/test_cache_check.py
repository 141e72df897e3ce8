"""The cache is held against lists of the API server: what no watch told of is found, and looks rest on what is complete only."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from kubernetes.client import ApiException

from herdkeeper.clients.deleted_resources import DeletedResources
from herdkeeper.clients.object_cache import ObjectCache
from herdkeeper.engine.key import Key
from herdkeeper.engine.queue import KeyQueue
from herdkeeper.process import cache_check as module
from herdkeeper.process.cache_check import DEAD_AFTER_CHECKS, CacheCheck
from herdkeeper.process.references import References
from herdkeeper.process.watched_kinds import WATCHED_KINDS
from herdkeeper.process.watches import WatchEvents
from herdkeeper.settings import Settings
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey

SHARED, ELSEWHERE = ObjectKey("a", "zk-zookeeper"), ObjectKey("b", "zk-zookeeper")
OWNER = Key("ZooKeeperCluster", "a", "zk")


@pytest.fixture(autouse=True)
def no_patience(monkeypatch):
    monkeypatch.setattr(module, "LATE_SECONDS", 0.0)


def config_map(key: ObjectKey, version: int):
    labels = {names.OWNER_KIND_LABEL: "ZooKeeperCluster", names.OWNER_NAME_LABEL: "zk"}
    metadata = {"name": key.name, "namespace": key.namespace, "resourceVersion": str(version), "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


class Lists:
    """An API server with ConfigMaps, at version 50; of the kinds in `silent` no list comes."""

    def __init__(self, *found: dict, silent: tuple[str, ...] = ()) -> None:
        self.found = {ObjectKey(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in found}
        self.silent = silent
        self.asked: set[str | None] = set()
        self.version = 50

    def versions(self, api_version, kind, namespace, selector):
        self.asked.add(namespace)
        if kind in self.silent:
            raise ApiException(status=503, reason="silence")
        mine = {key: each for key, each in self.found.items() if kind == "ConfigMap" and namespace in (None, key.namespace)}
        return {key: int(each["metadata"]["resourceVersion"]) for key, each in mine.items()}, self.version

    def get(self, api_version, kind, key):
        return self.found.get(key)


class Checked:
    """A check of what the watches told of, and what came of it."""

    def __init__(self, lists: Lists, *told: dict, **settings) -> None:
        self.queue: KeyQueue[Key] = KeyQueue()
        self.cache = ObjectCache()
        for each in told:
            self.cache.put(each)
        event = WatchEvents(self.queue, self.cache, SimpleNamespace(), References(), DeletedResources()).event
        self.check = CacheCheck(Settings(**settings), lists, self.cache, event)
        self.complete = self.check.once()


def test_watches_that_catch_up_are_waited_for_however_long_it_takes(monkeypatch):
    told = [config_map(ObjectKey("a", f"zk-{number}"), 40) for number in range(10)]
    cache, clock = ObjectCache(), [0.0]
    monkeypatch.setattr(module, "LATE_SECONDS", 60.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    check = CacheCheck(Settings(), Lists(*told), cache, lambda kind, event: pytest.fail(f"it was told by the check: {event}"))

    def pass_time(_seconds: float) -> bool:
        clock[0] += 59.0
        cache.put(told.pop())
        return False

    monkeypatch.setattr(check, "_stop", SimpleNamespace(is_set=lambda: False, wait=pass_time))
    assert check.once()
    assert clock[0] > 9 * 59.0


def test_what_no_watch_told_of_is_kept_and_its_owner_looked_at():
    found = Checked(Lists(config_map(SHARED, 7)))
    assert found.cache.get("ConfigMap", SHARED) == config_map(SHARED, 7)
    assert OWNER in found.queue


def test_what_is_gone_without_a_word_is_dropped_and_its_owner_looked_at():
    found = Checked(Lists(), config_map(SHARED, 7))
    assert found.cache.get("ConfigMap", SHARED) is None
    assert OWNER in found.queue
    assert found.complete, "nothing is missing any more"


def test_what_was_made_anew_after_the_list_is_not_taken_for_gone(monkeypatch):
    """Its watch told of it while the check read what else no watch had told of."""
    missing, told = ObjectKey("a", "zk-missing"), []
    lists, cache = Lists(config_map(missing, 7)), ObjectCache()
    monkeypatch.setattr(lists, "get", lambda *_: cache.put(config_map(SHARED, 60)) and None)
    cache.put(config_map(SHARED, 6))
    check = CacheCheck(Settings(), lists, cache, lambda _, event: told.append(event["type"]))
    check.once()
    assert told == []
    assert cache.get("ConfigMap", SHARED) == config_map(SHARED, 60)


def test_an_error_that_nobody_expected_ends_no_check(monkeypatch):
    """Without its first check no worker begins, and the process would hold the Lease and do nothing."""
    lists, began = Lists(config_map(SHARED, 7)), threading.Event()
    monkeypatch.setattr(lists, "get", lambda *_: 1 // 0)
    check = CacheCheck(Settings(), lists, ObjectCache(), lambda *_: None)
    check.start(began.set)
    assert began.wait(120)
    check.stop()


def test_what_the_watches_told_of_costs_no_look():
    found = Checked(Lists(config_map(SHARED, 7)), config_map(SHARED, 7))
    assert len(found.queue) == 0
    assert found.complete


def test_looks_rest_on_a_kind_again_only_after_a_check_that_found_its_watch_in_time():
    lists = Lists(config_map(SHARED, 7))
    found = Checked(lists)
    assert not found.cache.is_complete("ConfigMap")
    assert found.cache.is_complete("Pod"), "another kind"
    assert found.check.once()
    assert found.cache.is_complete("ConfigMap")


def test_a_kind_that_can_t_be_listed_is_not_complete_and_keeps_no_other_one_from_it():
    found = Checked(Lists(config_map(SHARED, 7), silent=("Pod", "Secret")), config_map(SHARED, 7))
    assert {kind.kind for kind in WATCHED_KINDS if not found.cache.is_complete(kind.kind)} == {"Pod", "Secret"}
    assert not found.complete


def test_a_watch_that_is_behind_again_and_again_is_told_as_dead():
    lists = Lists(config_map(SHARED, 7))
    found = Checked(lists)
    for version in range(8, 8 + DEAD_AFTER_CHECKS - 1):
        assert found.check.trouble() is None
        lists.found[SHARED] = config_map(SHARED, version)
        found.check.once()
    assert found.check.trouble() == "no watch events for: configmaps"
    assert found.check.once()
    assert found.check.trouble() is None


def test_an_api_server_whose_data_was_restored_has_the_process_restarted_and_until_then_no_look_rests_on_the_cache():
    lists = Lists(config_map(SHARED, 40))
    found = Checked(lists, config_map(SHARED, 40))
    assert (found.complete, found.check.trouble()) == (True, None)
    lists.version, lists.found = 30, {SHARED: config_map(SHARED, 20)}
    assert not found.check.once()
    assert not found.cache.is_complete("ConfigMap")
    assert "configmaps" in str(found.check.trouble())


@pytest.mark.parametrize("deleted_since", [False, True])
def test_so_has_one_whose_lists_have_a_higher_version_and_an_object_a_lower_one(deleted_since):
    """`etcdutl snapshot restore --bump-revision` raises what lists say. Each object keeps the version that it had in the backup."""
    lists = Lists(config_map(SHARED, 40))
    found = Checked(lists, config_map(SHARED, 40))
    if deleted_since:
        found.cache.drop(config_map(SHARED, 45))
    lists.version, lists.found = 1_000_000, {SHARED: config_map(SHARED, 20)}
    assert not found.check.once()
    assert not found.cache.is_complete("ConfigMap")
    assert "configmaps" in str(found.check.trouble())


def test_what_a_watch_told_of_since_the_list_was_made_is_no_sign_of_that():
    lists = Lists(config_map(SHARED, 40))
    found = Checked(lists, config_map(SHARED, 51))
    assert (found.complete, found.check.trouble()) == (True, None)


def test_only_the_watched_namespaces_are_listed():
    lists = Lists(config_map(SHARED, 7), config_map(ELSEWHERE, 8))
    found = Checked(lists, config_map(SHARED, 7), watch_namespaces=("b",))
    assert lists.asked == {"b"}
    assert found.cache.get("ConfigMap", ELSEWHERE) is not None
    assert found.cache.get("ConfigMap", SHARED) is not None, "nothing is known of its namespace"
