"""Folders of killed runs go by age alone: never what a manifest names, never young ones, nothing while a manifest can't be read."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import all_files, write
from test_checkpoint_manifest import IDENTITY, manifest, table

from herdkeeper_jobs.checkpoint import orphans
from herdkeeper_jobs.checkpoint.manifest import ManifestFile, commit_manifest, tablespace_folder
from herdkeeper_jobs.checkpoint.orphans import Swept, least_age, sweep_orphans
from herdkeeper_jobs.storage.stored_path import StoredPath, files_with_times

DAY = 86_400
NOW = 10 * DAY


def named(number: int) -> str:
    return f"p-{number:05d}-0-0123abcd.parquet"


def leave(folder: StoredPath, run_id: str, *names: str) -> None:
    """Files of a run, with four bytes each."""
    for name in names or (named(0), named(1), named(1).replace(".parquet", ".older.parquet")):
        write(folder / f"data/{run_id}/t/{name}", b"rows")


def commit(folder: StoredPath, run_id: str, entry_id: int, *files: str) -> StoredPath:
    """A checkpoint that names files of its run."""
    parts = tuple(ManifestFile(path=f"data/{run_id}/t/{name}", rows=1, size=4, hash="0" * 32) for name in files)
    for part in parts:
        write(folder / part.path, b"rows")
    return commit_manifest(manifest(run_id, entry_id, table(files=parts)), folder).path


@pytest.fixture
def folder(place: StoredPath) -> StoredPath:
    return tablespace_folder(place, IDENTITY)


@pytest.fixture
def young(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Parts of the names of files that were changed just now; all others were a while ago."""
    parts: set[str] = set()

    def played(place: StoredPath) -> Iterator[tuple[str, float]]:
        for name, _ in files_with_times(place):
            yield name, NOW if any(part in name for part in parts) else 0

    monkeypatch.setattr(orphans, "files_with_times", played)
    return parts


def test_what_a_killed_run_left_goes_when_it_is_old_and_nothing_else_does(folder: StoredPath, young: set[str]) -> None:
    commit(folder, "run-1", 5, named(0), named(1))
    leave(folder, "run-1", named(2))  # of an attempt before the one that succeeded
    leave(folder, "run-4")
    young.add("run-4/")
    leave(folder, "run-own")
    write(folder / "log/segments/a.parquet", b"rows")
    staying = all_files(folder)
    leave(folder, "run-2")
    leave(folder, "run-3", named(0))
    swept = sweep_orphans(folder, "run-own", NOW - DAY)
    assert all_files(folder) == staying
    assert swept == Swept(("run-2", "run-3"), 4, 16)
    assert swept.sentence == "4 files with 16 bytes of 2 killed runs were removed"
    assert sweep_orphans(folder, "run-own", NOW - DAY) == Swept()


def test_a_run_one_of_whose_files_is_young_stays_whole(folder: StoredPath, young: set[str]) -> None:
    leave(folder, "run-2")
    young.add(f"run-2/t/{named(1)}")
    before = all_files(folder)
    assert sweep_orphans(folder, "run-own", NOW - DAY) == Swept()
    assert all_files(folder) == before


@pytest.mark.parametrize("content", [b"{", b'{"schemaVersion": 99}', b'{"schemaVersion": 1}'])
def test_while_a_manifest_cannot_be_read_everything_stays(folder: StoredPath, young: set[str], content: bytes) -> None:
    commit(folder, "run-1", 5, named(0))
    leave(folder, "run-2")
    write(folder / f"manifests/{9:020d}-{9:020d}.json", content)
    before = all_files(folder)
    swept = sweep_orphans(folder, "run-own", NOW - DAY)
    assert all_files(folder) == before
    assert swept.runs == ()
    assert f"{9:020d}.json" in swept.unknown
    assert swept.sentence.startswith("what killed runs left, if anything, stays: ")


def test_a_manifest_that_names_a_file_outside_of_runs_keeps_everything(folder: StoredPath, young: set[str]) -> None:
    path = commit(folder, "run-1", 5, named(0))
    write(path, path.read_bytes().replace(b"data/run-1/", b"data/../run-1/"))
    leave(folder, "run-2")
    before = all_files(folder)
    assert "which is not in one of its runs' folders" in sweep_orphans(folder, "run-own", NOW - DAY).unknown
    assert all_files(folder) == before


def test_a_place_that_cannot_be_listed_keeps_everything(folder: StoredPath, monkeypatch: pytest.MonkeyPatch) -> None:
    leave(folder, "run-2")

    def broken(place: StoredPath) -> Iterator[tuple[str, float]]:
        yield f"run-2/t/{named(0)}", 0
        raise OSError("input/output error")

    monkeypatch.setattr(orphans, "files_with_times", broken)
    before = all_files(folder)
    assert sweep_orphans(folder, "run-own", NOW - DAY).unknown == "OSError: input/output error"
    assert all_files(folder) == before


@pytest.mark.parametrize("name", ["t/notes.txt", "t/p-0.parquet", "copy.tar", ".hidden/x"])
def test_a_folder_with_anything_that_no_task_writes_stays(folder: StoredPath, young: set[str], name: str) -> None:
    leave(folder, "run-2")
    write(folder / f"data/run-2/{name}", b"somebody's")
    write(folder / "data/a file of somebody", b"somebody's")
    before = all_files(folder)
    assert sweep_orphans(folder, "run-own", NOW - DAY) == Swept()
    assert all_files(folder) == before


def test_a_link_is_not_followed(tmp_path: Path, young: set[str]) -> None:
    folder, elsewhere = tablespace_folder(tmp_path, IDENTITY), tmp_path / "elsewhere"
    leave(elsewhere, "run-2")
    (folder / "data").mkdir(parents=True)
    (folder / "data/run-2").symlink_to(elsewhere / "data/run-2")
    (folder / "data/run-3").mkdir()
    (folder / "data/run-3/t").symlink_to(elsewhere / "data/run-2/t")
    assert sweep_orphans(folder, "run-own", NOW - DAY) == Swept()
    assert len(all_files(elsewhere)) == 3


def test_a_tablespace_without_any_files_has_nothing_to_sweep(folder: StoredPath) -> None:
    assert sweep_orphans(folder, "run-own", time.time()) == Swept()


def test_a_file_is_as_old_as_its_place_says_and_not_as_its_original_was(folder: StoredPath) -> None:
    before = time.time()
    leave(folder, "run-2", named(0))
    if isinstance(folder, Path):
        os.utime(folder / f"data/run-2/t/{named(0)}", (0, 0))  # as a copy that keeps times does
    ((name, changed),) = files_with_times(folder / "data")
    assert name == f"run-2/t/{named(0)}"
    assert before - 2 < changed < time.time() + 2
    assert sweep_orphans(folder, "run-own", before - DAY) == Swept()


@pytest.mark.parametrize(("deadline", "age"), [(0, DAY), (3600, DAY), (DAY, 2 * DAY)])
def test_a_run_is_over_after_twice_its_deadline_and_a_day_at_least(deadline: float, age: float) -> None:
    assert least_age(deadline) == age
