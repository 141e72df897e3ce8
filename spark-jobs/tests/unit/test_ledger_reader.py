"""The ledger reader on played bookies: order, failover, limits, and no fencing."""

from __future__ import annotations

import itertools
import math
import pickle
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from played_bookie import CRC32C, PlayedBookie, ledger, length_up_to, nowhere, packed, served

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.entry import Entry, entry_digest
from herdkeeper.codecs.bookkeeper.metadata import DigestType, LedgerMetadata
from herdkeeper.codecs.bookkeeper.protocol import ReadCode
from herdkeeper_jobs.bookkeeper import connection
from herdkeeper_jobs.bookkeeper.connection import BookieConnection, BookieUnreachableError, EntryAnswer
from herdkeeper_jobs.bookkeeper.rate_limit import RateLimit
from herdkeeper_jobs.bookkeeper.reader import (
    DEFAULT_SETTINGS,
    ENTRY_SCHEMA,
    EntryUnreadableError,
    LastConfirmed,
    LastConfirmedUnknownError,
    PartitionSpec,
    ReadSettings,
    cut_pieces,
    end_of_confirmed,
    ledger_pieces,
    read_partition,
)
from herdkeeper_jobs.bookkeeper.replicas import Asking, Replicas

NAMES = ("b0", "b1", "b2")
QUICK = ReadSettings(timeout_seconds=120.0, speculative_read_seconds=math.inf, batch_entries=16)
NEVER = 100_000.0
"""Seconds: a test that waits so long has failed."""
HASTY = ReadSettings(timeout_seconds=NEVER, speculative_read_seconds=0.05, batch_entries=16)


def full(ledger_id: int, last: int) -> dict[tuple[int, int], bytes]:
    return {(ledger_id, entry_id): packed(ledger_id, entry_id) for entry_id in range(last + 1)}


def trio(ledger_id: int, last: int) -> tuple[PlayedBookie, PlayedBookie, PlayedBookie]:
    return PlayedBookie(full(ledger_id, last)), PlayedBookie(full(ledger_id, last)), PlayedBookie(full(ledger_id, last))


def partitions_of(
    ledgers: Sequence[tuple[LedgerMetadata, int]], addresses: Mapping[str, BookieAddress], most: int, how: ReadSettings = DEFAULT_SETTINGS
) -> tuple[PartitionSpec, ...]:
    """Whole ledgers, each with its last entry, in at most so many partitions."""
    return cut_pieces([piece for metadata, last in ledgers for piece in ledger_pieces(metadata, last, 0)], addresses, most, how)


def answers_of(connection: BookieConnection, ledger_id: int, first: int, last: int) -> list[EntryAnswer]:
    """What `read_runs` finds, entry by entry."""
    parts = connection.read_runs(ledger_id, first, last)
    return [answer for part in parts for answer in ([part] if isinstance(part, EntryAnswer) else part.answers())]


def read_all(
    metadata: LedgerMetadata, addresses: dict[str, BookieAddress], partitions: int = 1, how: ReadSettings = QUICK
) -> list[dict[str, object]]:
    assert metadata.last_entry_id is not None
    specs = partitions_of([(metadata, metadata.last_entry_id)], addresses, partitions, how)
    batches = [batch for spec in specs for batch in read_partition(spec)]
    assert all(batch.schema == ENTRY_SCHEMA and 0 < batch.num_rows <= QUICK.batch_entries for batch in batches)
    return list(pa.Table.from_batches(batches, ENTRY_SCHEMA).to_pylist())


@pytest.mark.parametrize("quorums", [(3, 2), (2, 2), (1, 1)])
def test_every_entry_comes_once_and_in_order_however_it_is_striped(quorums: tuple[int, int]) -> None:
    metadata = ledger(4, 600, NAMES, quorums)
    with served(*trio(4, 600)) as addresses:
        rows = read_all(metadata, addresses)
    assert [row["entry_id"] for row in rows] == list(range(601))
    assert rows[7] == {
        "ledger_id": 4,
        "entry_id": 7,
        "lac": 6,
        "length": length_up_to(4, 7),
        "payload": b"4/7",
        "bookie": rows[7]["bookie"],
    }


