"""Conditions say what is true, why, and since when."""

from __future__ import annotations

import pytest
from situations import claim, objects, pods, quickstart, ready, with_metadata, with_status

from herdkeeper.domain import names
from herdkeeper.domain.conditions import is_ready_resource, why_not_ready
from herdkeeper.domain.observed.bookkeeper import BookKeeperObserved, LedgersMetadata, MetadataStore
from herdkeeper.domain.observed.zookeeper import ZooKeeperObserved
from herdkeeper.domain.reason import Reason
from herdkeeper.domain.validation import Refusal
from herdkeeper.plan.action import Create, Plan, Wait
from herdkeeper.status.bookkeeper import summarize_bookkeeper
from herdkeeper.status.document import Failed, refused_status, status_document
from herdkeeper.status.summary import Health, Summary
from herdkeeper.status.zookeeper import summarize_zookeeper

CLUSTER = quickstart("ZooKeeperCluster")
MEMBERS = [f"zk-zookeeper-{number}" for number in range(3)]
NOW = "2026-11-21T12:00:00Z"
SERVES = Summary(Health("True", Reason.READY, "3 members serve"), {"readyMembers": 3, "leader": None})
STARTS = Summary(Health("False", Reason.MEMBERS_NOT_READY, "0 of 3 members serve"), {})
CREATE = Create({"kind": "PersistentVolumeClaim", "metadata": {"name": "x"}})


def conditions(summary, plan, failed=None, cluster=CLUSTER):
    document = status_document(cluster, summary, plan, failed, NOW)
    return {entry["type"]: (entry["status"], entry["reason"]) for entry in document["conditions"]}


@pytest.mark.parametrize(
    ("situation", "summary", "plan", "failed", "expected"),
    [
        ("settled", SERVES, Plan(), None, {"Ready": ("True", "Ready"), "Progressing": ("False", "Settled")}),
        ("acting", STARTS, Plan((CREATE,)), None, {"Ready": ("False", "MembersNotReady"), "Progressing": ("True", "Creating")}),
        (
            "waiting explains a resource that is not Ready",
            STARTS,
            Plan.waiting(Reason.WAITING_FOR_ZOOKEEPER, "x"),
            None,
            {"Ready": ("False", "WaitingForZooKeeper"), "Progressing": ("True", "WaitingForZooKeeper")},
        ),
        (
            "what could not be read is unknown, not false",
            STARTS,
            Plan.waiting(Reason.UNREADABLE, "x"),
            None,
            {"Ready": ("Unknown", "Unreadable"), "Progressing": ("True", "Unreadable")},
        ),
        (
            "a resource that serves stays Ready while a change waits",
            SERVES,
            Plan.waiting(Reason.WAITING_FOR_OTHERS, "x"),
            None,
            {"Ready": ("True", "Ready"), "Progressing": ("True", "WaitingForOthers")},
        ),
        (
            "what needs a person is not Ready, and does not progress",
            SERVES,
            Plan.waiting(Reason.CLAIM_LOST, "x"),
            None,
            {"Ready": ("False", "ClaimLost"), "Progressing": ("False", "ClaimLost")},
        ),
        (
            "a paused resource says what is true of it",
            SERVES,
            Plan(wait=Wait(Reason.PAUSED, "x")),
            None,
            {"Ready": ("True", "Ready"), "Progressing": ("False", "Paused")},
        ),
        ("a failed action", SERVES, Plan((CREATE,)), Failed("no"), {"Ready": ("True", "Ready"), "Progressing": ("True", "ActionFailed")}),
    ],
)
def test_conditions_follow_from_what_was_seen_and_planned(situation, summary, plan, failed, expected):
    assert conditions(summary, plan, failed) == expected, situation


def test_a_transition_time_changes_with_the_status_only():
    kept = status_document(ready(CLUSTER), SERVES, Plan(), None, NOW)["conditions"][0]
    fallen = status_document(ready(CLUSTER), STARTS, Plan(), None, NOW)["conditions"][0]
    assert (kept["lastTransitionTime"], fallen["lastTransitionTime"]) == ("2026-01-01T00:00:00Z", NOW)


def test_conditions_speak_of_the_generation_that_was_looked_at():
    document = status_document(with_metadata(CLUSTER, generation=7), SERVES, Plan(), None, NOW)
    assert {entry["observedGeneration"] for entry in document["conditions"]} == {7}
    assert document["observedGeneration"] == 7


