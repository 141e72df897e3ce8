"""A namespace without the operator's rights, such as one that was made anew, takes the operator from no other one."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes.client import ApiException

from herdkeeper.process.watched_namespaces import CHANGED_AFTER_LOOKS, WatchedNamespaces


class Lists:
    """An API server that refuses lists of some namespaces; with a `failure` it answers none."""

    def __init__(self, *refused: str) -> None:
        self.refused = set(refused)
        self.failure: ApiException | None = None

    def versions(self, _version: str, _kind: str, namespace: str, _selector: str) -> Any:
        if self.failure is not None:
            raise self.failure
        if namespace in self.refused:
            raise ApiException(status=403)
        return {}, 50


def found(lists: Lists, *named: str) -> WatchedNamespaces:
    return WatchedNamespaces.found(lists, named)  # type: ignore[arg-type]


def test_a_namespace_that_refuses_is_left_out_of_the_watched_ones() -> None:
    assert found(Lists("b"), "a", "b", "c").watched == ("a", "c")


def test_where_all_refuse_none_is_left_out_since_no_name_means_all_namespaces() -> None:
    assert found(Lists("a", "b"), "a", "b").watched == ("a", "b")
    assert found(Lists()).watched == ()
    assert found(Lists("a"), "a", "a").watched == ("a",)


def test_an_api_server_that_does_not_answer_is_not_taken_for_one_that_refuses() -> None:
    lists = Lists()
    lists.failure = ApiException(status=503)
    with pytest.raises(ApiException):
        found(lists, "a", "b")


@pytest.mark.parametrize(("before", "after"), [((), ("b",)), (("b",), ())], ids=["lost", "got"])
def test_rights_that_come_or_go_for_good_have_the_process_begin_anew(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    lists = Lists(*before)
    namespaces = found(lists, "a", "b")
    namespaces.look()
    assert namespaces.trouble() is None
    for _ in range(CHANGED_AFTER_LOOKS - 1):
        lists.refused = set(after)
        namespaces.look()
    assert namespaces.trouble() is None, "it may be for a moment"
    lists.failure = ApiException(status=503)
    namespaces.look()
    assert namespaces.trouble() is None
    lists.failure = None
    namespaces.look()
    assert namespaces.trouble() == "the operator got, or lost, its rights in: b"


def test_a_namespace_that_refuses_for_a_moment_changes_nothing() -> None:
    lists = Lists()
    namespaces = found(lists, "a", "b")
    for _ in range(CHANGED_AFTER_LOOKS):
        lists.refused = {"b"}
        namespaces.look()
        lists.refused = set()
        namespaces.look()
    assert namespaces.trouble() is None


def test_where_all_begin_to_refuse_there_is_nothing_to_begin_anew_with() -> None:
    lists = Lists()
    namespaces = found(lists, "a", "b")
    lists.refused = {"a", "b"}
    for _ in range(CHANGED_AFTER_LOOKS):
        namespaces.look()
    assert namespaces.trouble() is None
