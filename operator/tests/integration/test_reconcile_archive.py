"""A tablespace whose log is archived, on the real API server: the archiver, what keeps the log for it, what is told, and who reads it."""

from __future__ import annotations

import datetime
import time

import pytest
from kubernetes.dynamic import DynamicClient
from sql_database import TABLESPACE, named, serving_database
from stage import Stage, nothing_written

from herdkeeper.domain import names
from herdkeeper.domain.names import FINALIZER
from herdkeeper.domain.observed.schedule import text_of
from herdkeeper.formats.herddb_log_archive import (
    ArchivedRange,
    ArchiveProgress,
    archive_progress_path,
    decode_expiry_order,
    encode_archive_progress,
    expiry_order_path,
)
from herdkeeper.formats.herddb_log_pin import ARCHIVE, BEGIN, decode_log_pin, log_pin_path

LOG = {"archive": {"destination": {"persistentVolumeClaim": {"claimName": "archives"}}}}
CONDITION = "LogArchived"


@pytest.fixture
def stage(dynamic: DynamicClient, namespace: str) -> Stage:
    made = serving_database(dynamic, namespace)
    made.settle(TABLESPACE, "flights")
    return made


def archives(stage: Stage, **progress: object) -> None:
    """The archiver has come so far."""
    held = ArchivedRange((3, 0), 1_700_000_000_000, True, (7, 41), 1_700_000_090_000, (7, 42))
    told = ArchiveProgress(
        **{"destination": "archives", "held": held, "current_at_millis": int(time.time() * 1000), "lag_seconds": 60.2, **progress}
    )  # type: ignore[arg-type]
    stage.ensemble.put(archive_progress_path(named(stage).herd_root, "a-uuid"), encode_archive_progress(told))


def pin(stage: Stage) -> tuple[int, int] | None:
    found = stage.ensemble.read(log_pin_path(named(stage).herd_root, "a-uuid", ARCHIVE))
    return None if found is None else decode_log_pin(found[0])


def test_a_log_is_archived_kept_until_then_and_read_by_checkpoints(stage: Stage) -> None:
    assert stage.live("Deployment", "flights-archive") is None
    stage.patch(TABLESPACE, "flights", {"spec": {"log": LOG}})
    stage.settle(TABLESPACE, "flights")
    assert pin(stage) == BEGIN, "nothing is released before it is archived"
    assert FINALIZER in stage.found(TABLESPACE, "flights")["metadata"]["finalizers"]
    assert (
        "herdkeeper_jobs.archive.cli" in stage.found("Deployment", "flights-archive")["spec"]["template"]["spec"]["containers"][0]["args"]
    )
    assert stage.condition(TABLESPACE, "flights", CONDITION) == ("False", "ArchiveStarting")

    archives(stage)
    stage.settle(TABLESPACE, "flights")
    assert pin(stage) == (7, 42)
    status = stage.found(TABLESPACE, "flights")["status"]
    assert (status["archive"]["lsn"], status["archive"]["lagSeconds"]) == ({"ledgerId": 7, "entryId": 41}, 60)
    assert status["recoveryWindow"]["from"] == "2023-11-14T22:13:20.000Z"
    assert status["recoveryWindow"]["toLsn"] == {"ledgerId": 7, "entryId": 41}
    assert stage.condition(TABLESPACE, "flights", CONDITION) == ("True", "Archived")
    with nothing_written(stage):
        stage.reconcile(TABLESPACE, "flights")

    stage.declare(
        "Checkpoint",
        "moment",
        {"tablespaceRef": {"name": "flights"}, "destination": {"persistentVolumeClaim": {"claimName": "checkpoints"}}},
    )
    stage.reconcile("Checkpoint", "moment")
    driver = stage.found("Job", "moment-checkpoint")["spec"]["template"]["spec"]
    assert driver["containers"][0]["args"][driver["containers"][0]["args"].index("--archive") + 1] == "/archive"
    assert {"name": "archive", "persistentVolumeClaim": {"claimName": "archives"}} in driver["volumes"]

    archives(stage, trouble="the volume is full")
    stage.reconcile(TABLESPACE, "flights")
    assert stage.condition(TABLESPACE, "flights", CONDITION) == ("False", "ArchiveStands")

    stage.patch(TABLESPACE, "flights", {"spec": {"log": {"archive": None}}})
    stage.settle(TABLESPACE, "flights")
    assert (pin(stage), stage.live("Deployment", "flights-archive")) == (None, None)
    assert "archive" not in stage.found(TABLESPACE, "flights")["status"]


