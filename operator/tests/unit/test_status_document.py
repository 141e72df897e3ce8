"""Conditions say what is true, why, and since when."""

from __future__ import annotations

from dataclasses import replace

import pytest
from situations import live, member_claims, objects, pods, quickstart, ready, with_metadata, with_spec, with_status

from herdkeeper.bookkeeper.state.bookies import LedgersMetadata, MetadataStore
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.bookkeeper.status import summarize_bookkeeper
from herdkeeper.codecs.zookeeper.membership import Membership, Role
from herdkeeper.planning.actions import Create, Plan, Wait
from herdkeeper.planning.refusal import Refusal
from herdkeeper.planning.status import MOST_SENTENCES, Failed, planned, refused_status, status_document
from herdkeeper.planning.summary import Health, Summary
from herdkeeper.shared.conditions import is_ready_resource, why_not_ready
from herdkeeper.shared.quorum import address_of
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.build import build_zookeeper
from herdkeeper.zookeeper.state import Ensemble, first_membership, server_of
from herdkeeper.zookeeper.status import summarize_zookeeper

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
        (
            "acting",
            STARTS,
            Plan((CREATE,)),
            None,
            {"Ready": ("False", "MembersNotReady"), "Progressing": ("True", "Creating"), "Reconciling": ("True", "MembersNotReady")},
        ),
        (
            "another controller acts",
            SERVES,
            Plan(shown=(CREATE,)),
            None,
            {"Ready": ("True", "Ready"), "Progressing": ("True", "Creating"), "Reconciling": ("True", "Creating")},
        ),
        (
            "waiting explains a resource that is not Ready",
            STARTS,
            Plan.waiting(Reason.WAITING_FOR_ZOOKEEPER, "x"),
            None,
            {
                "Ready": ("False", "WaitingForZooKeeper"),
                "Progressing": ("True", "WaitingForZooKeeper"),
                "Reconciling": ("True", "WaitingForZooKeeper"),
            },
        ),
        (
            "what could not be read is unknown, not false",
            STARTS,
            Plan.waiting(Reason.UNREADABLE, "x"),
            None,
            {"Ready": ("Unknown", "Unreadable"), "Progressing": ("True", "Unreadable"), "Reconciling": ("True", "Unreadable")},
        ),
        (
            "a resource that serves stays Ready while a change waits",
            SERVES,
            Plan.waiting(Reason.WAITING_FOR_OTHERS, "x"),
            None,
            {"Ready": ("True", "Ready"), "Progressing": ("True", "WaitingForOthers"), "Reconciling": ("True", "WaitingForOthers")},
        ),
        (
            "bookies that are not made are no symptom of a roll that waits, since others wait for the roll",
            Summary(Health("False", Reason.BOOKIES_MISSING, "x"), {}),
            Plan.waiting(Reason.WAITING_FOR_OTHERS, "x"),
            None,
            {
                "Ready": ("False", "BookiesMissing"),
                "Progressing": ("True", "WaitingForOthers"),
                "Reconciling": ("True", "BookiesMissing"),
            },
        ),
        (
            "nor of a drain that waits for them, as where a quota refuses the bookie that is to replace the leaving one",
            Summary(Health("False", Reason.BOOKIES_MISSING, "x"), {}),
            Plan.waiting(Reason.TOO_FEW_BOOKIES, "x"),
            None,
            {
                "Ready": ("False", "BookiesMissing"),
                "Progressing": ("True", "TooFewBookies"),
                "Reconciling": ("True", "BookiesMissing"),
            },
        ),
        (
            "autorecovery that somebody disabled stays the reason while the bookies' own roll waits for it",
            Summary(Health("False", Reason.AUTORECOVERY_DISABLED, "x"), {}),
            Plan.waiting(Reason.WAITING_FOR_OTHERS, "x"),
            None,
            {
                "Ready": ("False", "AutorecoveryDisabled"),
                "Progressing": ("True", "WaitingForOthers"),
                "Reconciling": ("True", "AutorecoveryDisabled"),
            },
        ),
        (
            "what needs a person is told before that bookies are not made",
            Summary(Health("False", Reason.BOOKIES_MISSING, "x"), {}),
            Plan.waiting(Reason.CLAIM_LOST, "x"),
            None,
            {"Ready": ("False", "ClaimLost"), "Progressing": ("False", "ClaimLost"), "Stalled": ("True", "ClaimLost")},
        ),
        (
            "what needs a person is not Ready, and does not progress",
            SERVES,
            Plan.waiting(Reason.CLAIM_LOST, "x"),
            None,
            {"Ready": ("False", "ClaimLost"), "Progressing": ("False", "ClaimLost"), "Stalled": ("True", "ClaimLost")},
        ),
        (
            "a paused resource says what is true of it",
            SERVES,
            Plan(wait=Wait(Reason.PAUSED, "x")),
            None,
            {"Ready": ("True", "Ready"), "Progressing": ("False", "Paused"), "Stalled": ("True", "Paused")},
        ),
        (
            "a paused resource that does not serve says why it does not",
            STARTS,
            Plan(wait=Wait(Reason.PAUSED, "x")),
            None,
            {"Ready": ("False", "MembersNotReady"), "Progressing": ("False", "Paused"), "Stalled": ("True", "Paused")},
        ),
        (
            "nothing is left to do but to wait for its servers",
            STARTS,
            Plan(),
            None,
            {"Ready": ("False", "MembersNotReady"), "Progressing": ("True", "MembersNotReady"), "Reconciling": ("True", "MembersNotReady")},
        ),
        (
            "what failed for good does not progress",
            Summary(Health("False", Reason.FAILED, "the job failed"), {}),
            Plan(),
            None,
            {"Ready": ("False", "Failed"), "Progressing": ("False", "Failed"), "Stalled": ("True", "Failed")},
        ),
        (
            "a failed action",
            SERVES,
            Plan((CREATE,)),
            Failed("no"),
            {"Ready": ("True", "Ready"), "Progressing": ("True", "ActionFailed"), "Reconciling": ("True", "ActionFailed")},
        ),
    ],
)
def test_conditions_follow_from_what_was_seen_and_planned(situation, summary, plan, failed, expected):
    assert conditions(summary, plan, failed) == expected, situation


