"""Reports in ZooKeeper how far a log is archived, and reads there what may be deleted. The operator releases the log by it.

Progress is reported after its commit, and a deletion before it happens.
"""

from __future__ import annotations

from contextlib import suppress

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError
from kazoo.handlers.threading import KazooTimeoutError

from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.protocol.log_archive import (
    ArchivedRange,
    ArchiveProgress,
    ExpiryOrder,
    archive_progress_path,
    decode_archive_progress,
    decode_expiry_order,
    encode_archive_progress,
    expiry_order_path,
)
from herdkeeper_jobs.archive.segment import Place, SegmentManifest
from herdkeeper_jobs.bookkeeper.znode import put_znode
from herdkeeper_jobs.errors import CheckpointRetryable
from herdkeeper_jobs.log_source import read_znode


def held_from(oldest: SegmentManifest, newest: SegmentManifest) -> ArchivedRange:
    """The range from one segment to another."""
    return ArchivedRange(
        first=oldest.first.lsn,
        first_millis=oldest.lowest_timestamp_millis,
        begins_log=oldest.begins_log,
        last=newest.last.lsn,
        last_millis=newest.highest_timestamp_millis,
        resume=newest.resume,
    )


def published_progress(client: KazooClient, place: Place, destination: str) -> ArchiveProgress:
    """The last report on the archive at a destination; empty for another destination, or an unreadable report. Raises as `read_znode`."""
    with suppress(MalformedDataError):
        read = read_znode(client, _path(place))
        found = None if read is None else decode_archive_progress(read[0])
        if found is not None and found.destination == destination:
            return found
    return ArchiveProgress(destination, None, None, None)


def expiry_order(client: KazooClient, place: Place, destination: str) -> ExpiryOrder | None:
    """What may be deleted of the archive at a destination; None while nothing may.

    Raises:
        CheckpointRetryable: ZooKeeper does not answer.
        MalformedDataError: the order can't be read, so nothing may be deleted.
    """
    read = read_znode(client, expiry_order_path(place.identity.herd_root, place.identity.tablespace_uuid))
    found = None if read is None else decode_expiry_order(read[0])
    return None if found is None or found.destination != destination else found


def publish_progress(client: KazooClient, place: Place, progress: ArchiveProgress) -> None:
    """Writes the report. Raises CheckpointRetryable if ZooKeeper does not answer."""
    path, data = _path(place), encode_archive_progress(progress)
    try:
        put_znode(client, path, data)
    except NodeExistsError:
        return  # another archiver has just reported
    except (KazooException, KazooTimeoutError) as error:
        raise CheckpointRetryable(f"ZooKeeper did not take what was archived ({path}): {type(error).__name__} {error}") from error


def _path(place: Place) -> str:
    return archive_progress_path(place.identity.herd_root, place.identity.tablespace_uuid)
