"""SQL nodes leave from the top, one by one, after their copies and leaderships; what can't move holds them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from both_controllers import plan_both
from situations import claim, live, objects, pods, quickstart, readable, ready, with_metadata, with_spec, with_status
from test_plan_herddb import LOG, SETTLED

from herdkeeper.clients.deleted_resources import DeletedResources
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.engine.execute import Clients
from herdkeeper.engine.key import Key
from herdkeeper.engine.kinds import steps_by_kind
from herdkeeper.engine.reconcile import reconcile
from herdkeeper.herddb.build import build_herddb
from herdkeeper.herddb.plan.cluster import plan_herddb
from herdkeeper.herddb.plan.scale_down import scale_down
from herdkeeper.herddb.state.cluster import NodeTablespace, VersionedRecord
from herdkeeper.herddb.tablespace.build import build_leader_service
from herdkeeper.herddb.tablespace.judged_nodes import Declared
from herdkeeper.herddb.tablespace.validate import tablespace_refusals
from herdkeeper.planning.actions import Apply, ChangeTablespaceRecord, Delete, ForgetNode
from herdkeeper.settings import Settings
from herdkeeper.shared import names
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

N0, N1, N2, N3 = NODES = tuple(f"db-herddb-{number}" for number in range(4))
CLUSTER = quickstart("HerdDBCluster")
TWO = with_spec(CLUSTER, replicas=2)
TABLESPACE = quickstart("Tablespace")
UNREAD = Declared("flights", TABLESPACE, readable=False)
LEADER = NodeTablespace("flights", "a-uuid", "leader", True, (7, 9), None, (7, 0), True)
FOLLOWER = replace(LEADER, role="follower")


def record(leader: str, *nodes: str, name: str = "flights") -> dict[str, VersionedRecord]:
    return {
        name: VersionedRecord(TablespaceRecord(f"{'a' if name == 'flights' else name}-uuid", name, leader, nodes, 1, 60_000), 4, 1000.0)
    }


def running(count: int, *, found: dict[str, VersionedRecord], with_pods: int | None = None, registered: int | None = None, **more):
    """A StatefulSet of `count` nodes, as many pods (or `with_pods`) that serve, and records that all their nodes have settled."""
    names_of_pods = NODES[: count if with_pods is None else with_pods]
    views = {
        node: tuple(
            replace(
                LEADER,
                name=name,
                uuid=each.record.uuid,
                role="leader" if node == each.record.leader else "follower",
            )
            for name, each in found.items()
            if node in each.record.replicas
        )
        for node in names_of_pods
    }
    services = live(build_leader_service(TABLESPACE, each.record.leader) for name, each in found.items() if name == "flights")
    made = live(build_herddb(CLUSTER, LOG, "db-herddb-credentials", count))
    return replace(
        SETTLED,
        cluster=TWO,
        objects=objects(made, services, pods(names_of_pods)),
        records=found,
        nodes=views,
        registered=NODES[: count if registered is None else registered],
        declared=readable(TABLESPACE),
        now=2000.0,
        **more,
    )


MOVED_AWAY = running(3, found=record(N0, N0, N1))


def without_record(seen):
    """The tablespace was made, and HerdDB's metadata has only HerdDB's own, as after the loss of ZooKeeper's volumes."""
    return replace(seen, records=record(N0, N0, N1, name="herd"), declared=readable(with_status(TABLESPACE, uuid="a-uuid")))


def changed(plan) -> list[tuple[str, tuple[str, ...]]]:
    """Leader and replicas of the records that are changed."""
    return [(action.record.leader, action.record.replicas) for action in plan.actions if isinstance(action, ChangeTablespaceRecord)]


def scaled(plan) -> list[int]:
    return [
        action.manifest["spec"]["replicas"]
        for action in plan.actions
        if isinstance(action, Apply) and action.manifest["kind"] == "StatefulSet"
    ]


def test_as_many_nodes_as_declared_need_nothing():
    seen = running(2, found=record(N0, N0, N1))
    plan = plan_herddb(seen)
    assert (plan.actions, plan.wait, plan.later) == ((), None, ())
    assert scale_down(seen).nodes == 2


def test_a_node_that_no_record_names_stops():
    assert scaled(plan_herddb(MOVED_AWAY)) == [2]


