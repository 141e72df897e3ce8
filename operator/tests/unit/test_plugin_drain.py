"""`kubectl herdkeeper drain` and `undrain`: which bookie is meant, what is asked for, and how far it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from played_cluster import PlayedCluster, called, resource

from herdkeeper.plugin.command import FINE, WRONG, BadInputError


def bookies(drain: tuple[int, ...] = (), **of_three: object) -> PlayedCluster:
    entries = [{"number": number, "bookieId": f"bk-bookie-{number}-k2j4h6", "state": "Writable"} for number in range(4)]
    entries[3] = {**entries[3], **of_three}
    item = resource("BookKeeperCluster", "bk", {"drain": list(drain)}, bookies=entries)
    item["metadata"]["resourceVersion"] = "77"
    return PlayedCluster([item])


def leaving() -> PlayedCluster:
    """The bookie leaves since there shall be fewer, and nobody named it."""
    cluster = bookies()
    cluster.documents[0]["status"]["bookies"][3]["drain"] = {"message": "MovingLedgers: they are copied"}
    return cluster


def numbers(cluster: PlayedCluster) -> list[int]:
    return cluster.documents[0]["spec"]["drain"]


@pytest.mark.parametrize("written", ["bk-bookie-3", "bk-bookie-3-0", "bk-bookie-3-k2j4h6"])
def test_a_bookie_is_written_as_its_name_its_pod_or_its_id(written: str) -> None:
    cluster = bookies(drain=(1,))
    answer, _ = called(cluster, "drain", written)
    assert numbers(cluster) == [1, 3]
    assert answer.text == "BookKeeperCluster/bk: bookie 3 will be drained"


def test_a_change_by_somebody_else_meanwhile_is_not_undone() -> None:
    """The list is replaced as a whole: the API server has to refuse it for another version."""
    cluster = bookies()
    called(cluster, "drain", "bk-bookie-3")
    ((_, _, _, body, _),) = cluster.writes
    assert body["metadata"]["resourceVersion"] == "77"


def test_a_drain_that_is_asked_for_already_changes_nothing() -> None:
    cluster = bookies(drain=(3,))
    answer, _ = called(cluster, "drain", "bk-bookie-3")
    assert (cluster.writes, answer.exit_code) == ([], FINE)


def test_with_wait_it_tells_how_far_the_drain_is_and_ends_when_the_bookie_has_left() -> None:
    cluster = bookies()
    told = iter(
        [
            {"drain": {"ledgers": 12, "message": "MovingLedgers: 12 ledgers are left on bk-bookie-3"}},
            {"drain": {"ledgers": 12, "message": "MovingLedgers: 12 ledgers are left on bk-bookie-3"}},
            {"drain": {"ledgers": 1, "message": "it is becoming read-only, and few ledgers are left"}},
            {"drain": {"ledgers": 0, "message": "Retiring: its identity is removed"}, "state": "ReadOnly"},
            {"drain": None, "state": "Stopped"},
        ]
    )

    def pause(_: float) -> None:
        cluster.documents[0]["status"]["bookies"][3].update(next(told))

    answer, written = called(cluster, "drain", "bk-bookie-3", "--wait", pause=pause)
    assert written == [
        "BookKeeperCluster/bk: bookie 3 will be drained",
        "bk-bookie-3: MovingLedgers: 12 ledgers are left on bk-bookie-3",
        "bk-bookie-3: 1 ledger is left; it is becoming read-only, and few ledgers are left",
        "bk-bookie-3: 0 ledgers are left; Retiring: its identity is removed",
    ]
    assert answer.exit_code == FINE
    assert "it is drained" in answer.text


def test_a_bookie_that_loses_a_disk_meanwhile_is_not_drained() -> None:
    cluster = bookies()

    def pause(_: float) -> None:
        cluster.documents[0]["status"]["bookies"][3]["state"] = "Lost"

    assert called(cluster, "drain", "bk-bookie-3", "--wait", pause=pause)[0].exit_code == WRONG


def test_a_drain_that_somebody_cancels_is_not_waited_for() -> None:
    cluster = bookies()

    def pause(_: float) -> None:
        cluster.documents[0]["spec"]["drain"] = []

    answer, _ = called(cluster, "drain", "bk-bookie-3", "--wait", pause=pause)
    assert (answer.exit_code, answer.text) == (WRONG, "bk-bookie-3: its drain was cancelled meanwhile")


def is_made_anew(cluster: PlayedCluster) -> None:
    cluster.documents[0] = resource("BookKeeperCluster", "bk")
    cluster.documents[0]["metadata"]["uid"] = "another"


def is_being_deleted(cluster: PlayedCluster) -> None:
    cluster.documents[0]["metadata"]["deletionTimestamp"] = "2026-11-21T14:30:00Z"
    del cluster.documents[0]["status"]["bookies"][3]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (is_made_anew, "the BookKeeperCluster was deleted, and another one of its name was made"),
        (is_being_deleted, "the BookKeeperCluster is being deleted"),
        (lambda cluster: cluster.documents.clear(), "the BookKeeperCluster was deleted"),
    ],
    ids=["made anew", "being deleted", "deleted"],
)
def test_a_bookie_that_goes_with_its_cluster_is_not_called_drained(change: Callable[[PlayedCluster], None], said: str) -> None:
    cluster = bookies()
    answer, _ = called(cluster, "drain", "bk-bookie-3", "--wait", pause=lambda _: change(cluster))
    assert (answer.exit_code, answer.text) == (WRONG, f"bk-bookie-3: {said}")


def test_a_bookie_of_a_cluster_whose_status_was_lost_is_not_called_drained() -> None:
    cluster = bookies()
    answer, _ = called(cluster, "drain", "bk-bookie-3", "--wait", "--timeout", "3", pause=lambda _: cluster.documents[0]["status"].clear())
    assert (answer.exit_code, "it is drained" in answer.text) == (WRONG, False)


def test_a_drain_is_taken_back() -> None:
    cluster = bookies(drain=(1, 3))
    called(cluster, "undrain", "bk-bookie-3")
    assert numbers(cluster) == [1]


def test_of_a_bookie_that_is_stopped_it_is_not_promised_that_it_stays() -> None:
    answer, _ = called(bookies(drain=(3,), state="Stopped"), "undrain", "bk-bookie-3")
    assert "it stays unless its identity is being removed already" in answer.text


@pytest.mark.parametrize(
    ("cluster", "words", "message"),
    [
        (
            bookies(),
            ("drain", "bk-bookie-9"),
            "BOOKIE bk-bookie-9: there is no such bookie in the namespace; there are bk-bookie-0, bk-bookie-1,",
        ),
        (PlayedCluster(), ("drain", "bk-bookie-9"), "no BookKeeperCluster has reported any yet"),
        (bookies(state="Lost"), ("drain", "bk-bookie-3"), "BOOKIE bk-bookie-3: it is Lost, and is removed automatically"),
        (bookies(), ("undrain", "bk-bookie-3"), "BOOKIE bk-bookie-3: it is not in spec.drain; no drain was requested"),
        (leaving(), ("undrain", "bk-bookie-3"), "raise spec.bookies of the BookKeeperCluster bk"),
    ],
)
def test_bad_input_is_named_with_its_value_and_what_there_is(cluster: PlayedCluster, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(BadInputError) as refused:
        called(cluster, *words)
    assert message in str(refused.value)
    assert cluster.writes == []
