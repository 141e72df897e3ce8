"""Repair of damaged entries on played bookies, with a played BookKeeper client: none is rewritten in place, all copies move away."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from played_bookie import CRC32C, PlayedBookie, length_up_to, nowhere, packed, served
from played_repair import (
    LOCK,
    NAMES,
    SETTINGS,
    PlayedCatalog,
    PlayedClient,
    audited,
    bookies_with,
    catalog_of,
    findings_in,
    missing,
    of_herddb,
    repaired,
    writes,
)

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.entry import Entry
from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata, Segment
from herdkeeper.codecs.bookkeeper.protocol import ReadCode
from herdkeeper.codecs.bookkeeper.share import Place
from herdkeeper.protocol.audit_finding import Finding, FindingKind, RepairOutcome
from herdkeeper_jobs.audit import cli
from herdkeeper_jobs.audit.arguments import AuditArguments
from herdkeeper_jobs.audit.request import AuditRequest
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog
from herdkeeper_jobs.repair.bookkeeper_client import BookKeeperClient, NotMovedError
from herdkeeper_jobs.repair.relocation import Relocation, moved, relocation
from herdkeeper_jobs.spark_session import SparkSettings

SPARE = "b3"


def with_a_spare(last: int = 10) -> list[PlayedBookie]:
    """Three bookies that hold the ledger, and an empty one."""
    return [*bookies_with(last), PlayedBookie()]


def damage(bookie: PlayedBookie, *entry_ids: int) -> None:
    for entry_id in entry_ids:
        bookie.entries[1, entry_id] = bookie.entries[1, entry_id][:-1] + b"?"


def client_of(catalog: PlayedCatalog, bookies: Sequence[PlayedBookie]) -> PlayedClient:
    return PlayedClient(catalog, {f"b{index}": bookie for index, bookie in enumerate(bookies)})


def damaged(first: int, last: int, bookie_id: str = "b1") -> Finding:
    return replace(missing(first, last, bookie_id), kind=FindingKind.CORRUPT_DIGEST)


@pytest.mark.parametrize("quorums", [(3, 2), (2, 2)], ids=["E=Wq", "striped"])
def test_a_damaged_entry_stays_as_it_is_and_its_bookies_copies_go_to_another_one_under_the_lock(quorums: tuple[int, int]) -> None:
    bookies = with_a_spare()
    damage(bookies[2], 5)
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10, NAMES, quorums))
        client = client_of(catalog, bookies)
        result = repaired(catalog, findings_in(catalog), replace(SETTINGS, move=client.move))
        after = findings_in(catalog)
    (finding,) = result.findings
    (planned,) = client.moved
    assert (finding.kind, finding.bookie_id, finding.repair) == (FindingKind.CORRUPT_DIGEST, "b2", RepairOutcome.REPAIRED)
    assert finding.repair_detail == f"1 damaged entries: {planned.copies} entries of the ledger on b2 were copied to b3"
    assert (planned.bookie_ids, planned.copies) == (("b2",), 11 if quorums[0] == 3 else 7)
    assert client.held == [{LOCK: 7}]
    assert (after, result.copies_repaired, writes(bookies), catalog.client.owners) == ((), 1, [], {})


def test_what_a_bookie_lacks_is_written_before_its_copies_move_and_each_bookie_moves_once() -> None:
    bookies = with_a_spare(200)
    damage(bookies[1], 5, 90)
    del bookies[1].entries[1, 7], bookies[0].entries[1, 8]
    order: list[str] = []
    bookies[1].on_add = lambda ledger_id, entry_id: order.append(f"written {entry_id}")
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(200))
        client = client_of(catalog, bookies)
        client.then = lambda: order.append("moved")
        found = findings_in(catalog)
        result = repaired(catalog, found, replace(SETTINGS, move=client.move))
        assert findings_in(catalog) == ()
    assert order == ["written 7", "moved"]
    assert [replace(finding, repair=None, repair_detail="") for finding in result.findings] == list(found)
    assert {finding.repair for finding in result.findings} == {RepairOutcome.REPAIRED}
    assert result.copies_repaired == 4


def test_a_bookie_that_gives_the_entry_whole_when_asked_for_it_alone_is_left_behind_all_the_same() -> None:
    bookies = with_a_spare()
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10))
        client = client_of(catalog, bookies)
        result = repaired(catalog, [damaged(5, 5)], replace(SETTINGS, move=client.move))
    assert ([finding.repair for finding in result.findings], len(client.moved)) == ([RepairOutcome.REPAIRED], 1)


def test_without_another_writable_bookie_it_is_refused_and_says_what_to_add() -> None:
    bookies = bookies_with(10)
    damage(bookies[1], 5)
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10))
        client = client_of(catalog, bookies)
        found = findings_in(catalog)
        for settings in (replace(SETTINGS, move=client.move), replace(SETTINGS, move=client.move, dry_run=True)):
            (finding,) = repaired(catalog, found, settings).findings
            assert finding.repair is RepairOutcome.REFUSED
            assert (
                "too few writable bookies can take them: 1 of the bookies that hold entries from 0 on have some damaged, and 0 others"
                in finding.repair_detail
            )
    assert (client.moved, writes(bookies)) == ([], [])


def test_without_bookkeepers_client_it_is_refused_and_never_written_in_place() -> None:
    bookies = with_a_spare()
    damage(bookies[1], 5)
    with served(*bookies) as addresses:
        (finding,) = repaired(catalog_of(addresses, of_herddb(10)), [damaged(5, 5)]).findings
    assert finding.repair is RepairOutcome.REFUSED
    assert "this program has no BookKeeper client to copy them elsewhere" in finding.repair_detail
    assert writes(bookies) == []


def lose_it_elsewhere(bookies: Sequence[PlayedBookie]) -> None:
    for bookie in (bookies[0], bookies[2]):
        del bookie.entries[1, 5]


def contradict_it(bookies: Sequence[PlayedBookie]) -> None:
    bookies[2].entries[1, 5] = CRC32C.pack(Entry(1, 5, 4, 60, b"another"))


@pytest.mark.parametrize(
    ("happened", "words"), [(lose_it_elsewhere, "entry 5: no good replica"), (contradict_it, "different payloads, both with right digests")]
)
def test_an_entry_without_a_good_replica_stays_where_it_is_with_its_bookies_other_copies(
    happened: Callable[[Sequence[PlayedBookie]], None], words: str
) -> None:
    bookies = with_a_spare()
    damage(bookies[1], 3, 5)
    happened(bookies)
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10))
        client = client_of(catalog, bookies)
        result = repaired(catalog, [damaged(3, 3), damaged(5, 5)], replace(SETTINGS, move=client.move))
    assert [finding.repair for finding in result.findings] == [RepairOutcome.REFUSED] * 2
    assert all(words in finding.repair_detail for finding in result.findings)
    assert (client.moved, writes(bookies)) == ([], [])


def test_copies_stay_where_they_are_while_others_of_the_ledger_contradict_since_the_client_may_copy_the_wrong_ones() -> None:
    bookies = with_a_spare()
    damage(bookies[2], 5)
    bookies[0].entries[1, 9] = CRC32C.pack(Entry(1, 9, 8, length_up_to(1, 9), b"1/?"))

    def copy_the_wrong_one() -> None:
        bookies[3].entries[1, 9] = bookies[0].entries[1, 9]

    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10))
        client = client_of(catalog, bookies)
        client.then = copy_the_wrong_one
        found = findings_in(catalog)
        result = repaired(catalog, found, replace(SETTINGS, move=client.move))
        after = findings_in(catalog)
    assert [finding.bookie_id for finding in after if finding.kind is FindingKind.CONTRADICTION] == ["b0"]
    assert [finding.repair for finding in result.findings] == [RepairOutcome.REFUSED, None]
    assert "entry 9 on b0 contradicts" in result.findings[0].repair_detail
    assert (client.moved, writes(bookies)) == ([], [])


def test_copies_stay_where_they_are_while_their_bookie_lacks_an_entry_that_may_not_be_written() -> None:
    """b2 may have the right copy of entry 7, and can't read it now; the client would copy the wrong one of b0."""
    bookies = with_a_spare()
    damage(bookies[1], 5)
    del bookies[1].entries[1, 7]
    bookies[0].entries[1, 7] = CRC32C.pack(Entry(1, 7, 6, length_up_to(1, 7), b"1/?"))
    bookies[2].codes[1, 7] = ReadCode.IO_ERROR

    def copy_the_wrong_one() -> None:
        bookies[3].entries[1, 7] = bookies[0].entries[1, 7]

    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10))
        client = client_of(catalog, bookies)
        client.then = copy_the_wrong_one
        result = repaired(catalog, findings_in(catalog), replace(SETTINGS, move=client.move))
    outcomes = {finding.kind: finding for finding in result.findings}
    assert outcomes[FindingKind.MISSING].repair is RepairOutcome.REFUSED
    assert "fewer than the ack quorum" in outcomes[FindingKind.MISSING].repair_detail
    assert (client.moved, writes(bookies)) == ([], [])
    assert outcomes[FindingKind.CORRUPT_DIGEST].repair is RepairOutcome.REFUSED
    assert "entries 7 to 7, which b1 lacks, were not written" in outcomes[FindingKind.CORRUPT_DIGEST].repair_detail