def test_two_nodes_stop_one_after_the_other():
    four = running(4, found=record(N0, N0, N1))
    assert scaled(plan_herddb(four)) == [3]
    three = running(3, found=record(N0, N0, N1), with_pods=4, registered=4)
    plan = plan_herddb(three)
    assert (scaled(plan), plan.wait and plan.wait.reason) == ([], Reason.POD_STOPPING)


def test_a_higher_node_does_not_wait_for_a_lower_one_that_still_holds_a_copy():
    plan = plan_herddb(running(4, found=record(N0, N0, N2)))
    assert scaled(plan) == [3]
    assert plan.wait is not None
    assert (plan.wait.reason, "flights: db-herddb-2" in plan.wait.message) == (Reason.WAITING_FOR_TABLESPACE, True)


def test_a_node_with_a_copy_waits_for_its_tablespace_and_is_named_in_the_status():
    seen = running(3, found=record(N0, N0, N2))
    plan = plan_herddb(seen)
    assert (plan.actions, plan.requeue_after_seconds) == ((), 2.0)
    assert plan.wait is not None
    assert plan.wait.reason is Reason.WAITING_FOR_TABLESPACE
    assert plan.decided_fields["leavingNodes"] == [N2]


def test_a_tablespace_that_a_resource_which_can_not_be_read_may_declare_is_not_to_be_dropped():
    plan = plan_herddb(replace(running(3, found=record(N0, N0, N2)), declared=(UNREAD,)))
    assert plan.wait is not None
    assert "can't be read: correct it" in plan.wait.message
    assert "drop it" not in plan.wait.message


@pytest.mark.parametrize(
    ("annotations", "told", "steps"),
    [
        ({}, ([N2], [N2]), None),
        ({names.PAUSED_ANNOTATION: "true"}, ([], []), None),
        ({names.PLAN_ANNOTATION: "true"}, ([], []), "Moving the leadership of flights from db-herddb-2 to a node that stays"),
    ],
)
def test_tablespaces_and_leaders_are_not_told_to_move_while_the_cluster_shall_be_left_alone(annotations, told, steps):
    resource, written = with_metadata(TWO, annotations=annotations), []
    reader = SimpleNamespace(deleted=DeletedResources(), kubernetes=SimpleNamespace(resource=lambda *_: resource))
    writer = SimpleNamespace(write_status=lambda _, status: written.append(status), event=lambda *_: None)
    rules = steps_by_kind(Settings.from_environment({}))["HerdDBCluster"]
    seen = running(3, found=record(N2, N2, N0))
    rules = replace(rules, observe=lambda cluster, _: replace(seen, cluster=cluster), plan=plan_herddb)
    reconcile(Key.of(resource), rules, Clients(writer, reader, None, lambda: True, None))
    (status,) = written
    relieved = [each["node"] for each in status.get("relievedNodes", [])]
    assert (status.get("leavingNodes", []), relieved, status["nodes"]) == (*told, 3)
    assert steps is None or steps in status["plan"]["steps"]


def test_a_leadership_leaves_once_a_copy_that_stays_could_lead():
    assert changed(plan_both(running(3, found=record(N2, N2, N0)))) == [(N0, (N2, N0))]


def test_no_leadership_goes_from_one_leaving_node_to_another():
    found = record(N3, N2, N3, N0)
    settled = running(4, found=found)
    assert changed(plan_both(settled)) == [(N0, (N2, N3, N0))]
    booting = replace(settled, nodes={**settled.nodes, N0: (replace(FOLLOWER, role="booting", ready=False),)})
    assert changed(plan_both(booting)) == []


def test_a_leadership_stays_while_only_its_own_node_has_a_copy():
    plan = plan_both(running(3, found=record(N2, N2)))
    assert plan.actions == ()
    assert plan.wait is not None
    assert plan.wait.reason is Reason.WAITING_FOR_TABLESPACE


def test_a_failed_leader_is_replaced_though_nodes_leave():
    seen = running(3, found=record(N2, N2, N0))
    gone = replace(seen, objects=objects({key: item for key, item in seen.objects.items.items() if key != ("Pod", N2)}))
    assert changed(plan_both(gone)) == [(N0, (N2, N0))]


def test_herddb_s_own_tablespace_is_moved_by_the_cluster():
    on_two = record(N0, N0, N1, N2, name="herd")
    assert changed(plan_both(running(3, found=on_two))) == [(N0, (N0, N1))]
    assert changed(plan_both(running(3, found=record(N2, N0, N1, N2, name="herd")))) == [(N0, (N0, N1, N2))]
    assert changed(plan_both(running(3, found=record(N2, N2, name="herd")))) == [(N2, (N2, N0))]


