"""A real HDFS as a place for checkpoints, by its WebHDFS: what any file system has to do, and rows that go there and come back."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from file_system_contract import (  # noqa: F401
    test_a_destination_is_usable_once_a_name_was_given_only_once,
    test_a_file_is_created_once_and_whole,
    test_a_large_file_is_read_anywhere_in_it,
    test_a_rename_whose_answer_is_lost_is_known_by_what_is_left,
    test_files_are_found_renamed_replaced_and_removed_with_their_folders,
)
from real_database import Database

from herdkeeper.shared.names import FILE_SYSTEM_OPTIONS_VARIABLE
from herdkeeper_e2e.hdfs_processes import USER, running_hdfs
from herdkeeper_e2e.server_processes import CREDENTIALS, LEDGERS_ROOT
from herdkeeper_jobs.encryption.keys import FOLDERS
from herdkeeper_jobs.manifests.manifest import manifests
from herdkeeper_jobs.restore import cli as restore_cli
from herdkeeper_jobs.storage.file_system_path import FileSystemPath
from herdkeeper_jobs.storage.stored_path import names_below, stored_path

_SPARK = ("--master", "local[2]", "--driver-memory", "512m")
_ROWS = 300


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its URL. The options, and a key, are mounted as in the pods of a job, before Spark's processes start."""
    options, keys = tmp_path_factory.mktemp("options"), tmp_path_factory.mktemp("keys")
    (options / "user").write_text(USER)
    (keys / "2026-11").write_text(base64.b64encode(b"k" * 32).decode())
    with pytest.MonkeyPatch.context() as patch, running_hdfs() as url:
        patch.setenv(FILE_SYSTEM_OPTIONS_VARIABLE, str(options))
        patch.setenv(FOLDERS, str(keys))
        patch.setenv(restore_cli.USERNAME, CREDENTIALS.username)
        patch.setenv(restore_cli.PASSWORD, CREDENTIALS.password)
        yield url


@pytest.fixture
def folder(hdfs: str) -> FileSystemPath:
    """A folder of it that is not there yet."""
    found = stored_path(f"{hdfs}/folder-{uuid.uuid4().hex}")
    assert isinstance(found, FileSystemPath)
    return found


def run(program: str, *arguments: str) -> None:
    """In a process of its own, as a pod's: Spark's workers have the environment in which this process first started Spark."""
    command = [sys.executable, "-m", f"herdkeeper_jobs.{program}", *arguments]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rows_are_checkpointed_into_hdfs_restored_from_there_and_removed(database: Database, folder: FileSystemPath) -> None:
    where = ["--zookeeper", database.servers.zookeeper, "--herd-root", database.herd_root]
    with database.tablespace("kept") as kept, database.tablespace("again") as again:
        with database.connect(kept) as connection:
            connection.execute("CREATE TABLE t (k int primary key, v string)")
            for number in range(_ROWS):
                connection.execute(f"INSERT INTO t (k, v) VALUES ({number}, 'row {number}')")
        database.close_ledger(kept)
        key = str(Path(os.environ[FOLDERS]) / "2026-11")
        made = [
            "--ledgers-root",
            LEDGERS_ROOT,
            "--tablespace",
            kept,
            "--destination",
            str(folder),
            "--run-id",
            "run-1",
            "--encrypt-with",
            key,
        ]
        run("checkpoint.cli", *where, *made, *_SPARK)
        (manifest,) = manifests(folder)
        assert isinstance(manifest, FileSystemPath)
        assert all(b"row 7" not in (folder / name).read_bytes() for name in names_below(folder))
        restored = ["--tablespace", again, "--manifest", str(manifest), "--run-id", "run-2"]
        run("restore.cli", *where, *restored, *_SPARK)
        with database.connect(again) as connection:
            assert sorted((row["k"], row["v"]) for row in connection.query("SELECT k, v FROM t")) == [
                (number, f"row {number}") for number in range(_ROWS)
            ]
        removes = ["--destination", str(folder), "--run-id", "run-1", "--manifest", manifest.key.removeprefix(f"{folder.key}/")]
        run("checkpoint.removal_cli", *removes)
        assert {name.rsplit("/", 1)[-1] for name in names_below(folder)} <= {"report.html"}
        assert not list(folder.glob("*/*/data/*"))
