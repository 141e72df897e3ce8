"""A tablespace whose log is archived, on the real API server: the archiver, what keeps the log for it, what is told, and who reads it."""

from __future__ import annotations

import base64
import datetime
import json
import time

import pytest
from sql_database import INSTANCE, TABLESPACE, named, serving_database
from stage import Stage, nothing_written

from herdkeeper.codecs.herddb.ledgers import ledgers_path
from herdkeeper.protocol.log_archive import (
    ArchivedRange,
    ArchiveProgress,
    archive_progress_path,
    decode_expiry_order,
    encode_archive_progress,
    expiry_order_path,
)
from herdkeeper.protocol.log_pin import ARCHIVE, BEGIN, StreamPin, decode_log_pin, encode_stream_pin, log_pin_path, stream_pin
from herdkeeper.shared import names
from herdkeeper.shared.names import FINALIZER
from herdkeeper.shared.time import text_of

LOG = {"archive": {"destination": {"persistentVolumeClaim": {"claimName": "archives"}}}}
CONDITION = "LogArchived"
HELD = ArchivedRange((3, 0), 1_700_000_000_000, True, (7, 41), 1_700_000_090_000, (7, 42))


@pytest.fixture
def stage(stage: Stage) -> Stage:
    made = serving_database(stage)
    made.settle(TABLESPACE, "flights")
    return made


def archives(stage: Stage, *, destination: str = "archives", held: ArchivedRange = HELD, trouble: str = "") -> None:
    """The archiver has come so far."""
    told = ArchiveProgress(destination, held, current_at_millis=int(time.time() * 1000), lag_seconds=60.2, trouble=trouble)
    path = archive_progress_path(named(stage).herd_root, "a-uuid")
    stage.ensemble.put(path, encode_archive_progress(told))
    stage.ensemble.changed_by_path[path] = time.time()


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


STORE = {
    "uri": "s3://archives/flights",
    "endpoint": "http://store:9000",
    "credentialsSecretRef": {"name": "archive-keys"},
}
PLACE = "s3://archives/flights at http://store:9000"


def create_keys(stage: Stage, **keys: str) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "archive-keys"}, "stringData": keys}
    stage.of("Secret").create(body=secret, namespace=stage.namespace)


def message(stage: Stage, kind: str, name: str, condition: str = "Ready") -> str:
    (found,) = [each for each in stage.found(kind, name)["status"]["conditions"] if each["type"] == condition]
    return str(found["message"])


def test_a_log_that_moves_into_an_object_store_is_archived_there_once_its_secret_is_whole(stage: Stage) -> None:
    stage.patch(TABLESPACE, "flights", {"spec": {"log": LOG}})
    archives(stage)
    stage.settle(TABLESPACE, "flights")
    on_volume = stage.found("Deployment", "flights-archive")["spec"]["template"]
    moved = {"archive": {"destination": {"persistentVolumeClaim": None, "objectStore": STORE}}}
    stage.patch(TABLESPACE, "flights", {"spec": {"log": moved}})
    stage.settle(TABLESPACE, "flights")
    assert stage.condition(TABLESPACE, "flights", CONDITION) == ("False", "WaitingForSecret")
    field = "spec.log.archive.destination.objectStore.credentialsSecretRef.name is archive-keys"
    assert message(stage, TABLESPACE, "flights", CONDITION).startswith(f"nothing is archived yet: {field}: the Secret does not exist")
    assert stage.found("Deployment", "flights-archive")["spec"]["template"] == on_volume, "the old one goes on meanwhile"
    assert pin(stage) == (-1, -1), "what the new place does not have is not let go"

    somewhere = {"tablespaceRef": {"name": "flights"}, "destination": {"persistentVolumeClaim": {"claimName": "checkpoints"}}}
    stage.declare("Checkpoint", "moment", somewhere)
    stage.reconcile("Checkpoint", "moment")
    assert stage.condition("Checkpoint", "moment") == ("False", "WaitingForSecret")
    assert message(stage, "Checkpoint", "moment").startswith(f"the log is archived by the Tablespace flights, whose {field}")
    assert stage.live("Job", "moment-checkpoint") is None

    create_keys(stage, AWS_ACCESS_KEY_ID="an id", AWS_SECRET_ACCESS_KEY="a secret")
    stage.settle(TABLESPACE, "flights")
    assert stage.condition(TABLESPACE, "flights", CONDITION) == ("False", "ArchiveStarting")
    template = stage.found("Deployment", "flights-archive")["spec"]["template"]
    (container,) = template["spec"]["containers"]
    assert container["args"][container["args"].index("--destination") + 1] == "s3://archives/flights"
    assert [volume["name"] for volume in template["spec"]["volumes"]] == ["tmp"], "the claim is not mounted any more"
    archives(stage, destination=PLACE, held=ArchivedRange((7, 0), 1_700_000_000_000, False, (9, 1), 1_700_000_090_000, (9, 2)))
    stage.settle(TABLESPACE, "flights")
    assert stage.condition(TABLESPACE, "flights", CONDITION) == ("True", "Archived")
    status = stage.found(TABLESPACE, "flights")["status"]["archive"]
    assert (status["objectStore"], "claimName" in status, pin(stage)) == (STORE, False, (9, 2))
    with nothing_written(stage):
        stage.reconcile(TABLESPACE, "flights")

    stage.reconcile("Checkpoint", "moment")
    (driver,) = stage.found("Job", "moment-checkpoint")["spec"]["template"]["spec"]["containers"]
    assert driver["args"][driver["args"].index("--archive") + 1] == "s3://archives/flights"
    assert {entry["name"] for entry in driver["env"] if "AWS" in entry["name"]} == {
        "ARCHIVE_AWS_ACCESS_KEY_ID",
        "ARCHIVE_AWS_SECRET_ACCESS_KEY",
        "ARCHIVE_AWS_ENDPOINT_URL",
    }


