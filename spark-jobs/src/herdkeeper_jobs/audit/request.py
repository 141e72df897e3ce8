"""What an audit is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.codecs.bookkeeper.metadata import LedgerState
from herdkeeper.codecs.bookkeeper.striping import EntryRange
from herdkeeper.protocol.audit_finding import AuditDepth
from herdkeeper_jobs.audit.orphans import OrphanRule
from herdkeeper_jobs.audit.placement import RackMap

STATES = {"Open": LedgerState.OPEN, "InRecovery": LedgerState.IN_RECOVERY, "Closed": LedgerState.CLOSED}
"""Ledger states as people write them."""


@dataclass(frozen=True, slots=True, order=True)
class TablespaceName:
    """A tablespace of the HerdDB database with this root in ZooKeeper, e.g. `/namespace/name/herd`."""

    herd_root: str
    name: str


@dataclass(frozen=True, slots=True)
class LedgerFilter:
    """Selects ledgers that meet every condition; an empty condition admits all."""

    ranges: tuple[EntryRange, ...] = ()
    """Ranges of ids."""
    tablespaces: tuple[TablespaceName, ...] = ()
    """The ledger is in the log of one of these."""
    states: frozenset[LedgerState] = frozenset()
    """The state when the metadata is read."""
    bookies: frozenset[str] = frozenset()
    """One of these is in an ensemble."""

    @property
    def described(self) -> str:
        """Text for people, equal for equal filters; empty if all ledgers are admitted."""
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
    ledgers: LedgerFilter = LedgerFilter()
    depth: AuditDepth = AuditDepth.DEEP
    seed: str = ""
    """Of a light audit's samples. It is the run's id, so each run reads others, and a retry the same."""
    racks: RackMap | None = None
    """None: placement is not judged."""
    orphans: OrphanRule | None = None
    """None: orphans are not searched."""
