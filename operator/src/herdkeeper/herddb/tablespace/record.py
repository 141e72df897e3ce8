"""HerdDB's record of a tablespace as it was found in ZooKeeper."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.codecs.herddb.tablespace import TablespaceRecord


@dataclass(frozen=True)
class RecordAbsent:
    """HerdDB has no tablespace of this name."""


@dataclass(frozen=True)
class VersionedRecord:
    """HerdDB's record and the version of its znode, which a compare-and-set needs.

    `changed_at`: when it was last written, in seconds since 1970 by ZooKeeper's clock; None when that was not looked at.
    """

    record: TablespaceRecord
    version: int
    changed_at: float | None = None
