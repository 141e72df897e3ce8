"""The full check by schedule: once for each time, never two at once, and not before its schedule was seen."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest
from situations import LOG_STORE, with_metadata, with_spec, with_status
from test_full_check import (
    DATABASE,
    DONE,
    FOLLOWER,
    LEADER,
    PASSED,
    RUNNING,
    TABLESPACE,
    asking,
    conditions,
    follower,
    leader,
    plan,
    seen,
)
from test_plan_tablespace import RECORD

from herdkeeper.api.tablespace import FullCheckStatus, FullCheckTimes, FullCheckTiming
from herdkeeper.herddb.state.cluster import VersionedRecord
from herdkeeper.herddb.tablespace.full_check import timing_of
from herdkeeper.herddb.tablespace.plan_full_check import NO_FOLLOWER, DeferredCheck, StartedCheck, decide_check, full_check_steps
from herdkeeper.herddb.tablespace.status_full_check import full_check_fields, newly_missed
from herdkeeper.herddb.tablespace.validate import tablespace_refusals
from herdkeeper.planning.actions import AnswerRequest, ChangeTablespaceRecord, StartFullCheck
from herdkeeper.planning.due import Missed, NotDue, Start
from herdkeeper.shared.time import text_of
from herdkeeper.shared.unknown import Unknown

NIGHTLY = FullCheckTiming(schedule="0 2 * * *")
EACH_MINUTE = FullCheckTiming(schedule="* * * * *")
ORDER = StartFullCheck("db", LEADER, "flights", 200)


def at(text: str) -> datetime.datetime:
    """A moment of November, e.g. `22T02:00`; DONE began on the 22nd at two."""
    return datetime.datetime.fromisoformat(f"2026-11-{text}").replace(tzinfo=datetime.UTC)


def scheduled(timing: FullCheckTiming = NIGHTLY, tablespace=TABLESPACE, check: FullCheckStatus | None = None, **times: str):
    """The tablespace with a schedule that is known since the 20th; `check` is the last one that the status tells of."""
    told = FullCheckTimes(declared=f"{timing.schedule} (UTC)", since="2026-11-20T12:00:00Z", **times)
    known = (check or FullCheckStatus()).model_copy(update={"schedule": told})
    return with_spec(with_check(tablespace, known), full_check=timing)


def with_check(tablespace, check: FullCheckStatus | None):
    return with_status(tablespace, uuid="a-uuid", conditions=tablespace.status.conditions, full_check=check)


def at_time(now: str, situation=None):
    return replace(situation or seen(), now=at(now))


def after(tablespace, situation):
    """The tablespace with the status that follows from what was seen."""
    return with_check(tablespace, FullCheckStatus.model_validate(full_check_fields(replace(situation, tablespace=tablespace))))


def times_of(tablespace, situation) -> dict[str, str]:
    fields = full_check_fields(replace(situation, tablespace=tablespace))
    assert fields is not None
    return dict(fields["schedule"])


def last(started: str, completed: str | None = None, error: str | None = None) -> FullCheckStatus:
    """A check of the status, of which no node tells any more."""
    return FullCheckStatus(
        leader=LEADER,
        started_at=text_of(at(started)),
        completed_at=text_of(at(completed)) if completed else None,
        error=error,
    )


SILENT = seen(Unknown("silence"))
REFUSED = DeferredCheck(at("22T02:00"), f"{LEADER} can't be reached (silence)")
DEADLINE = NIGHTLY.model_copy(update={"starting_deadline_seconds": 3600})
RAN = "the check that db-herddb-0 started at 2026-11-22T01:59:00Z was not over"


@pytest.mark.parametrize(
    ("tablespace", "situation", "decided"),
    [
        (TABLESPACE, at_time("22T02:00"), NotDue()),
        (scheduled(), at_time("20T13:00"), NotDue()),
        (scheduled(), at_time("22T01:59"), Start(at("21T02:00"))),
        (scheduled(last_schedule_time="2026-11-21T02:00:00Z"), at_time("22T01:59"), NotDue()),
        (scheduled(last_schedule_time="2026-11-21T02:00:00Z"), at_time("22T02:00"), Start(at("22T02:00"))),
        (scheduled(last_schedule_time="2026-11-22T02:00:00Z"), at_time("22T02:01"), NotDue()),
        (scheduled(last_missed_time="2026-11-22T02:00:00Z", last_missed_why="so"), at_time("22T02:01"), NotDue()),
        # of many that were missed only the newest counts, and only within the deadline
        (scheduled(), at_time("25T17:00"), Start(at("25T02:00"))),
        (scheduled(DEADLINE), at_time("22T03:00"), Start(at("22T02:00"))),
        (scheduled(DEADLINE), at_time("22T03:01"), Missed(at("22T02:00"), "startingDeadlineSeconds (3600) had passed")),
        (
            scheduled(DEADLINE),
            at_time("22T03:01", SILENT),
            Missed(at("22T02:00"), f"startingDeadlineSeconds (3600) had passed ({LEADER} can't be reached (silence))"),
        ),
        (scheduled(NIGHTLY.model_copy(update={"suspend": True})), at_time("22T02:00"), NotDue()),
        # what was asked for after that time will do
        (scheduled(check=last("22T02:30", "22T02:31")), at_time("22T03:00"), NotDue()),
        (scheduled(check=last("22T01:00", "22T01:01")), at_time("22T03:00"), Start(at("22T02:00"))),
        # never beside another one, nor after it
        (scheduled(check=last("22T01:59")), at_time("22T02:00", SILENT), Missed(at("22T02:00"), RAN)),
        (scheduled(check=last("22T01:59", "22T02:01")), at_time("22T02:05"), Missed(at("22T02:00"), RAN)),
        (scheduled(check=last("22T01:59", error="it broke")), at_time("22T02:00"), Start(at("22T02:00"))),
        # the one that a node tells of, and the status does not yet, is the one that was due
        (scheduled(), at_time("22T02:01", seen(leader(RUNNING))), StartedCheck(at("22T02:00"))),
        (scheduled(DEADLINE), at_time("22T05:00", seen(leader(DONE))), StartedCheck(at("22T02:00"))),
        # what waits for something else than a check
        (scheduled(), at_time("22T02:00", SILENT), REFUSED),
        (
            scheduled(tablespace=with_status(TABLESPACE, conditions=conditions(Ready="False"))),
            at_time("22T02:00"),
            DeferredCheck(at("22T02:00"), "the tablespace is not Ready (Said: Ready is False)"),
        ),
        (
            scheduled(),
            at_time("22T02:00", replace(seen(), herddb=with_status(DATABASE, conditions=conditions(Ready="True", Progressing="True")))),
            DeferredCheck(at("22T02:00"), "the HerdDBCluster db is not settled (Progressing is True)"),
        ),
        (
            scheduled(),
            at_time("22T02:00", replace(seen(), record=Unknown("ZooKeeper does not answer"))),
            DeferredCheck(at("22T02:00"), "ZooKeeper does not answer"),
        ),
        (
            scheduled(tablespace=with_spec(TABLESPACE, replicas=1)),
            at_time("22T02:00", replace(seen(), record=VersionedRecord(replace(RECORD, replicas=(LEADER,)), 4))),
            Missed(at("22T02:00"), NO_FOLLOWER),
        ),
    ],
)
def test_what_becomes_of_the_newest_time(tablespace, situation, decided):
    assert decide_check(replace(situation, tablespace=tablespace)) == decided


@pytest.mark.parametrize("declared", [{}, {"declared": "0 3 * * * (UTC)"}, {"declared": "0 2 * * * (Europe/Vienna)"}])
def test_a_schedule_that_was_not_seen_before_stops_no_writes_for_a_time_of_the_past(declared):
    older = FullCheckStatus(schedule=FullCheckTimes(since="2026-11-01T00:00:00Z", **declared)) if declared else None
    new = with_spec(with_check(TABLESPACE, older), full_check=NIGHTLY)
    assert plan(new, at_time("22T10:00")).actions == ()
    assert times_of(new, at_time("22T10:00")) == {
        "declared": "0 2 * * * (UTC)",
        "since": "2026-11-22T10:00:00Z",
        "nextScheduleTime": "2026-11-23T02:00:00Z",
    }
    known = after(new, at_time("22T10:00"))
    assert plan(known, at_time("23T01:59")).actions == ()
    assert plan(known, at_time("23T02:00")).actions == (ORDER,)


def test_the_check_of_a_time_is_begun_once_whenever_the_process_ends():
    due = scheduled(last_schedule_time="2026-11-21T02:00:00Z")
    assert plan(due, at_time("22T02:00")).actions == (ORDER,)
    assert times_of(due, at_time("22T02:00"))["lastScheduleTime"] == "2026-11-21T02:00:00Z", "it is not begun before the leader says so"

    begun = at_time("22T02:00:01", seen(leader(RUNNING)))
    assert plan(due, begun).actions == ()
    assert times_of(due, begun)["lastScheduleTime"] == "2026-11-22T02:00:00Z"
    known = after(due, begun)
    assert known.status.full_check.started_at == "2026-11-22T02:00:00.000Z", "the check and its time are told in one write"
    for later in (begun, at_time("22T02:01", seen(leader(DONE), follower(*PASSED))), at_time("22T03:00")):
        assert plan(known, later).actions == ()
        assert times_of(known, later)["lastScheduleTime"] == "2026-11-22T02:00:00Z"


def test_what_is_due_is_an_answer_to_who_asks_and_the_writes_are_stopped_once():
    order, said = plan(asking(scheduled()), at_time("22T02:00")).actions
    assert order == ORDER
    assert isinstance(said, AnswerRequest)
    assert said.answer.startswith("done: ")
    (only,) = plan(asking(scheduled()), at_time("22T02:01", seen(leader(RUNNING)))).actions
    assert isinstance(only, AnswerRequest)
    assert only.answer == f"done: {LEADER} checks all tables since 2026-11-22T02:00:00.000Z"


def test_who_asks_while_what_is_due_waits_is_refused_and_it_goes_on_waiting():
    (said,) = plan(asking(scheduled()), at_time("22T02:00", SILENT)).actions
    assert isinstance(said, AnswerRequest)
    assert said.answer == f"refused: {LEADER} can't be reached (silence)"
    assert decide_check(replace(at_time("22T02:00", SILENT), tablespace=scheduled())) == REFUSED


def test_a_suspended_schedule_begins_none_and_a_request_is_still_done():
    suspended = scheduled(NIGHTLY.model_copy(update={"suspend": True}))
    assert plan(suspended, at_time("22T02:00")).actions == ()
    assert "nextScheduleTime" not in times_of(suspended, at_time("22T02:00"))
    assert ORDER in plan(asking(suspended), at_time("22T02:00")).actions


def test_what_is_due_waits_while_the_record_is_being_changed():
    pinned = at_time("22T02:00", replace(seen(), record=VersionedRecord(replace(RECORD, expected_replica_count=2), 4)))
    waiting = plan(scheduled(), pinned)
    (change,) = waiting.actions
    assert isinstance(change, ChangeTablespaceRecord)
    assert waiting.requeue_after_seconds == 1


@pytest.mark.parametrize(
    ("tablespace", "now", "situation", "seconds"),
    [
        (scheduled(last_schedule_time="2026-11-22T02:00:00Z"), "23T01:00", seen(), 3600),
        (scheduled(last_schedule_time="2026-11-22T02:00:00Z"), "23T01:59:59.5", seen(), 0.5),
        (scheduled(last_schedule_time="2026-11-22T02:00:00Z"), "22T02:00:05", seen(leader(RUNNING)), 2),
        (scheduled(), "22T02:00", SILENT, 2),
        (scheduled(), "22T02:00", replace(seen(), herddb=with_status(DATABASE, conditions=conditions(Ready="False"))), 5),
        (scheduled(), "22T02:00", seen(), 1),
        (
            scheduled(FullCheckTiming(schedule="* * * * *"), last_missed_time="2026-11-22T02:00:00Z"),
            "22T02:00:59",
            seen(leader(RUNNING)),
            1,
        ),
    ],
)
def test_it_is_looked_at_again_at_the_next_time_and_no_later_than_without_a_schedule(tablespace, now, situation, seconds):
    assert plan(tablespace, at_time(now, situation)).requeue_after_seconds == pytest.approx(seconds)


def test_what_was_done_is_looked_after_though_the_next_time_is_far_off():
    """The connection Secret is made anew, which has no time of its own to look again."""
    far_off = scheduled(last_schedule_time="2026-11-22T02:00:00Z")
    changed = at_time("22T03:00", replace(seen(), log=replace(LOG_STORE, zookeeper_address="zk-1:2181")))
    assert plan(far_off, changed).actions != ()
    assert plan(far_off, changed).requeue_after_seconds == 2.0


def test_a_time_that_is_left_out_is_told_once_with_the_reason_and_stays_known():
    situation = at_time("22T02:05")
    before = scheduled(check=last("22T01:59", "22T02:01"))
    told, fields = (
        before.status.full_check.model_dump(by_alias=True, exclude_none=True),
        full_check_fields(replace(situation, tablespace=before)),
    )
    assert times_of(before, situation)["lastMissedTime"] == "2026-11-22T02:00:00Z"
    assert newly_missed(told, fields) == f"no full check was started for 2026-11-22T02:00:00Z, since {RAN}"
    assert newly_missed(fields, fields) is None
    assert newly_missed(None, None) is None
    assert times_of(after(before, situation), at_time("22T09:00"))["lastMissedWhy"] == RAN


def test_what_is_due_and_waits_says_for_what():
    waiting = scheduled()
    assert times_of(waiting, at_time("22T02:00", SILENT))["waitsFor"] == REFUSED.why
    assert "waitsFor" not in times_of(waiting, at_time("22T02:00"))


def with_uid(uid: str, **spec: object):
    """A tablespace that says nothing of its times, or only this."""
    return with_metadata(with_spec(TABLESPACE, full_check=FullCheckTiming(**spec)), uid=uid)


def test_a_status_that_knows_of_times_alone_is_written_once():
    new = with_uid("7")
    first = full_check_fields(replace(at_time("20T12:00"), tablespace=new))
    known = after(new, at_time("20T12:00"))
    assert first == known.status.full_check.model_dump(mode="json", by_alias=True, exclude_none=True), (
        "what is read back is what was written"
    )
    assert full_check_fields(replace(at_time("20T12:01"), tablespace=known)) == first


def ordered(tablespace, now: datetime.datetime) -> bool:
    """Whether a check is begun then."""
    return full_check_steps(replace(seen(), tablespace=tablespace, now=now), None).actions == (ORDER,)


def test_a_tablespace_that_says_nothing_is_checked_once_a_week_at_night():
    known = after(with_uid("a-uid"), at_time("20T12:00"))
    first = datetime.datetime.fromisoformat(known.status.full_check.schedule.next_schedule_time)
    week = datetime.timedelta(days=7)
    assert at("20T12:00") < first <= at("20T12:00") + week
    assert first.hour < 6
    assert not ordered(known, first - datetime.timedelta(seconds=1))
    assert ordered(known, first)
    begun = with_check(known, known.status.full_check.model_copy(update={"schedule": told(known, last_schedule_time=text_of(first))}))
    assert not ordered(begun, first + week - datetime.timedelta(seconds=1))
    assert ordered(begun, first + week)


def told(tablespace, **times: str) -> FullCheckTimes:
    return tablespace.status.full_check.schedule.model_copy(update=times)


def test_tablespaces_that_say_nothing_are_not_all_checked_at_once():
    times = {timing_of(with_uid(str(number))).schedule for number in range(100)}
    assert len(times) > 90
    assert {time.split()[4] for time in times} == {str(day) for day in range(7)}
    assert timing_of(with_uid("7")) == timing_of(with_uid("7")), "always at the same time"


def test_the_week_s_time_is_of_the_declared_zone_and_can_be_switched_off():
    assert timing_of(with_uid("7", time_zone="Europe/Vienna")).time_zone == "Europe/Vienna"
    off = after(with_uid("7", suspend=True), at_time("01T12:00"))
    assert not ordered(off, at("22T12:00"))
    assert plan(after(TABLESPACE, at_time("01T12:00")), at_time("22T12:00")).requeue_after_seconds is None, "nor is it looked at for that"


def test_a_tablespace_of_one_copy_that_says_nothing_has_no_times():
    alone = with_spec(with_uid("7"), replicas=1)
    assert timing_of(alone) is None
    fields = full_check_fields(
        replace(
            at_time("22T03:00"),
            tablespace=with_spec(scheduled(check=last("22T01:59", "22T02:01")), full_check=FullCheckTiming(), replicas=1),
        )
    )
    assert fields is not None
    assert "schedule" not in fields
    assert fields["startedAt"] == "2026-11-22T01:59:00Z"


def test_for_how_long_writes_may_stand_still_is_part_of_the_order():
    (order,) = plan(scheduled(NIGHTLY.model_copy(update={"max_writes_stopped_milliseconds": 5000})), at_time("22T02:00")).actions
    assert order == replace(ORDER, longest_stop_millis=5000)


@pytest.mark.parametrize(
    ("timing", "path", "problem"),
    [
        (FullCheckTiming(schedule="0 25 * * *"), "spec.fullCheck.schedule", "cron can't read it"),
        (FullCheckTiming(schedule="0 3 * *"), "spec.fullCheck.schedule", "it has 4 of the five fields of cron"),
        (FullCheckTiming(schedule="0 3 * * *", time_zone="Europe/Wien"), "spec.fullCheck.timeZone", "this time zone does not exist"),
    ],
)
def test_a_schedule_that_says_nothing_is_refused_with_the_field(timing, path, problem):
    (refusal,) = tablespace_refusals(with_spec(TABLESPACE, full_check=timing), None)
    assert refusal.path == path
    assert problem in refusal.problem


def test_a_check_of_the_new_leader_s_is_the_one_that_was_due():
    moved = replace(seen(), record=VersionedRecord(replace(RECORD, leader=FOLLOWER), 4))
    moved = replace(moved, nodes={LEADER: (follower(),), FOLLOWER: (leader(DONE),)})
    assert decide_check(replace(at_time("22T02:01", moved), tablespace=scheduled())) == StartedCheck(at("22T02:00"))
