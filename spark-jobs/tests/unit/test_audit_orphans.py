"""Orphaned ledgers: what makes one, what is unknown, and that both reads must agree."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, repeat

import pytest
from played_bookie import ledger
from test_ledger_catalog import ROOT, PlayedZooKeeper, catalog_of, cluster
from test_replication_audit import LIGHT, PlayedCatalog, Read, audited, short

from herdkeeper.codecs.bookkeeper.layout import LedgerLayout
from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord, encode_tablespace
from herdkeeper.protocol.audit_finding import FindingKind, Severity
from herdkeeper_jobs.audit.orphans import OrphanRule, TablespaceLogs, lost_ledgers, read_tablespace_logs, why_orphan
from herdkeeper_jobs.audit.request import AuditRequest
from herdkeeper_jobs.bookkeeper.metadata import MetadataUnavailableError, VersionedMetadata

OLD, NOW = 1_000, 2_000
KNOWN = TablespaceLogs({"u1": frozenset({7, 8}), "u2": None}, frozenset({"u1", "u2"}), frozenset({"node-0"}))


def of_log(number: int, uuid: str = "u1", leader: str = "node-0", application: str = "herddb") -> LedgerMetadata:
    """An empty ledger with the metadata of HerdDB's log."""
    told = {"application": application, "component": "commitlog", "tablespaceuuid": uuid, "tablespacename": "orders", "leader": leader}
    return replace(ledger(number, -1, ("b0", "b1", "b2")), custom_metadata=tuple((key, value.encode()) for key, value in told.items()))


@pytest.mark.parametrize(
    ("metadata", "logs", "words"),
    [
        (of_log(7), KNOWN, None),
        (of_log(6), KNOWN, "the log of tablespace 'orders' (u1) does not have it any more"),
        (of_log(6, "u2"), KNOWN, None),
        (of_log(6, "u9"), KNOWN, "the tablespace u9 no longer exists (it was 'orders')"),
        (of_log(6, "u9", "stranger"), KNOWN, None),
        (of_log(6, "u9"), replace(KNOWN, all_decodable=False), None),
        (of_log(7), replace(KNOWN, tablespaces=frozenset({"u2"})), "the tablespace u1 no longer exists (it was 'orders')"),
        (of_log(6), TablespaceLogs(), None),
        (of_log(6, application="pulsar"), KNOWN, None),
        (replace(of_log(6), custom_metadata=(("application", b"herdkeeper"),)), KNOWN, None),
        (ledger(6, -1, ("b0",)), KNOWN, None),
    ],
    ids=[
        *("listed", "not listed", "its list can't be read", "no such tablespace", "no such tablespace, of a database elsewhere"),
        *("a tablespace can't be read", "listed for a dropped tablespace", "nothing is known", "another application"),
        *("a rehearsal", "no custom metadata"),
    ],
)
def test_an_orphan_is_missing_from_the_list_of_a_known_tablespace(
    metadata: LedgerMetadata, logs: TablespaceLogs, words: str | None
) -> None:
    assert why_orphan(metadata, logs) == words


def audit_with(looks: Iterable[TablespaceLogs], later: Read | None, created: int | None = OLD) -> list[tuple[object, ...]]:
    """Findings about ledger 6, given the lists of each look."""
    told = chain(looks, repeat(KNOWN))
    request = replace(LIGHT, orphans=OrphanRule(lambda: next(told), NOW))
    catalog = PlayedCatalog({}, {6: VersionedMetadata(of_log(6), 0, created)}, later={6: later})
    return [short(finding) for finding in audited(catalog, request=request).findings]


STAYS = VersionedMetadata(of_log(6), 0, OLD)
LISTED = replace(KNOWN, ledgers={"u1": frozenset({6})})


def test_an_orphan_is_reported_and_nothing_of_it_counts_as_lost() -> None:
    assert audit_with([KNOWN, KNOWN], STAYS) == [(FindingKind.ORPHAN, Severity.LOW, 6, None, None, None)]


@pytest.mark.parametrize(
    ("looks", "later"),
    [
        ([KNOWN, LISTED], STAYS),
        ([LISTED], STAYS),
        ([KNOWN, KNOWN], None),
        ([KNOWN, KNOWN], replace(STAYS, created_millis=NOW)),
        ([KNOWN, KNOWN], replace(STAYS, created_millis=None)),
    ],
    ids=["listed meanwhile", "listed", "deleted meanwhile", "too young", "of unknown age"],
)
def test_what_the_second_look_does_not_confirm_is_no_orphan(looks: list[TablespaceLogs], later: Read | None) -> None:
    assert audit_with(looks, later) == []


def test_without_a_rule_nothing_is_judged() -> None:
    assert audited(PlayedCatalog({}, {6: STAYS}), request=AuditRequest()).findings == ()


