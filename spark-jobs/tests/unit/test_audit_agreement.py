"""Copies that are good by themselves: whether they agree with each other, with neighbours and with the ledger's end, on played bookies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from played_bookie import CRC32C, PlayedBookie, ledger, length_up_to, served
from test_replication_audit import LIGHT, NAMES, PlayedCatalog, audited, full, run_here, short, versioned

from herdkeeper.codecs.bookkeeper.entry import DigestMismatchError, Entry, entry_digest
from herdkeeper.codecs.bookkeeper.metadata import DigestType, LedgerMetadata, Segment
from herdkeeper.codecs.bookkeeper.protocol import ReadCode
from herdkeeper.codecs.bookkeeper.striping import striping
from herdkeeper.protocol.audit_finding import FindingKind, Severity
from herdkeeper_jobs.audit import third_pass
from herdkeeper_jobs.audit.comparison import contradicted
from herdkeeper_jobs.copies.holding import CopyState, Holding
from herdkeeper_jobs.copies.inspection import inspect, sums_of_content
from herdkeeper_jobs.copies.plan import AuditedLedger, AuditTask


def entry(entry_id: int, payload: str = "", lac: int | None = None, length: int | None = None) -> bytes:
    """An entry of ledger 1 as the tests' writer writes it, except for the given fields; its digest is right."""
    bytes_so_far = length_up_to(1, entry_id) if length is None else length
    lac = entry_id - 1 if lac is None else lac
    return CRC32C.pack(Entry(1, entry_id, lac, bytes_so_far, (payload or f"1/{entry_id}").encode()))


def three(last: int) -> list[PlayedBookie]:
    return [PlayedBookie(full((1, last))) for _ in NAMES]


def test_a_copy_that_the_others_contradict_is_named_though_its_digest_is_right() -> None:
    bookies = three(99)
    bookies[1].entries[1, 40] = entry(40, "1/??")
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 99, NAMES))))
    (finding,) = result.findings
    assert short(finding) == (FindingKind.CONTRADICTION, Severity.UNDER_REPLICATED, 1, 40, 40, "b1")
    assert (finding.expected_copies, finding.actual_copies) == (3, 2)
    assert "b0, b2 | b1" in finding.detail
    assert (result.summary.copies_expected, result.summary.copies_verified) == (300, 299)
    assert [(bookie.copies_verified, bookie.copies_damaged) for bookie in result.bookies] == [(100, 0), (99, 1), (100, 0)]


@pytest.mark.parametrize(
    ("bookies", "quorums", "named"),
    [
        (("b0", "b1"), (2, 2), {"b0", "b1"}),
        (NAMES, (2, 2), {"b1", "b2"}),  # striped: entry 40 is on these two
        (NAMES, (3, 1), {"b0", "b1", "b2"}),  # one acknowledged copy suffices for each of the two payloads
    ],
    ids=["two copies", "striped", "ack quorum 1"],
)
def test_contradicting_copies_that_the_ack_quorum_can_not_decide_are_all_named_and_critical(
    bookies: tuple[str, ...], quorums: tuple[int, int], named: set[str]
) -> None:
    played = three(99)
    played[1].entries[1, 40] = entry(40, "1/??")
    with served(*played) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 99, bookies, quorums))))
    assert {finding.bookie_id for finding in result.findings} == named
    assert {short(finding)[:5] for finding in result.findings} == {(FindingKind.CONTRADICTION, Severity.CRITICAL, 1, 40, 40)}
    assert {finding.actual_copies for finding in result.findings} == {0}
    assert result.summary.copies_verified == result.summary.copies_expected - len(named)


def test_two_places_of_one_bookie_are_no_ack_quorum_for_a_copy_that_another_one_contradicts() -> None:
    played = three(99)
    played[0].entries[1, 40] = entry(40, "1/??")
    with served(*played) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 99, ("b0", "b0", "b1"), (3, 2)))))
    found = [finding for finding in result.findings if finding.kind is FindingKind.CONTRADICTION]
    assert {finding.bookie_id for finding in found} == {"b0", "b1"}
    assert {(finding.severity, finding.first_entry_id, finding.last_entry_id) for finding in found} == {(Severity.CRITICAL, 40, 40)}


def test_two_swapped_entries_on_one_bookie_are_detected() -> None:
    bookies = three(30)
    bookies[2].entries[1, 15], bookies[2].entries[1, 16] = entry(15, "1/16"), entry(16, "1/15")
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 30, NAMES))))
    assert [short(finding) for finding in result.findings] == [
        (FindingKind.CONTRADICTION, Severity.UNDER_REPLICATED, 1, 15, 16, "b2"),
    ]