@pytest.mark.parametrize(("actions", "message"), [((CREATE,), "Creating PersistentVolumeClaim x"), ((CREATE, CREATE), ", and 1 more")])
def test_progress_names_the_first_action_and_counts_the_others(actions, message):
    assert status_document(CLUSTER, STARTS, Plan(actions), None, NOW)["conditions"][1]["message"].endswith(message)


@pytest.mark.parametrize("beyond", [0, 1, 3])
def test_a_plan_that_is_shown_is_bounded_and_says_what_it_leaves_out(beyond):
    steps = planned(Plan((CREATE,) * (MOST_SENTENCES + beyond)))["steps"]
    assert steps[:MOST_SENTENCES] == ["Creating PersistentVolumeClaim x"] * MOST_SENTENCES
    assert steps[MOST_SENTENCES:] == ([f"and {beyond} more"] if beyond else [])


def test_a_resource_that_is_being_deleted_says_so_whatever_still_serves_and_that_an_apply_does_not_keep_it():
    going = with_metadata(CLUSTER, deletion_timestamp="2026-01-01T00:00:00Z")
    document = status_document(going, SERVES, Plan.waiting(Reason.WAITING_FOR_DEPENDENTS, "first delete bk"), None, NOW)
    assert document["message"] == "it is being deleted: first delete bk. An apply does not keep it: apply it again once it is gone"


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


def test_what_was_known_to_be_wrong_stays_while_nobody_looks_at_it():
    """An alert on a copy that differs, or on an archive that lags, must not end because the spec was spoilt meanwhile."""
    found = {"ReplicasVerified": Health("False", Reason.REPLICA_DIFFERS, "one differs"), "LogArchived": Health("True", Reason.READY, "")}
    document = status_document(quickstart("Tablespace"), replace(SERVES, fields={}, conditions=found), Plan(), None, NOW)
    tablespace = with_status(quickstart("Tablespace"), **document)
    refused = refused_status(tablespace, (Refusal("spec.x", "y", "wrong", "remove it"),), NOW)
    kept = {entry["type"]: entry["reason"] for entry in refused["conditions"]}
    assert kept == {"Ready": "InvalidSpec", "Progressing": "InvalidSpec", "Stalled": "InvalidSpec", "ReplicasVerified": "ReplicaDiffers"}


def test_an_ensemble_is_ready_when_all_members_serve_and_one_says_that_it_leads():
    serving = objects(pods(MEMBERS), member_claims("true", "true", "true"))
    led = summarize_zookeeper(Ensemble(CLUSTER, serving, {0: "follower", 1: "leader", 2: "follower"}))
    assert (led.health.status, led.fields["leader"]) == ("True", "zk-zookeeper-1")
    leaderless = summarize_zookeeper(Ensemble(CLUSTER, serving, {0: "follower"}))
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
    cluster, modes = with_status(CLUSTER, founded=founded_before), {0: "leader", 1: "follower", 2: "follower"}
    seen = Ensemble(cluster, objects(pods(MEMBERS), member_claims(*marks)), modes)
    assert summarize_zookeeper(seen).health.status == status, situation


