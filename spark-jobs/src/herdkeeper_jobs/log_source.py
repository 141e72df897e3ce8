"""Finds a tablespace's log in ZooKeeper: what to read from which ledgers, up to an LSN. Never writes or fences."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper.codecs.herddb.ledgers import LedgerList, decode_ledgers, ledgers_path, tablespace_of
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord, decode_tablespace, tablespace_path
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, UndecodableMetadata
from herdkeeper_jobs.bookkeeper.reader import LastConfirmed, LastConfirmedUnknownError, end_of_confirmed
from herdkeeper_jobs.errors import (
    CheckpointRefused,
    CheckpointRetryable,
    InvariantViolated,
    LogDropped,
    LogTruncatedError,
    LsnNotInLog,
    NotConfirmedYet,
)
from herdkeeper_jobs.manifests.manifest import FOLDER, Identity
from herdkeeper_jobs.wal.lsn import Lsn


@dataclass(frozen=True, slots=True)
class Readable:
    """What can be read of a log now: ledgers, each with the last entry. `doubt`: why more may be confirmed; empty if it is not."""

    ledgers: list[tuple[LedgerMetadata, int]]
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class LogSource:
    """The log of one tablespace; its methods read afresh."""

    catalog: LedgerCatalog
    herd_root: str
    tablespace: TablespaceRecord

    @property
    def name(self) -> str:
        return self.tablespace.name

    def bookie_addresses(self) -> Mapping[str, BookieAddress]:
        """The addresses to read its ledgers from."""
        return self.catalog.bookie_addresses()

    @property
    def identity(self) -> Identity:
        """What identifies the log. Raises CheckpointRefused if ZooKeeper has there what would lead to other folders than the log's own."""
        for what, found in (("INSTANCEID", self.catalog.instance_id), (f"uuid of {self.tablespace.name!r}", self.tablespace.uuid)):
            if re.fullmatch(FOLDER, found) is None:
                raise CheckpointRefused(
                    f"the {what} in ZooKeeper is {found[:100]!r}, and names no folder for the log's files: BookKeeper and HerdDB write a "
                    "UUID, so find out who else writes to this ensemble"
                )
        return Identity(
            instance_id=self.catalog.instance_id,
            tablespace_uuid=self.tablespace.uuid,
            tablespace=self.tablespace.name,
            ledgers_root=self.catalog.root,
            herd_root=self.herd_root,
        )

    def confirmed_end(self, up_to: Lsn | None = None) -> Lsn:
        """Returns the last certainly confirmed entry of the log, or of its part up to an LSN.

        It may trail behind the last acknowledged one: a LAC becomes known with the next entry (HerdDB's idle NOOP at the latest). Raises
        CheckpointRetryable if the log is empty or no bookie of its open ledger answers.
        """
        active = self._ledgers().active
        ledgers = [ledger for ledger in active if up_to is None or ledger <= up_to.ledger_id]
        for metadata in reversed(self._metadata(ledgers)):
            last = self._confirmed(metadata).entry_id
            if up_to is not None and metadata.ledger_id == up_to.ledger_id:
                last = min(last, up_to.entry_id)
            if last >= 0:
                return Lsn(metadata.ledger_id, last)
        none = "has no confirmed entry yet" if up_to is None else f"has no confirmed entry up to LSN {up_to}, but {_listed(active)}"
        raise CheckpointRetryable(f"the log of tablespace {self.tablespace.name!r} {none}")

    def ledgers_up_to(self, target: Lsn, begin: Lsn | None = None) -> list[tuple[LedgerMetadata, int]]:
        """Returns the ledgers up to an LSN, from `begin` on (None: the log's beginning), each with the last entry to read.

        Raises:
            CheckpointRefused: the LSN is not in the log (LsnNotInLog: nor is its ledger).
            LogDropped: the ledger to begin with was dropped; without `begin` also if a later one was.
            NotConfirmedYet: the LSN is not confirmed yet.
            CheckpointRetryable: an earlier ledger is still being closed, or was dropped meanwhile.
            InvariantViolated: BookKeeper doesn't know a ledger of the log, or it belongs to another log.
        """
        ledgers = self._ledgers()
        if target.ledger_id not in ledgers.active:
            raise LsnNotInLog(
                f"spec.target.lsn (--to) is {target}: ledger {target.ledger_id} is not in the log of {self.tablespace.name!r}, which has "
                f"{_listed(ledgers.active)}; take an LSN in one of these"
            )
        if begin is None and not ledgers.complete:
            raise LogDropped(f"the log of tablespace {self.tablespace.name!r} {_incomplete(ledgers)}")
        first = ledgers.first if begin is None else begin.ledger_id
        if first is not None and first not in ledgers.active:
            raise LogDropped(f"the log of tablespace {self.tablespace.name!r} {_without(ledgers.active, first)}")
        metadata = self._metadata([ledger for ledger in ledgers.active if (first or 0) <= ledger <= target.ledger_id])
        read = [(ledger, self._last_entry(ledger)) for ledger in metadata[:-1]]
        confirmed = self._confirmed(metadata[-1]).entry_id
        if target.entry_id > confirmed:
            if metadata[-1].closed:
                raise CheckpointRefused(
                    f"spec.target.lsn (--to) is {target}: ledger {target.ledger_id} is closed and ends with entry {confirmed}; "
                    "take one up to there"
                )
            raise NotConfirmedYet(
                f"spec.target.lsn (--to) is {target}: ledger {target.ledger_id} is still written, and confirmed up to entry {confirmed}"
            )
        return [*read, (metadata[-1], target.entry_id)]

    def readable_from(self, first: Lsn | None) -> list[tuple[LedgerMetadata, int]]:
        """Returns the ledgers from an LSN's on (None: from the log's beginning), each with the last entry that is readable now.

        It ends with the first open ledger: what follows can't be read before its end is known. Raises LogTruncatedError if the beginning
        was dropped, CheckpointRefused for a ledger of another log, and CheckpointRetryable and InvariantViolated as `ledgers_up_to`.
        """
        return self.readable(first).ledgers

    def readable(self, first: Lsn | None) -> Readable:
        """As `readable_from`, and whether more may be confirmed."""
        ledgers = self._ledgers()
        begin = ledgers.first if first is None else first.ledger_id
        if begin is not None and (not ledgers.active or begin < ledgers.active[0]):
            there = f"it begins with ledger {ledgers.active[0]}" if ledgers.active else "it has no ledgers"
            read_from = f"ledger {begin}" if first is None else f"LSN {first}"
            raise LogTruncatedError(f"the log of tablespace {self.tablespace.name!r} was read from {read_from} on, but {there} now")
        if first is None and not ledgers.complete:
            raise LogTruncatedError(f"the log of tablespace {self.tablespace.name!r} {_incomplete(ledgers)}")
        if first is not None and first.ledger_id not in ledgers.active:
            raise CheckpointRefused(f"LSN {first}: ledger {first.ledger_id} is not in the log of {self.tablespace.name!r}")
        found: list[tuple[LedgerMetadata, int]] = []
        for metadata in self._metadata([ledger for ledger in ledgers.active if begin is None or ledger >= begin]):
            confirmed = self._confirmed(metadata)
            found.append((metadata, confirmed.entry_id))
            if not metadata.closed:
                # The list was read before the metadata: a leader closes a ledger before it lists the next one.
                follower = next((ledger for ledger in ledgers.active if ledger > metadata.ledger_id), None)
                unclosed = f"ledger {metadata.ledger_id} is followed by ledger {follower} but not closed, so its end is unknown"
                return Readable(found, confirmed.doubt if follower is None else unclosed)
        return Readable(found)

    def first_left(self) -> Lsn | None:
        """Where the rest of the log begins; None while that is the log's own beginning."""
        ledgers = self._ledgers()
        return None if ledgers.complete or not ledgers.active else Lsn(ledgers.active[0], 0)

    def ledger_behind(self, ledger_id: int) -> int | None:
        """The first ledger of the log with a higher id, whether or not this one is in the log; None without one."""
        return next((ledger for ledger in self._ledgers().active if ledger > ledger_id), None)

    def successors(self) -> dict[int, int]:
        """Maps each ledger of the log to the next one, if there is one."""
        return dict(itertools.pairwise(self._ledgers().active))

    def _confirmed(self, metadata: LedgerMetadata) -> LastConfirmed:
        try:
            return end_of_confirmed(metadata, self.catalog.bookie_addresses())
        except LastConfirmedUnknownError as error:
            raise CheckpointRetryable(str(error)) from error

    def _last_entry(self, metadata: LedgerMetadata) -> int:
        if metadata.last_entry_id is None:
            raise CheckpointRetryable(f"ledger {metadata.ledger_id} is followed by another one but not closed yet: its end is unknown")
        return metadata.last_entry_id

    def _ledgers(self) -> LedgerList:
        found = read_znode(self.catalog.client, ledgers_path(self.herd_root, self.tablespace.uuid))
        return LedgerList((), (), None) if found is None else decode_ledgers(*found)

    def _metadata(self, ledger_ids: Sequence[int]) -> list[LedgerMetadata]:
        found: list[LedgerMetadata] = []
        for item in self.catalog.read_many(ledger_ids):
            if isinstance(item, UndecodableMetadata):
                raise InvariantViolated(f"metadata of ledger {item.ledger_id}: {item.reason}")
            if (owner := tablespace_of(item.metadata)) not in (None, self.tablespace.uuid):
                raise InvariantViolated(
                    f"ledger {item.metadata.ledger_id} is in the log of {self.tablespace.name!r} ({self.tablespace.uuid}), but its "
                    f"metadata names the tablespace {owner}: this is not the BookKeeper cluster of that log"
                )
            found.append(item.metadata)
        missing = sorted(set(ledger_ids) - {metadata.ledger_id for metadata in found})
        if missing and missing[0] in self._ledgers().active:
            raise InvariantViolated(f"ledger {missing[0]} is in the log of {self.tablespace.name!r}, but BookKeeper doesn't know it")
        if missing:
            # A SQL node removes a ledger from the list before it deletes it, so our list was outdated.
            raise CheckpointRetryable(
                f"ledger {missing[0]} of the log of {self.tablespace.name!r} was dropped while the log was being read"
            )
        return found


