"""Encrypted data is restored with its key. It is refused early if the key is missing or a manifest was changed."""

from __future__ import annotations

import json
import pickle
import runpy
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import all_files, write
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from restore_situations import CHILD, CHILD_ROWS, PARENT, PARENT_ROWS, UNIQUE, write_checkpoint
from secret_keys import MountedSecret

from herdkeeper.codecs.herddb.record import encode_row
from herdkeeper.codecs.herddb.row_digest import digest_of_rows
from herdkeeper.protocol.job_summary import JobOutcome
from herdkeeper_jobs.checkpoint import cli as checkpoint_cli
from herdkeeper_jobs.checkpoint.attempts import Attempt
from herdkeeper_jobs.checkpoint.base import stored_rows
from herdkeeper_jobs.checkpoint.data_files import verify_files, write_tables
from herdkeeper_jobs.checkpoint.reading import open_latest
from herdkeeper_jobs.checkpoint.removal import remove_checkpoint
from herdkeeper_jobs.encryption.keys import FOLDERS
from herdkeeper_jobs.encryption.parquet_folder import FileKey, ParquetFolder
from herdkeeper_jobs.errors import InvariantViolated, KeyUnusable
from herdkeeper_jobs.manifests.manifest import read_manifest, read_outline
from herdkeeper_jobs.restore import cli
from herdkeeper_jobs.restore.chunks import row_groups
from herdkeeper_jobs.restore.source import open_source
from herdkeeper_jobs.restore.verify import _file_digests, check_files
from herdkeeper_jobs.storage.stored_path import StoredPath
from herdkeeper_jobs.task_error import outcome_of_tasks
from herdkeeper_jobs.termination_message import VARIABLE

TABLES = {PARENT: PARENT_ROWS, CHILD: CHILD_ROWS}


def changed(path: StoredPath, **changes: object) -> None:
    """Changes values in a manifest's plain part."""
    write(path, json.dumps(json.loads(path.read_bytes()) | changes).encode())


def test_an_encrypted_checkpoint_is_read_by_row_groups_as_it_was_written(
    spark: SparkSession, place: StoredPath, keys: MountedSecret
) -> None:
    source = open_source(write_checkpoint(place, TABLES, (UNIQUE,), key=keys.add("2026-11")))
    check_files(spark, source)
    groups = row_groups(enumerate(source.tables), source.folder, 20, 1 << 30)
    assert sum(group.rows for group in groups) == len(PARENT_ROWS) + len(CHILD_ROWS)
    assert [found.hex for found in _file_digests(spark, source, groups)] == [table.manifest.digest for table in source.tables]
    assert open_latest(place).load("child").num_rows == len(CHILD_ROWS)


def test_the_rows_of_an_encrypted_base_are_given_as_they_were_stored(place: StoredPath, keys: MountedSecret) -> None:
    source = open_source(write_checkpoint(place, TABLES, key=keys.add("2026-11")))
    for table in source.tables:
        found = [row for file in table.files for rows in stored_rows(source.folder, file, table.definition) for row in rows]
        assert digest_of_rows(found).hex == table.manifest.digest