SCHEDULE = "ScheduledCheckpoint"
FIRST = datetime.datetime.fromtimestamp(1_700_000_000, datetime.UTC)
DAYS = [datetime.datetime(2100, 1, day, 3, tzinfo=datetime.UTC) for day in range(1, 5)]


def verified(stage: Stage, day: int, ledger: int, seconds: int) -> str:
    """The schedule's Checkpoint of a day is due, is made, and holds what was written up to so many seconds after the log's beginning."""
    stage.reconcile_at(DAYS[day], SCHEDULE, "nightly")
    name = names.scheduled_run("nightly", DAYS[day])
    lsn, stamp = {"ledgerId": ledger, "entryId": 2}, text_of(FIRST + datetime.timedelta(seconds=seconds))
    status = {"phase": "Succeeded", "completedAt": text_of(DAYS[day]), "verified": "files re-read", "lsn": lsn, "restartLsn": lsn}
    manifest = f"an-instance/a-uuid/manifests/{ledger:020d}-{2:020d}.json"
    stage.set_status("Checkpoint", name, {**status, "lsnTimestamp": stamp, "latestTimestamp": stamp, "manifest": manifest})
    return name


def may_go(stage: Stage) -> tuple[int, int] | None:
    """Up to where the archiver may take segments away."""
    found = stage.ensemble.read(expiry_order_path(named(stage).herd_root, "a-uuid"))
    return None if found is None else decode_expiry_order(found[0]).keep_from


def window_begins(stage: Stage) -> dict[str, int]:
    found: dict[str, int] = stage.found(TABLESPACE, "flights")["status"]["recoveryWindow"]["fromLsn"]
    return found


def test_what_is_archived_expires_behind_a_checkpoint_that_the_schedule_keeps_for_it(stage: Stage) -> None:
    retention = {"archive": {**LOG["archive"], "retention": {"keepWithin": "1m"}}}
    stage.patch(TABLESPACE, "flights", {"spec": {"log": retention}})
    archives(stage)
    stage.settle(TABLESPACE, "flights")
    assert (may_go(stage), window_begins(stage)) == (None, {"ledgerId": 3, "entryId": 0})
    said = stage.found(TABLESPACE, "flights")["status"]["archive"]["expiry"]
    assert said == "nothing goes: no verified Checkpoint is of a moment 1m ago or before, and there is none to go on from"

    template = {"tablespaceRef": {"name": "flights"}, "destination": LOG["archive"]["destination"]}
    stage.declare(SCHEDULE, "nightly", {"schedule": "0 3 * * *", "retention": {"keepLast": 1}, "template": template})
    old, next_base, passing, newest = (
        verified(stage, day, ledger, seconds) for day, (ledger, seconds) in enumerate(((4, 20), (5, 40), (6, 60), (7, 80)))
    )
    stage.reconcile(TABLESPACE, "flights")
    assert (may_go(stage), window_begins(stage)) == (None, {"ledgerId": 4, "entryId": 2}), "the status says it before anything may go"
    stage.settle(TABLESPACE, "flights")
    assert may_go(stage) == (4, 2)
    assert "ArchiveExpires" in {event["reason"] for event in stage.events("flights")}
    with nothing_written(stage):
        stage.reconcile(TABLESPACE, "flights")
    stage.reconcile_at(DAYS[3], SCHEDULE, "nightly")
    left = [name for name in (old, next_base, passing, newest) if stage.live("Checkpoint", name) is not None]
    assert left == [old, next_base, newest], "what the window begins with, what it will begin with, and the newest"

    archives(stage, held=ArchivedRange((4, 0), 1_700_000_015_000, False, (7, 41), 1_700_000_090_000, (7, 42)))
    stage.settle(TABLESPACE, "flights")
    status = stage.found(TABLESPACE, "flights")["status"]
    assert (status["archive"]["firstLsn"], window_begins(stage)) == ({"ledgerId": 4, "entryId": 0}, {"ledgerId": 4, "entryId": 2})

    stage.delete("Checkpoint", old)
    stage.settle(TABLESPACE, "flights")
    assert (may_go(stage), window_begins(stage)) == (None, {"ledgerId": 5, "entryId": 2}), "a person may delete it, and it is told"

    archives(stage, held=ArchivedRange((4, 0), 1_700_000_015_000, False, (7, 41), 1_700_000_101_000, (7, 42)))
    stage.settle(TABLESPACE, "flights")
    assert may_go(stage) == (5, 2)
    stage.patch(TABLESPACE, "flights", {"spec": {"log": {"archive": {"retention": None}}}})
    stage.settle(TABLESPACE, "flights")
    assert may_go(stage) is None
    assert "expiry" not in stage.found(TABLESPACE, "flights")["status"]["archive"]
