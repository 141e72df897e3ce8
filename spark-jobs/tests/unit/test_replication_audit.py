"""The whole audit on played bookies and metadata: its counts, what the second pass settles, and what it refuses."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import pyarrow as pa
import pytest
from played_bookie import CRC32C, PlayedBookie, ledger, nowhere, packed, served
from structlog.testing import capture_logs

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.entry import Entry, EntryDigest
from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata, LedgerState, Segment
from herdkeeper.codecs.bookkeeper.protocol import ReadCode
from herdkeeper.codecs.bookkeeper.striping import EntryRange, striping
from herdkeeper.protocol.audit_finding import AuditDepth, Finding, FindingKind, Severity
from herdkeeper_jobs.audit.copy_reader import TaskRunner
from herdkeeper_jobs.audit.job import AuditInvariantError, AuditResult, audit
from herdkeeper_jobs.audit.placement import RackMap, findings_of_names, findings_of_placement
from herdkeeper_jobs.audit.request import AuditRequest, LedgerFilter
from herdkeeper_jobs.audit.schema import HOLDINGS_ARROW, holdings_to_batch
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, UndecodableMetadata, VersionedMetadata
from herdkeeper_jobs.copies import check
from herdkeeper_jobs.copies.check import check_copies
from herdkeeper_jobs.copies.holding import CopyState, Holding
from herdkeeper_jobs.copies.inspection import Inspected, Numbers, inspect
from herdkeeper_jobs.copies.plan import AuditBudget, AuditedLedger, AuditTask, HoldingCheck, holding_checks

NAMES = ("b0", "b1", "b2")
Read = VersionedMetadata | UndecodableMetadata
BUDGET = AuditBudget(cores=2, timeout_seconds=120.0)
EVERYTHING = AuditRequest()


@dataclass
class PlayedCatalog:
    """ZooKeeper's side. `later`: the result of a ledger's second read; None: it is gone."""

    addresses: dict[str, BookieAddress]
    ledgers: dict[int, Read]
    later: dict[int, Read | None] = field(default_factory=dict)
    instance_id: str = "instance-1"
    read: set[int] = field(default_factory=set)

    def bookie_addresses(self) -> dict[str, BookieAddress]:
        return self.addresses

    def ledger_ids(self) -> list[int]:
        return sorted(self.ledgers)

    def read_many(self, ledger_ids: Sequence[int]) -> Iterator[Read]:
        for ledger_id in ledger_ids:
            first = self.ledgers.get(ledger_id)
            now = self.later.get(ledger_id, first) if ledger_id in self.read else first
            self.read.add(ledger_id)
            if now is not None:
                yield now


def run_here(tasks: Sequence[AuditTask]) -> pa.Table:
    return pa.Table.from_batches([holdings_to_batch(check_copies(task)) for task in tasks], HOLDINGS_ARROW)


def audited(catalog: PlayedCatalog, run: TaskRunner = run_here, request: AuditRequest = EVERYTHING) -> AuditResult:
    return audit(cast("LedgerCatalog", catalog), request, BUDGET, run)


def full(*ledgers: tuple[int, int]) -> dict[tuple[int, int], bytes]:
    return {(number, entry_id): packed(number, entry_id) for number, last in ledgers for entry_id in range(last + 1)}


def versioned(*ledgers: LedgerMetadata) -> dict[int, Read]:
    return {metadata.ledger_id: VersionedMetadata(metadata, 3) for metadata in ledgers}


def short(finding: Finding) -> tuple[object, ...]:
    return finding.kind, finding.severity, finding.ledger_id, finding.first_entry_id, finding.last_entry_id, finding.bookie_id


def test_a_healthy_cluster_gives_no_findings_and_exact_counts() -> None:
    bookies = [PlayedBookie(full((1, 99), (2, 29), (3, 19))) for _ in NAMES]
    with served(*bookies) as addresses:
        result = audited(
            PlayedCatalog(
                addresses, versioned(ledger(1, 99, NAMES), ledger(2, 29, NAMES, (2, 2)), ledger(3, None, NAMES), ledger(4, -1, NAMES))
            )
        )
    summary = result.summary
    assert result.findings == ()
    assert (summary.ledgers, summary.open_ledgers) == (4, 1)
    # The open ledger is audited up to its LAC, 18 by its last entry.
    assert summary.entries == 100 + 30 + 19
    assert summary.copies_expected == summary.copies_verified == 300 + 60 + 57
    assert summary.copies_unknown == 0
    assert summary.bytes_read > 0


def test_exactly_the_deleted_entries_are_named() -> None:
    bookies = [PlayedBookie(full((1, 99), (2, 29))) for _ in NAMES]
    for entry_id in range(17, 24):
        del bookies[1].entries[1, entry_id]
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 99, NAMES), ledger(2, 29, NAMES))))
    assert [short(finding) for finding in result.findings] == [(FindingKind.MISSING, Severity.UNDER_REPLICATED, 1, 17, 23, "b1")]
    assert (result.findings[0].expected_copies, result.findings[0].actual_copies) == (3, 2)
    assert result.summary.copies_verified == result.summary.copies_expected - 7


def test_damage_and_read_errors_are_told_apart() -> None:
    bookies = [PlayedBookie(full((1, 9))) for _ in NAMES]
    bookies[0].entries[1, 4] = bookies[0].entries[1, 4][:-1] + b"?"
    bookies[2].codes[1, 6] = ReadCode.IO_ERROR
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 9, NAMES))))
    assert [short(finding) for finding in result.findings] == [
        (FindingKind.CORRUPT_DIGEST, Severity.UNDER_REPLICATED, 1, 4, 4, "b0"),
        (FindingKind.READ_FAILED, Severity.UNKNOWN, 1, 6, 6, "b2"),
    ]
    assert result.findings[0].detail.startswith("CRC32C digest is ")
    assert result.summary.copies_unknown == 1


def test_a_bookie_that_is_away_makes_its_copies_unknown_and_not_missing() -> None:
    bookies = [PlayedBookie(full((1, 9))) for _ in NAMES]
    with served(*bookies) as addresses:
        addresses["b1"] = nowhere()
        del addresses["b2"]
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 9, NAMES))))
    assert [(finding.kind, finding.bookie_id) for finding in result.findings] == [
        (FindingKind.BOOKIE_UNREACHABLE, "b1"),
        (FindingKind.BOOKIE_UNREACHABLE, "b2"),
    ]
    assert (result.summary.copies_verified, result.summary.copies_unknown) == (10, 20)


def test_a_bookie_that_breaks_off_once_is_read_again_and_not_reported() -> None:
    bookies = [PlayedBookie(full((1, 60))) for _ in NAMES]
    bookies[1].closes_after = 6
    with served(*bookies) as addresses, capture_logs() as log:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 60, NAMES))))
    assert result.findings == ()
    assert result.summary.copies_verified == result.summary.copies_expected == 183
    assert [line["bookies"] for line in log if line["event"] == "second pass"] == [["b1"]], "what was asked twice is told nevertheless"


def test_a_ledger_that_is_gone_by_the_second_look_is_no_finding_and_not_counted() -> None:
    bookies = [PlayedBookie(full((2, 9))) for _ in NAMES]
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 9, NAMES), ledger(2, 9, NAMES)), later={1: None}))
    assert result.findings == ()
    assert (result.summary.ledgers, result.summary.entries, result.summary.copies_expected) == (1, 10, 30)


def test_a_ledger_whose_ensemble_changed_meanwhile_is_judged_by_its_new_metadata() -> None:
    bookies = [PlayedBookie(full((1, 9))), PlayedBookie(full((1, 9))), PlayedBookie(), PlayedBookie(full((1, 9)))]
    now = VersionedMetadata(ledger(1, 9, ("b0", "b1", "b3")), 4)
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 9, NAMES)), later={1: now}))
    assert result.findings == ()
    # The first pass verified two replicas that did not move, so the second one reads only the third.
    assert result.summary.copies_verified == result.summary.copies_expected == 30
    # one entry is requested first, so that a bookie without the ledger gets no further requests
    assert [len(bookie.requests) for bookie in bookies[:2]] == [3, 3]
    assert [(bookie.bookie_id, bookie.copies_verified) for bookie in result.bookies] == [("b0", 10), ("b1", 10), ("b3", 10)]


def test_a_missing_copy_of_an_open_ledger_is_pending_and_nothing_above_the_lac_is_looked_at() -> None:
    bookies = [PlayedBookie(full((1, 20))) for _ in NAMES]
    del bookies[2].entries[1, 19]
    del bookies[2].entries[1, 20]
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, None, NAMES))))
    assert [short(finding) for finding in result.findings] == [(FindingKind.MISSING, Severity.PENDING, 1, 19, 19, "b2")]


def test_an_entry_below_the_ack_quorum_is_critical_and_comes_first() -> None:
    bookies = [PlayedBookie(full((1, 9), (2, 9))) for _ in NAMES]
    del bookies[0].entries[1, 3]
    del bookies[0].entries[2, 5]
    del bookies[1].entries[2, 5]
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 9, NAMES), ledger(2, 9, NAMES))))
    assert [finding.severity for finding in result.findings] == [Severity.CRITICAL, Severity.CRITICAL, Severity.UNDER_REPLICATED]
    assert (result.summary.critical, result.summary.under_replicated) == (2, 1)


def test_extra_entries_on_other_bookies_are_legitimate() -> None:
    bookies = [PlayedBookie(full((1, 30))) for _ in NAMES]
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 20, NAMES, (2, 2)))))
    assert result.findings == ()


def test_metadata_that_cannot_be_decoded_and_a_lac_that_nobody_tells_are_reported_by_ledger() -> None:
    undecodable = UndecodableMetadata(1, "metadata of ledger 1: rubbish")
    catalog = PlayedCatalog({}, {1: undecodable, 2: VersionedMetadata(ledger(2, None, NAMES), 0)})
    assert [(finding.kind, finding.ledger_id) for finding in audited(catalog).findings] == [
        (FindingKind.LEDGER_UNREADABLE, 1),
        (FindingKind.END_UNKNOWN, 2),
    ]


@dataclass
class LateCatalog(PlayedCatalog):
    """A catalog whose bookies are registered from the second request on."""

    asked: int = 0

    def bookie_addresses(self) -> dict[str, BookieAddress]:
        self.asked += 1
        return {} if self.asked == 1 else self.addresses


CLOSED_MEANWHILE = replace(ledger(1, None, NAMES), state=LedgerState.CLOSED, last_entry_id=20, length=210)


@pytest.mark.parametrize(
    ("first", "later", "entries"),
    [
        (UndecodableMetadata(1, "rubbish"), VersionedMetadata(ledger(1, 20, NAMES), 1), 21),
        (VersionedMetadata(ledger(1, None, NAMES), 0), VersionedMetadata(ledger(1, None, NAMES), 0), 20),
        (VersionedMetadata(ledger(1, None, NAMES), 0), VersionedMetadata(CLOSED_MEANWHILE, 1), 21),
        (UndecodableMetadata(1, "rubbish"), None, 0),
    ],
    ids=["half written", "bookies away", "closed meanwhile", "deleted meanwhile"],
)
def test_a_ledger_that_can_be_read_a_moment_later_is_audited_like_the_others(first: Read, later: Read | None, entries: int) -> None:
    bookies = [PlayedBookie(full((1, 20))) for _ in NAMES]
    with served(*bookies) as addresses:
        del bookies[1].entries[1, 3]
        result = audited(LateCatalog(addresses, {1: first}, later={1: later}))
    assert [short(finding)[0] for finding in result.findings] == ([FindingKind.MISSING] if entries else [])
    assert (result.summary.ledgers, result.summary.entries) == (min(entries, 1), entries)
    assert result.summary.copies_verified == max(3 * entries - 1, 0)


def test_a_ledger_that_stays_unreadable_is_audited_up_to_its_last_segment() -> None:
    bookies = [PlayedBookie(full((1, 20))) for _ in range(5)]
    del bookies[1].entries[1, 3]
    metadata = replace(ledger(1, None, NAMES), segments=(Segment(0, NAMES), Segment(10, ("b0", "b3", "b4"))))
    with served(*bookies) as addresses:
        for away in ("b0", "b3", "b4"):
            addresses[away] = nowhere()
        result = audited(PlayedCatalog(addresses, {1: VersionedMetadata(metadata, 0)}))
    assert [(finding.kind, finding.first_entry_id, finding.bookie_id) for finding in result.findings] == [
        (FindingKind.BOOKIE_UNREACHABLE, None, "b0"),
        (FindingKind.END_UNKNOWN, None, None),
        (FindingKind.MISSING, 3, "b1"),
    ]
    assert result.summary.entries == 10


@pytest.mark.parametrize("away", [("b3", "b4"), ("b4",)], ids=["ack quorum", "fewer"])
def test_an_open_ledger_of_which_bookies_that_are_away_may_have_the_end_is_not_called_whole(away: tuple[str, ...]) -> None:
    """What b3 and b4 alone acknowledge is on no bookie that answers. They have no other entry that an audit could miss."""
    bookies = [PlayedBookie(full((1, 9))) for _ in NAMES]
    metadata = replace(ledger(1, None, NAMES), segments=(Segment(0, NAMES), Segment(10, ("b0", "b3", "b4"))))
    with served(*bookies, PlayedBookie(full((2, 0)))) as addresses:
        there = {name: address for name, address in addresses.items() if name not in away}
        result = audited(PlayedCatalog(there, {1: VersionedMetadata(metadata, 0)}))
    told = [(FindingKind.END_UNKNOWN, "2 of 3 bookies of the open ledger 1 don't tell what is confirmed: b3, b4")]
    assert [(finding.kind, finding.detail) for finding in result.findings] == (told if len(away) == 2 else [])
    assert (result.summary.entries, result.summary.copies_verified) == (10, 30)


@pytest.mark.parametrize(
    ("quorums", "kept", "away", "doubted"),
    [
        ((3, 2), ("b0",), "b2", "b1 (lacks what it should have), b2"),
        ((3, 2), ("b0", "b2"), None, None),
        ((3, 3), ("b0",), "b2", None),
        ((2, 2), ("b0", "b2"), "b2", "b1 (lacks what it should have), b2"),
    ],
    ids=["one emptied, one away", "one emptied", "all must acknowledge", "striped"],
)
def test_an_emptied_bookie_does_not_tell_an_open_ledgers_end(
    quorums: tuple[int, int], kept: tuple[str, ...], away: str | None, doubted: str | None
) -> None:
    """b1 should have confirmed entries and has none: entries 10 to 12 may have been on it and on the one that is away."""
    bookies = [PlayedBookie(full((1, 9))) if name in kept else PlayedBookie() for name in NAMES]
    with served(*bookies) as addresses:
        there = {name: address for name, address in addresses.items() if name != away}
        result = audited(PlayedCatalog(there, versioned(ledger(1, None, NAMES, quorums))))
    told = [f"2 of 3 bookies of the open ledger 1 don't tell what is confirmed: {doubted}"] if doubted else []
    assert [finding.detail for finding in result.findings if finding.kind is FindingKind.END_UNKNOWN] == told
    assert result.summary.entries == 9


def test_a_bookie_that_had_to_store_nothing_of_an_open_ledger_yet_tells_its_end() -> None:
    """Entry 0 is confirmed, and only b0 and b1 should have it."""
    bookies = [PlayedBookie(full((1, 1))), PlayedBookie(full((1, 1))), PlayedBookie()]
    with served(*bookies) as addresses:
        there = {name: address for name, address in addresses.items() if name != "b0"}
        result = audited(PlayedCatalog(there, versioned(ledger(1, None, NAMES, (2, 2)))))
    assert FindingKind.END_UNKNOWN not in [finding.kind for finding in result.findings]
    assert result.summary.entries == 1


def test_only_the_ledgers_of_the_filter_are_audited() -> None:
    bookies = [PlayedBookie(full((1, 9), (2, 9), (3, 9))) for _ in NAMES]
    with served(*bookies) as addresses:
        catalog = PlayedCatalog(addresses, versioned(*(ledger(number, 9, NAMES) for number in (1, 2, 3))))
        result = audited(catalog, request=AuditRequest(LedgerFilter((EntryRange(2, 3),))))
    assert result.summary.ledgers == 2
    assert {request[1] for bookie in bookies for request in bookie.requests} == {2, 3}


def test_copies_that_get_lost_between_plan_and_result_are_a_violated_invariant() -> None:
    bookies = [PlayedBookie(full((1, 9))) for _ in NAMES]
    with served(*bookies) as addresses, pytest.raises(AuditInvariantError, match="30 copies were to be read, 20 came back"):
        audited(PlayedCatalog(addresses, versioned(ledger(1, 9, NAMES))), run=lambda tasks: run_here(tasks[1:]))


def test_a_ledger_that_closed_meanwhile_is_still_judged_up_to_what_was_confirmed() -> None:
    bookies = [PlayedBookie(full((1, 20))) for _ in NAMES]
    del bookies[2].entries[1, 10]
    now = VersionedMetadata(replace(ledger(1, None, NAMES), state=LedgerState.CLOSED, last_entry_id=20, length=210), 4)
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, None, NAMES)), later={1: now}))
    assert [short(finding) for finding in result.findings] == [(FindingKind.MISSING, Severity.UNDER_REPLICATED, 1, 10, 10, "b2")]


LIGHT = AuditRequest(depth=AuditDepth.LIGHT, seed="run-1")


@pytest.mark.parametrize("quorums", [(3, 2), (2, 2)], ids=["E=Wq", "striped"])
def test_a_light_audit_reads_the_ends_of_each_share_and_some_entries_between_others_in_each_run(quorums: tuple[int, int]) -> None:
    bookies = [PlayedBookie(full((1, 999))) for _ in NAMES]
    catalog = versioned(ledger(1, 999, NAMES, quorums))
    with served(*bookies) as addresses:
        summary = audited(PlayedCatalog(addresses, catalog), request=LIGHT).summary
        read = [{entry_id for _, _, entry_id in bookie.requests} for bookie in bookies]
        for bookie in bookies:
            bookie.requests.clear()
        again = audited(PlayedCatalog(addresses, catalog), request=LIGHT).summary
        repeated = [{entry_id for _, _, entry_id in bookie.requests} for bookie in bookies]
        audited(PlayedCatalog(addresses, catalog), request=replace(LIGHT, seed="run-2"))
    copies = 1000 * quorums[0]
    assert (summary.copies_expected, summary.copies_verified, summary.copies_unread) == (copies, 24, copies - 24)
    assert (again, repeated) == (summary, read)
    spread = striping(ledger(1, 999, NAMES, quorums))
    for position, entries in enumerate(read):
        own = list(spread.entries_at(position, EntryRange(0, 999)))
        assert {own[0], own[-1]} < entries <= set(own)
        # one of each sixth, so that no large gap stays hidden
        assert all(any(low <= entry_id < low + 180 for entry_id in entries) for low in range(0, 990, 165))
    assert [{entry_id for _, _, entry_id in bookie.requests} for bookie in bookies] != read
    assert f"light: 24 of {copies} copies verified, {copies - 24} not read: nothing found" in summary.message


def test_a_light_audit_with_a_missing_sample_names_exactly_what_is_missing_and_counts_the_other_copies() -> None:
    bookies = [PlayedBookie(full((1, 999), (2, 999))) for _ in NAMES]
    for entry_id in range(300, 700):
        del bookies[1].entries[1, entry_id]
    del bookies[2].entries[1, 305]
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 999, NAMES), ledger(2, 999, NAMES))), request=LIGHT)
    found = [(finding.severity, finding.bookie_id, finding.first_entry_id, finding.last_entry_id) for finding in result.findings]
    assert found == [
        (Severity.CRITICAL, "b1", 305, 305),
        (Severity.CRITICAL, "b2", 305, 305),
        (Severity.UNDER_REPLICATED, "b1", 300, 304),
        (Severity.UNDER_REPLICATED, "b1", 306, 699),
    ]
    summary = result.summary
    assert summary.copies_expected == 6000 == summary.copies_verified + summary.copies_unread + 401


@pytest.mark.parametrize("depth", [AuditDepth.LIGHT, AuditDepth.DEEP])
def test_a_bookie_that_does_not_know_a_ledger_is_asked_a_few_times_and_not_for_each_entry(depth: AuditDepth) -> None:
    bookies = [PlayedBookie(full((1, 499))) for _ in NAMES]
    bookies[1].entries.clear()
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 499, NAMES))), request=AuditRequest(depth=depth))
    assert [short(finding) for finding in result.findings] == [(FindingKind.MISSING, Severity.UNDER_REPLICATED, 1, 0, 499, "b1")]
    assert len(bookies[1].requests) <= 20


def test_a_share_that_lacks_every_other_entry_costs_by_their_number_and_not_by_its_square() -> None:
    last = 19_999

    def found(check: HoldingCheck) -> Iterator[Holding]:
        for entry_id in check.entries if check.bookie_id == "b2" else ():
            state = CopyState.VERIFIED if entry_id % 2 else CopyState.MISSING
            yield Holding(1, 0, "b2", check.position, state, entry_id, entry_id, 1, 0)
        if check.bookie_id != "b2":
            yield Holding(
                1, 0, check.bookie_id, check.position, CopyState.VERIFIED, check.entries.first, check.entries.last, check.copies, 0
            )

    def run(tasks: Sequence[AuditTask]) -> pa.Table:
        return pa.Table.from_batches([holdings_to_batch(each for task in tasks for check in task.checks for each in found(check))])

    started = time.process_time()
    result = audited(PlayedCatalog({}, versioned(ledger(1, last, NAMES))), run)
    assert time.process_time() - started < 10  # seconds; by the square it takes 20
    assert (len(result.findings), result.summary.copies_verified, result.summary.copies_expected) == (10_000, 50_000, 60_000)


def test_large_entries_of_a_striped_ledger_are_read_some_megabytes_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first entry is asked for alone. The sizes are known after 16 more."""
    large, last = 512 * 1024, 59
    entries = (Entry(1, number, number - 1, (number + 1) * large, bytes(large)) for number in range(last + 1))
    bookie = PlayedBookie({(1, entry.entry_id): CRC32C.pack(entry) for entry in entries})
    held: list[tuple[int, int]] = []

    def inspected(digest: EntryDigest, ledger_id: int, ids: Numbers, entries: Sequence[bytes]) -> Inspected:
        held.append((len(bookie.requests), sum(map(len, entries))))
        return inspect(digest, ledger_id, ids, entries)

    monkeypatch.setattr(check, "inspect", inspected)
    with served(bookie) as addresses:
        (own,) = (each for each in holding_checks(AuditedLedger(ledger(1, last, NAMES, (2, 2)), last)) if each.bookie_id == "b0")
        (holding,) = check_copies(AuditTask("b0", addresses["b0"], (own,), float("inf"), BUDGET.timeout_seconds))
    assert (holding.state, holding.copies, len(bookie.requests)) == (CopyState.VERIFIED, 40, 41)
    asked = sorted({requests for requests, _ in held})
    assert asked[0] == 1 + 16
    assert max(after - before for before, after in itertools.pairwise(asked)) <= 2 * 7
    assert max(size for _, size in held) < 4 * 1024**2 + 2 * large


