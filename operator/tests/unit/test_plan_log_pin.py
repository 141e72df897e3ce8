"""The log is kept from the newest verified Checkpoint on, where the Tablespace asks for it."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest
from situations import LOG_STORE, quickstart, ready, with_metadata, with_spec, with_status

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.api.checkpoint import CheckpointStatus, ComparisonStatus, Lsn
from herdkeeper.api.job import Destination
from herdkeeper.api.resource import Reference
from herdkeeper.api.tablespace import Bootstrap, LogArchive, TablespaceLog
from herdkeeper.codecs.herddb.ledgers import LedgerList
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.engine.reconcile import finalizer_step
from herdkeeper.herddb.log.checkpoint_base import doubts, without_files
from herdkeeper.herddb.log.identity import LogIdentity, instance_of
from herdkeeper.herddb.log.plan_pins import log_pin_steps
from herdkeeper.herddb.log.seen import ArchiveObserved, LogPin
from herdkeeper.herddb.log.status_readers import log_released
from herdkeeper.herddb.state.cluster import NodeTablespace, RetainedLog, VersionedRecord
from herdkeeper.herddb.tablespace.deletion import plan_tablespace_deletion
from herdkeeper.herddb.tablespace.judged_nodes import Declared
from herdkeeper.herddb.tablespace.plan import plan_tablespace
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.planning.actions import DropTablespace, Plan, SetFinalizer, SetLogPin
from herdkeeper.planning.deletion import PATIENCE_SECONDS
from herdkeeper.planning.status import described
from herdkeeper.protocol.encryption_key import fingerprint_of
from herdkeeper.protocol.log_pin import BEGIN, decode_log_pin, encode_log_pin
from herdkeeper.shared import names
from herdkeeper.shared.dependents import NO_DEPENDENTS
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import text_of_millis
from herdkeeper.shared.unknown import Unknown
from herdkeeper.spark.encryption_keys import fingerprints

UUID = "a-uuid"
INSTANCE = "an-instance"
LOG = LogIdentity(INSTANCE, UUID)
NO_INSTANCE = instance_of(None, "bk")
PATH = f"/demo/db/herd/logPins/{UUID}/checkpoint"
DISK_PATH = f"/demo/db/herd/logPins/{UUID}/second-disk"
FORGETFUL = with_status(quickstart("Tablespace"), uuid=UUID)
KEEPS = with_spec(FORGETFUL, log=TablespaceLog(keep_until_checkpoint=True))
NODE = "db-herddb-0"
SEEN = TablespaceObserved(
    tablespace=FORGETFUL,
    herddb=ready(quickstart("HerdDBCluster")),
    log=LOG_STORE,
    record=VersionedRecord(TablespaceRecord(UUID, "flights", NODE, (NODE,), 1, 30_000), 4),
    log_left=True,
    system_leader=NODE,
    leaderships={},
    disk_pin=LogPin((1_000, 0), 0),
    nodes={NODE: (NodeTablespace("flights", UUID, "leader", True, (9, 7), None),)},
    instance_id=INSTANCE,
)
KEEPING = replace(SEEN, tablespace=KEEPS)
PUT_BACK = 1_780_000_000
ARCHIVES = TablespaceLog(archive=LogArchive(destination=Destination(persistent_volume_claim={"claimName": "archives"})))


def checkpoint(name: str, lsn: tuple[int, int], uuid: str = UUID, **fields: Any) -> Checkpoint:
    """One that succeeded and was verified; `fields` of its status say otherwise."""
    status = {
        "phase": "Succeeded",
        "verified": "compared with follower x",
        "lsn": Lsn(ledger_id=lsn[0], entry_id=lsn[1]),
        "restart_lsn": Lsn(ledger_id=lsn[0], entry_id=lsn[1]),
        "manifest": f"{INSTANCE}/{uuid}/manifests/{lsn[0]:020d}-{lsn[1]:020d}.json",
        **fields,
    }
    return Checkpoint(
        metadata={"name": name, "namespace": "demo"},
        spec={"tablespaceRef": {"name": "flights"}, "destination": {"persistentVolumeClaim": {"claimName": "c"}}},
        status=CheckpointStatus(**status),
    )


def pinned(tablespace: Tablespace, *checkpoints: Checkpoint, pin: LogPin | Unknown | None = None) -> list[tuple[Any, Any]]:
    """What the pin becomes, and the version that was read."""
    steps = log_pin_steps(replace(SEEN, tablespace=tablespace, checkpoints=checkpoints, log_pin=pin), UUID)
    assert {step.path for step in steps} <= {PATH, DISK_PATH}
    return [(step.lsn, step.version) for step in steps if step.path == PATH]


FOR_A_DRILL = {names.COMPONENT_LABEL: names.DRILL_COMPONENT}
OPEN_AT = {"restart_lsn": Lsn(ledger_id=4, entry_id=2), "open_transactions": 1}


@pytest.mark.parametrize(
    ("situation", "checkpoints", "lsn"),
    [
        ("there is none", (), BEGIN),
        ("one is verified", (checkpoint("a", (5, 3)),), (5, 3)),
        ("a transaction was open there: it is read again from its BEGIN", (checkpoint("a", (5, 3), **OPEN_AT),), (4, 2)),
        (
            "the newest counts, also where a transaction makes it go further back",
            (checkpoint("a", (5, 3), **OPEN_AT), checkpoint("b", (4, 9))),
            (4, 2),
        ),
        ("one failed", (checkpoint("a", (5, 3), phase="Failed"),), BEGIN),
        ("nobody knows how one was verified", (checkpoint("a", (5, 3), verified=None),), BEGIN),
        ("one is of another tablespace that had the name", (checkpoint("a", (5, 3), "another"),), BEGIN),
        ("one is of another BookKeeper cluster", (checkpoint("a", (5, 3), manifest=f"another/{UUID}/manifests/x.json"),), BEGIN),
        ("one is made for a restore drill, and goes with it", (with_metadata(checkpoint("a", (5, 3)), labels=FOR_A_DRILL),), BEGIN),
        ("one is being deleted", (with_metadata(checkpoint("a", (5, 3)), deletion_timestamp="2026-01-01T00:00:00Z"),), BEGIN),
        ("an earlier version made one", (checkpoint("a", (5, 3), restart_lsn=None, open_transactions=0),), (5, 3)),
        (
            "of an earlier version nobody knows where its transactions began",
            (checkpoint("a", (5, 3), restart_lsn=None, open_transactions=1),),
            BEGIN,
        ),
    ],
)
def test_the_log_is_kept_from_the_newest_verified_checkpoint_on(situation, checkpoints, lsn):
    assert pinned(KEEPS, *checkpoints) == [(lsn, None)], situation


def test_the_pin_moves_by_compare_and_set():
    newer = checkpoint("b", (7, 0))
    assert pinned(KEEPS, newer, pin=LogPin((5, 3), 8)) == [((7, 0), 8)]
    assert pinned(KEEPS, newer, pin=LogPin((7, 0), 8)) == []
    assert pinned(KEEPS, newer, pin=LogPin(None, 8)) == [((7, 0), 8)], "what nobody can read keeps everything"


def test_what_is_left_of_the_log_is_kept_for_an_older_checkpoint_once_the_newest_is_deleted():
    older = checkpoint("a", (7, 0))
    assert pinned(KEEPS, older, pin=LogPin((9, 0), 8)) == [((7, 0), 8)]
    deleted = with_metadata(checkpoint("b", (9, 0)), deletion_timestamp="2026-01-01T00:00:00Z")
    assert pinned(KEEPS, older, deleted, pin=LogPin((9, 0), 8)) == [((7, 0), 8)]
    assert pinned(KEEPS, pin=LogPin((5, 3), 8)) == [(BEGIN, 8)]
    unread = replace(KEEPING, checkpoints=(older,), log_pin=LogPin((9, 0), 8), archive=ArchiveObserved(unread=Unknown("b can't be read")))
    assert log_pin_steps(unread, UUID) == (), "the one that can't be read may be the newest"


def test_what_is_left_of_the_log_is_kept_for_an_older_checkpoint_once_the_volume_of_the_newest_is_gone():
    """The resources stay when somebody deletes a volume claim with their files."""
    older, newest = checkpoint("a", (7, 0)), checkpoint("b", (9, 0))
    known = {NODE: on_disk("leader", (10, 5))}
    seen = replace(KEEPING, checkpoints=(older, newest), log_pin=LogPin((9, 0), 8), disk_pin=LogPin((9, 0), 5), nodes=known)
    assert log_pin_steps(seen, UUID) == ()
    gone = replace(seen, without_files=frozenset({"b"}))
    assert [(step.path, step.lsn, step.version) for step in log_pin_steps(gone, UUID)] == [(PATH, (7, 0), 8), (DISK_PATH, (7, 0), 5)]
    all_gone = replace(seen, without_files=frozenset({"a", "b"}))
    assert [step.lsn for step in log_pin_steps(all_gone, UUID)] == [BEGIN, BEGIN]


KEYS = {"persistentVolumeClaim": {"claimName": "c"}, "encryption": {"keysSecretRef": {"name": "keys"}}}
KEY, ANOTHER = (base64.b64encode(content * 32).decode() for content in (b"k", b"a"))
MADE = {"completed_at": "2026-01-02T00:00:00Z", "encrypted_with": "2026-11", "key_fingerprint": fingerprint_of(b"k" * 32)}
EARLIER = {**MADE, "key_fingerprint": None}
BEFORE, AFTER = "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z"


@pytest.mark.parametrize(
    ("made", "claim", "values", "lsn", "why"),
    [
        (MADE, BEFORE, {"2026-11": KEY}, (9, 0), None),
        (MADE, AFTER, {"2026-11": KEY}, (7, 0), "the volume claim c was made after the Checkpoint b"),
        (MADE, None, {"2026-11": KEY}, (7, 0), None),
        (MADE, BEFORE, {"2027-05": ANOTHER}, (7, 0), "b needs the key 2026-11, which the Secret keys does not have"),
        (MADE, BEFORE, {"2026-11": ANOTHER}, (7, 0), "b needs the key 2026-11"),
        (MADE, BEFORE, {"old": KEY, "2026-11": ANOTHER, "odd": "?"}, (9, 0), None),
        (EARLIER, BEFORE, {"2026-11": ANOTHER}, (9, 0), None),
        (EARLIER, BEFORE, {"2027-05": KEY}, (7, 0), "b needs the key 2026-11"),
    ],
    ids=[
        *("readable", "its claim was made anew", "its claim is gone", "its key is gone", "its key is another one"),
        *("its key has another name", "an earlier version told no fingerprint", "and its key is gone"),
    ],
)
def test_a_checkpoint_that_nobody_may_be_able_to_read_lets_nothing_go(made, claim, values, lsn, why):
    volumes, keys = {"c": claim}, {"keys": fingerprints(values)}
    older, newest = checkpoint("a", (7, 0)), checkpoint("b", (9, 0), **made)
    newest = with_spec(newest, destination=Destination.model_validate(KEYS))
    older = with_spec(older, destination=Destination.model_validate({"persistentVolumeClaim": {"claimName": "other"}}))
    found = (older, newest)
    doubted = doubts(found, volumes, keys)
    seen = replace(KEEPING, checkpoints=found, without_files=without_files(found, volumes), archive=ArchiveObserved(doubted=doubted))
    steps = log_pin_steps(replace(seen, log_pin=LogPin(BEGIN, 8), disk_pin=LogPin(BEGIN, 5)), UUID)
    assert [step.lsn for step in steps] == [lsn, lsn]
    assert why is None or why in doubted["b"]


def test_a_checkpoint_of_a_time_that_the_log_lost_lets_nothing_go():
    """The volumes were put back to older copies, and the log ends in ledger 6 again; the resources know a later Checkpoint."""
    kept, lost = checkpoint("kept", (5, 3)), checkpoint("lost", (9, 0))
    seen = replace(KEEPING, checkpoints=(kept, lost), ledgers=LedgerList((4, 5, 6), (0, 0, 0), 4))
    moved = [(step.path, step.lsn) for step in log_pin_steps(replace(seen, disk_pin=LogPin(BEGIN, 0)), UUID)]
    assert moved == [(PATH, (5, 3)), (DISK_PATH, (5, 3))]
    unread = replace(seen, ledgers=Unknown("the list can't be decoded"), log_pin=LogPin((5, 3), 8), disk_pin=LogPin((5, 3), 8))
    assert log_pin_steps(unread, UUID) == (), "any of them may be the one"


@pytest.mark.parametrize(
    ("listed", "written", "counts"),
    [
        ((4, 5, 9), PUT_BACK - 120, False),
        ((4, 5, 10), PUT_BACK - 120, False),
        ((4, 5, 9), PUT_BACK - 1, True),
        ((4, 5, 9), PUT_BACK + 120, True),
        ((10, 11), PUT_BACK - 120, True),
    ],
    ids=[
        "it has another ledger of that number",
        "that number went to another tablespace",
        "a ledger's first entry is older than its listing",
        "it is of the present time",
        "its ledger was released",
    ],
)
def test_a_checkpoint_of_a_lost_time_lets_nothing_go_though_the_log_has_reached_that_number_again(listed, written, counts):
    """The volumes were put back to older copies, and the log has gone on since: its ledgers after that were listed at PUT_BACK."""
    added = (0, 0, PUT_BACK * 1000)[-len(listed) :]
    kept, lost = checkpoint("kept", (5, 3)), checkpoint("lost", (9, 4), lsn_timestamp=text_of_millis(written * 1000))
    seen = replace(KEEPING, checkpoints=(kept, lost), ledgers=LedgerList(listed, added, 4), disk_pin=LogPin(BEGIN, 0))
    rests_on = (9, 4) if counts else (5, 3)
    assert [(step.path, step.lsn) for step in log_pin_steps(seen, UUID)] == [(PATH, rests_on), (DISK_PATH, rests_on)]


def test_a_pin_that_can_t_be_read_is_left_alone():
    assert pinned(KEEPS, checkpoint("a", (5, 3)), pin=Unknown("silence")) == []
    assert pinned(FORGETFUL, pin=Unknown("silence")) == []


@pytest.mark.parametrize("manifest", [None, "", "x.json", "manifests/x.json", f"{UUID}/manifests/x.json", f"/{UUID}/manifests/x.json"])
def test_a_checkpoint_that_does_not_tell_of_which_log_it_is_lets_nothing_go(manifest):
    assert pinned(KEEPS, checkpoint("a", (5, 3), manifest=manifest), pin=LogPin(BEGIN, 8)) == []


def test_while_nobody_knows_which_log_it_is_a_pin_stays_and_one_that_is_missing_keeps_everything():
    found = checkpoint("a", (5, 3))
    seen = replace(KEEPING, checkpoints=(found,), instance_id=NO_INSTANCE)
    assert log_pin_steps(replace(seen, log_pin=LogPin((4, 0), 8)), UUID) == ()
    assert log_pin_steps(replace(seen, log_pin=LogPin(None, 8)), UUID) == (), "it keeps everything as it is"
    (step,) = log_pin_steps(seen, UUID)
    assert (step.lsn, step.version) == (BEGIN, None)
    assert "the BookKeeperCluster bk does not exist" in step.why


def test_the_instance_of_a_cluster_that_does_not_tell_it_is_unknown():
    cluster = quickstart("BookKeeperCluster")
    told = with_status(ready(cluster), instance_id=INSTANCE)
    assert instance_of(told, "bk") == INSTANCE
    for silent in (None, cluster, ready(cluster), with_status(ready(cluster), instance_id="")):
        assert isinstance(instance_of(silent, "bk"), Unknown)


def test_a_tablespace_that_does_not_ask_for_it_has_no_pin():
    assert pinned(FORGETFUL, checkpoint("a", (5, 3))) == []
    assert pinned(FORGETFUL, checkpoint("a", (5, 3)), pin=LogPin((4, 0), 8)) == [(None, 8)]


def test_the_pin_goes_before_everything_else():
    plan = plan_tablespace(replace(KEEPING, record=VersionedRecord(TablespaceRecord(UUID, "flights", NODE, (NODE,), 1, 1), 4)), "spark:1")
    assert [type(action).__name__ for action in plan.actions] == ["SetLogPin", "ChangeTablespaceRecord"]


def test_nobody_keeps_the_log_of_a_tablespace_whose_resource_is_deleted():
    assert finalizer_step(FORGETFUL, NO_DEPENDENTS) is None
    step = finalizer_step(KEEPS, NO_DEPENDENTS)
    assert step is not None
    assert step.present
    first = plan_tablespace_deletion(replace(KEEPING, log_pin=LogPin((5, 3), 8)), 0.0)
    assert [(type(action), getattr(action, "lsn", "")) for action in first.actions] == [(SetLogPin, None)] * 2
    (last,) = plan_tablespace_deletion(replace(KEEPING, disk_pin=None), 0.0).actions
    assert isinstance(last, SetFinalizer)
    assert (last.present, last.reason) == (False, Reason.DATA_KEPT)
    away = replace(KEEPING, log=None)
    waiting = plan_tablespace_deletion(away, 0.0)
    assert (waiting.actions, waiting.wait is not None) == ((), True), "a pin that nobody looked for would keep the log for ever"
    (given_up,) = plan_tablespace_deletion(away, PATIENCE_SECONDS).actions
    assert isinstance(given_up, SetFinalizer)
    assert (given_up.present, given_up.reason) == (False, Reason.DELETION_GIVEN_UP)
    unread = plan_tablespace_deletion(replace(KEEPING, log_pin=Unknown("silence")), 0.0)
    assert (unread.actions, unread.wait is not None) == ((), True)


def declared(name: str = "renamed", **fields: Any) -> Tablespace:
    """Another resource for the same tablespace, which waits for its name."""
    return with_status(with_spec(with_metadata(KEEPS, name=name, uid=f"uid-of-{name}"), **{"tablespace_name": "flights", **fields}))


@pytest.mark.parametrize(
    ("situation", "others", "kept"),
    [
        ("it gets another name", {"others": (declared(),)}, True),
        ("that one can't be read", {"unread_others": (Declared("flights", declared(), readable=False),)}, True),
        ("that one is being deleted, too", {"others": (with_metadata(declared(), deletion_timestamp=BEFORE),)}, False),
        ("that one is another one", {"others": (declared(tablespace_name="other"),)}, False),
        ("that one is of another database", {"others": (declared(herd_db_ref=Reference(name="another")),)}, False),
        ("that one is to be restored, and is refused", {"others": (declared(bootstrap=Bootstrap(checkpoint=Reference(name="c"))),)}, False),
        ("that one has made another tablespace", {"others": (with_status(declared(), uuid="another"),)}, False),
        ("that one has it already", {"others": (with_status(declared(), uuid=UUID),)}, True),
    ],
)
def test_the_log_is_kept_for_the_resource_that_takes_the_tablespace_over(situation, others, kept):
    """Until that is reconciled, nobody else would keep the log for its archive, its Checkpoints and the second disk."""
    plan = plan_tablespace_deletion(replace(KEEPING, log_pin=LogPin((5, 3), 8), **others), 0.0)
    assert [type(action) for action in plan.actions] == ([SetFinalizer] if kept else [SetLogPin] * 2), situation


@pytest.mark.parametrize("seen", [SEEN, replace(SEEN, log_pin=LogPin((5, 3), 8)), replace(SEEN, herddb=None, log=None)])
def test_under_retain_a_deletion_drops_nothing(seen):
    plan: Plan = plan_tablespace_deletion(seen, 0.0)
    assert not any(isinstance(action, DropTablespace) for action in plan.actions)
    assert any(isinstance(action, SetLogPin | SetFinalizer) for action in plan.actions)


def test_what_is_held_back_is_told_with_who_needs_it():
    leader = NodeTablespace("flights", UUID, "leader", True, (9, 7), None)
    assert log_released(leader) == log_released(Unknown("silence")) == log_released(None) == {}
    (condition,) = log_released(replace(leader, retained_log=RetainedLog(7, 1_795_000_000_000, ("checkpoint", "replica n1")))).values()
    assert (condition.status, condition.reason) == ("False", Reason.LOG_RETAINED)
    assert "7 ledgers" in condition.message
    assert "2026-11-18T" in condition.message
    assert "keepUntilCheckpoint" in condition.message
    assert "proves nothing (its status.verified)" in condition.message
    assert condition.message.endswith("replica n1")


@pytest.mark.parametrize("lsn", [BEGIN, (5, 90)])
def test_a_pin_is_read_as_it_was_written(lsn):
    assert decode_log_pin(encode_log_pin(lsn)) == lsn


@pytest.mark.parametrize("data", [b"", b"?", b"[]", b'{"ledgerId":1}', b'{"ledgerId":"1","entryId":2}', b'{"ledgerId":true,"entryId":2}'])
def test_a_pin_that_is_no_lsn_is_refused(data):
    with pytest.raises(MalformedDataError, match="log pin"):
        decode_log_pin(data)


def test_a_pin_has_the_node_program_s_bytes():
    assert encode_log_pin((5, 90)) == b'{"ledgerId":5,"entryId":90}'


@pytest.mark.parametrize(
    ("lsn", "words"),
    [
        (BEGIN, "Keeping the log for Checkpoints from its beginning on"),
        ((5, 90), "Keeping the log for Checkpoints from LSN 5,90 on"),
        (None, "No longer keeping the log for Checkpoints"),
    ],
)
def test_what_is_done_about_the_log_is_told(lsn, words):
    reason, message = described(SetLogPin("zk-0:2181", PATH, lsn, 8, "somebody said so"))
    assert (reason, message) == (Reason.LOG_PINNED, f"{words}, since somebody said so")


OTHER = "db-herddb-1"
RECORD_OF_TWO = VersionedRecord(TablespaceRecord(UUID, "flights", NODE, (NODE, OTHER), 1, 30_000), 4)
RISKY = with_spec(FORGETFUL, log=TablespaceLog(release_on_one_disk=True))


def on_disk(role: str, at: tuple[int, int] | None, **fields: Any) -> tuple[NodeTablespace, ...]:
    return (NodeTablespace("flights", UUID, role, True, (9, 7), None, checkpoint=at, **fields),)


def held(*checkpoints: Checkpoint, tablespace: Tablespace = FORGETFUL, pin: LogPin | Unknown | None = None, **nodes: Any):
    """From where on the bookies keep what one disk alone holds, and the version that was read; None when nothing changes."""
    views = {NODE: on_disk("leader", (8, 5)), OTHER: on_disk("follower", (6, 3)), **nodes}
    seen = replace(SEEN, record=RECORD_OF_TWO, nodes=views, checkpoints=checkpoints, disk_pin=pin)
    steps = [step for step in log_pin_steps(replace(seen, tablespace=tablespace), UUID) if step.path == DISK_PATH]
    return [(step.lsn, step.version) for step in steps]


@pytest.mark.parametrize(
    ("situation", "nodes", "expected"),
    [
        ("two disks have it: up to the second one", {}, (6, 3)),
        ("the follower is silent", {OTHER: Unknown("silence")}, BEGIN),
        ("the follower has written nothing yet", {OTHER: on_disk("follower", None)}, BEGIN),
        ("the follower differs", {OTHER: on_disk("follower", (6, 3), differs="had other rows")}, BEGIN),
        ("the follower is barred", {OTHER: on_disk("follower", (6, 3), barred=True)}, BEGIN),
        ("nobody tells whether the follower differs", {OTHER: on_disk("follower", (6, 3), differs=Unknown("x"))}, BEGIN),
        ("the follower has a copy of another tablespace", {OTHER: (replace(on_disk("follower", (6, 3))[0], uuid="another"),)}, BEGIN),
    ],
)
def test_nothing_is_released_that_fewer_than_two_disks_hold(situation, nodes, expected):
    assert held(**nodes) == [(expected, None)], situation


def test_a_copy_that_a_checkpoint_found_different_is_no_second_disk():
    comparison = ComparisonStatus(node=OTHER, tablespace_uuid=UUID, lsn=Lsn(ledger_id=6, entry_id=9), result="Different")
    different = with_status(checkpoint("c", (6, 9)), phase="Failed", comparison=comparison)
    views = {NODE: on_disk("leader", (8, 5)), OTHER: on_disk("follower", (6, 3))}
    plan = plan_tablespace(replace(SEEN, record=RECORD_OF_TWO, nodes=views, checkpoints=(different,), disk_pin=None), "spark:1")
    assert [step.lsn for step in plan.actions if isinstance(step, SetLogPin) and step.path == DISK_PATH] == [BEGIN]


ALONE = {OTHER: Unknown("silence")}


def test_a_verified_checkpoint_is_as_good_as_a_second_disk_and_one_that_proves_nothing_is_not():
    assert held(checkpoint("c", (7, 2)), **ALONE) == [((7, 2), None)]
    for words in ("files re-read", f"compared with the follower {NODE} alone, whose tables it begins with"):
        assert held(checkpoint("c", (7, 2), verified=words), **ALONE) == [(BEGIN, None)], words


def test_it_moves_on_from_ledger_to_ledger_and_not_back_for_what_is_unknown():
    assert held(pin=LogPin((6, 0), 5)) == []
    assert held(pin=LogPin((5, 9), 5)) == [((6, 3), 5)]
    assert held(pin=Unknown("ZooKeeper is silent")) == []
    assert held(pin=LogPin((5, 9), 5), **ALONE) == []
    for unknown in ((), on_disk("booting", None), on_disk("follower", (6, 3), differs=Unknown("x"))):
        assert held(pin=LogPin((6, 3), 5), **{OTHER: unknown}) == []


@pytest.mark.parametrize(
    ("log", "unknown", "moves"),
    [
        (TablespaceLog(), ArchiveObserved(), True),
        (TablespaceLog(), ArchiveObserved(unread=Unknown("the Checkpoint c can't be read")), False),
        (ARCHIVES, ArchiveObserved(), True),
        (ARCHIVES, ArchiveObserved(progress=Unknown("ZooKeeper is silent")), False),
    ],
    ids=["all is known", "a Checkpoint can't be read", "nothing is archived", "nobody knows what is archived"],
)
def test_it_does_not_move_back_while_nobody_knows_whether_what_it_rested_on_is_gone(log, unknown, moves):
    views = {NODE: on_disk("leader", (8, 5)), OTHER: on_disk("follower", (6, 3))}
    seen = replace(SEEN, tablespace=with_spec(FORGETFUL, log=log), record=RECORD_OF_TWO, nodes=views, disk_pin=LogPin((7, 2), 5))
    moved = [step.lsn for step in log_pin_steps(replace(seen, archive=unknown), UUID) if step.path == DISK_PATH]
    assert moved == ([(6, 3)] if moves else [])


def test_what_is_left_of_the_log_is_kept_once_the_rows_are_on_one_disk_again():
    assert held(pin=LogPin((7, 2), 5)) == [((6, 3), 5)], "the Checkpoint that had them was deleted"
    assert held(pin=LogPin((6, 3), 5), **{OTHER: on_disk("follower", (6, 3), differs="had other rows")}) == [(BEGIN, 5)]
    assert held(checkpoint("c", (4, 2)), pin=LogPin((6, 3), 5), **{OTHER: on_disk("follower", (6, 3), barred=True)}) == [((4, 2), 5)]
    one_left = replace(SEEN, disk_pin=LogPin((6, 3), 5), nodes={NODE: on_disk("leader", (8, 5))})
    (step,) = log_pin_steps(one_left, UUID)
    assert (step.lsn, step.version) == (BEGIN, 5), "the second replica was removed"


def test_whoever_takes_the_risk_has_it_released_with_one_disk():
    assert held(tablespace=RISKY) == []
    assert held(tablespace=RISKY, pin=LogPin((5, 9), 5)) == [(None, 5)]


def test_what_is_kept_for_a_second_disk_is_told_with_all_that_frees_it():
    leader = replace(on_disk("leader", (8, 5))[0], retained_log=RetainedLog(3, 0, ("second-disk",)))
    message = log_released(leader)["LogReleased"].message
    for way in ("spec.replicas", "verify: Follower", "spec.log.archive", "spec.log.releaseOnOneDisk"):
        assert way in message