def test_other_keys_start_the_archiver_anew_and_a_secret_that_goes_stops_none_that_runs(stage: Stage) -> None:
    create_keys(stage, AWS_ACCESS_KEY_ID="an id", AWS_SECRET_ACCESS_KEY="a secret")
    stage.patch(TABLESPACE, "flights", {"spec": {"log": {"archive": {"destination": {"objectStore": STORE}}}}})
    stage.settle(TABLESPACE, "flights")
    first = stage.found("Deployment", "flights-archive")["spec"]["template"]["metadata"]["annotations"]
    stage.patch("Secret", "archive-keys", {"stringData": {"AWS_SECRET_ACCESS_KEY": "another"}})
    stage.settle(TABLESPACE, "flights")
    second = stage.found("Deployment", "flights-archive")["spec"]["template"]["metadata"]["annotations"]
    assert first != second
    archives(stage, destination=PLACE)
    stage.delete("Secret", "archive-keys")
    stage.settle(TABLESPACE, "flights")
    assert stage.found("Deployment", "flights-archive")["spec"]["template"]["metadata"]["annotations"] == second
    assert stage.condition(TABLESPACE, "flights", CONDITION) == ("True", "Archived")
    assert "another pod could not open it: spec.log.archive.destination" in message(stage, TABLESPACE, "flights", CONDITION)


def test_an_archive_that_is_to_be_encrypted_waits_for_its_key_and_checkpoints_get_it_too(stage: Stage) -> None:
    stage.patch(TABLESPACE, "flights", {"spec": {"log": LOG}})
    archives(stage)
    stage.settle(TABLESPACE, "flights")
    assert stage.live("Deployment", "flights-archive") is not None
    encryption = {"keysSecretRef": {"name": "segment-keys"}, "currentKey": "2026-11"}
    stage.patch(TABLESPACE, "flights", {"spec": {"log": {"archive": {"destination": {"encryption": encryption}}}}})
    stage.settle(TABLESPACE, "flights")
    field = "spec.log.archive.destination.encryption.keysSecretRef.name is segment-keys"
    assert f"{field}: the Secret does not exist; create it with the key 2026-11" in message(stage, TABLESPACE, "flights", CONDITION)
    assert stage.condition(TABLESPACE, "flights", CONDITION) == ("False", "WaitingForSecret")
    assert stage.live("Deployment", "flights-archive") is None, "the old one would go on in the clear"
    assert pin(stage) == (7, 42), "and what is not archived meanwhile is kept"
    somewhere = {"tablespaceRef": {"name": "flights"}, "destination": {"persistentVolumeClaim": {"claimName": "checkpoints"}}}
    stage.declare("Checkpoint", "moment", somewhere)
    stage.reconcile("Checkpoint", "moment")
    assert message(stage, "Checkpoint", "moment").startswith(f"the log is archived by the Tablespace flights, whose {field}")

    values = {"2026-11": base64.b64encode(b"k" * 32).decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "segment-keys"}, "stringData": values}
    stage.of("Secret").create(body=secret, namespace=stage.namespace)
    stage.settle(TABLESPACE, "flights")
    pod = stage.found("Deployment", "flights-archive")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"][container["args"].index("--encrypt-with") + 1] == "/encryption/segment-keys/2026-11"
    assert [volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume] == ["segment-keys"]
    stage.reconcile("Checkpoint", "moment")
    (driver,) = stage.found("Job", "moment-checkpoint")["spec"]["template"]["spec"]["containers"]
    assert "--encrypt-with" not in driver["args"]
    assert {"name": "ENCRYPTION_KEYS", "value": "/encryption/segment-keys"} in driver["env"]


