"""The manifest of a fold."""

from __future__ import annotations

import platform
from importlib import metadata

from herdkeeper.codecs.herddb.index import IndexDefinition
from herdkeeper.codecs.herddb.table import TableDefinition, encode_table
from herdkeeper_jobs.checkpoint.data_files import WrittenTable
from herdkeeper_jobs.checkpoint.folded_log import Folded
from herdkeeper_jobs.checkpoint.follower_base import CLOCKS_DIFFER_MILLIS, FollowerBase
from herdkeeper_jobs.manifests.continuation import Continuation
from herdkeeper_jobs.manifests.manifest import (
    Identity,
    Making,
    Manifest,
    ManifestColumn,
    ManifestIndex,
    ManifestTable,
    ManifestTransaction,
    Position,
    Verification,
)
from herdkeeper_jobs.wal.log_state import StartingPoint


def manifest_of(identity: Identity, run_id: str, folded: Folded, verified: Verification, making: Making) -> Manifest:
    """Returns the manifest of a verified fold, without encryption."""
    timeline = folded.timeline
    return Manifest(
        identity=identity,
        lsn=Position.of(folded.cut.lsn),
        lsn_timestamp_millis=folded.extent.last_timestamp_millis,
        latest_timestamp_millis=_latest(folded),
        run_id=run_id,
        entries_read=folded.extent.entries,
        tables=tuple(
            manifest_table(table, written, folded.highest_keys.get(table.uuid))
            for table, written in zip(timeline.tables, folded.written, strict=True)
        ),
        indexes=tuple(map(manifest_index, timeline.indexes)),
        open_transactions=tuple(
            ManifestTransaction(transaction_id=transaction.transaction_id, begin=Position.of(transaction.begin))
            for transaction in timeline.open_transactions
        ),
        restart_lsn=Position.of(StartingPoint(folded.cut.lsn, timeline.state).restart),
        verified=verified,
        versions=_versions(),
        base=None if folded.base is None else folded.base.record,
        whole_log_at_millis=None if folded.base is None else folded.base.whole_log_at,
        begun_alone=folded.unproven_follower if verified.how in ("Self", "Reread") else None,
        continuation=Continuation.of(timeline.state),
        made=making,
    )


def manifest_index(index: IndexDefinition) -> ManifestIndex:
    """An index's part of the manifest."""
    columns = tuple(name for name, _, _ in index.columns)
    return ManifestIndex(name=index.name, table=index.table, type=index.type, unique=index.unique, columns=columns)


def manifest_table(table: TableDefinition, written: WrittenTable, highest_key: int | None) -> ManifestTable:
    """A written table's part of the manifest; `highest_key`: the highest auto-increment key, None without one."""
    return ManifestTable(
        name=table.name,
        uuid=table.uuid,
        columns=tuple(
            ManifestColumn(name=column.name, type=column.type.name, serial_position=column.serial_position, nullable=column.nullable)
            for column in table.columns
        ),
        primary_key=table.primary_key,
        auto_increment=table.auto_increment,
        highest_auto_increment=highest_key,
        rows=written.digest.rows,
        digest=written.digest.hex,
        files=written.files,
        definition=encode_table(table).hex(),
    )


def _latest(folded: Folded) -> int | None:
    """Upper bound of the times of all entries up to the LSN; None if unknown."""
    base, read = folded.base, folded.extent.latest_timestamp_millis
    before = None if base is None else base.latest_timestamp_millis
    if base is not None and before is None:
        return None  # the base or one before it comes from an earlier version, which did not record it
    if isinstance(base, FollowerBase) and read is not None:
        # This job's clock may be behind. The first entry read is where the follower was held, stamped by its leader.
        read += CLOCKS_DIFFER_MILLIS
    return max((millis for millis in (before, read) if millis is not None), default=None)


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in ("herdkeeper", "pyspark", "pyarrow"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed as a package"
    return versions
