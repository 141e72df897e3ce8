"""The pod of a checkpoint's job is killed when its executors run, when it has written all files, and right after its manifest. Each time
the next pod completes what was declared, and all the while every checkpoint can be read. Of two runs for one position one wins.

No step is hunted for by its time: the job is held where it looks at a name among the manifests (`herdkeeper_e2e.hold`). At the name of its
own manifest that is when it commits, with all files written; at another one it is when it makes the report, with its manifest written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Stack, say
from own_tablespace import OwnTablespace
from runs import files_of, kill_job, with_executors

from herdkeeper_e2e.hold import Hold
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.steered_process import SteeredProcess
from herdkeeper_e2e.tools_pod import CHECKPOINTS
from herdkeeper_jobs.manifests.manifest import Position, manifest_path
from herdkeeper_jobs.wal.lsn import Lsn

DRIVER = "herdkeeper_jobs[.]checkpoint[.]cli"
EXECUTORS = 1
TWINS = ("one-twin", "other-twin")
GOES = {"deletionPolicy": "Delete"}
NO_CHECKPOINT = Lsn(0, 0)
"""Before the tables are there: whoever reads all manifests comes to that name, and nobody makes it."""


class CheckpointWatch(SteeredProcess):
    """Reads every checkpoint of the volume again and again; `acknowledged` counts how often."""

    def __init__(self, own: OwnTablespace) -> None:
        super().__init__(own.stack.kubectl, own.tools.name, own.tools.program("checkpoint_watch"))

    def found(self) -> dict[str, Any]:
        """Ends it: how many checkpoints there were last, and what was wrong at any time."""
        self.stop()
        said: dict[str, Any] = json.loads(self.last_line)
        return said


@pytest.fixture(scope="module")
def own(request: pytest.FixtureRequest, stack: Stack) -> OwnTablespace:
    return OwnTablespace.made(request, stack, "killed")


def files(own: OwnTablespace) -> list[str]:
    """What is on the volume."""
    return files_of(own.tools, CHECKPOINTS)


def manifests(own: OwnTablespace) -> list[str]:
    """Of the checkpoints that there are; what begins with a dot is none."""
    return sorted(path for path in files(own) if path.split("/")[-2:-1] == ["manifests"] and not path.split("/")[-1].startswith("."))


def written_by(own: OwnTablespace, checkpoint: str) -> list[str]:
    """Files of rows that the runs of a Checkpoint have left."""
    return [path for path in files(own) if f"/data/{uid_of(own, checkpoint)}/" in path]


def uid_of(own: OwnTablespace, checkpoint: str) -> str:
    return str(own.stack.sql.get("checkpoint", checkpoint)["metadata"]["uid"])


def manifest_of(own: OwnTablespace, lsn: Lsn) -> str:
    """Where the manifest of an LSN is, or would be, in the pod that mounts the volume. There is a checkpoint already."""
    return str(manifest_path(Path(CHECKPOINTS, manifests(own)[0]).parent.parent, lsn))


def kill_driver(own: OwnTablespace, driver: Object) -> str:
    """The driver is gone at once; its uid, once its pod has failed."""
    kill_job(own.stack, driver, DRIVER)
    return str(driver["metadata"]["uid"])


def test_a_run_that_is_killed_before_its_manifest_leaves_the_checkpoint_of_before_and_its_retry_makes_the_new_one(
    own: OwnTablespace,
) -> None:
    own.write_some_rows("before_the_old")
    old = own.checkpoint("old", **GOES)
    own.write_some_rows("before_the_new")
    watch = CheckpointWatch(own)
    watch.acknowledges(1)
    assert len(manifests(own)) == 1

    position = own.log_position()
    with Hold.at(own.tools, manifest_of(own, Position.model_validate(position).lsn)) as commit:
        # Full: a run that looks for a base comes to its own name before it has written anything
        own.declare_checkpoint("new", mode="Full", target={"lsn": position}, job=with_executors(EXECUTORS), **GOES)
        driver = own.driver_of("new")
        own.wait_for_executors("new", EXECUTORS)
        killed = kill_driver(own, driver)
        before = commit.arrivals
        assert len(manifests(own)) == 1

        driver = own.driver_of("new", frozenset({killed}))
        commit.wait_for_arrival(before + 1)
        commit.give_up_the_name()
        kill_driver(own, driver)
    assert len(manifests(own)) == 1
    assert written_by(own, "new"), "it was killed before it wrote"
    watch.acknowledges(1)

    new = own.status_of("new")
    assert new["lsn"] == position
    assert Position.model_validate(position).lsn > Position.model_validate(old["lsn"]).lsn
    assert {"before_the_old", "before_the_new"} <= {table["name"] for table in new["tables"]}
    assert "compared" in new["verified"]
    assert len(manifests(own)) == 2
    watch.acknowledges(1)
    found = watch.found()
    say(f"{found}")
    assert (found["checkpoints"], found["wrong"]) == (2, [])


def test_a_run_that_is_killed_right_after_its_manifest_is_found_done(own: OwnTablespace) -> None:
    own.write_some_rows("before_the_last")
    before = manifests(own)
    watch = CheckpointWatch(own)
    with Hold.at(own.tools, manifest_of(own, NO_CHECKPOINT)) as report:
        own.declare_checkpoint("last", target={"lsn": own.log_position()}, **GOES)
        driver = own.driver_of("last")
        report.wait_for_arrival(1)
        report.give_up_the_name()
        kill_driver(own, driver)
    (made,) = sorted(set(manifests(own)) - set(before))
    status = own.status_of("last")
    assert "existed already" in status["message"]
    assert status["manifest"] == made
    assert manifests(own) == sorted([*before, made])
    watch.acknowledges(1)
    assert watch.found()["wrong"] == []


def test_of_two_runs_for_one_position_one_wins_and_the_other_leaves_nothing(own: OwnTablespace) -> None:
    own.write_some_rows("before_the_twins")
    position = own.log_position()
    for name in TWINS:
        own.declare_checkpoint(name, target={"lsn": position}, verify="Reread", **GOES)
    statuses = [own.status_of(name) for name in TWINS]
    assert statuses[0]["manifest"] == statuses[1]["manifest"]
    assert sorted("existed already" in status["message"] for status in statuses) == [False, True]
    assert sorted(bool(written_by(own, name)) for name in TWINS) == [False, True]


def test_nothing_is_left_of_runs_that_were_killed_once_their_checkpoints_are_deleted(own: OwnTablespace) -> None:
    assert [path for path in files(own) if "/data/" in path]
    for name in ("old", "new", "last", *TWINS):
        own.stack.kubectl.run("delete", "checkpoint", name, timeout_seconds=300)
    assert [path for path in files(own) if "/data/" in path] == []
    assert manifests(own) == []
