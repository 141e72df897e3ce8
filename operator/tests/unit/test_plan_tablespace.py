"""A tablespace is made once, and gets its replicas one by one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from situations import LOG_STORE, live, noted, objects, quickstart, ready, with_metadata, with_spec, with_status

from herdkeeper.api.checkpoint import Lsn
from herdkeeper.api.herddb_cluster import Tls
from herdkeeper.api.tablespace import ReplicaStatus
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.log.seen import LogPin
from herdkeeper.herddb.state.cluster import MOST_TABLESPACES, NodeTablespace, Place, RecordAbsent, UserCredentials, VersionedRecord
from herdkeeper.herddb.state.tls import TlsUsable
from herdkeeper.herddb.tablespace.build import build_connection_secret, build_leader_service
from herdkeeper.herddb.tablespace.plan import plan_tablespace as plan_with_image
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.herddb.tablespace.status import summarize_tablespace
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Annotate, Apply, BarPromotion, ChangeTablespaceRecord, CreateTablespace, SetCopyAside, Wait
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

UNMADE = quickstart("Tablespace")
TABLESPACE = noted(UNMADE, "a-uuid")
plan_tablespace = partial(plan_with_image, spark_image="spark:1")
NODES = ("db-herddb-0", "db-herddb-1")


def copy(role: str, *, settled: bool = True) -> NodeTablespace:
    return NodeTablespace("flights", "a-uuid", role, settled, (4, 7), None)


CREDENTIALS = UserCredentials("admin", "secret")
FOR_CLIENTS = live((build_leader_service(TABLESPACE, NODES[0]), build_connection_secret(TABLESPACE, "zk-0:2181", CREDENTIALS)))
RECORD = TablespaceRecord("a-uuid", "flights", NODES[0], NODES, 1, 30_000)
SETTLED = TablespaceObserved(
    tablespace=TABLESPACE,
    herddb=ready(quickstart("HerdDBCluster")),
    log=LOG_STORE,
    record=VersionedRecord(RECORD, 4),
    log_left=True,
    system_leader=NODES[1],
    leaderships={NODES[0]: 1},
    disk_pin=LogPin((1_000, 0), 0),
    nodes={NODES[0]: (copy("leader"),), NODES[1]: (copy("follower"),)},
    objects=objects(FOR_CLIENTS),
    credentials=CREDENTIALS,
)
NEW = replace(SETTLED, tablespace=UNMADE, record=RecordAbsent(), leaderships={}, nodes=dict.fromkeys(NODES, ()))


def test_no_tablespace_is_made_beyond_those_of_which_the_operator_decides():
    """With one more it would move no leader of all the others."""
    fits = replace(NEW, leaderships={NODES[0]: MOST_TABLESPACES - 2, NODES[1]: 1})
    assert [type(action) for action in plan_tablespace(fits).actions] == [CreateTablespace]
    full = plan_tablespace(replace(NEW, leaderships={NODES[0]: MOST_TABLESPACES - 1, NODES[1]: 1}))
    assert full.actions == ()
    assert full.wait is not None
    assert "drop those not in use, or make this one in another HerdDBCluster" in full.wait.message


def test_a_copy_of_an_earlier_tablespace_of_the_name_is_none_of_this_one():
    """It was dropped and made again, and the node has not read the new record yet."""
    earlier = replace(SETTLED, nodes={NODES[0]: (replace(copy("leader"), uuid="an-earlier-uuid"),), NODES[1]: ()})
    alone = replace(earlier, record=VersionedRecord(replace(RECORD, replicas=NODES[:1]), 4))
    health = summarize_tablespace(earlier).health
    assert (health.status, health.reason) == ("False", Reason.NO_LEADER)
    plan = plan_tablespace(alone)
    assert (plan.actions, plan.wait) == (
        (),
        Wait(Reason.WAITING_FOR_FOLLOWER, f"the next replica is added once those on {NODES[0]} are settled"),
    )


def test_a_cluster_that_is_not_there_is_told_apart_from_one_without_nodes():
    for seen, said in (
        (replace(NEW, herddb=None, log=None), "the HerdDBCluster db does not exist, or its spec is invalid"),
        (replace(NEW, log=None), "the HerdDBCluster db has no nodes yet"),
    ):
        waiting = plan_tablespace(seen).wait
        assert (waiting.reason, waiting.message) == (Reason.WAITING_FOR_HERDDB, said)


def test_it_is_made_by_the_node_that_leads_herddb_s_own_tablespace():
    assert plan_tablespace(NEW).actions == (CreateTablespace("db", NODES[1], "flights", NODES[0], 30_000),)


def encrypted(*, everywhere: bool):
    serving = ready(quickstart("HerdDBCluster"), encrypted=everywhere or None)
    return with_spec(serving, tls=Tls(secret_name="mine", plaintext="Accepted"))


def test_no_password_is_sent_to_make_it_before_every_node_serves_tls_by_a_certificate_that_can_be_verified():
    half = replace(NEW, herddb=encrypted(everywhere=False), tls=TlsUsable("mine", "certificates"))
    broken = replace(NEW, herddb=encrypted(everywhere=True), tls=Problem(Reason.INVALID_SECRET, "the Secret mine: expired"))
    for seen, reason in ((half, Reason.WAITING_FOR_HERDDB), (broken, Reason.INVALID_SECRET)):
        plan = plan_tablespace(seen)
        assert plan.actions == ()
        assert plan.wait.reason is reason
    told_plain = plan_tablespace(replace(NEW, herddb=with_spec(encrypted(everywhere=True), tls=None), tls=None))
    assert told_plain.actions == ()
    assert told_plain.wait.message == "not all SQL nodes serve without TLS yet: they are restarted one by one"
    whole = replace(NEW, herddb=encrypted(everywhere=True), tls=TlsUsable("mine", "certificates"))
    assert [type(action) for action in plan_tablespace(whole).actions] == [CreateTablespace]


def test_clients_are_told_to_speak_tls_once_every_node_does_and_of_nothing_while_the_certificate_is_broken():
    half = replace(SETTLED, herddb=encrypted(everywhere=False), tls=TlsUsable("mine", "certificates"))
    broken = replace(SETTLED, herddb=encrypted(everywhere=True), tls=Problem(Reason.INVALID_SECRET, "expired"))
    for seen in (half, broken):
        assert plan_tablespace(seen).actions == ()
    (told,) = plan_tablespace(replace(half, herddb=encrypted(everywhere=True))).actions
    assert isinstance(told, Apply)
    assert told.manifest["data"] == build_connection_secret(TABLESPACE, "zk-0:2181", CREDENTIALS, "certificates")["data"]


def test_no_client_is_told_a_url_in_plain_text_of_nodes_that_refuse_it():
    """Stack and tablespace were applied anew over kept data: the record is there before the status says that nodes serve TLS."""
    for tls in (None, Tls(secret_name="mine")):
        database = with_spec(encrypted(everywhere=False), tls=tls)
        plan = plan_tablespace(
            replace(
                SETTLED,
                herddb=database,
                tls=TlsUsable("mine", "certificates"),
                objects=objects(live((build_leader_service(TABLESPACE, NODES[0]),))),
            ),
        )
        assert [action for action in plan.actions if isinstance(action, Apply)] == []
        assert plan.wait.reason is Reason.WAITING_FOR_HERDDB


def test_it_is_led_by_the_node_that_leads_the_fewest():
    action = plan_tablespace(replace(NEW, leaderships={NODES[0]: 2, NODES[1]: 1})).actions[0]
    assert isinstance(action, CreateTablespace)
    assert action.leader == NODES[1]


def test_of_nodes_that_lead_as_many_it_is_led_by_the_one_with_the_fewest_copies():
    busy = replace(NEW, nodes={NODES[0]: (copy("follower"),), NODES[1]: ()})
    action = plan_tablespace(busy).actions[0]
    assert isinstance(action, CreateTablespace)
    assert action.leader == NODES[1]


def test_a_copy_more_goes_to_another_zone():
    cluster = with_spec(ready(quickstart("HerdDBCluster")), replicas=3)
    third = "db-herddb-2"
    seen = replace(
        SETTLED,
        herddb=cluster,
        record=VersionedRecord(replace(RECORD, replicas=NODES[:1]), 4),
        nodes={NODES[0]: (copy("leader"),), NODES[1]: (), third: ()},
        places={NODES[0]: Place("m0", "a"), NODES[1]: Place("m1", "a"), third: Place("m2", "b")},
    )
    action = plan_tablespace(seen).actions[0]
    assert isinstance(action, ChangeTablespaceRecord)
    assert action.record.replicas == (NODES[0], third)


def test_a_node_that_leaves_gets_no_copy_and_loses_its_own_only_once_the_database_says_so():
    third = "db-herddb-2"
    nodes = {NODES[0]: (copy("leader"),), NODES[1]: (), third: (copy("follower"),)}
    seen = replace(SETTLED, record=VersionedRecord(replace(RECORD, replicas=(NODES[0], third)), 4), nodes=nodes)
    assert plan_tablespace(seen).actions == ()
    told = replace(seen, herddb=ready(quickstart("HerdDBCluster"), leaving_nodes=(third,)))
    action = plan_tablespace(told).actions[0]
    assert isinstance(action, ChangeTablespaceRecord)
    assert action.record.replicas == (NODES[0], third, NODES[1])
    wanted_again = replace(seen, herddb=with_spec(ready(quickstart("HerdDBCluster"), leaving_nodes=(third,)), replicas=3))
    assert plan_tablespace(wanted_again).actions == ()
    alone = replace(SETTLED, record=VersionedRecord(replace(RECORD, replicas=NODES[:1]), 4), nodes={**nodes, NODES[1]: Unknown("silence")})
    assert plan_tablespace(alone).actions == (), "the only node that answers is none that stays"


@pytest.mark.parametrize(
    ("situation", "seen"),
    [
        ("there is no database", replace(NEW, herddb=None)),
        ("the database is not Ready", replace(NEW, herddb=quickstart("HerdDBCluster"))),
        ("no node answers", replace(NEW, nodes={NODES[0]: Unknown("silence")})),
        ("nobody leads HerdDB's own tablespace", replace(NEW, system_leader=None)),
        ("ZooKeeper does not answer", replace(NEW, record=Unknown("silence"))),
    ],
)
def test_it_is_not_made_while(situation, seen):
    plan = plan_tablespace(seen)
    assert plan.actions == (), situation
    assert plan.wait is not None


@pytest.mark.parametrize(
    ("situation", "record"),
    [("it is gone", RecordAbsent()), ("another one has its name", VersionedRecord(replace(RECORD, uuid="another"), 0))],
)
def test_a_tablespace_that_was_lost_is_neither_made_anew_nor_mistaken_for_another(situation, record):
    plan = plan_tablespace(replace(SETTLED, tablespace=with_status(TABLESPACE, uuid="a-uuid"), record=record))
    assert plan.actions == (), situation
    assert plan.wait is not None
    assert plan.wait.reason is Reason.DATA_LOST


@pytest.mark.parametrize(
    ("situation", "record"),
    [("it is gone", RecordAbsent()), ("another one has its name", VersionedRecord(replace(RECORD, uuid="another"), 0))],
)
def test_a_lost_status_makes_no_empty_tablespace_in_the_place_of_a_lost_one(situation, record):
    """The metadata tell what was made, too."""
    plan = plan_tablespace(replace(SETTLED, record=record))
    assert plan.actions == (), situation
    assert plan.wait is not None
    assert plan.wait.reason is Reason.DATA_LOST


def test_the_metadata_tell_what_was_made_and_nothing_of_what_another_resource_made():
    (note,) = plan_tablespace(replace(SETTLED, tablespace=UNMADE)).actions
    assert isinstance(note, Annotate)
    assert note.annotations == TABLESPACE.metadata.annotations
    copied = with_metadata(TABLESPACE, uid="another")
    assert (copied.made_uuid, TABLESPACE.made_uuid) == (None, "a-uuid")


def test_a_missing_replica_is_added_by_compare_and_set_on_the_version_that_was_read():
    alone = replace(
        SETTLED, record=VersionedRecord(replace(RECORD, replicas=NODES[:1]), 4), nodes={NODES[0]: (copy("leader"),), NODES[1]: ()}
    )
    action = plan_tablespace(alone).actions[0]
    assert isinstance(action, ChangeTablespaceRecord)
    assert (action.path, action.version, action.record) == ("/demo/db/herd/tableSpaces/flights", 4, RECORD)


def test_a_replica_is_added_only_once_the_copies_that_are_there_are_settled():
    booting = {NODES[0]: (copy("booting", settled=False),), NODES[1]: ()}
    plan = plan_tablespace(replace(SETTLED, record=VersionedRecord(replace(RECORD, replicas=NODES[:1]), 4), nodes=booting))
    assert plan.actions == ()
    assert plan.wait is not None
    assert plan.wait.reason is Reason.WAITING_FOR_FOLLOWER


def test_the_expected_replicas_that_would_change_the_quorums_are_pinned_to_one():
    action = plan_tablespace(replace(SETTLED, record=VersionedRecord(replace(RECORD, expected_replica_count=2), 4))).actions[0]
    assert isinstance(action, ChangeTablespaceRecord)
    assert action.record.expected_replica_count == 1


def test_a_settled_tablespace_gets_nothing():
    plan = plan_tablespace(replace(SETTLED, tablespace=with_status(TABLESPACE, uuid="a-uuid")))
    assert (plan.actions, plan.wait) == ((), None)
    assert plan.requeue_after_seconds is not None
    assert plan.requeue_after_seconds > 3600, "nothing but its weekly check is to come"


@pytest.mark.parametrize(
    ("situation", "seen"),
    [
        ("it does not exist", replace(SETTLED, objects=objects())),
        ("its password is another one now", replace(SETTLED, credentials=UserCredentials("admin", "changed"))),
        ("ZooKeeper has moved", replace(SETTLED, log=replace(LOG_STORE, zookeeper_address="zk-1:2181"))),
    ],
)
def test_the_connection_secret_is_kept_in_step(situation, seen):
    (action,) = plan_tablespace(seen).actions
    assert isinstance(action, Apply), situation
    assert (action.manifest["kind"], action.manifest["metadata"]["name"]) == ("Secret", "flights-connection")


def test_a_secret_without_a_password_is_not_written():
    assert plan_tablespace(replace(SETTLED, objects=objects(), credentials=None)).actions == ()


def test_a_tablespace_whose_name_is_taken_says_so_and_still_gets_its_replicas():
    taken = replace(SETTLED, objects=objects(), taken=("Secret flights-connection",))
    plan = plan_tablespace(taken)
    assert (plan.actions, plan.wait and plan.wait.reason) == ((), Reason.NAME_TAKEN)
    assert "Secret flights-connection" in plan.wait.message
    alone = replace(
        taken, record=VersionedRecord(replace(RECORD, replicas=NODES[:1]), 4), nodes={NODES[0]: (copy("leader"),), NODES[1]: ()}
    )
    plan = plan_tablespace(alone)
    assert ([type(action) for action in plan.actions], plan.wait.reason) == ([ChangeTablespaceRecord], Reason.NAME_TAKEN)


def test_a_service_that_is_not_there_yet_is_looked_for_and_left_to_the_database():
    without = objects({key: item for key, item in FOR_CLIENTS.items() if key[0] == "Secret"})
    plan = plan_tablespace(replace(SETTLED, objects=without))
    assert (plan.actions, plan.requeue_after_seconds) == ((), 5.0)


COMPARED = ReplicaStatus(node=NODES[1], role="follower", verified_lsn=Lsn(ledger_id=4, entry_id=9), verified_by="c")
DIFFERENT = COMPARED.model_copy(update={"verdict": "Different", "different_tables": ("t",)})
SAYS = "it had other rows than the log at LSN 4,9 (Checkpoint c) in t"
MARK = f"set-aside.herdkeeper.io/{NODES[1]}"


def known(*replicas: ReplicaStatus, **annotations: str):
    """The tablespace, with what its status and its annotations say of its replicas."""
    tablespace = with_status(TABLESPACE, uuid="a-uuid", replicas=replicas)
    return with_metadata(tablespace, annotations={**tablespace.metadata.annotations, **annotations})


def test_a_copy_that_differs_is_taken_off_the_list():
    (action,) = plan_tablespace(replace(SETTLED, tablespace=known(DIFFERENT))).actions
    assert isinstance(action, ChangeTablespaceRecord)
    assert (action.record.replicas, action.version, action.reason) == (NODES[:1], 4, Reason.REPLICA_DIFFERS)
    assert action.why == f"no replica on {NODES[1]} any more, since {SAYS}"


def told(barred: bool) -> TablespaceObserved:
    """The follower's node tells whether it must not make itself the leader."""
    return replace(SETTLED, nodes={**SETTLED.nodes, NODES[1]: (replace(copy("follower"), barred=barred),)})


