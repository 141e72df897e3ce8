"""A restore drill is drawn by chance that stays the same, noted before anything is made of it, and leaves nothing behind."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest
from situations import live, objects, quickstart, with_metadata, with_spec, with_status
from test_plan_schedule import at, example

from herdkeeper.api import Checkpoint
from herdkeeper.api.checkpoint import Lsn
from herdkeeper.api.job import ClaimDestination, Destination
from herdkeeper.api.resource import Reference
from herdkeeper.api.restore_drill import Drill, DrillStatus
from herdkeeper.api.scheduled_checkpoint import Retention
from herdkeeper.api.tablespace import LogArchive, RecoveryWindow, RestoreStatus, TablespaceLog
from herdkeeper.herddb.log.checkpoint_base import bases
from herdkeeper.herddb.log.identity import LogIdentity
from herdkeeper.jobs.drill.plan import plan_drill, plan_scheduled_checkpoint
from herdkeeper.jobs.drill.state import CheckpointSeries, Drawn, DrillObserved, NothingToDraw, drawn_moment, drawn_name
from herdkeeper.jobs.schedule.build import build_run
from herdkeeper.jobs.schedule.state import run_of
from herdkeeper.planning.actions import Create, Delete
from herdkeeper.planning.status import planned
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import text_of
from herdkeeper.shared.unknown import Unknown
from herdkeeper_e2e.defaulting import stored

SPARK = "spark:1"
UUID = "u"
SUNDAY = at("10T05:00")
SCHEDULE = with_status(example("scheduled-checkpoint.yaml", drill=Drill(schedule="0 5 * * SUN")), drills_since="2026-05-04T00:00:00Z")
TABLESPACE = quickstart("Tablespace")
ON_VOLUME = Destination(persistent_volume_claim=ClaimDestination(claim_name="archive"))
ARCHIVED = with_status(
    with_spec(TABLESPACE, log=TablespaceLog(archive=LogArchive(destination=ON_VOLUME))),
    recovery_window=RecoveryWindow.model_validate({"from": "2026-05-01T00:00:00.000Z", "to": "2026-05-10T04:59:59.500Z"}),
)
HERDDB = quickstart("HerdDBCluster")
MOMENT_CHECKPOINT, JOB = "flights-nightly-202605100500-d", "flights-nightly-202605100500-drill"


def manifest(entry: int) -> str:
    return f"i/{UUID}/manifests/{1:020d}-{entry:020d}.json"


def verified(day: int, **metadata: object) -> Checkpoint:
    """The Checkpoint of a night, which succeeded."""
    due = at(f"{day:02d}T03:00")
    status = {
        "phase": "Succeeded",
        "verified": "re-read",
        "manifest": manifest(day),
        "completed_at": text_of(due + datetime.timedelta(minutes=30)),
        "lsn": Lsn(ledger_id=1, entry_id=day),
        "open_transactions": 0,
        "lsn_timestamp": text_of(due),
    }
    made = with_status(stored(build_run(SCHEDULE, due, requested=False)), **status)
    return with_metadata(made, **{"uid": f"uid-{day}", **metadata})


NIGHTS = tuple(verified(day) for day in (7, 8, 9, 10))
OF_NIGHTS = [Drawn(night.metadata.name, night.status.lsn_timestamp) for night in NIGHTS]


def seen(now: datetime.datetime = SUNDAY, checkpoints=NIGHTS, tablespace=TABLESPACE, herddb=HERDDB, found=(), schedule=SCHEDULE):
    """Checkpoints of four nights, at a time of the drills. `found` are Jobs."""
    runs = tuple(run_of(each) for each in checkpoints if each.metadata.labels[names.COMPONENT_LABEL] != names.DRILL_COMPONENT)
    return CheckpointSeries(schedule, runs, now, tablespace, drill=DrillObserved(objects(live(found)), tuple(checkpoints), herddb))


def noted(checkpoint: str = NIGHTS[1].metadata.name, outcome: str = "Running", due: str = "2026-05-10T05:00:00Z", **fields: object):
    """The schedule, whose status tells of a drill."""
    drill = DrillStatus.model_validate({"scheduled_time": due, "outcome": outcome, "message": "m", "checkpoint": checkpoint, **fields})
    return with_status(SCHEDULE, drills_since="2026-05-04T00:00:00Z", last_drill=drill)


def of_the_moment(status: dict[str, object] | None = None, **metadata: object) -> Checkpoint:
    """The Checkpoint that was made for the drill of Sunday."""
    (created,) = plan_drill(seen(tablespace=ARCHIVED, schedule=noted(MOMENT_CHECKPOINT, moment="2026-05-03T12:00:00.000Z")), SPARK).actions
    made = stored(created.manifest)
    return with_metadata(with_status(made, **status) if status else made, **{"uid": "uid-d", **metadata})


UNUSABLE = Problem(Reason.WAITING_FOR_SECRET, "the Checkpoint c: spec.destination.objectStore.x is keys: there is no such Secret")


def without_secret(found):
    """The same, but that the Secret of the drilled Checkpoint's store is missing."""
    return replace(found, drill=replace(found.drill, store_unusable=UNUSABLE))


