"""Checkpoints from a base, from bookies to the manifest; and why a checkpoint is no base."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from played_bookie import PlayedBookie, served
from played_log import PlayedLog
from pyspark.sql import SparkSession
from restore_situations import PARENT, PARENT_ROWS, write_checkpoint
from test_checkpoint_manifest import IDENTITY, manifest

from herdkeeper.codecs.herddb.log_entry import LogEntry, LogEntryType
from herdkeeper.codecs.herddb.record import encode_row
from herdkeeper.codecs.herddb.row_digest import digest_of_rows
from herdkeeper.codecs.herddb.table import Column, ColumnType, TableDefinition, encode_table
from herdkeeper.protocol.job_summary import CheckpointSummary
from herdkeeper_jobs.archive.copying import copy_log
from herdkeeper_jobs.archive.parts import WholeLog
from herdkeeper_jobs.archive.segment import Place
from herdkeeper_jobs.checkpoint.base import BaseUnusable, CheckpointBase, candidates, described, load_rows, shares_of_tasks
from herdkeeper_jobs.checkpoint.origin import Mode, Search, choose_origin
from herdkeeper_jobs.checkpoint.reading import open_manifest
from herdkeeper_jobs.checkpoint.run import CheckpointRequest, run_checkpoint
from herdkeeper_jobs.checkpoint.target import TargetRequest
from herdkeeper_jobs.errors import CheckpointRefused, CheckpointRetryable
from herdkeeper_jobs.log_source import open_log
from herdkeeper_jobs.manifests.continuation import Continuation
from herdkeeper_jobs.manifests.manifest import (
    Identity,
    Manifest,
    ManifestFile,
    Position,
    Verification,
    commit_manifest,
    manifest_path,
    tablespace_folder,
)
from herdkeeper_jobs.wal.log_state import LogState, StartingPoint, StateTransaction
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import Time

KEY = Column("k", ColumnType.LONG, 0, nullable=False)
BEFORE = TableDefinition("demo", "t", "u1", (KEY, Column("v", ColumnType.STRING, 1)), ("k",), auto_increment=True)
AFTER = TableDefinition("demo", "t", "u1", (KEY, Column("w", ColumnType.INTEGER, 2)), ("k",), auto_increment=True)
OLD_ROW = encode_row(BEFORE, {"k": 1, "v": "a"})


def put(key: int, transaction: int = 0) -> LogEntry:
    return LogEntry(1_000, LogEntryType.INSERT, transaction, "t", *encode_row(AFTER, {"k": key, "w": 10 * key}))


def delete(key: int) -> LogEntry:
    return LogEntry(1_000, LogEntryType.DELETE, 0, "t", encode_row(AFTER, {"k": key})[0])


def mark(kind: LogEntryType, transaction: int = -1) -> LogEntry:
    return LogEntry(1_000, kind, transaction)


def define(kind: LogEntryType, table: TableDefinition) -> LogEntry:
    return LogEntry(1_000, kind, 0, table.name, b"", encode_table(table))


FIRST = [define(LogEntryType.CREATE_TABLE, BEFORE), LogEntry(1_000, LogEntryType.INSERT, 0, "t", *OLD_ROW)]
FIRST += [define(LogEntryType.ALTER_TABLE, AFTER), put(2), put(9), delete(9)]
SECOND = [mark(LogEntryType.NOOP), mark(LogEntryType.BEGIN, 7), put(3, 7), put(4)]
THIRD = [mark(LogEntryType.NOOP), mark(LogEntryType.COMMIT, 7), delete(2), mark(LogEntryType.NOOP)]


@dataclass(frozen=True)
class Job:
    spark: SparkSession
    log: PlayedLog
    destination: Path

    @property
    def catalog(self) -> Any:
        return self.log.metadata

    @property
    def identity(self) -> Identity:
        return IDENTITY.model_copy(update={"instance_id": "cluster-1", "tablespace_uuid": "0ab"})

    def run(self, run_id: str, mode: Mode, at: Lsn | None = None, archive: Path | None = None) -> CheckpointSummary:
        request = CheckpointRequest("/db/herd", "demo", TargetRequest(at), self.destination, run_id, mode, archive)
        return run_checkpoint(lambda: self.spark, self.catalog, request)

    def base_for(self, mode: Mode, up_to: Lsn) -> Lsn | None:
        identity = IDENTITY.model_copy(update={"tablespace_uuid": "0ab"})
        search = Search(tablespace_folder(self.destination, identity), identity, mode, up_to)
        origin = choose_origin(self.spark, WholeLog(open_log(self.catalog, "/db/herd", "demo"), search.folder, identity), search, up_to)
        origin.release()
        return None if origin.start is None else origin.start.at

    def opened(self, summary: CheckpointSummary) -> Manifest:
        return open_manifest(self.destination / summary.manifest).manifest


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"PAR1", b"PAR2", 1))


def test_a_log_whose_first_ledger_was_dropped_is_folded_from_the_newest_checkpoint_that_is_whole(
    spark: SparkSession, tmp_path: Path
) -> None:
    bookies = [PlayedBookie() for _ in range(3)]
    destination = tmp_path / "checkpoints"
    destination.mkdir()
    with served(*bookies) as addresses:
        log = PlayedLog(bookies, addresses, tmp_path)
        log.write(3, FIRST, closed=True)
        log.write(5, SECOND, closed=True)
        job = Job(spark, log, destination)

        first = job.run("run-1", Mode.INCREMENTAL)  # there is no base yet
        assert (first.base_ledger_id, first.entries_read, first.open_transactions) == (None, 10, 1)
        assert "made from the whole log" in first.message
        assert (first.restart_ledger_id, first.restart_entry_id) == (5, 1), "the BEGIN that is open there"

        log.write(7, THIRD, closed=False)
        log.drop(3)
        second = job.run("run-2", Mode.AUTO)
        assert (second.base_ledger_id, second.base_entry_id) == (5, 3)
        assert second.entries_read == 6, "from the BEGIN that was open: 5,1 to 5,3 and 7,0 to 7,2"
        manifest_ = job.opened(second)
        rows = [OLD_ROW, encode_row(AFTER, {"k": 3, "w": 30}), encode_row(AFTER, {"k": 4, "w": 40})]
        assert (manifest_.tables[0].rows, manifest_.tables[0].digest) == (3, digest_of_rows(rows).hex), "as HerdDB has them stored"
        assert manifest_.tables[0].highest_auto_increment == 9
        assert manifest_.base is not None
        assert (manifest_.base.run_id, manifest_.base.manifest) == ("run-1", Path(first.manifest).name)
        assert (manifest_.restart_lsn.lsn, manifest_.open_transactions) == (Lsn(7, 2), ())

        files = {name: job.opened(made).tables[0].files for name, made in (("first", first), ("second", second))}
        folder, end = destination / "cluster-1" / "0ab", Lsn(7, 2)
        damage(folder / files["second"][0].path)
        assert job.base_for(Mode.AUTO, end) == Lsn(5, 3)
        older = next(part for file in files["first"] for part in file.with_older_forms() if part.path.endswith(".older.parquet"))
        assert pq.read_table(folder / older.path)["value"].to_pylist() == [OLD_ROW[1]]
        damage(folder / older.path)
        refused = r"begins with ledger 5, its first one was 3.*-0+2: data/run-2/.*-0+3: data/run-1/.*older\.parquet has other bytes"
        with pytest.raises(CheckpointRefused, match=refused):
            job.base_for(Mode.AUTO, end)
        with pytest.raises(CheckpointRefused, match=r"Full: set Auto"):
            job.base_for(Mode.FULL, end)
        (folder / older.path).unlink()
        (folder / older.path).mkdir()
        with pytest.raises(CheckpointRetryable, match=r"is a base is not known \(0+5-0+3: data/run-1/.*older\.parquet can't be read"):
            job.base_for(Mode.AUTO, end)


def test_a_checkpoint_and_the_archive_of_the_log_behind_it_give_any_moment_after_the_log_was_released(
    spark: SparkSession, tmp_path: Path
) -> None:
    bookies = [PlayedBookie() for _ in range(3)]
    destination, archive = tmp_path / "checkpoints", tmp_path / "archive"
    destination.mkdir()
    with served(*bookies) as addresses:
        log = PlayedLog(bookies, addresses, tmp_path)
        log.write(3, FIRST, closed=True)
        job = Job(spark, log, destination)
        expected = {}
        log.write(5, SECOND, closed=True)
        job.run("run-1", Mode.AUTO)
        log.write(7, THIRD, closed=True)
        for moment in (Lsn(7, 0), Lsn(7, 1)):
            expected[moment] = job.opened(job.run(f"at-{moment.entry_id}", Mode.FULL, moment)).logical_content()
            (manifest_path(destination / "cluster-1" / "0ab", moment)).unlink()
        log.write(9, [mark(LogEntryType.NOOP)] * 3, closed=False)
        log.drop(3)
        place = Place(archive / "cluster-1" / "0ab", job.identity, "archiver")
        copy_log(open_log(job.catalog, "/db/herd", "demo"), place, segment_bytes=1)
        log.drop(5)
        log.drop(7)
        log.write(9, [mark(LogEntryType.NOOP)] * 5, closed=False)
        with pytest.raises(CheckpointRefused, match="ledger 7 is not in the log"):
            job.run("lost", Mode.AUTO, Lsn(7, 1))
        for moment, content in expected.items():
            made = job.run(f"again-{moment.entry_id}", Mode.AUTO, moment, archive)
            assert (made.base_ledger_id, made.base_entry_id) >= (5, 3)
            assert job.opened(made).logical_content() == content
        assert job.run("now", Mode.INCREMENTAL, None, archive).ledger_id == 9
        with pytest.raises(CheckpointRefused, match="archive of the log begins with 5,0, and not with the log's beginning"):
            job.run("whole", Mode.FULL, None, archive)


def made_of(folder: Path, entry_id: int, **changes: object) -> None:
    """Commits a manifest at 3,`entry_id` that would be a base without `changes`."""
    whole = manifest(entry_id=entry_id).model_copy(update={"continuation": Continuation.of(LogState())})
    commit_manifest(whole.model_copy(update=changes), folder)


def reasons(folder: Path, at: Lsn | Time) -> list[str | Lsn]:
    found = candidates(folder, IDENTITY, at)
    return [item.start.at if isinstance(item, CheckpointBase) else str(item) for item in found]


def test_bases_are_tried_from_the_newest_on_and_those_behind_the_target_are_left_out(tmp_path: Path) -> None:
    folder = tablespace_folder(tmp_path, IDENTITY)
    for entry_id in (7, 10, 9):
        made_of(folder, entry_id)
    other = IDENTITY.model_copy(update={"instance_id": "cluster-2"})
    made_of(tablespace_folder(tmp_path, other), 8, identity=other)
    assert reasons(folder, Lsn(3, 9)) == [Lsn(3, 9), Lsn(3, 7)]


def test_a_time_has_only_bases_all_of_whose_entries_were_stamped_by_then(tmp_path: Path) -> None:
    folder = tablespace_folder(tmp_path, IDENTITY)
    for entry_id, latest in ((7, 1_000), (8, 3_000), (9, 3_000), (10, None)):
        made_of(folder, entry_id, lsn_timestamp_millis=2_000, latest_timestamp_millis=latest)
    assert reasons(folder, Time(2_999, "before an entry whose leader's clock was ahead")) == [Lsn(3, 7)]
    assert reasons(folder, Time(3_000, "at it")) == [Lsn(3, 9), Lsn(3, 8), Lsn(3, 7)]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"continuation": None}, "an earlier version made it"),
        ({"identity": IDENTITY.model_copy(update={"instance_id": "cluster-2"})}, "it belongs to cluster-2/ts-1"),
        ({"verified": Verification(how="Nobody", by="")}, "it was verified by 'Nobody', which"),
        ({"restart_lsn": Position(ledger_id=2, entry_id=1)}, "its restartLsn is 2,1, but its oldest open transaction began at 3,7"),
        (
            {"continuation": Continuation.of(LogState(transactions=(StateTransaction(9, Lsn(1, 2)),)))},
            "its restartLsn is 3,7, but its oldest open transaction began at 1,2",
        ),
    ],
)
def test_a_manifest_that_can_not_be_proven_is_no_base_and_says_why(changes: dict[str, object], words: str, tmp_path: Path) -> None:
    folder = tablespace_folder(tmp_path, IDENTITY)
    made_of(folder, 7, **changes)
    (reason,) = reasons(folder, Lsn(4, 0))
    assert str(reason).startswith(f"{3:020d}-{7:020d}: {words}")


def test_a_file_that_is_no_manifest_is_no_base_and_older_ones_are_looked_at(tmp_path: Path) -> None:
    folder = tablespace_folder(tmp_path, IDENTITY)
    made_of(folder, 7)
    made_of(folder, 8)
    (folder / "manifests" / f"{3:020d}-{8:020d}.json").write_text("{")
    assert reasons(folder, Lsn(3, 9))[1:] == [Lsn(3, 7)]
    assert "is not a manifest" in str(reasons(folder, Lsn(3, 9))[0])


def test_the_reasons_against_bases_are_short() -> None:
    assert described([]) == "this tablespace has none up to the target"
    assert described([BaseUnusable(f"b{number}") for number in range(5)]) == "b0; b1; b2; and 2 older ones"


def test_many_small_files_of_a_base_are_read_in_few_tasks(spark: SparkSession, tmp_path: Path) -> None:
    cores = spark.sparkContext.defaultParallelism
    tables = {replace(PARENT, name=f"t{number}", uuid=f"u{number}"): PARENT_ROWS[: number + 2] for number in range(4 * cores)}
    path = write_checkpoint(tmp_path, tables)
    manifest_ = open_manifest(path).manifest
    base = CheckpointBase.of(manifest_, path, StartingPoint(manifest_.lsn.lsn))
    rows = load_rows(spark, base)
    try:
        assert rows.rows.rdd.getNumPartitions() == 3 * cores < len(manifest_.files)
        assert rows.rows.count() == sum(map(len, tables.values()))
    finally:
        rows.release()


@given(st.lists(st.integers(1, 1 << 30), max_size=60), st.integers(1, 8))
def test_each_file_of_a_base_is_in_one_task_and_no_task_has_much_more_than_another(sizes: list[int], cores: int) -> None:
    files = [(number, ManifestFile(path=str(number), rows=1, size=size, hash="")) for number, size in enumerate(sizes)]
    shares = shares_of_tasks(files, cores)
    assert sorted(number for share in shares for number, _ in share) == list(range(len(files)))
    assert all(shares)
    loads = [sum(file.size for _, file in share) for share in shares]
    assert max(loads, default=0) <= max(sizes, default=0) + sum(sizes) // max(1, len(shares))
    assert len(shares) <= max(3 * cores, sum(sizes) // (64 << 20))
