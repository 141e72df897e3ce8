"""A journal of a real bookie ends with a part of a record: whoever recovers its ledger gets all acknowledged entries, and no other one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from synthetic_ledgers import PASSWORD

from herdkeeper.codecs.bookkeeper.entry import Entry, entry_digest
from herdkeeper.codecs.bookkeeper.metadata import DigestType
from herdkeeper_e2e.server_processes import LEDGERS_ROOT, Servers, jars_of, servers

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
CLIENT = Path(__file__).parent / "RealWriter.java"
GUARDED = "io.herdkeeper.bookie.GuardedLedgerStorage"
ENTRIES, ENTRY_BYTES = 20, 300
HEADER, PADDING, LENGTH, GROUP = 512, -0x100, 4, 512
BEFORE_PAYLOAD = 36
"""Bytes of an entry."""


def client(running: Servers, *arguments: object) -> int:
    """The number that BookKeeper's client prints last."""
    uri = f"zk+hierarchical://{running.zookeeper}{LEDGERS_ROOT}"
    command = ["java", "-cp", f"{jars_of('bookkeeper')}/*", str(CLIENT), uri, PASSWORD.decode(), *map(str, arguments)]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1])


def end_of(journal: bytes) -> int:
    """Where its last group ends."""

    def number(at: int) -> int:
        return int.from_bytes(journal[at : at + LENGTH], "big", signed=True)

    at = HEADER
    while (length := number(at)) != 0:
        if length == PADDING:
            at += LENGTH
            length = number(at)
        at += LENGTH + length
    return at


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("payload", [700, 2 * GROUP - LENGTH - BEFORE_PAYLOAD], ids=["in the middle of a group", "at the end of a group"])
def test_a_ledger_is_recovered_with_all_acknowledged_entries_though_a_bookie_had_a_part_of_the_next_one(copies: int, payload: int) -> None:
    with servers() as running:
        running.start_zookeeper()
        names = running.start_bookies(copies, {"ledgerStorageClass": GUARDED, "flushInterval": 600_000, "journalPreAllocSizeMB": 4})
        ledger = client(running, "write", copies, ENTRIES, ENTRY_BYTES)
        length = ENTRIES * ENTRY_BYTES + payload
        entry = entry_digest(DigestType.CRC32C, PASSWORD).pack(Entry(ledger, ENTRIES, ENTRIES - 1, length, b"x" * payload))

        def tear(folder: Path) -> None:
            (journal,) = (folder / "journal/current").glob("*.txn")
            with journal.open("r+b") as file:
                end = end_of(file.read())
                file.seek(end)
                file.write((len(entry).to_bytes(LENGTH, "big") + entry)[:GROUP])

        for name in names:
            running.restart_bookie(name, tear if name == names[0] else None)
        assert client(running, "recover", ledger, ENTRY_BYTES) == ENTRIES - 1
