"""Azurite as a place for checkpoints, which stands for Azure Blob Storage: what any store has to do, and rows that go there and come back.

Only `make integration-azure` runs this: Azurite needs node and npm.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from emptied_place import remove_below
from real_database import Database

from herdkeeper.shared.names import DESTINATION_VARIABLES
from herdkeeper_e2e.azurite import CONTAINER, running_azurite
from herdkeeper_e2e.server_processes import CREDENTIALS, LEDGERS_ROOT
from herdkeeper_jobs.encryption.keys import FOLDERS
from herdkeeper_jobs.manifests.manifest import manifests
from herdkeeper_jobs.restore import cli as restore_cli
from herdkeeper_jobs.storage.object_path import ObjectPath
from herdkeeper_jobs.storage.stored_path import create_if_absent, names_below, names_from, new_file, replace_file, take_name, why_unusable

_SPARK = ("--master", "local[2]", "--driver-memory", "512m")
_ROWS = 300


@pytest.fixture(scope="module", autouse=True)
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """It is told, and a key is mounted, as in the pods of a job, before Spark's processes start."""
    keys = tmp_path_factory.mktemp("keys")
    (keys / "2026-11").write_text(base64.b64encode(b"k" * 32).decode())
    with pytest.MonkeyPatch.context() as patch, running_azurite() as variables:
        for name, value in variables.items():
            patch.setenv(f"{DESTINATION_VARIABLES}{name}", value)
        patch.setenv(FOLDERS, str(keys))
        patch.setenv(restore_cli.USERNAME, CREDENTIALS.username)
        patch.setenv(restore_cli.PASSWORD, CREDENTIALS.password)
        yield


@pytest.fixture
def folder() -> ObjectPath:
    """A prefix that nothing has yet."""
    return ObjectPath("az", CONTAINER, f"folder-{uuid.uuid4().hex}", DESTINATION_VARIABLES)


def test_a_container_is_usable_and_one_that_is_not_there_is_named(folder: ObjectPath) -> None:
    assert why_unusable(folder, writes=True) is None
    assert why_unusable(folder, writes=True) is None
    assert set(names_below(folder)) == {".herdkeeper-creates-once"}
    told = why_unusable(ObjectPath("az", "no-such-container", "", DESTINATION_VARIABLES), writes=True)
    assert told == "the object store has no container no-such-container; create it, or correct the endpoint or the storage account"


def test_a_wrong_key_is_told_and_does_not_appear(folder: ObjectPath, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = base64.b64encode(b"w" * 64).decode()
    for name in ("ACCOUNT_NAME", "ENDPOINT"):
        monkeypatch.setenv(f"WRONG_AZURE_STORAGE_{name}", os.environ[f"{DESTINATION_VARIABLES}AZURE_STORAGE_{name}"])
    monkeypatch.setenv("WRONG_AZURE_STORAGE_ACCOUNT_KEY", wrong)
    told = why_unusable(ObjectPath("az", CONTAINER, folder.key, "WRONG_"), writes=True) or ""
    assert "the object store refuses these credentials: " in told
    assert "correct the keys in the Secret" in told
    assert wrong not in told


def test_of_many_that_create_the_same_object_one_is_told_that_it_did(folder: ObjectPath) -> None:
    with ThreadPoolExecutor(8) as racing:
        for number in range(10):
            path = folder / f"{number}"
            told = list(racing.map(lambda writer, path=path: path.create(b"%d" % writer), range(8)))
            assert told.count(True) == 1
            assert path.read_bytes() == b"%d" % told.index(True)
    assert create_if_absent(folder / "a", b"mine")
    assert create_if_absent(folder / "a", b"mine")  # a retry whose first answer was lost
    assert not create_if_absent(folder / "a", b"another's")


def test_a_large_file_is_read_anywhere_in_it_and_none_is_there_before_it_is_closed(folder: ObjectPath) -> None:
    path, block = folder / "data" / "large", bytes(range(256)) * 4096
    file = new_file(path)
    for _ in range(20):
        file.write(block)
    assert list(names_below(folder)) == []
    file.close()
    assert path.size() == 20 << 20
    with path.open("rb") as stream:
        stream.seek(-5, 2)
        assert stream.read() == block[-5:]
        stream.seek((3 << 20) + 7)
        assert stream.read(1 << 20) == block[7:] + block[:7]


def test_files_are_found_renamed_replaced_and_removed(folder: ObjectPath) -> None:
    for name in ("a/data/run/t/1", "a/data/run/u/2", "a/data/other/3", "a/manifests/1.json", "a/manifests/2.json"):
        assert (folder / name).create(name.encode())
    assert sorted(names_below(folder / "a/data")) == ["other/3", "run/t/1", "run/u/2"]
    assert list(names_from(folder / "a/manifests", "2")) == ["2.json"]
    assert list(names_from(folder / "a/manifests")) == ["1.json", "2.json"]
    assert [path.name for path in folder.glob("*/manifests/[0-9]*.json")] == ["1.json", "2.json"]
    assert list(folder.glob("none/*")) == []
    take_name(folder / "a/manifests/1.json", folder / "a/manifests/.1.json.removed")
    replace_file(folder / "a/manifests/2.json", b"new")
    assert (folder / "a/manifests/2.json").read_bytes() == b"new"
    assert (folder / "a/manifests/.1.json.removed").read_bytes() == b"a/manifests/1.json"
    remove_below(folder / "a/data")
    (folder / "a/data/other/3").unlink()  # none is no fault
    assert set(names_below(folder)) == {"a/manifests/.1.json.removed", "a/manifests/2.json"}
    with pytest.raises(FileNotFoundError, match="other/3 is not there"):
        (folder / "a/data/other/3").read_bytes()


def run(program: str, *arguments: str) -> None:
    """In a process of its own, as a pod's: Spark's workers have the environment in which this process first started Spark."""
    command = [sys.executable, "-m", f"herdkeeper_jobs.{program}", *arguments]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rows_are_checkpointed_into_azure_restored_from_there_and_removed(database: Database, folder: ObjectPath) -> None:
    where = ["--zookeeper", database.servers.zookeeper, "--herd-root", database.herd_root]
    with database.tablespace("kept") as kept, database.tablespace("again") as again:
        with database.connect(kept) as connection:
            connection.execute("CREATE TABLE t (k int primary key, v string)")
            for number in range(_ROWS):
                connection.execute(f"INSERT INTO t (k, v) VALUES ({number}, 'row {number}')")
        database.close_ledger(kept)
        key = str(Path(os.environ[FOLDERS]) / "2026-11")
        of_kept = ["--ledgers-root", LEDGERS_ROOT, "--tablespace", kept, "--run-id", "run-1", "--encrypt-with", key]
        run("checkpoint.cli", *where, *of_kept, "--destination", str(folder), *_SPARK)
        (manifest,) = manifests(folder)
        assert isinstance(manifest, ObjectPath)
        assert all(b"row 7" not in (folder / name).read_bytes() for name in names_below(folder))
        restored = ["--tablespace", again, "--manifest", str(manifest), "--run-id", "run-2"]
        run("restore.cli", *where, *restored, *_SPARK)
        with database.connect(again) as connection:
            found = sorted((row["k"], row["v"]) for row in connection.query("SELECT k, v FROM t"))
            assert found == [(number, f"row {number}") for number in range(_ROWS)]
        removes = ["--destination", str(folder), "--run-id", "run-1", "--manifest", manifest.key.removeprefix(f"{folder.key}/")]
        run("checkpoint.removal_cli", *removes)
        assert not list(folder.glob("*/*/data/*"))
        assert not manifests(folder)
