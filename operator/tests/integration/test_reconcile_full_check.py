"""The full check on request and by schedule, on the real API server, with nodes that are played."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from kubernetes.dynamic.exceptions import DynamicApiError
from sql_database import NODES, TABLESPACE, named, record_path, serving_database
from stage import Stage, nothing_written

from herdkeeper.engine.result import Outcome

ASKED = {"herdkeeper.io/full-check": "now"}
ANSWER = "herdkeeper.io/full-check-answer"
STARTED = 1_795_312_800_000
TWO = datetime.datetime(2026, 11, 22, 2, tzinfo=datetime.UTC)
"""When the played check begins: a time of NIGHTLY."""
DAY, SECOND = datetime.timedelta(days=1), datetime.timedelta(seconds=1)
NIGHTLY = {"schedule": "0 3 * * *", "timeZone": "Europe/Vienna", "startingDeadlineSeconds": 3600}


@pytest.fixture
def stage(stage: Stage) -> Stage:
    """Its fullCheck is what each test declares, and off before."""
    made = serving_database(stage)
    made.patch(TABLESPACE, "flights", {"spec": {"fullCheck": {"suspend": True}}})
    made.settle(TABLESPACE, "flights")
    assert made.condition(TABLESPACE, "flights") == ("True", "Ready")
    return made


def ask(stage: Stage) -> None:
    stage.patch(TABLESPACE, "flights", {"metadata": {"annotations": ASKED}})


def annotated(stage: Stage) -> dict[str, str]:
    return dict(stage.found(TABLESPACE, "flights")["metadata"].get("annotations") or {})


def checked(stage: Stage) -> dict[str, Any]:
    return dict(stage.found(TABLESPACE, "flights")["status"]["fullCheck"])


def orders(stage: Stage) -> list[str]:
    """Who was told to check."""
    return [
        url.removeprefix("http://").partition(".")[0]
        for url in stage.nodes.orders
        if url.endswith("/tablespaces/flights/check?maxStopMillis=200")
    ]


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
        "longestStopMillis": 180,
        "error": None,
    }
    stage.nodes.herddb_tells(named(stage), 0, fullCheck=check)


def follower_finds(stage: Stage, *, flights: bool) -> None:
    """The follower has come to the check in its log."""
    verdicts = {
        "airports": {"pass": True, "leader": NODES[0], "atMillis": STARTED, "position": {"ledgerId": 7, "entryId": 10}},
        "flights": {"pass": flights, "leader": NODES[0], "atMillis": STARTED, "position": {"ledgerId": 7, "entryId": 11}},
    }
    stage.nodes.herddb_tells(named(stage), 1, checks=verdicts, applied={"ledgerId": 7, "entryId": 11})


def test_it_is_begun_once_answered_and_its_stall_and_verdicts_are_shown(stage: Stage) -> None:
    ask(stage)
    stage.reconcile(TABLESPACE, "flights")
    assert orders(stage) == [NODES[0]]
    assert set(annotated(stage)) & set(ASKED) == set()
    assert annotated(stage)[ANSWER] == f"done: {NODES[0]} checks all tables; see status.fullCheck for the result"
    leader_checks(stage, ended=False)
    assert stage.reconcile(TABLESPACE, "flights").requeue_after_seconds == 2.0
    assert "completedAt" not in checked(stage)
    assert checked(stage)["lastRequest"] == annotated(stage)[ANSWER]

    leader_checks(stage, ended=True)
    follower_finds(stage, flights=True)
    stage.settle(TABLESPACE, "flights")
    assert checked(stage)["completedAt"] == "2026-11-22T02:00:01.500Z"
    assert (checked(stage)["writesStoppedSeconds"], checked(stage)["longestWritesStoppedSeconds"]) == (1.45, 0.18)
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
    (told,) = [event for event in stage.events("flights") if event["reason"] == "FullCheckFailed"]
    assert told["type"] == "Warning"
    where = "in flights at the full check of 2026-11-22T02:00:00.000Z"
    assert told["message"].startswith(f"{NODES[1]} had other rows than the leader {NODES[0]} {where}")
    assert stage.condition(TABLESPACE, "flights", "ReplicasVerified") == ("False", "DiffersFromLeader")
    assert stage.ensemble.read(record_path(stage)) == before
    assert [url for url in stage.nodes.orders if "/set-aside" in url] == []

    for number in range(2):  # both processes were started anew, and know nothing of it
        stage.nodes.herddb_tells(named(stage), number, checks={}, fullCheck=None)
    with nothing_written(stage):
        stage.reconcile(TABLESPACE, "flights")
    assert checked(stage)["replicas"] == [{"node": NODES[1], "verdict": "Failed", "differentTables": ["flights"]}]
    assert stage.condition(TABLESPACE, "flights", "ReplicasVerified") == ("False", "DiffersFromLeader")


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
    assert annotated(stage)[ANSWER].startswith(f"refused: {NODES[1]} can't be reached (")
    assert set(annotated(stage)) & set(ASKED) == set()
    stage.reconcile(TABLESPACE, "flights")
    assert {name for name, value in checked(stage).items() if value} == {"lastRequest", "schedule"}
    assert checked(stage)["lastRequest"] == annotated(stage)[ANSWER]
    assert orders(stage) == []


def test_an_order_that_the_leader_refuses_is_tried_again(stage: Stage) -> None:
    tokens = set(stage.nodes.tokens)
    stage.nodes.tokens.clear()
    ask(stage)
    assert stage.reconcile(TABLESPACE, "flights").outcome is Outcome.FAILED
    assert ANSWER not in annotated(stage)
    stage.nodes.tokens |= tokens
    stage.reconcile(TABLESPACE, "flights")
    assert orders(stage) == [NODES[0]]
    assert annotated(stage)[ANSWER].startswith("done: ")


def test_a_process_that_ended_between_the_order_and_the_answer_begins_no_second_check(stage: Stage) -> None:
    ask(stage)
    leader_checks(stage, ended=True)
    stage.reconcile(TABLESPACE, "flights")
    assert annotated(stage)[ANSWER] == f"done: {NODES[0]} checks all tables since 2026-11-22T02:00:00.000Z"
    assert orders(stage) == []


def at(stage: Stage, now: datetime.datetime) -> None:
    assert stage.reconcile_at(now, TABLESPACE, "flights").outcome is Outcome.OK


def schedule(stage: Stage, **fields: Any) -> None:
    """A nightly check is declared, and seen half a day before the one that the leader plays."""
    stage.patch(TABLESPACE, "flights", {"spec": {"fullCheck": {**NIGHTLY, "suspend": False, **fields}}})
    at(stage, TWO - DAY / 2)


def times(stage: Stage) -> dict[str, Any]:
    return dict(checked(stage)["schedule"])


def test_by_schedule_it_is_begun_in_time_once_and_the_time_is_remembered(stage: Stage) -> None:
    schedule(stage)
    assert stage.reconcile_at(TWO - 90 * SECOND, TABLESPACE, "flights").requeue_after_seconds == 90
    assert orders(stage) == [], "no time of the past is made up for"
    assert times(stage) == {
        "declared": "0 3 * * * (Europe/Vienna)",
        "since": "2026-11-21T14:00:00Z",
        "nextScheduleTime": "2026-11-22T02:00:00Z",
    }

    at(stage, TWO)
    assert orders(stage) == [NODES[0]]
    leader_checks(stage, ended=False)
    at(stage, TWO + SECOND)  # also of an operator that was started anew: it knows what the cluster tells
    assert orders(stage) == [NODES[0]]
    assert (times(stage)["lastScheduleTime"], times(stage)["nextScheduleTime"]) == ("2026-11-22T02:00:00Z", "2026-11-23T02:00:00Z")
    leader_checks(stage, ended=True)
    follower_finds(stage, flights=True)
    at(stage, TWO + 5 * SECOND)
    assert checked(stage)["replicas"] == [{"node": NODES[1], "verdict": "Passed"}]
    with nothing_written(stage):
        at(stage, TWO + 60 * SECOND)

    for number in range(2):  # the nodes were started anew and know nothing of it; the operator, too
        stage.nodes.herddb_tells(named(stage), number, checks={}, fullCheck=None)
    at(stage, TWO + 600 * SECOND)
    assert orders(stage) == [NODES[0]]
    at(stage, TWO + DAY)
    assert orders(stage) == [NODES[0]] * 2
    assert "FullCheckStarted" in {event["reason"] for event in stage.events("flights")}


def test_a_time_that_comes_while_a_check_runs_is_left_out_and_told_and_one_that_waits_says_for_what(stage: Stage) -> None:
    schedule(stage)
    leader_checks(stage, ended=False)
    at(stage, TWO + SECOND)
    at(stage, TWO + DAY)
    assert times(stage)["lastScheduleTime"] == "2026-11-22T02:00:00Z"
    assert times(stage)["lastMissedTime"] == "2026-11-23T02:00:00Z"
    assert "was not over" in times(stage)["lastMissedWhy"]
    leader_checks(stage, ended=True)
    at(stage, TWO + DAY + SECOND)
    assert orders(stage) == []
    (told,) = [event for event in stage.events("flights") if event["reason"] == "TimeMissed"]
    assert told["message"].startswith("no full check was started for 2026-11-23T02:00:00Z, since the check that ")

    follower_finds(stage, flights=True)
    stage.nodes.herddb_is_gone(named(stage), 1)
    for seconds in range(2):
        at(stage, TWO + 2 * DAY + seconds * SECOND)
    assert (orders(stage), "waitsFor" in times(stage)) == ([], True)
    stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", ("leader", "follower"))
    for seconds in (10, 11):  # Ready first, then the order
        at(stage, TWO + 2 * DAY + seconds * SECOND)
    assert (orders(stage), "waitsFor" in times(stage)) == ([NODES[0]], False)


def test_a_tablespace_that_says_nothing_is_checked_once_a_week(stage: Stage) -> None:
    stage.patch(TABLESPACE, "flights", {"spec": {"fullCheck": None}})
    stage.reconcile(TABLESPACE, "flights")
    declared = stage.found(TABLESPACE, "flights")["spec"]["fullCheck"]
    assert declared == {"maxWritesStoppedMilliseconds": 200, "suspend": False, "timeZone": "UTC"}
    seen_first, first = (datetime.datetime.fromisoformat(times(stage)[moment]) for moment in ("since", "nextScheduleTime"))
    assert seen_first < first <= seen_first + 7 * DAY
    at(stage, first - SECOND)
    assert orders(stage) == []
    at(stage, first)
    assert orders(stage) == [NODES[0]]


def test_a_paused_resource_and_a_suspended_schedule_begin_none_and_a_request_is_still_done(stage: Stage) -> None:
    schedule(stage)
    stage.patch(TABLESPACE, "flights", {"metadata": {"annotations": {"herdkeeper.io/paused": "true"}}})
    at(stage, TWO)
    assert orders(stage) == []
    suspended = {"metadata": {"annotations": {"herdkeeper.io/paused": None}}, "spec": {"fullCheck": {"suspend": True}}}
    stage.patch(TABLESPACE, "flights", suspended)
    at(stage, TWO + SECOND)
    assert orders(stage) == []
    ask(stage)
    at(stage, TWO + 2 * SECOND)
    assert orders(stage) == [NODES[0]]


def test_a_schedule_that_says_nothing_is_refused_with_the_field(stage: Stage) -> None:
    with pytest.raises(DynamicApiError, match="does not have the five fields of cron"):
        stage.patch(TABLESPACE, "flights", {"spec": {"fullCheck": {"schedule": "0 3 * *"}}})
    stage.patch(TABLESPACE, "flights", {"spec": {"fullCheck": {"schedule": "0 3 * * *", "timeZone": "Europe/Wien"}}})
    assert stage.reconcile(TABLESPACE, "flights").outcome is Outcome.REFUSED
    assert "spec.fullCheck.timeZone is 'Europe/Wien'" in stage.found(TABLESPACE, "flights")["status"]["message"]
