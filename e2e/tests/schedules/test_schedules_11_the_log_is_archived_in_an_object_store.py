"""The log is archived into one object store, a Checkpoint of a moment of the log goes into another one, and a tablespace is made of what is
in the two stores alone; each is opened with its own Secret. What is missing or wrong is told by the condition, and nothing of the log is
missing in the archive, though its pod is killed meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from conftest import Stack, say
from own_tablespace import made_anew, rows_of
from runs import SMALL, made, rows_of_tables
from test_schedules_3_the_log_is_archived import ROWS, archived_while_pods_and_leaders_go

from herdkeeper_e2e import built_images
from herdkeeper_e2e.archive_check import DESTINATION
from herdkeeper_e2e.archives import ARCHIVING, archived_after
from herdkeeper_e2e.conditions import condition
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.object_store import Keys
from herdkeeper_e2e.object_store_pod import ObjectStorePod
from herdkeeper_e2e.tools_pod import ToolsPod
from herdkeeper_e2e.waiting import Pending, wait_for

TABLE = "archived_in_a_store"
ARCHIVES, BACKUPS = "archive-keys", "backup-keys"
CHECKPOINT = "moment-in-another-store"
FIELD = "spec.log.archive.destination.objectStore"
RESTORED = "of-two-stores"


def place(store: ObjectStorePod, secret: str, uri: str = "s3://backups/flights") -> Object:
    return {"objectStore": {"uri": uri, "endpoint": store.address, "credentialsSecretRef": {"name": secret}}}


def archive_at(stack: Stack, destination: Object) -> None:
    """Whatever was declared before."""
    there = {"persistentVolumeClaim": None, "objectStore": None, **destination}
    stack.kubectl.want("tablespace", "flights", log={"archive": {"destination": there, "everySeconds": 5, "retention": None}})


def not_archived(stack: Stack, reason: str, words: str) -> str:
    """What the condition says, once it is False for a reason and has these words."""

    def ask() -> str | Pending:
        found = condition(stack.sql.get("tablespace", "flights"), "LogArchived")
        is_told = found is not None and (found["status"], found["reason"]) == ("False", reason) and words in found["message"]
        return str(found["message"]) if found is not None and is_told else Pending(f"{found}")

    return wait_for(f"LogArchived with {reason}", ask, ARCHIVING, say)


def keys_of(secret: str) -> Keys:
    return Keys(f"id-of-{secret}", f"secret-of-{secret}")


def check(stack: Stack, store: ObjectStorePod) -> Object:
    """What is archived in the store."""
    pod = ToolsPod(stack.kubectl, "store-archive-reader", stack.tools.database, image=built_images.SPARK)
    bookies = stack.sql.get("bookkeepercluster", "bk")
    variables = (f"{name}={value}" for name, value in {**store.variables, DESTINATION: "s3://backups/flights"}.items())
    program = pod.program("facts", "archived_log", "--ledgers-root", bookies["status"]["ledgersRoot"])
    with pod.for_a_while():
        found: Object = json.loads(stack.kubectl.exec(pod.name, "env", *variables, *program))
    return found


@contextmanager
def two_stores(stack: Stack) -> Iterator[tuple[ObjectStorePod, ObjectStorePod]]:
    """One for archives, and another one, which refuses the keys of the first. Nothing is archived any more when they go."""
    database = stack.tools.database
    with (
        ObjectStorePod.serving(stack.kubectl, database, keys_of(ARCHIVES), "archive-store") as archives,
        ObjectStorePod.serving(stack.kubectl, database, keys_of(BACKUPS), "backup-store") as backups,
    ):
        try:
            yield archives, backups
        finally:
            stack.kubectl.want("tablespace", "flights", log={"archive": None})
    stack.kubectl.run("delete", "secret", ARCHIVES, BACKUPS, "--ignore-not-found")


def test_a_log_is_archived_into_a_store_and_a_moment_of_it_is_had_in_another_one(stack: Stack) -> None:
    kubectl = stack.kubectl
    with two_stores(stack) as (archives, backups):
        archive_at(stack, place(archives, ARCHIVES))
        said = not_archived(stack, "WaitingForSecret", f"{FIELD}.credentialsSecretRef.name is {ARCHIVES}: the Secret does not exist")
        say(said)
        kubectl.create_secret(ARCHIVES, keys_of(ARCHIVES).variables)
        archived_after(kubectl, "flights", datetime.now(UTC), say)

        written, moment, found = archived_while_pods_and_leaders_go(stack, TABLE)
        assert found["archive"]["objectStore"]["endpoint"] == archives.address
        kept = archives.names()
        assert any("/log/segments/" in key for key in kept)
        assert not any("/manifests/" in key for key in kept)
        checked = check(stack, archives)
        say(f"{checked}")
        assert checked["wrong"] == []
        assert checked["to_the_end"], "the leader's move closed a ledger"

        destination = place(backups, BACKUPS)
        spec = {"tablespaceRef": {"name": "flights"}, "target": {"timestamp": moment.isoformat()}, "destination": destination, "job": SMALL}
        kubectl.create_secret(BACKUPS, keys_of(BACKUPS).variables)
        status = made(kubectl, "Checkpoint", CHECKPOINT, **spec)
        rows = rows_of_tables(status)
        assert (rows[TABLE], f"{TABLE}_later" in rows) == (len(written), False)
        stored = backups.names()
        assert {f"flights/{status['manifest']}", f"flights/{status['report']}"} < stored
        assert not any("/log/" in key for key in stored)

        files, archive = {**destination, "manifest": status["manifest"]}, place(archives, ARCHIVES)
        with made_anew(kubectl, RESTORED, files=files, archive=archive, target={"latest": True}):
            assert rows_of(kubectl, RESTORED, TABLE) == written
            # the last entry is archived with the one behind it
            assert len(rows_of(kubectl, RESTORED, f"{TABLE}_later")) >= ROWS - 1, "the checkpoint has none of them: they are of the archive"
        kubectl.run("delete", "checkpoint", CHECKPOINT)

        archive_at(stack, place(archives, ARCHIVES, "s3://no-such-bucket/flights"))
        say(not_archived(stack, "ArchiveStands", "the object store has no bucket no-such-bucket; create it, or correct the endpoint"))
        archive_at(stack, place(archives, ARCHIVES))
        archived_after(kubectl, "flights", datetime.now(UTC), say)
        assert check(stack, archives)["wrong"] == [], "it went on where it had ended"
