"""`kubectl herdkeeper switchover`: what it asks for, what it refuses, and what it waits for."""

from __future__ import annotations

import pytest
from played_cluster import PlayedCluster, called, condition, stack

from herdkeeper.plugin.command import FINE, WRONG, BadInputError

ASKED = "herdkeeper.io/switchover"
ANSWERED = "herdkeeper.io/switchover-answer"


def answering(cluster: PlayedCluster, answer: str, leader: str | None = None):
    """The operator, while the command waits: it answers, and the next time the leader serves."""

    def pause(_: float) -> None:
        tablespace = next(item for item in cluster.documents if item["kind"] == "Tablespace")
        annotations = tablespace["metadata"].setdefault("annotations", {})
        if ASKED in annotations:
            del annotations[ASKED]
            annotations[ANSWERED] = answer
        elif leader is not None:
            tablespace["status"]["leader"] = leader

    return pause


def test_it_annotates_the_tablespace_and_is_done() -> None:
    cluster = PlayedCluster(stack())
    answer, _ = called(cluster, "switchover", "flights", "db-herddb-1")
    assert cluster.writes == [
        ("patch", "Tablespace", "flights", {"metadata": {"annotations": {ASKED: "db-herddb-1", ANSWERED: None}}}, False)
    ]
    assert answer.text == "Tablespace/flights: a switchover to db-herddb-1 was requested"
    assert answer.exit_code == FINE


def test_a_dry_run_changes_nothing_and_waits_for_nothing() -> None:
    cluster = PlayedCluster(stack())
    answer, _ = called(cluster, "switchover", "flights", "db-herddb-1", "--wait", "--dry-run")
    assert [dry_run for *_, dry_run in cluster.writes] == [True]
    assert "nothing changed" in answer.text


def test_with_wait_it_ends_once_the_node_leads_and_the_tablespace_is_ready() -> None:
    cluster = PlayedCluster(stack())
    pause = answering(cluster, "done: led by db-herddb-1, since it was asked for", "db-herddb-1")
    answer, written = called(cluster, "switchover", "flights", "db-herddb-1", "--wait", pause=pause)
    assert answer.exit_code == FINE
    assert written == [
        "Tablespace/flights: a switchover to db-herddb-1 was requested",
        "Tablespace/flights: done: led by db-herddb-1, since it was asked for",
    ]
    assert answer.text == "Tablespace/flights: db-herddb-1 leads, and the Tablespace is Ready"


def test_a_refusal_is_told_with_exit_code_1() -> None:
    cluster = PlayedCluster(stack())
    answer, _ = called(cluster, "switchover", "flights", "db-herddb-1", "--wait", pause=answering(cluster, "refused: it lags behind"))
    assert answer.exit_code == WRONG
    assert "refused: it lags behind" in answer.text


def test_an_operator_that_does_not_answer_is_not_waited_for_for_ever() -> None:
    answer, _ = called(PlayedCluster(stack()), "switchover", "flights", "db-herddb-1", "--wait", "--timeout", "3")
    assert answer.exit_code == WRONG
    assert "within 3 s" in answer.text


def test_a_node_that_leads_already_is_not_asked() -> None:
    cluster = PlayedCluster(stack())
    answer, _ = called(cluster, "switchover", "flights", "db-herddb-0")
    assert cluster.writes == []
    assert answer.exit_code == FINE


def test_of_a_leader_that_does_not_serve_it_is_not_said_that_all_is_done() -> None:
    cluster = PlayedCluster(stack())
    tablespace = next(item for item in cluster.documents if item["kind"] == "Tablespace")
    tablespace["status"]["conditions"] = [condition("Ready", "False", "NoLeader", "db-herddb-0 does not answer")]
    answer, _ = called(cluster, "switchover", "flights", "db-herddb-0")
    assert (cluster.writes, answer.exit_code, "the Tablespace is not Ready" in answer.text) == ([], WRONG, True)

    def pause(_: float) -> None:
        tablespace["status"]["conditions"] = [condition("Ready", "True", "Ready", "db-herddb-0 leads")]

    answer, _ = called(cluster, "switchover", "flights", "db-herddb-0", "--wait", pause=pause)
    assert (answer.exit_code, answer.text) == (FINE, "Tablespace/flights: db-herddb-0 leads, and the Tablespace is Ready")


def test_the_answer_to_an_earlier_request_is_not_taken_for_that_to_one_which_somebody_removed() -> None:
    cluster = PlayedCluster(stack())
    tablespace = next(item for item in cluster.documents if item["kind"] == "Tablespace")
    tablespace["metadata"]["annotations"] = {ANSWERED: "done: led by db-herddb-1"}

    def pause(_: float) -> None:
        tablespace["metadata"]["annotations"].pop(ASKED, None)

    answer, _ = called(cluster, "switchover", "flights", "db-herddb-1", "--wait", pause=pause)
    assert (answer.exit_code, "removed before it was answered" in answer.text) == (WRONG, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("flightz", "db-herddb-1"), "TABLESPACE flightz: no Tablespace of that name exists in the namespace demo; there is flights"),
        (
            ("flights", "db-herddb-7"),
            "NODE db-herddb-7: it has no replica of the Tablespace flights; replicas are on db-herddb-0, db-herddb-1",
        ),
        (("flights", "db-herddb-1", "--wait", "--timeout", "soon"), "--timeout soon: give whole seconds, 1 or more"),
    ],
)
def test_bad_input_is_named_with_its_value_and_what_there_is(words: tuple[str, ...], message: str) -> None:
    cluster = PlayedCluster(stack())
    with pytest.raises(BadInputError) as refused:
        called(cluster, "switchover", *words)
    assert str(refused.value) == message
    assert cluster.writes == []
