"""What a deletion takes with it, in which order, and what it never touches."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest
from situations import claim, live, objects, pods, quickstart, with_metadata, with_spec, with_status
from test_plan_tablespace import RECORD, SETTLED

from herdkeeper.api.resource import Condition
from herdkeeper.build.zookeeper import build_zookeeper
from herdkeeper.domain import names
from herdkeeper.domain.observed.bookkeeper import BookKeeperObserved, LedgersMetadata, MetadataAbsent, MetadataStore
from herdkeeper.domain.observed.dependents import NOBODY, Dependents
from herdkeeper.domain.observed.herddb import HerdDBObserved
from herdkeeper.domain.observed.tablespace import RecordAbsent, VersionedRecord
from herdkeeper.domain.observed.zookeeper import ZooKeeperObserved
from herdkeeper.domain.reason import Reason
from herdkeeper.domain.unknown import Unknown
from herdkeeper.plan import deletion
from herdkeeper.plan.action import Delete, DeleteLogs, DeleteZnodes, DropTablespace, SetFinalizer

ZOOKEEPER, BOOKKEEPER, HERDDB, TABLESPACE = (
    quickstart(kind) for kind in ("ZooKeeperCluster", "BookKeeperCluster", "HerdDBCluster", "Tablespace")
)
METADATA = LedgersMetadata("an-instance", frozenset(), frozenset(), frozenset(), None, under_replicated=False)
STORE = MetadataStore("zk-0:2181", serving=True)
MINE = with_status(TABLESPACE, uuid="a-uuid")
LATE = deletion.PATIENCE_SECONDS + 1


def bookkeeper_plan(*parts, metadata=METADATA, age=1.0):
    return deletion.plan_bookkeeper_deletion(BOOKKEEPER, BookKeeperObserved(objects(*parts), STORE, metadata, ()), age)


def gives_up(plan) -> bool:
    return [action.reason for action in plan.actions if isinstance(action, SetFinalizer)] == [Reason.DELETION_GIVEN_UP]


IN_USE, DROPPING = Dependents(living=("HerdDBCluster db",)), Dependents(deleting=("HerdDBCluster db",))
GOING = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("policy", "users", "finalizers", "deleting", "expected"),
    [
        ("Delete", NOBODY, (), None, True),
        ("Delete", NOBODY, (names.FINALIZER,), None, None),
        ("Delete", NOBODY, (), GOING, None),
        ("Retain", NOBODY, (names.FINALIZER,), None, False),
        ("Retain", NOBODY, (names.FINALIZER,), GOING, False),
        ("Retain", NOBODY, (), None, None),
        ("Retain", IN_USE, (), None, True),
        ("Retain", IN_USE, (names.FINALIZER,), None, None),
        ("Retain", IN_USE, (names.FINALIZER,), GOING, None),
        ("Retain", IN_USE, (), GOING, None),
        ("Retain", DROPPING, (names.FINALIZER,), GOING, None),
    ],
)
def test_the_finalizer_follows_policy_and_users_and_is_never_added_to_what_is_going(policy, users, finalizers, deleting, expected):
    resource = with_metadata(with_spec(ZOOKEEPER, deletion_policy=policy), finalizers=finalizers, deletion_timestamp=deleting)
    step = deletion.finalizer_step(resource, users)
    assert (None if step is None else step.present) == expected


@pytest.mark.parametrize(
    ("users", "told"),
    [
        (NOBODY, None),
        (IN_USE, "it is deleted once nobody uses it: delete HerdDBCluster db first, or let that refer to another"),
        (DROPPING, "these still delete their data with its help: HerdDBCluster db"),
        (Dependents(IN_USE.living, ("HerdDBCluster old",)), "it is deleted once nobody uses it: delete HerdDBCluster db first"),
    ],
)
def test_a_deletion_waits_for_whoever_uses_it_and_says_for_whom(users, told):
    plan = deletion.waiting_for_users(users)
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
    seen = HerdDBObserved(objects(volume), None, True, True, None, {}, "a-password", "a-token", dependents=users)
    plan = deletion.plan_herddb_deletion(HERDDB, seen, 1.0)
    assert plan.wait is not None
    assert (plan.wait.reason, len(plan.actions)) == expected


def test_servers_go_before_volumes_and_volumes_before_the_finalizer():
    volume = claim("data-zk-zookeeper-0")
    running = ZooKeeperObserved(objects(live(build_zookeeper(ZOOKEEPER, founding=False)), volume, pods(["zk-zookeeper-0"])), {})
    stopping = ZooKeeperObserved(objects(volume, pods(["zk-zookeeper-0"])), {})
    stopped = ZooKeeperObserved(objects(volume), {})
    steps = [deletion.plan_zookeeper_deletion(ZOOKEEPER, seen, 1.0) for seen in (running, stopping, stopped)]
    assert [[action.kind for action in step.actions if isinstance(action, Delete)] for step in steps] == [
        ["StatefulSet"],
        [],
        ["PersistentVolumeClaim"],
    ]
    last = deletion.plan_zookeeper_deletion(ZOOKEEPER, ZooKeeperObserved(objects(), {}), 1.0)
    assert [action.reason for action in last.actions if isinstance(action, SetFinalizer)] == [Reason.DATA_DELETED]


def test_volumes_are_deleted_by_uid_and_not_twice():
    volume = claim("data-zk-zookeeper-0")
    assert [action.uid for action in deletion.plan_zookeeper_deletion(ZOOKEEPER, ZooKeeperObserved(objects(volume), {}), 1.0).actions] == [
        "uid-data-zk-zookeeper-0"
    ]
    volume[("PersistentVolumeClaim", "data-zk-zookeeper-0")]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    plan = deletion.plan_zookeeper_deletion(ZOOKEEPER, ZooKeeperObserved(objects(volume), {}), 1.0)
    assert plan.actions == ()
    assert plan.wait is not None


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
    assert deletion.plan_tablespace_deletion(MINE, SETTLED, 1.0).actions == (DropTablespace("db", "db-herddb-1", "flights"),)
    dropped = replace(SETTLED, record=RecordAbsent())
    logs = deletion.plan_tablespace_deletion(MINE, dropped, 1.0).actions[0]
    assert isinstance(logs, DeleteLogs)
    assert logs.uuids == ("a-uuid",)
    assert [type(action) for action in deletion.plan_tablespace_deletion(MINE, replace(dropped, log_left=False), 1.0).actions] == [
        SetFinalizer
    ]


@pytest.mark.parametrize(
    ("situation", "tablespace", "seen"),
    [
        ("it was refused, since another resource has the name", TABLESPACE, SETTLED),
        ("another tablespace has the name now", MINE, replace(SETTLED, record=VersionedRecord(replace(RECORD, uuid="another"), 0))),
        ("ZooKeeper does not answer", MINE, replace(SETTLED, record=Unknown("silence"))),
        ("there is no database any more", MINE, replace(SETTLED, herddb=None)),
    ],
)
def test_a_tablespace_of_somebody_else_or_one_that_can_t_be_read_is_not_dropped(situation, tablespace, seen):
    for age in (1.0, LATE):
        plan = deletion.plan_tablespace_deletion(tablespace, seen, age)
        assert not [action for action in plan.actions if isinstance(action, DropTablespace)], situation


def test_a_database_that_is_gone_is_given_up_so_that_the_namespace_can_go():
    assert gives_up(deletion.plan_tablespace_deletion(MINE, replace(SETTLED, herddb=None), LATE))


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
    assert deletion.waited_seconds(resource, NOW) == seconds, situation


@pytest.mark.parametrize(("age", "reason"), [(1.0, []), (LATE, [Reason.DELETION_GIVEN_UP])])
def test_of_a_deleted_resource_that_can_t_be_read_nothing_is_deleted_but_its_finalizer(age, reason):
    plan = deletion.plan_unreadable_deletion("spec.replicas is 'x'", age)
    assert [action.reason for action in plan.actions if isinstance(action, SetFinalizer)] == reason
    assert all(isinstance(action, SetFinalizer) and not action.present for action in plan.actions)
