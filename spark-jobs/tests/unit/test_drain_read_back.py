"""The read-back of a drain: every entry of the bookie from its new place, with its digest."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from played_bookie import PlayedBookie, ledger, packed, served
from test_replication_audit import PlayedCatalog, full, versioned

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata, Segment
from herdkeeper.codecs.bookkeeper.share import Place, read_record, record_of, share_of
from herdkeeper_jobs.audit import read_back_cli
from herdkeeper_jobs.audit.read_back import ReadBack, read_back
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, UndecodableMetadata
from herdkeeper_jobs.copies.plan import AuditBudget

OLD, NEW = ("b0", "gone", "b2"), ("b0", "b1", "b2")
BUDGET = AuditBudget(cores=2, timeout_seconds=120.0)


def moved(*ledgers: LedgerMetadata, now: tuple[LedgerMetadata, ...], bookies: list[PlayedBookie]) -> ReadBack:
    """Reads back the places of `gone` in `ledgers`, with the metadata `now`."""
    record = read_record(record_of(share for before in ledgers if (share := share_of(before, "gone")) is not None))
    with served(*bookies) as addresses:
        return read_back(cast("LedgerCatalog", PlayedCatalog(addresses, versioned(*now))), "gone", record, BUDGET)


def test_exactly_the_entries_of_its_places_are_read_from_the_new_bookie() -> None:
    bookies = [PlayedBookie(full((1, 99), (2, 29))) for _ in NEW]
    striped = ledger(2, 29, OLD, (2, 2))
    result = moved(ledger(1, 99, OLD), striped, now=(ledger(1, 99, NEW), ledger(2, 29, NEW, (2, 2))), bookies=bookies)
    assert (result.trouble, result.ledgers, result.copies) == ((), 2, 100 + 20)
    assert [len(bookie.requests) > 0 for bookie in bookies] == [False, True, False]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ({}, "Missing"),
        ({(1, 7): packed(1, 8)}, "Corrupt"),
    ],
)
def test_a_copy_that_is_missing_or_damaged_is_named(damage: dict[tuple[int, int], bytes], says: str) -> None:
    bookies = [PlayedBookie(full((1, 9))) for _ in NEW]
    del bookies[1].entries[1, 7]
    bookies[1].entries.update(damage)
    result = moved(ledger(1, 9, OLD), now=(ledger(1, 9, NEW),), bookies=bookies)
    assert result.copies == 9
    assert [trouble.split(" (")[0] for trouble in result.trouble] == [f"entries 7-7 of ledger 1 on b1: {says}"]


@pytest.mark.parametrize("quorums", [(3, 2), (2, 2)], ids=["E = Wq", "striped"])
def test_a_place_on_a_bookie_that_had_the_entries_already_is_no_proof(quorums: tuple[int, int]) -> None:
    """Autorecovery has replaced b2 by b1 while the drain did so with `gone`."""
    bookies = [PlayedBookie(full((1, 9))) for _ in NEW]
    result = moved(ledger(1, 9, OLD, quorums), now=(ledger(1, 9, ("b0", "b1", "b1"), quorums),), bookies=bookies)
    assert result.trouble == (
        "entries 0-9 of ledger 1 are on b1 in two places, so the copy on gone was not replaced: keep this bookie until the ledger is gone",
    )


def test_a_bookie_that_is_named_twice_elsewhere_stops_no_drain() -> None:
    bookies = [PlayedBookie(full((1, 9))) for _ in NEW]
    result = moved(ledger(1, 9, ("b0", "gone", "b0")), now=(ledger(1, 9, ("b0", "b1", "b0")),), bookies=bookies)
    assert (result.trouble, result.copies) == ((), 10)


def test_a_ledger_that_was_not_moved_is_no_proof() -> None:
    result = moved(ledger(1, 9, OLD), now=(ledger(1, 9, OLD),), bookies=[PlayedBookie(full((1, 9)))])
    assert result.trouble == ("ledger 1 still names gone",)


def test_an_open_ledger_that_still_names_it_is_left_to_a_later_round() -> None:
    before = replace(ledger(1, None, OLD), segments=(Segment(0, OLD), Segment(5, OLD)))
    assert moved(before, now=(before,), bookies=[PlayedBookie(full((1, 20)))]) == ReadBack(1, 0, 0, ())


def test_all_but_the_last_segment_of_an_open_ledger_are_read() -> None:
    before = replace(ledger(1, None, OLD), segments=(Segment(0, OLD), Segment(5, NEW)))
    after = replace(before, segments=(Segment(0, NEW), Segment(5, NEW)))
    result = moved(before, now=(after,), bookies=[PlayedBookie(full((1, 20))) for _ in NEW])
    assert (result.trouble, result.copies) == ((), 5)


def turned(last: int | None, quorums: tuple[int, int] = (2, 2)) -> LedgerMetadata:
    """A ledger whose writer replaced bookies at entry 4. If striped, position 1 has the entries 0 and 1 modulo 3."""
    return replace(ledger(1, last, OLD, quorums), segments=(Segment(0, OLD), Segment(4, NEW)))


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "open"])
def test_entries_acknowledged_during_an_ensemble_change_of_a_striped_ledger_are_read_too(closed: bool) -> None:
    before = turned(11 if closed else None)  # entry 11 shows that 10 is confirmed
    after = replace(before, segments=(Segment(0, NEW), Segment(4, NEW)))
    bookies = [PlayedBookie(full((1, 11))) for _ in NEW]
    whole = moved(before, now=(after,), bookies=bookies)
    assert (whole.trouble, whole.copies) == ((), len([0, 1, 3]) + len([4, 6, 7, 9, 10]))
    del bookies[1].entries[1, 6], bookies[1].entries[1, 7]
    (trouble,) = moved(before, now=(after,), bookies=bookies).trouble
    assert trouble.startswith("entries 6-7 of ledger 1 on b1: Missing")
    assert trouble.endswith("though acknowledged: a ReplicationAudit with repair: Repair copies them once the ledger is closed")


def test_the_next_segment_of_an_unstriped_ledger_is_not_read() -> None:
    before = turned(11, (3, 2))
    after = replace(before, segments=(Segment(0, NEW), Segment(4, NEW)))
    result = moved(before, now=(after,), bookies=[PlayedBookie(full((1, 3))) for _ in NEW])
    assert (result.trouble, result.copies) == ((), 4)


def test_an_open_striped_ledger_with_an_unknown_lac_is_no_proof() -> None:
    before = turned(None)
    after = replace(before, segments=(Segment(0, NEW), Segment(4, NEW)))
    result = moved(before, now=(after,), bookies=[])
    assert result.trouble[0].startswith("open ledger 1: no bookie reported its LAC")


def test_an_open_striped_ledger_of_which_bookies_that_are_away_may_have_the_end_is_no_proof() -> None:
    """What `gone` and b4 alone have of the next segment is acknowledged, and would leave with `gone`."""
    before = turned(None)
    after = replace(before, segments=(Segment(0, NEW), Segment(4, ("b0", "b3", "b4"))))
    result = moved(before, now=(after,), bookies=[PlayedBookie(full((1, 3))) for _ in NEW])
    assert result.trouble == ("2 of 3 bookies of the open ledger 1 don't tell what is confirmed: b3, b4",)


def test_a_ledger_that_was_deleted_meanwhile_holds_nothing() -> None:
    assert moved(ledger(1, 9, OLD), now=(), bookies=[]) == ReadBack(0, 0, 0, ())


def test_metadata_that_cant_be_read_is_no_proof() -> None:
    catalog = PlayedCatalog({}, {1: UndecodableMetadata(1, "nonsense")})
    result = read_back(cast("LedgerCatalog", catalog), "gone", {1: (Place(0, 1),)}, BUDGET)
    assert result.trouble == ("the metadata of ledger 1 can't be read: nonsense",)


def test_an_invalid_record_is_refused(tmp_path, monkeypatch) -> None:
    said = tmp_path / "said"
    monkeypatch.setenv("HERDKEEPER_TERMINATION_MESSAGE", str(said))
    record = tmp_path / "record"
    record.write_text("12 0:1\n13\n")
    arguments = ["--zookeeper", "z:1", "--ledgers-root", "/r", "--bookie", "gone", "--record", str(record)]
    assert read_back_cli.main(arguments) == 2
    assert "line '13' of the record" in said.read_text()