def test_a_striped_entry_is_read_from_bookies_of_its_write_set_only() -> None:
    metadata = ledger(4, 99, NAMES, (2, 2))
    with served(*trio(4, 99)) as addresses:
        rows = read_all(metadata, addresses)
    assert all(NAMES.index(str(row["bookie"])) in {int(str(row["entry_id"])) % 3, (int(str(row["entry_id"])) + 1) % 3} for row in rows)


@pytest.mark.parametrize(("payload", "last", "asked"), [(1 << 20, 39, [4, 8]), (1 << 20, None, [16, 20]), (10, 999, [256, 512])])
def test_a_window_of_a_striped_ledger_has_some_megabytes(payload: int, last: int | None, asked: list[int]) -> None:
    """The sizes are known after the first entry, and after the first one of the second window."""
    entries = {(4, number): CRC32C.pack(Entry(4, number, number - 1, 0, bytes(payload))) for number in range(40 if payload > 10 else 1000)}
    bookies = [PlayedBookie(entries) for _ in NAMES]
    metadata = replace(ledger(4, last, NAMES, (2, 2)), length=None if last is None else (last + 1) * payload)
    found = []
    with served(*bookies) as addresses:
        (spec,) = partitions_of([(metadata, len(entries) - 1)], addresses, 1, replace(QUICK, batch_entries=1))
        with closing(read_partition(spec)) as read:
            for number, _ in enumerate(read):
                if number in (0, asked[0]):
                    found.append(sum(len(bookie.requests) for bookie in bookies))
                if number == asked[0]:
                    break
    assert found == asked


def test_nothing_that_the_reader_sends_can_fence_a_ledger() -> None:
    bookies = trio(4, 50)
    with served(*bookies) as addresses:
        read_all(ledger(4, 50, NAMES), addresses)
        read_all(ledger(4, 50, NAMES, (2, 2)), addresses)
        end_of_confirmed(ledger(4, None, NAMES), addresses, QUICK)
    headers = {request[0] for bookie in bookies for request in bookie.requests}
    assert headers == {2 << 16, 7 << 16}


@pytest.mark.parametrize("quorums", [(3, 2), (2, 2)])
def test_an_entry_that_is_missing_damaged_or_failing_on_one_replica_comes_from_another(quorums: tuple[int, int]) -> None:
    bookies = trio(4, 60)
    del bookies[0].entries[4, 10]
    damaged = bytearray(bookies[1].entries[4, 20])
    damaged[-1] ^= 1
    bookies[1].entries[4, 20] = bytes(damaged)
    bookies[2].codes[4, 30] = ReadCode.IO_ERROR
    bookies[0].entries[4, 40] = packed(4, 41)
    with served(*bookies) as addresses:
        rows = read_all(ledger(4, 60, NAMES, quorums), addresses, partitions=3)
    assert [row["payload"] for row in rows] == [f"4/{entry_id}".encode() for entry_id in range(61)]
    assert [rows[entry_id]["bookie"] for entry_id in (10, 20, 30, 40)] != ["b0", "b1", "b2", "b0"]


def test_a_bookie_that_is_away_or_breaks_off_is_replaced_without_losing_an_entry() -> None:
    bookies = trio(4, 60)
    bookies[1].closes_after = 1
    with served(*bookies) as addresses:
        addresses["b0"] = nowhere()
        rows = read_all(ledger(4, 60, NAMES, (3, 2)), addresses, partitions=2)
    assert [row["entry_id"] for row in rows] == list(range(61))


def test_an_entry_that_no_replica_has_intact_fails_with_what_each_of_them_said() -> None:
    bookies = trio(4, 20)
    del bookies[0].entries[4, 10]
    bookies[1].entries[4, 10] = b"x" * 50
    with served(bookies[0], bookies[1]) as addresses, pytest.raises(EntryUnreadableError) as caught:
        read_all(ledger(4, 20, NAMES), addresses)
    assert (caught.value.ledger_id, caught.value.entry_id) == (4, 10)
    message = str(pickle.loads(pickle.dumps(caught.value)))
    assert message.startswith("entry 10 of ledger 4 cannot be read: ")
    for part in ("bookie b0 answered NO_ENTRY", "bookie b1 has it damaged: CRC32C digest is", "bookie b2: not registered in ZooKeeper"):
        assert part in message


