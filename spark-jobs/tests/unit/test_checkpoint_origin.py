"""The choice of a checkpoint's origin: the log if complete, else a base and the archive, else the whole archive. Of the log, only
a base's last entry is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from played_bookie import PlayedBookie, served
from played_log import TABLESPACE, PlayedLog
from test_checkpoint_manifest import IDENTITY, manifest

from herdkeeper.codecs.herddb.log_entry import LogEntry, LogEntryType
from herdkeeper.protocol.log_archive import ExpiryOrder
from herdkeeper_jobs.archive.copying import copy_log
from herdkeeper_jobs.archive.expiry import delete_segments, due
from herdkeeper_jobs.archive.parts import ReadBudget, WholeLog
from herdkeeper_jobs.archive.segment import Place
from herdkeeper_jobs.archive.window import Window, recovery_window
from herdkeeper_jobs.bookkeeper.reader import ReadSettings
from herdkeeper_jobs.checkpoint import origin
from herdkeeper_jobs.checkpoint.base import BaseRows, BaseUnread
from herdkeeper_jobs.checkpoint.origin import Mode, Search, choose_origin
from herdkeeper_jobs.checkpoint.run import chosen_target
from herdkeeper_jobs.checkpoint.target import TargetRequest
from herdkeeper_jobs.errors import CheckpointRefused
from herdkeeper_jobs.log_source import LogSource
from herdkeeper_jobs.manifests.continuation import Continuation
from herdkeeper_jobs.manifests.manifest import Making, ManifestBase, Position, commit_manifest
from herdkeeper_jobs.wal.log_state import LogState, StateTransaction
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import Time

SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedLog]:
    monkeypatch.setattr(origin, "load_rows", lambda spark, base: BaseRows(base, spark))
    bookies = [PlayedBookie() for _ in range(3)]
    with served(*bookies) as addresses:
        made = PlayedLog(bookies, addresses, tmp_path)
        for ledger, closed in ((3, True), (5, True), (7, False)):
            made.write(ledger, [LogEntry(ledger, LogEntryType.NOOP, -1, "")] * 4, closed=closed)
        yield made


def archive(log: PlayedLog, folder: Path) -> None:
    copy_log(source(log), Place(folder, IDENTITY, "run"), ReadSettings(batch_entries=2), segment_bytes=1)


def source(log: PlayedLog) -> LogSource:
    catalog: Any = log.metadata
    return LogSource(catalog, "/db/herd", TABLESPACE)


DUE, NOW = 1_000, 5_000
"""A chain is due if its last whole read is older than the one, or later than the other."""


def chosen(log: PlayedLog, folder: Path, mode: Mode, target: Lsn | Time, read_to: Lsn | None = None) -> tuple[Lsn | None, int, int]:
    """The base, the number of archived segments to read, and of the log's entries."""
    end = read_to or (target if isinstance(target, Lsn) else Lsn(0, 0))
    found = choose_origin(SPARK, WholeLog(source(log), folder, IDENTITY), Search(folder, IDENTITY, mode, target, DUE, NOW), end)
    archived = sum(len(part.segments) for part in found.archived)
    live = sum(len(piece.entries) for part in found.live for piece in part.pieces)
    return None if found.start is None else found.start.at, archived, live


