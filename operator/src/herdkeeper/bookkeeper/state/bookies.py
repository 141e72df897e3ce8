"""What was seen of a BookKeeperCluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from herdkeeper.api import HerdDBCluster
from herdkeeper.certificates.holders import NOTHING_DUE, DueSecrets
from herdkeeper.codecs.bookkeeper.placement import PlacementBreaches
from herdkeeper.codecs.bookkeeper.share import Share
from herdkeeper.shared.dependents import NO_DEPENDENTS, Dependents
from herdkeeper.shared.node import Nodes
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown


@dataclass(frozen=True)
class MetadataStore:
    """The ZooKeeper ensemble that keeps the metadata: `host:port,host:port`, and whether all of it serves."""

    address: str
    serving: bool


@dataclass(frozen=True)
class StoreMissing:
    """There is no ensemble to connect to, and why."""

    reason: Reason
    why: str


@dataclass(frozen=True)
class MetadataAbsent:
    """Nothing is at the cluster's root in ZooKeeper."""


@dataclass(frozen=True)
class Marks:
    """The marks of under-replicated ledgers: how many, and the oldest one's time in milliseconds since 1970 (None: no mark says)."""

    ledgers: int
    oldest_ms: int | None


NO_MARKS = Marks(0, None)


@dataclass(frozen=True)
class RecoveryDelay:
    """Seconds that a bookie may be away, as the metadata has it (None: it can't be read), and the znode's version. `changed_at` is when it
    was written last, in seconds since 1970 by ZooKeeper's clock: the auditor looks at all ledgers whenever it is."""

    seconds: int | None
    version: int
    changed_at: float = 0.0


@dataclass(frozen=True)
class LedgersMetadata:
    """What BookKeeper's metadata says, read completely. Bookies by their ids.

    `under_replicated`: whether the auditor marked at least one ledger. `marks`: how many it marked, counted up to a limit, and when.
    `replication_enabled`: nobody switched autorecovery off in the metadata. `recovery_delay`: what the auditor obeys; None until a first
    auditor has written it.
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


@dataclass(frozen=True)
class Naming:
    """How many ledgers name a bookie, and the largest ensemble of them."""

    closed: int
    not_closed: int
    largest_ensemble: int


READING_SHARE = 0.05
"""Of the time that something waits for ledgers, what is spent reading the metadata of all of them."""
LONGEST_PAUSE_SECONDS = 60.0


@dataclass(frozen=True)
class LedgerScan:
    """The metadata of all ledgers, read completely.

    `largest_ensemble` is E at its largest, over all ledgers and over what declared databases will ask for; `open_ensemble` the same without
    the closed ones. `shares` has, by id, what each leaving or lost bookie holds; `naming` how many ledgers name each bookie.
    `databases` are the HerdDBClusters that refer to the cluster: their nodes write most of the ledgers. `seconds`: how long reading took;
    `age_seconds`: how long ago that was, above 0 for one that was kept.
    `breaches` are the ledgers whose copies are in too few racks.
    """

    ledgers: int
    largest_ensemble: int
    open_ensemble: int
    shares: Mapping[str, tuple[Share, ...]]
    naming: Mapping[str, Naming]
    databases: tuple[HerdDBCluster, ...] = ()
    seconds: float = 0.0
    breaches: PlacementBreaches = field(default_factory=PlacementBreaches)
    age_seconds: float = 0.0

    @property
    def good_for_seconds(self) -> float:
        """For how long it is enough to wait by: the longer the reading took, the longer."""
        return min(self.seconds / READING_SHARE, LONGEST_PAUSE_SECONDS)


Metadata = LedgersMetadata | MetadataAbsent | Unknown


@dataclass(frozen=True)
class BookKeeperObserved:
    """`fresh_tokens` are random, as many as bookies may be new: identities of claims that have yet to be made.

    `dependents` are the HerdDBClusters that refer to it. `disruption` is which member of the ensemble, or SQL node on the bookies, is
    being disrupted, None when none is. `nodes` are those that its bookies' pods run on, by
    name; None for one that is gone. `scan` is None while no step needs it. `now` is the time of the observation
    (RFC 3339, UTC). `expandable`: whether StorageClasses can grow their volumes, of those that claims need it of.
    `identities` are the Secrets with certificates that are due.
    """

    objects: Objects
    store: MetadataStore | StoreMissing
    metadata: Metadata
    fresh_tokens: tuple[str, ...]
    dependents: Dependents = NO_DEPENDENTS
    disruption: str | None = None
    nodes: Nodes = field(default_factory=dict)
    scan: LedgerScan | Unknown | None = None
    now: str = ""
    expandable: Mapping[str, bool | Unknown] = field(default_factory=dict)
    identities: DueSecrets = NOTHING_DUE
