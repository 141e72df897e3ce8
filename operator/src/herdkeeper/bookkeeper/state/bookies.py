"""What was read of BookKeeper: its metadata, and that of its ledgers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from herdkeeper.api import HerdDBCluster
from herdkeeper.codecs.bookkeeper.placement import PlacementBreaches
from herdkeeper.codecs.bookkeeper.share import Share
from herdkeeper.shared.counted import counted
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown


@dataclass(frozen=True)
class MetadataStore:
    """The ZooKeeper ensemble with the metadata: `host:port,host:port`, and whether all of it serves. `plaintext`: bookies with
    certificates accept plain text, too, while their stack is moved.
    """

    address: str
    serving: bool
    plaintext: bool = False


@dataclass(frozen=True)
class MetadataAbsent:
    """The cluster's root in ZooKeeper does not exist."""


@dataclass(frozen=True)
class Marks:
    """The marks of under-replicated ledgers: their number, and the time of the oldest in Unix milliseconds (None if unknown)."""

    ledgers: int
    oldest_ms: int | None


NO_MARKS = Marks(0, None)


@dataclass(frozen=True)
class RecoveryDelay:
    """Seconds that a bookie may be away, by the metadata (None if unreadable), and the znode's version.

    `changed_at` is the last write in Unix seconds by ZooKeeper's clock: each write makes the auditor check all ledgers.
    """

    seconds: int | None
    version: int
    changed_at: float = 0.0


@dataclass(frozen=True)
class LedgersMetadata:
    """BookKeeper's metadata, read completely. Bookies are given by their ids.

    `under_replicated`: whether the auditor marked a ledger. `marks`: how many, counted up to a limit, and when. `replication_enabled`:
    autorecovery is not disabled in the metadata. `recovery_delay`: the auditor's delay; None until a first auditor wrote it.
    `registrations`: the last transactions that changed who is writable, and who is read-only.
    """

    instance_id: str
    writable: frozenset[str]
    read_only: frozenset[str]
    cookies: frozenset[str]
    auditor: str | None
    under_replicated: bool
    marks: Marks = NO_MARKS
    replication_enabled: bool = True
    recovery_delay: RecoveryDelay | None = None
    registrations: tuple[int, int] = (0, 0)

    @property
    def registered(self) -> frozenset[str]:
        """All bookies with a live session."""
        return self.writable | self.read_only


@dataclass(frozen=True)
class Naming:
    """How many ledgers name a bookie, and their largest ensemble."""

    closed: int
    not_closed: int
    largest_ensemble: int


READING_SHARE = 0.05
"""Share of the waiting time that is spent reading the metadata of all ledgers."""
LONGEST_PAUSE_SECONDS = 60.0


def good_for_seconds(seconds: float) -> float:
    """Returns how long a scan that took so long is good enough to wait by."""
    return min(seconds / READING_SHARE, LONGEST_PAUSE_SECONDS)


class BeingScanned(Unknown):
    """The ledgers are being read, beside the reconciles. The resource is requeued at the end."""

    @staticmethod
    def after(progress: str) -> BeingScanned:
        """Returns how far the scan is, as a sentence."""
        return BeingScanned(f"the ledgers are being scanned ({progress})" if progress else "the ledgers are being scanned")


def why_unread(ledgers: Unknown) -> Reason:
    """Returns the reason to wait for what the ledgers' metadata says."""
    return Reason.SCANNING_LEDGERS if isinstance(ledgers, BeingScanned) else Reason.UNREADABLE


@dataclass(frozen=True)
class LedgerScan:
    """The metadata of all ledgers, read completely.

    `largest_ensemble` is the largest E of all ledgers and declared databases; `open_ensemble` the same without closed ledgers. `shares` has
    what each draining or lost bookie holds; `naming` how many ledgers name each bookie, both by id. `databases` are the HerdDBClusters that
    refer to the cluster; their nodes write most of the ledgers. `seconds`: duration of the read; `age_seconds`: how long ago it ended.
    `breaches` are the ledgers whose copies are in too few racks; `uncopied` those with entries only on lost bookies. `to_act_by`: what was
    observed before it still holds; otherwise it is good enough to wait by only.
    """

    ledgers: int
    largest_ensemble: int
    open_ensemble: int
    shares: Mapping[str, tuple[Share, ...]]
    naming: Mapping[str, Naming]
    databases: tuple[HerdDBCluster, ...] = ()
    seconds: float = 0.0
    breaches: PlacementBreaches = field(default_factory=PlacementBreaches)
    uncopied: tuple[int, ...] = ()
    age_seconds: float = 0.0
    to_act_by: bool = True

    def lacking_copies(self, holders: frozenset[str], but: frozenset[str] = frozenset()) -> str | None:
        """Returns why ledgers lack copies, marked by an auditor or not: they name bookies, except `but`, that are none of the `holders`."""
        lost = sorted(set(self.naming) - holders - but)
        if not lost:
            return None
        ledgers = sum(self.naming[bookie_id].closed + self.naming[bookie_id].not_closed for bookie_id in lost)
        names = counted(ledgers, "ledger names", "ledgers name")
        return f"{names} bookies that are away or lost volumes ({', '.join(lost[:3])}), so copies are missing"


Metadata = LedgersMetadata | MetadataAbsent | Unknown
