"""Finds orphans: ledgers of HerdDB that no log lists, because their deletion failed or was never tried. It also finds
lost ledgers: a log lists them, and BookKeeper has no metadata of them.

The databases are known only in the operator's layout. For ledgers below `/<namespace>/<name>/ledgers` they are at
`/<namespace>/<name>/herd`, also those of deleted resources. In another layout, or if something is undecodable, nothing is known, and the
unknown is no finding. In a stack with certificates an audit can't read databases whose log is in another BookKeeper cluster, and leaves
them out. A leader creates a ledger before it lists it. Hence the minimum age, and the second read of list and ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper.codecs.herddb.ledgers import decode_ledgers, ledgers_path, tablespace_of
from herdkeeper.codecs.herddb.node import nodes_path
from herdkeeper.codecs.herddb.tablespace import decode_tablespace, tablespace_path, tablespaces_path
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.protocol.audit_finding import Finding, FindingKind, Severity
from herdkeeper.shared.names import ObjectKey, herd_root, ledgers_root
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, MetadataForbiddenError, UndecodableMetadata, VersionedMetadata

LEAST_AGE_MILLIS = 60 * 60 * 1000
"""A leader lists a ledger within a second of its creation; one that hangs in between does so before its session ends."""


@dataclass(frozen=True, slots=True)
class TablespaceLogs:
    """The metadata of all known databases."""

    ledgers: Mapping[str, frozenset[int] | None] = field(default_factory=dict)
    """The ledgers of a log by tablespace uuid; None for an undecodable list."""
    tablespaces: frozenset[str] = frozenset()
    """Uuids of the existing tablespaces whose records are decodable."""
    nodes: frozenset[str] = frozenset()
    """Ids of the SQL nodes."""
    only_cluster: bool = False
    """Whether no other BookKeeper cluster is known that could have one of these logs."""
    all_decodable: bool = True
    """Whether no tablespace's record is undecodable, so that there are no tablespaces but these."""


@dataclass(frozen=True, slots=True)
class OrphanRule:
    """How to look for orphans. `read` reads anew on each call."""

    read: Callable[[], TablespaceLogs]
    created_before_millis: int
    """Younger ledgers are ignored (milliseconds since 1970)."""


def why_orphan(metadata: LedgerMetadata, logs: TablespaceLogs) -> str | None:
    """Returns why no log lists the ledger. None if a log does, if it is not of HerdDB's log, or if that is unknown."""
    uuid, leader = tablespace_of(metadata), _text(metadata.custom("leader"))
    if _text(metadata.custom("application")) != "herddb" or uuid is None:
        return None
    if logs.all_decodable and uuid not in logs.tablespaces and (uuid in logs.ledgers or leader in logs.nodes):
        return f"the tablespace {uuid} no longer exists (it was {_text(metadata.custom('tablespacename'))!r})"
    ledgers = logs.ledgers.get(uuid)
    if ledgers is None or metadata.ledger_id in ledgers:
        return None
    return f"the log of tablespace {_text(metadata.custom('tablespacename'))!r} ({uuid}) does not have it any more"


def orphans(catalog: LedgerCatalog, suspects: Sequence[int], rule: OrphanRule) -> tuple[Finding, ...]:
    """Returns the suspects that are orphans by lists and metadata read now."""
    if not suspects:
        return ()
    logs = rule.read()
    return tuple(finding for read in catalog.read_many(suspects) for finding in _judged(read, logs, rule))


def lost_ledgers(catalog: LedgerCatalog, rule: OrphanRule, admits: Callable[[int], bool]) -> tuple[Finding, ...]:
    """Returns the admitted ledgers that a log lists and BookKeeper doesn't know. A log may be in another cluster, so one of the listed
    ledgers must be here, unless there is no other cluster. A list loses a ledger before the ledger is deleted; hence its second read."""
    first = rule.read()
    suspects = {
        ledger: uuid
        for uuid, listed in first.ledgers.items()
        for ledger in _unknown(catalog, uuid, listed, is_here=first.only_cluster)
        if admits(ledger)
    }
    logs = rule.read() if suspects else TablespaceLogs()
    return tuple(
        Finding(
            FindingKind.LEDGER_UNREADABLE,
            Severity.CRITICAL,
            ledger_id=ledger,
            detail=f"the log of tablespace {uuid} has it, but BookKeeper has no metadata of it: nobody can read its entries",
        )
        for ledger, uuid in sorted(suspects.items())
        if uuid in logs.tablespaces and ledger in (logs.ledgers.get(uuid) or ())
    )


