"""A Checkpoint is made from an earlier one and the log behind it, encrypted, in an object store in which the log is archived and encrypted,
too. A tablespace made of the store alone has each row, the last ones from the archive, and the store shows nothing of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from conftest import Stack, goes_in_the_end, say
from own_tablespace import made_anew, rows_of
from runs import SMALL, has_the_same_rows, made, new_key

from herdkeeper_e2e.archives import archived_after
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.object_store import Keys
from herdkeeper_e2e.object_store_pod import ObjectStorePod
from herdkeeper_e2e.tools_pod import WORK
from herdkeeper_e2e.writer_process import write_rows

TABLE, ROWS = "behind_the_first_checkpoint", 100
STORE_KEYS, FILE_KEYS, KEY = "whole-store-keys", "whole-file-keys", "2026-11"
KEYS = Keys("whole-id", "whole-secret")
MADE = "from-the-store-alone"
SEARCH = f'grep -rlaF -e "$1" {WORK}/buckets || true'


@pytest.fixture
def store(stack: Stack, request: pytest.FixtureRequest) -> Iterator[ObjectStorePod]:
    """An empty store, and the Secrets that open it and what is encrypted. Nothing is archived any more when it goes."""
    kubectl = stack.kubectl
    goes_in_the_end(request, kubectl, "secret", STORE_KEYS, FILE_KEYS)
    goes_in_the_end(request, kubectl, "tablespace", MADE)
    kubectl.create_secret(STORE_KEYS, KEYS.variables)
    kubectl.create_secret(FILE_KEYS, {KEY: new_key()})
    with ObjectStorePod.serving(kubectl, stack.tools.database, KEYS, "whole-store") as served:
        try:
            yield served
        finally:
            kubectl.want("tablespace", "flights", log={"archive": None})


def place(store: ObjectStorePod) -> Object:
    """Of checkpoints and of the archive."""
    opened: Object = {"uri": "s3://backups/flights", "endpoint": store.address, "credentialsSecretRef": {"name": STORE_KEYS}}
    return {"objectStore": opened, "encryption": {"keysSecretRef": {"name": FILE_KEYS}}}


def checkpoint(stack: Stack, store: ObjectStorePod, name: str) -> Object:
    """Its status, once it has succeeded. It goes on from the newest one that is there, though the whole log is there, too."""
    spec = {"tablespaceRef": {"name": "flights"}, "mode": "Incremental", "destination": place(store), "job": SMALL}
    return made(stack.kubectl, "Checkpoint", name, **spec)


def in_the_clear(store: ObjectStorePod, word: str) -> list[str]:
    """The store's files in which a word stands."""
    return store.tools.kubectl.exec(store.tools.name, "sh", "-c", SEARCH, "sh", word).split()


def test_a_checkpoint_made_from_another_one_and_the_log_behind_it_are_restored_from_an_encrypted_store(
    stack: Stack, store: ObjectStorePod
) -> None:
    kubectl = stack.kubectl
    kubectl.want("tablespace", "flights", log={"archive": {"destination": place(store), "everySeconds": 5}})
    first = checkpoint(stack, store, "whole-first")
    write_rows(stack.tools, TABLE, ROWS)
    second = checkpoint(stack, store, "whole-second")
    assert second["base"] == first["lsn"]
    assert second["entriesRead"] < first["rows"], "only the log behind the first one is read"
    assert (first["encryptedWith"], second["encryptedWith"]) == (KEY, KEY)
    assert second["verified"].startswith("compared with follower")

    write_rows(stack.tools, f"{TABLE}_later", ROWS)
    archived_after(kubectl, "flights", datetime.now(UTC), say)
    kept = store.names()
    assert f"flights/{second['manifest']}" in kept
    assert any("/log/segments/" in name for name in kept)
    assert in_the_clear(store, "Endeavor Air Inc.") == []
    assert in_the_clear(store, "carrier") == []

    files = {**place(store), "manifest": second["manifest"]}
    with made_anew(kubectl, MADE, files=files, archive=place(store), target={"latest": True}):
        has_the_same_rows(stack, MADE, ("airlines", "planes", TABLE))
        # the last entry is archived with the one behind it
        assert len(rows_of(kubectl, MADE, f"{TABLE}_later")) >= ROWS - 1, "the checkpoint has none of them: they are of the archive"
    kubectl.run("delete", "checkpoint", "whole-first", "whole-second")