def test_herddb_s_own_tablespace_keeps_its_copies_until_a_node_that_stays_serves():
    seen = running(4, found=record(N2, N2, N3, name="herd"))
    booting = replace(seen, objects=objects(seen.objects.items, pods(NODES[:2], conditions=[])))
    assert changed(plan_both(booting)) == []


def test_a_leaving_node_that_can_not_run_gives_its_copy_up_though_a_roll_waits_for_it():
    seen = running(3, found=record(N0, N0, N1, N2, name="herd"))
    items = dict(seen.objects.items)
    stateful_set = items["StatefulSet", "db-herddb"]
    generation = {**stateful_set["metadata"], "generation": 2}
    items["StatefulSet", "db-herddb"] = {
        **stateful_set,
        "metadata": generation,
        "status": {"observedGeneration": 2, "updateRevision": "new"},
    }
    for node, revision, more in ((N0, "old", {}), (N1, "old", {}), (N2, "new", {"conditions": []})):
        (item,) = pods([node], **more).values()
        items["Pod", node] = {**item, "metadata": {**item["metadata"], "labels": {names.REVISION_LABEL: revision}}}
    pending = replace(seen, objects=objects(items), nodes={**seen.nodes, N2: Unknown("its pod is pending")})
    plan = plan_herddb(pending)
    assert (changed(plan), plan.wait and plan.wait.reason) == ([(N0, (N0, N1))], Reason.WAITING_FOR_OTHERS)
    assert [action for action in plan.actions if isinstance(action, Delete)] == []


def test_a_node_that_is_wanted_again_stays():
    three = with_spec(CLUSTER, replicas=3)
    seen = running(3, found=record(N0, N0, N2))
    plan = plan_herddb(replace(seen, cluster=three))
    assert (plan.actions, plan.decided_fields["leavingNodes"]) == ((), [])
    assert scaled(plan_herddb(replace(running(2, found=record(N0, N0, N1)), cluster=three))) == [3]


def test_a_node_that_a_record_names_after_all_is_started_again():
    named = running(2, found=record(N2, N2), registered=3)
    assert scaled(plan_herddb(named)) == [3]
    assert scaled(plan_herddb(replace(named, registered=NODES[:2]))) == [], "a node that never was is not made for a name"


BLOCKED = running(3, found=record(N2, N2, N0))
LONELY = replace(BLOCKED, declared=())


@pytest.mark.parametrize(
    ("situation", "seen", "reason", "words"),
    [
        (
            "more replicas are declared than nodes would remain",
            replace(BLOCKED, declared=readable(with_spec(TABLESPACE, replicas=3))),
            Reason.WAITING_FOR_TABLESPACE,
            "the Tablespace flights declares 3 replicas and 2 nodes would remain",
        ),
        (
            "a leaving node is preferred",
            replace(BLOCKED, declared=readable(with_spec(TABLESPACE, preferred_leader=N2))),
            Reason.WAITING_FOR_TABLESPACE,
            "prefers db-herddb-2, which is being removed",
        ),
        ("nobody declares it", LONELY, Reason.WAITING_FOR_TABLESPACE, "no Tablespace declares flights"),
        (
            "its Tablespace can't be read",
            replace(LONELY, declared=(UNREAD,)),
            Reason.WAITING_FOR_TABLESPACE,
            "the Tablespace flights can't be read: correct it",
        ),
        (
            "its Tablespace is paused",
            replace(BLOCKED, declared=readable(with_metadata(TABLESPACE, annotations={names.PAUSED_ANNOTATION: "true"}))),
            Reason.WAITING_FOR_TABLESPACE,
            f"remove its annotation {names.PAUSED_ANNOTATION}",
        ),
        (
            "its Tablespace shows its plan",
            replace(BLOCKED, declared=readable(with_metadata(TABLESPACE, annotations={names.PLAN_ANNOTATION: "true"}))),
            Reason.WAITING_FOR_TABLESPACE,
            f"remove its annotation {names.PLAN_ANNOTATION}",
        ),
        (
            "a node that stays is silent",
            replace(BLOCKED, nodes={**BLOCKED.nodes, N1: Unknown("silence")}),
            Reason.UNREADABLE,
            "db-herddb-1 does not answer (silence)",
        ),
        ("ZooKeeper is silent", replace(BLOCKED, records=Unknown("no quorum")), Reason.UNREADABLE, "no quorum"),
        ("the nodes can't be listed", replace(BLOCKED, registered=Unknown("no quorum")), Reason.UNREADABLE, "no quorum"),
        ("ZooKeeper lost all records", replace(MOVED_AWAY, records={}), Reason.UNREADABLE, "no record of any tablespace"),
        ("ZooKeeper lost one record", without_record(MOVED_AWAY), Reason.UNREADABLE, "no record of what flights created"),
    ],
)
def test_nothing_moves_and_no_node_stops_while(situation, seen, reason, words):
    plan = plan_herddb(seen)
    assert plan.actions == (), situation
    assert plan.wait is not None
    assert plan.wait.reason is reason
    assert words in plan.wait.message
    assert plan.decided_fields["leavingNodes"] == []


