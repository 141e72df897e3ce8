"""The operator holds no right that nothing needs, and needs none that it lacks: what it asks of the API server in all stories, by the API
server's audit log, is compared with the chart's rules."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from kubernetes.dynamic import DynamicClient
from sql_database import TABLESPACE, serving_database
from stage import Stage
from test_operator_process import every_deed
from test_reconcile_disturbed import Disturbance, DisturbedApi, DisturbedRun
from test_reconcile_killed import STORIES

from herdkeeper.api.resource import GROUP
from herdkeeper_e2e.audit_log import AuditLog
from herdkeeper_e2e.control_plane import ControlPlane, apply_rules, make_namespace, rendered
from herdkeeper_e2e.rights_used import Right, compared, granted
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

PROCESS = "test_operator_process.py::test_with_the_charts_rules_alone_it_makes_a_cluster"
UNUSED_HERE: dict[Right, str] = {
    Right("", "pods", "patch"): "test_reconcile_users.py::test_a_user_comes_is_changed_and_goes_and_no_node_is_touched",
    Right("", "nodes", "get"): (
        "test_reconcile_lost_node.py::test_a_pod_that_hangs_on_a_dead_node_is_told_and_left_to_kubernetes_while_rolls_and_drains_wait"
    ),
    Right(GROUP, "scheduledcheckpoints", "patch"): "test_plugin.py::test_run_now_has_the_operator_make_a_run",
    Right("storage.k8s.io", "storageclasses", "get"): (
        "test_reconcile_bookkeeper.py::test_a_larger_size_grows_the_volumes_where_their_class_can"
    ),
    Right("", "namespaces", "get"): "test_chart.py::test_the_operator_reads_its_own_namespace_and_no_other",
    Right("apiextensions.k8s.io", "customresourcedefinitions", "list"): PROCESS,
    **{Right("coordination.k8s.io", "leases", verb): PROCESS for verb in ("get", "create", "update")},
}
"""Rights that no story takes, and the test that fails without: its operator has the chart's rights alone, too."""


def is_of_kopf(right: Right) -> bool:
    """It watches, and lists our kinds; the stories are told without it. PROCESS is told with it."""
    return right.verb == "watch" or (right.group, right.verb) == (GROUP, "list")


@pytest.fixture
def operator(clean_access: ControlPlane) -> DynamicClient:
    """A client with the rights of the chart, and no others."""
    apply_rules(clean_access, rendered())
    plain = clean_access.api_client(token="operator-token")
    return DynamicClient(DisturbedApi(plain.configuration), cache_file=str(clean_access.folder / "discovery-charted.json"))


def a_run_with_a_secret(stage: Stage) -> None:
    """A Checkpoint with executors in an object store: their Secret is marked in a Role."""
    serving_database(stage).settle(TABLESPACE, "flights")
    keys = {"AWS_ACCESS_KEY_ID": "an-id", "AWS_SECRET_ACCESS_KEY": "a-secret"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "store-keys"}, "stringData": keys}
    stage.of("Secret").create(body=secret, namespace=stage.namespace)
    store = {"uri": "s3://backups/flights", "endpoint": "http://store:9000", "credentialsSecretRef": {"name": "store-keys"}}
    job = {"executors": {"instances": 1}}
    stage.declare("Checkpoint", "stored", {"tablespaceRef": {"name": "flights"}, "destination": {"objectStore": store}, "job": job})
    stage.settle("Checkpoint", "stored")
    assert stage.live("Role", "stored-checkpoint") is not None


def test_each_right_is_used_by_some_story_or_told_why_not(
    control_plane: ControlPlane, dynamic: DynamicClient, operator: DynamicClient, namespace: str
) -> None:
    began = time.time()
    for story, _ in STORIES:
        story(DisturbedRun(dynamic, operator, Disturbance()))
    every_deed(Stage(dynamic, namespace, operator=operator))
    a_run_with_a_secret(Stage(dynamic, make_namespace(control_plane, f"{namespace}-stored"), operator=operator))
    given, log = granted(rendered()), AuditLog(control_plane.audit_log)

    def unused() -> set[Right]:
        return {right for right in compared(given, log.since(began, time.time())).unused if not is_of_kopf(right)}

    def each_is_used() -> bool | Pending:
        """The API server writes a request to its log after the answer."""
        return unused() <= UNUSED_HERE.keys() or Pending(f"nothing needs {unused() - UNUSED_HERE.keys()}: see schema/access.py")

    wait_for("a use of each right", each_is_used, Limit(60, 1))
    assert {(each.verb, each.resource) for each in log.since(began, time.time()) if each.code == 403} == set(), "rights that are missing"
    assert UNUSED_HERE.keys() - unused() == set(), "rights that are used, or are no more, in UNUSED_HERE"


def test_the_tests_that_use_the_other_rights_are_there() -> None:
    for named in UNUSED_HERE.values():
        file, _, test = named.partition("::")
        assert f"\ndef {test}(" in (Path(__file__).parent / file).read_text(), named