LOG = replace(KNOWN, ledgers={"u1": frozenset({6, 7})})
GONE = (FindingKind.LEDGER_UNREADABLE, Severity.CRITICAL, 7, None, None, None)


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (LOG, LOG, [GONE]),
        (LOG, replace(LOG, ledgers={"u1": frozenset({6})}), []),
        (LOG, replace(LOG, tablespaces=frozenset()), []),
        (LOG, replace(LOG, tablespaces=frozenset({"u2"}), all_decodable=False), []),
        (replace(LOG, ledgers={"u2": frozenset({6, 7})}), replace(LOG, ledgers={"u2": frozenset({6, 7})}), []),
    ],
    ids=["listed", "dropped meanwhile", "of a dropped tablespace", "of an unknown tablespace", "of a log in another cluster"],
)
def test_a_ledger_that_a_log_lists_and_bookkeeper_does_not_know_is_told(
    first: TablespaceLogs, second: TablespaceLogs, found: list[tuple[object, ...]]
) -> None:
    looks = iter([first, first, second])
    request = replace(LIGHT, orphans=OrphanRule(lambda: next(looks), NOW))
    catalog = PlayedCatalog({}, {6: replace(STAYS, created_millis=NOW)})
    result = audited(catalog, request=request)
    assert [short(finding) for finding in result.findings] == found
    assert result.summary.critical == len(found)


def zookeeper(**of_orders: bytes) -> PlayedZooKeeper:
    """A cluster in the operator's layout, with one database beside it and one retained database."""
    played = cluster(LedgerLayout.HIERARCHICAL, [6])
    played.nodes |= {
        "/shop/db/herd/tableSpaces/orders": encode_tablespace(TablespaceRecord("u1", "orders", "node-0", ("node-0",), 1, 0)),
        "/shop/db/herd/ledgers/u1": listed(7, 8),
        "/shop/db/herd/nodes/node-0": b"",
        "/shop/old/herd/ledgers/u3": b"",
        "/elsewhere/db/herd/ledgers/u4": listed(1),
    }
    played.nodes |= {f"/shop/db/herd/{path.replace('__', '/')}": data for path, data in of_orders.items()}
    return played


def listed(*ledgers: int) -> bytes:
    return json.dumps({"activeLedgers": ledgers, "ledgersTimestamps": ledgers, "firstLedger": 1, "zkVersion": 0}).encode()


def test_the_lists_of_all_databases_of_the_namespace_are_read() -> None:
    found = read_tablespace_logs(catalog_of(zookeeper()))
    assert found == TablespaceLogs(
        {"u1": frozenset({7, 8}), "u3": frozenset()}, frozenset({"u1"}), frozenset({"node-0"}), only_cluster=True
    )


def told_as_lost(played: PlayedZooKeeper) -> list[int | None]:
    catalog = catalog_of(played)
    found = lost_ledgers(catalog, OrphanRule(lambda: read_tablespace_logs(catalog), NOW), lambda ledger: ledger != 8)
    return [finding.ledger_id for finding in found]


def test_a_log_that_lost_all_of_its_ledgers_is_told_unless_another_cluster_may_have_it() -> None:
    played = zookeeper()
    assert told_as_lost(played) == [7], "no ledger of this log is left in the only cluster of the namespace"
    played.nodes["/shop/other/ledgers/INSTANCEID"] = b"another"
    assert told_as_lost(played) == []
    played.forbidden.add("/shop/other/ledgers")
    assert told_as_lost(played) == [], "this job may not even see what the other one has"


def test_what_cannot_be_decoded_is_unknown() -> None:
    found = read_tablespace_logs(catalog_of(zookeeper(ledgers__u1=b"rubbish", tableSpaces__orders=b"rubbish")))
    assert (found.ledgers["u1"], found.tablespaces, found.all_decodable) == (None, frozenset(), False)


def test_an_undecodable_tablespace_hides_no_lost_ledger_of_another_one() -> None:
    assert told_as_lost(zookeeper(tableSpaces__other=b"rubbish")) == [7]
    assert told_as_lost(zookeeper(tableSpaces__orders=b"rubbish")) == [], "its log may belong to a tablespace that is dropped"


def test_nothing_is_known_of_a_cluster_of_another_layout() -> None:
    played = zookeeper()
    moved = {path.replace(ROOT, "/ledgers"): data for path, data in played.nodes.items() if path.startswith(ROOT)}
    played.nodes |= moved
    catalog = replace(catalog_of(played), root="/ledgers")
    assert read_tablespace_logs(catalog) == TablespaceLogs()


def test_unavailable_lists_are_not_empty_lists() -> None:
    played = zookeeper()
    played.broken.add("/shop/db/herd/ledgers/u1")
    with pytest.raises(MetadataUnavailableError):
        read_tablespace_logs(catalog_of(played))


def test_the_time_of_a_ledgers_creation_comes_with_its_metadata() -> None:
    (read,) = catalog_of(zookeeper()).read_many([6])
    assert isinstance(read, VersionedMetadata)
    assert read.created_millis == 1_790_000_000_000
