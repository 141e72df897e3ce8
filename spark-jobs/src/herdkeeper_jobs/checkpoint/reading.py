"""Reads checkpoints: finds a tablespace's latest one, lists its tables, loads a table. Needs neither Spark nor the cluster.

Encrypted checkpoints need the variable ENCRYPTION_KEYS, which names folders with keys: see `encryption.keys`.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from herdkeeper.codecs.herddb.table import ColumnType
from herdkeeper_jobs.checkpoint.arrow_table import ARROW_TYPES
from herdkeeper_jobs.manifests.manifest import Manifest, ManifestTable, manifests, read_manifest
from herdkeeper_jobs.storage.stored_path import StoredPath


class CheckpointNotFoundError(LookupError):
    """There is no such checkpoint or table; the message says where the search was."""


@dataclass(frozen=True, slots=True)
class OpenedCheckpoint:
    """A checkpoint in a folder or an object store."""

    manifest: Manifest
    folder: StoredPath
    """The tablespace's folder; paths of files are relative to it."""

    def table(self, name: str) -> ManifestTable:
        """Returns a table's part of the manifest. Raises CheckpointNotFoundError, naming the existing tables."""
        for table in self.manifest.tables:
            if table.name == name:
                return table
        raise CheckpointNotFoundError(f"no table {name!r} in the checkpoint; it has {[table.name for table in self.manifest.tables]}")

    def load(self, name: str) -> pa.Table:
        """Returns all rows of a table, unordered; timestamps are in UTC. Raises CheckpointNotFoundError."""
        table = self.table(name)
        schema = pa.schema([pa.field(column.name, ARROW_TYPES[ColumnType[column.type]]) for column in table.columns])
        folder = self.manifest.files_in(self.folder)
        return pa.concat_tables([schema.empty_table(), *(folder.read_parquet(file.path, schema) for file in table.files)])


def open_manifest(path: StoredPath) -> OpenedCheckpoint:
    """Opens the checkpoint of one manifest file. Raises InvariantViolated if it is no manifest, KeyUnusable without its key."""
    return OpenedCheckpoint(read_manifest(path), path.parent.parent)


def open_latest(destination: StoredPath, tablespace_uuid: str = "*") -> OpenedCheckpoint:
    """Opens the checkpoint with the highest LSN.

    Raises:
        CheckpointNotFoundError: there is none, or there are several tablespaces, whose LSNs can't be compared.
    """
    found = manifests(destination, tablespace_uuid=tablespace_uuid)
    if not found:
        raise CheckpointNotFoundError(f"no manifest below {destination} for tablespace uuid {tablespace_uuid}")
    if len({path.parent for path in found}) > 1:
        raise CheckpointNotFoundError(f"several tablespaces below {destination}: name one of {sorted({p.parts[-3] for p in found})}")
    return open_manifest(found[-1])