def test_the_instance_id_of_a_bookkeeper_cluster_is_the_first_that_was_seen():
    cluster = quickstart("BookKeeperCluster")
    metadata = LedgersMetadata("another", frozenset(), frozenset(), frozenset(), None, under_replicated=False)
    seen = BookieFleet(cluster, objects(), MetadataStore("zk-0:2181", serving=True), metadata, ())
    assert summarize_bookkeeper(seen).fields["instanceId"] == "another"
    assert summarize_bookkeeper(replace(seen, cluster=with_status(cluster, instance_id="first"))).fields["instanceId"] == "first"


def test_a_founding_that_waits_for_a_member_which_is_not_wanted_any_more_says_so():
    """Five members were asked for, two of which have no node, and then three."""
    five = member_claims(*["false"] * 5)
    modes, begun = {0: "leader", 1: "follower", 2: "follower"}, first_membership(CLUSTER, range(5))
    made = {("StatefulSet", "zk-zookeeper"): {"spec": {"replicas": 5}}}
    health = summarize_zookeeper(Ensemble(CLUSTER, objects(five, made, pods(MEMBERS)), modes, membership=begun)).health
    assert (health.status, health.reason) == ("False", Reason.STARTING)
    assert "zk-zookeeper-3: no pod" in health.message
    assert "are being marked" not in health.message


