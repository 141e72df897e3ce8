"""A deleted Checkpoint takes its files along only when nobody else needs them, and what can't be read may need them."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest
import yaml
from situations import EXAMPLES, live, objects, quickstart, with_metadata, with_spec, with_status
from test_plan_job import CHECKPOINT as EXAMPLE
from test_plan_job import SEEN

from herdkeeper.api.job import ClaimDestination, Destination
from herdkeeper.api.resource import Condition, Reference
from herdkeeper.api.restore_drill import DrillStatus
from herdkeeper.api.tablespace import Bootstrap, BootstrapArchive, CheckpointFiles, RestoreStatus, RestoreTarget
from herdkeeper.jobs.plan import plan_checkpoint
from herdkeeper.jobs.removal.plan import plan_removal
from herdkeeper.jobs.state import CheckpointRun, RemovalObserved
from herdkeeper.jobs.status import summarize_checkpoint
from herdkeeper.planning.actions import Apply, Delete, SetFinalizer
from herdkeeper.planning.deletion import PATIENCE_SECONDS, waited_seconds
from herdkeeper.planning.status import status_document
from herdkeeper.shared import names
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.shared.volumes import Claim
from herdkeeper.spark.build_job import build_removal
from herdkeeper.spark.work import CheckpointWork
from herdkeeper_e2e.defaulting import stored

MANIFEST = f"i/u/manifests/{1:020d}-{2:020d}.json"
OTHER_MANIFEST = f"i/u/manifests/{1:020d}-{3:020d}.json"
BEFORE, DELETED, LATER = (f"2026-01-01T00:00:0{second}Z" for second in (1, 2, 3))
DECLARED = with_metadata(with_spec(EXAMPLE, deletion_policy="Delete"), uid="mine")
GOING = with_metadata(
    with_status(DECLARED, phase="Succeeded", job="flights-1-checkpoint", manifest=MANIFEST, verified="re-read"), deletion_timestamp=DELETED
)
REUSES = GOING.model_copy(update={"status": GOING.status.model_copy(update={"reused": True})})
"""It found the manifest there, of whichever run."""
CLAIM = GOING.place
THERE = Claim(CLAIM, "uid-claim")


def other(name="other", deleted=None, claim=CLAIM, **status):
    spec = {"persistent_volume_claim": ClaimDestination(claim_name=claim)}
    moved = with_spec(DECLARED, destination=DECLARED.spec.destination.model_copy(update=spec))
    return with_metadata(with_status(moved, **status), name=name, uid=name, deletion_timestamp=deleted)


def tablespace(created=BEFORE, status=None, **bootstrap):
    made = with_spec(quickstart("Tablespace"), bootstrap=Bootstrap(**bootstrap))
    made = with_metadata(made, name="restored", creation_timestamp=created)
    return made if status is None else with_status(made, restore=RestoreStatus(**status))


def seen(*parts, claim=THERE, checkpoints=(), tablespaces=(), schedules=(), work=()):
    return CheckpointRun(GOING, objects(*parts), work=tuple(work), removal=RemovalObserved(claim, checkpoints, tablespaces, schedules))


def drilling(checkpoint="flights-1", outcome="Running", deleted=None):
    """A schedule whose status tells of a restore drill."""
    documents = yaml.safe_load_all((EXAMPLES / "scheduled-checkpoint.yaml").read_text())
    schedule = next(stored(document, "demo") for document in documents if document["kind"] == "ScheduledCheckpoint")
    drill = DrillStatus(scheduled_time=BEFORE, outcome=outcome, message="m", checkpoint=checkpoint)
    return with_metadata(with_status(schedule, last_drill=drill), deletion_timestamp=deleted)


def work(owner, component="checkpoint", claim=CLAIM, ended=False):
    return CheckpointWork(owner, component, claim, ended)


def done(plan):
    """What a plan does, and why it waits."""
    kinds = [
        action.manifest["metadata"]["name"] if isinstance(action, Apply) else action.reason if isinstance(action, SetFinalizer) else "stop"
        for action in plan.actions
        if isinstance(action, Apply | SetFinalizer | Delete)
    ]
    return kinds[0] if kinds else plan.wait.reason


BY_NAME = {"checkpoint": Reference(name="flights-1")}
FILES = {"files": CheckpointFiles(persistent_volume_claim=ClaimDestination(claim_name=CLAIM), manifest=MANIFEST)}
REMOVES = "flights-1-removal"
AT = {"target": RestoreTarget(latest=True)}
ELSEWHERE = BootstrapArchive(persistent_volume_claim=ClaimDestination(claim_name="archives"))
BESIDE = BootstrapArchive(persistent_volume_claim=ClaimDestination(claim_name=CLAIM), folder="i/u")
MOMENT_BESIDE_FILES = {"files": FILES["files"].model_copy(update={"manifest": OTHER_MANIFEST}), "archive": ELSEWHERE, **AT}
MOMENT_BESIDE_CHECKPOINT = {"checkpoint": Reference(name="other"), "archive": ELSEWHERE, **AT}
MOMENT_OF_FOLDER = {"archive": BESIDE, **AT}
MOMENT_ELSEWHERE = {"archive": BESIDE.model_copy(update={"persistent_volume_claim": ClaimDestination(claim_name="far")}), **AT}


@pytest.mark.parametrize(
    ("situation", "expected"),
    [
        (seen(), REMOVES),
        (seen(claim=None), Reason.DATA_DELETED),
        (seen(claim=replace(THERE, going=True)), Reason.DELETING),
        (seen(checkpoints=Unknown("a Checkpoint can't be read")), Reason.UNREADABLE),
        (seen(tablespaces=Unknown("a Tablespace can't be read")), Reason.UNREADABLE),
        (seen(checkpoints=(other(phase="Succeeded", manifest=MANIFEST),)), Reason.DATA_KEPT),
        (seen(checkpoints=(other(phase="Succeeded", manifest=MANIFEST, deleted=DELETED),)), REMOVES),
        (seen(checkpoints=(other(phase="Succeeded", manifest=MANIFEST, claim="elsewhere"),)), REMOVES),
        (seen(checkpoints=(other(phase="Succeeded", manifest=OTHER_MANIFEST),)), REMOVES),
        (seen(checkpoints=(other(phase="Succeeded"),)), Reason.UNREADABLE),
        (seen(checkpoints=(other(phase="Failed"),)), REMOVES),
        (seen(checkpoints=(other(phase="Running"),), work=[work("other")]), Reason.WAITING_FOR_DEPENDENTS),
        (seen(checkpoints=(other(phase="Running"),), work=[work("other", ended=True)]), Reason.WAITING_FOR_DEPENDENTS),
        (seen(checkpoints=(other(phase="Failed"),), work=[work("other")]), Reason.WAITING_FOR_DEPENDENTS),
        (seen(work=[work("gone-already")]), Reason.WAITING_FOR_DEPENDENTS),
        (seen(work=[work("failed-and-unreadable", ended=True)]), REMOVES),
        (seen(checkpoints=(other(phase="Failed"),), work=[work("other", ended=True)]), REMOVES),
        (seen(checkpoints=(other(phase="Pending"),)), REMOVES),
        (seen(work=[work("other", claim="elsewhere")]), REMOVES),
        (seen(work=[work("other", component="removal")]), REMOVES),
        (seen(work=[work("flights-1")]), Reason.DELETING),
        (seen(tablespaces=(tablespace(**BY_NAME),)), Reason.WAITING_FOR_DEPENDENTS),
        (seen(tablespaces=(tablespace(created=LATER, **BY_NAME),)), REMOVES),
        (seen(tablespaces=(tablespace(**FILES),)), Reason.WAITING_FOR_DEPENDENTS),
        (seen(tablespaces=(tablespace(**MOMENT_BESIDE_FILES),)), Reason.WAITING_FOR_DEPENDENTS),
        (seen(tablespaces=(tablespace(**MOMENT_BESIDE_FILES, status={"phase": "Succeeded"}),)), REMOVES),
        (seen(tablespaces=(tablespace(**MOMENT_OF_FOLDER),)), Reason.WAITING_FOR_DEPENDENTS),
        (seen(tablespaces=(tablespace(**MOMENT_ELSEWHERE),)), REMOVES),
        (seen(tablespaces=(tablespace(**MOMENT_BESIDE_CHECKPOINT),)), REMOVES),
        (
            seen(tablespaces=(tablespace(**MOMENT_BESIDE_CHECKPOINT),), checkpoints=(other(phase="Succeeded", manifest=OTHER_MANIFEST),)),
            Reason.WAITING_FOR_DEPENDENTS,
        ),
        (
            seen(
                tablespaces=(tablespace(**MOMENT_BESIDE_CHECKPOINT, status={"phase": "Running", "claim_name": CLAIM, "manifest": "m"}),),
            ),
            Reason.WAITING_FOR_DEPENDENTS,
        ),
        (
            seen(tablespaces=(tablespace(LATER, {"phase": "Running", "claim_name": CLAIM, "manifest": MANIFEST}, **BY_NAME),)),
            Reason.WAITING_FOR_DEPENDENTS,
        ),
        (seen(tablespaces=(tablespace(BEFORE, {"phase": "Failed"}, **BY_NAME),)), Reason.WAITING_FOR_DEPENDENTS),
        (seen(tablespaces=(tablespace(BEFORE, {"phase": "Succeeded"}, **BY_NAME),)), REMOVES),
        (seen(tablespaces=(tablespace(checkpoint=Reference(name="another")),)), REMOVES),
        (seen(schedules=Unknown("a ScheduledCheckpoint can't be read")), Reason.UNREADABLE),
        (seen(schedules=(drilling(),)), Reason.WAITING_FOR_DEPENDENTS),
        (seen(schedules=(drilling(outcome="Failed"),)), REMOVES),
        (seen(schedules=(drilling("another"),)), REMOVES),
        (seen(schedules=(drilling(deleted=DELETED),)), REMOVES),
        (
            seen(checkpoints=(other("twin", phase="Succeeded", manifest=MANIFEST, deleted=DELETED),), schedules=(drilling("twin"),)),
            Reason.WAITING_FOR_DEPENDENTS,
        ),
        (
            seen(
                checkpoints=(other("twin", phase="Succeeded", manifest=MANIFEST, deleted=DELETED),),
                tablespaces=(tablespace(checkpoint=Reference(name="twin")),),
            ),
            Reason.WAITING_FOR_DEPENDENTS,
        ),
    ],
)
def test_files_go_when_nobody_needs_them_and_else_it_is_said_who_does(situation, expected):
    assert done(plan_removal(situation, "spark:1")) == expected


def job(name, ended=None):
    made = live([build_removal(GOING, MANIFEST, "spark:1")])[("Job", REMOVES)]
    metadata = {**made["metadata"], "name": name}
    conditions = [{"type": ended, "status": "True", "message": "it ended", "lastTransitionTime": DELETED}] if ended else []
    return {("Job", name): {**made, "metadata": metadata, "status": {"conditions": conditions}}}


@pytest.mark.parametrize(
    ("ended", "expected"), [(None, Reason.DELETING), ("Complete", Reason.DATA_DELETED), ("Failed", Reason.REMOVAL_FAILED)]
)
def test_the_resource_goes_once_its_files_have_and_a_failure_tells_how_to_go_on(ended, expected):
    plan = plan_removal(seen(job(REMOVES, ended)), "spark:1")
    assert done(plan) == expected
    if expected is Reason.REMOVAL_FAILED:
        assert "it ended. Fix the cause and delete the Job flights-1-removal" in plan.wait.message
        assert "spec.deletionPolicy to Retain" in plan.wait.message


def test_a_drill_s_checkpoint_takes_along_only_what_its_own_run_made_and_keeps_nobody_s_files():
    labels = {names.COMPONENT_LABEL: names.DRILL_COMPONENT}
    (made,) = plan_removal(replace(seen(), checkpoint=with_metadata(GOING, labels=labels)), "spark:1").actions
    assert "--only-own" in made.manifest["spec"]["template"]["spec"]["containers"][0]["args"]
    drills = with_metadata(other(phase="Succeeded", manifest=MANIFEST), labels=labels)
    plan = plan_removal(replace(seen(checkpoints=(drills,)), checkpoint=REUSES), "spark:1")
    assert done(plan) == REMOVES, "else nobody would remove them: the drill's Checkpoint does not"
    assert "--only-own" not in plan.actions[0].manifest["spec"]["template"]["spec"]["containers"][0]["args"]


def test_a_copy_of_a_checkpoint_leaves_the_files_that_the_run_of_the_original_made():
    """A backup of the resources was brought back, with their status, into another cluster or namespace: the bucket is the same."""
    copy = with_metadata(GOING, uid="that-of-the-copy")
    (made,) = plan_removal(replace(seen(), checkpoint=copy), "spark:1").actions
    args = made.manifest["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args[-3:] == ["--only-own", "--run-id", "that-of-the-copy"]


def test_a_job_of_an_earlier_checkpoint_of_this_name_says_nothing_about_this_one():
    again = with_metadata(GOING, uid="another")
    assert plan_removal(replace(seen(job(REMOVES, "Complete")), checkpoint=again), "spark:1").actions == ()


def test_a_run_is_stopped_before_what_it_left_is_removed_and_one_that_ended_is_noted_first():
    running = with_metadata(with_status(DECLARED, phase="Running", job="flights-1-checkpoint"), deletion_timestamp=DELETED)
    assert done(plan_removal(replace(seen(job("flights-1-checkpoint")), checkpoint=running), "spark:1")) == "stop"
    assert plan_removal(replace(seen(job("flights-1-checkpoint", "Complete")), checkpoint=running), "spark:1").actions == ()
    made = plan_removal(replace(seen(checkpoints=(other(phase="Succeeded"),)), checkpoint=running), "spark:1").actions[0]
    assert isinstance(made, Apply)
    assert "--manifest" not in made.manifest["spec"]["template"]["spec"]["containers"][0]["args"]


STORE = {"uri": "s3://backups", "credentialsSecretRef": {"name": "store-keys"}}
IN_STORE = with_spec(GOING, destination=Destination.model_validate({"objectStore": STORE}))


def test_files_in_an_object_store_are_removed_there_once_its_secret_is_there_and_there_is_no_claim_to_look_at():
    made = plan_removal(replace(seen(claim=None), checkpoint=IN_STORE), "spark:1").actions[0]
    assert isinstance(made, Apply)
    pod = made.manifest["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"][3:5] == ["--destination", "s3://backups"]
    assert not [volume for volume in pod["volumes"] if "persistentVolumeClaim" in volume]
    unusable = Problem(Reason.WAITING_FOR_SECRET, "there is no such Secret")
    waiting = plan_removal(replace(seen(claim=None), store_unusable=unusable, checkpoint=IN_STORE), "spark:1")
    assert done(waiting) is Reason.WAITING_FOR_SECRET
    assert "or set spec.deletionPolicy to Retain" in waiting.wait.message
    given_up = plan_removal(replace(seen(claim=None), store_unusable=unusable, checkpoint=IN_STORE), "spark:1", PATIENCE_SECONDS)
    assert done(given_up) is Reason.DELETION_GIVEN_UP, "a namespace whose Secrets went first could never be deleted"


def test_files_in_a_store_without_a_secret_are_removed_by_a_pod_that_the_cloud_knows():
    google = {"uri": "gs://backups", "serviceAccountName": "backups"}
    made = plan_removal(
        replace(seen(claim=None), checkpoint=with_spec(GOING, destination=Destination.model_validate({"objectStore": google}))), "spark:1"
    ).actions[0]
    assert isinstance(made, Apply)
    pod = made.manifest["spec"]["template"]["spec"]
    assert (pod["serviceAccountName"], pod["containers"][0]["args"][3:5]) == ("backups", ["--destination", "gs://backups"])


def test_patience_with_a_store_begins_when_its_secret_is_missed():
    said = Condition(
        type="Ready", status="False", reason="WaitingForSecret", message="", last_transition_time=DELETED, observed_generation=1
    )
    now = datetime.datetime(2026, 1, 1, 0, 1, 2, tzinfo=datetime.UTC)
    assert waited_seconds(with_status(IN_STORE, conditions=(said,)), now) == 60
    assert waited_seconds(with_status(IN_STORE, conditions=(said.model_copy(update={"reason": "Deleting"}),)), now) == 0


def test_patience_with_a_store_begins_when_its_secret_is_missed_however_long_the_deletion_has_waited_for_others():
    said = Condition(
        type="Ready", status="False", reason="WaitingForDependents", message="", last_transition_time=DELETED, observed_generation=1
    )
    waits = with_status(IN_STORE, phase="Succeeded", job="flights-1-checkpoint", manifest=MANIFEST, conditions=(said,))
    looked = replace(seen(claim=None), store_unusable=Problem(Reason.WAITING_FOR_SECRET, "there is no such Secret"), checkpoint=waits)
    told = status_document(waits, summarize_checkpoint(looked), plan_removal(looked, "spark:1"), None, "2026-01-01T01:00:00Z")
    after = with_status(waits, conditions=tuple(map(Condition.model_validate, told["conditions"])))
    assert waited_seconds(after, datetime.datetime(2026, 1, 1, 1, 0, 5, tzinfo=datetime.UTC)) == 5


def test_the_same_manifest_path_in_another_store_is_another_checkpoint():
    elsewhere = with_spec(IN_STORE, destination=Destination.model_validate({"objectStore": {**STORE, "endpoint": "https://other:9000"}}))
    twin = with_metadata(elsewhere, name="twin", uid="twin", deletion_timestamp=None)
    assert done(plan_removal(replace(seen(claim=None, checkpoints=(twin,)), checkpoint=IN_STORE), "spark:1")) == REMOVES
    same = with_metadata(IN_STORE, name="twin", uid="twin", deletion_timestamp=None)
    assert done(plan_removal(replace(seen(claim=None, checkpoints=(same,)), checkpoint=IN_STORE), "spark:1")) is Reason.DATA_KEPT
    reading = tablespace(files=CheckpointFiles(object_store=IN_STORE.spec.destination.object_store, manifest=MANIFEST))
    assert (
        done(plan_removal(replace(seen(claim=None, tablespaces=(reading,)), checkpoint=IN_STORE), "spark:1"))
        is Reason.WAITING_FOR_DEPENDENTS
    )


def test_a_checkpoint_that_never_began_has_nothing_to_remove():
    waiting = with_metadata(with_status(DECLARED, phase="Pending"), deletion_timestamp=DELETED)
    assert done(plan_removal(replace(seen(), checkpoint=waiting), "spark:1")) is Reason.DATA_DELETED


def test_the_job_names_the_run_and_its_manifest_and_starts_no_spark():
    made = plan_removal(seen(), "spark:1").actions[0]
    assert isinstance(made, Apply)
    container = made.manifest["spec"]["template"]["spec"]["containers"][0]
    assert container["args"] == [
        *("python3", "-m", "herdkeeper_jobs.checkpoint.removal_cli", "--destination", "/checkpoints"),
        *("--manifest", MANIFEST, "--only-own", "--run-id", "mine"),
    ]


@pytest.mark.parametrize(("at_work", "starts"), [([], True), ([work("old", "removal")], False), ([work("old", "removal", "else")], True)])
def test_no_run_begins_while_files_are_removed_from_its_volume(at_work, starts):
    plan = plan_checkpoint(replace(SEEN, work=tuple(at_work), checkpoint=DECLARED), "spark:1")
    assert bool(plan.actions) == starts
