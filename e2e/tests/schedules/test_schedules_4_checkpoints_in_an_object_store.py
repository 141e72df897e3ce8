"""A checkpoint goes into an object store, written by executors that share no volume; a tablespace made from there has each of its rows, and
the checkpoint's objects go with its resource."""

from __future__ import annotations

import yaml
from conftest import TABLES, Stack, say
from runs import has_the_same_rows, status_of, with_executors

from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.conditions import message_of
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.object_store import Keys
from herdkeeper_e2e.object_store_pod import ObjectStorePod
from herdkeeper_e2e.tablespaces import VERIFIED, wait_until_ready
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

CREATED_ONCE = "flights/.herdkeeper-creates-once"
SECRET = "store-keys"
KEYS = Keys("an-id", "a-secret")
LIMIT = Limit(300, 1)


def documents(address: str) -> tuple[Object, Object]:
    """The example's Checkpoint, at the store of this scenario and with executors, and its Tablespace."""
    checkpoint, restored = yaml.safe_load_all((REPOSITORY / "examples/checkpoint-in-an-object-store.yaml").read_text())
    checkpoint["spec"] |= {"deletionPolicy": "Delete", "job": with_executors(2)}
    checkpoint["spec"]["destination"]["objectStore"]["endpoint"] = address
    return checkpoint, restored


def waits_for_its_secret(stack: Stack, name: str) -> str | Pending:
    return message_of(stack.kubectl.get("checkpoint", name), "Ready", "WaitingForSecret")


def test_a_checkpoint_in_an_object_store_is_restored_from_there_and_goes_with_its_resource(stack: Stack) -> None:
    kubectl = stack.kubectl
    with ObjectStorePod.serving(kubectl, stack.tools.database, KEYS) as store:
        checkpoint, restored = documents(store.address)
        name, made = checkpoint["metadata"]["name"], restored["metadata"]["name"]
        kubectl.apply(checkpoint)
        said = wait_for("a checkpoint without a Secret", lambda: waits_for_its_secret(stack, name), LIMIT, say)
        assert f"spec.destination.objectStore.credentialsSecretRef.name is {SECRET}: the Secret does not exist" in said
        kubectl.create_secret(SECRET, KEYS.variables)
        status = status_of(kubectl, "checkpoint", name)
        assert status["verified"].startswith("compared with follower")
        assert {CREATED_ONCE, f"flights/{status['manifest']}"} < store.names()

        kubectl.apply(restored)
        restore = wait_until_ready(kubectl, made, say)["status"]["restore"]
        assert (restore["rows"], restore["lsn"], restore["manifest"]) == (status["rows"], status["lsn"], status["manifest"])
        assert restore["objectStore"]["endpoint"] == store.address
        assert restore["verified"].endswith(VERIFIED), restore
        has_the_same_rows(stack, made, TABLES.split(","))

        kubectl.run("delete", "checkpoint", name, "--wait=false")
        wait_for("the removal of the checkpoint's objects", lambda: kubectl.gone("checkpoint", name), LIMIT, say)
        assert store.names() == {CREATED_ONCE}
    kubectl.run("delete", "tablespace", made)
    kubectl.run("delete", "secret", SECRET)