SCHEDULE = "ScheduledCheckpoint"
FIRST = datetime.datetime.fromtimestamp(1_700_000_000, datetime.UTC)
DAYS = [datetime.datetime(2100, 1, day, 3, tzinfo=datetime.UTC) for day in range(1, 5)]


def verified(stage: Stage, day: int, ledger: int, seconds: int) -> str:
    """The schedule's Checkpoint of a day is due, is made, and holds what was written up to so many seconds after the log's beginning."""
    stage.reconcile_at(DAYS[day], SCHEDULE, "nightly")
    name = names.scheduled_run("nightly", DAYS[day])
    lsn, stamp = {"ledgerId": ledger, "entryId": 2}, text_of(FIRST + datetime.timedelta(seconds=seconds))
    status = {
        "phase": "Succeeded",
        "completedAt": text_of(DAYS[day]),
        "verified": "compared with follower b",
        "lsn": lsn,
        "restartLsn": lsn,
    }
    manifest = f"{INSTANCE}/a-uuid/manifests/{ledger:020d}-{2:020d}.json"
    stage.set_status("Checkpoint", name, {**status, "lsnTimestamp": stamp, "latestTimestamp": stamp, "manifest": manifest})
    return name


def may_go(stage: Stage) -> tuple[int, int] | None:
    """Up to where the archiver may take segments away."""
    found = stage.ensemble.read(expiry_order_path(named(stage).herd_root, "a-uuid"))
    return None if found is None else decode_expiry_order(found[0]).keep_from


def window_begins(stage: Stage) -> dict[str, int]:
    found: dict[str, int] = stage.found(TABLESPACE, "flights")["status"]["recoveryWindow"]["fromLsn"]
    return found