def test_no_job_is_made_that_would_wait_for_a_secret_until_its_deadline():
    assert plan_drill(replace(without_secret(seen()), schedule=noted()), SPARK).actions == ()
    assert len(plan_drill(seen(schedule=noted()), SPARK).actions) == 1


@pytest.mark.parametrize(
    ("schedule", "now", "due"),
    [
        (SCHEDULE, "10T04:59", None),
        (SCHEDULE, "10T05:00", SUNDAY),
        (SCHEDULE, "12T17:00", SUNDAY),  # an operator that was away makes up for the newest one
        (SCHEDULE, "17T05:00", at("17T05:00")),
        # not for what was before drills were declared
        (with_status(SCHEDULE, drills_since="2026-05-10T05:00:00Z"), "10T06:00", None),
        (with_status(SCHEDULE, drills_since=None), "10T06:00", None),
        (with_spec(SCHEDULE, suspend=True), "10T05:00", None),
        (with_spec(SCHEDULE, drill=None), "10T05:00", None),
        (noted(outcome="Succeeded"), "10T06:00", None),
        (noted(outcome="Failed"), "17T05:00", at("17T05:00")),
        # never two at once: what becomes due while one runs is left out, unless it is still the newest once that has ended
        (noted(), "17T05:00", None),
    ],
)
def test_when_a_drill_is_due(schedule, now, due):
    assert seen(at(now), schedule=schedule).due_drill == due


def test_the_same_is_drawn_however_often_it_is_looked_at_and_something_else_for_another_time_or_schedule():
    first = seen().draw(SUNDAY)
    assert first in OF_NIGHTS
    assert seen(SUNDAY + datetime.timedelta(hours=5), tuple(reversed(NIGHTS))).draw(SUNDAY) == first
    weeks = [SUNDAY + datetime.timedelta(weeks=week) for week in range(60)]
    assert {seen().draw(week).name for week in weeks} == {night.metadata.name for night in NIGHTS}
    moments = {seen(tablespace=ARCHIVED, schedule=with_metadata(SCHEDULE, uid=f"uid-{n}")).draw(SUNDAY).moment for n in range(20)}
    assert len(moments) == 20


OTHER = with_spec(SCHEDULE, template=SCHEDULE.spec.template.model_copy(update={"tablespace_ref": Reference(name="others")}))
"""The schedule, which names another Tablespace by now."""


def test_no_checkpoint_of_the_tablespace_that_a_schedule_named_before_is_drawn():
    assert isinstance(seen(schedule=OTHER).draw(SUNDAY), NothingToDraw)
    own = with_spec(NIGHTS[3], tablespace_ref=Reference(name="others"))
    drawn = {seen(checkpoints=(*NIGHTS[:3], own), schedule=with_metadata(OTHER, uid=f"uid-{n}")).draw(SUNDAY).name for n in range(20)}
    assert drawn == {own.metadata.name}


