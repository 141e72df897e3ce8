"""The operator holds no right that nothing needs: what all stories ask of the API server is compared with the table of rights."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from kubernetes.dynamic import DynamicClient
from stage import Stage
from test_operator_process import every_deed
from test_reconcile_disturbed import Disturbance, DisturbedApi, DisturbedRun
from test_reconcile_killed import STORIES

from herdkeeper.api.resource import GROUP
from herdkeeper.schema.access import ACCESS, PLURALS
from herdkeeper_e2e.control_plane import ControlPlane, apply_rules, rendered

Right = tuple[str, str, str]
"""API group, resource and verb."""

VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update"}
APPLY = "application/apply-patch+yaml"


def rights_for(method: str, path: str, content_type: str | None) -> set[Right]:
    """What the API server wants for a call. Source: Kubernetes, "Determine the request verb"; a server-side apply may create."""
    root, *place = path.strip("/").split("/")
    if root not in ("api", "apis"):
        return set()
    group, place = ("", place[1:]) if root == "api" else ("".join(place[:1]), place[2:])
    if not place:
        return set()  # discovery, which everybody may do
    if place[0] == "namespaces" and len(place) > 2:
        place = place[2:]
    resource, named = place[0], len(place) > 1
    resource = f"{resource}/{place[2]}" if len(place) > 2 else resource
    match method:
        case "GET":
            return {(group, resource, "get" if named else "list")}
        case "DELETE":
            return {(group, resource, "delete" if named else "deletecollection")}
        case _ if content_type == APPLY:
            return {(group, resource, "create"), (group, resource, "patch")}
        case _:
            return {(group, resource, VERBS[method])}


class NotingApi(DisturbedApi):
    """A client that notes what it is asked for."""

    used: ClassVar[set[Right]] = set()

    def call_api(self, resource_path: str, method: str, *arguments: Any, **named: Any) -> Any:
        """See ApiClient: path, method, path's and query's parameters, headers."""
        headers = arguments[2] if len(arguments) > 2 else named.get("header_params") or {}
        self.used |= rights_for(method, resource_path, headers.get("Content-Type"))
        return super().call_api(resource_path, method, *arguments, **named)


@pytest.fixture
def operator(clean_access: ControlPlane) -> DynamicClient:
    """A client with the rights of the chart, and no others."""
    apply_rules(clean_access, rendered())
    plain = clean_access.api_client(token="operator-token")
    return DynamicClient(NotingApi(plain.configuration), cache_file=str(clean_access.folder / "discovery-noting.json"))


RBAC = "rbac.authorization.k8s.io"
UNUSED_HERE: dict[Right, str] = {
    (GROUP, "checkpoints", "patch"): "the finalizer of deletionPolicy Delete: test_reconcile_checkpoint_removal.py",
    ("", "pods", "patch"): "a changed user's pods are marked: test_reconcile_users.py",
    ("", "nodes", "get"): "pods of the stories stand on no node: test_reconcile_lost_node.py",
    ("", "persistentvolumeclaims", "get"): "that of a Checkpoint whose files go: test_reconcile_checkpoint_removal.py",
    (GROUP, "scheduledcheckpoints", "patch"): "a run that is asked for is answered: test_reconcile_schedules.py",
    ("storage.k8s.io", "storageclasses", "get"): "no volume of the stories grows: test_reconcile_bookkeeper.py",
    **{("", "namespaces", verb): "kopf's, as far as all namespaces are watched" for verb in ("list", "watch")},
    **{("apiextensions.k8s.io", "customresourcedefinitions", verb): "kopf's" for verb in ("list", "watch")},
    **{("coordination.k8s.io", "leases", verb): "the Lease's: test_lease.py" for verb in ("get", "create", "update")},
    **{(RBAC, "roles", verb): "the marks of a run with Secrets: test_drivers_rights.py" for verb in ("get", "create", "patch")},
    **{(GROUP, "executors", verb): "asked for when that Role is made: test_drivers_rights.py" for verb in ("run", "mount")},
    (RBAC, "clusterroles", "bind"): "asked for when a RoleBinding is made: test_drivers_rights.py",
    **{(GROUP, f"{plural}/finalizers", "update"): "asked for by an admission plugin that is off here" for plural in PLURALS},
}
"""Rights that no story takes, and what does."""


def is_of_kopf(right: Right) -> bool:
    """It watches, and lists our kinds; the stories are told without it."""
    group, _, verb = right
    return verb == "watch" or (group, verb) == (GROUP, "list")


def test_each_right_is_used_by_some_story_or_told_why_not(dynamic: DynamicClient, operator: DynamicClient, namespace: str) -> None:
    for story, _ in STORIES:
        story(DisturbedRun(dynamic, operator, Disturbance()))
    every_deed(Stage(dynamic, namespace, operator=operator))
    granted = {(rule.group, resource, verb) for rule in ACCESS for resource in rule.resources for verb in rule.verbs}
    unused = {right for right in granted - NotingApi.used if not is_of_kopf(right)}
    assert unused - UNUSED_HERE.keys() == set(), "rights that nothing needs, in schema/access.py"
    assert UNUSED_HERE.keys() - granted == set(), "rights that are no more, in UNUSED_HERE"