def test_only_a_deep_audit_sees_a_missing_entry_outside_of_the_sample() -> None:
    bookies = [PlayedBookie(full((1, 999))) for _ in NAMES]
    with served(*bookies) as addresses:
        catalog = PlayedCatalog(addresses, versioned(ledger(1, 999, NAMES)))
        audited(catalog, request=LIGHT)
        unread = next(entry_id for entry_id in range(1, 999) if all(request[2] != entry_id for request in bookies[1].requests))
        del bookies[1].entries[1, unread]
        assert audited(catalog, request=LIGHT).findings == ()
        assert [finding.first_entry_id for finding in audited(catalog).findings] == [unread]


def test_a_light_audit_stays_light_while_a_bookie_is_away_and_counts_its_copies_as_unknown() -> None:
    bookies = [PlayedBookie(full((1, 999))) for _ in NAMES]
    del bookies[0].entries[1, 999]
    with served(*bookies) as addresses:
        addresses["b1"] = nowhere()
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 999, NAMES))), request=LIGHT)
    summary = result.summary
    assert [(finding.kind, finding.severity, finding.bookie_id) for finding in result.findings] == [
        (FindingKind.BOOKIE_UNREACHABLE, Severity.UNKNOWN, "b1"),
        (FindingKind.MISSING, Severity.UNKNOWN, "b0"),
    ]
    assert len(bookies[2].requests) <= 20
    assert (summary.copies_unknown, summary.copies_expected) == (1000, 3000)
    assert summary.copies_verified + summary.copies_unread == 1999


