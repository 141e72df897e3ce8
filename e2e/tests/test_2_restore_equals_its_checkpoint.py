"""A tablespace made from a checkpoint has each of its rows, is Ready only then, and its own follower agrees."""

from __future__ import annotations

import json

from conftest import START, TABLES, Stack, say

from herdkeeper_e2e import built_images
from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.conditions import condition, not_ready_reason
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.tablespaces import VERIFIED
from herdkeeper_e2e.tools_pod import CHECKPOINTS, Database, ToolsPod
from herdkeeper_e2e.waiting import Pending, wait_for

NAME = "restored"
OF_ITS_OWN = {
    "apiVersion": "herdkeeper.io/v1alpha1",
    "kind": "Checkpoint",
    "metadata": {"name": f"{NAME}-1"},
    "spec": {
        "tablespaceRef": {"name": NAME},
        "destination": {"persistentVolumeClaim": {"claimName": "checkpoints"}},
        "verify": "Follower",
    },
}
"""A checkpoint of what was restored: its job compares each table with the follower of the new tablespace, or fails."""


def restored(kubectl: Kubectl) -> Object | Pending:
    """The tablespace once it is Ready. Until its content is verified, clients get no Secret to connect with."""
    could_connect = kubectl.get("secret", f"{NAME}-connection") is not None  # read first: the phase may change after it
    item = kubectl.existing("tablespace", NAME)
    phase = item.get("status", {}).get("restore", {}).get("phase")
    assert phase == "Succeeded" or not could_connect, f"clients could connect while the phase is {phase}"
    ready = condition(item, "Ready")
    assert ready is None or ready["reason"] not in ("RestoreFailed", "InvalidSpec"), ready
    reason = not_ready_reason(item)
    return Pending(f"tablespace {NAME}: {reason}") if reason else item


def digests(reader: ToolsPod, manifest: str) -> dict[str, tuple[int, str]]:
    """By table the rows of a checkpoint, and their order-free digest."""
    tables = json.loads(reader.kubectl.exec(reader.name, "cat", f"{CHECKPOINTS}/{manifest}"))["tables"]
    return {table["name"]: (table["rows"], table["digest"]) for table in tables}


def drops_its_data(kubectl: Kubectl) -> bool | Pending:
    """Whether the operator has seen that a deletion shall drop the tablespace."""
    item = kubectl.get("tablespace", NAME)
    return True if item is not None and item["metadata"].get("finalizers") else Pending("no finalizer yet")


def test_a_tablespace_made_from_a_checkpoint_has_each_of_its_rows(stack: Stack) -> None:
    kubectl = stack.kubectl
    kubectl.apply(REPOSITORY / "examples/checkpoint.yaml")
    checkpoint = wait_until_succeeded(kubectl, "checkpoint", "flights-1", say)["status"]
    kubectl.apply(REPOSITORY / "examples/restore.yaml")
    status = wait_for("the restore", lambda: restored(kubectl), START, say)["status"]
    restore = status["restore"]
    say(f"{restore['rows']} rows in {restore['durationSeconds']} s: {restore['verified']}")

    assert (restore["phase"], restore["rows"], restore["lsn"]) == ("Succeeded", checkpoint["rows"], checkpoint["lsn"])
    assert restore["manifest"] == checkpoint["manifest"]
    # no table was altered, so each digest is the one that the checkpoint's job compared with a follower
    assert restore["verified"].endswith(VERIFIED)

    # row by row, by a program that knows nothing of digests
    reader = ToolsPod(kubectl, "restored-reader", Database.of(kubectl, "db", "bk", NAME), image=built_images.SPARK, claim="checkpoints")
    reader.start()
    compared = json.loads(reader.run("compare", "--tables", TABLES))
    rows = {table["name"]: table["rows"] for table in checkpoint["tables"]}
    assert {name: (found["rows_in_sql"], found["rows_in_checkpoint"], found["differing"]) for name, found in compared.items()} == {
        name: (rows[name], rows[name], []) for name in TABLES.split(",")
    }

    kubectl.apply(json.dumps(OF_ITS_OWN))
    own = wait_until_succeeded(kubectl, "checkpoint", f"{NAME}-1", say)["status"]
    assert own["verified"].startswith("compared with follower")
    assert {table["name"]: table["rows"] for table in own["tables"]} == rows
    # either was compared with a follower of its own: what the restored one has stored is what the first one had at the checkpoint's LSN
    assert digests(reader, own["manifest"]) == digests(reader, checkpoint["manifest"])
    kubectl.run("delete", "pod", reader.name)
    kubectl.run("delete", "checkpoint", f"{NAME}-1", "--timeout=600s", timeout_seconds=610)

    kubectl.want("tablespace", NAME, deletionPolicy="Delete")
    wait_for("the finalizer that drops it", lambda: drops_its_data(kubectl), START, say)
    kubectl.run("delete", "tablespace", NAME, "--timeout=600s", timeout_seconds=610)