class PlayedTasks:
    """Rows in two tasks, which get what Spark would pass them: a function as bytes."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        self.handed_around = b""
        self.results: list[Any] = []

    def mapInArrow(self, func: Any, schema: str) -> Any:  # noqa: N802 - Spark's name
        self.handed_around = cloudpickle.dumps(func)
        half = len(self.rows) // 2
        for part in (self.rows.slice(0, half), self.rows.slice(half)):
            work = pickle.loads(self.handed_around)
            self.results += [row for batch in work(iter(part.to_batches(64))) for row in batch.to_pylist()]
        return self

    def collect(self) -> list[Any]:
        return self.results


def test_tasks_write_and_read_with_a_key_that_was_never_handed_to_them(spark: SparkSession, tmp_path: Path, keys: MountedSecret) -> None:
    key = keys.add("2026-11")
    stored = [encode_row(PARENT, row) for row in PARENT_ROWS]
    columns = {"table_index": pa.array([0] * len(stored), pa.int32()), "row_key": [row[0] for row in stored]}
    tasks = PlayedTasks(pa.table(columns | {"row_value": [row[1] for row in stored]}))
    folder = ParquetFolder(tmp_path, FileKey.new(key))
    written = write_tables(tasks, (PARENT,), folder, Attempt.begin(folder.place, "run"))
    assert written[0].digest == digest_of_rows(stored)
    assert len(written[0].files) == 2
    verify_files(spark, [(PARENT, written[0])], folder)
    assert folder.key is not None
    for secret in (key.content, folder.key.open(tmp_path)):
        assert secret not in tasks.handed_around
    file = written[0].files[0]
    write(tmp_path / file.path, (tmp_path / file.path).read_bytes()[:-1])
    with pytest.raises(InvariantViolated, match=f"{file.path} has other bytes"):
        verify_files(spark, [(PARENT, written[0])], folder)


def test_without_its_key_a_restore_ends_before_it_begins_and_names_secret_key_and_what_to_do(
    place: StoredPath, keys: MountedSecret, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_checkpoint(place, TABLES, key=keys.add("2026-11"))
    keys.remove("2026-11")
    keys.add("2027-05")
    for name, value in (("HERDDB_USERNAME", "admin"), ("HERDDB_PASSWORD", "secret"), (VARIABLE, str(tmp_path / "said"))):
        monkeypatch.setenv(name, value)
    # Nothing listens at this address, and the message is not about that.
    arguments = {"--server": "127.0.0.1:1", "--tablespace": "t", "--run-id": "r", "--manifest": str(path)}
    assert cli.main([part for pair in arguments.items() for part in pair]) == 2
    message = json.loads((tmp_path / "said").read_text())["message"]
    assert f"{path} is encrypted with the key '2026-11'" in message
    assert "the Secret backup-keys has '2027-05'; put that key back" in message


@pytest.mark.parametrize(
    ("wanted", "listed", "words"),
    [
        ("2026-11", True, "the Secret backup-keys has no key '2026-11': add it to the Secret; make one with: openssl rand"),
        ("", True, "the Secret backup-keys has no key: add one"),
        ("a", False, "list its folder in the variable ENCRYPTION_KEYS, too, to read what is written"),
    ],
    ids=["not there", "none at all", "not for tasks"],
)
def test_a_checkpoint_that_can_not_be_encrypted_is_refused_before_anything_is_read(
    wanted: str, listed: bool, words: str, tmp_path: Path, keys: MountedSecret, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not listed:
        keys.add(wanted)
        monkeypatch.delenv(FOLDERS)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "said"))
    where = {"--zookeeper": "127.0.0.1:1", "--ledgers-root": "/l", "--herd-root": "/h", "--tablespace": "t"}
    arguments = {**where, "--destination": str(tmp_path), "--run-id": "r", "--encrypt-with": str(keys.folder / wanted)}
    assert checkpoint_cli.main([part for pair in arguments.items() for part in pair]) == 2
    assert words in json.loads((tmp_path / "said").read_text())["message"]


def test_a_key_that_only_a_task_lacks_ends_the_job_for_good_as_it_does_in_the_driver() -> None:
    """Executors whose pods lack the driver's keys."""
    raised = "Job aborted: Traceback\n  herdkeeper_jobs.errors.KeyUnusable: f is encrypted with the key 'a'\n"
    assert outcome_of_tasks(raised) is JobOutcome.CONFIGURATION_REFUSED
    assert outcome_of_tasks(raised.replace("KeyUnusable", "InvariantViolated")) is JobOutcome.INVARIANT_VIOLATED
    assert outcome_of_tasks("OSError: reset by peer") is JobOutcome.RETRYABLE