def test_no_checkpoint_of_an_earlier_tablespace_of_the_same_name_is_drawn():
    again = with_status(TABLESPACE, uuid="later")
    assert isinstance(seen(tablespace=again).drawn, NothingToDraw)
    own = with_status(NIGHTS[0], **{**NIGHTS[0].status.model_dump(), "manifest": manifest(7).replace(f"/{UUID}/", "/later/")})
    assert seen(tablespace=again, checkpoints=(own, *NIGHTS[1:])).drawn == OF_NIGHTS[0]


def test_a_schedule_that_names_another_tablespace_deletes_none_of_the_one_before_whose_archive_may_need_it():
    few = with_spec(OTHER, retention=Retention(keep_last=1))
    own = with_spec(NIGHTS[3], tablespace_ref=Reference(name="others"))
    assert plan_scheduled_checkpoint(seen(at("10T04:59"), (*NIGHTS[:3], own), schedule=few), SPARK).actions == ()


def test_every_moment_of_a_window_before_its_end_can_be_drawn_and_none_outside():
    begin = at("01T00:00")
    millis = [(drawn_moment(begin, begin + datetime.timedelta(milliseconds=3), str(seed)) - begin).microseconds for seed in range(200)]
    assert set(millis) == {0, 1000, 2000}
    assert drawn_moment(begin, begin + datetime.timedelta(microseconds=1), "any") == begin
    assert drawn_name((), "any") is None


def restored(completed_at: str, schedule=SCHEDULE):
    """The archived tablespace, which was itself restored within its recovery window."""
    restore = RestoreStatus(phase="Succeeded", completed_at=completed_at)
    tablespace = with_status(ARCHIVED, restore=restore, recovery_window=ARCHIVED.status.recovery_window)
    return seen(tablespace=tablespace, schedule=schedule)


def test_no_moment_is_drawn_at_which_the_tablespace_itself_was_still_being_restored():
    drawn = [restored("2026-05-09T12:00:00Z", with_metadata(SCHEDULE, uid=f"uid-{n}")).draw(SUNDAY) for n in range(20)]
    assert min(each.moment for each in drawn) >= "2026-05-09T12:00:00.000Z"
    assert restored("2026-05-10T05:00:00Z").draw(SUNDAY) in OF_NIGHTS, "the archive has no later moment yet"


def test_where_the_log_is_archived_a_moment_of_the_recovery_window_is_drawn():
    drawn = seen(tablespace=ARCHIVED).draw(SUNDAY)
    assert drawn.name == MOMENT_CHECKPOINT
    assert "2026-05-01T00:00:00.000Z" <= drawn.moment <= "2026-05-10T04:59:59.500Z"
    begins_later = RecoveryWindow.model_validate({"from": "2026-05-10T05:00:00.000Z", "to": "2026-05-10T04:59:59.500Z"})
    assert seen(tablespace=with_status(ARCHIVED, recovery_window=begins_later)).draw(SUNDAY) in OF_NIGHTS
    idle = RecoveryWindow.model_validate({"from": "2026-05-10T04:00:00.000Z", "to": "2026-05-10T04:00:00.000Z"})
    assert seen(tablespace=with_status(ARCHIVED, recovery_window=idle)).draw(SUNDAY) in OF_NIGHTS, "its only moment waits for a later entry"
    nothing_archived = with_status(ARCHIVED, recovery_window=None)
    assert seen(tablespace=nothing_archived).draw(SUNDAY) in OF_NIGHTS


