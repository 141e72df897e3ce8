"""HerdDB's record of a tablespace, as found in ZooKeeper."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.codecs.herddb.tablespace import TablespaceRecord


@dataclass(frozen=True)
class RecordAbsent:
    """HerdDB has no tablespace of this name."""


@dataclass(frozen=True)
class VersionedRecord:
    """HerdDB's record and its znode's version, for a compare-and-set.

    `changed_at`: its last write in Unix seconds by ZooKeeper's clock; None if not read.
    """

    record: TablespaceRecord
    version: int
    changed_at: float | None = None
