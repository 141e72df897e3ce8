"""A checkpoint at a past moment, from bookies to the manifest: exactly the commits up to it, proven by later ones."""

from __future__ import annotations

import os
import platform
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import object_store_server
import pyarrow as pa
import pyspark
import pytest
from places import all_files, write
from played_bookie import PlayedBookie, served
from played_log import PlayedLog
from played_table import FIRST, SECOND, TABLE, THIRD, mark, put, stored
from pyspark.sql import SparkSession
from secret_keys import MountedSecret

from herdkeeper.api.checkpoint import FULL_EVERY
from herdkeeper.codecs.herddb.log_entry import LogEntryType
from herdkeeper.codecs.herddb.row_digest import RowDigest, digest_of_rows
from herdkeeper.codecs.herddb.table import encode_table
from herdkeeper.protocol.job_summary import CheckpointSummary, JobOutcome
from herdkeeper.protocol.log_archive import ExpiryOrder
from herdkeeper.shared.names import ARCHIVE_VARIABLES
from herdkeeper.shared.timetable import duration_of
from herdkeeper_jobs import spark_session
from herdkeeper_jobs.archive.copying import copy_log
from herdkeeper_jobs.archive.expiry import delete_segments, due
from herdkeeper_jobs.archive.parts import ReadBudget
from herdkeeper_jobs.archive.segment import Place
from herdkeeper_jobs.bookkeeper.reader import ReadSettings
from herdkeeper_jobs.checkpoint import attempts, cli, data_files, file_check, folded_log, history_files, run, target, verification
from herdkeeper_jobs.checkpoint.attempts import KEPT_MILLIS, Attempt
from herdkeeper_jobs.checkpoint.data_files import WrittenTable, write_tables
from herdkeeper_jobs.checkpoint.node_http import FollowerDigest, LeaderCounts
from herdkeeper_jobs.checkpoint.origin import Origin
from herdkeeper_jobs.checkpoint.reading import open_manifest
from herdkeeper_jobs.checkpoint.removal import remove_checkpoint
from herdkeeper_jobs.checkpoint.run import CheckpointRequest, run_checkpoint
from herdkeeper_jobs.checkpoint.target import Target, TargetRequest
from herdkeeper_jobs.encryption.keys import Key
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder
from herdkeeper_jobs.errors import CheckpointRefused, CheckpointRetryable, FollowerDiffers, InvariantViolated, KeyUnusable
from herdkeeper_jobs.log_source import open_log
from herdkeeper_jobs.manifests.manifest import Identity, manifests
from herdkeeper_jobs.spark_tasks import RowsInTasks
from herdkeeper_jobs.storage import stored_path as stored_path_module
from herdkeeper_jobs.storage.object_path import ObjectPath, ObjectWriter
from herdkeeper_jobs.storage.stored_path import StoredPath, stored_path
from herdkeeper_jobs.wal.blocks import Blocks
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import parse_moment
from herdkeeper_jobs.wal.task_log import TaskLog


@dataclass(frozen=True)
class Job:
    spark: SparkSession
    log: PlayedLog
    folder: StoredPath
    key: Key | None = None
    archived: StoredPath | None = None
    """Where the log is archived; None: in the checkpoints' folder."""
    run_id: str = "run-1"

    def run(self, moment: str, verify_against: str = "") -> CheckpointSummary:
        request = TargetRequest(parse_moment(moment), verify_against=verify_against)
        catalog: Any = self.log.metadata
        asked = CheckpointRequest("/db/herd", "demo", request, self.folder, self.run_id, archive=self.archived, key=self.key)
        return run_checkpoint(lambda: self.spark, catalog, asked)

    def archive(self, batch_entries: int = 10_000) -> Place:
        return self.archive_of(open_manifest(manifests(self.folder)[0]).manifest.identity, batch_entries)

    def archive_of(self, identity: Identity, batch_entries: int = 10_000) -> Place:
        catalog: Any = self.log.metadata
        place = Place(self.folder / identity.instance_id / identity.tablespace_uuid, identity, "archive-1", key=self.key)
        copy_log(open_log(catalog, "/db/herd", "demo"), place, ReadSettings(batch_entries=batch_entries), segment_bytes=1)
        return place

    def rows(self, summary: CheckpointSummary) -> dict[int, str]:
        return self.rows_of(summary.manifest)

    def rows_of(self, manifest: str) -> dict[int, str]:
        loaded = open_manifest(self.folder / manifest).load("t").to_pydict()
        return dict(zip(loaded["k"], loaded["v"], strict=True))


class Killed(BaseException):
    """Stands for a kill of the process."""


