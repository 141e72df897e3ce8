"""What of a log's archive may go: only what the recovery window needs no more, and nothing that something unknown might need."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from situations import with_metadata, with_spec, with_status
from test_plan_archive import ARCHIVED, CLAIM, FORGETFUL
from test_plan_log_pin import INSTANCE, LOG, NO_INSTANCE, NODE, SEEN, UUID, checkpoint

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.api.checkpoint import Lsn
from herdkeeper.api.job import Destination
from herdkeeper.api.tablespace import ArchiveRetention, ArchiveStatus, LogArchive, RecoveryWindow, TablespaceLog
from herdkeeper.codecs.herddb.ledgers import LedgerList
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.herddb.log.archive_expiry import KeptFrom, KeptWhole, decide_expiry, expiry_steps, needed_by_archive
from herdkeeper.herddb.log.seen import ArchiveObserved, SeenOrder
from herdkeeper.herddb.log.status_archive import archive_fields, log_archived
from herdkeeper.herddb.state.cluster import RecordAbsent, VersionedRecord
from herdkeeper.herddb.tablespace.deletion import plan_tablespace_deletion
from herdkeeper.herddb.tablespace.status import summarize_tablespace
from herdkeeper.planning.actions import SetArchiveExpiry
from herdkeeper.planning.status import described
from herdkeeper.protocol.log_archive import ArchivedRange, ArchiveProgress, ExpiryOrder, decode_expiry_order, encode_expiry_order
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

PATH = f"/demo/db/herd/logArchive/{UUID}/expiry"
NOON = datetime.datetime(2026, 5, 10, 12, tzinfo=datetime.UTC)
DAY = 86_400


def archive(keep_within: str | None = "7d") -> LogArchive:
    retention = None if keep_within is None else ArchiveRetention(keep_within=keep_within)
    return LogArchive(destination=CLAIM, every_seconds=30, retention=retention)


EXPIRES = with_spec(FORGETFUL, log=TablespaceLog(archive=archive()))


def ago(days: float) -> datetime.datetime:
    return NOON - datetime.timedelta(days=days)


def millis(days: float) -> int:
    return int(ago(days).timestamp() * 1000)


def base(days: float, ledger: int | None = None, **fields: Any) -> Checkpoint:
    """A verified Checkpoint of so many days ago; its ledger is the day of the archive, which began 30 days ago with ledger 0."""
    ledger = int(30 - days) if ledger is None else ledger
    stamp = ago(days).isoformat().replace("+00:00", "Z")
    return checkpoint(f"d{days:g}", (ledger, 5), lsn_timestamp=stamp, **{"latest_timestamp": stamp, **fields})


WHOLE = ArchivedRange((0, 0), millis(30), True, (30, 9), millis(0), (30, 10))
LATER = replace(WHOLE, first=(10, 0), first_millis=millis(20), begins_log=False)
DELETED = "2026-05-01T00:00:00Z"


def seen(held: ArchivedRange | None = WHOLE, **more: Any) -> ArchiveObserved:
    return ArchiveObserved(ArchiveProgress("archives", held, millis(0), 1.0), **{"now": NOON.timestamp(), **more})


def ordered(ledger: int, entry: int, claim: str = "archives") -> SeenOrder:
    return SeenOrder(ExpiryOrder(claim, (ledger, entry)), 3)


@pytest.mark.parametrize(
    ("situation", "observed", "checkpoints", "kept"),
    [
        ("no base", seen(), (), "there is no base"),
        ("the base is younger than the window", seen(), (base(6),), "the oldest base is d6"),
        ("one base is old enough", seen(), (base(8),), "d8"),
        ("one is exactly as old as the window", seen(), (base(7),), "d7"),
        ("of several that are old enough the newest", seen(), (base(20), base(9), base(8), base(3), base(1)), "d8"),
        ("the window is shorter than the newest one is old", seen(), (base(20), base(15)), "d15"),
        ("it was not verified", seen(), (base(20), base(8, verified=None)), "d20"),
        ("it failed", seen(), (base(20), base(8, phase="Failed")), "d20"),
        ("it still runs", seen(), (base(20), base(8, phase="Running")), "d20"),
        ("it is being deleted", seen(), (base(20), with_metadata(base(8), deletion_timestamp=DELETED)), "d20"),
        (
            "it is of another tablespace of that name",
            seen(),
            (base(8, manifest=f"{INSTANCE}/another/manifests/x.json"),),
            "there is no base",
        ),
        ("it is of another BookKeeper cluster", seen(), (base(20), base(8, manifest=f"another/{UUID}/manifests/x.json")), "d20"),
        ("an earlier version made it, and did not tell its latest entry", seen(), (base(20), base(8, latest_timestamp=None)), "d20"),
        (
            "an entry in it is stamped within the window, by a leader whose clock was ahead",
            seen(),
            (base(20), base(8, latest_timestamp=ago(6).isoformat())),
            "d20",
        ),
        ("a transaction of it began before what is archived", seen(LATER), (base(8, restart_lsn=Lsn(ledger_id=9, entry_id=0)),), "no base"),
        ("it lies behind what is archived", seen(), (base(8, ledger=31),), "there is no base"),
        ("the archive began later, with a base", seen(LATER), (base(9),), "d9"),
        ("the archive began later, without one", seen(LATER), (), "there is no base"),
        ("the log is younger than the window", seen(replace(WHOLE, first_millis=millis(6))), (base(6),), "does not reach back for 7d"),
        ("a Checkpoint can't be read", seen(unread=Unknown("the Checkpoint x can't be read")), (base(8),), "Checkpoint x can't be read"),
        ("the archiver says nothing", ArchiveObserved(None, now=NOON.timestamp()), (base(8),), "nothing is archived yet"),
        ("ZooKeeper is silent", ArchiveObserved(Unknown("silence")), (base(8),), "silence"),
        ("what was ordered can't be asked", seen(order=Unknown("silence")), (base(8),), "silence"),
        ("it speaks of another claim", replace(seen(), progress=ArchiveProgress("o", WHOLE, 1, 1.0)), (base(8),), "nothing is archived"),
        ("the archive is empty", seen(None), (base(8),), "nothing is archived yet"),
        ("the clock moved back: an older base counts again", seen(now=ago(3).timestamp()), (base(20), base(8)), "d20"),
        (
            "the clock moved back behind what may have gone already",
            seen(now=ago(3).timestamp(), order=ordered(22, 5)),
            (base(20), base(8)),
            "the oldest base is d8",
        ),
        ("the operator's clock is ahead", seen(now=ago(-20).timestamp()), (base(20), base(8), base(3)), "d8"),
        ("the leader's clock is ahead", seen(replace(WHOLE, last_millis=millis(-20))), (base(20), base(8), base(3)), "d8"),
        ("the archiver stands for days: its window waits for it", seen(replace(WHOLE, last_millis=millis(5))), (base(20), base(8)), "d20"),
        ("what goes is going", seen(order=ordered(22, 5)), (base(20), base(8)), "d8"),
        ("what goes at another claim is nothing to this one", seen(order=ordered(29, 5, "old")), (base(20), base(8)), "d8"),
        ("nobody can read what was ordered", seen(order=SeenOrder(None, 3)), (base(8),), "d8"),
    ],
)
def test_what_may_go_ends_where_the_newest_base_as_old_as_the_window_begins(
    situation: str, observed: ArchiveObserved, checkpoints: tuple[Checkpoint, ...], kept: str
) -> None:
    for given_in in (checkpoints, tuple(reversed(checkpoints))):
        match decide_expiry(archive(), observed, given_in, LOG):
            case KeptFrom(found):
                assert found.name == kept, situation
            case KeptWhole(why):
                assert kept in why, situation
            case None:
                pytest.fail(situation)


def test_nothing_goes_for_a_checkpoint_of_a_time_that_the_log_lost_nor_does_the_window_begin_with_it() -> None:
    """Volumes were put back to copies of ten days ago, and the log has made its ledgers from 20 on anew since then."""
    anew = LedgerList(tuple(range(15, 31)), (*[0] * 5, *[millis(1)] * 11), 0)
    kept, lost = base(20), base(8)
    told = replace(SEEN, tablespace=EXPIRES, archive=seen(), checkpoints=(kept, lost), ledgers=anew)
    window = archive_fields(told, UUID)["recoveryWindow"]
    assert (window["fromLsn"], window["from"]) == ({"ledgerId": 10, "entryId": 5}, kept.status.lsn_timestamp)
    decision = decide_expiry(archive(), seen(), (kept, lost), LOG, anew)
    assert isinstance(decision, KeptFrom)
    assert decision.base.name == "d20"
    unread = decide_expiry(archive(), seen(), (kept, lost), LOG, Unknown("the list can't be decoded"))
    assert unread == KeptWhole("the list can't be decoded")


def test_nothing_goes_while_nobody_knows_which_log_it_is() -> None:
    decision = decide_expiry(archive(), seen(), (base(8),), NO_INSTANCE)
    assert isinstance(decision, KeptWhole)
    assert "the BookKeeperCluster bk does not exist" in decision.why
    unknown = replace(SEEN, archive=seen(order=ordered(22, 5)), checkpoints=(base(8),), instance_id=NO_INSTANCE)
    (step,) = expiry_steps(replace(unknown, tablespace=TOLD), UUID)
    assert (step.order, step.version, step.why) == (None, 3, decision.why)


def test_nothing_goes_for_a_checkpoint_whose_volume_is_gone_nor_does_the_window_begin_with_it() -> None:
    gone = replace(SEEN, archive=seen(order=ordered(22, 5)), checkpoints=(base(8), base(3)), without_files=frozenset({"d8"}))
    (step,) = expiry_steps(replace(gone, tablespace=TOLD), UUID)
    assert (step.order, step.version) == (None, 3)
    found = archive_fields(replace(gone, tablespace=EXPIRES, archive=seen(LATER)), UUID)
    assert found["recoveryWindow"]["fromLsn"] == {"ledgerId": 27, "entryId": 5}
    assert "the oldest base is d3" in found["archive"]["expiry"]


def test_nothing_goes_for_a_checkpoint_whose_key_is_gone() -> None:
    """The archive before it may be all that somebody can still read."""
    why = "the Checkpoint d8 needs the key 2026-11, which the Secret keys does not have"
    locked = replace(SEEN, archive=seen(order=ordered(22, 5), doubted={"d8": why}), checkpoints=(base(20), base(8)))
    (step,) = expiry_steps(replace(locked, tablespace=TOLD), UUID)
    assert (step.order, step.version, step.why) == (None, 3, why)
    assert archive_fields(replace(locked, tablespace=EXPIRES), UUID)["archive"]["expiry"] == f"nothing expires: {why}"
    assert decide_expiry(archive(), seen(doubted={"d20": why}), (base(20), base(8)), LOG) == decide_expiry(
        archive(), seen(), (base(8),), LOG
    )


@pytest.mark.parametrize(("locked", "begin"), [(set(), (10, 5)), ({"d20"}, (22, 5)), ({"d20", "d8"}, None)])
def test_the_window_begins_with_the_first_checkpoint_whose_key_is_there_and_a_schedule_keeps_those_before(
    locked: set[str], begin: tuple[int, int] | None
) -> None:
    observed = seen(LATER, locked=frozenset(locked))
    found = archive_fields(replace(SEEN, tablespace=ARCHIVED, archive=observed, checkpoints=(base(20), base(8))), UUID)
    since = found.get("recoveryWindow", {}).get("fromLsn")
    assert (since and (since["ledgerId"], since["entryId"])) == begin
    stored = with_status(
        ARCHIVED,
        uuid=UUID,
        archive=ArchiveStatus.model_validate(found["archive"]),
        recovery_window=RecoveryWindow.model_validate(found["recoveryWindow"]) if begin is not None else None,
    )
    needed = needed_by_archive(stored, (base(25, 5), base(20), base(8), base(6)), INSTANCE, NOON)
    assert needed == {"d20"} | ({"d8"} if begin == (22, 5) else set()), "the key may come back; the archive does not reach back to d25"


def test_a_schedule_keeps_no_checkpoint_for_an_archive_that_begins_with_the_log() -> None:
    found = archive_fields(replace(SEEN, tablespace=ARCHIVED, archive=seen(), checkpoints=(base(20), base(8))), UUID)
    archived, begins = ArchiveStatus.model_validate(found["archive"]), RecoveryWindow.model_validate(found["recoveryWindow"])
    stored = with_status(ARCHIVED, uuid=UUID, archive=archived, recovery_window=begins)
    assert needed_by_archive(stored, (base(20), base(8)), INSTANCE, NOON) == frozenset()


def test_an_archive_without_a_retention_keeps_everything() -> None:
    assert decide_expiry(archive(None), seen(), (base(20), base(8)), LOG) is None
    assert expiry_steps(replace(SEEN, tablespace=ARCHIVED, archive=seen(), checkpoints=(base(8),)), UUID) == ()


def window(days: float, ledger: int | None = None) -> RecoveryWindow:
    ledger = int(30 - days) if ledger is None else ledger
    return RecoveryWindow(from_lsn=Lsn(ledger_id=ledger, entry_id=5))


def steps(tablespace: Tablespace, observed: ArchiveObserved, *checkpoints: Checkpoint) -> list[tuple[Any, ...]]:
    """What the archiver is told, and the version that was read."""
    found = expiry_steps(replace(SEEN, tablespace=tablespace, archive=observed, checkpoints=checkpoints), UUID)
    assert all(step.path == PATH for step in found)
    return [(None if step.order is None else step.order.keep_from, step.version) for step in found]


TOLD = with_status(EXPIRES, uuid=UUID, recovery_window=window(8))
OPEN = {"restart_lsn": Lsn(ledger_id=21, entry_id=2)}


@pytest.mark.parametrize(
    ("situation", "tablespace", "observed", "checkpoints", "told"),
    [
        ("the status does not say yet that the window begins later", EXPIRES, seen(), (base(8),), []),
        ("the status has another base", with_status(EXPIRES, recovery_window=window(9)), seen(), (base(8),), []),
        ("the status says it", TOLD, seen(), (base(8),), [((22, 5), None)]),
        ("a transaction was open at the base", TOLD, seen(), (base(8, **OPEN),), [((21, 2), None)]),
        ("it was told", TOLD, seen(order=ordered(22, 5)), (base(8),), []),
        ("the base is a newer one than was told", TOLD, seen(order=ordered(20, 5)), (base(8),), [((22, 5), 3)]),
        ("another claim was spoken of", TOLD, seen(order=ordered(29, 5, "old")), (base(8),), [((22, 5), 3)]),
        ("what was told can't be read", TOLD, seen(order=SeenOrder(None, 3)), (base(8),), [((22, 5), 3)]),
        ("there is nothing before it", TOLD, seen(replace(LATER, first=(22, 5))), (base(8),), []),
        ("nothing may go any more: the base was deleted", TOLD, seen(order=ordered(22, 5)), (base(20),), [(None, 3)]),
        ("nothing may go while a Checkpoint can't be read", TOLD, seen(order=ordered(22, 5), unread=Unknown("x")), (base(8),), [(None, 3)]),
        ("nothing may go, and nothing was to", TOLD, seen(), (), []),
        ("what was told can't be asked", TOLD, seen(order=Unknown("silence")), (base(8),), []),
        ("the retention was taken away", ARCHIVED, seen(order=ordered(22, 5)), (base(8),), [(None, 3)]),
        ("the log is not archived any more", FORGETFUL, seen(order=ordered(22, 5)), (base(8),), [(None, 3)]),
    ],
)
def test_the_archiver_is_told_what_may_go_once_the_status_says_that_the_window_begins_later(
    situation: str, tablespace: Tablespace, observed: ArchiveObserved, checkpoints: tuple[Checkpoint, ...], told: Any
) -> None:
    assert steps(tablespace, observed, *checkpoints) == told, situation


def test_the_archiver_looks_at_the_base_where_it_can() -> None:
    here, in_a_store = (
        base(8).model_copy(update={"spec": base(8).spec.model_copy(update={"destination": Destination.model_validate(there)})})
        for there in (CLAIM, {"objectStore": {"uri": "s3://backups", "credentialsSecretRef": {"name": "keys"}}})
    )
    for found, manifest in ((here, here.manifest), (base(8), ""), (in_a_store, "")):
        (step,) = expiry_steps(replace(SEEN, tablespace=TOLD, archive=seen(), checkpoints=(found,)), UUID)
        assert step.order == ExpiryOrder("archives", (22, 5), manifest or "")
    assert described(step) == (
        Reason.ARCHIVE_EXPIRES,
        "Releasing the archive before LSN 22,5, since the Checkpoint d8 is the newest verified one as old as the recovery window",
    )
    assert described(replace(step, order=None, why="so"))[1] == "No longer releasing any of the archive, since so"


def test_the_archiver_of_a_store_looks_at_the_base_that_is_in_the_same_one() -> None:
    store = Destination.model_validate({"objectStore": {"uri": "s3://backups", "credentialsSecretRef": {"name": "keys"}}})
    log = TablespaceLog(archive=LogArchive(destination=store, retention=ArchiveRetention(keep_within="7d")))
    observed = replace(seen(), progress=ArchiveProgress("s3://backups", WHOLE, millis(0), 1.0))
    for destination, manifest in ((store, base(8).manifest), (Destination.model_validate(CLAIM), "")):
        found = base(8).model_copy(update={"spec": base(8).spec.model_copy(update={"destination": destination})})
        (step,) = expiry_steps(replace(SEEN, tablespace=with_spec(TOLD, log=log), archive=observed, checkpoints=(found,)), UUID)
        assert step.order == ExpiryOrder("s3://backups", (22, 5), manifest or "")


def test_what_may_go_is_taken_back_with_the_resource() -> None:
    plan = plan_tablespace_deletion(replace(SEEN, tablespace=TOLD, archive=seen(order=ordered(22, 5))), 0.0)
    assert [action.order for action in plan.actions if isinstance(action, SetArchiveExpiry)] == [None]


def fields(observed: ArchiveObserved, *checkpoints: Checkpoint) -> dict[str, Any]:
    return archive_fields(replace(SEEN, tablespace=EXPIRES, archive=observed, checkpoints=checkpoints), UUID)


@pytest.mark.parametrize(
    ("situation", "observed", "checkpoints", "begin"),
    [
        ("nothing may go: the archive has the whole log", seen(), (base(3),), (0, 0)),
        ("something may go, whether it has gone or not", seen(), (base(20), base(8)), (22, 5)),
        ("it is going", seen(LATER, order=ordered(22, 5)), (base(20), base(8)), (22, 5)),
        ("a person deleted the base while the rest was going", seen(order=ordered(22, 5)), (base(20), base(3)), (27, 5)),
        ("a person deleted the base, and it is known that nothing has gone", seen(), (base(20), base(3)), (10, 5)),
        ("a person deleted all of them after something has gone", seen(LATER), (), None),
    ],
)
def test_the_window_is_true_whatever_has_gone_already(situation: str, observed: ArchiveObserved, checkpoints: Any, begin: Any) -> None:
    found = fields(observed, *checkpoints).get("recoveryWindow")
    assert (found and (found["fromLsn"]["ledgerId"], found["fromLsn"]["entryId"])) == begin, situation


def test_while_nobody_knows_which_log_it_is_the_window_stays_as_it_was_told_and_the_status_says_why() -> None:
    unknown = replace(SEEN, archive=seen(LATER), checkpoints=(base(8),), instance_id=NO_INSTANCE)
    found = archive_fields(replace(unknown, tablespace=TOLD), UUID)
    assert found["recoveryWindow"] == {"fromLsn": {"ledgerId": 22, "entryId": 5}}
    assert found["archive"]["expiry"].startswith("nothing expires: the BookKeeperCluster bk does not exist")
    assert "recoveryWindow" not in archive_fields(replace(unknown, tablespace=EXPIRES), UUID)
    whole = archive_fields(replace(unknown, tablespace=TOLD, archive=seen()), UUID)
    assert whole["recoveryWindow"]["fromLsn"] == {"ledgerId": 0, "entryId": 0}, "an archive that begins with the log needs no Checkpoint"


def test_the_window_of_an_archive_does_not_begin_with_a_checkpoint_of_another_cluster() -> None:
    other = base(20, manifest=f"another/{UUID}/manifests/x.json")
    assert fields(seen(LATER), other, base(8))["recoveryWindow"]["fromLsn"] == {"ledgerId": 22, "entryId": 5}
    assert "recoveryWindow" not in fields(seen(LATER), other)


def test_the_window_begins_with_the_latest_entry_of_its_base() -> None:
    skewed = base(9, latest_timestamp=ago(7.5).isoformat())
    assert fields(seen(), skewed)["recoveryWindow"]["from"] == ago(7.5).isoformat()


@pytest.mark.parametrize(
    ("observed", "checkpoints", "words"),
    [
        (seen(), (base(8),), "kept from LSN 22,5 on for the Checkpoint d8 at 22,5, the newest verified one that is 7d old"),
        (seen(), (), "nothing expires: no verified Checkpoint is 7d old or older, and there is no base"),
        (seen(unread=Unknown("the Checkpoint x can't be read")), (base(8),), "nothing expires: the Checkpoint x can't be read"),
    ],
)
def test_it_is_told_what_becomes_of_what_is_old(observed: ArchiveObserved, checkpoints: Any, words: str) -> None:
    assert fields(observed, *checkpoints)["archive"]["expiry"] == words
    later = fields(replace(observed, now=observed.now + 1), *checkpoints)
    assert later["archive"]["expiry"] == words, "a status that is settled is not written again"


def test_what_is_in_the_way_of_expiry_is_told_and_the_log_is_archived_all_the_same() -> None:
    stuck = seen()
    assert isinstance(stuck.progress, ArchiveProgress)
    stuck = replace(stuck, progress=replace(stuck.progress, expiry_trouble="a gap"))
    assert fields(stuck, base(8))["archive"]["expiry"].endswith("; earlier segments could not be deleted: a gap")
    (condition,) = log_archived(replace(SEEN, tablespace=EXPIRES, archive=stuck)).values()
    assert (condition.status, "nothing expires: a gap" in condition.message) == ("True", True)
    assert fields(seen())["archive"]["firstLsn"] == {"ledgerId": 0, "entryId": 0}


NEWEST = ArchiveStatus(claim_name="archives", lsn_timestamp=NOON.isoformat())
STANDING = NEWEST.model_copy(update={"lsn_timestamp": ago(5).isoformat()})


@pytest.mark.parametrize(
    ("situation", "status", "checkpoints", "needed"),
    [
        ("there is none", {}, (), set()),
        ("nothing is old enough: the oldest will be the base", {}, (base(3), base(2), base(1)), {"d3"}),
        ("one is the base, and the oldest of the others will be", {}, (base(9), base(8), base(6), base(5), base(1)), {"d8", "d6"}),
        ("all are old", {}, (base(20), base(15)), {"d15"}),
        ("the window begins with an older one still", {"recovery_window": window(9)}, (base(9), base(8), base(6)), {"d9", "d8", "d6"}),
        (
            "nothing is archived yet, and the window may begin with each that is as old, and soon with the next one",
            {"archive": ArchiveStatus(claim_name="archives")},
            (base(9), base(8), base(6), base(5)),
            {"d9", "d8", "d6"},
        ),
        (
            "the archive stands: its window waits for it, and may go on to now while the schedule is looked at",
            {"archive": STANDING},
            (base(14), base(13), base(9), base(8), base(6), base(5)),
            {"d13", "d9", "d8", "d6"},
        ),
        (
            "nothing is written for long: of Checkpoints with the same rows one is enough",
            {"archive": NEWEST.model_copy(update={"lsn_timestamp": ago(9).isoformat()})},
            tuple(base(day, 21, latest_timestamp=ago(9).isoformat()) for day in (9, 8, 3, 2)),
            {"d9"},
        ),
    ],
)
def test_a_schedule_keeps_what_the_window_needs_and_will_need(situation: str, status: Any, checkpoints: Any, needed: set[str]) -> None:
    tablespace = with_status(EXPIRES, **{"uuid": UUID, "archive": NEWEST, **status})
    assert needed_by_archive(tablespace, checkpoints, INSTANCE, NOON) == needed, situation


def test_a_schedule_keeps_what_the_window_begins_with_where_nothing_expires_either() -> None:
    tablespace = with_status(ARCHIVED, uuid=UUID, archive=NEWEST, recovery_window=window(9))
    assert needed_by_archive(tablespace, (base(9), base(8), base(6)), INSTANCE, NOON) == {"d9"}
    assert needed_by_archive(FORGETFUL, (base(9),), NO_INSTANCE, NOON) == frozenset()


def test_a_schedule_keeps_for_the_window_what_is_of_its_log_and_does_not_know_what_that_is_without_its_cluster() -> None:
    tablespace = with_status(EXPIRES, uuid=UUID, archive=NEWEST)
    newer = base(8, manifest=f"another/{UUID}/manifests/x.json")
    assert needed_by_archive(tablespace, (base(9), newer), INSTANCE, NOON) == {"d9"}
    unknown = needed_by_archive(tablespace, (base(9), newer), NO_INSTANCE, NOON)
    assert isinstance(unknown, Unknown)
    assert unknown.why.startswith("the BookKeeperCluster bk does not exist")


def test_a_schedule_does_not_know_what_the_archive_of_a_tablespace_without_a_uuid_needs() -> None:
    unknown = needed_by_archive(with_status(EXPIRES, uuid=None), (base(9),), INSTANCE, NOON)
    assert isinstance(unknown, Unknown)
    assert "the Tablespace flights does not report its uuid" in unknown.why


ANOTHER = VersionedRecord(TablespaceRecord("made-anew", "flights", NODE, (NODE,), 1, 30_000), 0)
GONE = {"unreadable": Unknown("ZooKeeper is silent"), "dropped": RecordAbsent(), "dropped and made anew": ANOTHER}


@pytest.mark.parametrize("gone", GONE.values(), ids=GONE)
def test_a_schedule_keeps_what_the_window_begins_with_also_while_the_tablespaces_record_is_not_there(gone: Any) -> None:
    told = with_status(ARCHIVED, uuid=UUID, archive=NEWEST, recovery_window=window(9))
    fields = summarize_tablespace(replace(SEEN, tablespace=told, record=gone, archive=seen(LATER), checkpoints=(base(9), base(8)))).fields
    assert fields.get("recoveryWindow") == {"fromLsn": {"ledgerId": 21, "entryId": 5}}
    stored = with_status(ARCHIVED, uuid=UUID, archive=ArchiveStatus.model_validate(fields["archive"]), recovery_window=window(9))
    assert needed_by_archive(stored, (base(9), base(8)), INSTANCE, NOON) == {"d9"}


def test_a_schedule_keeps_what_the_window_begins_with_also_while_the_archivers_report_is_lost() -> None:
    told = with_status(ARCHIVED, uuid=UUID, archive=ArchiveStatus(claim_name="archives"), recovery_window=window(9))
    checkpoints = (base(9), base(8))
    for lost in (ArchiveObserved(None), seen(None)):
        found = archive_fields(replace(SEEN, tablespace=told, archive=lost, checkpoints=checkpoints), UUID)
        stored = with_status(
            ARCHIVED,
            uuid=UUID,
            archive=ArchiveStatus.model_validate(found["archive"]),
            recovery_window=RecoveryWindow.model_validate(found["recoveryWindow"]),
        )
        assert needed_by_archive(stored, checkpoints, INSTANCE, NOON) == {"d9"}
    elsewhere = with_status(told, archive=ArchiveStatus(claim_name="another"))
    assert "recoveryWindow" not in archive_fields(replace(SEEN, tablespace=elsewhere, archive=ArchiveObserved(None)), UUID), (
        "another archive begins"
    )


def test_a_schedule_does_not_know_what_an_archive_needs_of_which_the_status_says_nothing() -> None:
    for lost in (with_status(ARCHIVED, uuid=UUID), with_status(EXPIRES, uuid=UUID)):
        unknown = needed_by_archive(lost, (base(9), base(8)), INSTANCE, NOON)
        assert isinstance(unknown, Unknown)
        assert "the Tablespace flights does not report its archive" in unknown.why


@given(st.lists(st.integers(1, 29), min_size=1, max_size=8, unique=True), st.integers(1, 29), st.floats(0, 20))
def test_once_something_may_go_the_window_is_at_least_as_long_as_asked_for_and_only_shrinks_with_time(
    days: list[int], within: int, later: float
) -> None:
    """The base is old enough, and another look, later, never asks for what may have gone."""
    checkpoints = tuple(base(day) for day in days)
    first = decide_expiry(archive(f"{within}d"), seen(), checkpoints, LOG)
    if not isinstance(first, KeptFrom):
        assert min(days) > 0
        assert max(days) < within
        return
    assert first.base.holds_nothing_after is not None
    assert first.base.holds_nothing_after <= ago(within)
    gone = replace(WHOLE, first=first.base.restart, begins_log=False, last_millis=millis(-later))
    second = decide_expiry(archive(f"{within}d"), seen(gone, now=ago(-later).timestamp()), checkpoints, LOG)
    assert isinstance(second, KeptFrom)
    assert second.base.restart >= first.base.restart


@given(st.lists(st.integers(1, 400), min_size=20, max_size=200), st.integers(1, 30), st.integers(1, 5))
def test_with_a_schedule_that_keeps_few_the_archive_still_expires(hours: list[int], within: int, keep_last: int) -> None:
    """Whatever the times between Checkpoints are: those that the schedule leaves are enough for a window of at most twice its length, and
    the longest time between two."""
    left: list[Checkpoint] = []
    passed, longest = 0, 0
    for number, step in enumerate(hours):
        passed, longest = passed + step, max(longest, step)
        now = NOON + datetime.timedelta(hours=passed)
        stamp = now.isoformat()
        left.append(checkpoint(f"c{number}", (number, 5), lsn_timestamp=stamp, latest_timestamp=stamp))
        tablespace = with_status(
            with_spec(FORGETFUL, log=TablespaceLog(archive=archive(f"{within}d"))),
            uuid=UUID,
            archive=NEWEST.model_copy(update={"lsn_timestamp": stamp}),
        )
        needed = needed_by_archive(tablespace, left, INSTANCE, now)
        assert not isinstance(needed, Unknown)
        left = [found for found in left[:-keep_last] if found.metadata.name in needed] + left[-keep_last:]
        held = ArchivedRange((0, 0), millis(0), True, (number, 9), int(now.timestamp() * 1000), (number, 10))
        decided = decide_expiry(archive(f"{within}d"), seen(held, now=now.timestamp()), left, LOG)
        reach = 2 * within * 24 + longest
        if passed > reach:
            assert isinstance(decided, KeptFrom)
            assert decided.base.holds_nothing_after is not None
            assert now - decided.base.holds_nothing_after <= datetime.timedelta(hours=reach)


@pytest.mark.parametrize("order", [ExpiryOrder("c", (3, 4)), ExpiryOrder("c", (3, 4), "i/u/manifests/x.json")])
def test_what_may_go_is_read_as_it_was_written(order: ExpiryOrder) -> None:
    assert decode_expiry_order(encode_expiry_order(order)) == order


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", encode_expiry_order(ExpiryOrder("c", (3, 4))).replace(b'"c"', b"7")])
def test_what_is_no_order_lets_nothing_go(data: bytes) -> None:
    with pytest.raises(MalformedDataError, match="the order to expire parts of an archive"):
        decode_expiry_order(data)