def test_a_bookie_that_comes_back_before_the_second_look_is_asked_for_a_sample_again() -> None:
    bookies = [PlayedBookie(full((1, 999))) for _ in NAMES]
    bookies[1].closes_after = 0

    def back(tasks: Sequence[AuditTask]) -> pa.Table:
        found = run_here(tasks)
        bookies[1].closes_after = None
        return found

    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 999, NAMES))), run=back, request=LIGHT)
    assert result.findings == ()
    assert len(bookies[1].requests) <= 20
    assert (result.summary.copies_verified, result.summary.copies_unread) == (24, 2976)


RACKS = RackMap({"b0": "east", "b1": "east", "b2": "east", "b3": "west"}, 2)


@pytest.mark.parametrize(
    ("bookies", "quorums", "racks", "expected"),
    [
        (("b0", "b1", "b2"), (3, 2), RACKS, True),
        (("b0", "b1", "b3"), (3, 2), RACKS, False),
        (("b0", "b1", "b3"), (2, 2), RACKS, True),  # entries 0, 3, … are on b0 and b1 alone
        (("b0", "b1", "b2"), (3, 2), replace(RACKS, wanted=1), False),
        (("b0", "b1", "b2"), (3, 2), RackMap({"b0": "east", "b1": "east", "b2": "east"}, 2), False),
        (("b0", "b1", "b9"), (3, 2), RACKS, False),
        (("b0",), (1, 1), RACKS, False),
    ],
    ids=["one rack", "two racks", "striped", "one is enough", "there is only one", "unknown rack", "one copy"],
)
def test_copies_in_fewer_racks_than_the_cluster_wants_and_has_are_at_risk(
    bookies: tuple[str, ...], quorums: tuple[int, int], racks: RackMap, expected: bool
) -> None:
    found = list(findings_of_placement(AuditedLedger(ledger(1, 9, bookies, quorums), 9), racks))
    assert [short(finding) for finding in found] == ([(FindingKind.TOO_FEW_RACKS, Severity.AT_RISK, 1, 0, 9, None)] if expected else [])