def _without(ledgers: Sequence[int], first: int) -> str:
    """Why a log can't be read from a ledger on that is not in it."""
    if ledgers and ledgers[0] < first:
        return (
            f"has {_listed(ledgers)}; it would be read from ledger {first}, which it lacks: the cluster was put back to an earlier "
            "state, or HerdDB alone dropped that ledger"
        )
    there = f"begins with ledger {ledgers[0]}" if ledgers else "has no ledgers"
    return f"{there}, it would be read from {first}: older ones were dropped (retentionHours)"


def _incomplete(ledgers: LedgerList) -> str:
    """What a log lacks, as far as its list shows."""
    if not ledgers.begins:
        begin = ledgers.active[0] if ledgers.active else "none"
        return f"begins with ledger {begin}, its first one was {ledgers.first}: older ones were dropped (retentionHours)"
    if (unexplained := ledgers.unexplained_writes) is not None and unexplained > 0:
        return (
            f"has {len(ledgers.active)} ledgers, but the list of them was written {ledgers.version} times: {unexplained // 2} of its "
            "ledgers were dropped, none of them the first one"
        )
    return f"has {len(ledgers.active)} ledgers, but the list of them (version {ledgers.version}) was not written by HerdDB alone"


def _listed(ledgers: Sequence[int]) -> str:
    if not ledgers:
        return "no ledgers"
    return f"ledger {ledgers[0]}" if len(ledgers) == 1 else f"{len(ledgers)} ledgers from {ledgers[0]} to {ledgers[-1]}"


def open_log(catalog: LedgerCatalog, herd_root: str, tablespace: str) -> LogSource:
    """Opens the log of the tablespace with that name. Raises CheckpointRefused without one."""
    root = herd_root.rstrip("/")
    path = tablespace_path(root, tablespace)
    found = read_znode(catalog.client, path)
    if found is None:
        raise CheckpointRefused(f"--tablespace is {tablespace!r}: it does not exist: ZooKeeper has no node {path}")
    return LogSource(catalog, root, decode_tablespace(found[0]))


def read_znode(client: KazooClient, path: str) -> tuple[bytes, int] | None:
    """Returns a znode's data and version; None without one. Raises CheckpointRetryable if ZooKeeper does not answer."""
    try:
        data, stat = client.get(path)
        return bytes(data), int(stat.version)
    except NoNodeError:
        return None
    except (KazooException, KazooTimeoutError) as error:
        raise CheckpointRetryable(f"ZooKeeper did not answer a read of {path}: {type(error).__name__} {error}") from error
