"""A disk of a real bookie has no byte left, and later has room again: no acknowledged entry is lost, nor unreadable while the bookie runs.

A disk that is full takes a part of a write, and the index and the journal fail in their own ways: only real ones show how.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from plain_requests import add, answer_to, fence
from synthetic_ledgers import PASSWORD, SyntheticLedger, write_entries, write_metadata
from waits import wait_until

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.entry import DigestMismatchError, entry_digest
from herdkeeper.codecs.bookkeeper.layout import LedgerLayout, ledger_path
from herdkeeper.codecs.bookkeeper.metadata import DigestType
from herdkeeper.codecs.bookkeeper.protocol import LENGTH_BYTES, ReadCode
from herdkeeper_e2e.free_ports import free_port
from herdkeeper_e2e.server_processes import GUARDED_HTTP, LEDGERS_ROOT, QUICK_COMPILER, Servers, servers
from herdkeeper_e2e.small_disk import SmallDisk, small_disk
from herdkeeper_jobs.bookkeeper.connection import BookieConnection, BookieUnreachableError
from herdkeeper_jobs.bookkeeper.metadata import open_catalog

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
BOOKIE, GUARDED = "bookie-0", "io.herdkeeper.bookie.GuardedLedgerStorage"
DIGEST = entry_digest(DigestType.CRC32C, PASSWORD)
LEDGER, FENCED_BEFORE, FENCED_WHILE_FULL, DELETED = 1, 2, 3, 4
DISK_MEBIBYTES, LEFT_BYTES, ENTRY_BYTES, TOGETHER = 64, 40 << 10, 20_011, 10
"""The disk keeps two of the ten entries that are written together, and a part of a third one."""
INDEX = "indexDirectories"
SMALL_BYTES, MANY = 6, 3000
"""Of entries that fill an index, whose log RocksDB has allocated."""
PATIENCE_SECONDS = 120
COMPACTING = {
    "gcWaitTime": 1000,
    "minorCompactionThreshold": 0.2,
    "minorCompactionInterval": 2,
    "majorCompactionThreshold": 0.99,
    "majorCompactionInterval": 4,
    "diskCheckInterval": 600_000,
}
"""Seconds instead of hours and days. A bookie that has seen that its disk is full does not begin to compact."""
SETTINGS = {
    "ledgerStorageClass": GUARDED,
    "flushInterval": 500,
    "journalSyncData": "true",
    "dbStorage_writeCacheMaxSizeMb": 8,
    "dbStorage_rocksDB_writeBufferSizeMB": 1,
    "journalPreAllocSizeMB": 4,
}


@dataclass
class Stage:
    """A bookie with one small disk."""

    servers: Servers
    disk: SmallDisk
    kind: str
    address: BookieAddress
    acknowledged: list[int] = field(default_factory=list)
    sent: int = 0

    def write(self, count: int) -> list[ReadCode]:
        """Sends so many entries at once; returns the answers that came."""
        chance, answers = random.Random(self.sent), []
        size = SMALL_BYTES if self.kind == INDEX else ENTRY_BYTES
        bodies = [add(LEDGER, self.sent + each, chance.randbytes(size)) for each in range(count)]
        self.sent += count
        try:
            with BookieConnection(BOOKIE, self.address, 30.0) as connection:
                connection._send(b"".join(len(body).to_bytes(LENGTH_BYTES, "big") + body for body in bodies))
                for _ in bodies:
                    answer = connection._receive()
                    answers.append(answer.code)
                    if answer.code is ReadCode.OK:
                        self.acknowledged.append(answer.entry_id)
        except BookieUnreachableError:
            pass  # it has ended, or does not serve yet
        return answers

    def faults(self, entries: list[int]) -> dict[int, str]:
        """The entries that are not there, or damaged."""
        found = {}
        with BookieConnection(BOOKIE, self.address, 30.0) as connection:
            for answer in connection.read_entries(LEDGER, entries):
                try:
                    if answer.code is not ReadCode.OK:
                        found[answer.entry_id] = answer.code.name
                    else:
                        DIGEST.verify_as(LEDGER, answer.entry_id, answer.data)
                except DigestMismatchError:
                    found[answer.entry_id] = "damaged"
        return found

    @property
    def mark(self) -> bytes:
        """How far the journal is done with."""
        ledgers = self.disk.folder if self.kind == "ledgerDirectories" else self.servers.folder / BOOKIE / "ledgers"
        file = ledgers / "current/lastMark"
        return file.read_bytes() if file.exists() else b""

    def logged(self, words: str) -> int:
        return (self.servers.folder / f"{BOOKIE}.log").read_text(errors="replace").count(words)

    def run_out_of_room(self) -> None:
        """A flush fails, with entries before it and beside it."""
        self.disk.fill(0 if self.kind == INDEX else LEFT_BYTES)

        def a_flush_fails() -> bool:
            self.write(MANY if self.kind == INDEX else TOGETHER)
            return self.logged("Exception flushing ledgers") > 0

        wait_until("a flush fails", a_flush_fails, PATIENCE_SECONDS)
        self.write(TOGETHER)
        assert answer_to(self.servers, BOOKIE, fence(FENCED_WHILE_FULL, 0)) is ReadCode.OK

    def ended(self) -> bool:
        return self.servers.processes[BOOKIE].poll() is not None

    def start_as_the_kubelet_does(self) -> None:
        self.servers.run(BOOKIE, self.servers.commands[BOOKIE])

    def takes_an_entry(self) -> bool:
        """Whether clients find it among those that take entries, and it takes one. Behind a kill it ends while its session lasts, and is
        started again."""
        if self.ended():
            self.start_as_the_kubelet_does()
        with self.servers.client() as client:
            return client.exists(f"{LEDGERS_ROOT}/available/{BOOKIE}") is not None and self.write(1) == [ReadCode.OK]

    def write_until_it_ends(self) -> None:
        """Reads all entries again and again meanwhile."""

        def so() -> bool:
            try:
                self.write(2)
                assert self.faults(self.acknowledged) == {}
            except BookieUnreachableError:
                pass
            return self.ended()

        wait_until("the bookie ends", so, PATIENCE_SECONDS)

    def check_all(self) -> None:
        """It serves all that it acknowledged, forgets no fence, takes entries, and its checkpoints count."""
        wait_until("it serves", self.takes_an_entry, PATIENCE_SECONDS)
        assert self.faults(self.acknowledged) == {}
        for ledger in (FENCED_BEFORE, FENCED_WHILE_FULL):
            assert answer_to(self.servers, BOOKIE, add(ledger, 1)) is ReadCode.FENCED
        before = self.mark
        wait_until("its checkpoints count", lambda: self.write(1) == [ReadCode.OK] and self.mark != before, PATIENCE_SECONDS)
        assert not self.ended()


@contextmanager
def staged(folder: Path, kind: str, more: Mapping[str, object] | None = None) -> Iterator[Stage]:
    """With that directory on a small disk. A hundred entries are in a checkpoint. `more` are further settings."""
    with small_disk(folder / "disk", DISK_MEBIBYTES) as disk, servers(QUICK_COMPILER) as running:
        running.start_zookeeper()
        looks = {"diskCheckInterval": 600_000} if kind == INDEX else {}  # an index is filled too slowly
        settings = {**SETTINGS, **GUARDED_HTTP, **looks, "httpServerPort": free_port(), kind: disk.folder, **(more or {})}
        ledgers = [SyntheticLedger(each, (BOOKIE,), 1, 6) for each in (LEDGER, FENCED_BEFORE, FENCED_WHILE_FULL, DELETED)]

        def write_their_metadata() -> None:
            with running.client() as client:
                write_metadata(client, LEDGERS_ROOT, ledgers)

        running.start_bookies(1, settings, write_their_metadata)
        with open_catalog(running.zookeeper, LEDGERS_ROOT) as catalog:
            stage = Stage(running, disk, kind, catalog.bookie_addresses()[BOOKIE])
        for ledger in (FENCED_BEFORE, FENCED_WHILE_FULL):
            assert answer_to(running, BOOKIE, add(ledger, 0)) is ReadCode.OK
        assert answer_to(running, BOOKIE, fence(FENCED_BEFORE, 0)) is ReadCode.OK
        stage.write(100)
        before = stage.mark
        wait_until("a checkpoint", lambda: stage.write(1) == [ReadCode.OK] and stage.mark != before, PATIENCE_SECONDS)
        yield stage


@pytest.mark.parametrize("kind", ["ledgerDirectories", INDEX])
def test_a_bookie_whose_disk_was_full_restarts_by_itself_and_serves_all_entries_before_and_after(tmp_path: Path, kind: str) -> None:
    with staged(tmp_path, kind) as stage:
        stage.run_out_of_room()
        assert stage.faults(stage.acknowledged) == {}
        stage.disk.give_room()
        stage.write_until_it_ends()
        assert stage.servers.processes[BOOKIE].returncode > 0
        stage.start_as_the_kubelet_does()
        stage.check_all()


@pytest.mark.parametrize("kind", ["ledgerDirectories", INDEX])
@pytest.mark.parametrize("has_room", [False, True], ids=["while it is full", "once there is room"])
def test_a_bookie_that_is_killed_with_a_full_disk_serves_all_entries_once_there_is_room(tmp_path: Path, kind: str, has_room: bool) -> None:
    with staged(tmp_path, kind) as stage:
        stage.run_out_of_room()
        if has_room:
            stage.disk.give_room()
            stage.write(TOGETHER)
        stage.servers.kill(BOOKIE)
        if not has_room:
            stage.start_as_the_kubelet_does()
            wait_until("it can't start", stage.ended, PATIENCE_SECONDS)
            stage.disk.give_room()
        stage.start_as_the_kubelet_does()
        stage.check_all()
        stage.servers.kill(BOOKIE)
        stage.start_as_the_kubelet_does()
        stage.check_all()


def test_a_bookie_whose_journal_has_no_room_ends_and_serves_all_entries_once_there_is_some(tmp_path: Path) -> None:
    with staged(tmp_path, "journalDirectories") as stage:
        stage.disk.fill(LEFT_BYTES)
        stage.write(TOGETHER)
        wait_until("the bookie ends", stage.ended, PATIENCE_SECONDS)
        unanswered = sorted(set(range(stage.sent)) - set(stage.acknowledged))
        assert unanswered
        stage.start_as_the_kubelet_does()
        wait_until("it can't start", stage.ended, PATIENCE_SECONDS)
        stage.disk.give_room()
        stage.start_as_the_kubelet_does()
        wait_until("it serves", stage.takes_an_entry, PATIENCE_SECONDS)
        # A reader that recovers the ledger would be stuck at a damaged one, though nobody acknowledged it.
        # The last one first: the bookie reads ahead in its log, where the whole entry may be in front of the damaged one.
        assert set(stage.faults(unanswered[::-1]).values()) <= {ReadCode.NO_ENTRY.name}
        assert stage.faults(stage.acknowledged) == {}


@pytest.mark.parametrize("is_killed", [False, True], ids=["and restarts by itself", "and is killed"])
def test_a_bookie_whose_compaction_fails_midway_on_a_full_disk_serves_all_entries(tmp_path: Path, is_killed: bool) -> None:
    with staged(tmp_path, "ledgerDirectories", COMPACTING) as stage:
        old = stage.disk.folder / "current/0.log"
        write_entries([SyntheticLedger(DELETED, (BOOKIE,), 100, ENTRY_BYTES)], {BOOKIE: stage.address})
        stage.servers.restart_bookie(BOOKIE)  # it writes to another log from here on
        stage.disk.fill(10 * ENTRY_BYTES)
        with stage.servers.client() as client:
            client.delete(LEDGERS_ROOT + ledger_path(LedgerLayout.HIERARCHICAL, DELETED))
        wait_until("a compaction fails", lambda: stage.logged("Error compacting entry log") > 0, PATIENCE_SECONDS)
        assert old.exists()
        assert stage.faults(stage.acknowledged) == {}
        stage.write(TOGETHER)
        assert answer_to(stage.servers, BOOKIE, fence(FENCED_WHILE_FULL, 0)) is ReadCode.OK
        assert stage.faults(stage.acknowledged) == {}
        if is_killed:
            stage.servers.kill(BOOKIE)
            stage.disk.give_room()
        else:
            stage.disk.give_room()
            stage.write_until_it_ends()
        stage.start_as_the_kubelet_does()
        stage.check_all()
        wait_until("the compaction is done", lambda: not old.exists(), PATIENCE_SECONDS)
        stage.check_all()
        stage.servers.kill(BOOKIE)
        stage.start_as_the_kubelet_does()
        stage.check_all()


@pytest.mark.parametrize("is_killed", [False, True], ids=["and restarts by itself", "and is killed"])
def test_a_bookie_of_whose_two_ledger_volumes_one_was_full_and_then_both_serves_all_entries(tmp_path: Path, is_killed: bool) -> None:
    with small_disk(tmp_path / "other", DISK_MEBIBYTES) as other:
        # the ledger with an odd number is on the second one
        both = {"ledgerDirectories": f"{other.folder},{tmp_path / 'disk'}", "dbStorage_writeCacheMaxSizeMb": 16}
        with staged(tmp_path, "ledgerDirectories", both) as stage:
            stage.run_out_of_room()
            assert stage.faults(stage.acknowledged) == {}
            other.fill(0)
            stage.write(TOGETHER)
            assert stage.faults(stage.acknowledged) == {}
            if is_killed:
                stage.servers.kill(BOOKIE)
                stage.disk.give_room()
                stage.start_as_the_kubelet_does()
                wait_until("it can't start", stage.ended, PATIENCE_SECONDS)
                other.give_room()
            else:
                stage.disk.give_room()
                stage.write(TOGETHER)
                other.give_room()
                stage.write_until_it_ends()
            stage.start_as_the_kubelet_does()
            stage.check_all()
            stage.servers.kill(BOOKIE)
            stage.start_as_the_kubelet_does()
            stage.check_all()


def test_a_bookie_whose_disk_was_full_takes_entries_though_its_replay_takes_longer_than_the_first_look_at_the_disks() -> None:
    with servers(QUICK_COMPILER) as running:
        running.start_zookeeper()
        running.start_bookies(1, {**SETTINGS, "diskCheckInterval": 1, "persistBookieStatusEnabled": "true"})

        def as_a_full_disk_left_it(folder: Path) -> None:
            (folder / "ledgers/current/BOOKIE_STATUS").write_text(f"1,READ_ONLY,{int(time.time() * 1000)},false\n")

        running.restart_bookie(BOOKIE, as_a_full_disk_left_it)
        assert answer_to(running, BOOKIE, add(LEDGER, 0)) is ReadCode.OK
