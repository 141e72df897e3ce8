"""A log of which only the archive is left: neither ZooKeeper nor any bookie has its ledgers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Never

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper_jobs.archive.parts import WholeLog
from herdkeeper_jobs.archive.segment import newest_segment, oldest_manifest, read_segment_manifest
from herdkeeper_jobs.errors import InvariantViolated, LogDropped, LogTruncatedError
from herdkeeper_jobs.manifests.manifest import Identity
from herdkeeper_jobs.storage.stored_path import StoredPath
from herdkeeper_jobs.wal.lsn import Lsn


@dataclass(frozen=True, slots=True)
class ArchiveOnlyLog:
    """Stands for the lost log. `folder` is the tablespace's folder in the archive."""

    folder: StoredPath
    identity: Identity

    @property
    def name(self) -> str:
        return self.identity.tablespace

    def confirmed_end(self) -> Lsn:
        """The archive's end: only confirmed entries are archived. Raises LogDropped if it is empty."""
        newest = newest_segment(self.folder, self.identity)
        return self._nothing("with entries") if newest is None else newest.last.lsn

    def ledgers_up_to(self, target: Lsn, begin: Lsn | None = None) -> list[tuple[LedgerMetadata, int]]:
        """Always raises LogDropped, so that callers turn to the archive."""
        return self._nothing(f"from {begin or 'its beginning'} to {target}")

    def readable_from(self, first: Lsn | None) -> list[tuple[LedgerMetadata, int]]:
        """Always raises LogTruncatedError: nothing follows the archive."""
        raise LogTruncatedError(self._missing(f"from {first or 'its beginning'} on"))

    def ledger_behind(self, ledger_id: int) -> None:
        """Always None: which ledgers followed is not known."""

    def bookie_addresses(self) -> Mapping[str, BookieAddress]:
        """Always empty."""
        return {}

    def _nothing(self, what: str) -> Never:
        raise LogDropped(self._missing(what))

    def _missing(self, what: str) -> str:
        return f"the log of tablespace {self.name!r} no longer exists, only its archive: nothing can be read from it {what}"


def archive_only_log(folder: StoredPath, identity: Identity) -> WholeLog:
    """The log as its archive has it."""
    return WholeLog(ArchiveOnlyLog(folder, identity), folder, identity)


def identity_of_archive(folder: StoredPath) -> Identity | None:
    """Returns the identity of the log that is archived in a tablespace's folder; None without one.

    Raises InvariantViolated if it is in another tablespace's folder.
    """
    first = oldest_manifest(folder)
    if first is None:
        return None
    identity = read_segment_manifest(first).identity
    if f"{folder.parent.name}/{folder.name}" != identity.path:
        raise InvariantViolated(f"{first} says that it belongs to {identity.path}")
    return identity
