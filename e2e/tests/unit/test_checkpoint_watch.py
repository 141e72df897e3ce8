"""What is seen of checkpoints that are whole, damaged or gone."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from herdkeeper_e2e.checkpoint_watch import look
from herdkeeper_jobs.manifests.manifest import (
    Identity,
    Manifest,
    ManifestColumn,
    ManifestFile,
    ManifestTable,
    Position,
    Verification,
    commit_manifest,
    tablespace_folder,
)
from herdkeeper_jobs.storage.stored_path import file_hash

NOTHING: frozenset[Path] = frozenset()
IDENTITY = Identity(instance_id="cluster", tablespace_uuid="space", tablespace="flights", ledgers_root="/ledgers", herd_root="/herd")
FILE = "data/run/planes/p-00000.parquet"


def checkpoint(destination: Path, rows: int = 3, told: int = 3) -> Path:
    """A checkpoint of one table with so many rows, of which the manifest tells another number; its manifest."""
    folder = tablespace_folder(destination, IDENTITY)
    path = folder / FILE
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"id": pa.array(range(rows), pa.int64())}), path)
    table = ManifestTable(
        name="planes",
        uuid="table",
        columns=(ManifestColumn(name="id", type="LONG", serial_position=0, nullable=False),),
        primary_key=("id",),
        auto_increment=False,
        highest_auto_increment=None,
        rows=told,
        digest="",
        files=(ManifestFile(path=FILE, rows=told, size=path.stat().st_size, hash=file_hash(path)),),
        definition="",
    )
    at = Position(ledger_id=1, entry_id=2)
    manifest = Manifest(
        identity=IDENTITY,
        lsn=at,
        lsn_timestamp_millis=None,
        run_id="run",
        entries_read=3,
        tables=(table,),
        indexes=(),
        open_transactions=(),
        restart_lsn=at,
        verified=Verification(how="Reread", by=""),
        versions={},
    )
    commit_manifest(manifest, folder)
    (found,) = (folder / "manifests").glob("[0-9]*.json")
    return found


def test_a_whole_checkpoint_is_seen_and_nothing_is_wrong(tmp_path: Path) -> None:
    assert look(tmp_path, NOTHING) == (NOTHING, [])
    manifest = checkpoint(tmp_path)
    assert look(tmp_path, NOTHING) == (frozenset({manifest}), [])


def test_a_file_with_other_bytes_is_named(tmp_path: Path) -> None:
    file = checkpoint(tmp_path).parent.parent / FILE
    file.write_bytes(file.read_bytes() + b"!")
    (wrong,) = look(tmp_path, NOTHING)[1]
    assert f"{FILE} has other bytes" in wrong


def test_rows_that_are_missing_and_files_that_are_gone_are_told(tmp_path: Path) -> None:
    manifest = checkpoint(tmp_path, rows=2)
    assert "table planes has 2 rows, and 3 were written" in look(tmp_path, NOTHING)[1][0]
    (manifest.parent.parent / FILE).unlink()
    assert "FileNotFoundError" in look(tmp_path, NOTHING)[1][0]


def test_a_checkpoint_that_was_there_before_and_is_not_any_more_is_wrong(tmp_path: Path) -> None:
    manifest = checkpoint(tmp_path)
    manifest.unlink()
    assert look(tmp_path, frozenset({manifest})) == (NOTHING, [f"{manifest} is not there any more"])


def test_a_name_where_readers_are_held_is_no_checkpoint_and_holds_nobody_here(tmp_path: Path) -> None:
    manifest = checkpoint(tmp_path)
    os.mkfifo(manifest.with_name("00000000000000000000-00000000000000000000.json"))
    assert look(tmp_path, NOTHING) == (frozenset({manifest}), [])
