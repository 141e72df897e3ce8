"""What a deletion takes with it, in which order, and what it never touches."""

from __future__ import annotations

import datetime
from dataclasses import replace
from itertools import product
from unittest.mock import MagicMock

import pytest
from situations import ENSEMBLE, claim, live, objects, pods, quickstart, ready, with_metadata, with_spec, with_status
from test_plan_herddb import LOG
from test_plan_herddb import SEEN as DATABASE
from test_plan_tablespace import RECORD, SETTLED

from herdkeeper.api.resource import Condition
from herdkeeper.bookkeeper.build.bookies import BookieIdentity, build_bookie
from herdkeeper.bookkeeper.deletion import plan_bookkeeper_deletion
from herdkeeper.bookkeeper.state.bookies import LedgersMetadata, MetadataAbsent, MetadataStore
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.engine.reconcile import finalizer_step
from herdkeeper.herddb.build import build_herddb
from herdkeeper.herddb.deletion import plan_herddb_deletion
from herdkeeper.herddb.execute.tablespaces import Login, drop_tablespace
from herdkeeper.herddb.state.cluster import RecordAbsent, UserCredentials, VersionedRecord
from herdkeeper.herddb.state.fleet import SqlFleet
from herdkeeper.herddb.state.log_store import log_store
from herdkeeper.herddb.tablespace.deletion import plan_tablespace_deletion
from herdkeeper.herddb.tablespace.judged_nodes import Declared
from herdkeeper.planning.actions import Delete, DeleteLogs, DeleteZnodes, DropTablespace, SetFinalizer
from herdkeeper.planning.deletion import PATIENCE_SECONDS, plan_unreadable_deletion, waited_seconds, waiting_for_users
from herdkeeper.shared import names
from herdkeeper.shared.dependents import NO_DEPENDENTS, Dependents
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.sql.connection import Connection
from herdkeeper.zookeeper.build import build_zookeeper
from herdkeeper.zookeeper.deletion import plan_zookeeper_deletion
from herdkeeper.zookeeper.state import Ensemble

ZOOKEEPER, BOOKKEEPER, HERDDB, TABLESPACE = (
    quickstart(kind) for kind in ("ZooKeeperCluster", "BookKeeperCluster", "HerdDBCluster", "Tablespace")
)
METADATA = LedgersMetadata("an-instance", frozenset(), frozenset(), frozenset(), None, under_replicated=False)
STORE = MetadataStore("zk-0:2181", serving=True)
MINE = with_status(with_spec(TABLESPACE, deletion_policy="Delete"), uuid="a-uuid")
MADE = replace(SETTLED, tablespace=MINE)
LATE = PATIENCE_SECONDS + 1


def bookkeeper_plan(*parts, metadata=METADATA, age=1.0):
    return plan_bookkeeper_deletion(BookieFleet(BOOKKEEPER, objects(*parts), STORE, metadata, ()), age)


def gives_up(plan) -> bool:
    return [action.reason for action in plan.actions if isinstance(action, SetFinalizer)] == [Reason.DELETION_GIVEN_UP]


IN_USE, DROPPING = Dependents(not_deleted=("HerdDBCluster db",)), Dependents(deleting=("HerdDBCluster db",))
GOING = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("policy", "users", "finalizers", "deleting", "expected"),
    [
        ("Delete", NO_DEPENDENTS, (), None, True),
        ("Delete", NO_DEPENDENTS, (names.FINALIZER,), None, None),
        ("Delete", NO_DEPENDENTS, (), GOING, None),
        ("Retain", NO_DEPENDENTS, (names.FINALIZER,), None, False),
        ("Retain", NO_DEPENDENTS, (names.FINALIZER,), GOING, False),
        ("Retain", NO_DEPENDENTS, (), None, None),
        ("Retain", IN_USE, (), None, True),
        ("Retain", IN_USE, (names.FINALIZER,), None, None),
        ("Retain", IN_USE, (names.FINALIZER,), GOING, None),
        ("Retain", IN_USE, (), GOING, None),
        ("Retain", DROPPING, (names.FINALIZER,), GOING, None),
    ],
)
def test_the_finalizer_follows_policy_and_users_and_is_never_added_to_what_is_going(policy, users, finalizers, deleting, expected):
    resource = with_metadata(with_spec(ZOOKEEPER, deletion_policy=policy), finalizers=finalizers, deletion_timestamp=deleting)
    step = finalizer_step(resource, users)
    assert (None if step is None else step.present) == expected
    if step is not None and step.present:
        assert ("deletionPolicy is Delete" in step.message) == (policy == "Delete")