def test_copies_stay_where_they_are_while_their_bookie_fails_to_read_one_that_too_few_others_have() -> None:
    """b1 may have the right copy of entry 7; the client would leave it behind, and copy the wrong one of b0."""
    bookies = with_a_spare()
    damage(bookies[1], 5)
    bookies[0].entries[1, 7] = CRC32C.pack(Entry(1, 7, 6, length_up_to(1, 7), b"1/?"))
    bookies[1].codes[1, 7] = ReadCode.IO_ERROR
    del bookies[2].entries[1, 7]
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10))
        client = client_of(catalog, bookies)
        result = repaired(catalog, findings_in(catalog), replace(SETTINGS, move=client.move))
    outcomes = {finding.kind: finding for finding in result.findings}
    assert (client.moved, writes(bookies)) == ([], [])
    for kind in (FindingKind.MISSING, FindingKind.CORRUPT_DIGEST):
        assert outcomes[kind].repair is RepairOutcome.REFUSED
        assert "entry 7: good replicas are fewer than the ack quorum" in outcomes[kind].repair_detail
    assert outcomes[FindingKind.READ_FAILED].repair is None


def test_a_dry_run_says_how_much_would_be_copied_and_touches_nothing() -> None:
    bookies = with_a_spare()
    damage(bookies[1], 5, 6)
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10))
        client = client_of(catalog, bookies)
        result = repaired(catalog, findings_in(catalog), replace(SETTINGS, move=client.move, dry_run=True))
    assert [finding.repair for finding in result.findings] == [RepairOutcome.WOULD_REPAIR]
    assert result.findings[0].repair_detail == "2 damaged entries: 11 entries of the ledger on b1 would be copied elsewhere"
    assert (client.moved, writes(bookies), catalog.client.data, result.copies_repairable) == ([], [], {}, 2)