def test_a_contradiction_is_detected_even_if_the_share_also_lacks_an_entry() -> None:
    bookies = three(99)
    bookies[1].entries[1, 40] = entry(40, "1/??")
    del bookies[1].entries[1, 70]
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 99, NAMES))))
    assert [short(finding) for finding in result.findings] == [
        (FindingKind.CONTRADICTION, Severity.UNDER_REPLICATED, 1, 40, 40, "b1"),
        (FindingKind.MISSING, Severity.UNDER_REPLICATED, 1, 70, 70, "b1"),
    ]
    assert result.summary.copies_verified == 298


@pytest.mark.parametrize("after_pass", [1, 2])
@pytest.mark.parametrize("wrong", [entry(40, "1/??"), entry(40, length=7)], ids=["payload", "length"])
def test_a_contradiction_that_is_gone_at_the_next_look_is_no_finding(wrong: bytes, after_pass: int) -> None:
    bookies = three(99)
    bookies[1].entries[1, 40] = wrong
    done: list[int] = []

    def mended(tasks: Sequence[AuditTask]) -> pa.Table:
        found = run_here(tasks)
        done.append(len(tasks))
        if len(done) == after_pass:
            bookies[1].entries[1, 40] = entry(40)
        return found

    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 99, NAMES))), run=mended)
    assert result.findings == ()
    assert result.summary.copies_verified == 300


def closed(bookie: PlayedBookie) -> None:
    bookie.closes_after = 0


def closed_after_a_while(bookie: PlayedBookie) -> None:
    bookie.closes_after = 4


def broken_midway(bookie: PlayedBookie) -> None:
    bookie.codes[1, 50] = ReadCode.IO_ERROR


def damaged_midway(bookie: PlayedBookie) -> None:
    bookie.entries[1, 50] = bookie.entries[1, 50][:-1] + b"?"


@pytest.mark.parametrize("after_pass", [2, 3])
def test_what_was_missing_before_copies_are_compared_stays_missing_if_its_bookie_goes_away_then(after_pass: int) -> None:
    bookies = three(99)
    bookies[1].entries[1, 40] = entry(40, "1/??")
    del bookies[1].entries[1, 70], bookies[2].entries[1, 70]
    done: list[int] = []

    def with_trouble(tasks: Sequence[AuditTask]) -> pa.Table:
        found = run_here(tasks)
        done.append(len(tasks))
        if len(done) == after_pass:
            closed(bookies[1])
        return found

    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 99, NAMES))), run=with_trouble)
    assert [short(finding) for finding in result.findings] == [
        (FindingKind.MISSING, Severity.CRITICAL, 1, 70, 70, "b1"),
        (FindingKind.MISSING, Severity.CRITICAL, 1, 70, 70, "b2"),
        (FindingKind.BOOKIE_UNREACHABLE, Severity.UNKNOWN, None, None, None, "b1"),
    ]
    assert (result.summary.copies_verified, result.summary.copies_unknown, result.summary.copies_expected) == (199, 99, 300)


@pytest.mark.parametrize(
    ("after_pass", "happens", "kinds", "counts"),
    [
        (1, closed, {FindingKind.BOOKIE_UNREACHABLE}, (200, 100)),
        (1, closed_after_a_while, {FindingKind.BOOKIE_UNREACHABLE}, (240, 60)),
        (1, broken_midway, {FindingKind.CONTRADICTION, FindingKind.READ_FAILED}, (298, 1)),
        (1, damaged_midway, {FindingKind.CONTRADICTION, FindingKind.CORRUPT_DIGEST}, (298, 0)),
        (2, closed, {FindingKind.BOOKIE_UNREACHABLE}, (280, 20)),  # a block of 20 was to be read again
    ],
)
def test_what_can_no_longer_be_read_when_copies_are_compared_is_not_called_good(
    after_pass: int,
    happens: Callable[[PlayedBookie], None],
    kinds: set[FindingKind],
    counts: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(third_pass, "BLOCK", 20)
    bookies = three(99)
    bookies[1].entries[1, 40] = entry(40, "1/??")
    done: list[int] = []

    def with_trouble(tasks: Sequence[AuditTask]) -> pa.Table:
        found = run_here(tasks)
        done.append(len(tasks))
        if len(done) == after_pass:
            happens(bookies[1])
        return found

    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 99, NAMES))), run=with_trouble)
    assert {finding.kind for finding in result.findings} == kinds
    assert (result.summary.copies_verified, result.summary.copies_unknown) == counts
    assert result.summary.copies_expected == 300


