"""The verified Checkpoints of a tablespace that can be a base, together with the log after them."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from herdkeeper.api import Checkpoint
from herdkeeper.api.checkpoint import CheckpointStatus
from herdkeeper.codecs.herddb.ledgers import LedgerList
from herdkeeper.herddb.log.identity import LogIdentity, log_of_manifest
from herdkeeper.protocol.verification import is_proof
from herdkeeper.shared import names
from herdkeeper.shared.time import moment_of
from herdkeeper.shared.unknown import Unknown
from herdkeeper.spark.encryption_keys import secrets_of

LISTED_SECONDS = 60.0
"""A leader lists a ledger this long after it wrote the ledger's first entries, at most. Both times are of its clock."""


@dataclass(frozen=True)
class Base:
    """A verified Checkpoint: its LSN, its restart position, and its name.

    `stamp` is the time of its last entry, by its status; `latest` that of its latest entry, None if made by an earlier version. `place` (a
    claim's name or an object store's address) and `manifest` (the path there) locate its files.
    """

    lsn: tuple[int, int]
    restart: tuple[int, int]
    stamp: str | None
    name: str
    latest: str | None = None
    place: str = ""
    manifest: str = ""

    @property
    def moment(self) -> str | None:
        """The earliest moment that can be made from it: leaders' clocks differ, and a log is cut before the first later entry."""
        return self.latest or self.stamp

    @property
    def holds_nothing_after(self) -> datetime.datetime | None:
        """The same as a time; None if not known for certain."""
        return moment_of(self.latest)


def bases(
    checkpoints: Iterable[Checkpoint], log: LogIdentity | Unknown, ledgers: LedgerList | Unknown | None = None
) -> tuple[Base, ...] | Unknown:
    """Returns the Checkpoints of this very log that matched a follower; Unknown if the log's identity, or its list of `ledgers`, is.

    One that is being deleted may lack files, and one for a restore drill is temporary: neither log nor archive may depend on them. Nor may
    they on one of a time that the log lost, as when volumes were put back. Without a list none is.
    """
    if isinstance(log, Unknown):
        return log
    if isinstance(ledgers, Unknown):
        return ledgers
    return tuple(
        Base(
            status.lsn.position,
            restart,
            status.lsn_timestamp,
            checkpoint.metadata.name,
            status.latest_timestamp,
            checkpoint.place,
            status.manifest or "",
        )
        for checkpoint in checkpoints
        if (status := checkpoint.status) is not None
        and checkpoint.metadata.deletion_timestamp is None
        and not is_made_for_a_drill(checkpoint)
        and status.lsn is not None
        and status.phase == "Succeeded"
        and is_proof(status.verified)
        and log_of_manifest(status.manifest) == log
        and not (ledgers is not None and is_of_a_lost_time(status.lsn.ledger_id, moment_of(status.lsn_timestamp), ledgers))
        and (restart := _restart(status)) is not None
    )


def without_files(checkpoints: Iterable[Checkpoint], volumes: Mapping[str, str | None]) -> frozenset[str]:
    """Returns the names of Checkpoints whose volume claim, and files, are gone. `volumes`: since when a claim exists, or None."""
    gone = {claim for claim, since in volumes.items() if since is None}
    return frozenset(each.metadata.name for each in checkpoints if each.spec.destination.claim_name in gone)


def doubts(checkpoints: Iterable[Checkpoint], volumes: Mapping[str, str | None], keys: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Returns why the files of Checkpoints may be of no use, by name: the claim was made anew since, or the Secret lacks the key. `keys`
    are the fingerprints of the keys in each Secret, by name.
    """
    found = {}
    for name, status, place in ((each.metadata.name, each.status, each.spec.destination) for each in checkpoints):
        if status is None:
            continue
        since, made = moment_of(volumes.get(place.claim_name or "")), moment_of(status.completed_at)
        if since is not None and made is not None and made < since:
            found[name] = f"the volume claim {place.claim_name} was made after the Checkpoint {name}, so it may not have the files"
        for secret in secrets_of(place) if status.encrypted_with is not None else ():
            if not _has_key(keys.get(secret, {}), status):
                found[name] = f"the Checkpoint {name} needs the key {status.encrypted_with}, which the Secret {secret} does not have"
    return found


def _has_key(keys: Mapping[str, str], status: CheckpointStatus) -> bool:
    """A Checkpoint of an earlier version knows its key by name only."""
    return status.encrypted_with in keys if status.key_fingerprint is None else status.key_fingerprint in keys.values()


def is_of_a_lost_time(ledger: int, written: datetime.datetime | None, ledgers: LedgerList) -> bool:
    """Returns whether the log lacks this ledger, or has another of its id, made after the entry was `written` (None: unknown)."""
    if ledger not in ledgers.active:
        return ledger > min(ledgers.active, default=-1)
    added_millis = ledgers.added_millis[ledgers.active.index(ledger)]
    return written is not None and written.timestamp() + LISTED_SECONDS < added_millis / 1000


def _restart(status: CheckpointStatus) -> tuple[int, int] | None:
    """None for a Checkpoint of an earlier version, which does not report where its open transactions began."""
    lsn = status.restart_lsn or (status.lsn if status.open_transactions == 0 else None)
    return None if lsn is None else lsn.position


def is_made_for_a_drill(checkpoint: Checkpoint) -> bool:
    """Returns whether it is deleted when its drill ends, so that nothing else may depend on it."""
    return checkpoint.metadata.labels.get(names.COMPONENT_LABEL) == names.DRILL_COMPONENT