def damage_the_target(catalog: PlayedCatalog, bookies: Sequence[PlayedBookie]) -> None:
    damage(bookies[3], 9)


def leave_the_metadata(catalog: PlayedCatalog, bookies: Sequence[PlayedBookie]) -> None:
    catalog.versions = [catalog_of(catalog.addresses, of_herddb(10)).versions[0]]


def delete_the_ledger(catalog: PlayedCatalog, bookies: Sequence[PlayedBookie]) -> None:
    catalog.versions = [None]


def lose_the_session(catalog: PlayedCatalog, bookies: Sequence[PlayedBookie]) -> None:
    for listener in list(catalog.client.listeners):
        listener("SUSPENDED")


def lose_the_lock(catalog: PlayedCatalog, bookies: Sequence[PlayedBookie]) -> None:
    catalog.client.owners[LOCK] = 99


def fail(catalog: PlayedCatalog, bookies: Sequence[PlayedBookie]) -> None:
    raise NotMovedError("BookKeeper's client ended with 255: Not enough non-faulty bookies available")


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (damage_the_target, "the copies were moved, but entries 9-9 on b3 are Corrupt"),
        (leave_the_metadata, "BookKeeper's client reported that it moved the copies, but the metadata still names b1"),
        (delete_the_ledger, "but the ledger is gone"),
        (lose_the_session, "the connection to ZooKeeper was SUSPENDED"),
        (lose_the_lock, "it is held by another session"),
        (fail, "Not enough non-faulty bookies available"),
    ],
)
def test_it_is_repaired_only_when_the_metadata_and_every_copy_say_so(
    happens: Callable[[PlayedCatalog, Sequence[PlayedBookie]], None], words: str
) -> None:
    bookies = with_a_spare()
    damage(bookies[1], 5)
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10))
        client = client_of(catalog, bookies)
        client.then = lambda: happens(catalog, bookies)
        result = repaired(catalog, [damaged(5, 5)], replace(SETTINGS, move=client.move))
    (finding,) = result.not_repaired
    assert finding.repair is RepairOutcome.FAILED
    assert words in finding.repair_detail
    assert result.copies_repaired == 0


def test_a_zookeeper_member_that_lags_does_not_make_a_move_a_failure() -> None:
    bookies = with_a_spare()
    damage(bookies[1], 5)
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10))
        client, before = client_of(catalog, bookies), catalog.versions

        def lag() -> None:
            after, catalog.versions = catalog.versions, before
            catalog.client.on_sync = lambda: setattr(catalog, "versions", after)

        client.then = lag
        (finding,) = repaired(catalog, [damaged(5, 5)], replace(SETTINGS, move=client.move)).findings
    assert finding.repair is RepairOutcome.REPAIRED, finding.repair_detail