def test_before_a_copy_that_differs_leaves_the_list_its_node_is_kept_from_leading_by_itself():
    bar, change = plan_tablespace(replace(told(barred=False), tablespace=known(DIFFERENT))).actions
    assert bar == BarPromotion("db", NODES[1], "flights", "a-uuid", True, (4, 9), SAYS)
    assert isinstance(change, ChangeTablespaceRecord)
    (change,) = plan_tablespace(replace(told(barred=True), tablespace=known(DIFFERENT))).actions
    assert isinstance(change, ChangeTablespaceRecord)


def test_while_a_copy_that_differs_has_to_stay_on_the_list_its_node_is_kept_from_leading_by_itself():
    seen = told(barred=False)
    unled = replace(seen, nodes={**seen.nodes, NODES[0]: (copy("booting", settled=False),)})
    plan = plan_tablespace(replace(unled, tablespace=known(DIFFERENT)))
    assert [type(action) for action in plan.actions] == [BarPromotion]
    assert (plan.wait and plan.wait.reason, plan.requeue_after_seconds) == (Reason.REPLICA_DIFFERS, requeue.SOON)


def test_a_copy_that_is_equal_again_may_lead_by_itself_again():
    equal = COMPARED.model_copy(update={"verdict": "Equal"})
    (unbar,) = plan_tablespace(replace(told(barred=True), tablespace=known(equal))).actions
    assert isinstance(unbar, BarPromotion)
    assert (unbar.node, unbar.barred, unbar.why) == (NODES[1], False, "it was equal to the log at LSN 4,9 (Checkpoint c)")
    assert plan_tablespace(replace(told(barred=False), tablespace=known(equal))).actions == ()


