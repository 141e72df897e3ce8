"""A checkpoint is removed as a whole: never a part that still looks like one, never another's file."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import object_store_server
import obstore
import pytest
from places import all_files, write
from played_bookie import PATIENCE_SECONDS
from test_checkpoint_manifest import IDENTITY, manifest, table

from herdkeeper_jobs.checkpoint import removal
from herdkeeper_jobs.checkpoint.removal import remove_checkpoint
from herdkeeper_jobs.checkpoint.removal_cli import main
from herdkeeper_jobs.errors import CheckpointRefused, InvariantViolated
from herdkeeper_jobs.manifests.manifest import ManifestFile, commit_manifest, manifests, read_manifest, report_path, tablespace_folder
from herdkeeper_jobs.storage.object_path import ObjectPath
from herdkeeper_jobs.storage.stored_path import StoredPath, take_name


def file_of(run_id: str, name: str) -> ManifestFile:
    return ManifestFile(path=f"data/{run_id}/t/{name}.parquet", rows=1, size=4, hash="0" * 32)


def checkpoint(destination: StoredPath, run_id: str, entry_id: int, *files: ManifestFile) -> str:
    """Commits a checkpoint with real files; returns its manifest's path below the destination."""
    folder = tablespace_folder(destination, IDENTITY)
    for file in files:
        write(folder / file.path, b"rows")
    committed = commit_manifest(manifest(run_id, entry_id, table(files=files)), folder)
    return "/".join(committed.path.parts[-4:])


def require_whole(destination: StoredPath) -> None:
    """Checks that each visible manifest has all of its files."""
    for path in manifests(destination):
        for file in read_manifest(path).tables[0].files:
            assert (path.parent.parent / file.path).read_bytes() == b"rows", f"{path.name} lacks {file.path}"


def situation(destination: StoredPath) -> tuple[str, set[str]]:
    """A checkpoint to remove, one that shares a file with it, and a separate one. Returns the first one's manifest, and the files that must
    stay."""
    shared = file_of("run-1", "shared")
    folder = tablespace_folder(destination, IDENTITY)
    checkpoint(destination, "run-0", 5, file_of("run-0", "a"))
    checkpoint(destination, "run-2", 9, shared, file_of("run-2", "b"))
    staying = all_files(destination)
    leaving = checkpoint(destination, "run-1", 7, shared, file_of("run-1", "c"), file_of("run-1", "d"))
    write(folder / "data/run-1/t/left-by-a-task-that-died.parquet", b"half")
    return leaving, staying


def test_a_checkpoint_is_removed_with_its_files_except_those_that_another_manifest_names(place: StoredPath) -> None:
    leaving, staying = situation(place)
    removed = remove_checkpoint(place, "run-1", leaving)
    assert all_files(place) == staying
    assert (removed.existed, removed.files, removed.bytes, removed.kept) == (True, 3, 12, 1)
    again = remove_checkpoint(place, "run-1", leaving)
    assert (again.existed, again.files) == (False, 0)
    assert all_files(place) == staying


def test_a_run_that_is_to_remove_only_its_own_leaves_a_checkpoint_of_another_run_and_its_files(place: StoredPath) -> None:
    reused = checkpoint(place, "run-1", 7, file_of("run-1", "a"))
    staying = all_files(place)
    write(tablespace_folder(place, IDENTITY) / "data/drill/t/left.parquet", b"half")
    removed = remove_checkpoint(place, "drill", reused, only_own=True)
    assert (removed.existed, removed.files, all_files(place)) == (False, 1, staying)
    assert remove_checkpoint(place, "run-1", reused, only_own=True).existed
    assert all_files(place) == set()


def test_the_report_goes_with_the_last_checkpoint_and_not_before(tmp_path: Path) -> None:
    report = report_path(tablespace_folder(tmp_path, IDENTITY))
    first, second = (checkpoint(tmp_path, f"run-{entry}", entry, file_of(f"run-{entry}", "a")) for entry in (5, 7))
    report.write_text("of both")
    remove_checkpoint(tmp_path, "run-7", second)
    assert report.exists()
    removed = remove_checkpoint(tmp_path, "run-5", first)
    assert all_files(tmp_path) == set()
    assert removed.files == 1


class Killed(BaseException):
    """Stands for a kill of the process."""


