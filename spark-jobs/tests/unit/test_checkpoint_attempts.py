"""What killed attempts of a Checkpoint's run left goes some time, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from places import all_files, write
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from restore_situations import IDENTITY, PARENT, PARENT_ROWS, write_checkpoint

from herdkeeper_jobs.checkpoint import attempts, removal
from herdkeeper_jobs.checkpoint.attempts import KEPT_MILLIS, Attempt, expire_attempts, noted
from herdkeeper_jobs.checkpoint.data_files import write_tables
from herdkeeper_jobs.checkpoint.reading import open_manifest
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder
from herdkeeper_jobs.manifests.manifest import CommittedManifest, tablespace_folder
from herdkeeper_jobs.storage.stored_path import StoredPath, modified_millis, remove_file


def committed_at(place: StoredPath) -> CommittedManifest:
    path = write_checkpoint(place, {PARENT: PARENT_ROWS})
    return CommittedManifest(open_manifest(path).manifest, path, existed=False)


def killed(folder: StoredPath, run_id: str, *tables: str) -> Attempt:
    """An attempt that was killed once it had written a file for each table."""
    attempt = Attempt.begin(folder, run_id)
    for table in tables:
        write(folder / f"data/{run_id}/{table}/p-00000-0-{attempt.token}01234567.parquet", b"rows")
    return attempt


@pytest.fixture
def all_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "KEPT_MILLIS", -KEPT_MILLIS)


@pytest.mark.usefixtures("all_old")
def test_files_of_killed_attempts_go_also_of_a_run_that_a_later_attempt_committed(place: StoredPath) -> None:
    committed, folder = committed_at(place), tablespace_folder(place, IDENTITY)
    before = all_files(folder)
    unnoted = "data/other/t/p-00000-0-0011223301234567.parquet"
    write(folder / unnoted, b"of a checkpoint whose manifest is elsewhere")
    killed(folder, "run", "parent", "t")
    killed(folder, "gone", "t")
    Attempt.begin(folder, "gone.2")
    assert expire_attempts(folder, committed) == 3
    assert all_files(folder) == before | {unnoted}
    assert expire_attempts(folder, committed) == 0
    if isinstance(folder, Path):
        assert not (folder / "data/gone").exists()


def test_files_of_an_attempt_that_may_live_stay(place: StoredPath) -> None:
    committed, folder = committed_at(place), tablespace_folder(place, IDENTITY)
    killed(folder, "alive", "t")
    there = all_files(folder)
    assert expire_attempts(folder, committed) == 0
    assert all_files(folder) == there


def test_files_that_an_attempt_could_not_remove_go_later(place: StoredPath, monkeypatch: pytest.MonkeyPatch) -> None:
    committed, folder = committed_at(place), tablespace_folder(place, IDENTITY)
    attempt = killed(folder, "failed", "t")
    with monkeypatch.context() as away:
        away.setattr(removal, "remove_file", unreachable)
        attempt.discard(attempt.files)
    assert len(attempt.files) == 1
    monkeypatch.setattr(attempts, "KEPT_MILLIS", -KEPT_MILLIS)
    assert expire_attempts(folder, committed) == 1
    assert attempt.files == []


def unreachable(path: StoredPath) -> None:
    raise OSError(f"{path} is out of reach")


@pytest.mark.parametrize(("days", "goes"), [(29, False), (31, True)])
def test_what_an_attempt_left_goes_after_thirty_days_by_the_clock_of_its_place(tmp_path: Path, days: int, goes: bool) -> None:
    committed, folder = committed_at(tmp_path), tablespace_folder(tmp_path, IDENTITY)
    attempt = killed(folder, "old", "t")
    began = modified_millis(committed.path) / 1000 - days * 24 * 3600
    os.utime(folder / f"attempts/old.{attempt.token}", (began, began))
    assert expire_attempts(folder, committed) == int(goes)


@pytest.mark.usefixtures("all_old")
def test_a_file_that_a_manifest_names_stays_though_its_attempt_was_killed_behind_the_commit(place: StoredPath) -> None:
    committed, folder = committed_at(place), tablespace_folder(place, IDENTITY)
    (name, *_) = (file.path for file in committed.manifest.files)
    token = "0a1b2c3d"
    write(folder / f"attempts/run.{token}", b"")
    late = name.replace("p-", f"p-{token}-")
    write(folder / late, (folder / name).read_bytes())
    content = committed.path.read_bytes().replace(name.encode(), late.encode())
    write(committed.path.with_name("00000000000000000009-00000000000000000009.json"), content)
    assert expire_attempts(folder, committed) == 0
    assert late in all_files(folder)


@pytest.mark.usefixtures("all_old")
def test_nothing_goes_while_a_manifest_can_not_be_read_or_is_not_listed(place: StoredPath) -> None:
    committed, folder = committed_at(place), tablespace_folder(place, IDENTITY)
    killed(folder, "gone", "t")
    broken = committed.path.with_name("00000000000000000009-00000000000000000009.json")
    write(broken, b"{")
    there = all_files(folder)
    assert expire_attempts(folder, committed) == 0
    assert all_files(folder) == there
    remove_file(broken)
    # As an answer of a store that does not list it yet, or of a volume that is not mounted whole.
    write(committed.path.with_name(".hidden"), committed.path.read_bytes())
    listed_elsewhere = CommittedManifest(committed.manifest, committed.path.with_name(".hidden"), existed=False)
    remove_file(committed.path)
    assert expire_attempts(folder, listed_elsewhere) == 0
    assert all_files(folder) >= {name for name in there if name.startswith("data/")}


def test_what_a_task_writes_after_its_attempt_has_failed_is_noted(
    spark: SparkSession, place: StoredPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed, folder = committed_at(place), tablespace_folder(place, IDENTITY)
    before = all_files(folder)
    rows = spark.createDataFrame([(0, b"", b"")], "table_index int, row_key binary, row_value binary")
    tokens = []

    def fail() -> None:
        with noted(folder, "run") as attempt:
            tokens.append(attempt.token)
            write_tables(rows, (PARENT,), ParquetFolder(folder), attempt)

    with pytest.raises(PySparkException):
        fail()
    write(folder / f"data/run/parent/p-00001-0-{tokens[0]}01234567.parquet", b"of a task that still ran")
    monkeypatch.setattr(attempts, "KEPT_MILLIS", -KEPT_MILLIS)
    assert expire_attempts(folder, committed) == 1
    assert all_files(folder) == before


@pytest.mark.parametrize("tables", [[], ["t"]], ids=["nothing was written", "a file is there"])
def test_an_attempt_that_failed_is_noted_as_long_as_it_left_a_file(place: StoredPath, tables: list[str]) -> None:
    folder = tablespace_folder(place, IDENTITY)

    def fail() -> None:
        with noted(folder, "run") as attempt:
            for table in tables:
                write(folder / f"data/run/{table}/p-00000-0-{attempt.token}01234567.parquet", b"rows")
            raise OSError("no bookie answers")

    with pytest.raises(OSError, match="no bookie answers"):
        fail()
    assert any(name.startswith("attempts/") for name in all_files(folder)) == bool(tables)
