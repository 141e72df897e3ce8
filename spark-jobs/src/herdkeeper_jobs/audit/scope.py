"""Resolves a filter in a cluster, and refuses names that do not exist.

A misspelled tablespace or bookie would otherwise look like a clean audit. If no ledger meets the conditions, the audit's message says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper.codecs.herddb.ledgers import decode_ledgers, ledgers_path
from herdkeeper.codecs.herddb.tablespace import decode_tablespace, tablespace_path, tablespaces_path
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper_jobs.audit.request import LedgerFilter, TablespaceName
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog

_MAX_NAMES_LISTED = 10


class FilterRefusedError(ValueError):
    """The filter names something that does not exist or can't be read; the message names it, and what exists."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A filter, with the ledgers of its tablespaces."""

    ledgers: LedgerFilter
    of_tablespaces: frozenset[int] | None
    """None: any."""

    def admits_id(self, ledger_id: int) -> bool:
        """Whether the id alone admits the ledger."""
        ranges = self.ledgers.ranges
        if ranges and not any(part.first <= ledger_id <= part.last for part in ranges):
            return False
        return self.of_tablespaces is None or ledger_id in self.of_tablespaces

    def admits(self, metadata: LedgerMetadata) -> bool:
        """Whether the metadata admits a ledger whose id was admitted."""
        states, bookies = self.ledgers.states, self.ledgers.bookies
        if states and metadata.state not in states:
            return False
        return not bookies or any(not bookies.isdisjoint(segment.bookies) for segment in metadata.segments)


def scope_of(catalog: LedgerCatalog, ledgers: LedgerFilter, *, begun: bool = False) -> Scope:
    """Resolves a filter. Things that vanished since a run has `begun` are no mistake. Raises FilterRefusedError,
    MetadataUnavailableError."""
    if not begun:
        _require_bookies(catalog, ledgers.bookies)
    if not ledgers.tablespaces:
        return Scope(ledgers, None)
    return Scope(ledgers, frozenset(ledger for each in ledgers.tablespaces for ledger in _ledgers_of(catalog, each, begun)))


def _require_bookies(catalog: LedgerCatalog, wanted: frozenset[str]) -> None:
    """Requires a cookie or a registration. A bookie that is down has its cookie; BookKeeper may be configured without cookies."""
    if not wanted:
        return
    known = {*catalog.names_below(f"{catalog.root}/cookies"), *catalog.bookie_addresses()}
    if unknown := sorted(wanted - known):
        raise FilterRefusedError(
            f"the bookie {', '.join(unknown)} does not exist: it has no cookie and is not registered; known bookies: {_listed(known)}"
        )


def _ledgers_of(catalog: LedgerCatalog, tablespace: TablespaceName, begun: bool) -> Iterator[int]:
    root, name = tablespace.herd_root, tablespace.name
    (record,) = catalog.contents([tablespace_path(root, name)])
    if record is None:
        if begun:
            return
        there = catalog.names_below(tablespaces_path(root))
        raise FilterRefusedError(f"the tablespace {name!r} does not exist in the database at {root}; existing ones: {_listed(there)}")
    try:
        (ledgers,) = catalog.contents([ledgers_path(root, decode_tablespace(record).uuid)])
        if ledgers is not None:  # a leader that has not written yet has no list
            yield from decode_ledgers(ledgers).active
    except MalformedDataError as error:
        raise FilterRefusedError(f"the ledgers of tablespace {name!r} of the database at {root} can't be known: {error}") from error


def _listed(names: Iterable[str]) -> str:
    every = sorted(names)
    more = f" and {len(every) - _MAX_NAMES_LISTED} more" if len(every) > _MAX_NAMES_LISTED else ""
    return (", ".join(every[:_MAX_NAMES_LISTED]) or "none") + more