@pytest.mark.parametrize(
    ("users", "told"),
    [
        (NO_DEPENDENTS, None),
        (IN_USE, "it is deleted once nothing refers to it: first delete HerdDBCluster db, or change the reference there"),
        (DROPPING, "these still need it to delete their data: HerdDBCluster db"),
        (
            Dependents(IN_USE.not_deleted, ("HerdDBCluster old",)),
            "it is deleted once nothing refers to it: first delete HerdDBCluster db",
        ),
    ],
)
def test_a_deletion_waits_for_whoever_uses_it_and_says_for_whom(users, told):
    plan = waiting_for_users(users)
    if told is None:
        assert plan is None
        return
    assert plan is not None
    assert plan.actions == ()
    assert plan.wait is not None
    assert plan.wait.reason is Reason.WAITING_FOR_DEPENDENTS
    assert plan.wait.message.startswith(told)


@pytest.mark.parametrize(("users", "expected"), [(DROPPING, (Reason.WAITING_FOR_DEPENDENTS, 0)), (IN_USE, (Reason.DELETING, 1))])
def test_a_database_waits_for_tablespaces_that_drop_their_data_and_for_no_others(users, expected):
    volume = claim("data-db-herddb-0")
    seen = SqlFleet(HERDDB, objects(volume), None, root=True, dependents=users)
    plan = plan_herddb_deletion(seen, 1.0)
    assert plan.wait is not None
    assert (plan.wait.reason, len(plan.actions)) == expected


def test_servers_go_before_volumes_and_volumes_before_the_finalizer():
    volume = claim("data-zk-zookeeper-0")
    stopped = Ensemble(ZOOKEEPER, objects(volume))
    stopping = Ensemble(ZOOKEEPER, objects(volume, pods(["zk-zookeeper-0"])))
    running = Ensemble(ZOOKEEPER, objects(live(build_zookeeper(stopped)), stopping.objects.items))
    steps = [plan_zookeeper_deletion(seen) for seen in (running, stopping, stopped)]
    assert [[action.kind for action in step.actions if isinstance(action, Delete)] for step in steps] == [
        ["StatefulSet"],
        [],
        ["PersistentVolumeClaim"],
    ]
    last = plan_zookeeper_deletion(Ensemble(ZOOKEEPER, objects()))
    assert [action.reason for action in last.actions if isinstance(action, SetFinalizer)] == [Reason.DATA_DELETED]


def test_volumes_are_deleted_by_uid_and_not_twice():
    volume = claim("data-zk-zookeeper-0")
    assert [action.uid for action in plan_zookeeper_deletion(Ensemble(ZOOKEEPER, objects(volume))).actions] == ["uid-data-zk-zookeeper-0"]
    volume[("PersistentVolumeClaim", "data-zk-zookeeper-0")]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    plan = plan_zookeeper_deletion(Ensemble(ZOOKEEPER, objects(volume)))
    assert plan.actions == ()
    assert plan.wait is not None


def stepwise(plan_of, workload, volume, pod):
    """What each step deletes: while servers run, while pods stop, while volumes are there."""
    steps = [plan_of(*parts) for parts in ((workload, volume, pods([pod])), (workload, volume), (volume, pods([pod])), (volume,))]
    deleted = [[(action.kind, action.name) for action in step.actions if isinstance(action, Delete)] for step in steps]
    assert all(isinstance(action, Delete) for step in steps for action in step.actions)
    return deleted, [step.wait.message if step.wait else None for step in steps]


def test_bookies_stop_before_their_volumes_go_and_those_before_the_metadata():
    made = live([build_bookie(BOOKKEEPER, BookieIdentity(0, "bk-bookie-0-aaaaaa"), "zk-0:2181")])
    deleted, told = stepwise(bookkeeper_plan, made, claim("bk-bookie-0-journal"), "bk-bookie-0-0")
    server, volume = ("StatefulSet", "bk-bookie-0"), ("PersistentVolumeClaim", "bk-bookie-0-journal")
    assert deleted == [[server], [server], [], [volume]]
    assert told == [*["the servers are stopped"] * 2, "1 pod is stopping", "1 volume claim or Secret is being deleted"]


