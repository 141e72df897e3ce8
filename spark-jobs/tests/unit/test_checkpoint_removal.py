"""A checkpoint goes as a whole: never a part that still looks like one, never a file of another."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from test_checkpoint_manifest import IDENTITY, manifest, table

from herdkeeper_jobs.checkpoint.errors import CheckpointRefused, InvariantViolated
from herdkeeper_jobs.checkpoint.manifest import ManifestFile, commit_manifest, read_manifest, tablespace_folder
from herdkeeper_jobs.checkpoint.reading import manifests
from herdkeeper_jobs.checkpoint.removal import remove_checkpoint
from herdkeeper_jobs.checkpoint.removal_cli import main


def file_of(run_id: str, name: str) -> ManifestFile:
    return ManifestFile(path=f"data/{run_id}/t/{name}.parquet", rows=1, size=4, hash="0" * 32)


def checkpoint(destination: Path, run_id: str, entry_id: int, *files: ManifestFile) -> str:
    """A committed checkpoint with real files; the manifest's path below the destination."""
    folder = tablespace_folder(destination, IDENTITY)
    for file in files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"rows")
    committed = commit_manifest(manifest(run_id, entry_id, table(files=files)), folder)
    return committed.path.relative_to(destination).as_posix()


def all_files(destination: Path) -> set[str]:
    return {path.relative_to(destination).as_posix() for path in destination.rglob("*") if path.is_file()}


def require_whole(destination: Path) -> None:
    """Each manifest that a reader finds has all of its files."""
    for path in manifests(destination):
        for file in read_manifest(path).tables[0].files:
            assert (path.parent.parent / file.path).read_bytes() == b"rows", f"{path.name} lacks {file.path}"


def situation(destination: Path) -> tuple[str, set[str]]:
    """A checkpoint to remove, one that shares a file with it, and one of its own; the first one's manifest, and the files that stay."""
    shared = file_of("run-1", "shared")
    folder = tablespace_folder(destination, IDENTITY)
    checkpoint(destination, "run-0", 5, file_of("run-0", "a"))
    checkpoint(destination, "run-2", 9, shared, file_of("run-2", "b"))
    staying = all_files(destination)
    leaving = checkpoint(destination, "run-1", 7, shared, file_of("run-1", "c"), file_of("run-1", "d"))
    (folder / "data/run-1/t/left-by-a-task-that-died.parquet").write_bytes(b"half")
    return leaving, staying


def test_a_checkpoint_goes_with_its_files_and_leaves_those_that_another_manifest_names(tmp_path: Path) -> None:
    leaving, staying = situation(tmp_path)
    removed = remove_checkpoint(tmp_path, "run-1", leaving)
    assert all_files(tmp_path) == staying
    assert (removed.existed, removed.files, removed.bytes, removed.kept) == (True, 3, 12, 1)
    again = remove_checkpoint(tmp_path, "run-1", leaving)
    assert (again.existed, again.files) == (False, 0)
    assert all_files(tmp_path) == staying


class Killed(BaseException):
    """The process is no more."""