@pytest.mark.parametrize(
    ("mode", "target", "dropped", "expected"),
    [
        (Mode.AUTO, Lsn(5, 1), (), (Lsn(3, 2), 0, 4)),
        (Mode.AUTO, Lsn(5, 1), (3, 5), (Lsn(3, 2), 2, 0)),
        (Mode.AUTO, Lsn(7, 2), (3, 5), (Lsn(3, 2), 5, 0)),
        (Mode.INCREMENTAL, Lsn(5, 1), (), (Lsn(3, 2), 0, 4)),
        (Mode.FULL, Lsn(5, 1), (3, 5), (None, 3, 0)),
        (Mode.AUTO, Lsn(3, 1), (3, 5), (None, 1, 0)),
    ],
    ids=[
        "from the base though the log is whole",
        "released",
        "released, to the end",
        "from the base by wish",
        "whole by wish",
        "before the first base",
    ],
)
def test_what_the_log_has_is_read_of_it_and_the_rest_of_the_archive_from_a_base_on(
    log: PlayedLog, tmp_path: Path, mode: Mode, target: Lsn, dropped: tuple[int, ...], expected: tuple[Lsn | None, int, int]
) -> None:
    folder = tmp_path / IDENTITY.instance_id / IDENTITY.tablespace_uuid
    made_at(folder, 2, Making(at_millis=DUE, seconds=1))
    archive(log, folder)
    for ledger in dropped:
        log.drop(ledger)
    assert chosen(log, folder, mode, target) == expected


def made_at(folder: Path, entry_id: int, made: Making | None, **more: object) -> None:
    """Commits a checkpoint at 3,`entry_id`, of an entry with the time 3."""
    known = {"continuation": Continuation.of(LogState()), "made": made, "lsn_timestamp_millis": 3}
    whole = manifest(entry_id=entry_id).model_copy(update={**known, **more})
    commit_manifest(whole, folder)


WRITTEN_ANEW = {"another entry": (3, {"lsn_timestamp_millis": 4}), "no entry": (9, {})}
"""What the log has at the LSN of a checkpoint from before it was put back: its entry there, and what differs in its manifest."""


@pytest.mark.parametrize("archived", [False, True], ids=["in the log", "in the archive"])
@pytest.mark.parametrize("older", [True, False], ids=["beside an older one", "alone"])
@pytest.mark.parametrize("there", WRITTEN_ANEW)
def test_a_checkpoint_of_a_time_that_the_log_lost_is_no_base(
    log: PlayedLog, tmp_path: Path, there: str, older: bool, archived: bool
) -> None:
    folder = tmp_path / IDENTITY.instance_id / IDENTITY.tablespace_uuid
    entry_id, differs = WRITTEN_ANEW[there]
    if older:
        made_at(folder, 1, Making(at_millis=DUE, seconds=1))
    made_at(folder, entry_id, Making(at_millis=DUE, seconds=1), **differs)
    archive(log, folder)
    for ledger in (3, 5) if archived else ():
        log.drop(ledger)
    found = choose_origin(SPARK, WholeLog(source(log), folder, IDENTITY), Search(folder, IDENTITY, Mode.AUTO, Lsn(5, 1), DUE), Lsn(5, 1))
    assert (None if found.start is None else found.start.at) == (Lsn(3, 1) if older else None)
    (passed,) = found.passed_over
    assert f": the log has {there} at its LSN: the cluster was put back to an earlier state" in str(passed)


def test_a_checkpoint_of_a_lost_time_behind_the_end_of_the_log_is_no_base_for_a_time(log: PlayedLog, tmp_path: Path) -> None:
    folder = tmp_path / IDENTITY.instance_id / IDENTITY.tablespace_uuid
    made_at(folder, 1, Making(at_millis=DUE, seconds=1), latest_timestamp_millis=3)
    at = Position(ledger_id=7, entry_id=2)
    made_at(folder, 9, Making(at_millis=DUE, seconds=1), latest_timestamp_millis=4, lsn=at, restart_lsn=at)
    assert chosen(log, folder, Mode.AUTO, Time(4, "then"), Lsn(5, 3))[0] == Lsn(3, 1)


