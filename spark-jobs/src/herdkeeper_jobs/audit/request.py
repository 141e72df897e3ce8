"""What an audit is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.codecs.bookkeeper.metadata import LedgerState
from herdkeeper.codecs.bookkeeper.striping import EntryRange
from herdkeeper.protocol.audit_depth import AuditDepth
from herdkeeper_jobs.audit.orphans import OrphanRule
from herdkeeper_jobs.audit.placement import RackMap

STATES = {"Open": LedgerState.OPEN, "InRecovery": LedgerState.IN_RECOVERY, "Closed": LedgerState.CLOSED}
"""A ledger's states as people write them."""


@dataclass(frozen=True, slots=True, order=True)
class TablespaceName:
    """A tablespace of a HerdDB database, which is known by its root in ZooKeeper, e.g. `/namespace/name/herd`."""

    herd_root: str
    name: str


@dataclass(frozen=True, slots=True)
class LedgerFilter:
    """Which ledgers to audit: those that meet each of the conditions; one of which nothing is given is met by all."""

    ranges: tuple[EntryRange, ...] = ()
    """Ids in one of these."""
    tablespaces: tuple[TablespaceName, ...] = ()
    """In the log of one of these."""
    states: frozenset[LedgerState] = frozenset()
    """In one of these states when their metadata is read."""
    bookies: frozenset[str] = frozenset()
    """One of these is in an ensemble."""

    @property
    def described(self) -> str:
        """For people, and equal for equal filters; empty when all ledgers are admitted."""
        tablespaces = ", ".join(f"{each.name} of {each.herd_root}" for each in sorted(self.tablespaces))
        conditions = {
            "ledgers": ", ".join(_written(part) for part in sorted(self.ranges)),
            "tablespaces": tablespaces,
            "states": ", ".join(name for name, state in STATES.items() if state in self.states),
            "bookies": ", ".join(sorted(self.bookies)),
        }
        return "; ".join(f"{name} {values}" for name, values in conditions.items() if values)


def _written(ids: EntryRange) -> str:
    return str(ids.first) if ids.first == ids.last else f"{ids.first}-{ids.last}"


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """What is to be audited, and how closely."""

    ledgers: LedgerFilter = LedgerFilter()
    depth: AuditDepth = AuditDepth.DEEP
    seed: str = ""
    """Of the samples of a light audit; the run's id, so that each run reads others and a retry the same."""
    racks: RackMap | None = None
    """None: where copies stand is not judged."""
    orphans: OrphanRule | None = None
    """None: whether a log still has a ledger is not judged."""
