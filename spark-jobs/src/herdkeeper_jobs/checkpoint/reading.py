"""Reads checkpoints: finds the latest one of a tablespace, lists its tables, loads a table. Needs neither Spark nor the cluster.

For an encrypted one the variable ENCRYPTION_KEYS names folders with keys, see `encryption.keys`.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from herdkeeper.codecs.herddb.table import ColumnType
from herdkeeper_jobs.checkpoint.arrow_table import ARROW_TYPES
from herdkeeper_jobs.manifests.manifest import Manifest, ManifestTable, manifests, read_manifest
from herdkeeper_jobs.storage.stored_path import StoredPath


class CheckpointNotFoundError(LookupError):
    """There is no such checkpoint or table; the message says where was looked."""


@dataclass(frozen=True, slots=True)
class OpenedCheckpoint:
    """A checkpoint in a folder, or in an object store."""

    manifest: Manifest
    folder: StoredPath
    """The tablespace's folder, which the paths of files are relative to."""

    def table(self, name: str) -> ManifestTable:
        """What the manifest says of a table. Raises CheckpointNotFoundError naming those that it has."""
        for table in self.manifest.tables:
            if table.name == name:
                return table
        raise CheckpointNotFoundError(f"no table {name!r} in the checkpoint; it has {[table.name for table in self.manifest.tables]}")

    def load(self, name: str) -> pa.Table:
        """All rows of a table, in no order; timestamps in UTC. Raises CheckpointNotFoundError."""
        table = self.table(name)
        schema = pa.schema([pa.field(column.name, ARROW_TYPES[ColumnType[column.type]]) for column in table.columns])
        folder = self.manifest.files_in(self.folder)
        return pa.concat_tables([schema.empty_table(), *(folder.read_parquet(file.path, schema) for file in table.files)])


def open_manifest(path: StoredPath) -> OpenedCheckpoint:
    """The checkpoint of one manifest file. Raises InvariantViolated for a file that is not a manifest, KeyUnusable without its key."""
    return OpenedCheckpoint(read_manifest(path), path.parent.parent)


def open_latest(destination: StoredPath, tablespace_uuid: str = "*") -> OpenedCheckpoint:
    """The checkpoint with the highest LSN.

    Raises:
        CheckpointNotFoundError: there is none, or there are several tablespaces and none was named, whose LSNs can't be compared.
    """
    found = manifests(destination, tablespace_uuid=tablespace_uuid)
    if not found:
        raise CheckpointNotFoundError(f"no manifest below {destination} for tablespace uuid {tablespace_uuid}")
    if len({path.parent for path in found}) > 1:
        raise CheckpointNotFoundError(f"several tablespaces below {destination}: name one of {sorted({p.parts[-3] for p in found})}")
    return open_manifest(found[-1])
