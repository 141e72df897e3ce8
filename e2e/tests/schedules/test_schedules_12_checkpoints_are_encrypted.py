"""An encrypted checkpoint: nothing of its rows can be read on its volume, a tablespace made from it has each of them, another key makes
nothing, and it goes with its resource though its key is gone."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml
from conftest import START, TABLES, Stack, say
from own_tablespace import tablespace
from runs import SMALL, claimed, has_the_same_rows, new_key, reading, status_of, with_executors

from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.conditions import message_of
from herdkeeper_e2e.kubectl import Object, resource
from herdkeeper_e2e.tablespaces import VERIFIED, wait_until_ready
from herdkeeper_e2e.tools_pod import CHECKPOINTS, ToolsPod
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

SECRET, WRONG, KEY = "backup-keys", "wrong-keys", "2026-11"
PLAIN = "plain-checkpoints"
LIMIT = Limit(300, 1)
END = Limit(900, 2)
SEARCH = f"""
import json, pathlib, sys
words = [word.encode() for word in json.load(sys.stdin)]
files = [path for path in pathlib.Path({CHECKPOINTS!r}).rglob("*") if path.is_file()]
found = [str(path) for path in files if any(word in path.read_bytes() for word in words)]
print(json.dumps({{"files": len(files), "found": found}}))
"""


@pytest.fixture
def example(stack: Stack) -> Iterator[tuple[Object, Object, Object]]:
    """The example's volume, Checkpoint (with an executor, which has to get the keys, too) and Tablespace; then nothing of it is left."""
    volume, checkpoint, restored = yaml.safe_load_all((REPOSITORY / "examples/encrypted-checkpoint.yaml").read_text())
    checkpoint["spec"] |= {"deletionPolicy": "Delete", "job": with_executors(1)}
    yield volume, checkpoint, restored
    for kind, name in (("secret", WRONG), ("persistentvolumeclaim", PLAIN), ("persistentvolumeclaim", volume["metadata"]["name"])):
        stack.kubectl.run("delete", kind, name, "--ignore-not-found", "--wait=false")


def plain_beside(checkpoint: Object, volume: Object) -> list[Object]:
    """The same checkpoint in the clear, on a volume of its own: what the search has to find there."""
    plain = resource("Checkpoint", "flights-plain", **{**checkpoint["spec"], "destination": claimed(PLAIN), "job": SMALL})
    return [{**volume, "metadata": {"name": PLAIN}}, plain]


def with_the_wrong_key(checkpoint: Object, manifest: str) -> Object:
    """A Tablespace from the checkpoint's files, with a Secret that has another key under the same name."""
    files = {**checkpoint["spec"]["destination"], "encryption": {"keysSecretRef": {"name": WRONG}}, "manifest": manifest}
    return tablespace("from-wrong-key", replicas=1, bootstrap={"files": files, "job": SMALL})


def said(stack: Stack, kind: str, name: str, reason: str) -> str | Pending:
    """The message of the condition Ready, once it has this reason."""
    return message_of(stack.kubectl.get(kind, name), "Ready", reason)


def remove(stack: Stack, kind: str, name: str) -> None:
    stack.kubectl.run("delete", kind, name, "--wait=false")
    wait_for(f"the end of {kind} {name}", lambda: stack.kubectl.gone(kind, name), END, say)


def searched(pod: ToolsPod, words: list[str]) -> tuple[int, list[str]]:
    """How many files the pod's volume has, and those in which one of the words stands."""
    answer = json.loads(pod.kubectl.exec(pod.name, "python3", "-c", SEARCH, stdin=json.dumps(words).encode()))
    return int(answer["files"]), list(answer["found"])


def test_an_encrypted_checkpoint_is_restored_with_its_key_only_and_shows_nothing_of_its_rows(
    stack: Stack, example: tuple[Object, Object, Object]
) -> None:
    kubectl, (volume, checkpoint, restored) = stack.kubectl, example
    name, made, claim = checkpoint["metadata"]["name"], restored["metadata"]["name"], volume["metadata"]["name"]
    kubectl.apply_all([volume, checkpoint, *plain_beside(checkpoint, volume)])
    waiting = wait_for("a checkpoint without keys", lambda: said(stack, "checkpoint", name, "WaitingForSecret"), LIMIT, say)
    assert f"spec.destination.encryption.keysSecretRef.name is {SECRET}: the Secret does not exist; create it with the key {KEY}" in waiting
    kubectl.create_secret(SECRET, {KEY: new_key()})
    status = status_of(kubectl, "checkpoint", name)
    assert status["encryptedWith"] == KEY
    assert status["verified"].startswith("compared with follower")
    assert "encryptedWith" not in status_of(kubectl, "checkpoint", "flights-plain")

    # Parquet's footers show columns' names and their lowest and highest values, unless they are encrypted.
    words = ["carrier", *(str(row["name"]) for row in stack.tools.query("SELECT name FROM airlines"))]
    volumes = {each: ToolsPod(kubectl, f"{each}-tools", stack.tools.database, claim=each) for each in (claim, PLAIN)}
    for pod in volumes.values():
        pod.start()
    (files, found), (_, found_in_plain) = (searched(volumes[each], words) for each in (claim, PLAIN))
    assert found_in_plain != [], "the search finds nothing where there is something to find"
    assert files > len(TABLES.split(","))
    assert found == []

    kubectl.apply(restored)
    restore = wait_until_ready(kubectl, made, say)["status"]["restore"]
    assert (restore["rows"], restore["lsn"], restore["manifest"]) == (status["rows"], status["lsn"], status["manifest"])
    assert restore["encryption"]["keysSecretRef"]["name"] == SECRET
    assert restore["verified"].endswith(VERIFIED), restore
    has_the_same_rows(stack, made, TABLES.split(","))

    kubectl.create_secret(WRONG, {KEY: new_key()})
    wrong = with_the_wrong_key(checkpoint, status["manifest"])
    kubectl.apply(wrong)
    refused = wait_for(
        "the refusal of the wrong key", lambda: said(stack, "tablespace", wrong["metadata"]["name"], "RestoreFailed"), START, say
    )
    say(refused)
    assert f"is encrypted with the key '{KEY}'" in refused
    assert f"the Secret {WRONG} has another key of this name" in refused
    with reading(kubectl, wrong["metadata"]["name"]) as empty:
        assert not set(TABLES.split(",")) & {str(row["table_name"]) for row in empty.query("SELECT * FROM systables")}
    remove(stack, "tablespace", wrong["metadata"]["name"])

    # What removes files needs no key.
    kubectl.run("delete", "secret", SECRET)
    remove(stack, "checkpoint", name)
    assert searched(volumes[claim], words) == (0, [])
    remove(stack, "checkpoint", "flights-plain")
    for pod in volumes.values():
        kubectl.run("delete", "pod", pod.name)
    remove(stack, "tablespace", made)