@pytest.mark.parametrize(
    ("anew", "words"),
    [
        ((6, 7), "the archive continues ledger 5 with 7, and the log has ledger 6 before it"),
        ((7,), "the archive has the entry 5,3, and LSN 5,3: ledger 5 is not in the log"),
    ],
    ids=["another ledger is in its place", "none is in its place"],
)
def test_a_checkpoint_and_an_archive_of_ledgers_that_the_log_lost_are_passed_over(
    log: PlayedLog, tmp_path: Path, anew: tuple[int, ...], words: str
) -> None:
    folder = tmp_path / IDENTITY.instance_id / IDENTITY.tablespace_uuid
    for bookie in log.bookies:
        bookie.entries = {at: entry for at, entry in bookie.entries.items() if at[0] != 7}
    archive(log, folder)
    lost = Position(ledger_id=5, entry_id=1)
    made_at(folder, 1, Making(at_millis=DUE, seconds=1))
    made_at(folder, 1, Making(at_millis=DUE, seconds=1), lsn=lost, restart_lsn=lost, lsn_timestamp_millis=5)
    log.drop(5)
    for ledger in anew:
        log.write(ledger, [LogEntry(100 + ledger, LogEntryType.NOOP, -1, "")] * 4, closed=ledger != 7)
    search = Search(folder, IDENTITY, Mode.AUTO, Lsn(7, 1), DUE)
    found = choose_origin(SPARK, WholeLog(source(log), folder, IDENTITY), search, Lsn(7, 1))
    assert found.start is not None
    assert found.start.at == Lsn(3, 1)
    assert found.archived == ()
    assert sum(len(piece.entries) for part in found.live for piece in part.pieces) == 3 + 4 * (len(anew) - 1) + 2
    (passed,) = found.passed_over
    assert words in str(passed)


@pytest.mark.parametrize("archived", [True, False], ids=["with an archive", "without one"])
def test_a_checkpoint_of_a_lost_ledger_does_not_end_the_search(log: PlayedLog, tmp_path: Path, archived: bool) -> None:
    folder = tmp_path / IDENTITY.instance_id / IDENTITY.tablespace_uuid
    log.drop(7)
    log.write(5, [LogEntry(5, LogEntryType.NOOP, -1, "")] * 4, closed=False)
    if archived:
        archive(log, folder)
    lost = Position(ledger_id=5, entry_id=1)
    made_at(folder, 1, Making(at_millis=DUE, seconds=1))
    made_at(folder, 1, Making(at_millis=DUE, seconds=1), lsn=lost, restart_lsn=lost, lsn_timestamp_millis=5)
    log.drop(5)
    log.write(9, [LogEntry(9, LogEntryType.NOOP, -1, "")] * 4, closed=False)
    search = Search(folder, IDENTITY, Mode.AUTO, Lsn(9, 1), DUE)
    found = choose_origin(SPARK, WholeLog(source(log), folder, IDENTITY), search, Lsn(9, 1))
    assert found.start is not None
    assert found.start.at == Lsn(3, 1)
    (passed,) = found.passed_over
    why = "ledger 5 is not in the log of 'demo'" if archived else "would be read from ledger 5, which it lacks"
    assert why in str(passed)


def open_since(ledger: int, entry: int) -> dict[str, object]:
    """What a manifest says of a transaction that is open since an LSN."""
    state = LogState(transactions=(StateTransaction(7, Lsn(ledger, entry)),))
    return {"continuation": Continuation.of(state), "restart_lsn": Position(ledger_id=ledger, entry_id=entry)}


@pytest.mark.parametrize("archived", [False, True], ids=["in the log", "in the archive"])
@pytest.mark.parametrize(
    ("at", "more", "target"),
    [
        (Lsn(3, 3), {}, Lsn(5, 1)),
        (Lsn(3, 3), {}, Lsn(7, 2)),
        (Lsn(5, 0), open_since(3, 2), Lsn(5, 1)),
        (Lsn(5, 3), {}, Lsn(5, 3)),
        (Lsn(7, 1), {}, Lsn(7, 2)),
        (Lsn(3, 2), {"lsn_timestamp_millis": None}, Lsn(5, 1)),
    ],
    ids=[
        "at the end of a ledger",
        "two leaders ago",
        "with an older transaction",
        "nothing since",
        "in the open ledger",
        "without a time",
    ],
)
def test_a_checkpoint_of_the_log_itself_stays_its_base(
    log: PlayedLog, tmp_path: Path, at: Lsn, more: dict[str, object], target: Lsn, archived: bool
) -> None:
    folder = tmp_path / IDENTITY.instance_id / IDENTITY.tablespace_uuid
    where = {"lsn": Position.of(at), "restart_lsn": Position.of(at), "lsn_timestamp_millis": at.ledger_id}
    made_at(folder, 0, Making(at_millis=DUE, seconds=1), **{**where, **more})
    archive(log, folder)
    for ledger in (3, 5) if archived else ():
        log.drop(ledger)
    assert chosen(log, folder, Mode.AUTO, target)[0] == at


