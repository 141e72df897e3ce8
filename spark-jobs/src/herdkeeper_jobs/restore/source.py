"""The checkpoint to restore, from its manifest. Whatever SQL can't express is refused before anything is created."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace

from xxhash import xxh3_128_hexdigest

from herdkeeper.codecs.herddb.table import ForeignKey, TableDefinition, beginning, decode_table, is_queryable
from herdkeeper.protocol.restore_bookkeeping import RESTORE_TABLE
from herdkeeper_jobs.checkpoint.expressible import inexpressible, needs_a_shorter_name
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder
from herdkeeper_jobs.errors import InvariantViolated, RestoreRefused
from herdkeeper_jobs.manifests.manifest import (
    Manifest,
    ManifestFile,
    ManifestIndex,
    ManifestTable,
    manifest_path,
    read_manifest,
)
from herdkeeper_jobs.storage.stored_path import StoredPath


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table of the checkpoint. `definition` is HerdDB's own."""

    manifest: ManifestTable
    definition: TableDefinition
    indexes: tuple[ManifestIndex, ...]

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def files(self) -> tuple[ManifestFile, ...]:
        return self.manifest.files


@dataclass(frozen=True, slots=True)
class Source:
    """A checkpoint. `hash` is XXH3-128 of the manifest's bytes, by which a continued restore recognizes it."""

    manifest: Manifest
    path: StoredPath
    hash: str
    tables: tuple[SourceTable, ...]
    left_out: tuple[str, ...] = ()
    """Indexes and foreign keys that `tables` lack, since they could not be made (see `_usable`)."""

    @property
    def folder(self) -> ParquetFolder:
        """The tablespace's folder; paths of files are relative to it."""
        return self.manifest.files_in(self.path.parent.parent)

    @property
    def rows(self) -> int:
        return sum(table.manifest.rows for table in self.tables)

    def parent_of(self, uuid: str) -> str:
        """The name of the table that a foreign key refers to."""
        return next(table.name for table in self.tables if table.definition.uuid == uuid)


def open_source(path: StoredPath) -> Source:
    """Opens the checkpoint of a manifest file.

    Raises:
        RestoreRefused: the file is missing, or SQL can't express its content; names table and column.
        InvariantViolated: it is no manifest, was moved or changed, or contradicts itself.
        KeyUnusable: it is encrypted, and its key is missing.
    """
    if not path.is_file():
        raise RestoreRefused(
            f"--manifest is {str(path)!r}: no such file; give <INSTANCEID>/<tablespace uuid>/manifests/<ledger>-<entry>.json"
        )
    manifest = read_manifest(path)
    if "/".join(path.parts[-4:-1]) != f"{manifest.identity.path}/manifests":
        raise InvariantViolated(f"{path} says that it belongs to {manifest.identity.path}/manifests")
    if manifest_path(path.parent.parent, manifest.lsn.lsn) != path:
        raise InvariantViolated(f"{path} is for LSN {manifest.lsn.lsn}")
    tables = tuple(_table(manifest, table) for table in manifest.tables)
    by_uuid = {table.definition.uuid: table.definition for table in tables}
    names = {table.name for table in tables}
    usable = tuple(_usable(table, by_uuid, names) for table in tables)
    left_out = tuple(what for before, after in zip(tables, usable, strict=True) for what in _left_out(before, after))
    return Source(manifest, path, xxh3_128_hexdigest(path.read_bytes()), usable, left_out)


def _usable(table: SourceTable, tables: Mapping[str, TableDefinition], names: Set[str]) -> SourceTable:
    """The table without indexes and foreign keys that can't be made: a column or the parent is gone, a unique index has a table's name, or
    a key has a name that no SELECT accepts: HerdDB checks the rows by one when it adds the key.

    `tables`: by uuid.
    """
    own = _columns(table.definition)
    keys = tuple(key for key in table.definition.foreign_keys if _can_be_added(key, table.definition, tables.get(key.parent_uuid)))
    indexes = tuple(index for index in table.indexes if own.issuperset(index.columns) and not (index.unique and index.name in names))
    return replace(table, definition=replace(table.definition, foreign_keys=keys), indexes=indexes)


def _can_be_added(key: ForeignKey, child: TableDefinition, parent: TableDefinition | None) -> bool:
    return (
        parent is not None
        and _columns(child).issuperset(key.columns)
        and _columns(parent).issuperset(key.parent_columns)
        and all(map(is_queryable, (child.name, parent.name, *key.columns, *key.parent_columns)))
    )


def _columns(table: TableDefinition) -> set[str]:
    return {column.name for column in table.columns}


def _left_out(before: SourceTable, after: SourceTable) -> Iterator[str]:
    yield from (f"index {index.name!r} of table {before.name!r}" for index in before.indexes if index not in after.indexes)
    kept = after.definition.foreign_keys
    yield from (f"foreign key {key.name!r} of table {before.name!r}" for key in before.definition.foreign_keys if key not in kept)


def _table(manifest: Manifest, table: ManifestTable) -> SourceTable:
    definition = decode_table(bytes.fromhex(table.definition))
    if sum(file.rows for file in table.files) != table.rows:
        raise InvariantViolated(f"table {table.name!r}: the manifest says {table.rows} rows, and other numbers for its files")
    if table.name == RESTORE_TABLE:
        raise RestoreRefused(f"the checkpoint has a table {table.name!r}: a restore needs this name for itself")
    indexes = tuple(index for index in manifest.indexes if index.table == table.name)
    if needs_a_shorter_name(definition, table.rows, table.highest_auto_increment):
        raise RestoreRefused(f"table {beginning(table.name)}: its name is too long for an INSERT: rename it, and make another Checkpoint")
    for reason in inexpressible(definition, indexes):
        raise RestoreRefused(f"table {table.name!r}: {reason}, so no statement makes it again")
    return SourceTable(table, definition, indexes)
