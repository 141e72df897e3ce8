"""Checkpoints that a schedule makes, with executors as pods, expire as its retention says, and take their files along; what is left can be
read."""

from __future__ import annotations

import json

from conftest import Stack, say
from own_tablespace import wait_for_executors, with_executors

from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.tools_pod import CHECKPOINTS, ToolsPod
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import write_rows

NAME = "flights-nightly"
EXECUTORS = 1
KEEP_ONE = {"keepLast": 1, "keepWithin": None}
FILES = f"import pathlib; [print(path.relative_to('{CHECKPOINTS}')) for path in pathlib.Path('{CHECKPOINTS}').rglob('*') if path.is_file()]"


def schedule(stack: Stack) -> Object:
    return stack.sql.get("scheduledcheckpoint", NAME)


def runs(stack: Stack) -> list[str]:
    return [each["metadata"]["name"] for each in stack.kubectl.list("checkpoints", f"herdkeeper.io/owner-name={NAME}")]


def a_run_asked_for(stack: Stack) -> Object:
    """The Checkpoint that the schedule makes at once, when it has succeeded."""
    before = runs(stack)
    stack.kubectl.run("annotate", "scheduledcheckpoint", NAME, "herdkeeper.io/run-now=yes")

    def ask() -> str | Pending:
        new = [name for name in runs(stack) if name not in before]
        return new[0] if new else Pending(f"{schedule(stack).get('status')}")

    name = wait_for("the Checkpoint that was asked for", ask, Limit(120, 0.5))
    wait_for_executors(stack.kubectl, name, EXECUTORS)
    return wait_until_succeeded(stack.kubectl, "checkpoint", name, say)


def files(reader: ToolsPod) -> set[str]:
    """What is on the volume of checkpoints."""
    return set(reader.kubectl.exec(reader.name, "python3", "-c", FILES).split())


def named_by(reader: ToolsPod, checkpoint: Object) -> set[str]:
    """A checkpoint's manifest and the files that it names."""
    manifest = checkpoint["status"]["manifest"].rpartition(f"{CHECKPOINTS}/")[2]
    text = reader.kubectl.exec(reader.name, "cat", f"{CHECKPOINTS}/{manifest}")
    folder = manifest.split("/manifests/")[0]
    return {manifest} | {f"{folder}/{file['path']}" for table in json.loads(text)["tables"] for file in table["files"]}


def gone(stack: Stack, name: str) -> bool | Pending:
    found = stack.kubectl.get("checkpoint", name)
    return True if found is None else Pending(f"{name}: {found['status'].get('conditions')}")


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
    wait_for("the end of the first", lambda: gone(stack, first["metadata"]["name"]), Limit(600, 1), say)
    assert runs(stack) == [second["metadata"]["name"]]
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
    (last,) = runs(stack)
    kubectl.run("delete", "scheduledcheckpoint", NAME)
    wait_for("the end of the last", lambda: gone(stack, last), Limit(600, 1), say)
    assert files(reader) == set()
    kubectl.run("delete", "pod", reader.name)