def kill_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Ends the process before the change with this number, of a folder, a store or a file system."""
    done = 0

    def counting(module: ModuleType | type, name: str) -> None:
        real: Callable[..., object] = getattr(module, name)

        def counted(*arguments: object, **options: object) -> object:
            nonlocal done
            done += 1
            if done > step:
                raise Killed
            return real(*arguments, **options)

        monkeypatch.setattr(module, name, counted)

    for name in ("rename", "unlink", "rmdir", "fsync"):
        counting(os, name)
    for name in ("put", "delete"):
        counting(obstore, name)


def test_a_kill_at_any_step_leaves_a_whole_checkpoint_or_none_and_the_retry_completes(
    place: StoredPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in range(40):
        destination = place / str(step)
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
    assert step >= 6, "the manifest, three files and the manifest's remains are steps of their own"


def test_a_checkpoint_that_was_made_again_while_a_removal_had_stopped_is_left_alone(
    place: StoredPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaving, _ = situation(place)
    with monkeypatch.context() as patch:
        kill_at(patch, 1 if isinstance(place, Path) else 2)  # the new name is deleted before; or a rename is a copy and a deletion
        with pytest.raises(Killed):
            remove_checkpoint(place, "run-1", leaving)
    assert checkpoint(place, "run-3", 7, file_of("run-3", "new")) == leaving
    remove_checkpoint(place, "run-1", leaving)
    assert read_manifest(place / leaving).run_id == "run-3"
    require_whole(place)
    assert not [name for name in all_files(place) if "removed-by" in name]


@pytest.mark.parametrize("step", ["_own_manifest", "take_name_of"], ids=["behind the manifest's reading", "before its removal"])
def test_a_checkpoint_that_was_made_again_while_a_removal_stood_still_is_left_alone(
    place: StoredPath, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    leaving, _ = situation(place)
    real = getattr(removal, step)

    def paused(*arguments: Any) -> object:
        """Another removal of the run ends before this one goes on, and another run makes the checkpoint again."""
        monkeypatch.setattr(removal, step, real)
        read = real(*arguments) if step == "_own_manifest" else None
        remove_checkpoint(place, "run-1", leaving)
        assert checkpoint(place, "run-3", 7, file_of("run-3", "new")) == leaving
        return real(*arguments) if read is None else read

    monkeypatch.setattr(removal, step, paused)
    remove_checkpoint(place, "run-1", leaving)
    assert read_manifest(place / leaving).run_id == "run-3"
    require_whole(place)
    assert not [name for name in all_files(place) if "removed-by" in name]


def test_files_that_are_missing_already_are_no_fault(place: StoredPath) -> None:
    leaving, staying = situation(place)
    (tablespace_folder(place, IDENTITY) / "data/run-1/t/c.parquet").unlink()
    assert remove_checkpoint(place, "run-1", leaving).files == 2
    assert all_files(place) == staying


def test_an_object_store_is_asked_to_delete_several_files_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = object_store_server.new_bucket()
    leaving = checkpoint(bucket, "run-1", 7, *(file_of("run-1", str(number)) for number in range(6)))
    all_at_once, unlink = threading.Barrier(6), ObjectPath.unlink

    def together(path: ObjectPath) -> None:
        if path.name.endswith(".parquet"):
            all_at_once.wait(PATIENCE_SECONDS)
        unlink(path)

    monkeypatch.setattr(ObjectPath, "unlink", together)
    assert remove_checkpoint(bucket, "run-1", leaving).files == 6
    assert all_files(bucket) == set()


def test_the_manifests_that_may_name_a_file_are_asked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = object_store_server.new_bucket()
    for number in range(6):
        checkpoint(bucket, f"run-{number}", number, file_of(f"run-{number}", "a"))
    staying = all_files(bucket)
    write(tablespace_folder(bucket, IDENTITY) / "data/run-0/t/left.parquet", b"half")
    all_at_once, read = threading.Barrier(6), ObjectPath.read_bytes

    def together(path: ObjectPath) -> bytes:
        all_at_once.wait(PATIENCE_SECONDS)
        return read(path)

    with monkeypatch.context() as patch:
        patch.setattr(ObjectPath, "read_bytes", together)
        assert remove_checkpoint(bucket, "run-0", None).files == 1
    assert all_files(bucket) == staying


def test_without_a_manifest_only_files_that_no_manifest_names_are_removed(place: StoredPath) -> None:
    leaving, _ = situation(place)
    before = all_files(place)
    removed = remove_checkpoint(place, "run-1", None)
    assert (removed.files, removed.kept) == (1, 3)
    assert before - all_files(place) == {"cluster-1/ts-1/data/run-1/t/left-by-a-task-that-died.parquet"}
    assert (place / leaving).is_file()
    assert remove_checkpoint(place, "run-without-files", None).files == 0


@pytest.mark.parametrize(
    "name", ["../../../other.parquet", "data/../../x/t/other.parquet", "/etc/passwd", "manifests/x.json", "data/other"]
)
def test_a_manifest_that_leads_out_of_the_folder_removes_nothing(place: StoredPath, name: str) -> None:
    leaving = checkpoint(place / "volume", "run-1", 7, file_of("run-1", "a"))
    path = place / "volume" / leaving
    write(path, path.read_bytes().replace(b"data/run-1/t/a.parquet", name.encode()))
    before = all_files(place)
    with pytest.raises(InvariantViolated, match="which is not in one of its runs' folders"):
        remove_checkpoint(place / "volume", "run-1", leaving)
    assert all_files(place) == before


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


def test_another_unreadable_manifest_may_name_any_file_so_nothing_is_removed(place: StoredPath) -> None:
    leaving, _ = situation(place)
    write((place / leaving).with_name(f"{3:020d}-{8:020d}.json"), b"{")
    before = all_files(place)
    with pytest.raises(InvariantViolated, match="is not a manifest"):
        remove_checkpoint(place, "run-1", leaving)
    assert all_files(place) == before


def unlisted(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """From now on no folder of this name may be listed."""

    def refusing(look: Callable[..., Any]) -> Callable[..., Any]:
        def looks(place: Any = ".") -> Any:
            if Path(place).name == name:
                raise PermissionError(13, "Permission denied", str(place))
            return look(place)

        return looks

    monkeypatch.setattr(os, "scandir", refusing(os.scandir))
    monkeypatch.setattr(os, "listdir", refusing(os.listdir))


def test_unlisted_manifests_may_name_any_file_so_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leaving, _ = situation(tmp_path)
    before = all_files(tmp_path)
    with monkeypatch.context() as patched:
        unlisted(patched, "manifests")
        for path in (leaving, None):
            with pytest.raises(PermissionError):
                remove_checkpoint(tmp_path, "run-1", path)
    assert all_files(tmp_path) == before


@pytest.mark.parametrize("name", ["cluster-1", "run-1", "t"])
def test_of_a_folder_that_may_not_be_listed_nobody_says_that_nothing_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    situation(tmp_path)
    before = all_files(tmp_path)
    with monkeypatch.context() as patched:
        unlisted(patched, name)
        assert main(["--destination", str(tmp_path), "--run-id", "run-1"]) == 3
    said = capsys.readouterr().out
    assert "PermissionError" in said
    assert f"/{name}'" in said
    assert all_files(tmp_path) == before


def test_a_volumes_own_folder_that_may_not_be_listed_holds_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    situation(tmp_path)
    (tmp_path / "lost+found").mkdir()
    with monkeypatch.context() as patched:
        unlisted(patched, "lost+found")
        assert remove_checkpoint(tmp_path, "run-1", None).files == 1


def test_a_manifest_of_another_place_is_not_the_checkpoint(place: StoredPath) -> None:
    leaving, _ = situation(place)
    elsewhere = (place / leaving).with_name(f"{3:020d}-{8:020d}.json")
    take_name(place / leaving, elsewhere)
    with pytest.raises(InvariantViolated, match="is for LSN"):
        remove_checkpoint(place, "run-1", "/".join(elsewhere.parts[-4:]))


def test_a_manifest_of_another_log_is_not_the_checkpoint(place: StoredPath) -> None:
    leaving, _ = situation(place)
    for other in ("cluster-2/ts-1", "cluster-1/ts-2"):
        elsewhere = place.joinpath(*other.split("/"), "manifests", leaving.rsplit("/", 1)[1])
        for name in all_files(place):
            if name.startswith("cluster-1/ts-1/"):
                write(place.joinpath(*other.split("/"), *name.split("/")[2:]), (place / name).read_bytes())
        before = all_files(place)
        with pytest.raises(InvariantViolated, match="says that it belongs to cluster-1/ts-1"):
            remove_checkpoint(place, "run-1", "/".join(elsewhere.parts[-4:]))
        assert all_files(place) == before


@pytest.mark.parametrize(
    ("run_id", "path"), [("../run", None), ("*", None), ("run-1", "/etc/passwd"), ("run-1", "../a/manifests/x.json"), ("run-1", "x.json")]
)
def test_arguments_that_name_no_checkpoint_are_refused(tmp_path: Path, run_id: str, path: str | None) -> None:
    with pytest.raises(CheckpointRefused, match=r"--run-id is|--manifest is"):
        remove_checkpoint(tmp_path, run_id, path)


def test_the_command_says_what_it_did(place: StoredPath, capsys: pytest.CaptureFixture[str]) -> None:
    leaving, _ = situation(place)
    given = ["--destination", str(place), "--run-id", "run-1", "--manifest", leaving]
    assert main(given) == 0
    assert "3 files with 12 bytes are removed; 1 files of this run stay" in capsys.readouterr().out
    write(place / leaving, b"{")
    assert main(given) == 42
    missing = place / "none" if isinstance(place, Path) else ObjectPath("s3", "no-such-bucket")
    assert main(["--destination", str(missing), "--run-id", "run-1"]) == 2


def test_a_destination_that_is_no_place_is_named_with_the_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--destination", "hdfs://somewhere/else", "--run-id", "run-1"]) == 2
    assert "--destination: 'hdfs://somewhere/else' names no object store" in capsys.readouterr().out