def herddb_plan(*parts, waited=1.0, **seen):
    return plan_herddb_deletion(replace(DATABASE, objects=objects(*parts), **seen), waited)


def test_sql_nodes_stop_before_their_volumes_and_password_go():
    made = live(build_herddb(HERDDB, LOG, "db-herddb-credentials")[-1:])
    secret = {("Secret", "s"): {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "uid": "uid-s"}}}
    deleted, _ = stepwise(herddb_plan, made, {**claim("data-db-herddb-0"), **secret}, "db-herddb-0")
    server, data = ("StatefulSet", "db-herddb"), [("PersistentVolumeClaim", "data-db-herddb-0"), ("Secret", "s")]
    assert deleted == [[server], [server], [], data]


def test_a_database_takes_its_logs_and_then_its_metadata_with_it():
    logs = DeleteLogs(ENSEMBLE, "/demo/bk/ledgers", "/demo/db/herd", None)
    assert herddb_plan(root=True).actions == (logs, DeleteZnodes(ENSEMBLE, "/demo/db/herd"))
    (done,) = herddb_plan(root=False).actions
    assert (done.present, done.reason) == (False, Reason.DATA_DELETED)


def test_a_database_whose_log_another_bookkeeper_has_keeps_its_lists_and_its_volumes():
    plan = herddb_plan(claim("data-db-herddb-0"), root=True, foreign_ledger="ledger 7 is of another log")
    assert gives_up(plan)
    assert plan.actions[0].message.startswith("what is below /demo/db/herd in ZooKeeper and in volume claims was left behind: the Book")


@pytest.mark.parametrize(
    ("situation", "seen"),
    [("ZooKeeper does not answer", {"root": Unknown("silence")}), ("its log is not known any more", {"root": True, "bookkeeper": None})],
)
def test_a_database_s_metadata_that_can_t_be_reached_is_waited_for_and_then_given_up(situation, seen):
    waiting = herddb_plan(waited=PATIENCE_SECONDS - 1, **seen)
    assert (waiting.actions, waiting.wait is not None) == ((), True), situation
    assert gives_up(herddb_plan(waited=PATIENCE_SECONDS, **seen)), situation


def test_a_database_waits_for_tablespaces_that_are_dropped_and_not_for_those_that_live():
    made = live(build_herddb(HERDDB, LOG, "db-herddb-credentials")[-1:])
    assert herddb_plan(made, dependents=Dependents(deleting=("Tablespace flights",))).actions == ()
    assert herddb_plan(made, dependents=Dependents(not_deleted=("Tablespace flights",))).actions != ()


def test_metadata_whose_ensemble_is_gone_is_waited_for():
    seen = BookieFleet(BOOKKEEPER, objects(), Problem(Reason.WAITING_FOR_ZOOKEEPER, "gone"), METADATA, ())
    assert plan_bookkeeper_deletion(seen, 1.0).actions == ()


def test_bookkeeper_s_metadata_goes_after_the_bookies_and_before_the_finalizer():
    assert [type(action) for action in bookkeeper_plan().actions] == [DeleteZnodes]
    assert [type(action) for action in bookkeeper_plan(metadata=MetadataAbsent()).actions] == [SetFinalizer]


@pytest.mark.parametrize("registered", [{"writable": frozenset({"a"})}, {"read_only": frozenset({"a"})}])
def test_metadata_under_which_a_bookie_is_registered_is_somebody_else_s_and_left_behind(registered):
    early, late = (bookkeeper_plan(metadata=replace(METADATA, **registered), age=age) for age in (1.0, LATE))
    assert early.actions == ()
    assert early.wait is not None
    assert "these are registered: a" in early.wait.message
    assert gives_up(late)


def test_metadata_that_can_t_be_reached_is_waited_for_and_then_given_up_by_name():
    early, late = (bookkeeper_plan(metadata=Unknown("silence"), age=age) for age in (1.0, LATE))
    assert early.actions == ()
    assert gives_up(late)
    assert "/demo/bk/ledgers" in late.actions[0].message