@pytest.fixture
def anywhere(job: Job, place: StoredPath) -> Job:
    """The job with its destination in each kind of place."""
    return replace(job, folder=place)


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path) -> Iterator[Job]:
    bookies = [PlayedBookie() for _ in range(3)]
    with served(*bookies) as addresses:
        log = PlayedLog(bookies, addresses, tmp_path)
        log.write(3, FIRST, closed=True)
        log.write(5, [*SECOND, *THIRD], closed=False)  # the last entry is not confirmed yet
        folder = tmp_path / "archived-beside-its-checkpoints"
        folder.mkdir()
        yield Job(spark, log, folder)


def follower_has(monkeypatch: pytest.MonkeyPatch, rows: dict[int, str]) -> None:
    """A follower that can be held at any LSN, with these rows of `t`."""
    digest = digest_of_rows([stored(key, value) for key, value in rows.items()])
    held: dict[str, RowDigest] = {"t": digest}
    monkeypatch.setattr(target, "follower_digest", lambda address, tablespace, lsn, token, timeout: FollowerDigest(lsn, held, address))


def test_a_past_lsn_holds_what_was_committed_there_and_the_same_log_is_compared_with_a_follower_of_today(
    anywhere: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = anywhere
    follower_has(monkeypatch, {9: "after the mistake"})
    summary = job.run("3,4", verify_against="n1:9845")
    assert job.rows(summary) == {1: "a", 3: "c"}
    assert (Lsn(summary.ledger_id or 0, summary.entry_id or 0), summary.open_transactions) == (Lsn(3, 4), 1)
    assert summary.verified == "the same log, folded on to 5,4, compared there with follower n1:9845"
    assert summary.lsn_timestamp == "1970-01-01T00:00:09.000Z"
    manifest = open_manifest(job.folder / summary.manifest).manifest
    assert (manifest.restart_lsn.lsn, manifest.entries_read) == (Lsn(3, 2), 5)
    assert set(manifest.versions) == {"python", "herdkeeper", "pyspark", "pyarrow"}
    assert manifest.versions["python"] == platform.python_version()
    assert (manifest.versions["pyspark"], manifest.versions["pyarrow"]) == (pyspark.__version__, pa.__version__)


class TasksHere:
    """Rows whose tasks, one per row, run in this process, where a test can kill them."""

    def __init__(self, rows: RowsInTasks) -> None:
        self._rows = rows.mapInArrow(_unchanged, "table_index int, row_key binary, row_value binary").toArrow()
        self._results: list[dict[str, Any]] = []

    def mapInArrow(self, func: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: str) -> Any:  # noqa: N802
        tasks = (func(iter([row])) for row in self._rows.to_batches(max_chunksize=1))
        self._results = [result for task in tasks for results in task for result in results.to_pylist()]
        return self

    def collect(self) -> list[dict[str, Any]]:
        return self._results


def _unchanged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


FOLDS: dict[str, tuple[folded_log.Folded, TasksHere]] = {}
"""Spark's result for the log up to an LSN, and its folded rows: shared by all tests."""


def fold_once(job: Job, moment: str) -> None:
    """Makes a checkpoint of a moment at an unused place."""
    if moment in FOLDS:
        return
    own_fold, seen = folded_log._fold, list[TasksHere]()

    def write_here(rows: RowsInTasks, *arguments: Any) -> list[WrittenTable]:
        seen.append(TasksHere(rows))
        return write_tables(seen[0], *arguments)

    def fold(*arguments: Any) -> folded_log.Folded:
        FOLDS[moment] = own_fold(*arguments), seen[0]
        return FOLDS[moment][0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "randbits", lambda _: 0x78DDE6E5FD29F054)  # with it, not all keys come to one task
        patch.setattr(folded_log, "write_tables", write_here)
        patch.setattr(folded_log, "_fold", fold)
        job.run(moment)


@pytest.fixture
def here(anywhere: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """The job with files written and read back in this process, one task after the other."""
    (tmp_path / "elsewhere").mkdir()
    for moment in ("3,1", "5,2"):
        fold_once(replace(anywhere, folder=tmp_path / "elsewhere"), moment)

    def fold(read: object, origin: object, target: Target, folder: ParquetFolder, attempt: Attempt) -> folded_log.Folded:
        folded, rows = FOLDS[str(target.at)]
        return replace(folded, written=write_tables(rows, folded.timeline.tables, folder, attempt))

    def faults_here(spark: SparkSession, items: int, fault_of: Callable[[int], str]) -> list[str]:
        return [fault for fault in map(fault_of, range(items)) if fault]

    monkeypatch.setattr(folded_log, "_fold", fold)
    for module in (data_files, file_check):
        monkeypatch.setattr(module, "faults_in_tasks", faults_here)
    return anywhere


CHANGES: list[tuple[Any, tuple[str, ...]]] = [
    (os, ("link", "fsync")),
    (Path, ("open", "replace", "unlink")),
    (ObjectPath, ("create", "write", "unlink")),
    (stored_path_module._SyncedFile, ("write", "close")),
    (ObjectWriter, ("write", "close")),
]
"""All calls by which a run changes the place."""


def kill_at(patch: pytest.MonkeyPatch, where: Any, name: str, count: int) -> None:
    """Ends the process before the call with this number; after it, if negative. The process's later clean-up does not reach the place."""
    calls = 0
    is_dead = False

    def ending(*arguments: Any, **options: Any) -> Any:
        nonlocal calls, is_dead
        calls += 1
        if calls == abs(count) and count < 0:
            own(*arguments, **options)
        is_dead = is_dead or calls == abs(count)
        if is_dead:
            raise Killed
        return own(*arguments, **options)

    def guarded(kind: Any, change: str) -> None:
        real = getattr(kind, change)

        def guard(*arguments: Any, **options: Any) -> Any:
            if is_dead:
                raise Killed
            return real(*arguments, **options)

        patch.setattr(kind, change, guard)

    for kind, changes in CHANGES:
        for change in changes:
            guarded(kind, change)
    own = getattr(where, name)
    patch.setattr(where, name, ending)


ANYWHERE = {
    "before the first file": (data_files, "new_file", 1),
    "between two files": (data_files, "new_file", 2),
    "in the middle of a file": (data_files._HashingStream, "write", 5),
    "before a file is durable": (data_files._HashingStream, "close", 1),
    "before folders are durable": (run, "sync_folders", 1),
    "while files are read again": (file_check, "file_hash", 2),
    "before the manifest": (run, "commit_manifest", 1),
    "after the manifest": (run, "commit_manifest", -1),
    "before the report": (run, "publish_history", 1),
}
IN_A_FOLDER = {
    "between two folders that are made durable": (data_files, "sync_folder", 2),
    "between the manifest's temporary file and its link": (stored_path_module, "link_once", 1),
    "between the manifest's link and its folder": (stored_path_module, "sync_folder", 1),
}
IN_A_STORE = {
    "before the manifest's PUT": (ObjectPath, "create", 1),
    "before the answer to the manifest's PUT": (ObjectPath, "create", -1),
}
STEPS = ANYWHERE | IN_A_FOLDER | IN_A_STORE
KILLED = [
    *(("folder", step) for step in ANYWHERE | IN_A_FOLDER),
    *(("object store", step) for step in ANYWHERE | IN_A_STORE),
]
COMMITTED = {
    "after the manifest",
    "before the report",
    "between the manifest's link and its folder",
    "before the answer to the manifest's PUT",
}


@pytest.mark.parametrize(("place", "step"), KILLED, indirect=["place"])
def test_a_run_that_is_killed_leaves_the_old_checkpoint_or_the_new_one_and_its_retry_completes(
    here: Job, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = here.run("3,1")
    expected = {old.manifest: {1: "a"}}
    with monkeypatch.context() as patch:
        kill_at(patch, *STEPS[step])
        with pytest.raises(Killed):
            here.run("5,2")
    there = {"/".join(path.parts[-4:]) for path in manifests(here.folder)}
    new = there - {old.manifest}
    assert (old.manifest in there, len(new)) == (True, 1 if step in COMMITTED else 0)
    expected |= {manifest: {1: "b", 2: "late", 3: "c"} for manifest in new}
    assert {manifest: here.rows_of(manifest) for manifest in there} == expected
    again = here.run("5,2")
    assert again.outcome == ("AlreadyDone" if new else "Succeeded")
    assert here.rows(again) == {1: "b", 2: "late", 3: "c"}
    assert {"/".join(path.parts[-4:]) for path in manifests(here.folder)} == {old.manifest, again.manifest}


def test_two_runs_at_one_moment_have_one_manifest_and_the_second_one_leaves_no_files(anywhere: Job) -> None:
    first = anywhere.run("5,4")
    before = all_files(anywhere.folder)
    catalog: Any = anywhere.log.metadata
    target_ = TargetRequest(parse_moment("5,4"))
    second = run_checkpoint(lambda: anywhere.spark, catalog, CheckpointRequest("/db/herd", "demo", target_, anywhere.folder, "run-2"))
    assert (second.outcome, second.manifest) == ("AlreadyDone", first.manifest)
    assert all_files(anywhere.folder) == before


def test_a_retry_that_finds_another_runs_checkpoint_keeps_what_its_own_earlier_attempt_committed(here: Job) -> None:
    committed = here.run("3,1")  # then its pod is lost
    replace(here, run_id="run-2").run("5,2")
    before = all_files(here.folder)
    assert here.run("5,2").outcome is JobOutcome.ALREADY_DONE
    assert all_files(here.folder) == before
    assert here.rows(committed) == {1: "a"}


def test_a_retry_of_a_run_that_was_killed_behind_its_commit_makes_no_second_checkpoint(anywhere: Job) -> None:
    """The first one would stay for good: its Checkpoint would name the second."""
    committed = anywhere.run("now")  # then its pod is lost
    before = all_files(anywhere.folder)
    anywhere.log.write(5, [*SECOND, *THIRD, mark(9_950, LogEntryType.NOOP)], closed=False)
    again = anywhere.run("now")
    assert (again.outcome, again.manifest) == (JobOutcome.ALREADY_DONE, committed.manifest)
    assert all_files(anywhere.folder) == before
    assert replace(anywhere, run_id="run-2").run("now").manifest > committed.manifest


def before_its_commit(patch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Something happens once while a driver has verified its files and has not committed them."""
    verified, happened = verification._verification, False

    def at_last(*arguments: Any) -> Any:
        nonlocal happened
        if not happened:
            happened = True
            happens()
        return verified(*arguments)

    patch.setattr(verification, "_verification", at_last)


def test_a_retry_removes_nothing_that_its_driver_on_a_lost_node_may_still_commit(anywhere: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    replace(anywhere, run_id="run-2").run("5,2")
    before_its_commit(monkeypatch, lambda: anywhere.run("5,2"))
    committed = anywhere.run("3,1")
    assert anywhere.rows(committed) == {1: "a"}


def test_a_run_removes_what_an_attempt_left_long_ago(anywhere: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    first = anywhere.run("3,1")
    folder = (anywhere.folder / first.manifest).parent.parent
    killed = Attempt.begin(folder, "gone")
    write(folder / f"data/gone/t/p-00000-0-{killed.token}01234567.parquet", b"rows")
    anywhere.run("5,2")
    assert len(killed.files) == 1, "its driver may be alive"
    monkeypatch.setattr(attempts, "KEPT_MILLIS", -KEPT_MILLIS)
    anywhere.run("5,4")
    assert killed.files == []
    assert anywhere.rows(first) == {1: "a"}
    assert not any("/attempts/" in name for name in all_files(anywhere.folder))


def test_a_driver_that_outlived_its_checkpoint_commits_nothing_whose_files_are_gone(anywhere: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    before_its_commit(monkeypatch, lambda: remove_checkpoint(anywhere.folder, "run-1", None))
    with pytest.raises(CheckpointRetryable, match="removed before it was committed"):
        anywhere.run("3,1")
    assert manifests(anywhere.folder) == []


@pytest.mark.parametrize(
    ("damage", "run_id", "words"),
    [
        ("missing", "run-1", "is missing"),
        ("cut off", "run-2", r"has other bytes .*: \d+ of them instead of \d+"),
        ("another bit", "run-2", "has other bytes"),
    ],
)
def test_an_existing_checkpoint_with_a_damaged_file_does_not_count_as_verified(anywhere: Job, damage: str, run_id: str, words: str) -> None:
    first = anywhere.run("5,4")
    path = first_file(anywhere, first)
    content = path.read_bytes()
    match damage:
        case "missing":
            path.unlink()
        case "cut off":
            write(path, content[:-1])
        case _:
            write(path, bytes([content[0] ^ 1]) + content[1:])
    before = all_files(anywhere.folder)
    with pytest.raises(InvariantViolated, match=rf"{path} {words}.*at 5,4, which existed .* move the manifest .*{first.manifest} away"):
        replace(anywhere, run_id=run_id).run("5,4")
    assert all_files(anywhere.folder) >= before


def test_a_damaged_checkpoint_is_repaired_by_a_copy_of_its_file_or_made_anew_without_its_manifest(job: Job) -> None:
    first = job.run("5,4")
    path = first_file(job, first)
    content = path.read_bytes()
    write(path, content[:-1])
    with pytest.raises(InvariantViolated, match="is damaged"):
        job.run("5,4")
    write(path, content)
    assert job.run("5,4").outcome is JobOutcome.ALREADY_DONE
    write(path, content[:-1])
    (job.folder / first.manifest).unlink()
    again = job.run("5,4")
    assert (again.outcome, job.rows(again)) == (JobOutcome.SUCCEEDED, {9: "after the mistake"})


def first_file(job: Job, summary: CheckpointSummary) -> StoredPath:
    """A file of a checkpoint."""
    manifest = job.folder / summary.manifest
    return manifest.parent.parent / open_manifest(manifest).manifest.files[0].path


def test_a_run_reads_bookies_within_the_budget_that_was_asked_for(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    read, rates = folded_log._read, set[float]()

    def observed(spark: SparkSession, origin: Origin, blocks: Blocks) -> TaskLog:
        rates.update(part.settings.bytes_per_second_per_bookie for part in origin.live)
        return read(spark, origin, blocks)

    monkeypatch.setattr(folded_log, "_read", observed)
    catalog: Any = job.log.metadata
    target_ = TargetRequest(parse_moment("5,4"))
    budget = ReadBudget(2, 100_000_000)
    run_checkpoint(lambda: job.spark, catalog, CheckpointRequest("/db/herd", "demo", target_, job.folder, "run-1", budget=budget))
    assert rates == {50_000_000}


def test_a_checkpoint_is_made_from_another_one_in_the_same_place(anywhere: Job) -> None:
    base = anywhere.run("5,2")
    assert anywhere.rows(base) == {1: "b", 2: "late", 3: "c"}
    anywhere.log.drop(3)
    later = anywhere.run("5,4")
    assert (later.base_ledger_id, later.base_entry_id) == (base.ledger_id, base.entry_id)
    assert anywhere.rows(later) == {9: "after the mistake"}


def test_a_checkpoint_is_made_from_the_newest_one_though_the_whole_log_is_there(job: Job) -> None:
    whole = job.run("3,1")
    base = job.run("5,2")
    later = job.run("5,4")
    assert (whole.base_ledger_id, base.base_entry_id, later.base_entry_id) == (None, 1, 2)
    assert job.rows(later) == {9: "after the mistake"}
    made = [open_manifest(job.folder / summary.manifest).manifest for summary in (whole, base, later)]
    assert made[0].made is not None
    assert {manifest.whole_log_at for manifest in made} == {made[0].made.at_millis}, "when the chain began"


def test_a_cluster_that_was_put_back_to_older_volumes_does_not_continue_from_a_checkpoint_of_its_lost_time(job: Job) -> None:
    job.run("3,1")
    lost = job.run("5,2")
    idle = [mark(20_200, LogEntryType.NOOP)] * 5
    job.log.write(5, [mark(20_000, LogEntryType.NOOP), put(20_100, 4, "written anew"), *idle], closed=False)
    later = job.run("5,3")
    assert job.rows(later) == {1: "a", 3: "c", 4: "written anew"}
    assert (later.base_ledger_id, later.base_entry_id) == (3, 1)
    assert f"not from {Path(lost.manifest).stem}: the log has another entry at its LSN: the cluster was put back" in later.message


def test_the_default_age_of_a_chain_is_that_of_a_checkpoints_spec() -> None:
    assert duration_of(FULL_EVERY).total_seconds() == run.FULL_EVERY_SECONDS


def with_a_wrong_base(job: Job) -> CheckpointSummary:
    """A checkpoint with consistent files and digests that lacks a row of the log."""
    for bookie in job.log.bookies:
        bookie.entries.clear()
    job.log.write(5, [*SECOND, mark(9_900, LogEntryType.NOOP)], closed=False)
    job.log.write(3, [*FIRST[:-1], mark(9_000, LogEntryType.NOOP)], closed=True)
    base = job.run("3,4")
    assert job.rows(base) == {1: "a"}
    job.log.write(3, FIRST, closed=True)
    return base


RIGHT = {1: "b", 2: "late", 3: "c"}


def leader_has(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """A leader that has written nothing since 5,2, and has so many rows of `t`."""
    monkeypatch.setattr(target, "log_position", lambda *_: Lsn(5, 2))
    monkeypatch.setattr(target, "leader_counts", lambda *_: LeaderCounts("n0:9845", Lsn(5, 2), {"t": rows}))


@pytest.mark.parametrize("who", ["a follower", "the leader"])
def test_contradicted_rows_are_made_again_from_the_whole_log_before_anybody_is_blamed(
    job: Job, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = with_a_wrong_base(job)
    follower_has(monkeypatch, RIGHT)
    leader_has(monkeypatch, len(RIGHT))
    compared = TargetRequest(verify_against="n1:9845") if who == "a follower" else TargetRequest(leader_http="n0:9845")
    catalog: Any = job.log.metadata
    asked = CheckpointRequest("/db/herd", "demo", compared, job.folder, "run-2")
    summary = run_checkpoint(lambda: job.spark, catalog, asked)
    assert job.rows(summary) == RIGHT
    assert summary.base_ledger_id is None
    assert summary.message.startswith(f"the checkpoint {Path(base.manifest).stem} has wrong rows")
    named = [file.path for file in open_manifest(job.folder / summary.manifest).manifest.files]
    assert {name for name in all_files(job.folder) if "/data/run-2/" in name} == {f"cluster-1/0ab/{path}" for path in named}


def test_a_follower_that_the_whole_log_contradicts_too_is_named(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    job.run("3,1")
    follower_has(monkeypatch, {9: "after the mistake", 10: "not in the log"})
    with pytest.raises(FollowerDiffers, match="the follower n1:9845 has 2 rows"):
        job.run("5,4", verify_against="n1:9845")
    assert len(manifests(job.folder)) == 1


def test_a_follower_that_contradicts_a_base_of_a_log_that_is_not_whole_is_named(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    with_a_wrong_base(job)
    job.log.write(7, [mark(9_900, LogEntryType.NOOP)] * 2, closed=False)
    job.log.write(5, SECOND, closed=True)
    later = job.run("5,2")
    job.log.drop(3)
    follower_has(monkeypatch, RIGHT)
    with pytest.raises(FollowerDiffers, match="the follower n1:9845 has 3 rows"):
        job.run("now", verify_against="n1:9845")
    assert [path.name for path in manifests(job.folder)][-1] == Path(later.manifest).name


def test_a_damaged_checkpoint_is_reported_when_another_one_is_made(job: Job) -> None:
    job.run("3,1")
    damaged = job.run("5,2")
    path = first_file(job, damaged)
    write(path, path.read_bytes()[:-1])
    later = job.run("5,4")
    assert later.base_entry_id == 1
    assert f"not from {Path(damaged.manifest).stem}: data/run-1/" in later.message
    assert "has other bytes than were written" in later.message


def test_a_run_leaves_the_report_of_all_checkpoints_beside_them_and_does_not_fail_for_it(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    first = job.run("3,4")
    assert first.report == "cluster-1/0ab/report.html"
    report = job.folder / first.report
    made = open_manifest(job.folder / first.manifest).manifest.made
    assert made is not None
    assert 0 < made.seconds <= first.duration_seconds
    assert "<td>3,4</td><td>1970-01-01 00:00:09.000</td><td></td><td>the whole log</td><td>5</td>" in report.read_text()

    def full(path: StoredPath, content: bytes) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(history_files, "replace_file", full)
    second = job.run("5,4")
    assert (second.outcome, second.report) == (JobOutcome.SUCCEEDED, "")
    assert second.message.endswith("; the report was not written: OSError: no space left")
    assert "5,4" not in report.read_text()
    monkeypatch.undo()
    again = job.run("5,4")
    assert (again.outcome, again.report) == (JobOutcome.ALREADY_DONE, first.report)
    assert "2 checkpoints, each with a manifest and all of its files" in report.read_text()


def test_a_log_that_a_follower_contradicts_makes_no_checkpoint_of_its_past(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    follower_has(monkeypatch, {9: "after the mistake", 10: "not in the log"})
    with pytest.raises(InvariantViolated, match="table 't' at 5,4: the fold of the log has 1 rows"):
        job.run("3,4", verify_against="n1:9845")
    assert manifests(job.folder) == []


class Unstopped:
    """The tests' shared Spark, which no program of a job may stop."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def stop(self) -> None:
        """Does nothing: other tests use it."""


def test_a_follower_that_differs_ends_the_run_with_42_and_a_summary_that_names_node_and_tables(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower_has(monkeypatch, {9: "after the mistake", 10: "not in the log"})
    monkeypatch.setattr(cli, "open_catalog", lambda *_: nullcontext(job.log.metadata))
    monkeypatch.setattr(spark_session, "start_spark", lambda *_: Unstopped(job.spark))
    message = tmp_path / "message"
    monkeypatch.setenv("HERDKEEPER_TERMINATION_MESSAGE", str(message))
    cluster = ["--zookeeper", "z:2181", "--ledgers-root", "/l", "--herd-root", "/db/herd", "--tablespace", "demo"]
    compared = ["--to", "3,4", "--verify-against", "n1:9845"]
    assert cli.main([*cluster, *compared, "--destination", str(job.folder), "--run-id", "r"]) == 42
    summary = CheckpointSummary.from_json(message.read_text())
    assert (summary.outcome, summary.manifest) == (JobOutcome.INVARIANT_VIOLATED, "")
    assert summary.comparison is not None
    assert (summary.comparison.follower, summary.comparison.ledger_id, summary.comparison.entry_id) == ("n1:9845", 5, 4)
    assert (summary.comparison.different_tables, summary.comparison.different_tables_total) == (("t",), 1)
    assert manifests(job.folder) == []


@pytest.mark.parametrize(("rows", "verified"), [(1, "rows of each table counted at the leader n0:9845"), (11, None)])
def test_a_checkpoint_that_has_other_rows_than_the_leader_is_not_committed(
    rows: int, verified: str | None, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = Lsn(5, 4)
    monkeypatch.setattr(target, "log_position", lambda *_: end)
    monkeypatch.setattr(target, "leader_counts", lambda *_: LeaderCounts("n0:9845", end, {"t": rows}))
    asked = CheckpointRequest("/db/herd", "demo", TargetRequest(leader_http="n0:9845"), job.folder, "run-1")
    catalog: Any = job.log.metadata
    if verified is not None:
        assert run_checkpoint(lambda: job.spark, catalog, asked).verified.endswith(verified)
        return
    with pytest.raises(InvariantViolated, match=rf"'t' \(1 rows, {rows} at the leader\)"):
        run_checkpoint(lambda: job.spark, catalog, asked)
    assert manifests(job.folder) == []


def test_a_time_is_the_state_before_the_first_entry_that_is_stamped_later(job: Job) -> None:
    """The moment is before the mistake at 8.6 s. The clock was five seconds ahead until the leader changed."""
    summary = job.run("1970-01-01T00:00:08.599Z")
    assert (summary.ledger_id, summary.entry_id, job.rows(summary)) == (3, 3, {1: "a"})
    assert "3 entries behind it are stamped at or before the time, and left out" in summary.message
    assert summary.verified == "files re-read"


@pytest.mark.parametrize(
    ("moment", "error", "words"),
    [
        (
            "1970-01-01T00:00:00.999Z",
            CheckpointRefused,
            r"spec.target.timestamp .--to. is 1970.*: the log begins after it, with 3,0 at 1970",
        ),
        ("1970-01-01T00:00:09.500Z", CheckpointRetryable, r"no later entry is confirmed yet; the log is known up to 5,4"),
    ],
)
def test_a_time_outside_of_the_log_names_the_field_and_what_the_log_has(job: Job, moment: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        job.run(moment)
    assert manifests(job.folder) == []


def content(summary: CheckpointSummary) -> list[tuple[str, int, str]]:
    """Of each table name, rows and digest. The size of its files depends on the tasks to which its keys come, which differ in each job."""
    return [(table.name, table.rows, table.digest) for table in summary.tables]


def test_a_moment_whose_log_was_dropped_is_made_from_its_archive_and_the_rest_of_the_log(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    before = job.run("3,4")
    before_time = job.run("1970-01-01T00:00:08.599Z")
    job.archive()
    job.log.drop(3)
    folder = job.folder.with_name("again")
    shutil.copytree(job.folder / "cluster-1" / "0ab" / "log", folder / "cluster-1" / "0ab" / "log")
    again = replace(job, folder=folder)
    follower_has(monkeypatch, {9: "after the mistake"})
    assert content(again.run("3,4")) == content(before)
    assert content(again.run("1970-01-01T00:00:08.599Z", verify_against="n1:9845")) == content(before_time)


@pytest.mark.parametrize("destination", ["a folder", "another store"])
def test_a_checkpoint_reads_the_archive_in_a_store_of_its_own_with_the_keys_of_that_store(
    job: Job, destination: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive's store has another key than the destination's; Spark's workers get both by their variables' names."""
    before = job.run("3,4")
    archived = stored_path(f"{object_store_server.new_bucket()}/archives", ARCHIVE_VARIABLES)
    replace(job, folder=archived).archive_of(open_manifest(manifests(job.folder)[0]).manifest.identity)
    job.log.drop(3)
    folder = job.folder.with_name("again") if destination == "a folder" else object_store_server.new_bucket() / "checkpoints"
    again = replace(job, folder=folder, archived=archived)
    follower_has(monkeypatch, {9: "after the mistake"})
    summary = again.run("3,4", verify_against="n1:9845")
    assert content(summary) == content(before)
    assert "with the archive" not in summary.message
    report = (folder / summary.report).read_bytes().decode()
    assert "any moment, with the archive" in report
    assert all_files(archived) == {name for name in all_files(archived) if "/log/" in name}, "nothing but the archive is there"


def test_every_moment_of_the_window_is_as_it_was_after_the_rest_has_expired_and_one_before_it_is_refused(job: Job) -> None:
    base = job.run("3,1")
    assert base.latest_timestamp == "1970-01-01T00:00:02.000Z"
    targets = ("3,4", "5,4", "1970-01-01T00:00:02Z", "1970-01-01T00:00:08.599Z")
    with_all = {moment: job.run(moment) for moment in targets}
    place = job.archive(batch_entries=1)
    left = job.folder.with_name("left")
    for found in ("log", "manifests", "data"):
        shutil.copytree(place.folder / found, left / "cluster-1" / "0ab" / found)
    for manifest in manifests(left):
        if manifest.name != Path(base.manifest).name:
            manifest.unlink()
    there = Place(left / "cluster-1" / "0ab", place.identity, place.run_id)
    expiring = due(there, ExpiryOrder("archives", (3, 1), base.manifest))
    assert expiring is not None
    assert [segment.first.lsn for segment in expiring.going] == [Lsn(3, 0)]
    delete_segments(there.folder, expiring.going)
    job.log.drop(3)
    later = replace(job, folder=left)
    for moment, expected in with_all.items():
        again = later.run(moment)
        assert (content(again), again.ledger_id, again.entry_id) == (content(expected), expected.ledger_id, expected.entry_id)
        if again.manifest != base.manifest:
            (left / again.manifest).unlink()  # so that each is made from the base alone
    window = (
        "With the archive, the LSNs from 3,1 to 5,4, and times from 1970-01-01T00:00:02.000Z to before .*, can be had: take one of these"
    )
    for before in ("1970-01-01T00:00:01.500Z", "3,0"):
        with pytest.raises(CheckpointRefused, match=window):
            later.run(before)


def test_a_moment_whose_log_was_dropped_is_refused(job: Job) -> None:
    job.log.drop(3)
    with pytest.raises(CheckpointRefused, match="older ones were dropped"):
        job.run("1970-01-01T00:00:05Z")


def plain_texts(place: StoredPath) -> list[str]:
    """The files with readable text that only the table's rows and definition have."""
    wanted = (b"after the mistake", b"serialPosition", b'"digest"', b"primaryKey", encode_table(TABLE).hex().encode())
    return [name for name in sorted(all_files(place)) if any(word in (place / name).read_bytes() for word in wanted)]


def test_an_encrypted_checkpoint_holds_the_same_rows_and_nothing_of_them_can_be_read_where_it_lies(
    anywhere: Job, keys: MountedSecret, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower_has(monkeypatch, {9: "after the mistake"})
    plain = anywhere.run("5,4", verify_against="n1:9845")
    assert plain_texts(anywhere.folder) != []
    job = replace(anywhere, folder=anywhere.folder / "encrypted", key=keys.add("2026-11"))
    if isinstance(job.folder, Path):
        job.folder.mkdir()
    encrypted = job.run("5,4", verify_against="n1:9845")
    assert (encrypted.encrypted_with, plain.encrypted_with) == ("2026-11", "")
    assert (encrypted.key_fingerprint, plain.key_fingerprint) == (job.key and job.key.fingerprint, "")
    assert "written, encrypted with the key '2026-11', made from the whole log" in encrypted.message
    assert [(table.name, table.rows, table.digest) for table in encrypted.tables] == [
        (table.name, table.rows, table.digest) for table in plain.tables
    ]
    assert job.rows(encrypted) == {9: "after the mistake"}
    assert plain_texts(job.folder) == []
    assert b"<td>5,4</td>" in (job.folder / encrypted.report).read_bytes()  # only counts and names
    again = job.run("5,4")
    assert (again.outcome, again.encrypted_with) == ("AlreadyDone", "2026-11")
    keys.remove("2026-11")
    with pytest.raises(KeyUnusable, match=rf"{encrypted.manifest} is encrypted with the key '2026-11' .*the Secret backup-keys has no key"):
        job.rows(encrypted)


def test_a_base_of_an_older_key_is_gone_on_from_while_that_key_is_in_the_secret(anywhere: Job, keys: MountedSecret) -> None:
    old = replace(anywhere, key=keys.add("2026-11"))
    base = old.run("5,2")
    new = replace(anywhere, key=keys.add("2027-05"))
    anywhere.log.drop(3)
    keys.remove("2026-11")
    with pytest.raises(CheckpointRefused, match=r"no checkpoint at the destination is a base .*'2026-11'.*put that key back"):
        new.run("5,4")
    assert old.key is not None
    keys.put(old.key)
    later = new.run("5,4")
    assert (later.base_ledger_id, later.base_entry_id, later.encrypted_with) == (base.ledger_id, base.entry_id, "2027-05")
    keys.remove("2026-11")
    assert new.rows(later) == {9: "after the mistake"}


def test_a_checkpoint_in_the_clear_is_the_base_of_an_encrypted_one_and_the_reverse(anywhere: Job, keys: MountedSecret) -> None:
    sealed = replace(anywhere, key=keys.add("a"))
    anywhere.run("5,1")
    anywhere.log.drop(3)
    between = sealed.run("5,2")
    assert (between.base_entry_id, between.encrypted_with) == (1, "a")
    last = anywhere.run("5,4")
    assert (last.base_entry_id, last.encrypted_with) == (2, "")
    assert (sealed.rows(between), anywhere.rows(last)) == ({1: "b", 2: "late", 3: "c"}, {9: "after the mistake"})


def test_a_moment_is_made_from_an_encrypted_archive_and_not_without_its_key(job: Job, keys: MountedSecret) -> None:
    sealed = replace(job, key=keys.add("2026-11"))
    before = sealed.run("3,4")
    sealed.archive()
    job.log.drop(3)
    again = replace(sealed, folder=job.folder.with_name("again"))
    shutil.copytree(job.folder / "cluster-1" / "0ab" / "log", again.folder / "cluster-1" / "0ab" / "log")
    assert plain_texts(again.folder) == []
    keys.remove("2026-11")
    with pytest.raises(KeyUnusable, match=r"log/segments/.* is encrypted with the key '2026-11'.*put that key back"):
        replace(again, key=keys.add("2027-05")).run("3,4")
    assert manifests(again.folder) == []
    assert sealed.key is not None
    keys.put(sealed.key)
    assert [(table.rows, table.digest) for table in again.run("3,4").tables] == [(table.rows, table.digest) for table in before.tables]