def test_too_many_contradictions_are_reported_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(third_pass, "BLOCK", 10)
    monkeypatch.setattr(third_pass, "_MOST_BLOCKS", 1)
    bookies = three(99)
    for entry_id in (13, 55, 57, 92):
        bookies[0].entries[1, entry_id] = entry(entry_id, "1/??")
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 99, NAMES))))
    assert [short(finding)[3:] for finding in result.findings] == [(13, 13, "b0"), (50, 59, "b0"), (90, 99, "b0")]
    assert result.summary.copies_verified == 279


def test_a_light_audit_compares_what_it_reads_in_full() -> None:
    bookies = three(5)
    bookies[2].entries[1, 3] = entry(3, "1/?")
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 5, NAMES))), request=LIGHT)
    assert [short(finding) for finding in result.findings] == [(FindingKind.CONTRADICTION, Severity.UNDER_REPLICATED, 1, 3, 3, "b2")]


def test_a_replication_workers_lac_is_no_finding_and_causes_no_second_read() -> None:
    bookies = three(99)
    bookies[1].entries = {(1, entry_id): entry(entry_id, lac=99) for entry_id in range(100)}
    bookies[2].entries[1, 40] = entry(40, lac=-1)
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 99, NAMES))))
    assert result.findings == ()
    assert len({len(bookie.requests) for bookie in bookies}) == 1
    assert len(bookies[0].requests) <= 100 // 7 + 2


def test_a_lac_behind_the_end_of_a_closed_ledger_reveals_lost_confirmed_entries() -> None:
    bookies = three(20)
    for entry_id in (19, 20):
        bookies[1].entries[1, entry_id] = entry(entry_id, lac=24)
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 20, NAMES))))
    assert [short(finding) for finding in result.findings] == [(FindingKind.WRONG_LAST_CONFIRMED, Severity.CRITICAL, 1, 19, 20, "b1")]
    assert "its LAC is 24, but the ledger was closed with entry 20" in result.findings[0].detail
    assert result.summary.copies_verified == result.summary.copies_expected == 63


def test_only_the_last_segment_of_an_open_ledger_has_lacs_below_the_ids() -> None:
    bookies = three(30)
    metadata = replace(ledger(1, None, NAMES), segments=(Segment(0, NAMES), Segment(20, NAMES)))
    bookies[0].entries[1, 7] = entry(7, lac=29)
    bookies[2].entries[1, 25] = entry(25, lac=25)
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(metadata)))
    assert [short(finding) for finding in result.findings] == [(FindingKind.WRONG_LAST_CONFIRMED, Severity.LOW, 1, 25, 25, "b2")]


SEGMENTS = (Segment(0, NAMES), Segment(30, ("b2", "b0", "b1")))


@pytest.mark.parametrize("quorums", [(3, 2), (2, 2)], ids=["E=Wq", "striped"])
@pytest.mark.parametrize("at", [0, 1, 7, 29, 30, 99])
def test_a_length_that_does_not_add_up_is_detected_anywhere(at: int, quorums: tuple[int, int]) -> None:
    bookies = three(99)
    for bookie in bookies:
        for entry_id in range(at, 100):
            bookie.entries[1, entry_id] = entry(entry_id, length=length_up_to(1, entry_id) + 5)
    metadata = replace(ledger(1, 99, NAMES, quorums), segments=SEGMENTS)
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(metadata)))
    assert [short(finding) for finding in result.findings] == [(FindingKind.WRONG_LENGTH, Severity.LOW, 1, at, at, None)]
    before = length_up_to(1, at - 1)
    assert result.findings[0].detail.endswith(f": {before} and {before + 5}")
    assert result.summary.low == 1
    assert result.summary.copies_verified == result.summary.copies_expected


def test_a_wrong_length_in_one_copy_alone_is_a_contradiction() -> None:
    bookies = three(99)
    bookies[0].entries[1, 50] = entry(50, length=length_up_to(1, 50) + 5)
    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 99, NAMES))))
    assert [short(finding) for finding in result.findings] == [(FindingKind.CONTRADICTION, Severity.UNDER_REPLICATED, 1, 50, 50, "b0")]


def test_a_ledger_whose_writer_counted_nothing_is_one_finding_and_not_a_holding_for_each_entry() -> None:
    bookies = [PlayedBookie({(1, entry_id): entry(entry_id, length=0) for entry_id in range(3000)}, most_in_batch=1000) for _ in NAMES]
    looked: list[int] = []

    def counted(tasks: Sequence[AuditTask]) -> pa.Table:
        found = run_here(tasks)
        looked.append(found.num_rows)
        return found

    with served(*bookies) as addresses:
        result = audited(PlayedCatalog(addresses, versioned(ledger(1, 2999, NAMES))), run=counted)
    assert looked[0] <= 3 * 1002
    assert {(finding.kind, finding.severity) for finding in result.findings} == {(FindingKind.WRONG_LENGTH, Severity.LOW)}