def test_no_moment_is_drawn_before_the_first_checkpoint_at_the_schedules_own_destination():
    """A moment is made where the schedule's Checkpoints are, and needs one there to begin with."""
    elsewhere = Destination(persistent_volume_claim=ClaimDestination(claim_name="before-the-move"))
    proof = "compared with follower x"
    fifth, eighth = (
        each.model_copy(
            update={"status": each.status.model_copy(update={"verified": proof, "latest_timestamp": each.status.lsn_timestamp})}
        )
        for each in (verified(5), verified(8))
    )
    moved = with_spec(fifth, destination=elsewhere)
    window = {"from": "2026-05-05T03:00:00.000Z", "fromLsn": {"ledgerId": 1, "entryId": 5}, "to": "2026-05-10T04:59:59.500Z"}
    archived = with_status(ARCHIVED, uuid=UUID, recovery_window=RecoveryWindow.model_validate(window))

    def drawn(*checkpoints: Checkpoint) -> list[Drawn]:
        schedules = [with_metadata(SCHEDULE, uid=f"uid-{n}") for n in range(20)]
        found = [seen(tablespace=archived, schedule=schedule) for schedule in schedules]
        return [replace(each, checkpoints=checkpoints, instance_id="i").draw(SUNDAY) for each in found]

    assert min(each.moment for each in drawn(moved, eighth)) >= "2026-05-08T03:00:00"
    assert min(each.moment for each in drawn(fifth, eighth)) < "2026-05-08T03:00:00"
    assert min(each.moment for each in drawn(eighth)) < "2026-05-08T03:00:00", "an archive that begins with the log needs none"
    assert all(each in OF_NIGHTS for each in drawn(moved))


@pytest.mark.parametrize(
    ("situation", "why"),
    [
        (seen(checkpoints=()), "this schedule has no verified Checkpoint of this tablespace yet"),
        (seen(checkpoints=(with_status(NIGHTS[0], phase="Succeeded", manifest=manifest(7)),)), "this schedule has no verified Checkpoint"),
        (seen(checkpoints=(verified(7, deletion_timestamp="2026-05-10T04:00:00Z"),)), "this schedule has no verified Checkpoint"),
        (seen(tablespace=Unknown("the Tablespace flights can't be read")), "the Tablespace flights can't be read"),
        (seen(tablespace=None), "the Tablespace flights, or its database, does not exist"),
        (seen(herddb=None), "the Tablespace flights, or its database, does not exist"),
    ],
)
def test_without_anything_to_restore_the_drill_waits(situation, why):
    assert isinstance(situation.drawn, NothingToDraw)
    assert situation.drawn.why.startswith(why)
    plan = plan_drill(situation, SPARK)
    assert (plan.actions, plan.requeue_after_seconds) == ((), 30)


@pytest.mark.parametrize(("tablespace", "of"), [(TABLESPACE, OF_NIGHTS), (ARCHIVED, [Drawn(MOMENT_CHECKPOINT, None)])])
def test_a_plan_that_is_only_shown_names_the_drill_that_is_due(tablespace, of):
    planning = seen(tablespace=tablespace, schedule=with_metadata(SCHEDULE, annotations={names.PLAN_ANNOTATION: "true"}))
    (step,) = planned(plan_scheduled_checkpoint(planning, SPARK))["steps"]
    begin = "Starting the restore drill of 2026-05-10T05:00:00Z, of the Checkpoint "
    assert step.startswith(tuple(f"{begin}{each.name} (" for each in of))
    assert planned(plan_scheduled_checkpoint(replace(planning, now=at("10T04:59")), SPARK))["steps"] == []