def test_a_member_that_is_away_is_named_with_its_trouble():
    waiting = {"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]}
    seen = objects(pods(["zk-zookeeper-0", "zk-zookeeper-1"]), pods(["zk-zookeeper-2"], **waiting))
    health = summarize_zookeeper(Ensemble(CLUSTER, seen, {0: "leader"})).health
    assert health.message == "2 of 3 members are Ready (zk-zookeeper-2: ImagePullBackOff no such image)"


def unready(reason: str):
    condition = ready(CLUSTER).status.conditions[0].model_copy(update={"status": "False", "reason": reason, "message": "why"})
    return with_status(CLUSTER, conditions=(condition,))


@pytest.mark.parametrize(
    ("situation", "resource", "expected"),
    [
        ("it is Ready", ready(CLUSTER), True),
        ("it does not exist", None, False),
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
    [
        (unready("NoLeader"), "NoLeader: why"),
        (ready(CLUSTER), "it has not been reconciled yet"),
        (CLUSTER, "it has not been reconciled yet"),
    ],
)
def test_why_others_wait_is_the_resource_s_own_reason(resource, why):
    assert why_not_ready(resource) == why


FOUNDED = with_status(CLUSTER, founded=True)
MEMBERS = [f"zk-zookeeper-{number}" for number in range(3)]
COMMITTED = first_membership(CLUSTER, range(3))


def last_read(membership):
    return live(build_zookeeper(Ensemble(CLUSTER, objects(member_claims("true")), membership=replace(membership, version=7))))


@pytest.mark.parametrize(
    ("situation", "serving", "marks", "reason", "said"),
    [
        ("all serve", [0, 1, 2], ("true", "true", "true"), Reason.READY, "3 members serve"),
        ("one is away", [0, 2], ("true", "true", "true"), Reason.MEMBERS_NOT_READY, "2 of 3 members are Ready (zk-zookeeper-1: no pod, "),
        ("two are away", [0], ("true", "true", "true"), Reason.QUORUM_LOST, "1 of 3 voters serve and 2 are needed"),
        ("two are away, with data", [0], ("true", "true", "true"), Reason.QUORUM_LOST, "They serve again once a majority runs"),
        ("one of them is empty", [0], ("true", "false", "true"), Reason.QUORUM_LOST, "They serve again once a majority runs"),
        ("both are empty", [0], ("true", "false", None), Reason.QUORUM_LOST, "data-zk-zookeeper-1 and data-zk-zookeeper-2 are empty"),
    ],
)
def test_a_lost_quorum_is_told_with_what_a_person_can_do(situation, serving, marks, reason, said):
    seen = Ensemble(
        FOUNDED,
        objects(last_read(COMMITTED), member_claims(*marks), pods(MEMBERS[number] for number in serving)),
        {number: "leader" if number == 0 else "follower" for number in serving},
        membership=COMMITTED if len(serving) > 1 else Unknown("no answer"),
    )
    health = summarize_zookeeper(seen).health
    assert (health.reason, said in health.message) == (reason, True), (situation, health.message)


def test_a_quorum_is_not_called_lost_while_zookeeper_answers():
    """Probes fail where a machine is busy. The membership was read, and only a quorum answers that."""
    busy = objects(last_read(COMMITTED), member_claims("true", "true", "true"), pods(MEMBERS, conditions=[]))
    modes = {0: "leader", 1: "follower", 2: "follower"}
    health = summarize_zookeeper(Ensemble(FOUNDED, busy, modes, membership=COMMITTED)).health
    assert (health.status, health.reason) == ("False", Reason.MEMBERS_NOT_READY)
    assert health.message.startswith("0 of 3 members are Ready (")


def test_a_member_without_a_vote_is_not_counted_in_a_quorum():
    """The one voter that is left of two does not serve: the observer beside it makes no quorum."""
    roles = (server_of(CLUSTER, 0, Role.PARTICIPANT), server_of(CLUSTER, 1, Role.PARTICIPANT), server_of(CLUSTER, 2, Role.OBSERVER))
    seen = Ensemble(FOUNDED, objects(last_read(Membership(7, roles)), pods([MEMBERS[0], MEMBERS[2]])), {}, membership=Unknown("no answer"))
    assert summarize_zookeeper(seen).health.reason is Reason.QUORUM_LOST


def test_voters_that_a_person_added_count_in_a_quorum():
    """No declaration asks for a member of this number, but the committed membership has it."""
    voters = first_membership(CLUSTER, (0, 1, 2, 7))
    serving = objects(member_claims("true", "true", "true"), pods([*MEMBERS[:2], "zk-zookeeper-7"]))
    health = summarize_zookeeper(Ensemble(FOUNDED, serving, {0: "leader", 1: "follower"}, membership=voters)).health
    assert (health.reason, health.message) == (
        Reason.MEMBERS_NOT_READY,
        "2 of 3 members are Ready (zk-zookeeper-2: no pod, see its controller's events)",
    )


def test_volumes_of_voters_that_a_person_added_are_not_called_empty():
    voters = first_membership(CLUSTER, (0, 1, 7, 8, 9))
    left = objects(last_read(voters), member_claims("true", "true"), pods(MEMBERS[:2]))
    health = summarize_zookeeper(Ensemble(FOUNDED, left, membership=Unknown("no answer"))).health
    assert (health.reason, "empty" in health.message) == (Reason.QUORUM_LOST, False), health.message


def test_members_that_serve_without_a_vote_do_not_make_an_ensemble_ready():
    grown = with_spec(FOUNDED, replicas=5)
    everyone = [f"zk-zookeeper-{number}" for number in range(5)]
    modes = {0: "leader", **dict.fromkeys(range(1, 5), "follower")}
    health = summarize_zookeeper(Ensemble(grown, objects(pods(everyone)), modes, membership=COMMITTED)).health
    assert (health.status, health.message) == ("False", "zk-zookeeper-3, zk-zookeeper-4 has no vote yet")


HOSTS = tuple(f"zk-{number}.svc" for number in range(7))


def string(count: int) -> str:
    return ",".join(f"{host}:2181" for host in HOSTS[:count])


@pytest.mark.parametrize(
    ("situation", "known", "members", "published"),
    [
        ("nothing is published", None, 3, 3),
        ("one became three: any of the others may be the one that is left", 1, 3, 3),
        ("three became five: of any three that are left, one is known", 3, 5, 3),
        ("three became seven", 3, 7, 7),
        ("five became three", 5, 3, 5),
        ("three became one", 3, 1, 3),
        ("nothing changed", 3, 3, 3),
    ],
)
def test_clients_get_another_address_only_when_they_would_know_less_than_a_majority(situation, known, members, published):
    assert address_of(string(known) if known else None, HOSTS[:members], 2181) == string(published), situation


def test_the_address_changes_only_once_the_membership_is_the_declared_one():
    grown = with_status(with_spec(CLUSTER, replicas=3), address=CLUSTER.names.address(1), founded=True)
    halfway, done = (first_membership(CLUSTER, range(voters)) for voters in (2, 3))
    found = [summarize_zookeeper(Ensemble(grown, objects(), {}, membership=seen)).fields["address"] for seen in (halfway, done)]
    assert found[0] == CLUSTER.names.address(1)
    assert found[1].count(",") == 2
