"""Leaders are moved by the cluster's key, which answers what Tablespaces ask."""

from __future__ import annotations

from dataclasses import replace

import pytest
from both_controllers import plan_both, plan_refused
from situations import bookkeeper_serving, claim, live, objects, pods, quickstart, readable, with_metadata, with_spec, with_status
from test_plan_herddb import ADMINISTRATOR, CLUSTER, LOG, PODS, SETTLED, secret_of
from test_replica_verdicts import checkpoint

from herdkeeper.clients.kubernetes import parsed
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.build import build_herddb
from herdkeeper.herddb.leadership.plan import plan_leadership
from herdkeeper.herddb.leadership.services import declaring
from herdkeeper.herddb.plan.cluster import plan_herddb
from herdkeeper.herddb.state.cluster import NodeTablespace, UserCredentials, VersionedRecord
from herdkeeper.herddb.status import summarize_herddb
from herdkeeper.herddb.tablespace.build import build_leader_service
from herdkeeper.herddb.tablespace.judged_nodes import Declared
from herdkeeper.planning.actions import AddToSecret, AnswerRequest, Apply, ChangeTablespaceRecord, Request, WakeNodes
from herdkeeper.planning.refusal import Refusal
from herdkeeper.planning.status import refused_status
from herdkeeper.shared import names
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import NotListening, Unknown

LEADER = NodeTablespace("flights", "a-uuid", "leader", True, (7, 9), None, (7, 0), True)
RECORD = TablespaceRecord("a-uuid", "flights", PODS[0], (PODS[0], PODS[1]), 1, 10_000)
TABLESPACE = quickstart("Tablespace")
FOLLOWING = live((build_leader_service(TABLESPACE, PODS[0]),))
CALM = replace(
    SETTLED,
    objects=objects(SETTLED.objects.items, FOLLOWING),
    records={"flights": VersionedRecord(RECORD, 4, 1000.0)},
    nodes={PODS[0]: (LEADER,), PODS[1]: (replace(LEADER, role="follower"),)},
    declared=readable(TABLESPACE),
    now=2000.0,
)
MOVED = ChangeTablespaceRecord(
    LOG.zookeeper_address,
    "/demo/db/herd/tableSpaces/flights",
    replace(RECORD, leader=PODS[1]),
    4,
    f"led by {PODS[1]}, since {PODS[0]} can't lead any more (its process does not listen)",
    Reason.LEADER_MOVED,
)
LOST = replace(CALM, nodes={**CALM.nodes, PODS[0]: NotListening("refused")})


def asking(node: str, **more: str):
    metadata = TABLESPACE.metadata.model_copy(update={"annotations": {names.SWITCHOVER_ANNOTATION: node, **more}, "resource_version": "77"})
    return replace(CALM, declared=readable(TABLESPACE.model_copy(update={"metadata": metadata})))


def test_settled_leaders_get_nothing():
    assert plan_both(CALM).actions == ()


def test_a_lost_leader_is_replaced_by_compare_and_set_before_anything_else():
    plan = plan_both(replace(LOST, root_parent=False, objects=objects(pods(PODS))))
    assert plan.actions == (MOVED, WakeNodes("db", (PODS[1],)))


@pytest.mark.parametrize("misnamed", ["cluster", "bookkeeper"])
def test_a_lost_leader_is_replaced_though_a_resource_was_stored_with_a_name_that_no_object_can_have(misnamed):
    resource = getattr(LOST, misnamed)
    document = resource.model_dump(mode="json", by_alias=True, exclude_none=True)
    document["spec"]["pods"]["imagePullSecrets"] = [{"name": "Of_The_Registry"}]
    seen = replace(LOST, **{misnamed: parsed(type(resource), document)})
    assert plan_leadership(seen).actions[:2] == (MOVED, WakeNodes("db", (PODS[1],)))


def test_what_could_not_be_read_moves_no_leader():
    assert plan_both(replace(LOST, records=Unknown("ZooKeeper does not answer"))).actions == ()


