"""Repair of missing entries on played bookies and ZooKeeper: what is written, under which lock, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import pytest
from played_bookie import CRC32C, PlayedBookie, length_up_to, served
from played_repair import (
    KEY,
    LOCK,
    NAMES,
    SETTINGS,
    PlayedCatalog,
    audited,
    bookies_with,
    catalog_of,
    findings_in,
    missing,
    of_herddb,
    repaired,
    writes,
)

from herdkeeper.codecs.bookkeeper.entry import Entry
from herdkeeper.codecs.bookkeeper.metadata import DigestType, LedgerMetadata, LedgerState, Segment
from herdkeeper.codecs.bookkeeper.protocol import ReadCode
from herdkeeper.protocol.audit_finding import Finding, FindingKind, RepairOutcome, Severity
from herdkeeper_jobs.audit import cli
from herdkeeper_jobs.audit.arguments import AuditArguments
from herdkeeper_jobs.audit.request import AuditRequest
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, VersionedMetadata
from herdkeeper_jobs.spark_session import SparkSettings

RECOVERY_ADD = 1 << 16 | 2


def lose_a_middle_entry(bookie: PlayedBookie) -> None:
    del bookie.entries[1, 5]


def lose_the_first_entry(bookie: PlayedBookie) -> None:
    del bookie.entries[1, 0]


def lose_everything(bookie: PlayedBookie) -> None:
    bookie.entries.clear()
    bookie.master_keys.clear()


@pytest.mark.parametrize("storage_shows_after", [0, 5], ids=["DbLedgerStorage", "SortedLedgerStorage"])
@pytest.mark.parametrize("quorums", [(3, 2), (2, 2)], ids=["E=Wq", "striped"])
@pytest.mark.parametrize("fault", [lose_a_middle_entry, lose_the_first_entry, lose_everything])
def test_each_fault_is_repaired_in_place_and_the_next_audit_finds_nothing(
    fault: Callable[[PlayedBookie], None], quorums: tuple[int, int], storage_shows_after: int
) -> None:
    bookies = bookies_with(10)
    fault(bookies[2])
    bookies[2].reads_until_flush = storage_shows_after
    # b2 holds entry 5 in both layouts, but not entry 0 if striped
    lost_something = not (fault is lose_the_first_entry and quorums[0] == 2)
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10, NAMES, quorums))
        found = findings_in(catalog)
        assert bool(found) == lost_something
        result = repaired(catalog, found)
        assert [finding.repair for finding in result.findings] == [RepairOutcome.REPAIRED] * len(found)
        assert findings_in(catalog) == ()
    assert {request[0] for request in writes(bookies)} <= {RECOVERY_ADD}
    assert len(writes(bookies)) == result.copies_repaired == sum(1 for _ in writes(bookies[2:]))
    assert bookies[2].master_keys[1] == KEY
    assert catalog.client.owners == {}
    assert catalog.client.listeners == []


def test_while_it_writes_it_holds_bookkeepers_own_lock_and_says_who_it_is() -> None:
    bookies = bookies_with(10)
    del bookies[1].entries[1, 5]
    held: list[dict[str, int]] = []
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10))
        bookies[1].on_add = lambda ledger_id, entry_id: held.append(dict(catalog.client.owners))
        repaired(catalog, [missing(5, 5)])
    assert held == [{LOCK: 7}]
    assert catalog.client.data[LOCK] == b'bookieId: "herdkeeper-audit run-1"\n'


def test_a_dry_run_takes_no_lock_and_writes_nothing() -> None:
    bookies = bookies_with(10)
    del bookies[1].entries[1, 5]
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10))
        result = repaired(catalog, [missing(5, 5)], replace(SETTINGS, dry_run=True))
    assert [finding.repair for finding in result.findings] == [RepairOutcome.WOULD_REPAIR]
    assert (writes(bookies), catalog.client.data, result.copies_repaired) == ([], {}, 0)
    assert (result.copies_repairable, result.findings[0].repair_detail) == (1, "1 entries would be written, 0 were whole already")


def test_an_entry_without_a_good_replica_is_refused_with_what_each_bookie_said_and_its_neighbours_are_repaired() -> None:
    bookies = bookies_with(10)
    del bookies[0].entries[1, 5]
    for entry_id in (4, 5, 6):
        del bookies[1].entries[1, entry_id]
    bookies[2].entries[1, 5] = bookies[2].entries[1, 5][:-1] + b"?"
    with served(*bookies) as addresses:
        result = repaired(catalog_of(addresses, of_herddb(10)), [missing(4, 6)])
    (finding,) = result.not_repaired
    assert finding.repair is RepairOutcome.REFUSED
    for words in ("entry 5: no good replica", "bookie b0 answered NO_ENTRY", "bookie b2 has it damaged", "2 others were written"):
        assert words in finding.repair_detail
    assert sorted(entry_id for _, _, entry_id in writes(bookies)) == [4, 6]


@pytest.mark.parametrize("where", [2, 1], ids=["between sources", "on the bookie itself"])
def test_replicas_that_contradict_each_other_are_left_alone(where: int) -> None:
    bookies = bookies_with(10)
    del bookies[1].entries[1, 5]
    bookies[where].entries[1, 5] = CRC32C.pack(Entry(1, 5, 4, 60, b"another"))
    with served(*bookies) as addresses:
        result = repaired(catalog_of(addresses, of_herddb(10)), [missing(5, 5)])
    assert result.findings[0].repair is RepairOutcome.REFUSED
    assert "different payloads, both with right digests" in result.findings[0].repair_detail
    assert writes(bookies) == []


@pytest.mark.parametrize("silent", ["away", "read error"])
def test_a_copy_below_the_ack_quorum_is_no_source_while_a_replica_that_may_contradict_it_does_not_answer(silent: str) -> None:
    bookies = bookies_with(10)
    del bookies[1].entries[1, 5]
    bookies[0].entries[1, 5] = CRC32C.pack(Entry(1, 5, 4, length_up_to(1, 5), b"1/?"))
    with served(*bookies) as addresses:
        if silent == "read error":
            bookies[2].codes[1, 5] = ReadCode.IO_ERROR
        heard = {name: address for name, address in addresses.items() if silent != "away" or name != "b2"}
        result = repaired(catalog_of(heard, of_herddb(10)), [missing(5, 5)])
        bookies[2].codes.clear()
        after = findings_in(catalog_of(addresses, of_herddb(10)))
    assert {finding.bookie_id for finding in after} != {"b2"}
    assert (result.findings[0].repair, writes(bookies)) == (RepairOutcome.REFUSED, [])
    assert "fewer than the ack quorum" in result.findings[0].repair_detail


def test_a_copy_on_a_bookie_that_the_ensemble_names_twice_is_one_below_the_ack_quorum() -> None:
    bookies = bookies_with(10)
    del bookies[1].entries[1, 5]
    bookies[0].entries[1, 5] = CRC32C.pack(Entry(1, 5, 4, length_up_to(1, 5), b"1/?"))
    with served(*bookies) as addresses:
        heard = {name: address for name, address in addresses.items() if name != "b2"}
        result = repaired(catalog_of(heard, of_herddb(10, ("b0", "b0", "b1", "b2"), (4, 2))), [missing(5, 5)])
    assert (result.findings[0].repair, writes(bookies)) == (RepairOutcome.REFUSED, [])
    assert "fewer than the ack quorum" in result.findings[0].repair_detail


def test_what_a_bookie_lacks_in_the_second_of_its_two_places_is_written_there() -> None:
    bookies = bookies_with(10)
    del bookies[0].entries[1, 4], bookies[0].entries[1, 7]  # of a striped ledger, both are in the place behind b1 alone
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10, ("b0", "b1", "b0"), (2, 1)))
        found = [finding for finding in findings_in(catalog) if finding.kind is FindingKind.MISSING]
        result = repaired(catalog, found)
        after = [finding for finding in findings_in(catalog) if finding.kind is FindingKind.MISSING]
    assert {finding.repair for finding in result.findings} == {RepairOutcome.REPAIRED}
    assert (sorted(entry_id for _, _, entry_id in writes(bookies)), after, result.copies_repaired) == ([4, 7], [], 2)


def test_a_copy_that_its_bookie_can_t_read_now_is_not_written_over_by_one_below_the_ack_quorum() -> None:
    """The finding is old: the right copy has been written since, by another repair."""
    bookies = bookies_with(10)
    bookies[0].entries[1, 5] = CRC32C.pack(Entry(1, 5, 4, length_up_to(1, 5), b"1/?"))
    bookies[1].codes[1, 5] = ReadCode.IO_ERROR
    del bookies[2].entries[1, 5]
    with served(*bookies) as addresses:
        result = repaired(catalog_of(addresses, of_herddb(10)), [missing(5, 5)])
    assert (result.findings[0].repair, writes(bookies)) == (RepairOutcome.REFUSED, [])
    assert "fewer than the ack quorum" in result.findings[0].repair_detail


@dataclass
class CatalogOfAReadOnlyBookie(PlayedCatalog):
    def writable_bookies(self) -> frozenset[str]:
        return frozenset(self.addresses) - {"b1"}


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_bookie_that_takes_no_entries_is_refused_what_it_lacks_by_a_dry_run_too(dry_run: bool) -> None:
    bookies = bookies_with(10)
    del bookies[1].entries[1, 5]
    with served(*bookies) as addresses:
        catalog = CatalogOfAReadOnlyBookie(addresses, [VersionedMetadata(of_herddb(10), 3)])
        result = repaired(catalog, [missing(5, 5), missing(6, 6)], replace(SETTINGS, dry_run=dry_run))
    lacks, whole = result.findings
    assert (lacks.repair, writes(bookies), result.copies_repairable) == (RepairOutcome.REFUSED, [], 0)
    assert lacks.repair_detail == "entry 5: bookie b1 takes no entries now, since it is read-only or away"
    assert whole.repair is (RepairOutcome.WOULD_REPAIR if dry_run else RepairOutcome.REPAIRED)


@pytest.mark.parametrize("dry_run", [False, True])
def test_an_entry_that_was_missing_and_is_damaged_by_now_is_not_written_in_its_place(dry_run: bool) -> None:
    bookies = bookies_with(10)
    bookies[1].entries[1, 5] = bookies[1].entries[1, 5][:-1] + b"?"
    with served(*bookies) as addresses:
        result = repaired(catalog_of(addresses, of_herddb(10)), [missing(5, 5)], replace(SETTINGS, dry_run=dry_run))
    assert (result.findings[0].repair, writes(bookies)) == (RepairOutcome.REFUSED, [])
    assert "entry 5 was missing, and now bookie b1 has it damaged" in result.findings[0].repair_detail
    assert "audit again" in result.findings[0].repair_detail


def test_a_bookie_that_does_not_answer_is_not_waited_for_at_each_entry_while_the_ledger_is_locked() -> None:
    bookies = bookies_with(19)
    bookies[1].entries.clear()
    bookies[2].silent = True
    asked: list[str] = []
    bookies[2].on_request = lambda: asked.append("b2")
    with served(*bookies) as addresses:
        result = repaired(catalog_of(addresses, of_herddb(19)), [missing(0, 19)], replace(SETTINGS, timeout_seconds=0.5))
    assert len(asked) <= 1
    assert result.findings[0].repair is RepairOutcome.REFUSED


def test_another_lac_is_no_contradiction_and_what_is_whole_by_now_is_not_written() -> None:
    bookies = bookies_with(10)
    bookies[2].entries[1, 5] = CRC32C.pack(Entry(1, 5, 2, length_up_to(1, 5), b"1/5"))
    with served(*bookies) as addresses:
        result = repaired(catalog_of(addresses, of_herddb(10)), [missing(5, 5)])
    assert (result.findings[0].repair, writes(bookies)) == (RepairOutcome.REPAIRED, [])


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (of_herddb(None), "the ledger is OPEN: only closed ledgers are repaired"),
        (replace(of_herddb(None), state=LedgerState.IN_RECOVERY), "the ledger is IN_RECOVERY"),
        (of_herddb(10, ("b0", "b2", "b3")), "bookie b1 is not in the ensemble of these entries any more"),
        (replace(of_herddb(10), segments=(Segment(0, NAMES), Segment(3, ("b0", "b2", "b3")))), "bookie b1 is not in the ensemble"),
        (replace(of_herddb(10), digest_type=DigestType.DUMMY), "no digest, so no replica can be verified"),
        (replace(of_herddb(10), digest_type=None), "no password, so its master key is not known"),
        (of_herddb(3), "bookie b1 is not in the ensemble of these entries any more"),
    ],
)
def test_what_may_not_be_repaired_is_refused_before_anything_is_written(metadata: LedgerMetadata, words: str) -> None:
    bookies = bookies_with(10)
    del bookies[1].entries[1, 5]
    with served(*bookies) as addresses:
        # from the first look on, or only once the lock is held
        for versions in ([metadata], [of_herddb(10), metadata]):
            result = repaired(catalog_of(addresses, *versions), [missing(5, 5)])
            assert result.findings[0].repair is RepairOutcome.REFUSED
            assert words in result.findings[0].repair_detail
    assert writes(bookies) == []


def test_a_ledger_that_is_gone_or_that_somebody_else_copies_is_left_alone() -> None:
    bookies = bookies_with(10)
    with served(*bookies) as addresses:
        gone = repaired(PlayedCatalog(addresses, [None]), [missing(5, 5)])
        catalog = catalog_of(addresses, of_herddb(10))
        catalog.client.owners[LOCK] = 99
        locked = repaired(catalog, [missing(5, 5)])
    assert gone.findings[0].repair_detail == "the ledger is gone"
    assert "another process copies this ledger's entries now" in locked.findings[0].repair_detail
    assert catalog.client.owners == {LOCK: 99}
    assert writes(bookies) == []


def lose_the_session(catalog: PlayedCatalog) -> None:
    for listener in list(catalog.client.listeners):
        listener("SUSPENDED")


def lose_the_lock(catalog: PlayedCatalog) -> None:
    catalog.client.owners[LOCK] = 99


def lose_zookeeper(catalog: PlayedCatalog) -> None:
    catalog.client.silent = True


def change_the_ensemble(catalog: PlayedCatalog) -> None:
    catalog.versions = [VersionedMetadata(of_herddb(200), 9)]


@pytest.mark.parametrize(
    ("happens", "words", "most_written"),
    [
        (lose_the_session, "the connection to ZooKeeper was SUSPENDED", 1),
        (lose_the_lock, "it is held by another session", 64),
        (lose_zookeeper, "ZooKeeper did not answer", 64),
        (change_the_ensemble, "the ledger's metadata changed while it was locked", 64),
    ],
)
def test_nothing_more_is_written_once_the_lock_is_uncertain(
    happens: Callable[[PlayedCatalog], None], words: str, most_written: int
) -> None:
    bookies = bookies_with(200)
    for entry_id in range(201):
        del bookies[1].entries[1, entry_id]
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(200))
        bookies[1].on_add = lambda ledger_id, entry_id: happens(catalog)
        result = repaired(catalog, [missing(0, 200)])
    assert result.findings[0].repair is RepairOutcome.FAILED
    assert words in result.findings[0].repair_detail
    assert len(writes(bookies)) == most_written


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (lose_the_session, "the connection to ZooKeeper was SUSPENDED"),
        (lose_the_lock, "it is held by another session"),
        (lose_zookeeper, "ZooKeeper did not answer"),
        (change_the_ensemble, "the ledger's metadata changed while it was locked"),
    ],
)
def test_nothing_counts_as_repaired_when_the_lock_is_uncertain_after_the_last_write(
    happens: Callable[[PlayedCatalog], None], words: str
) -> None:
    bookies = bookies_with(10)
    del bookies[1].entries[1, 5]
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10))
        bookies[1].on_add = lambda ledger_id, entry_id: happens(catalog)
        result = repaired(catalog, [missing(5, 5)])
    assert result.findings[0].repair is RepairOutcome.FAILED
    assert words in result.findings[0].repair_detail


@pytest.mark.parametrize(("happens", "left"), [(lose_the_session, {}), (lose_the_lock, {LOCK: 99})])
def test_a_lock_that_is_still_this_sessions_is_given_back_though_it_was_uncertain(
    happens: Callable[[PlayedCatalog], None], left: dict[str, int]
) -> None:
    """The session lasts until the last ledger is repaired. Autorecovery would leave this one alone until then."""
    bookies = bookies_with(10)
    del bookies[1].entries[1, 5]
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10))
        bookies[1].on_add = lambda ledger_id, entry_id: happens(catalog)
        repaired(catalog, [missing(5, 5)])
    assert catalog.client.owners == left


def test_a_ledger_is_left_alone_while_there_is_no_session() -> None:
    bookies = bookies_with(10)
    del bookies[1].entries[1, 5]
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10))
        catalog.client.client_id = None
        result = repaired(catalog, [missing(5, 5)])
    assert (result.findings[0].repair, writes(bookies)) == (RepairOutcome.FAILED, [])


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ({"read_only": True}, "bookie b1 answered READ_ONLY to the write"),
        ({"master_keys": {1: b"x" * 20}}, "bookie b1 answered UNAUTHORIZED to the write"),
        ({"reads_until_flush": 10**9}, "entry 5 was written, but after 0.2 s it is not whole: bookie b1 answered NO_ENTRY"),
    ],
)
def test_a_write_that_is_refused_or_can_not_be_read_back_is_a_failure(trouble: dict[str, object], words: str) -> None:
    bookies = bookies_with(10)
    del bookies[1].entries[1, 5]
    for name, value in trouble.items():
        setattr(bookies[1], name, value)
    with served(*bookies) as addresses:
        result = repaired(catalog_of(addresses, of_herddb(10)), [missing(5, 5)], replace(SETTINGS, visible_seconds=0.2))
    assert result.findings[0].repair is RepairOutcome.FAILED
    assert words in result.findings[0].repair_detail


def test_findings_that_name_no_entries_of_a_bookie_are_returned_as_they_are() -> None:
    away = Finding(FindingKind.BOOKIE_UNREACHABLE, Severity.UNKNOWN, bookie_id="b1")
    failed = replace(missing(5, 5), kind=FindingKind.READ_FAILED)
    with served(*bookies_with(10)) as addresses:
        assert repaired(catalog_of(addresses, of_herddb(10)), [away, failed]).findings == (away, failed)


def arguments(how: str) -> AuditArguments:
    return AuditArguments("z:1", "/l", "run-1", AuditRequest(), float("inf"), how, None, SparkSettings())


def test_the_summary_of_a_repair_says_first_what_is_not_repaired() -> None:
    bookies = bookies_with(10)
    del bookies[1].entries[1, 5]
    for bookie in bookies:
        del bookie.entries[1, 8]
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10))
        found = audited(catalog)
        reported = cli.repaired(cast("LedgerCatalog", catalog), found, arguments("report"))
        assert reported is found
        result = cli.repaired(cast("LedgerCatalog", catalog), found, arguments("repair"))
    assert (result.summary.copies_repaired, result.summary.not_repaired) == (1, 3)
    first = "; NOT REPAIRED: 3 findings, the first in ledger 1 on bookie b0: entry 8: no good replica: bookie b2 answered NO_ENTRY"
    assert first in result.summary.message
    assert result.summary.message.endswith("; 1 copies repaired")
    assert sorted(str(finding.repair) for finding in result.findings) == ["Refused", "Refused", "Refused", "Repaired"]


def test_a_dry_run_reports_first_what_a_repair_could_not_fix_and_then_how_much_it_would_write() -> None:
    bookies = bookies_with(10)
    del bookies[1].entries[1, 5]
    for bookie in bookies:
        del bookie.entries[1, 8]
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10))
        result = cli.repaired(cast("LedgerCatalog", catalog), audited(catalog), arguments("dry-run"))
    assert (result.summary.copies_repaired, result.summary.copies_repairable, result.summary.not_repaired) == (0, 1, 3)
    assert "; NOT REPAIRABLE: 3 findings, the first in ledger 1 on bookie b0: entry 8: no good replica" in result.summary.message
    assert result.summary.message.endswith("; a repair would write 1 copies")
    assert writes(bookies) == []
