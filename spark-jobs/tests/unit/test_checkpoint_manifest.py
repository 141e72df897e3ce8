"""A manifest is the commit: it exists once per LSN, and never with another content."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from herdkeeper_jobs.checkpoint.errors import InvariantViolated
from herdkeeper_jobs.checkpoint.manifest import (
    Identity,
    Manifest,
    ManifestColumn,
    ManifestFile,
    ManifestTable,
    Position,
    Verification,
    commit_manifest,
    manifest_path,
    tablespace_folder,
)
from herdkeeper_jobs.checkpoint.reading import CheckpointNotFoundError, open_latest
from herdkeeper_jobs.wal.lsn import Lsn

IDENTITY = Identity(
    instance_id="cluster-1", tablespace_uuid="ts-1", tablespace="demo", ledgers_root="/ns/bk/ledgers", herd_root="/ns/db/herd"
)
COLUMN = ManifestColumn(name="k", type="INTEGER", serial_position=0, nullable=False)


def table(digest: str = "0" * 32, files: tuple[ManifestFile, ...] = ()) -> ManifestTable:
    return ManifestTable(
        name="t",
        uuid="u",
        columns=(COLUMN,),
        primary_key=("k",),
        auto_increment=False,
        highest_auto_increment=None,
        rows=sum(file.rows for file in files),
        digest=digest,
        files=files,
        definition="00",
    )


def manifest(run_id: str = "run-1", entry_id: int = 7, content: ManifestTable | None = None, identity: Identity = IDENTITY) -> Manifest:
    return Manifest(
        identity=identity,
        lsn=Position(ledger_id=3, entry_id=entry_id),
        lsn_timestamp_millis=1,
        run_id=run_id,
        entries_read=8,
        tables=(content or table(),),
        indexes=(),
        open_transactions=(),
        restart_lsn=Position(ledger_id=3, entry_id=entry_id),
        verified=Verification(how="Reread", by="the checkpoint job"),
        versions={},
    )


def test_the_path_holds_cluster_tablespace_and_an_lsn_that_sorts(tmp_path: Path) -> None:
    folder = tablespace_folder(tmp_path, IDENTITY)
    path = manifest_path(folder, Lsn(3, 7))
    assert path.relative_to(tmp_path).as_posix() == "cluster-1/ts-1/manifests/00000000000000000003-00000000000000000007.json"
    assert path.name < manifest_path(folder, Lsn(3, 10)).name < manifest_path(folder, Lsn(20, 0)).name


def test_a_manifest_is_written_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    committed = commit_manifest(manifest(), tmp_path)
    assert not committed.existed
    assert [path.name for path in committed.path.parent.iterdir()] == [committed.path.name]
    document = json.loads(committed.path.read_text())
    assert document["schemaVersion"] == 1
    assert document["identity"]["instanceId"] == "cluster-1"
    assert document["tables"][0]["primaryKey"] == ["k"]


def test_a_second_run_with_the_same_content_finds_the_first_ones_manifest(tmp_path: Path) -> None:
    commit_manifest(manifest("run-1"), tmp_path)
    second = commit_manifest(manifest("run-2"), tmp_path)
    assert second.existed
    assert second.manifest.run_id == "run-1"


def test_another_content_at_the_same_lsn_violates_an_invariant_and_the_first_stays(tmp_path: Path) -> None:
    first = commit_manifest(manifest("run-1"), tmp_path)
    with pytest.raises(InvariantViolated, match="table 't'"):
        commit_manifest(manifest("run-2", content=table("1" * 32)), tmp_path)
    assert json.loads(first.path.read_text())["runId"] == "run-1"
    assert len(list(first.path.parent.iterdir())) == 1


def test_a_manifest_of_another_log_in_the_same_place_violates_an_invariant(tmp_path: Path) -> None:
    commit_manifest(manifest(), tmp_path)
    with pytest.raises(InvariantViolated, match="belongs to"):
        commit_manifest(manifest(identity=IDENTITY.model_copy(update={"herd_root": "/other"})), tmp_path)


def test_a_manifest_of_a_newer_schema_is_not_guessed_at(tmp_path: Path) -> None:
    committed = commit_manifest(manifest(), tmp_path)
    committed.path.write_text(json.dumps(json.loads(committed.path.read_text()) | {"schemaVersion": 2}))
    with pytest.raises(InvariantViolated, match="schemaVersion 2"):
        commit_manifest(manifest("run-2"), tmp_path)


def test_the_latest_checkpoint_is_the_one_with_the_highest_lsn(tmp_path: Path) -> None:
    folder = tablespace_folder(tmp_path, IDENTITY)
    for entry_id in (9, 100, 10):
        commit_manifest(manifest(entry_id=entry_id), folder)
    opened = open_latest(tmp_path)
    assert opened.manifest.lsn.lsn == Lsn(3, 100)
    assert opened.load("t").schema.names == ["k"]
    assert opened.load("t").num_rows == 0
    with pytest.raises(CheckpointNotFoundError, match="'nothing'"):
        opened.load("nothing")


def test_a_table_is_loaded_from_all_its_files(tmp_path: Path) -> None:
    folder = tablespace_folder(tmp_path, IDENTITY)
    files = []
    for number in (1, 2):
        path = f"data/run-1/t/p-{number}.parquet"
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"k": pa.array([number], pa.int32())}), folder / path)
        files.append(ManifestFile(path=path, rows=1, size=1, hash=""))
    commit_manifest(manifest(content=table(files=tuple(files))), folder)
    assert open_latest(tmp_path, "ts-1").load("t").to_pydict() == {"k": [1, 2]}


def test_lsns_of_two_tablespaces_are_not_compared(tmp_path: Path) -> None:
    for uuid in ("ts-1", "ts-2"):
        identity = IDENTITY.model_copy(update={"tablespace_uuid": uuid})
        commit_manifest(manifest(identity=identity), tablespace_folder(tmp_path, identity))
    with pytest.raises(CheckpointNotFoundError, match="several tablespaces"):
        open_latest(tmp_path)
    assert open_latest(tmp_path, "ts-2").manifest.identity.tablespace_uuid == "ts-2"


def test_no_checkpoint_is_told_with_the_place_that_was_searched(tmp_path: Path) -> None:
    with pytest.raises(CheckpointNotFoundError, match=str(tmp_path)):
        open_latest(tmp_path)