@pytest.mark.parametrize("root_parent", [True, Unknown("silence")])
def test_what_could_not_be_read_is_read_again_within_a_second_since_no_event_tells_that_zookeeper_answers(root_parent):
    plan = plan_both(replace(CALM, records=Unknown("silence"), root_parent=root_parent))
    assert plan.requeue_after_seconds == 1.0


def test_a_leader_that_does_not_lead_yet_is_looked_at_soon():
    booting = replace(LEADER, role="booting", ready=False)
    plan = plan_both(replace(CALM, nodes={**CALM.nodes, PODS[0]: (booting,)}))
    assert (plan.actions, plan.requeue_after_seconds) == ((), 1.0)


def test_a_leader_that_has_fallen_silent_is_looked_at_when_it_counts_as_hung_though_other_actions_fail():
    seen = replace(CALM, nodes={**CALM.nodes, PODS[0]: Unknown("silence")}, silent_seconds={PODS[0]: 4.5}, root_parent=False)
    plan = plan_both(seen)
    assert [type(action).__name__ for action in plan.actions] == ["EnsureZnode"]
    assert plan_leadership(seen).requeue_after_seconds == 0.5


def test_a_tablespace_without_a_resource_is_failed_over_too():
    assert plan_both(replace(LOST, declared=())).actions[0] == MOVED


def test_a_leader_that_can_not_be_replaced_is_told_and_looked_at_soon():
    plan = plan_both(replace(LOST, nodes=dict.fromkeys(PODS, NotListening("refused"))))
    assert plan.actions == ()
    assert plan.wait is not None
    assert (plan.wait.reason, plan.requeue_after_seconds) == (Reason.NO_LEADER, 1.0)


