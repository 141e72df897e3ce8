"""A backup that restores resources leaves out what they say of themselves: nothing is destroyed, refused or promoted for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kubernetes.dynamic import DynamicClient
from stage import MERGE_PATCH, Json, Stage, written
from test_reconcile_killed import (
    KINDS,
    Process,
    Run,
    archive_story,
    audit_story,
    bookkeeper_story,
    checkpoint_story,
    divergence_story,
    drain_story,
    herddb_story,
    lost_disk_story,
    members_story,
    picture,
    restore_story,
    users_story,
    zookeeper_story,
)

STORIES: dict[Callable[[Run], None], tuple[str, ...]] = {
    zookeeper_story: (),
    bookkeeper_story: (),
    drain_story: (),
    lost_disk_story: (),
    members_story: (),
    herddb_story: ("BookKeeperCluster",),
    checkpoint_story: ("BookKeeperCluster",),
    audit_story: ("BookKeeperCluster",),
    restore_story: ("BookKeeperCluster",),
    archive_story: ("BookKeeperCluster",),
    users_story: ("BookKeeperCluster",),
    divergence_story: ("BookKeeperCluster", "Checkpoint"),
}
"""With the kinds that have no servers in them, whose status the story itself has written."""

Name = tuple[str, str]


class Watched(Process):
    """Notes what the operator deletes."""

    def __init__(self, client: DynamicClient) -> None:
        super().__init__(client)
        self.deleted: list[str] = []

    def request(self, verb: str, path: str, **arguments: Any) -> Any:
        """The dynamic client's own call."""
        if verb == "delete":
            self.deleted.append(path)
        return super().request(verb, path, **arguments)


def resources(stage: Stage) -> dict[Name, Json]:
    """All resources of ours, by kind and name."""
    listed = ((kind, item) for kind in KINDS for item in stage.listed(kind))
    return {(kind, item["metadata"]["name"]): item for kind, item in listed}


def replace_status(stage: Stage, name: Name, status: Json | None) -> None:
    path = f"{stage.of(name[0]).path(name=name[1], namespace=stage.namespace)}/status"
    stage.dynamic.request("patch", path, body={"status": status}, content_type=MERGE_PATCH)


def made(stage: Stage) -> Json:
    """What there is but for resources: objects and znodes, the record of who leads included."""
    return {part: found for part, found in picture(stage).items() if part != "resources"}


def readiness(document: Json) -> tuple[str, str] | None:
    conditions = (document.get("status") or {}).get("conditions") or []
    return next(((entry["status"], entry["reason"]) for entry in conditions if entry["type"] == "Ready"), None)


def settle_all(stage: Stage, client: Process, without: tuple[str, ...] = ()) -> None:
    for _ in range(30):
        before = written()
        for kind, name in resources(stage):
            if kind not in without:
                stage.reconcile(kind, name, stage.clients(client))
        if written() == before:
            return
    raise AssertionError("not settled after 30 rounds")


@pytest.mark.parametrize(("story", "played"), STORIES.items(), ids=[story.__name__ for story in STORIES])
def test_when_every_status_is_lost_nothing_is_destroyed_refused_or_promoted(
    dynamic: DynamicClient, story: Callable[[Run], None], played: tuple[str, ...]
) -> None:
    run = Run(dynamic)
    story(run)
    stage, operator = run.stage, Watched(dynamic)
    settle_all(stage, operator, played)
    there, told = made(stage), resources(stage)
    operator.deleted.clear()
    stage.nodes.orders.clear()

    for name in told:
        replace_status(stage, name, None)
    settle_all(stage, operator, played)  # what is below a resource without a status waits
    assert (operator.deleted, stage.nodes.orders) == ([], [])
    assert made(stage) == there

    for name, document in told.items():
        if name[0] in played:
            replace_status(stage, name, document["status"])
    settle_all(stage, operator, played)
    assert (operator.deleted, stage.nodes.orders) == ([], [])
    assert made(stage) == there
    again = resources(stage)
    assert {name: readiness(document) for name, document in again.items()} == {name: readiness(document) for name, document in told.items()}