OFF = replace(SETTLED, record=VersionedRecord(replace(RECORD, replicas=NODES[:1]), 5), nodes={**SETTLED.nodes, NODES[1]: ()})


def test_off_the_list_it_is_moved_aside_and_that_is_marked_before_it_gets_a_copy_again():
    order, mark = plan_tablespace(replace(OFF, tablespace=known(DIFFERENT))).actions
    assert order == SetCopyAside("db", NODES[1], "flights", "a-uuid", SAYS)
    assert isinstance(mark, Annotate)
    assert (mark.kind, mark.name, mark.uid, mark.annotations) == ("Tablespace", "flights", TABLESPACE.metadata.uid, {MARK: "4,9 of a-uuid"})
    (added,) = plan_tablespace(replace(OFF, tablespace=known(DIFFERENT, **{MARK: "4,9"}))).actions
    assert isinstance(added, ChangeTablespaceRecord)
    assert added.record.replicas == NODES


def test_the_mark_says_how_far_the_copy_that_was_moved_aside_can_have_been():
    """Another Checkpoint may have held it there, and tell so when the new copy is there already."""
    (leader,) = SETTLED.nodes[NODES[0]]
    seen = replace(OFF, nodes={**OFF.nodes, NODES[0]: (replace(leader, lsn=(4, 31)),)})
    _, mark = plan_tablespace(replace(seen, tablespace=known(DIFFERENT))).actions
    assert isinstance(mark, Annotate)
    assert mark.annotations == {MARK: "4,9 until 4,31 of a-uuid"}