def test_a_leader_that_can_not_be_replaced_yet_is_looked_at_soon_whatever_else_is_waited_for():
    going = claim(f"data-{PODS[0]}")
    going["PersistentVolumeClaim", f"data-{PODS[0]}"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    lost = replace(LOST, objects=objects(LOST.objects.items, going), now=1001.0)
    plan = plan_both(lost)
    assert plan.wait is not None
    assert (plan.actions, plan.requeue_after_seconds) == ((), 1.0)
    assert MOVED in plan_both(replace(lost, now=1005.0)).actions


def test_a_broken_configuration_is_mended_though_no_leader_can_be_found():
    changed = CLUSTER.model_copy(update={"spec": CLUSTER.spec.model_copy(update={"image": "mended:1"})})
    broken = objects(live(build_herddb(CLUSTER, LOG, "db-herddb-credentials")), pods(PODS, conditions=[]))
    plan = plan_both(replace(LOST, objects=broken, nodes=dict.fromkeys(PODS, NotListening("refused")), cluster=changed))
    assert [action.manifest["kind"] for action in plan.actions] == ["StatefulSet", "Service"]


def test_a_request_is_answered_after_the_move():
    change, wake, _, answer = plan_both(asking(PODS[1])).actions
    assert isinstance(change, ChangeTablespaceRecord)
    assert change.record.leader == PODS[1]
    assert wake == WakeNodes("db", (PODS[1],))
    assert answer == AnswerRequest(
        "Tablespace", "flights", "77", Request.SWITCHOVER, f"done: led by {PODS[1]}, since {PODS[1]} was requested"
    )


@pytest.mark.parametrize(
    ("node", "answer"),
    [
        (PODS[0], f"done: {PODS[0]} already leads"),
        ("db-herddb-9", f"refused: db-herddb-9 holds no replica; replicas are on {', '.join(PODS)}"),
    ],
)
def test_a_request_that_changes_nothing_is_answered_too(node, answer):
    assert plan_both(asking(node)).actions == (AnswerRequest("Tablespace", "flights", "77", Request.SWITCHOVER, answer),)


def test_a_younger_resource_asks_for_nothing_though_the_older_one_of_the_same_tablespace_can_t_be_read():
    younger = asking(PODS[1])
    older = with_metadata(TABLESPACE, name="a-older").model_copy(update={"spec": None})
    both = replace(younger, declared=(Declared("flights", older, readable=False), *younger.declared))
    moves = [[action for action in plan_both(seen).actions if isinstance(action, ChangeTablespaceRecord)] for seen in (younger, both)]
    assert [len(each) for each in moves] == [1, 0]


def test_a_resource_that_can_t_be_read_and_made_nothing_takes_no_leader_from_the_one_that_made_the_tablespace():
    maker = with_status(asking(PODS[1]).tablespaces[0], uuid=RECORD.uuid)
    older = with_metadata(TABLESPACE, name="a-older").model_copy(update={"spec": None})
    both = replace(CALM, declared=(Declared("flights", older, readable=False), *readable(maker)))
    assert declaring(both, "flights") is maker
    unknown = Declared("flights", older.model_copy(update={"unread": {"uuid": 7}}), readable=False)
    assert declaring(replace(both, declared=(unknown, *readable(maker))), "flights") is None


def test_a_request_for_a_node_that_has_just_led_waits_and_is_refused_after_20_seconds():
    booting = replace(LEADER, role="booting", ready=False)
    asked = replace(asking(PODS[1]), nodes={**CALM.nodes, PODS[1]: (booting,)}, now=1019.0)
    plan = plan_both(asked)
    assert (plan.actions, plan.requeue_after_seconds) == ((), 1.0)
    refused = f"refused: {PODS[1]} can't lead now: it is booting"
    assert plan_both(replace(asked, now=1020.0)).actions == (AnswerRequest("Tablespace", "flights", "77", Request.SWITCHOVER, refused),)


@pytest.mark.parametrize("mark", [names.PAUSED_ANNOTATION, names.PLAN_ANNOTATION])
def test_a_tablespace_that_is_left_alone_asks_for_nothing(mark):
    assert plan_both(asking(PODS[1], **{mark: "true"})).actions == ()
    preferring = with_spec(TABLESPACE, preferred_leader=PODS[1], failback="WhenHealthy")
    assert [type(each) for each in plan_both(replace(CALM, declared=readable(preferring))).actions][:1] == [ChangeTablespaceRecord]
    shown = with_metadata(preferring, annotations={mark: "true"})
    assert plan_both(replace(CALM, declared=readable(shown))).actions == ()


@pytest.mark.parametrize(("mark", "patience", "moved"), [(names.PAUSED_ANNOTATION, 60, False), (names.PAUSED_ANNOTATION, 5, True)])
def test_a_tablespace_that_is_left_alone_is_failed_over_as_patiently_as_it_declares(mark, patience, moved):
    failover = TABLESPACE.spec.failover.model_copy(update={"hung_leader_seconds": patience})
    declared = with_metadata(with_spec(TABLESPACE, failover=failover), annotations={mark: "true"})
    seen = replace(
        CALM,
        declared=readable(declared),
        nodes={**CALM.nodes, PODS[0]: Unknown("silence")},
        silent_seconds={PODS[0]: 20.0},
        heartbeats={"flights": {PODS[0]: 1980.0, PODS[1]: 2000.0}},
    )
    assert any(isinstance(each, ChangeTablespaceRecord) for each in plan_both(seen).actions) is moved


def with_deletion(seen, pod):
    """The same, with a pod that is being deleted."""
    item = seen.objects.get("Pod", pod)
    deleted = {**item, "metadata": {**item["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    return replace(seen, objects=objects(seen.objects.items, {("Pod", pod): deleted}))


def followed(plan):
    """Names and selected pods of the Services that are applied."""
    manifests = [action.manifest for action in plan.actions if isinstance(action, Apply)]
    return [(each["metadata"]["name"], each["spec"]["selector"][names.POD_NAME_LABEL]) for each in manifests]


def test_the_service_follows_a_move_in_the_same_reconcile():
    change, wake, service = plan_both(LOST).actions
    assert (change, wake) == (MOVED, WakeNodes("db", (PODS[1],)))
    assert isinstance(service, Apply)
    assert followed(plan_both(LOST)) == [("flights-leader", PODS[1])]


def test_the_service_follows_a_leader_that_herddb_has_chosen_itself():
    chosen = replace(CALM, records={"flights": VersionedRecord(replace(RECORD, leader=PODS[1]), 5, 1999.0)})
    assert followed(plan_both(chosen)) == [("flights-leader", PODS[1])]


def test_a_service_that_may_not_be_changed_holds_up_no_login_that_is_taken_away():
    """A webhook may refuse each change of it, for ever."""
    held = replace(
        CALM,
        objects=objects(CALM.objects.items, secret_of(ADMINISTRATOR)),
        records={"flights": VersionedRecord(replace(RECORD, leader=PODS[1]), 5, 1999.0)},
        credentials=UserCredentials("herdkeeper", "new"),
    )
    assert [type(action) for action in plan_leadership(held).actions] == [Apply]
    assert [type(action) for action in plan_herddb(held).actions] == [AddToSecret]


def test_the_service_follows_before_a_request_is_answered():
    there = replace(asking(PODS[1]), objects=CALM.objects)
    assert [type(action).__name__ for action in plan_both(there).actions] == [
        "ChangeTablespaceRecord",
        "WakeNodes",
        "Apply",
        "AnswerRequest",
    ]


def test_the_service_of_a_paused_tablespace_follows_since_its_leader_moves_too():
    paused = with_metadata(TABLESPACE, annotations={names.PAUSED_ANNOTATION: "true"})
    assert followed(plan_both(replace(LOST, declared=readable(paused)))) == [("flights-leader", PODS[1])]


UNMADE = replace(CALM, objects=SETTLED.objects)


@pytest.mark.parametrize(
    ("situation", "seen", "services"),
    [
        ("it has none yet", UNMADE, [("flights-leader", PODS[0])]),
        ("somebody else's has its name", replace(UNMADE, taken_services=frozenset({"flights-leader"})), []),
        ("nobody declares it", replace(UNMADE, declared=()), []),
        (
            "it is being deleted",
            replace(UNMADE, declared=readable(with_metadata(TABLESPACE, deletion_timestamp="2026-01-01T00:00:00Z"))),
            [],
        ),
        ("its name has another tablespace now", replace(UNMADE, declared=readable(with_status(TABLESPACE, uuid="another"))), []),
    ],
)
def test_a_declared_tablespace_gets_a_service(situation, seen, services):
    assert followed(plan_both(seen)) == services, situation


def test_a_service_that_is_not_there_yet_holds_up_no_move():
    assert plan_both(replace(LOST, objects=SETTLED.objects)).actions == (MOVED, WakeNodes("db", (PODS[1],)))


def test_the_service_is_the_database_s_to_keep_and_goes_with_the_tablespace():
    metadata = build_leader_service(TABLESPACE, PODS[0])["metadata"]
    assert metadata["labels"][names.OWNER_NAME_LABEL] == CLUSTER.metadata.name
    assert [(each["kind"], each["name"]) for each in metadata["ownerReferences"]] == [("Tablespace", "flights")]


FOLLOWING_MOVED = ("flights-leader", PODS[1])
HANGS = replace(
    CALM,
    nodes={**CALM.nodes, PODS[0]: Unknown("silence")},
    silent_seconds={PODS[0]: 20.0},
    heartbeats={"flights": {PODS[0]: 1980.0, PODS[1]: 2000.0}},
)
STOPPING = with_deletion(CALM, PODS[0])
WRONG = replace(CALM, checkpoints=(checkpoint("c", 9, "flights", node=PODS[0]),))
PREFERRING = with_spec(TABLESPACE, preferred_leader=PODS[1], failback="WhenHealthy")


@pytest.mark.parametrize(
    ("situation", "seen", "done", "followers"),
    [
        ("all is well", CALM, [], []),
        ("the leader's process has ended", LOST, [ChangeTablespaceRecord, WakeNodes, Apply], [FOLLOWING_MOVED]),
        ("the leader hangs", HANGS, [ChangeTablespaceRecord, WakeNodes, Apply], [FOLLOWING_MOVED]),
        ("the leader's pod is being deleted", STOPPING, [ChangeTablespaceRecord, WakeNodes, Apply], [FOLLOWING_MOVED]),
        (
            "HerdDB has moved the leader by itself",
            replace(CALM, records={"flights": VersionedRecord(replace(RECORD, leader=PODS[1]), 5, 1999.0)}),
            [Apply],
            [FOLLOWING_MOVED],
        ),
        ("somebody asks for another leader", asking(PODS[1]), [], []),
        ("another leader is preferred", replace(CALM, declared=readable(PREFERRING)), [], []),
        ("the leader differs from the log", WRONG, [], []),
        ("records can't be read", replace(LOST, records=Unknown("silence")), [], []),
        ("the BookKeeperCluster is not there", replace(LOST, bookkeeper=None), [], []),
        ("objects differ from what is declared", replace(CALM, root_parent=False, objects=objects(pods(PODS), FOLLOWING)), [], []),
    ],
)
def test_a_refused_database_replaces_lost_leaders_and_nothing_else(situation, seen, done, followers):
    plan = plan_refused(seen)
    assert [type(action) for action in plan.actions] == done, situation
    assert followed(plan) == followers, situation


@pytest.mark.parametrize(
    ("annotations", "moved"), [({}, True), ({names.PAUSED_ANNOTATION: "true"}, False), ({names.PLAN_ANNOTATION: "true"}, False)]
)
def test_a_leader_that_differs_is_relieved_unless_its_tablespace_is_left_alone(annotations, moved):
    seen = replace(WRONG, declared=readable(with_metadata(TABLESPACE, annotations=annotations)))
    assert any(isinstance(each, ChangeTablespaceRecord) for each in plan_both(seen).actions) is moved


def test_a_leader_of_which_every_replica_is_to_be_relieved_is_not_told_to_be_in_the_way():
    leaving = tuple({"node": node, "reason": "spec.replicas is 1"} for node in PODS)
    seen = replace(CALM, cluster=with_status(CLUSTER, relieved_nodes=leaving))
    assert (plan_leadership(seen).actions, plan_leadership(seen).wait) == ((), None)


@pytest.mark.parametrize("plan_of", [plan_both, plan_refused])
def test_a_lost_leader_is_replaced_though_zookeeper_did_not_tell_how_many_bookies_are_writable(plan_of):
    unread = with_status(bookkeeper_serving(), **{**bookkeeper_serving().status.model_dump(), "ready_bookies": None})
    assert [type(action) for action in plan_of(replace(LOST, bookkeeper=unread)).actions][:1] == [ChangeTablespaceRecord]


def test_a_lost_leader_is_replaced_though_bookies_were_too_few_when_their_cluster_was_refused():
    """A refused cluster's status keeps what was observed before, also once its bookies are back."""
    few = with_status(bookkeeper_serving(), **{**bookkeeper_serving().status.model_dump(), "ready_bookies": 2})
    wrong = Refusal("spec.config", "bookiePort", "the operator sets it", "remove the line")
    refused = with_status(few, **refused_status(few, (wrong,), "2026-01-01T00:00:00Z"))
    assert plan_both(replace(LOST, bookkeeper=few)).actions == ()
    assert plan_both(replace(LOST, bookkeeper=refused)).actions[:1] == (MOVED,)
    assert summarize_herddb(replace(CALM, bookkeeper=refused)).health.status == "True", "who serves writes is not called read-only"


def test_a_refused_database_moves_no_leader_to_where_no_ledger_can_be_opened():
    few = with_status(bookkeeper_serving(), **{**bookkeeper_serving().status.model_dump(), "ready_bookies": 2})
    plan = plan_refused(replace(LOST, bookkeeper=few))
    assert plan.actions == ()
    assert plan.wait is not None
    assert plan.wait.reason is Reason.NO_LEADER
    assert "2 writable bookies of the 3" in plan.wait.message