def create_volume(stage: Stage) -> None:
    """The volume claim of archive and Checkpoints."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "archives"}, "spec": spec}
    stage.of("PersistentVolumeClaim").create(body=claim, namespace=stage.namespace)


def test_what_is_archived_expires_behind_a_checkpoint_that_the_schedule_keeps_for_it(stage: Stage) -> None:
    create_volume(stage)
    retention = {"archive": {**LOG["archive"], "retention": {"keepWithin": "1m"}}}
    stage.patch(TABLESPACE, "flights", {"spec": {"log": retention}})
    archives(stage)
    stage.settle(TABLESPACE, "flights")
    assert (may_go(stage), window_begins(stage)) == (None, {"ledgerId": 3, "entryId": 0})
    said = stage.found(TABLESPACE, "flights")["status"]["archive"]["expiry"]
    assert said == "nothing expires: no verified Checkpoint is 1m old or older, and there is no base"

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
    assert left == [old, next_base, passing, newest], "what the window begins with, what it may begin with meanwhile, and the newest"

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

    stage.set_status("BookKeeperCluster", "bk", {"instanceId": None})
    stage.settle(TABLESPACE, "flights")
    assert (may_go(stage), window_begins(stage)) == (None, {"ledgerId": 5, "entryId": 2}), "nobody knows of which log the Checkpoints are"
    said = stage.found(TABLESPACE, "flights")["status"]["archive"]["expiry"]
    assert said == "nothing expires: the BookKeeperCluster bk does not report its instanceId yet, so the log's owner is unknown"
    stage.reconcile_at(DAYS[3], SCHEDULE, "nightly")
    assert stage.condition(SCHEDULE, "nightly", "Progressing") == ("True", "Unreadable")
    assert stage.live("Checkpoint", next_base) is not None
    stage.set_status("BookKeeperCluster", "bk", {"instanceId": INSTANCE})
    stage.settle(TABLESPACE, "flights")
    assert may_go(stage) == (5, 2)

    stage.patch(TABLESPACE, "flights", {"spec": {"log": {"archive": {"retention": None}}}})
    stage.settle(TABLESPACE, "flights")
    assert may_go(stage) is None
    assert "expiry" not in stage.found(TABLESPACE, "flights")["status"]["archive"]

    stage.delete("PersistentVolumeClaim", "archives")
    stage.settle(TABLESPACE, "flights")
    gone = "the window begins with no Checkpoint that is gone with its volume"
    assert "recoveryWindow" not in stage.found(TABLESPACE, "flights")["status"], gone


def log_has(stage: Stage, *opened_hours_ago: float) -> None:
    """Ledgers from 3 on, which were opened so long ago."""
    opened = [int((time.time() - hours * 3600) * 1000) for hours in opened_hours_ago]
    ids = [3 + number for number in range(len(opened))]
    document = {"activeLedgers": ids, "ledgersTimestamps": opened, "firstLedger": 3, "zkVersion": len(ids)}
    stage.ensemble.put(ledgers_path(named(stage).herd_root, "a-uuid"), json.dumps(document).encode())


def test_it_is_told_before_the_log_that_is_not_archived_yet_is_past_its_retention(stage: Stage) -> None:
    conditions = stage.found(TABLESPACE, "flights")["status"]["conditions"]
    assert "LogUsedInTime" not in [each["type"] for each in conditions], "nobody needs its log"
    stage.patch(TABLESPACE, "flights", {"spec": {"log": LOG}})
    archives(stage, held=ArchivedRange((3, 0), 0, True, (4, 8), 0, (4, 9)))
    log_has(stage, 90, 80, 10)
    stage.settle(TABLESPACE, "flights")
    assert stage.condition(TABLESPACE, "flights", "LogUsedInTime") == ("True", "UsedInTime")
    log_has(stage, 90, 80, 40)
    stage.settle(TABLESPACE, "flights")
    assert stage.condition(TABLESPACE, "flights", "LogUsedInTime") == ("False", "RetentionNears")
    told = message(stage, TABLESPACE, "flights", "LogUsedInTime")
    assert told.startswith("the log is archived up to LSN 4,9; the log after that ended at 20")
    assert ("Warning", "RetentionNears") in [(event["type"], event["reason"]) for event in stage.events("flights")]
    with nothing_written(stage):
        stage.reconcile(TABLESPACE, "flights")
    stage.ensemble.put(ledgers_path(named(stage).herd_root, "a-uuid"), b"?")
    stage.settle(TABLESPACE, "flights")
    assert stage.condition(TABLESPACE, "flights", "LogUsedInTime") == ("Unknown", "Unreadable")


def test_streams_that_keep_the_log_are_told_and_since_when_one_stands(stage: Stage) -> None:
    def pinned(stream: str, data: bytes, hours_ago: float) -> None:
        path = log_pin_path(named(stage).herd_root, "a-uuid", stream_pin(stream))
        stage.ensemble.put(path, data)
        stage.ensemble.changed_by_path[path] = time.time() - hours_ago * 3600

    log_has(stage, 90, 80, 1)
    pinned("audit", encode_stream_pin(StreamPin((4, 7), 7200)), 1)
    pinned("reads", encode_stream_pin(StreamPin((5, 7), 7200)), 0)
    pinned("gone", encode_stream_pin(StreamPin((3, 7), 7200)), 3)
    pinned("odd", b"?", 0)
    stage.settle(TABLESPACE, "flights")
    streams = stage.found(TABLESPACE, "flights")["status"]["streams"]
    assert [(each["name"], each["state"]) for each in streams] == [
        ("odd", "Unreadable"),
        ("gone", "Abandoned"),
        ("audit", "Stands"),
        ("reads", "Moves"),
    ]
    assert streams[2]["lsn"] == {"ledgerId": 4, "entryId": 7}
    assert "the position of the stream odd can't be read" in message(stage, TABLESPACE, "flights", "LogUsedInTime")
    pinned("reads", encode_stream_pin(StreamPin((5, 99), 7200)), 0)
    with nothing_written(stage):
        stage.reconcile(TABLESPACE, "flights")