@given(
    digest_type=st.sampled_from(DigestType),
    first=st.integers(0, 2**40),
    kinds=st.lists(
        st.sampled_from(["intact", "flipped", "of another entry", "of another ledger", "short", "empty"]), min_size=1, max_size=6
    ),
)
def test_inspection_finds_the_same_sound_entries_as_verification_one_by_one(digest_type: DigestType, first: int, kinds: list[str]) -> None:
    digest = entry_digest(digest_type, b"herddb")
    entries, verified = [], []
    for entry_id, kind in enumerate(kinds, first):
        ids = {"of another entry": (5, entry_id + 1), "of another ledger": (6, entry_id)}.get(kind, (5, entry_id))
        packed = digest.pack(Entry(*ids, entry_id - 1, 30, b"hello"))
        flipped = packed[:-1] + bytes([packed[-1] ^ 1])
        entries.append({"flipped": flipped, "short": packed[:31], "empty": b""}.get(kind, packed))
        try:
            digest.verify_as(5, entry_id, entries[-1])
            verified.append(True)
        except DigestMismatchError:
            verified.append(False)
    found = inspect(digest, 5, np.arange(first, first + len(kinds)), entries)
    assert found.sound.tolist() == verified
    assert [found.lac[at] for at, good in enumerate(verified) if good] == [first + at - 1 for at, good in enumerate(verified) if good]
    assert {(found.length_before[at], found.length_after[at]) for at, good in enumerate(verified) if good} <= {(25, 30)}


def test_the_content_of_copies_depends_on_payload_length_and_id_and_not_on_the_lac() -> None:
    def said(one: bytes, entry_id: int = 7) -> int:
        found = inspect(CRC32C, 1, np.array([entry_id]), [one])
        assert found.sound.all()
        return sums_of_content(found.content, found.ids, 1)[0]

    assert said(entry(7)) == said(entry(7, lac=90))
    others = (entry(7, "1/8"), entry(7, length=9))
    assert len({said(entry(7)), *(said(other) for other in others), said(entry(8, "1/7", length=length_up_to(1, 7)), 8)}) == 4


NAMES_OF_FIVE = ("b0", "b1", "b2", "b3", "b4")
LAST = 7


@st.composite
def versions(draw: st.DrawFn) -> tuple[LedgerMetadata, dict[tuple[int, int], int]]:
    """A ledger, and the payload of each copy (entry, position); some copies are missing."""
    size = draw(st.integers(1, 5))
    quorum = draw(st.integers(1, size))
    metadata = ledger(1, LAST, NAMES_OF_FIVE[:size], (quorum, draw(st.integers(1, quorum))))
    copies = [(entry_id, position) for entry_id in range(LAST + 1) for position in striping(metadata).write_set(entry_id)]
    return metadata, {copy: version for copy in copies if (version := draw(st.sampled_from([0, 0, 0, 1, 2, None]))) is not None}


@settings(deadline=None)
@given(versions())
def test_the_ack_quorum_decides_which_copies_can_be_trusted(drawn: tuple[LedgerMetadata, dict[tuple[int, int], int]]) -> None:
    metadata, copies = drawn
    classes = striping(metadata).classes
    holdings = [
        Holding(1, 0, NAMES_OF_FIVE[position], position, CopyState.VERIFIED, entry_id, entry_id, 1, 9, "", sums(entry_id, version, classes))
        for (entry_id, position), version in copies.items()
    ]
    expected = set()
    for entry_id in range(LAST + 1):
        own = {position: version for (other, position), version in copies.items() if other == entry_id}
        votes = {version: list(own.values()).count(version) for version in own.values()}
        enough = [version for version, count in votes.items() if count >= metadata.ack_quorum]
        trusted = enough[0] if len(enough) == 1 else None
        expected |= {(entry_id, position) for position, version in own.items() if len(votes) > 1 and version != trusted}
    found = contradicted(AuditedLedger(metadata, LAST), holdings, 1)
    assert {(each.first, each.position) for each in found} == expected
    assert all((each.state, each.copies, each.last) == (CopyState.CONTRADICTED, 1, each.first) for each in found)


def sums(entry_id: int, version: int, classes: int) -> tuple[int, ...]:
    return tuple(100 + version if entry_id % classes == each else 0 for each in range(classes))
