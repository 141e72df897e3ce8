"""What objects say about their health."""

from __future__ import annotations

import pytest

from herdkeeper_e2e.conditions import all_ready, message_of, not_ready_reason, pod_problem, unfinished_reason, unsettled_reason
from herdkeeper_e2e.waiting import Pending


def resource(kind: str, status: str, generation: int = 1, observed: int = 1) -> dict:
    ready = {"type": "Ready", "status": status, "reason": "Because", "message": "so it is", "observedGeneration": observed}
    return {"kind": kind, "metadata": {"name": "x", "generation": generation}, "status": {"conditions": [ready]}}


def pod(**status) -> dict:
    return {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": "n"}, "status": status}


def test_a_resource_is_ready_only_for_its_present_generation():
    assert not_ready_reason(resource("Tablespace", "True")) is None
    assert "present generation" in str(not_ready_reason(resource("Tablespace", "True", generation=2)))
    assert not_ready_reason(resource("Tablespace", "False")) == "Because: so it is"


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({}, None),
        ({"observedGeneration": 1}, "the operator has not seen the present generation yet"),
        ({"status": "True", "reason": "Joining"}, "Joining: so it is"),
        ({"reason": "InvalidSpec"}, "InvalidSpec: so it is"),
        ({"type": "Ready"}, "no Progressing condition yet"),
    ],
)
def test_a_resource_is_settled_once_nothing_is_left_to_do_for_its_present_generation_and_nothing_in_the_way(told, reason):
    item = resource("ZooKeeperCluster", "True", generation=2, observed=2)
    settled = {"type": "Progressing", "status": "False", "reason": "Settled", "message": "so it is", "observedGeneration": 2}
    item["status"]["conditions"].append({**settled, **told})
    assert unsettled_reason(item) == reason


def test_a_condition_s_message_is_told_once_it_has_the_reason():
    item = resource("ZooKeeperCluster", "True")
    assert isinstance(message_of(item, "Progressing", "Because"), Pending)
    item["status"]["conditions"][0]["type"] = "Progressing"
    assert message_of(item, "Progressing", "Because") == "so it is"
    assert isinstance(message_of(item, "Progressing", "Joining"), Pending)
    assert isinstance(message_of(None, "Progressing", "Because"), Pending)


def test_of_several_resources_that_wait_the_first_in_order_is_named_with_its_reason():
    answer = all_ready([resource("Tablespace", "False"), resource("ZooKeeperCluster", "False"), resource("HerdDBCluster", "True")], 3)
    assert isinstance(answer, Pending)
    assert answer.reason == "ZooKeeperCluster/x: Because: so it is; after it Tablespace/x"


def test_resources_that_do_not_exist_yet_are_waited_for():
    assert isinstance(all_ready([resource("Tablespace", "True")], 2), Pending)


@pytest.mark.parametrize(
    ("status", "reason"), [({}, "no phase yet"), ({"phase": "Failed", "message": "m"}, "Failed: m"), ({"phase": "Succeeded"}, None)]
)
def test_a_job_is_unfinished_until_it_succeeded(status, reason):
    assert unfinished_reason({"status": status}) == reason


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({"phase": "Succeeded"}, None),
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}, None),
        (
            {"phase": "Pending", "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}}]},
            "c waits: ErrImagePull no",
        ),
        (
            {"phase": "Failed", "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 78, "message": "disks"}}}]},
            "c ended with code 78: disks",
        ),
        ({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}, "Unschedulable:"),
        ({"phase": "Unknown"}, "phase Unknown"),
    ],
)
def test_a_pod_s_problem_is_its_nearest_cause(status, problem):
    assert pod_problem(pod(**status)) == problem