def test_a_run_moves_to_the_next_bookie_when_one_lacks_more_than_a_few_entries() -> None:
    bookies = trio(4, 400)
    for entry_id in range(50, 350):
        del bookies[1].entries[4, entry_id]
    with served(*bookies) as addresses:
        rows = read_all(ledger(4, 400, NAMES), addresses)
    assert [row["entry_id"] for row in rows] == list(range(401))
    assert {row["bookie"] for row in rows[:50]} == {"b1"}
    assert {row["bookie"] for row in rows[53:]} == {"b2"}
    single_reads = [request for bookie in (bookies[0], bookies[2]) for request in bookie.requests if request[0] == 2 << 16]
    assert len(single_reads) == 3


@pytest.mark.parametrize("lacking", [("b0",), ("b0", "b1")])
def test_bookies_that_lack_a_ledger_are_not_asked_for_each_entry_of_it(lacking: tuple[str, ...]) -> None:
    bookies = trio(4, 600)
    for name in lacking:
        bookies[NAMES.index(name)].entries.clear()
    with served(*bookies) as addresses:
        assert [row["entry_id"] for row in read_all(ledger(4, 600, NAMES), addresses)] == list(range(601))
    assert all(len(bookies[NAMES.index(name)].requests) < 20 for name in lacking)


def test_a_bookie_that_lacks_a_whole_striped_ledger_is_asked_in_one_window_only() -> None:
    bookies = trio(4, 700)
    bookies[0].entries.clear()
    with served(*bookies) as addresses:
        assert [row["entry_id"] for row in read_all(ledger(4, 700, NAMES, (2, 2)), addresses)] == list(range(701))
    assert max(entry_id for _, _, entry_id in bookies[0].requests) < 256


