"""What the watches told of is found again, and what is older never replaces what is newer."""

from __future__ import annotations

import pytest

from herdkeeper.clients.object_cache import DELETED_IS_KNOWN_SECONDS, MOST_RECENT_CHARACTERS, RECENT_SECONDS, Difference, ObjectCache
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey

KEY = ObjectKey("ns", "one")


def pod(version: int, name: str = "one", namespace: str = "ns", **labels: str):
    metadata = {"name": name, "namespace": namespace, "resourceVersion": str(version), "labels": labels, "managedFields": ["much"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"version": version}}


def version(cache: ObjectCache) -> int | None:
    found = cache.get("Pod", KEY)
    return None if found is None else found["status"]["version"]


@pytest.mark.parametrize(("told", "known"), [((5, 7), 7), ((7, 5), 7), ((9, 10), 10)])
def test_the_newest_version_counts_whatever_the_order_of_the_news(told, known):
    cache = ObjectCache()
    assert [cache.put(pod(each)) for each in told] == [True, told[1] == known]
    assert version(cache) == known


def test_late_news_does_not_bring_a_deleted_object_back():
    cache = ObjectCache()
    cache.put(pod(5))
    cache.drop(pod(8))
    assert not cache.put(pod(7))
    assert version(cache) is None
    assert cache.put(pod(9)), "another object of this name"


def test_a_late_deletion_does_not_take_the_next_object_of_that_name():
    cache = ObjectCache()
    cache.put(pod(9))
    cache.drop(pod(8))
    assert version(cache) == 9


def test_deletions_are_not_remembered_for_ever():
    now = [0.0]
    cache = ObjectCache(lambda: now[0])
    cache.drop(pod(8))
    now[0] = DELETED_IS_KNOWN_SECONDS + 1
    cache.drop(pod(8, "another"))
    assert cache.put(pod(7))


def test_what_a_reader_changes_nobody_else_reads():
    cache = ObjectCache()
    cache.put(pod(5))
    found = cache.get("Pod", KEY)
    assert found is not None
    found["status"]["version"] = 6
    assert version(cache) == 5
    assert "managedFields" not in found["metadata"]


def test_objects_are_selected_by_namespace_and_labels():
    cache = ObjectCache()
    owner = {names.OWNER_KIND_LABEL: "HerdDBCluster", names.OWNER_NAME_LABEL: "db"}
    cache.put(pod(1, "a", **owner))
    cache.put(pod(2, "b", **{**owner, names.OWNER_KIND_LABEL: "Tablespace"}))
    cache.put(pod(3, "c", "elsewhere", **owner))

    def selected(namespace, labels):
        return [found["metadata"]["name"] for found in cache.select("Pod", namespace, labels)]

    assert selected("ns", owner) == ["a"]
    assert selected("ns", {names.OWNER_NAME_LABEL: "db"}) == ["a", "b"]
    assert selected("ns", {}) == ["a", "b"]
    assert selected(None, {names.OWNER_KIND_LABEL: "HerdDBCluster"}) == ["c", "a"]
    cache.put(pod(4, "a"))
    assert selected("ns", owner) == [], "it has lost its labels"


def test_a_list_tells_what_is_behind_and_what_is_gone():
    cache = ObjectCache()
    cache.put(pod(5, "same"))
    cache.put(pod(5, "older"))
    cache.put(pod(6, "gone"))
    cache.put(pod(30, "made-behind-the-list"))
    cache.drop(pod(27, "deleted-meanwhile"))
    listed = {ObjectKey("ns", name): at for name, at in {"same": 5, "older": 9, "missing": 4, "deleted-meanwhile": 6}.items()}
    found = cache.compare("Pod", (), listed, 20)
    assert found == Difference((ObjectKey("ns", "older"), ObjectKey("ns", "missing")), (ObjectKey("ns", "gone"),))
    assert not cache.compare("Pod", ("elsewhere",), {}, 20), "only what was listed is compared"


def test_a_list_tells_what_it_has_in_an_older_version_than_was_known_when_it_was_made():
    """No list of one history has that."""
    cache = ObjectCache()
    cache.put(pod(9, "restored"))
    cache.drop(pod(9, "deleted-and-restored"))
    cache.put(pod(30, "changed-behind-the-list"))
    listed = {ObjectKey("ns", name): 4 for name in ("restored", "deleted-and-restored", "changed-behind-the-list")}
    assert cache.compare("Pod", (), listed, 20).older == (ObjectKey("ns", "restored"), ObjectKey("ns", "deleted-and-restored"))


def test_nothing_is_complete_before_it_is_said():
    cache = ObjectCache()
    assert not cache.is_complete("Pod")
    cache.set_complete("Pod", True)
    assert cache.is_complete("Pod")
    cache.set_complete("Pod", False)
    assert not cache.is_complete("Pod")


def reads_again(cache: ObjectCache, name: str, text: str = "") -> bool:
    read: list[str] = []

    def secret() -> dict[str, str]:
        read.append(name)
        return {"data": text}

    cache.recent("Secret", ObjectKey("demo", name), secret)
    return bool(read)


def test_of_secrets_that_are_named_one_after_the_other_no_more_is_kept_than_fits():
    clock = [0.0]
    cache = ObjectCache(lambda: clock[0])
    half = "x" * (MOST_RECENT_CHARACTERS // 2 - 100)
    assert [reads_again(cache, name, half) for name in ("a", "b", "a", "b")] == [True, True, False, False]
    assert reads_again(cache, "c", half)
    assert [reads_again(cache, name, half) for name in ("b", "c")] == [False, False], "the newest two"
    assert reads_again(cache, "a", half), "the eldest made room"
    clock[0] = RECENT_SECONDS
    assert reads_again(cache, "d")
    assert len(cache._recent) == 1, "what is too old to be reused is not kept"