def test_what_blocks_one_node_stops_no_other_reconcile_step():
    broken = with_spec(TWO, image="mended:1")
    blocked = replace(LONELY, objects=objects(LONELY.objects.items, pods(NODES[:3], conditions=[])))
    assert scaled(plan_herddb(replace(blocked, cluster=broken))) == [3]


GONE = running(2, found=record(N0, N0, N1), registered=3)
VOLUME = claim("data-db-herddb-2")
WITH_VOLUME = replace(GONE, objects=objects(GONE.objects.items, VOLUME, claim("data-db-herddb-1")))


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("Retain", (ForgetNode(LOG.zookeeper_address, "/demo/db/herd", N2),)),
        (
            "Delete",
            (
                ForgetNode(LOG.zookeeper_address, "/demo/db/herd", N2),
                Delete("v1", "PersistentVolumeClaim", "data-db-herddb-2", "uid-data-db-herddb-2", Reason.LEFT),
            ),
        ),
    ],
)
def test_a_node_that_is_gone_is_forgotten_and_its_claim_treated_as_declared(policy, expected):
    """The claim goes behind the write that fails if a tablespace names the node by then: actions end at the first failure."""
    assert plan_herddb(replace(WITH_VOLUME, cluster=with_spec(TWO, deletion_policy=policy))).actions == expected


@pytest.mark.parametrize(
    ("situation", "cluster", "seen"),
    [
        ("its pod still stops", TWO, replace(WITH_VOLUME, objects=objects(WITH_VOLUME.objects.items, pods([N2])))),
        ("it is wanted again", with_spec(CLUSTER, replicas=3), WITH_VOLUME),
        ("a record names it", TWO, replace(WITH_VOLUME, records=record(N0, N0, N2))),
        ("ZooKeeper is silent", TWO, replace(WITH_VOLUME, records=Unknown("no quorum"))),
        ("the nodes can't be listed", TWO, replace(WITH_VOLUME, registered=Unknown("no quorum"))),
        ("ZooKeeper lost all records", TWO, replace(WITH_VOLUME, records={})),
        ("ZooKeeper lost one record", TWO, without_record(WITH_VOLUME)),
        ("its Tablespace can't be read", TWO, replace(without_record(WITH_VOLUME), declared=(UNREAD,))),
    ],
)
def test_nothing_is_forgotten_or_deleted_while(situation, cluster, seen):
    actions = plan_herddb(replace(seen, cluster=with_spec(cluster, deletion_policy="Delete"))).actions
    assert [action for action in actions if isinstance(action, Delete | ForgetNode)] == [], situation


def test_a_plan_that_is_shown_names_all_steps_and_what_they_wait_for():
    plan = plan_herddb(BLOCKED)
    assert plan_herddb(running(3, found=record(N2, N2, N0))).later == (
        "Moving the leadership of flights from db-herddb-2 to a node that stays",
        "Moving the replica of flights from db-herddb-2 to a node that stays",
        "Stopping db-herddb-2",
        "Removing db-herddb-2 from HerdDB's nodes",
        "Keeping the claim data-db-herddb-2",
    )
    assert plan.blockers == ("WaitingForTablespace: before nodes stop, their replicas move to nodes that stay (flights: db-herddb-2)",)


def test_a_tablespace_is_not_refused_for_nodes_that_leave():
    three = with_spec(TABLESPACE, replicas=3, preferred_leader=N2, failback="WhenHealthy")
    assert tablespace_refusals(three, ready(TWO, nodes=3)) == ()
    assert [each.path for each in tablespace_refusals(three, ready(TWO, nodes=2))] == ["spec.replicas", "spec.preferredLeader"]
