"""What a file system by URL has to prove before checkpoints are put into it, and what is told when it does not."""

from __future__ import annotations

import errno
import os
import pickle
import re
import threading
from pathlib import Path
from typing import Any

import fsspec
import played_web_hdfs
import pytest
from file_system_contract import (  # noqa: F401
    test_a_destination_is_usable_once_a_name_was_given_only_once,
    test_a_file_is_created_once_and_whole,
    test_a_large_file_is_read_anywhere_in_it,
    test_a_rename_whose_answer_is_lost_is_known_by_what_is_left,
    test_files_are_found_renamed_replaced_and_removed_with_their_folders,
)
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem
from places import all_files, write

from herdkeeper.shared.names import FILE_SYSTEM_OPTIONS_VARIABLE
from herdkeeper_jobs.checkpoint import cli
from herdkeeper_jobs.storage import creates_once, file_system, web_hdfs
from herdkeeper_jobs.storage.file_system import options_of
from herdkeeper_jobs.storage.file_system_path import FileSystemNotConfiguredError, FileSystemPath
from herdkeeper_jobs.storage.stored_path import create_if_absent, names_below, replace_file, stored_path, take_name, why_unusable


class _LinkingFiles(LocalFileSystem):
    """Local files, whose rename replaces nothing."""

    protocol = "linking"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.removeprefix("linking://"))

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        os.link(path1, path2)
        Path(path1).unlink()


class _ReplacingStore(MemoryFileSystem):
    """A store whose call that creates a file does not mind that there is one."""

    protocol = "replacing"
    store: dict[str, Any] = {}  # noqa: RUF012

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        del mode
        super().pipe_file(path, value)


class _CreatingStore(MemoryFileSystem):
    """A store with a call that creates a file whole, and refuses to when there is one, as those do that clients of Azure or Google ask."""

    protocol = "creating"
    store: dict[str, Any] = {}  # noqa: RUF012

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        if mode != "create":
            super().pipe_file(path, value)
            return
        name = self._strip_protocol(path)
        file = MemoryFile(self, name, value)
        # The server's own decision, whoever asks: it is one step of the dictionary that all instances have.
        if self.store.setdefault(name, file) is not file:
            raise FileExistsError(path)


class _SerialisingStore(MemoryFileSystem):
    """A store whose client looks first and writes then, one call of an instance after the other."""

    protocol = "serialising"
    store: dict[str, Any] = {}  # noqa: RUF012
    both_looked = threading.Barrier(2)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.deciding = threading.Lock()

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        with self.deciding:
            if mode == "create" and self.exists(path):
                raise FileExistsError(path)
            if _is_raced_for(path):
                self.both_looked.wait(10)
            super().pipe_file(path, value)


def _is_raced_for(path: str) -> bool:
    """Whether two create it at once in the proof, and not one after the other."""
    return re.search(r"creates-once-[0-9a-f]+-\d+$", path) is not None


for _found in (_LinkingFiles, _ReplacingStore, _CreatingStore, _SerialisingStore):
    fsspec.register_implementation(_found.protocol, _found, clobber=True)


@pytest.fixture(autouse=True)
def _nothing_is_known_yet() -> None:
    creates_once._proven.clear()