def test_nothing_is_moved_aside_nor_added_while_its_node_does_not_answer():
    plan = plan_tablespace(replace(OFF, tablespace=known(DIFFERENT), nodes={**OFF.nodes, NODES[1]: Unknown("silence")}))
    assert plan.actions == ()
    assert plan.wait is not None
    assert "set aside first, once the node answers" in plan.wait.message


def test_the_verdict_on_a_node_that_has_left_the_database_holds_nothing_up():
    gone = DIFFERENT.model_copy(update={"node": "db-herddb-7", "role": "removed"})
    assert plan_tablespace(replace(SETTLED, tablespace=known(gone))) == plan_tablespace(replace(SETTLED, tablespace=known()))


def test_a_copy_that_was_made_anew_and_is_equal_is_marked_as_such_once():
    equal = COMPARED.model_copy(update={"verdict": "Equal"})
    (mark,) = plan_tablespace(replace(SETTLED, tablespace=known(equal, **{MARK: "4,7"}))).actions
    assert isinstance(mark, Annotate)
    assert (mark.annotations, mark.reason) == ({MARK: "4,7 verified of a-uuid"}, Reason.REPLICA_REBUILT)
    assert plan_tablespace(replace(SETTLED, tablespace=known(equal, **{MARK: "4,7 verified of a-uuid"}))).actions == ()


def test_a_copy_that_was_made_anew_and_differs_again_is_left_for_a_person():
    plan = plan_tablespace(replace(SETTLED, tablespace=known(DIFFERENT, **{MARK: "4,7"})))
    assert plan.actions == ()
    assert plan.wait is not None
    assert plan.wait.reason is Reason.REBUILT_IN_VAIN