def kill_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Every change of a folder counts; the process ends before the one with this number."""
    done = 0

    def counting(name: str) -> None:
        real: Callable[..., object] = getattr(os, name)

        def counted(*arguments: object, **options: object) -> object:
            nonlocal done
            done += 1
            if done > step:
                raise Killed
            return real(*arguments, **options)

        monkeypatch.setattr(os, name, counted)

    for name in ("rename", "unlink", "rmdir", "fsync"):
        counting(name)


def test_killed_at_each_step_there_is_a_whole_checkpoint_or_none_and_the_retry_completes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in range(40):
        destination = tmp_path / str(step)
        leaving, staying = situation(destination)
        with monkeypatch.context() as patch:
            kill_at(patch, step)
            try:
                remove_checkpoint(destination, "run-1", leaving)
                ended = True
            except Killed:
                ended = False
        require_whole(destination)
        if ended:
            break
        assert staying <= all_files(destination)
        remove_checkpoint(destination, "run-1", leaving)
        assert all_files(destination) == staying
        require_whole(destination)
    assert ended
    assert step >= 6, "a rename, three files and the manifest's remains are steps of their own"


def test_a_checkpoint_that_was_made_again_while_a_removal_had_stopped_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaving, _ = situation(tmp_path)
    with monkeypatch.context() as patch:
        kill_at(patch, 1)
        with pytest.raises(Killed):
            remove_checkpoint(tmp_path, "run-1", leaving)
    assert checkpoint(tmp_path, "run-3", 7, file_of("run-3", "new")) == leaving
    remove_checkpoint(tmp_path, "run-1", leaving)
    assert read_manifest(tmp_path / leaving).run_id == "run-3"
    require_whole(tmp_path)
    assert not [name for name in all_files(tmp_path) if "removed-by" in name]


def test_files_that_are_missing_already_are_no_fault(tmp_path: Path) -> None:
    leaving, staying = situation(tmp_path)
    (tablespace_folder(tmp_path, IDENTITY) / "data/run-1/t/c.parquet").unlink()
    assert remove_checkpoint(tmp_path, "run-1", leaving).files == 2
    assert all_files(tmp_path) == staying


def test_without_a_manifest_only_what_no_manifest_names_goes(tmp_path: Path) -> None:
    leaving, _ = situation(tmp_path)
    before = all_files(tmp_path)
    removed = remove_checkpoint(tmp_path, "run-1", None)
    assert (removed.files, removed.kept) == (1, 3)
    assert before - all_files(tmp_path) == {"cluster-1/ts-1/data/run-1/t/left-by-a-task-that-died.parquet"}
    assert (tmp_path / leaving).exists()
    assert remove_checkpoint(tmp_path, "run-without-files", None).files == 0


@pytest.mark.parametrize(
    "name", ["../../../other.parquet", "data/../../x/t/other.parquet", "/etc/passwd", "manifests/x.json", "data/other"]
)
def test_a_manifest_that_leads_out_of_the_folder_removes_nothing(tmp_path: Path, name: str) -> None:
    leaving = checkpoint(tmp_path / "volume", "run-1", 7, file_of("run-1", "a"))
    path = tmp_path / "volume" / leaving
    path.write_text(path.read_text().replace("data/run-1/t/a.parquet", name))
    before = all_files(tmp_path)
    with pytest.raises(InvariantViolated, match="which is not in one of its runs' folders"):
        remove_checkpoint(tmp_path / "volume", "run-1", leaving)
    assert all_files(tmp_path) == before


@pytest.mark.parametrize("linked", ["data/run-1/t", "data/run-1", "data", "manifests"])
def test_a_link_is_not_followed(tmp_path: Path, linked: str) -> None:
    leaving = checkpoint(tmp_path / "volume", "run-1", 7, file_of("run-1", "a"))
    folder = tablespace_folder(tmp_path / "volume", IDENTITY)
    (folder / linked).rename(tmp_path / "elsewhere")
    (folder / linked).symlink_to(tmp_path / "elsewhere")
    before = all_files(tmp_path)
    with pytest.raises(InvariantViolated, match="is a symbolic link"):
        remove_checkpoint(tmp_path / "volume", "run-1", leaving)
    assert all_files(tmp_path) == before


def test_another_manifest_that_cannot_be_read_may_name_any_file_so_nothing_goes(tmp_path: Path) -> None:
    leaving, _ = situation(tmp_path)
    (tmp_path / leaving).with_name(f"{3:020d}-{8:020d}.json").write_text("{")
    before = all_files(tmp_path)
    with pytest.raises(InvariantViolated, match="is no manifest"):
        remove_checkpoint(tmp_path, "run-1", leaving)
    assert all_files(tmp_path) == before


def test_a_manifest_of_another_place_is_not_the_checkpoint(tmp_path: Path) -> None:
    leaving, _ = situation(tmp_path)
    elsewhere = (tmp_path / leaving).with_name(f"{3:020d}-{8:020d}.json")
    (tmp_path / leaving).rename(elsewhere)
    with pytest.raises(InvariantViolated, match="says that it is of"):
        remove_checkpoint(tmp_path, "run-1", elsewhere.relative_to(tmp_path).as_posix())


@pytest.mark.parametrize(
    ("run_id", "path"), [("../run", None), ("*", None), ("run-1", "/etc/passwd"), ("run-1", "../a/manifests/x.json"), ("run-1", "x.json")]
)
def test_arguments_that_name_no_checkpoint_are_refused(tmp_path: Path, run_id: str, path: str | None) -> None:
    with pytest.raises(CheckpointRefused, match=r"--run-id is|--manifest is"):
        remove_checkpoint(tmp_path, run_id, path)


def test_the_command_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leaving, _ = situation(tmp_path)
    given = ["--destination", str(tmp_path), "--run-id", "run-1", "--manifest", leaving]
    assert main(given) == 0
    assert "3 files with 12 bytes are removed; 1 files of this run stay" in capsys.readouterr().out
    (tmp_path / leaving).write_text("{")
    assert main(given) == 42
    assert main(["--destination", str(tmp_path / "none"), "--run-id", "run-1"]) == 2
