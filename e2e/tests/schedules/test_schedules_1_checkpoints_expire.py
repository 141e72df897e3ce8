"""Checkpoints that a schedule makes, with executors as pods, expire as its retention says, and take their files along; what is left can be
read."""

from __future__ import annotations

import json

from conftest import Stack, say
from own_tablespace import wait_for_executors
from runs import files_of, run_asked_for, runs_of, with_executors

from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.tools_pod import CHECKPOINTS, ToolsPod
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import write_rows

NAME = "flights-nightly"
EXECUTORS = 1
KEEP_ONE = {"keepLast": 1, "keepWithin": None}


def schedule(stack: Stack) -> Object:
    return stack.sql.get("scheduledcheckpoint", NAME)


def a_run_asked_for(stack: Stack) -> Object:
    """The Checkpoint that the schedule makes at once, when it has succeeded."""
    name = run_asked_for(stack, NAME)
    wait_for_executors(stack.kubectl, name, EXECUTORS)
    return wait_until_succeeded(stack.kubectl, "checkpoint", name, say)


def files(reader: ToolsPod) -> set[str]:
    """What is on the volume of checkpoints."""
    return set(files_of(reader, CHECKPOINTS))


def named_by(reader: ToolsPod, checkpoint: Object) -> set[str]:
    """A checkpoint's manifest and the files that it names."""
    manifest = checkpoint["status"]["manifest"].rpartition(f"{CHECKPOINTS}/")[2]
    text = reader.kubectl.exec(reader.name, "cat", f"{CHECKPOINTS}/{manifest}")
    folder = manifest.split("/manifests/")[0]
    return {manifest} | {f"{folder}/{file['path']}" for table in json.loads(text)["tables"] for file in table["files"]}


def test_the_older_of_two_checkpoints_goes_with_its_files_and_the_newer_stays_whole(stack: Stack) -> None:
    kubectl = stack.kubectl
    kubectl.apply(REPOSITORY / "examples/scheduled-checkpoint.yaml")
    kubectl.want("scheduledcheckpoint", NAME, retention=KEEP_ONE, template={"job": with_executors(EXECUTORS)})
    reader = ToolsPod(kubectl, "volume-reader", stack.tools.database, claim="checkpoints")
    write_rows(stack.tools, "before_the_first", 50)
    first = a_run_asked_for(stack)
    reader.start()
    of_the_first = named_by(reader, first)
    assert of_the_first <= files(reader)

    write_rows(stack.tools, "before_the_second", 50)
    second = a_run_asked_for(stack)
    wait_for("the end of the first", lambda: kubectl.gone("checkpoint", first["metadata"]["name"]), Limit(600, 1), say)
    assert runs_of(stack, NAME) == [second["metadata"]["name"]]
    left = named_by(reader, second)
    assert files(reader) == left | {second["status"]["report"]}
    assert not left & of_the_first
    wait_for(
        "the newest",
        lambda: schedule(stack)["status"].get("newestVerified") == second["metadata"]["name"] or Pending(f"{schedule(stack)['status']}"),
        Limit(60, 1),
    )


def test_a_schedule_that_is_deleted_takes_its_checkpoints_and_their_files_along(stack: Stack) -> None:
    kubectl = stack.kubectl
    reader = ToolsPod(kubectl, "volume-reader", stack.tools.database, claim="checkpoints")
    (last,) = runs_of(stack, NAME)
    kubectl.run("delete", "scheduledcheckpoint", NAME)
    wait_for("the end of the last", lambda: kubectl.gone("checkpoint", last), Limit(600, 1), say)
    assert files(reader) == set()
    kubectl.run("delete", "pod", reader.name)