def _unknown(catalog: LedgerCatalog, uuid: str, listed: frozenset[int] | None, *, is_here: bool) -> Iterable[int]:
    """Returns the ledgers of a list that don't exist, if the log is in this cluster (`is_here`: that is certain)."""
    reads = list(catalog.read_many(sorted(listed or ())))
    own = [read.metadata for read in reads if isinstance(read, VersionedMetadata)]
    if is_here or any(tablespace_of(metadata) == uuid for metadata in own):
        undecodable = {read.ledger_id for read in reads if isinstance(read, UndecodableMetadata)}
        yield from (listed or frozenset()) - undecodable - {metadata.ledger_id for metadata in own}


def _judged(read: VersionedMetadata | UndecodableMetadata, logs: TablespaceLogs, rule: OrphanRule) -> Iterable[Finding]:
    if isinstance(read, UndecodableMetadata) or read.created_millis is None or read.created_millis >= rule.created_before_millis:
        return
    if (why := why_orphan(read.metadata, logs)) is not None:
        yield Finding(FindingKind.ORPHAN, Severity.LOW, ledger_id=read.metadata.ledger_id, detail=why)


def read_tablespace_logs(catalog: LedgerCatalog) -> TablespaceLogs:
    """Reads what is known; empty for a cluster of another layout. Raises MetadataUnavailableError."""
    namespace = catalog.root.removeprefix("/").split("/")[0]
    keys = [ObjectKey(namespace, name) for name in catalog.names_below(f"/{namespace}")]
    if not any(catalog.root == ledgers_root(key) for key in keys):
        return TablespaceLogs()
    roots = [root for root in map(herd_root, keys) if _names_below(catalog, root) is not None]
    tablespaces = [uuid for root in roots for uuid in _tablespaces(catalog, root)]
    return TablespaceLogs(
        ledgers={uuid: ledgers for root in roots for uuid, ledgers in _ledgers(catalog, root).items()},
        tablespaces=frozenset(uuid for uuid in tablespaces if uuid is not None),
        all_decodable=None not in tablespaces,
        nodes=frozenset(node for root in roots for node in catalog.names_below(nodes_path(root))),
        only_cluster=all(_names_below(catalog, root) == [] for root in map(ledgers_root, keys) if root != catalog.root),
    )


def _names_below(catalog: LedgerCatalog, root: str) -> list[str] | None:
    """None if this job may not read them."""
    try:
        return catalog.names_below(root)
    except MetadataForbiddenError:
        return None


def _ledgers(catalog: LedgerCatalog, root: str) -> dict[str, frozenset[int] | None]:
    uuids = catalog.names_below(f"{root}/ledgers")
    found = zip(uuids, catalog.contents([ledgers_path(root, uuid) for uuid in uuids]), strict=True)
    return {uuid: _active(data) for uuid, data in found if data is not None}


def _active(data: bytes) -> frozenset[int] | None:
    try:
        return frozenset(decode_ledgers(data).active)
    except MalformedDataError:
        return None


def _tablespaces(catalog: LedgerCatalog, root: str) -> list[str | None]:
    """Returns uuids; None for an undecodable record."""
    names = catalog.names_below(tablespaces_path(root))
    return [_uuid(data) for data in catalog.contents([tablespace_path(root, name) for name in names]) if data is not None]


def _uuid(data: bytes) -> str | None:
    try:
        return decode_tablespace(data).uuid
    except MalformedDataError:
        return None


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")