def test_a_base_whose_last_entry_cannot_be_read_now_is_not_called_wrong(log: PlayedLog, tmp_path: Path) -> None:
    folder = tmp_path / IDENTITY.instance_id / IDENTITY.tablespace_uuid
    made_at(folder, 2, Making(at_millis=DUE, seconds=1))
    for bookie in log.bookies:
        del bookie.entries[3, 2]
    search = Search(folder, IDENTITY, Mode.AUTO, Lsn(5, 1), DUE)
    (passed,) = choose_origin(SPARK, WholeLog(source(log), folder, IDENTITY), search, Lsn(5, 1)).passed_over
    assert isinstance(passed, BaseUnread)
    assert "entry 2 of ledger 3 cannot be read" in str(passed)


BASE = ManifestBase(manifest="m", lsn=Position(ledger_id=3, entry_id=0), run_id="r")


@pytest.mark.parametrize(
    ("mode", "made", "more", "expected"),
    [
        (Mode.AUTO, DUE, {}, (Lsn(3, 2), 0, 4)),
        (Mode.AUTO, DUE - 1, {}, (None, 0, 6)),
        (Mode.AUTO, NOW + 1, {}, (None, 0, 6)),
        (Mode.AUTO, None, {}, (None, 0, 6)),
        (Mode.AUTO, 2 * DUE, {"base": BASE, "whole_log_at_millis": DUE}, (Lsn(3, 2), 0, 4)),
        (Mode.AUTO, 2 * DUE, {"base": BASE, "whole_log_at_millis": DUE - 1}, (None, 0, 6)),
        (Mode.AUTO, 2 * DUE, {"base": BASE}, (None, 0, 6)),
        (Mode.INCREMENTAL, DUE - 1, {}, (Lsn(3, 2), 0, 4)),
    ],
    ids=[
        "made from the whole log just now",
        "and long ago",
        "by a job whose clock was ahead",
        "by an earlier version that does not say when",
        "made from one of the whole log just now",
        "and long ago",
        "and nobody knows when",
        "long ago, and increments are asked for",
    ],
)
def test_the_whole_log_is_read_again_once_it_was_read_long_ago_for_the_chain_of_the_newest_checkpoint(
    log: PlayedLog, tmp_path: Path, mode: Mode, made: int | None, more: dict[str, object], expected: tuple[Lsn | None, int, int]
) -> None:
    folder = tmp_path / IDENTITY.instance_id / IDENTITY.tablespace_uuid
    made_at(folder, 1, Making(at_millis=2 * DUE, seconds=1))
    made_at(folder, 2, None if made is None else Making(at_millis=made, seconds=1), **more)
    assert chosen(log, folder, mode, Lsn(5, 1)) == expected


def test_a_chain_goes_on_however_old_it_is_once_the_log_is_not_whole(log: PlayedLog, tmp_path: Path) -> None:
    folder = tmp_path / IDENTITY.instance_id / IDENTITY.tablespace_uuid
    made_at(folder, 2, Making(at_millis=DUE - 1, seconds=1))
    archive(log, folder)
    log.drop(3)
    assert chosen(log, folder, Mode.AUTO, Lsn(5, 1))[0] == Lsn(3, 2)


