"""A tablespace whose log is archived, on the real API server: the archiver, what keeps the log for it, what is told, and who reads it."""

from __future__ import annotations

import time

import pytest
from kubernetes.dynamic import DynamicClient
from sql_database import TABLESPACE, named, serving_database
from stage import Stage, nothing_written

from herdkeeper.domain.names import FINALIZER
from herdkeeper.formats.herddb_log_archive import ArchivedRange, ArchiveProgress, archive_progress_path, encode_archive_progress
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