def test_an_open_ledger_with_a_damaged_entry_is_left_alone() -> None:
    bookies = with_a_spare()
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10), of_herddb(None))
        client = client_of(catalog, bookies)
        result = repaired(catalog, [damaged(5, 5)], replace(SETTINGS, move=client.move))
    assert "the ledger is OPEN" in result.findings[0].repair_detail
    assert (client.moved, writes(bookies)) == ([], [])


def of_segments(*bookies: tuple[str, ...]) -> LedgerMetadata:
    return replace(of_herddb(20), segments=tuple(Segment(index * 10, names) for index, names in enumerate(bookies)))


def test_all_segments_that_name_the_bookie_move_and_each_needs_a_bookie_of_its_own_to_take_it() -> None:
    metadata = of_segments(NAMES, ("b0", "b2", "b3"), ("b3", "b1", "b2"))
    planned = relocation(metadata, {"b1"}, {*NAMES, "b3"})
    assert isinstance(planned, Relocation)
    # entry 20 is the third segment's only entry
    assert (planned.places, planned.copies) == ((Place(0, 1), Place(20, 1)), 11)
    assert planned.targets == ("b0", "b3")
    assert "entries from 10 on" in str(relocation(of_segments(("b1", "b2", "b3"), NAMES), {"b1"}, NAMES))


def test_two_bookies_with_damaged_entries_move_at_once_and_need_two_that_take_them() -> None:
    bookies = [*with_a_spare(), PlayedBookie()]
    damage(bookies[0], 3)
    damage(bookies[1], 5)
    for served_ones in (bookies[:4], bookies):
        with served(*served_ones) as addresses:
            catalog = catalog_of(addresses, of_herddb(10))
            client = client_of(catalog, served_ones)
            result = repaired(catalog, findings_in(catalog), replace(SETTINGS, move=client.move))
            if len(served_ones) == 4:
                assert {finding.repair for finding in result.findings} == {RepairOutcome.REFUSED}
                assert "2 of the bookies" in result.findings[0].repair_detail
                assert client.moved == []
                continue
            assert findings_in(catalog) == ()
        assert {finding.repair for finding in result.findings} == {RepairOutcome.REPAIRED}
        assert [planned.bookie_ids for planned in client.moved] == [("b0", "b1")]


def test_copies_do_not_go_where_old_ones_of_the_ledger_still_are_nor_to_who_does_not_answer() -> None:
    bookies = with_a_spare()
    damage(bookies[1], 5)
    bookies[3].entries[1, 5] = b"left behind by an earlier repair"
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10))
        client = client_of(catalog, bookies)
        (finding,) = repaired(catalog, [damaged(5, 5)], replace(SETTINGS, move=client.move)).findings
        assert finding.repair is RepairOutcome.REFUSED
        assert "the copies might go to b3, which has old ones and answered OK to a read of entry 5" in finding.repair_detail
        catalog.addresses["b3"] = nowhere()
        (finding,) = repaired(catalog, [damaged(5, 5)], replace(SETTINGS, move=client.move)).findings
        assert "the copies might go to a bookie that does not answer: bookie b3: cannot connect" in finding.repair_detail
    assert client.moved == []


def test_a_bookie_that_holds_other_segments_of_the_ledger_takes_the_copies() -> None:
    bookies = with_a_spare(20)
    damage(bookies[1], 5)
    bookies[3].entries |= {(1, number): packed(1, number) for number in range(10, 21)}
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_segments(NAMES, ("b0", "b3", "b2")))
        client = client_of(catalog, bookies)
        (finding,) = repaired(catalog, [damaged(5, 5)], replace(SETTINGS, move=client.move)).findings
        assert findings_in(catalog) == ()
    assert (finding.repair, client.moved[0].copies) == (RepairOutcome.REPAIRED, 10)


def test_what_moved_must_have_the_same_end_and_the_same_segments() -> None:
    metadata = of_segments(NAMES, NAMES)
    planned = relocation(metadata, {"b1"}, {*NAMES, "b3"})
    assert isinstance(planned, Relocation)
    there = of_segments(("b0", "b3", "b2"), ("b0", "b3", "b2"))
    checks = moved(planned, there)
    assert not isinstance(checks, str)
    assert [(check.segment, check.position, check.bookie_id, check.copies) for check in checks] == [(0, 1, "b3", 10), (1, 1, "b3", 11)]
    assert moved(planned, replace(there, last_entry_id=19)) == "the ledger's end changed while its copies were moved"
    for other in (replace(there, segments=there.segments[:1]), of_segments(("b4", "b3", "b2"), ("b0", "b3", "b2"))):
        assert "names other bookies or segments than before" in str(moved(planned, other))
    assert moved(planned, of_segments(("b0", "b3", "b2"), NAMES)) == "the metadata still names b1"