def test_an_unusable_base_is_passed_over_and_reported(log: PlayedLog, tmp_path: Path) -> None:
    folder = tmp_path / IDENTITY.instance_id / IDENTITY.tablespace_uuid
    for entry_id in (1, 2):
        made_at(folder, entry_id, Making(at_millis=DUE, seconds=1), **({"continuation": None} if entry_id == 2 else {}))
    search = Search(folder, IDENTITY, Mode.AUTO, Lsn(5, 1), DUE)
    found = choose_origin(SPARK, WholeLog(source(log), folder, IDENTITY), search, Lsn(5, 1))
    assert found.start is not None
    assert found.start.at == Lsn(3, 1)
    assert [str(reason).split(": ")[1] for reason in found.passed_over] == [
        "an earlier version made it, without the definitions and open transactions there"
    ]


@pytest.mark.parametrize(
    ("cores", "target", "tasks", "share"),
    [(4, Lsn(7, 2), 6, 250), (8, Lsn(7, 2), 6, 1000 / 6), (4, Lsn(3, 1), 2, 500), (4, Lsn(3, 0), 1, 1000)],
    ids=["more tasks than cores", "more cores than tasks", "two tasks", "one task"],
)
def test_the_budget_of_a_bookie_is_divided_among_the_tasks_that_may_read_from_it_at_once(
    log: PlayedLog, tmp_path: Path, cores: int, target: Lsn, tasks: int, share: float
) -> None:
    search = Search(tmp_path, IDENTITY, Mode.AUTO, target)
    found = choose_origin(SPARK, WholeLog(source(log), tmp_path, IDENTITY), search, target, ReadBudget(cores, 1000))
    assert [part.settings.bytes_per_second_per_bookie for part in found.live] == [share] * tasks


def test_a_moment_that_neither_a_base_nor_the_archive_reaches_is_refused(log: PlayedLog, tmp_path: Path) -> None:
    folder = tmp_path / IDENTITY.instance_id / IDENTITY.tablespace_uuid
    log.drop(3)
    archive(log, folder)
    log.drop(5)
    with pytest.raises(CheckpointRefused, match=r"begins with 5,0, and not with the log's beginning, and no checkpoint at the destination"):
        chosen(log, folder, Mode.AUTO, Lsn(5, 1))


def test_a_moment_before_the_window_is_refused_with_the_window(log: PlayedLog, tmp_path: Path) -> None:
    folder = tmp_path / IDENTITY.instance_id / IDENTITY.tablespace_uuid
    archive(log, folder)
    for ledger, latest in ((5, 5), (7, 7)):
        base = manifest(entry_id=1).model_copy(
            update={
                "lsn": Position(ledger_id=ledger, entry_id=1),
                "restart_lsn": Position(ledger_id=ledger, entry_id=1),
                "latest_timestamp_millis": latest,
                "lsn_timestamp_millis": latest,
                "continuation": Continuation.of(LogState()),
            }
        )
        commit_manifest(base, folder)
    found = due(Place(folder, IDENTITY, "run"), ExpiryOrder("c", (5, 1)))
    assert found is not None
    delete_segments(folder, found.going)
    log.drop(3)
    log.drop(5)
    window = (
        "With the archive, the LSNs from 5,1 to 7,2, and times from 1970-01-01T00:00:00.005Z to before 1970-01-01T00:00:00.007Z, can be had"
    )
    with pytest.raises(CheckpointRefused, match=f"{window}: take one of these"):
        chosen(log, folder, Mode.AUTO, Time(4, "then"), Lsn(7, 2))
    with pytest.raises(CheckpointRefused, match=window):
        chosen(log, folder, Mode.AUTO, Lsn(5, 0), Lsn(7, 2))
    whole = WholeLog(source(log), folder, IDENTITY)
    with pytest.raises(CheckpointRefused, match=f"the log would be read from 3,2, and its archive begins with 5,0. {window}"):
        chosen_target(whole, TargetRequest(Lsn(3, 2)), folder)
    assert chosen(log, folder, Mode.AUTO, Time(5, "then"), Lsn(7, 2))[0] == Lsn(5, 1)