def test_a_refusal_names_everything_that_is_wrong_and_keeps_what_was_known():
    refusals = (Refusal("spec.replicas", "4", "even", "set 3 or 5"), Refusal("spec.x", "y", "wrong", "remove it"))
    document = refused_status(ready(CLUSTER, address="zk:2181"), refusals, NOW)
    assert document["message"] == "spec.replicas is 4: even; set 3 or 5. spec.x is y: wrong; remove it"
    assert document["address"] == "zk:2181"
    assert {entry["reason"] for entry in document["conditions"]} == {"InvalidSpec"}


def test_an_ensemble_is_ready_when_all_members_serve_and_one_says_that_it_leads():
    serving = objects(pods(MEMBERS), *(claim(f"data-{name}", **{names.FOUNDED_ANNOTATION: "true"}) for name in MEMBERS))
    led = summarize_zookeeper(CLUSTER, ZooKeeperObserved(serving, {0: "follower", 1: "leader", 2: "follower"}))
    assert (led.health.status, led.fields["leader"]) == ("True", "zk-zookeeper-1")
    leaderless = summarize_zookeeper(CLUSTER, ZooKeeperObserved(serving, {0: "follower"}))
    assert (leaderless.health.status, leaderless.health.reason) == ("False", Reason.NO_LEADER)


@pytest.mark.parametrize(
    ("situation", "marks", "founded_before", "status"),
    [
        ("all are marked", ("true", "true", "true"), None, "True"),
        ("one is not marked yet: a wiped majority might still vote", ("true", "true", "false"), None, "False"),
        ("it was founded, and a claim was replaced later", ("true", "true", "false"), True, "True"),
    ],
)
def test_nobody_writes_into_an_ensemble_before_its_volumes_are_marked_as_founded(situation, marks, founded_before, status):
    claims = [claim(f"data-{name}", **{names.FOUNDED_ANNOTATION: mark}) for name, mark in zip(MEMBERS, marks, strict=True)]
    seen = ZooKeeperObserved(objects(pods(MEMBERS), *claims), {0: "leader", 1: "follower", 2: "follower"})
    assert summarize_zookeeper(with_status(CLUSTER, founded=founded_before), seen).health.status == status, situation


def test_the_instance_id_of_a_bookkeeper_cluster_is_the_first_that_was_seen():
    cluster = quickstart("BookKeeperCluster")
    metadata = LedgersMetadata("another", frozenset(), frozenset(), frozenset(), None, under_replicated=False)
    seen = BookKeeperObserved(objects(), MetadataStore("zk-0:2181", serving=True), metadata, ())
    assert summarize_bookkeeper(cluster, seen).fields["instanceId"] == "another"
    assert summarize_bookkeeper(with_status(cluster, instance_id="first"), seen).fields["instanceId"] == "first"


def test_a_member_that_is_away_is_named_with_its_trouble():
    waiting = {"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]}
    seen = objects(pods(["zk-zookeeper-0", "zk-zookeeper-1"]), pods(["zk-zookeeper-2"], **waiting))
    health = summarize_zookeeper(CLUSTER, ZooKeeperObserved(seen, {0: "leader"})).health
    assert health.message == "2 of 3 members serve (zk-zookeeper-2: ImagePullBackOff no such image)"


def unready(reason: str):
    condition = ready(CLUSTER).status.conditions[0].model_copy(update={"status": "False", "reason": reason, "message": "why"})
    return with_status(CLUSTER, conditions=(condition,))


@pytest.mark.parametrize(
    ("situation", "resource", "expected"),
    [
        ("it is Ready", ready(CLUSTER), True),
        ("it is not there", None, False),
        ("it is on its way out", with_metadata(ready(CLUSTER), deletion_timestamp="2026-01-01T00:00:00Z"), False),
        ("it was Ready as it was declared before", with_metadata(ready(CLUSTER), generation=2), False),
        ("it is not Ready", unready("NoLeader"), False),
        ("nobody looked at it yet", CLUSTER, False),
    ],
)
def test_others_count_on_a_resource_only_as_it_is_declared_now(situation, resource, expected):
    assert is_ready_resource(resource) is expected, situation


@pytest.mark.parametrize(
    ("resource", "why"),
    [(unready("NoLeader"), "NoLeader: why"), (ready(CLUSTER), "it has not been looked at yet"), (CLUSTER, "it has not been looked at yet")],
)
def test_why_others_wait_is_the_resource_s_own_reason(resource, why):
    assert why_not_ready(resource) == why
