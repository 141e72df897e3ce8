"""The pod of a checkpoint's job is killed when its executors run, when it has written files, and right after its manifest. Each time the
next pod completes what was declared, and all the while every checkpoint can be read. Of two runs for one position one wins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Stack, say
from own_tablespace import OwnTablespace, with_executors

from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.pod_process import kill_once
from herdkeeper_e2e.steered_process import SteeredProcess
from herdkeeper_e2e.tools_pod import CHECKPOINTS
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

DRIVER = "herdkeeper_jobs[.]checkpoint[.]cli"
FILES = f"import pathlib; [print(path.relative_to('{CHECKPOINTS}')) for path in pathlib.Path('{CHECKPOINTS}').rglob('*') if path.is_file()]"
EXECUTORS = 1
TWINS = ("one-twin", "other-twin")
GOES = {"deletionPolicy": "Delete"}


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
def own(stack: Stack) -> Iterator[OwnTablespace]:
    with OwnTablespace.made(stack, "killed") as made:
        yield made


def files(own: OwnTablespace) -> list[str]:
    """What is on the volume."""
    return own.stack.kubectl.exec(own.tools.name, "python3", "-c", FILES).split()


def manifests(own: OwnTablespace) -> list[str]:
    """Of the checkpoints that there are; what begins with a dot is none."""
    return sorted(path for path in files(own) if path.split("/")[-2:-1] == ["manifests"] and not path.split("/")[-1].startswith("."))


def written_by(own: OwnTablespace, checkpoint: str) -> list[str]:
    """Files of rows that the runs of a Checkpoint have left."""
    return [path for path in files(own) if f"/data/{uid_of(own, checkpoint)}/" in path]


def uid_of(own: OwnTablespace, checkpoint: str) -> str:
    return str(own.stack.sql.get("checkpoint", checkpoint)["metadata"]["uid"])


def on_its_machine(own: OwnTablespace) -> str:
    """Where the volume is on the machine of the pods that mount it."""
    claim = own.destination["persistentVolumeClaim"]["claimName"]
    volume = own.stack.sql.get("persistentvolume", own.stack.sql.get("persistentvolumeclaim", claim)["spec"]["volumeName"])["spec"]
    return str((volume.get("local") or volume["hostPath"])["path"])


def kill(own: OwnTablespace, driver: Object, condition: str = "true") -> str:
    """The driver is gone as soon as the condition holds; its uid, once its pod has failed."""
    name, uid = driver["metadata"]["name"], str(driver["metadata"]["uid"])
    own.stack.sql.on_machine(driver["spec"]["nodeName"], kill_once(driver, DRIVER, condition))

    def ask() -> bool | Pending:
        phase = own.stack.sql.get("pod", name)["status"]["phase"]
        assert phase != "Succeeded", "it had ended before"
        return True if phase == "Failed" else Pending(phase)

    wait_for(f"the end of {name}", ask, Limit(120, 0.5))
    say(f"{name} was killed")
    return uid


def test_a_run_that_is_killed_before_its_manifest_leaves_the_checkpoint_of_before_and_its_retry_makes_the_new_one(
    own: OwnTablespace,
) -> None:
    own.write_some_rows("before_the_old")
    old = own.checkpoint("old", **GOES)
    own.write_some_rows("before_the_new")
    watch = CheckpointWatch(own)
    watch.acknowledges(1)
    assert len(manifests(own)) == 1

    own.declare_checkpoint("new", job=with_executors(EXECUTORS), **GOES)
    driver = own.driver_of("new")
    own.wait_for_executors("new", EXECUTORS)
    killed = kill(own, driver)
    assert (len(manifests(own)), written_by(own, "new")) == (1, [])

    driver = own.driver_of("new", frozenset({killed}))
    kill(own, driver, f"ls {on_its_machine(own)}/*/*/data/{uid_of(own, 'new')}/*/*.parquet >/dev/null 2>&1")
    assert len(manifests(own)) == 1, "it was killed after its manifest"
    left = written_by(own, "new")
    assert left, "it was killed before it wrote"
    watch.acknowledges(1)

    new = own.status_of("new")
    assert (new["lsn"]["ledgerId"], new["lsn"]["entryId"]) > (old["lsn"]["ledgerId"], old["lsn"]["entryId"])
    assert {"before_the_old", "before_the_new"} <= {table["name"] for table in new["tables"]}
    assert new["verified"].startswith("compared with follower")
    assert len(manifests(own)) == 2
    watch.acknowledges(1)
    found = watch.found()
    say(f"{found}")
    assert (found["checkpoints"], found["wrong"]) == (2, [])


def test_a_run_that_is_killed_right_after_its_manifest_is_found_done(own: OwnTablespace) -> None:
    own.write_some_rows("before_the_last")
    before = manifests(own)
    watch = CheckpointWatch(own)
    own.declare_checkpoint("last", target={"lsn": own.log_position()}, **GOES)
    driver = own.driver_of("last")
    kill(own, driver, f"grep -qs {uid_of(own, 'last')} {on_its_machine(own)}/*/*/manifests/[0-9]*.json")
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