@pytest.fixture(params=["HDFS", "local files whose rename replaces nothing"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileSystemPath:
    if request.param == "HDFS":
        return played_web_hdfs.new_folder()
    monkeypatch.delenv(FILE_SYSTEM_OPTIONS_VARIABLE)
    return FileSystemPath(f"linking://{tmp_path}", "folder")


def test_an_address_is_the_url_of_a_folder() -> None:
    assert stored_path("webhdfs://namenode:9870/a/b/") == FileSystemPath("webhdfs://namenode:9870", "a/b")
    assert str(stored_path("webhdfs://namenode:9870")) == "webhdfs://namenode:9870"
    for wrong in ("webhdfs://", "webhdfs://user:word@host/a", "webhdfs://host//a", "webhdfs://host/../other"):
        with pytest.raises(ValueError, match="names no file system: give the URL of a folder"):
            stored_path(wrong)
    with pytest.raises(ValueError, match="is in the pod itself and is lost with it: mount a volume"):
        stored_path("memory://a/b")


@pytest.mark.parametrize("error", [errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK])
def test_a_volume_without_hard_links_is_refused_before_there_is_any_work(
    error: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise OSError(error, os.strerror(error))

    assert why_unusable(tmp_path, writes=True) is None
    monkeypatch.setattr(os, "link", link)
    why = why_unusable(tmp_path, writes=True) or ""
    assert why.startswith("files can't be committed in this folder, which takes a hard link")
    assert os.strerror(error) in why
    assert why_unusable(tmp_path, writes=False) is None
    assert all_files(tmp_path) == set()


def test_a_file_system_that_renames_over_what_is_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    over = played_web_hdfs.PlayedHdfs(tmp_path, renames_over=True).serve() / "folder"
    why = why_unusable(over, writes=True) or ""
    assert why.startswith(
        f"the file system {over.root} does not create a name only once (renaming a file: the second file of a name replaces"
    )
    assert why.endswith("take one that does, such as HDFS by webhdfs://, or a volume or an object store")
    with pytest.raises(OSError, match="can't be created: the file system"):
        create_if_absent(over / "a", b"mine")
    assert all_files(over) == set()
    monkeypatch.delenv(FILE_SYSTEM_OPTIONS_VARIABLE)
    assert "the second file of a name replaces the first" in (why_unusable(FileSystemPath(f"file://{tmp_path}", "here"), writes=True) or "")


def test_an_error_that_a_data_node_answers_is_not_taken_for_the_content_of_a_file(tmp_path: Path) -> None:
    hdfs = played_web_hdfs.PlayedHdfs(tmp_path)
    path = hdfs.serve() / "a"
    write(path, b"content")
    hdfs.loses_blocks = True
    told = r"a: IOException: Could not obtain a block of http://datanode/a\?…$"  # and not what opens it
    with pytest.raises(OSError, match=told):
        path.read_bytes()
    with path.open() as stream, pytest.raises(OSError, match=told):
        stream.read()


def test_a_store_that_creates_files_whole_commits_by_that_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FILE_SYSTEM_OPTIONS_VARIABLE)
    folder = FileSystemPath("creating://store", "folder")
    assert why_unusable(folder, writes=True) is None
    assert list(creates_once._proven.values()) == [FileSystemPath.create_by_call]
    assert create_if_absent(folder / "a" / "1", b"mine")
    assert not create_if_absent(folder / "a" / "1", b"another's")
    replace_file(folder / "a" / "2", b"old")
    replace_file(folder / "a" / "2", b"new")
    take_name(folder / "a" / "2", folder / "a" / "3")
    assert {name: (folder / name).read_bytes() for name in names_below(folder)} == {"a/1": b"mine", "a/3": b"new"}


def test_a_store_whose_create_replaces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FILE_SYSTEM_OPTIONS_VARIABLE)
    why = why_unusable(FileSystemPath("replacing://", "folder"), writes=True) or ""
    assert "creating a file: the second file of a name replaces the first; renaming a file: the second" in why


def test_a_file_system_that_looks_first_and_writes_then_is_refused(folder: FileSystemPath) -> None:
    """As fsspec's own `pipe_file(mode="create")` does: of two at once both may win, though one after the other they don't."""

    both_looked, writing = threading.Barrier(2), threading.Lock()

    def look_first(path: FileSystemPath, content: bytes) -> bool:
        if path.is_file():
            return False
        if _is_raced_for(path.name):
            both_looked.wait(60)
        with writing:
            path._write_whole(content)
        return True

    assert creates_once._why_not(folder, look_first) == "of 2 concurrent creates 2 succeeded"


def test_a_client_that_keeps_only_its_own_calls_in_order_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two jobs have a client each."""
    monkeypatch.delenv(FILE_SYSTEM_OPTIONS_VARIABLE)
    why = why_unusable(FileSystemPath("serialising://store", "folder"), writes=True) or ""
    assert "creating a file: of 2 concurrent creates 2 succeeded" in why


def test_what_is_missing_to_open_a_file_system_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Protocol not known: no-such" in (why_unusable(FileSystemPath("no-such://host"), writes=True) or "")
    assert "run the job with an image that has that package" in (why_unusable(FileSystemPath("sftp://host"), writes=True) or "")
    (tmp_path / "user").write_text("nobody")
    monkeypatch.setenv(FILE_SYSTEM_OPTIONS_VARIABLE, str(tmp_path))
    file_system._opened.cache_clear()
    refused = why_unusable(played_web_hdfs.new_folder(), writes=True) or ""
    assert "the file system refuses this: user nobody may not LISTSTATUS" in refused
    assert refused.endswith("they must allow to list, read, write, rename and delete there")
    monkeypatch.setenv(FILE_SYSTEM_OPTIONS_VARIABLE, "/no/such/folder")
    file_system._opened.cache_clear()
    assert "no such folder; mount the Secret there" in (why_unusable(played_web_hdfs.new_folder(), writes=True) or "")
    file_system._opened.cache_clear()


def test_options_are_the_entries_of_the_secret(tmp_path: Path) -> None:
    for name, text in (("user", "checkpoints\n"), ("use_https.json", "true"), ("ca.crt", "PEM"), ("..data", "")):
        (tmp_path / name).write_text(text)
    assert options_of(tmp_path) == {"user": "checkpoints", "use_https": True}
    (tmp_path / "data_proxy.json").write_text("{")
    with pytest.raises(FileSystemNotConfiguredError, match=r"the entry data_proxy\.json of the file system's options is not JSON"):
        options_of(tmp_path)


def test_a_file_system_that_does_not_answer_is_tried_again_and_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_hdfs, "_CONNECTED_WITHIN", 0.2)
    monkeypatch.setattr(web_hdfs, "_TRIES", 0)
    with pytest.raises(OSError, match=r"webhdfs://127\.0\.0\.1:9: ConnectionError: "):
        why_unusable(FileSystemPath("webhdfs://127.0.0.1:9"), writes=True)


def test_no_task_carries_what_opens_the_file_system() -> None:
    folder = played_web_hdfs.new_folder()
    assert all_files(folder) == set()  # it is open
    assert played_web_hdfs.USER.encode() not in pickle.dumps(folder / "a")


def test_a_job_whose_destination_is_no_url_says_so_before_it_starts(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--zookeeper", "z:1", "--ledgers-root", "/l", "--herd-root", "/h", "--tablespace", "t", "--run-id", "r"]
    assert cli.main([*given, "--destination", "webhdfs://user@host/a"]) == 2
    assert "--destination is 'webhdfs://user@host/a' names no file system" in capsys.readouterr().out