@pytest.mark.parametrize(("length", "entries"), [(0, 100), (21 * 10, 100), (21 * 1024 * 1024, 8), (21 * 64 * 1024 * 1024, 1)])
def test_a_lot_is_what_fits_into_memory(length: int, entries: int) -> None:
    planned = relocation(replace(of_segments(NAMES, NAMES), length=length), {"b1"}, {*NAMES, "b3"})
    assert isinstance(planned, Relocation)
    assert planned.entries_in_lot == entries


def test_an_audit_whose_image_lacks_the_client_refuses_what_is_damaged_and_names_it_first() -> None:
    bookies = with_a_spare()
    damage(bookies[1], 5)
    with served(*bookies) as addresses:
        catalog = catalog_of(addresses, of_herddb(10))
        told = AuditArguments("z:1", "/l", "run-1", AuditRequest(), float("inf"), "repair", None, SparkSettings())
        result = cli.repaired(cast("LedgerCatalog", catalog), audited(catalog), told)
    assert result.summary.not_repaired == 1
    assert (
        "NOT REPAIRED: 1 findings, the first in ledger 1 on bookie b1: damaged copies can't be repaired in place" in result.summary.message
    )


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for java, which records its arguments and then runs `does`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-Dof=Spark")
    return folder / "java"


def stands_in(java: Path, does: str) -> None:
    conf = 'while [ "$1" != -conf ]; do shift; done; shift; cp "$1" "$here/conf"; cp "$(dirname "$1")"/rack* "$here" 2>/dev/null'
    java.write_text(f'#!/bin/sh\nhere="$(dirname "$0")"\necho "$@" >"$here/called"\nenv >"$here/env"\n{conf}\n{does}\n')
    java.chmod(0o755)


def the_move(client: BookKeeperClient, require_lock: Callable[[], None] = lambda: None) -> None:
    planned = relocation(of_segments(NAMES, NAMES), {"b1"}, {*NAMES, "b3"})
    assert isinstance(planned, Relocation)
    client.move(planned, {"b1": BookieAddress("127.0.0.1", 1), "b3": BookieAddress("127.0.0.2", 1)}, require_lock)


def test_bookkeepers_client_is_called_for_one_ledger_and_one_bookie_and_never_fences_an_open_one(java: Path, tmp_path: Path) -> None:
    stands_in(java, "exit 0")
    the_move(BookKeeperClient(tmp_path, "z1:1,z2:1", "/l", {"b1": "-/west", "b3": "eu/east", "gone": "-/west"}, 2, 5000.0))
    called = (java.parent / "called").read_text()
    assert "recover -f -sk -rate 5000 -l 1 b1" in called
    assert f"-cp {tmp_path}/*" in called
    assert "JDK_JAVA_OPTIONS" not in (java.parent / "env").read_text()
    lines = (java.parent / "conf").read_text().splitlines()
    assert "metadataServiceUri=zk+null://z1:1;z2:1/l" in lines
    assert "rereplicationEntryBatchSize=100" in lines
    assert "minNumRacksPerWriteQuorum=2" in lines
    script = java.parent / "rack.sh"
    asked = [
        subprocess.run([script, *names], capture_output=True, text=True, check=False) for names in (("127.0.0.2", "127.0.0.1"), ("::7",))
    ]
    assert [(each.returncode, each.stdout) for each in asked] == [(0, "/eu:east\n/-:west\n"), (1, "")]


def test_its_last_words_are_told_when_it_fails_or_is_not_there(java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = BookKeeperClient(tmp_path, "z:1", "/l")
    stands_in(java, "echo Not enough non-faulty bookies available; exit 255")
    with pytest.raises(NotMovedError, match="ended with 255: Not enough non-faulty bookies available"):
        the_move(client)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotMovedError, match="could not be started"):
        the_move(client)


def test_it_is_ended_at_once_when_the_lock_is_lost(java: Path, tmp_path: Path) -> None:
    stands_in(java, 'echo $$ >"$here/pid"; exec sleep 600')

    def lost() -> None:
        if (java.parent / "pid").exists() and (java.parent / "pid").read_text():
            raise RuntimeError("the lock is lost")

    with pytest.raises(RuntimeError, match="the lock is lost"):
        the_move(BookKeeperClient(tmp_path, "z:1", "/l"), lost)
    assert not Path(f"/proc/{(java.parent / 'pid').read_text().strip()}").exists()
