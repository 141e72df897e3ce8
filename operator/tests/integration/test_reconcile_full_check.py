"""HerdDB's full check on request, on the real API server, with nodes that are played."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes.dynamic import DynamicClient
from sql_database import NODES, TABLESPACE, named, record_path, serving_database
from stage import Stage, nothing_written

from herdkeeper.reconcile import Outcome

ASKED = {"herdkeeper.io/full-check": "now"}
ANSWER = "herdkeeper.io/full-check-answer"
STARTED = 1_795_312_800_000


@pytest.fixture
def stage(dynamic: DynamicClient, namespace: str) -> Stage:
    made = serving_database(dynamic, namespace)
    made.settle(TABLESPACE, "flights")
    assert made.condition(TABLESPACE, "flights") == ("True", "Ready")
    return made


def ask(stage: Stage) -> None:
    stage.patch(TABLESPACE, "flights", {"metadata": {"annotations": ASKED}})


def annotations(stage: Stage) -> dict[str, str]:
    return dict(stage.found(TABLESPACE, "flights")["metadata"].get("annotations") or {})


def checked(stage: Stage) -> dict[str, Any]:
    return dict(stage.found(TABLESPACE, "flights")["status"]["fullCheck"])


def orders(stage: Stage) -> list[str]:
    """Who was told to check."""
    return [url.removeprefix("http://").partition(".")[0] for url in stage.nodes.orders if url.endswith("/tablespaces/flights/check")]


def leader_checks(stage: Stage, *, ended: bool) -> None:
    """The leader tells of its check, as images/herddb does."""
    check = {
        "startedAtMillis": STARTED,
        "endedAtMillis": STARTED + 1500 if ended else None,
        "after": {"ledgerId": 7, "entryId": 9},
        "until": {"ledgerId": 7, "entryId": 11} if ended else None,
        "tables": {"airports": 900, "flights": 500} if ended else {"airports": 900},
        "notChecked": {},
        "writesStoppedMillis": 1450,
        "error": None,
    }
    stage.nodes.herddb_tells(named(stage), 0, fullCheck=check)


def follower_finds(stage: Stage, *, flights: bool) -> None:
    """The follower has come to the check in its log."""
    verdicts = {
        "airports": {"pass": True, "digest": "1", "atMillis": STARTED, "position": {"ledgerId": 7, "entryId": 10}},
        "flights": {"pass": flights, "digest": "2", "atMillis": STARTED, "position": {"ledgerId": 7, "entryId": 11}},
    }
    stage.nodes.herddb_tells(named(stage), 1, checks=verdicts, applied={"ledgerId": 7, "entryId": 11})


def test_it_is_begun_once_answered_and_its_stall_and_verdicts_are_shown(stage: Stage) -> None:
    ask(stage)
    stage.reconcile(TABLESPACE, "flights")
    assert orders(stage) == [NODES[0]]
    assert set(annotations(stage)) & set(ASKED) == set()
    assert annotations(stage)[ANSWER] == f"done: {NODES[0]} checks all tables; status.fullCheck tells what it finds"
    leader_checks(stage, ended=False)
    assert stage.reconcile(TABLESPACE, "flights").look_again_seconds == 2.0
    assert "completedAt" not in checked(stage)
    assert checked(stage)["lastRequest"] == annotations(stage)[ANSWER]

    leader_checks(stage, ended=True)
    follower_finds(stage, flights=True)
    stage.settle(TABLESPACE, "flights")
    assert checked(stage)["completedAt"] == "2026-11-22T02:00:01.500Z"
    assert checked(stage)["writesStoppedSeconds"] == 1.45
    assert [table["name"] for table in checked(stage)["tables"]] == ["airports", "flights"]
    assert checked(stage)["replicas"] == [{"node": NODES[1], "verdict": "Passed"}]
    assert orders(stage) == [NODES[0]]
    with nothing_written(stage):
        stage.reconcile(TABLESPACE, "flights")
    assert {"FullCheckStarted", "FullCheckAnswered"} <= {event["reason"] for event in stage.events("flights")}


def test_a_replica_that_failed_is_told_once_and_stays_where_it_is(stage: Stage) -> None:
    before = stage.ensemble.read(record_path(stage))
    ask(stage)
    stage.reconcile(TABLESPACE, "flights")
    leader_checks(stage, ended=True)
    follower_finds(stage, flights=False)
    stage.settle(TABLESPACE, "flights")
    assert checked(stage)["replicas"] == [{"node": NODES[1], "verdict": "Failed", "differentTables": ["flights"]}]
    assert "verify: Follower" in checked(stage)["note"]
    (told,) = [event for event in stage.events("flights") if event["type"] == "Warning"]
    assert told["reason"] == "FullCheckFailed"
    assert told["message"].startswith(f"{NODES[1]} failed HerdDB's full check of 2026-11-22T02:00:00.000Z in flights")
    assert stage.ensemble.read(record_path(stage)) == before
    assert [url for url in stage.nodes.orders if "/set-aside" in url] == []

    for number in range(2):  # both processes were started anew, and know nothing of it
        stage.nodes.herddb_tells(named(stage), number, checks={}, fullCheck=None)
    with nothing_written(stage):
        stage.reconcile(TABLESPACE, "flights")
    assert checked(stage)["replicas"] == [{"node": NODES[1], "verdict": "Failed", "differentTables": ["flights"]}]


def test_a_follower_that_can_not_be_read_has_not_passed(stage: Stage) -> None:
    ask(stage)
    stage.reconcile(TABLESPACE, "flights")
    leader_checks(stage, ended=True)
    stage.nodes.herddb_is_gone(named(stage), 1)
    stage.settle(TABLESPACE, "flights")
    assert checked(stage)["replicas"] == [{"node": NODES[1], "verdict": "NotAnswered"}]


def test_it_is_refused_with_the_reason_and_nobody_is_ordered(stage: Stage) -> None:
    stage.nodes.herddb_is_gone(named(stage), 1)
    ask(stage)
    stage.reconcile(TABLESPACE, "flights")
    assert annotations(stage)[ANSWER].startswith(f"refused: {NODES[1]} can't be asked (")
    assert set(annotations(stage)) & set(ASKED) == set()
    stage.reconcile(TABLESPACE, "flights")
    assert checked(stage) == {"lastRequest": annotations(stage)[ANSWER]}
    assert orders(stage) == []


def test_an_order_that_the_leader_refuses_is_tried_again(stage: Stage) -> None:
    tokens = set(stage.nodes.tokens)
    stage.nodes.tokens.clear()
    ask(stage)
    assert stage.reconcile(TABLESPACE, "flights").outcome is Outcome.FAILED
    assert ANSWER not in annotations(stage)
    stage.nodes.tokens |= tokens
    stage.reconcile(TABLESPACE, "flights")
    assert orders(stage) == [NODES[0]]
    assert annotations(stage)[ANSWER].startswith("done: ")


def test_a_process_that_ended_between_the_order_and_the_answer_begins_no_second_check(stage: Stage) -> None:
    ask(stage)
    leader_checks(stage, ended=True)
    stage.reconcile(TABLESPACE, "flights")
    assert annotations(stage)[ANSWER] == f"done: {NODES[0]} checks all tables since 2026-11-22T02:00:00.000Z"
    assert orders(stage) == []