def test_a_tablespace_is_dropped_and_then_its_log_deleted_and_then_it_is_done():
    assert plan_tablespace_deletion(MADE, 1.0).actions == (DropTablespace("db", "db-herddb-1", "flights", "a-uuid"),)
    dropped = replace(MADE, record=RecordAbsent())
    logs = plan_tablespace_deletion(dropped, 1.0).actions[0]
    assert isinstance(logs, DeleteLogs)
    assert logs.uuids == ("a-uuid",)
    assert [type(action) for action in plan_tablespace_deletion(replace(dropped, log_left=False), 1.0).actions] == [SetFinalizer]


def test_a_drop_names_the_tablespace_by_its_uuid_too_since_a_hung_node_may_get_to_it_late(monkeypatch):
    connection = MagicMock()
    monkeypatch.setattr(Connection, "connect", connection)
    (drop,) = plan_tablespace_deletion(MADE, 1.0).actions
    assert isinstance(drop, DropTablespace)
    drop_tablespace(ObjectKey("demo", "db"), Login(UserCredentials("admin", "secret")), drop)
    connection().__enter__().execute.assert_called_once_with("DROP TABLESPACE 'flights'", ("a-uuid",))


@pytest.mark.parametrize(
    ("situation", "seen"),
    [
        ("it was refused, since another resource has the name", replace(SETTLED, tablespace=TABLESPACE)),
        ("another tablespace has the name now", replace(MADE, record=VersionedRecord(replace(RECORD, uuid="another"), 0))),
        ("ZooKeeper does not answer", replace(MADE, record=Unknown("silence"))),
        ("the HerdDBCluster no longer exists", replace(MADE, herddb=None)),
    ],
)
def test_a_tablespace_of_somebody_else_or_one_that_can_t_be_read_is_not_dropped(situation, seen):
    for age in (1.0, LATE):
        plan = plan_tablespace_deletion(seen, age)
        assert not [action for action in plan.actions if isinstance(action, DropTablespace)], situation


@pytest.mark.parametrize("record", [SETTLED.record, Unknown("silence")], ids=["it is there", "nobody knows"])
def test_a_tablespace_that_was_made_and_not_noted_before_its_resource_was_deleted_is_not_called_deleted(record):
    unnoted = replace(SETTLED, tablespace=with_spec(TABLESPACE, deletion_policy="Delete"))
    (kept,) = plan_tablespace_deletion(replace(unnoted, record=record), 1.0).actions
    assert isinstance(kept, SetFinalizer)
    assert (kept.present, kept.reason) == (False, Reason.DATA_KEPT)
    assert "flights stays" in kept.message


def test_a_tablespace_that_another_resource_has_taken_over_is_left_to_that():
    heir = with_metadata(with_status(TABLESPACE, uuid="a-uuid"), name="heir", uid="uid-of-heir")
    unread = Declared("flights", heir.model_copy(update={"spec": None}), readable=False)
    for seen, known in product((MADE, replace(MADE, record=RecordAbsent())), ({"others": (heir,)}, {"unread_others": (unread,)})):
        (step,) = plan_tablespace_deletion(replace(seen, **known), 1.0).actions
        assert isinstance(step, SetFinalizer)
        assert (step.present, step.reason) == (False, Reason.DATA_KEPT)
        assert "heir" in step.message


def test_what_was_never_made_needs_no_deletion():
    unmade = replace(SETTLED, tablespace=with_spec(TABLESPACE, deletion_policy="Delete"), record=RecordAbsent())
    (step,) = plan_tablespace_deletion(unmade, 1.0).actions
    assert (step.present, step.reason) == (False, Reason.DATA_DELETED)


@pytest.mark.parametrize(
    ("situation", "seen"),
    [
        ("there is no database", replace(MADE, herddb=None)),
        ("the database has no log yet", replace(MADE, log=None)),
        ("the record can't be read", replace(MADE, record=Unknown("silence"))),
        ("nobody leads HerdDB's own tablespace", replace(MADE, system_leader=None)),
        ("its leader is not Ready", replace(MADE, nodes={})),
        ("its leader does not answer", replace(MADE, nodes={"db-herddb-1": Unknown("silence")})),
        ("the log can't be read", replace(MADE, record=RecordAbsent(), log_left=Unknown("silence"))),
    ],
)
def test_a_tablespace_s_deletion_waits_for_whom_it_needs_and_then_gives_up(situation, seen):
    waiting = plan_tablespace_deletion(seen, PATIENCE_SECONDS - 1)
    assert (waiting.actions, waiting.wait is not None) == ((), True), situation
    assert gives_up(plan_tablespace_deletion(seen, PATIENCE_SECONDS)), situation


