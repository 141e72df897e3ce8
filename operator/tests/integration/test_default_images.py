"""Servers whose resource names no image follow the operator's setting; what an earlier definition stored stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from kubernetes import client
from played_members import PlayedMembers
from stage import Json, Stage

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.api.default_images import SHIPPED_IMAGES
from herdkeeper_e2e.control_plane import ControlPlane
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

KIND = ZooKeeperCluster.KIND
DEFINITION = f"{ZooKeeperCluster.PLURAL}.herdkeeper.io"
SERVERS = "zk-zookeeper"
EARLIER, NEXT = SHIPPED_IMAGES.zookeeper, "example.com/herdkeeper/zookeeper:next"


@pytest.fixture
def earlier_definition(control_plane: ControlPlane) -> Iterator[client.ApiextensionsV1Api]:
    """The definition of 0.1.0 is served, which stored its image in every resource. Applying the present one is the upgrade."""
    with control_plane.api_client() as api:
        extensions = client.ApiextensionsV1Api(api)
        set_stored_default(extensions, EARLIER)
        yield extensions
        set_stored_default(extensions, None)


def set_stored_default(extensions: client.ApiextensionsV1Api, image: str | None) -> None:
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/image/default"
    document = extensions.api_client.sanitize_for_serialization(extensions.read_custom_resource_definition(DEFINITION))
    field = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["image"]
    if field.get("default") == image:
        return
    change: list[dict[str, Any]] = [{"op": "remove", "path": path} if image is None else {"op": "add", "path": path, "value": image}]
    extensions.patch_custom_resource_definition(DEFINITION, change)


def stored_image(stage: Stage) -> str | None:
    """What the API server stores now of a resource that names no image."""
    body = {"apiVersion": "herdkeeper.io/v1alpha1", "kind": KIND, "metadata": {"name": "probe"}, "spec": {}}
    image: str | None = stage.of(KIND).create(body=body, namespace=stage.namespace, dry_run="All").to_dict()["spec"].get("image")
    return image


def wait_until_stored(stage: Stage, image: str | None) -> None:
    wait_for("the changed definition to be served", lambda: stored_image(stage) == image or Pending("not yet"), Limit(60))


def founded(stage: Stage) -> PlayedMembers:
    members = PlayedMembers(stage, "zk", leader=1)
    stage.settle(KIND, "zk")
    members.turn()
    stage.settle(KIND, "zk")
    return members


def declared_image(stage: Stage) -> str:
    """What new pods of the members would run."""
    return str(stage.found("StatefulSet", SERVERS)["spec"]["template"]["spec"]["containers"][0]["image"])


def running(stage: Stage) -> dict[str, str]:
    """The image of each member's pod."""
    return {item["metadata"]["name"]: item["spec"]["containers"][0]["image"] for item in pods(stage)}


def pods(stage: Stage) -> list[Json]:
    return [item for (kind, _), item in stage.made().items() if kind == "Pod"]


def upgrade_operator(stage: Stage) -> None:
    stage.images = replace(SHIPPED_IMAGES, zookeeper=NEXT)


def assign_ids(stage: Stage) -> None:
    stage.assigned_ids = True


def is_upgraded(pod: Json) -> bool:
    return bool(pod["containers"][0]["image"] == NEXT)


def has_no_ids(pod: Json) -> bool:
    return not {"runAsUser", "runAsGroup", "fsGroup"} & pod["securityContext"].keys()


def test_a_resource_that_names_no_image_stores_none(stage: Stage) -> None:
    assert "image" not in stage.declare(KIND, "zk", {"replicas": 3})["spec"]
    stage.settle(KIND, "zk")
    assert declared_image(stage) == EARLIER
    assert "image" not in stage.found(KIND, "zk")["spec"]


@pytest.mark.parametrize(("change", "has_changed"), [(upgrade_operator, is_upgraded), (assign_ids, has_no_ids)])
def test_an_upgrade_of_the_operator_restarts_servers_that_name_no_image_one_at_a_time_and_the_leader_last(
    stage: Stage, change: Callable[[Stage], None], has_changed: Callable[[Json], bool]
) -> None:
    stage.declare(KIND, "zk", {"replicas": 3})
    members = founded(stage)
    change(stage)
    gone = []
    for _ in range(3):
        stage.settle(KIND, "zk")
        stage.see_template(SERVERS)
        stage.settle(KIND, "zk")
        (left,) = {f"{SERVERS}-{number}" for number in range(3)} - running(stage).keys()
        gone.append(left)
        members.turn()
    stage.settle(KIND, "zk")
    assert [has_changed(pod["spec"]) for pod in pods(stage)] == [True] * 3
    assert gone[-1] == f"{SERVERS}-1"


def test_what_an_upgrade_would_restart_is_shown_before_it_is_done(stage: Stage) -> None:
    stage.declare(KIND, "zk", {"replicas": 3})
    founded(stage)
    stage.patch(KIND, "zk", {"metadata": {"annotations": {"herdkeeper.io/plan": "true"}}})
    upgrade_operator(stage)
    stage.settle(KIND, "zk")
    assert declared_image(stage) == EARLIER
    assert stage.found(KIND, "zk")["status"]["plan"]["steps"] == [f"Updating StatefulSet {SERVERS}"]


def test_an_image_that_an_earlier_definition_stored_stays_after_the_upgrade_until_it_is_taken_away(
    stage: Stage, earlier_definition: client.ApiextensionsV1Api
) -> None:
    wait_until_stored(stage, EARLIER)
    assert stage.declare(KIND, "zk", {"replicas": 3})["spec"]["image"] == EARLIER
    founded(stage)
    before = running(stage)

    set_stored_default(earlier_definition, None)
    wait_until_stored(stage, None)
    upgrade_operator(stage)
    stage.settle(KIND, "zk")
    assert declared_image(stage) == EARLIER
    assert running(stage) == before, "nothing is restarted"

    stage.patch(KIND, "zk", {"spec": {"image": None}})
    stage.settle(KIND, "zk")
    assert declared_image(stage) == NEXT