def test_a_silent_bookie_is_given_up_after_the_timeout() -> None:
    with served(PlayedBookie(silent=True)) as addresses, pytest.raises(BookieUnreachableError, match=r"bookie b0: .*timed out"):
        answers_of(BookieConnection("b0", addresses["b0"], 0.2), 1, 0, 5)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of a connection, in seconds, which take no time."""
    made: list[float] = []
    monkeypatch.setattr(connection, "time", SimpleNamespace(sleep=made.append))
    return made


def test_a_busy_bookie_is_asked_again_after_growing_pauses_for_what_it_did_not_answer(pauses: list[float]) -> None:
    bookie = PlayedBookie(full(1, 5), busy_for=6 + 6 + 2)
    with served(bookie) as addresses, BookieConnection("b0", addresses["b0"], 2.0) as asked:
        assert [answer.code for answer in asked.read_entries(1, range(6))] == [ReadCode.OK] * 6
    assert len(bookie.requests) == 6 + 6 + 6 + 2
    assert len(pauses) == 3
    assert all(0 < shorter < longer for shorter, longer in pairwise(pauses))


def test_a_bookie_that_stays_busy_is_left_for_the_next_replica(pauses: list[float]) -> None:
    bookies = trio(1, 5)
    bookies[1].busy_for = 10**9  # it is asked first
    with served(*bookies) as addresses:
        rows = read_all(ledger(1, 5, NAMES), addresses)
    assert [row["entry_id"] for row in rows] == list(range(6))
    assert len(set(pauses)) > 1
    assert bookies[1].requests


def test_a_bookie_that_knows_no_batches_is_read_entry_by_entry_and_asked_for_a_batch_once() -> None:
    bookie = PlayedBookie(full(1, 600) | full(2, 5), knows_batches=False)
    with served(bookie) as addresses, BookieConnection("b0", addresses["b0"], 2.0) as connection:
        assert [answer.entry_id for answer in answers_of(connection, 1, 0, 600) if answer.code is ReadCode.OK] == list(range(601))
        assert [answer.code for answer in answers_of(connection, 2, 0, 6)] == [ReadCode.OK] * 6 + [ReadCode.NO_ENTRY]
    assert len(bookie.requests) == 601 + 7


def test_a_bookie_that_gives_more_entries_than_were_asked_for_is_not_believed() -> None:
    bookie = PlayedBookie(full(1, 10), heeds_most=False)
    refusal = "answered 7 entries from 0 on of ledger 1, asked up to 3"
    with served(bookie) as addresses, pytest.raises(BookieUnreachableError, match=refusal):
        answers_of(BookieConnection("b0", addresses["b0"], 2.0), 1, 0, 3)


class _CutsBatches(PlayedBookie):
    def answer(self, frame: bytes) -> bytes:
        whole = super().answer(frame)
        return struct.pack(">i", 24) + whole[4:28] if frame[1] == 7 else whole


def test_a_batch_cut_within_its_header_ends_no_job_and_another_bookie_is_read() -> None:
    bookies = (PlayedBookie(full(1, 5)), _CutsBatches(full(1, 5)), PlayedBookie(full(1, 5)))
    with served(*bookies) as addresses:
        rows = read_all(ledger(1, 5, NAMES), addresses)
    assert [row["entry_id"] for row in rows] == list(range(6))
    assert bookies[1].requests


class _RepeatsItself(PlayedBookie):
    def answer(self, frame: bytes) -> bytes:
        return super().answer(frame[:12] + struct.pack(">q", 0))


def test_a_bookie_that_answers_one_entry_twice_and_another_never_ends_no_job() -> None:
    bookies = (PlayedBookie(full(1, 5)), _RepeatsItself(full(1, 5), knows_batches=False), PlayedBookie(full(1, 5)))
    with served(*bookies) as addresses:
        rows = read_all(ledger(1, 5, NAMES), addresses)
    assert [row["entry_id"] for row in rows] == list(range(6))
    assert bookies[1].requests


@settings(max_examples=30, deadline=None)
@given(st.sets(st.integers(0, 40)), st.integers(0, 40), st.integers(1, 9))
def test_a_run_gives_one_answer_per_entry_in_order_whatever_the_bookie_lacks(held: set[int], last: int, most_in_batch: int) -> None:
    bookie = PlayedBookie({(1, entry_id): packed(1, entry_id) for entry_id in held}, most_in_batch=most_in_batch)
    with served(bookie) as addresses, BookieConnection("b0", addresses["b0"], 2.0) as connection:
        answers = answers_of(connection, 1, 0, last)
    assert [answer.entry_id for answer in answers] == list(range(last + 1))
    assert {answer.entry_id for answer in answers if answer.code is ReadCode.OK} == {entry_id for entry_id in held if entry_id <= last}


@pytest.mark.parametrize("quorums", [(3, 2), (2, 2)])
def test_a_bookie_that_is_silent_is_overtaken_by_the_next_one(quorums: tuple[int, int]) -> None:
    bookies = trio(4, 600)
    bookies[1].silent = True
    with served(*bookies) as addresses:
        rows = read_all(ledger(4, 600, NAMES, quorums), addresses, how=HASTY)
    assert [row["payload"] for row in rows] == [f"4/{entry_id}".encode() for entry_id in range(601)]
    assert {row["bookie"] for row in rows} <= {"b0", "b2"}


@pytest.mark.parametrize("batches", [True, False])
def test_a_bookie_that_falls_silent_amid_a_run_is_overtaken_there(batches: bool) -> None:
    bookies = trio(4, 600)
    bookies[1].silent_after = silent_after = 20 if batches else 300
    bookies[1].knows_batches = batches
    bookies[0].silent = True
    bookies[2].holds_until = silent = threading.Event()  # however slow the machine is, it does not overtake before
    requests = itertools.count()
    bookies[1].on_request = lambda: next(requests) >= silent_after and silent.set()
    with served(*bookies) as addresses:
        rows = read_all(ledger(4, 600, NAMES), addresses, how=replace(HASTY, speculative_read_seconds=0.5))
    assert [row["payload"] for row in rows] == [f"4/{entry_id}".encode() for entry_id in range(601)]
    assert (rows[0]["bookie"], rows[-1]["bookie"]) == ("b1", "b2")


def test_the_late_bookie_itself_is_taken_when_it_answers_before_those_that_were_asked_as_well() -> None:
    bookies = trio(4, 60)
    bookies[1].holds_until = threading.Event()
    bookies[2].silent = bookies[0].silent = True
    bookies[0].on_request = bookies[1].holds_until.set
    with served(*bookies) as addresses:
        rows = read_all(ledger(4, 60, NAMES), addresses, how=HASTY)
    assert [row["entry_id"] for row in rows] == list(range(61))
    assert {row["bookie"] for row in rows} == {"b1"}


def test_a_bookie_that_was_overtaken_gives_right_entries_when_it_is_the_only_one_left() -> None:
    bookies = trio(4, 600)
    bookies[1].holds_until = released = threading.Event()
    requests = iter(range(1000))
    # The third request shows that the first answer was taken, so the first bookie can no longer win.
    bookies[2].on_request = lambda: next(requests) == 2 and released.set()
    bookies[2].closes_after = 30
    with served(*bookies) as addresses:
        addresses["b0"] = nowhere()
        rows = read_all(ledger(4, 600, NAMES), addresses, how=HASTY)
    assert [row["payload"] for row in rows] == [f"4/{entry_id}".encode() for entry_id in range(601)]
    assert (rows[0]["bookie"], rows[-1]["bookie"]) == ("b2", "b1")


def test_a_bookie_that_was_overtaken_is_asked_last_for_a_while() -> None:
    bookies = tuple(PlayedBookie(full(4, 20) | full(7, 20)) for _ in NAMES)
    bookies[1].silent = True
    asked = []
    bookies[1].on_request = lambda: asked.append("b1")
    ledgers = [(ledger(number, 20, NAMES), 20) for number in (4, 7)]  # b1 would be asked first for both
    with served(*bookies) as addresses:
        (spec,) = partitions_of(ledgers, addresses, 1, replace(HASTY, speculative_read_seconds=5.0))
        assert sum(batch.num_rows for batch in read_partition(spec)) == 42
    assert asked == ["b1"]


def test_a_silent_bookie_is_waited_for_when_nobody_else_has_the_entry() -> None:
    bookies = (PlayedBookie(), PlayedBookie(full(4, 20)), PlayedBookie())
    bookies[1].holds_until = threading.Event()
    requests = iter(range(1000))
    bookies[1].on_request = lambda: next(requests) == 1 and bookies[1].holds_until and bookies[1].holds_until.set()
    with served(*bookies) as addresses:
        rows = read_all(ledger(4, 20, NAMES), addresses, how=HASTY)
    assert [(row["entry_id"], row["bookie"]) for row in rows] == [(entry_id, "b1") for entry_id in range(21)]


def entries_of(last: int, connection: BookieConnection) -> Iterator[list[ReadCode]]:
    yield [answer.code for answer in connection.read_entries(4, range(last + 1))]


def test_what_two_bookies_were_asked_for_counts_for_the_budgets_of_both() -> None:
    bookies = trio(4, 20)
    bookies[0].silent = True

    with served(*bookies) as addresses:

        def connect(bookie_id: str, limit: RateLimit) -> BookieConnection:
            return BookieConnection(bookie_id, addresses[bookie_id], NEVER, limit)

        with Replicas(connect, 1_000_000.0, 0.05) as replicas:
            asking, codes = replicas.next_part(None, ["b0", "b1"], partial(entries_of, 20))
            assert (asking.bookie_id, codes) == ("b1", [ReadCode.OK] * 21)
            assert replicas.is_slow("b0")
            assert not replicas.is_slow("b1")
            assert [replicas.limits[name].free_at > 0 for name in NAMES] == [True, True, False]


def test_a_bookie_whose_budget_is_slept_off_is_not_late() -> None:
    limit = RateLimit(1000.0)
    limit.owe(50_000)
    with served(PlayedBookie(full(4, 2))) as addresses:
        asking = Asking(("b0", limit), lambda name, _: BookieConnection(name, addresses[name], 2.0), None, partial(entries_of, 2))
        asking.want_next()
        assert asking.part.result() == [ReadCode.OK] * 3
        assert asking.late_at(0.5) == limit.free_at + 0.5 > asking.asked_at + 40
        asking.leave()


def test_patience_grows_when_the_late_bookie_still_answers_first() -> None:
    bookies = trio(4, 5)
    bookies[0].holds_until = threading.Event()
    bookies[1].silent = True
    bookies[1].on_request = bookies[0].holds_until.set
    with served(*bookies) as addresses:

        def connect(bookie_id: str, limit: RateLimit) -> BookieConnection:
            return BookieConnection(bookie_id, addresses[bookie_id], NEVER, limit)

        with Replicas(connect, math.inf, 0.05) as replicas:
            asking, _ = replicas.next_part(None, ["b0", "b1"], partial(entries_of, 5))
            assert (asking.bookie_id, replicas.patience_seconds) == ("b0", 0.1)


def test_all_bookies_are_asked_for_the_last_confirmed_entry_at_once() -> None:
    bookies = trio(4, 20)
    everybody = threading.Barrier(3)
    for bookie in bookies:
        bookie.on_request = lambda: everybody.wait(120)
    with served(*bookies) as addresses:
        assert end_of_confirmed(ledger(4, None, NAMES), addresses, QUICK).entry_id == 19
    assert not everybody.broken


def test_a_silent_bookie_is_not_waited_for_when_the_others_hold_all_that_was_acknowledged() -> None:
    bookies = trio(4, 20)
    bookies[0].silent = True
    with served(*bookies) as addresses:
        assert end_of_confirmed(ledger(4, None, NAMES), addresses, HASTY).entry_id == 19


@pytest.mark.parametrize(("quorums", "how"), [((3, 1), HASTY), ((3, 2), replace(HASTY, speculative_read_seconds=math.inf))])
def test_a_late_bookie_is_waited_for_when_it_alone_may_know_or_when_all_are_to_be_heard(
    quorums: tuple[int, int], how: ReadSettings
) -> None:
    bookies = trio(4, 20)
    for entry_id in range(11, 21):
        del bookies[1].entries[4, entry_id], bookies[2].entries[4, entry_id]
    bookies[0].holds_until = threading.Event()
    timer = threading.Timer(1.0, bookies[0].holds_until.set)
    timer.start()
    with served(*bookies) as addresses:
        assert end_of_confirmed(ledger(4, None, NAMES, quorums), addresses, how).entry_id == 19
    timer.join()


def test_a_late_bookie_is_waited_for_while_another_one_was_emptied() -> None:
    """What both alone acknowledged is on no bookie that answered before."""
    bookies = trio(4, 20)
    for entry_id in range(11, 21):
        del bookies[2].entries[4, entry_id]
    bookies[1].entries.clear()
    bookies[0].holds_until = threading.Event()
    timer = threading.Timer(1.0, bookies[0].holds_until.set)
    timer.start()
    with served(*bookies) as addresses:
        assert end_of_confirmed(ledger(4, None, NAMES), addresses, HASTY) == LastConfirmed(19)
    timer.join()


def test_an_open_ledger_ends_at_the_highest_lac_that_any_bookie_tells() -> None:
    bookies = trio(4, 20)
    for entry_id in range(11, 21):
        del bookies[0].entries[4, entry_id]
    with served(*bookies) as addresses:
        assert end_of_confirmed(ledger(4, None, NAMES), addresses, QUICK).entry_id == 19
        del addresses["b1"], addresses["b2"]
        assert end_of_confirmed(ledger(4, None, NAMES), addresses, QUICK).entry_id == 9


def test_a_lac_in_a_damaged_entry_is_not_believed() -> None:
    bookies = trio(4, 5)
    forged = entry_digest(DigestType.DUMMY).pack(Entry(4, 5, 1000, 0, b"\0\0\0\0"))
    bookies[0].entries[4, 5] = forged
    with served(*bookies) as addresses:
        assert end_of_confirmed(ledger(4, None, NAMES), addresses, QUICK).entry_id == 4


def test_a_fresh_open_ledger_has_nothing_confirmed() -> None:
    with served(PlayedBookie(), PlayedBookie(), PlayedBookie()) as addresses:
        assert end_of_confirmed(ledger(4, None, NAMES), addresses, QUICK).entry_id == -1


def test_an_unknown_lac_is_not_guessed() -> None:
    with pytest.raises(LastConfirmedUnknownError, match="open ledger 4: no bookie reported its LAC"):
        end_of_confirmed(ledger(4, None, NAMES), {"b0": nowhere()}, QUICK)


@given(st.lists(st.integers(-1, 50), max_size=6), st.integers(1, 8))
def test_partitions_keep_the_order_lose_nothing_and_are_about_equal(lasts: list[int], count: int) -> None:
    ledgers = [(ledger(number, last, NAMES), last) for number, last in enumerate(lasts)]
    specs = partitions_of(ledgers, {}, count)
    read = [(piece.ledger_id, entry_id) for spec in specs for piece in spec.pieces for entry_id in piece.entries]
    assert read == [(number, entry_id) for number, last in enumerate(lasts) for entry_id in range(last + 1)]
    assert len(specs) <= count
    assert max((sum(len(piece.entries) for piece in spec.pieces) for spec in specs), default=0) <= -(-len(read) // count)


def sized(ledger_id: int, entries: int, payload: int, *, closed: bool = True) -> tuple[LedgerMetadata, int]:
    metadata = ledger(ledger_id, entries - 1 if closed else None, NAMES)
    return replace(metadata, length=entries * payload if closed else None), entries - 1


def entry_bytes(payloads: Sequence[int], specs: Sequence[PartitionSpec]) -> list[int]:
    """Bytes per partition, with the 64 that each entry counts besides."""
    return [sum(len(piece.entries) * (64 + payloads[piece.ledger_id]) for piece in spec.pieces) for spec in specs]


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 100_000)), min_size=1, max_size=6), st.integers(1, 8))
def test_partitions_are_of_about_equal_sizes_in_bytes_whatever_the_sizes_of_entries(sizes: list[tuple[int, int]], count: int) -> None:
    specs = partitions_of([sized(number, *size) for number, size in enumerate(sizes)], {}, count)
    read = [(piece.ledger_id, entry_id) for spec in specs for piece in spec.pieces for entry_id in piece.entries]
    assert read == [(number, entry_id) for number, (entries, _) in enumerate(sizes) for entry_id in range(entries)]
    assert len(specs) <= count
    payloads = [payload for _, payload in sizes]
    whole = sum(entries * (64 + payload) for entries, payload in sizes)
    assert max(entry_bytes(payloads, specs)) <= whole / count + 1 + 64 + max(payloads)


def test_a_ledger_of_large_entries_is_cut_finer_than_one_of_as_many_small_ones() -> None:
    specs = partitions_of([sized(0, 1000, 0), sized(1, 1000, 64 * 9)], {}, 11)
    assert [[(piece.ledger_id, len(piece.entries)) for piece in spec.pieces] for spec in specs] == [[(0, 1000)], *[[(1, 100)]] * 10]


def test_entries_of_an_open_ledger_count_as_those_of_the_others_do() -> None:
    specs = partitions_of([sized(0, 300, 1000), sized(1, 100, 0, closed=False)], {}, 4)
    assert [[(piece.ledger_id, len(piece.entries)) for piece in spec.pieces] for spec in specs] == [*[[(0, 100)]] * 3, [(1, 100)]]


def test_a_rate_limit_waits_as_long_as_the_bytes_need() -> None:
    now = [100.0]
    limit = RateLimit(1000.0, clock=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds))
    for _ in range(10):
        limit.spend(500)
    assert now[0] == pytest.approx(105.0)
    now[0] += 60
    limit.spend(1000)
    assert now[0] == pytest.approx(166.0)