def test_a_database_that_is_gone_is_given_up_so_that_the_namespace_can_go():
    assert gives_up(plan_tablespace_deletion(replace(MADE, herddb=None), LATE))


NOW = datetime.datetime(2026, 1, 1, 0, 10, 0, tzinfo=datetime.UTC)
AN_HOUR_AGO, A_MINUTE_AGO = "2025-12-31T23:10:00Z", "2026-01-01T00:09:00Z"


@pytest.mark.parametrize(
    ("situation", "deleted", "reason", "since", "seconds"),
    [
        ("it is silent since a minute", AN_HOUR_AGO, "Unreadable", A_MINUTE_AGO, 60),
        ("it was silent before the deletion", A_MINUTE_AGO, "Unreadable", AN_HOUR_AGO, 60),
        ("servers are still being stopped", AN_HOUR_AGO, "Deleting", AN_HOUR_AGO, 0),
        ("it is not deleted", None, "Unreadable", AN_HOUR_AGO, 0),
        ("its clock is ahead", A_MINUTE_AGO, "Unreadable", "2026-01-01T00:11:00Z", 0),
        ("it was never looked at", AN_HOUR_AGO, None, AN_HOUR_AGO, 0),
    ],
)
def test_patience_begins_when_the_backend_falls_silent_not_when_the_deletion_begins(situation, deleted, reason, since, seconds):
    said = Condition(type="Ready", status="Unknown", reason=reason or "", message="", last_transition_time=since, observed_generation=1)
    resource = with_metadata(with_status(BOOKKEEPER, conditions=(said,) if reason else ()), deletion_timestamp=deleted)
    assert waited_seconds(resource, NOW) == seconds, situation


@pytest.mark.parametrize(("age", "reason"), [(1.0, []), (LATE, [Reason.DELETION_GIVEN_UP])])
def test_of_a_deleted_resource_that_can_t_be_read_nothing_is_deleted_but_its_finalizer(age, reason):
    plan = plan_unreadable_deletion("spec.replicas is 'x'", age)
    assert [action.reason for action in plan.actions if isinstance(action, SetFinalizer)] == reason
    assert all(isinstance(action, SetFinalizer) and not action.present for action in plan.actions)


def test_a_status_that_somebody_wrote_leads_no_deletion_to_ledgers_elsewhere():
    forged = {"zoo_keeper_address": "elsewhere:2181", "ledgers_root": "/another/bk/ledgers"}
    found = log_store(ready(with_spec(quickstart("BookKeeperCluster"), zoo_keeper_ref=None, zoo_keeper_address="zk:2181"), **forged))
    assert found is not None
    assert (found.zookeeper_address, found.ledgers_root) == ("zk:2181", names.ledgers_root(ObjectKey("demo", "bk")))


MEMBERS = quickstart("ZooKeeperCluster").names


@pytest.mark.parametrize(
    "address",
    ["elsewhere:2181", f"{MEMBERS.address(3)},elsewhere:2181", MEMBERS.address(1, 2182), MEMBERS.address(8), "", MEMBERS.host(0)],
)
def test_a_status_that_somebody_wrote_leads_nobody_to_another_ensemble(address):
    forged = ready(quickstart("BookKeeperCluster"), zoo_keeper_address=address, ledgers_root="/demo/bk/ledgers")
    assert log_store(forged) is None
    assert with_status(quickstart("ZooKeeperCluster"), address=address).published_address is None


@pytest.mark.parametrize("address", [MEMBERS.address(1), MEMBERS.address(7), MEMBERS.address(3, names.ZOOKEEPER_SECURE_PORT)])
def test_members_of_the_ensemble_are_found_by_the_status(address):
    found = log_store(ready(quickstart("BookKeeperCluster"), zoo_keeper_address=address, ledgers_root="/demo/bk/ledgers"))
    assert found is not None
    assert found.zookeeper_address == address
    assert with_status(quickstart("ZooKeeperCluster"), address=address).published_address == address