def test_the_clear_part_of_a_manifest_has_no_columns_no_definitions_and_no_digests(place: StoredPath, keys: MountedSecret) -> None:
    path = write_checkpoint(place, TABLES, (UNIQUE,), highest={"child": 40}, key=keys.add("2026-11"))
    document = json.loads(path.read_bytes())
    assert document["schemaVersion"] == 2
    assert document["encryption"]["keyName"] == "2026-11"
    assert {key for table in document["tables"] for key in table} == {"name", "uuid", "rows", "files"}
    assert not {"indexes", "continuation"} & document.keys()
    keys.remove("2026-11")
    outline = read_outline(path)
    assert {table.name: table.rows for table in outline.tables} == {"parent": len(PARENT_ROWS), "child": len(CHILD_ROWS)}
    with pytest.raises(KeyUnusable):
        read_manifest(path)


def lsn(document: dict[str, Any]) -> dict[str, object]:
    return {"lsn": {"ledgerId": 3, "entryId": 8}}


def fewer_files(document: dict[str, Any]) -> dict[str, object]:
    return {"tables": [{**table, "files": table["files"][:1]} for table in document["tables"]]}


def swapped_files(document: dict[str, Any]) -> dict[str, object]:
    first, second = document["tables"]
    return {"tables": [{**first, "files": second["files"]}, {**second, "files": first["files"]}]}


def another_file_key(document: dict[str, Any]) -> dict[str, object]:
    return {"encryption": document["encryption"] | {"fileKey": document["encryption"]["sealed"]}}


def cut_off_seal(document: dict[str, Any]) -> dict[str, object]:
    return {"encryption": document["encryption"] | {"sealed": document["encryption"]["sealed"][:-4]}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lsn, "was changed: its plain part differs from what the key '2026-11' sealed"),
        (fewer_files, "was changed"),
        (swapped_files, "was changed"),
        (another_file_key, "was changed"),
        (cut_off_seal, "was changed: the key '2026-11' of the Secret backup-keys did not seal this content"),
        (lambda document: {"encryption": None}, "schemaVersion 2 without what was sealed"),
        (lambda document: {"schemaVersion": 1}, "is not a manifest"),
    ],
    ids=["LSN", "fewer files", "swapped files", "another file key", "cut off", "no encryption", "as if it were plain"],
)
def test_a_manifest_that_was_changed_is_refused(change: Any, words: str, place: StoredPath, keys: MountedSecret) -> None:
    path = write_checkpoint(place, TABLES, key=keys.add("2026-11"))
    changed(path, **change(json.loads(path.read_bytes())))
    with pytest.raises(InvariantViolated, match=words):
        open_source(path)


def test_a_manifest_under_the_name_of_another_moment_is_refused(place: StoredPath, keys: MountedSecret) -> None:
    path = write_checkpoint(place, TABLES, key=keys.add("2026-11"))
    moved = path.with_name(path.name.replace("9.json", "8.json"))
    write(moved, path.read_bytes())
    with pytest.raises(InvariantViolated, match="is for LSN 3,9"):
        open_source(moved)


def test_an_encrypted_checkpoint_is_removed_though_its_key_is_lost(place: StoredPath, keys: MountedSecret) -> None:
    path = write_checkpoint(place, TABLES, key=keys.add("2026-11"))
    keys.remove("2026-11")
    removed = remove_checkpoint(place, "run", "/".join(path.parts[-4:]))
    assert (removed.existed, removed.files) == (True, 4)
    assert all_files(place) == set()


def test_the_program_in_the_examples_decrypts_a_checkpoint_by_hand(
    tmp_path: Path, keys: MountedSecret, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_checkpoint(tmp_path / "copy", TABLES, key=keys.add("2026-11"))
    expected = open_latest(tmp_path / "copy").load("parent")
    monkeypatch.setattr(sys, "argv", ["decrypt", str(keys.folder / "2026-11"), str(path), str(tmp_path / "plain")])
    runpy.run_path(str(Path(__file__).parents[3] / "examples/decrypt_checkpoint.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == ["parent: 250 rows", "child: 40 rows"]
    found = pa.concat_tables([pq.read_table(file) for file in sorted((tmp_path / "plain" / "parent").iterdir())])
    assert found.sort_by("id") == expected.sort_by("id")