@pytest.mark.parametrize(
    ("bookies", "quorums", "severity"),
    [
        (("b0", "b0", "b2"), (3, 2), Severity.UNDER_REPLICATED),
        (("b0", "b0", "b0"), (3, 2), Severity.CRITICAL),
        (("b0", "b0", "b2"), (3, 3), Severity.CRITICAL),
        (("b0", "b0", "b2"), (2, 1), Severity.UNDER_REPLICATED),  # entries 0, 3, … are on b0 alone
        (("b0", "b1", "b0", "b2"), (2, 2), None),  # no entry has both places
        (("b0", "b1", "b2"), (3, 2), None),
    ],
)
def test_two_places_of_one_bookie_count_as_one_copy(bookies: tuple[str, ...], quorums: tuple[int, int], severity: Severity | None) -> None:
    found = [short(finding) for finding in findings_of_names(AuditedLedger(ledger(1, 9, bookies, quorums), 9))]
    assert found == ([(FindingKind.NAMED_TWICE, severity, 1, 0, 9, "b0")] if severity is not None else [])


@pytest.mark.parametrize("request_", [AuditRequest(), LIGHT], ids=["deep", "light"])
def test_an_ensemble_that_names_a_bookie_twice_is_not_called_whole(request_: AuditRequest) -> None:
    bookies = [PlayedBookie(full((1, 9), (2, 9))) for _ in NAMES]
    del bookies[2].entries[2, 0]
    with served(*bookies) as addresses:
        result = audited(
            PlayedCatalog(addresses, versioned(*(ledger(number, 9, ("b0", "b0", "b2")) for number in (1, 2)))), request=request_
        )
    assert [(*short(finding), finding.actual_copies) for finding in result.findings] == [
        (FindingKind.MISSING, Severity.CRITICAL, 2, 0, 0, "b2", 1),
        (FindingKind.NAMED_TWICE, Severity.UNDER_REPLICATED, 1, 0, 9, "b0", 2),
        (FindingKind.NAMED_TWICE, Severity.UNDER_REPLICATED, 2, 0, 9, "b0", 2),
    ]


def test_an_audit_of_either_depth_tells_of_placement_after_reading_the_metadata_again() -> None:
    bookies = [PlayedBookie(full((1, 9), (2, 9))) for _ in range(4)]
    with served(*bookies) as addresses:
        catalog = PlayedCatalog(addresses, versioned(ledger(1, 9, NAMES), ledger(2, 9, ("b0", "b1", "b3"))))
        for request in (replace(LIGHT, racks=RACKS), AuditRequest(racks=RACKS)):
            result = audited(catalog, request=request)
            assert [(finding.kind, finding.ledger_id) for finding in result.findings] == [(FindingKind.TOO_FEW_RACKS, 1)]
            assert result.summary.at_risk == 1
    assert "bookies b0, b1, b2: all copies of an entry in east; wanted: 2 racks" in result.findings[0].detail
