"""The pod of a restore's job is killed in the middle of its load, and in the middle of a chunk. The next one goes on with what is not there
yet, at once: each chunk is loaded once. Until all of it is compared the tablespace is not Ready, and nobody gets a Secret to connect with.

The middle is not hunted for: the loader is held at a chunk (`herdkeeper_e2e.held_chunk`), which waits for the lock of its mark."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import Stack, goes_in_the_end, say
from own_tablespace import tablespace
from runs import DRIVER, compared, kill_job, loaded_rows, made, own_volume, running_pod, the_same

from herdkeeper.protocol.job_summary import RestoreSummary
from herdkeeper.protocol.restore_bookkeeping import HEADER_STEP, RESTORE_TABLE
from herdkeeper_e2e import built_images
from herdkeeper_e2e.conditions import condition
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.tablespaces import readiness
from herdkeeper_e2e.tools_pod import ToolsPod
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_jobs.restore.bookkeeping import DEFINITION

NAME, CHECKPOINT, CLAIM, TOOLS = "halfway", "to-halfway", "halfway-files", "halfway-tools"
ONE_BY_ONE = {"resources": DRIVER, "localThreads": 1}
"""One thread loads the chunks in their order."""
PROGRAM = "herdkeeper_jobs[.]restore[.]cli"
PODS = f"app.kubernetes.io/name=restore,herdkeeper.io/owner-name={NAME}"
LIMIT = Limit(300, 0.5)


@pytest.fixture(scope="module")
def checkpoint(request: pytest.FixtureRequest, stack: Stack) -> Object:
    """The status of a Checkpoint of the quickstart's tables, on a volume of this scenario's own."""
    place = own_volume(request, stack.kubectl, CLAIM)
    goes_in_the_end(request, stack.kubectl, "checkpoint", CHECKPOINT)
    spec = {"tablespaceRef": {"name": "flights"}, "destination": place, "job": ONE_BY_ONE, "deletionPolicy": "Delete"}
    return made(stack.kubectl, "Checkpoint", CHECKPOINT, **spec)


@pytest.fixture(scope="module")
def tools(request: pytest.FixtureRequest, stack: Stack, checkpoint: Object) -> ToolsPod:
    """Where SQL is spoken to the tablespace that is about to be made, and the volume is mounted."""
    goes_in_the_end(request, stack.kubectl, "tablespace", NAME)
    goes_in_the_end(request, stack.kubectl, "pod", TOOLS)
    database = replace(stack.tools.database, tablespace=NAME)
    return ToolsPod(stack.kubectl, TOOLS, database, image=built_images.SPARK, claim=CLAIM).start()


def marks(tools: ToolsPod) -> dict[str, int]:
    """Each chunk that is loaded, with its rows."""
    rows = tools.query(f"SELECT step, loaded FROM {RESTORE_TABLE}")
    steps = {str(row["step"]): int(row["loaded"]) for row in rows if row["step"] != HEADER_STEP}
    return {step: loaded for step, loaded in steps.items() if not step.startswith(DEFINITION)}


def chunks_before_the_one_that_is_held(tools: ToolsPod, number: int) -> dict[str, int]:
    """All of them, once they are loaded, with their rows."""

    def ask() -> dict[str, int] | Pending:
        loaded = marks(tools)
        return loaded if len(loaded) >= number else Pending(f"{len(loaded)} chunks of {number} before the one that is held")

    loaded = wait_for("the chunk that is held", ask, LIMIT, say)
    assert len(loaded) == number, "the loader went past it"
    return loaded


def rows_there(tools: ToolsPod, checkpoint: Object) -> int:
    """How many rows the checkpoint's tables have, all in all; other scenarios may have left tables of their own in it."""
    return sum(int(tools.query(f"SELECT COUNT(*) AS n FROM `{table['name']}`")[0]["n"]) for table in checkpoint["tables"])


def require_not_ready(stack: Stack) -> None:
    """It says that it is being restored, and clients can't connect."""
    ready = condition(stack.sql.get("tablespace", NAME), "Ready")
    assert ready is not None
    assert (ready["status"], ready["reason"]) == ("False", "Restoring")
    assert stack.kubectl.get("secret", f"{NAME}-connection") is None


def kill_driver(stack: Stack) -> str:
    """It is gone at once; its name, once its pod has failed."""
    pod = running_pod(stack.kubectl, PODS)
    kill_job(stack, pod, PROGRAM)
    return str(pod["metadata"]["name"])


def restored(stack: Stack) -> Object:
    """The tablespace, once it is Ready, which it is not before its content is verified."""

    def ask() -> Object | Pending:
        secret = stack.kubectl.get("secret", f"{NAME}-connection")
        item = stack.sql.get("tablespace", NAME)  # after the Secret: what made that one is in here
        found = readiness(NAME, item)
        verified = "verified" in item.get("status", {}).get("restore", {})
        assert verified or (secret is None and isinstance(found, Pending)), "it was given to clients before it was compared"
        return found

    return wait_for("the restore", ask, Limit(600, 0.5), say)


def said_by(pod: Object) -> RestoreSummary:
    """What a job's pod has left as its last word."""
    (container,) = pod["status"]["containerStatuses"]
    return RestoreSummary.from_json(container["state"]["terminated"]["message"])


def test_a_restore_whose_pod_is_killed_in_the_middle_goes_on_and_loads_each_chunk_once(
    stack: Stack, tools: ToolsPod, checkpoint: Object
) -> None:
    held = tools.steered("held_chunk")
    stack.kubectl.apply(tablespace(NAME, bootstrap={"checkpoint": {"name": CHECKPOINT}, "job": ONE_BY_ONE}))
    held.has_acknowledged(1, LIMIT)
    loaded = chunks_before_the_one_that_is_held(tools, held.acknowledged)
    require_not_ready(stack)
    assert 0 < rows_there(tools, checkpoint) == sum(loaded.values()) < checkpoint["rows"]

    killed = kill_driver(stack)
    held.stop()
    assert marks(tools) == loaded, "nothing of the chunk in the middle is there"
    require_not_ready(stack)

    found = restored(stack)["status"]["restore"]
    say(f"{found['rows']} rows in {found['durationSeconds']} s: {found['verified']}")
    assert (found["phase"], found["rows"], found["lsn"]) == ("Succeeded", checkpoint["rows"], checkpoint["lsn"])
    (last,) = [pod for pod in stack.kubectl.list("pods", PODS) if pod["metadata"]["name"] != killed]
    assert said_by(last).rows_loaded == checkpoint["rows"] - sum(loaded.values()), "each chunk once"
    rows = loaded_rows(checkpoint)
    assert compared(tools, rows) == the_same(rows)
    stack.wait_until_ready()