def test_nothing_is_made_before_the_draw_is_noted_and_then_one_job_whatever_is_seen_meanwhile():
    assert plan_drill(seen(), SPARK).actions == ()
    (created,) = plan_drill(seen(schedule=noted()), SPARK).actions
    assert isinstance(created, Create)
    assert (created.manifest["kind"], created.manifest["metadata"]["name"]) == ("Job", JOB)
    assert created.manifest["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
    assert plan_drill(seen(SUNDAY + datetime.timedelta(days=9), schedule=noted()), SPARK).actions == (created,)
    assert plan_drill(seen(found=[created.manifest], schedule=noted()), SPARK).actions == ()


def test_a_moment_gets_a_checkpoint_of_its_own_first_which_is_restored_once_it_is_verified():
    made = of_the_moment()
    assert made.metadata.name == MOMENT_CHECKPOINT
    assert made.spec.target is not None
    assert made.spec.target.timestamp == "2026-05-03T12:00:00.000Z"
    assert (made.spec.deletion_policy, made.spec.mode, made.spec.destination) == ("Delete", "Auto", SCHEDULE.spec.template.destination)
    schedule = noted(MOMENT_CHECKPOINT, moment="2026-05-03T12:00:00.000Z")
    for status in (None, {"phase": "Running"}, {"phase": "Failed", "message": "no"}, {"phase": "Succeeded", "manifest": manifest(3)}):
        assert plan_drill(seen(checkpoints=(*NIGHTS, of_the_moment(status)), schedule=schedule), SPARK).actions == ()
    ended = of_the_moment({"phase": "Succeeded", "manifest": manifest(3), "verified": "re-read"})
    (created,) = plan_drill(seen(checkpoints=(*NIGHTS, ended), schedule=schedule), SPARK).actions
    assert f"/checkpoints/{manifest(3)}" in created.manifest["spec"]["template"]["spec"]["containers"][0]["args"]


def test_the_longest_name_of_a_schedule_leaves_room_for_those_of_a_drill():
    key = ObjectKey("demo", names.drill_checkpoint("a" * 25, SUNDAY))
    assert len(key.name) == 40
    assert len(names.job_name(key, names.CHECKPOINT_COMPONENT)) <= 57  # a pod's name adds six
    assert len(names.drill_job("a" * 25, SUNDAY)) <= 57


def test_when_a_drill_is_over_or_no_longer_declared_what_was_made_for_it_goes_and_its_logs_stay():
    ended = of_the_moment({"phase": "Succeeded", "manifest": manifest(3), "verified": "re-read"})
    (created,) = plan_drill(seen(checkpoints=(ended,), schedule=noted(MOMENT_CHECKPOINT)), SPARK).actions
    over = {**created.manifest, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    gone = Delete("herdkeeper.io/v1alpha1", "Checkpoint", MOMENT_CHECKPOINT, "uid-d", Reason.DRILL_ENDED)
    assert plan_drill(seen(checkpoints=(ended,), found=[over], schedule=noted(MOMENT_CHECKPOINT)), SPARK).actions == ()
    assert plan_drill(seen(checkpoints=(ended,), found=[over], schedule=noted(MOMENT_CHECKPOINT, "Failed")), SPARK).actions == (gone,)
    stop = Delete("batch/v1", "Job", JOB, f"uid-Job-{JOB}", Reason.DRILL_ENDED)
    undeclared = with_spec(noted(MOMENT_CHECKPOINT), drill=None)
    assert plan_drill(seen(checkpoints=(ended,), found=[created.manifest], schedule=undeclared), SPARK).actions == (gone, stop)
    going = with_metadata(ended, deletion_timestamp="2026-05-10T06:00:00Z")
    assert plan_drill(seen(checkpoints=(going,), schedule=noted(MOMENT_CHECKPOINT, "Failed")), SPARK).actions == ()


def test_what_is_drilled_does_not_expire_and_what_is_made_for_a_drill_is_no_run():
    few = with_spec(noted(NIGHTS[0].metadata.name), retention=Retention(keep_last=1))
    situation = seen(SUNDAY, (*NIGHTS, of_the_moment()))
    expired = [
        action.name for action in plan_scheduled_checkpoint(replace(situation, schedule=few), SPARK).actions if isinstance(action, Delete)
    ]
    assert expired == [*(night.metadata.name for night in NIGHTS[1:3]), MOMENT_CHECKPOINT]


def test_neither_the_log_nor_the_archive_rests_on_a_checkpoint_that_was_made_for_a_drill():
    status = {"phase": "Succeeded", "manifest": manifest(30), "verified": "v", "lsn": Lsn(ledger_id=1, entry_id=30), "open_transactions": 0}
    assert [base.lsn for base in bases((NIGHTS[0], of_the_moment(status)), LogIdentity("i", UUID))] == [(1, 7)]


def test_a_drill_is_looked_for_at_its_time_and_while_runs_can_not_be_read_nothing_is_begun():
    assert plan_drill(seen(at("10T04:59")), SPARK).requeue_after_seconds == 60
    unknown = replace(seen(), runs=Unknown("the Checkpoint x can't be read"))
    assert plan_scheduled_checkpoint(replace(unknown, schedule=noted()), SPARK).actions == ()
