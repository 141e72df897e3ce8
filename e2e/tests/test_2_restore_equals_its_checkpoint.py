"""A tablespace made from a checkpoint has each of its rows, is Ready only then, and its own follower agrees."""

from __future__ import annotations

import json

from conftest import START, Stack, say
from runs import claimed, compared, loaded_rows, made, rows_of_tables, status_of, the_same

from herdkeeper_e2e import built_images
from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.conditions import condition, not_ready_reason
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.tablespaces import VERIFIED
from herdkeeper_e2e.tools_pod import CHECKPOINTS, Database, ToolsPod
from herdkeeper_e2e.waiting import Pending, wait_for

NAME = "restored"


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
    checkpoint = status_of(kubectl, "checkpoint", "flights-1")
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
    loaded = loaded_rows(checkpoint)
    assert compared(reader, loaded) == the_same(loaded)

    # the job of a checkpoint of what was restored compares each table with the follower of the new tablespace, or fails
    spec = {"tablespaceRef": {"name": NAME}, "destination": claimed("checkpoints"), "verify": "Follower"}
    own = made(kubectl, "Checkpoint", f"{NAME}-1", **spec)
    assert own["verified"].startswith("compared with follower")
    assert rows_of_tables(own) == rows_of_tables(checkpoint)
    # either was compared with a follower of its own: what the restored one has stored is what the first one had at the checkpoint's LSN
    assert digests(reader, own["manifest"]) == digests(reader, checkpoint["manifest"])
    kubectl.run("delete", "pod", reader.name)
    kubectl.run("delete", "checkpoint", f"{NAME}-1", "--timeout=600s", timeout_seconds=610)

    kubectl.want("tablespace", NAME, deletionPolicy="Delete")
    wait_for("the finalizer that drops it", lambda: drops_its_data(kubectl), START, say)
    kubectl.run("delete", "tablespace", NAME, "--timeout=600s", timeout_seconds=610)