@pytest.mark.parametrize("moment", [Lsn(5, 1), Time(5, "then")], ids=["an LSN", "a time"])
@pytest.mark.parametrize("later", [True, False], ids=["beside a later one", "alone"])
def test_no_moment_is_offered_that_begins_with_a_checkpoint_which_is_no_base(
    log: PlayedLog, tmp_path: Path, later: bool, moment: Lsn | Time
) -> None:
    folder = tmp_path / IDENTITY.instance_id / IDENTITY.tablespace_uuid
    archive(log, folder)
    made_at(folder, 2, None, continuation=None, latest_timestamp_millis=3)
    if later:
        at = Position(ledger_id=7, entry_id=1)
        made_at(folder, 1, None, lsn=at, restart_lsn=at, lsn_timestamp_millis=7, latest_timestamp_millis=7)
    found = due(Place(folder, IDENTITY, "run"), ExpiryOrder("c", (3, 2)))
    assert found is not None
    delete_segments(folder, found.going)
    log.drop(3)
    log.drop(5)
    with pytest.raises(CheckpointRefused, match="an earlier version made it") as refused:
        chosen(log, folder, Mode.AUTO, moment, Lsn(7, 2))
    assert "LSNs from 3,2" not in str(refused.value)
    assert ("With the archive, the LSNs from 7,1 to 7,2 can be had" in str(refused.value)) is later


def test_a_window_without_a_base_is_none_and_that_of_a_whole_archive_begins_with_the_log(log: PlayedLog, tmp_path: Path) -> None:
    folder = tmp_path / IDENTITY.instance_id / IDENTITY.tablespace_uuid
    whole = WholeLog(source(log), folder, IDENTITY)
    assert recovery_window(whole, folder) is None
    archive(log, folder)
    assert str(recovery_window(whole, folder)).startswith("the LSNs from 3,0 to ")
    found = due(Place(folder, IDENTITY, "run"), ExpiryOrder("c", (5, 1)))
    assert found is not None
    delete_segments(folder, found.going)
    assert recovery_window(whole, folder) is None


@pytest.mark.parametrize(("restart", "begins"), [(2, True), (1, False)], ids=["nothing is open there", "a transaction began before"])
def test_a_window_does_not_begin_with_a_checkpoint_that_needs_more_than_is_archived(
    log: PlayedLog, tmp_path: Path, restart: int, begins: bool
) -> None:
    folder = tmp_path / IDENTITY.instance_id / IDENTITY.tablespace_uuid
    archive(log, folder)
    made_at(folder, 2, None, restart_lsn=Position(ledger_id=3, entry_id=restart))
    found = due(Place(folder, IDENTITY, "run"), ExpiryOrder("c", (3, 2)))
    assert found is not None
    delete_segments(folder, found.going)
    window = recovery_window(WholeLog(source(log), folder, IDENTITY), folder)
    assert (None if window is None else window.begin) == (Lsn(3, 2) if begins else None)


@pytest.mark.parametrize(
    ("at", "held"),
    [
        *((Lsn(*lsn), held) for lsn, held in (((5, 0), False), ((5, 1), True), ((7, 3), True), ((7, 4), False))),
        *((Time(millis, ""), held) for millis, held in ((99, False), (100, True), (199, True), (200, False))),
    ],
)
def test_a_window_holds_its_last_lsn_and_not_the_time_of_its_last_entry(at: Lsn | Time, held: bool) -> None:
    """An entry that is not archived yet may have the same time."""
    assert Window(Lsn(5, 1), 100, Lsn(7, 3), 200).holds(at) is held
    assert Window(Lsn(5, 1), None, Lsn(7, 3), 200).holds(at) is (held and isinstance(at, Lsn)), "its beginning has no time"
