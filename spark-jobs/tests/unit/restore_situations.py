"""A checkpoint on disk, made as by the checkpoint job, for the tests of the restore."""

from __future__ import annotations

from typing import cast

import pyarrow as pa
from places import write
from xxhash import xxh3_128_hexdigest

from herdkeeper.codecs.herddb.record import Stored, encode_row
from herdkeeper.codecs.herddb.row_digest import digest_of_rows
from herdkeeper.codecs.herddb.table import Column, ColumnType, ForeignKey, TableDefinition
from herdkeeper_jobs.checkpoint.arrow_table import arrow_schema
from herdkeeper_jobs.checkpoint.data_files import WrittenTable
from herdkeeper_jobs.checkpoint.folded_manifest import manifest_table
from herdkeeper_jobs.encryption.keys import Key
from herdkeeper_jobs.encryption.parquet_folder import FileKey, ParquetFolder
from herdkeeper_jobs.manifests.manifest import (
    Encryption,
    Identity,
    Manifest,
    ManifestFile,
    ManifestIndex,
    ManifestTable,
    Position,
    Verification,
    commit_manifest,
    files_in,
    tablespace_folder,
)
from herdkeeper_jobs.storage.stored_path import AnyPath

IDENTITY = Identity(instance_id="i-1", tablespace_uuid="ts-1", tablespace="demo", ledgers_root="/l", herd_root="/h")
PARENT = TableDefinition(
    "demo",
    "parent",
    "uuid-parent",
    (
        Column("id", ColumnType.LONG, 0, nullable=False),
        Column("at", ColumnType.TIMESTAMP, 1),
        Column("f", ColumnType.FLOAT_ARRAY, 2),
        Column("x", ColumnType.BYTES, 3),
    ),
    ("id",),
)
CHILD = TableDefinition(
    "demo",
    "child",
    "uuid-child",
    (Column("k", ColumnType.INTEGER, 0), Column("p", ColumnType.LONG, 1)),
    ("k",),
    True,
    1,
    (ForeignKey("fk", "uuid-parent", ("p",), ("id",), on_delete=1),),
)
UNIQUE = ManifestIndex(name="child_unique_p", table="child", type="brin", unique=True, columns=("p",))
PARENT_ROWS: list[dict[str, Stored]] = [
    {"id": number, "at": None if number % 3 else -62_200_000_000_000 + number, "f": (0.5, number), "x": bytes([number % 256])}
    for number in range(250)
]
CHILD_ROWS: list[dict[str, Stored]] = [{"k": number, "p": None if number % 2 else number} for number in range(40)]


def write_checkpoint(
    destination: AnyPath,
    tables: dict[TableDefinition, list[dict[str, Stored]]],
    indexes: tuple[ManifestIndex, ...] = (),
    highest: dict[str, int] | None = None,
    key: Key | None = None,
) -> AnyPath:
    """Writes a checkpoint with two files per table, encrypted if there is a key; returns its manifest."""
    folder = tablespace_folder(destination, IDENTITY)
    encryption = None if key is None else Encryption.with_file_key(FileKey.new(key))
    files = files_in(folder, encryption)
    manifest = Manifest(
        identity=IDENTITY,
        lsn=Position(ledger_id=3, entry_id=9),
        lsn_timestamp_millis=1,
        run_id="run",
        entries_read=10,
        tables=tuple(_table(files, table, rows, (highest or {}).get(table.name)) for table, rows in tables.items()),
        indexes=indexes,
        open_transactions=(),
        restart_lsn=Position(ledger_id=3, entry_id=9),
        verified=Verification(how="Reread", by="a test"),
        versions={},
        encryption=encryption,
    )
    return cast("AnyPath", commit_manifest(manifest, folder, key).path)


def _table(folder: ParquetFolder, table: TableDefinition, rows: list[dict[str, Stored]], highest: int | None) -> ManifestTable:
    half = len(rows) // 2
    files = tuple(_file(folder, table, part, number) for number, part in enumerate((rows[:half], rows[half:])) if part)
    return manifest_table(table, WrittenTable(digest_of_rows([encode_row(table, row) for row in rows]), files), highest)


def _file(folder: ParquetFolder, table: TableDefinition, rows: list[dict[str, Stored]], number: int) -> ManifestFile:
    path = f"data/run/{table.name}/p-{number}.parquet"
    content = pa.BufferOutputStream()
    schema = arrow_schema(table)
    columns = [pa.array([row.get(field.name) for row in rows], _plain(field.type)).cast(field.type) for field in schema]
    with folder.writer(path, content, schema) as writer:
        writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=50)
    data = content.getvalue().to_pybytes()
    write(folder / path, data)
    return ManifestFile(path=path, rows=len(rows), size=len(data), hash=xxh3_128_hexdigest(data))


def _plain(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_timestamp(kind) else kind
