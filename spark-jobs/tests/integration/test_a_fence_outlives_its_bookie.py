"""What fences a ledger is on a real bookie's disk before its journal forgets it: otherwise an earlier leader could write again."""

from __future__ import annotations

import struct

import pytest
from plain_requests import add, answer_to, fence
from synthetic_ledgers import SyntheticLedger, write_entries, write_metadata
from waits import wait_until

from herdkeeper.codecs.bookkeeper.protocol import ReadCode
from herdkeeper_e2e.server_processes import LEDGERS_ROOT, QUICK_COMPILER, servers
from herdkeeper_jobs.bookkeeper.metadata import open_catalog

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]
LEDGER, ENTRIES, ENTRY_BYTES = 1, 100, 200
PATIENCE_SECONDS, FLUSH_MILLIS, STEADY_LOOKS = 120, 200, 20
MARK = struct.Struct(">qq")
"""Which journal, and the offset in it, from which on a bookie would replay it."""
STOCK = "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage"
GUARDED = "io.herdkeeper.bookie.GuardedLedgerStorage"


@pytest.mark.parametrize(("storage", "answer"), [(STOCK, ReadCode.OK), (GUARDED, ReadCode.FENCED)], ids=["BookKeeper's own", "the image's"])
def test_a_ledger_stays_fenced_after_a_bookie_is_killed_that_had_nothing_else_to_write(storage: str, answer: ReadCode) -> None:
    """If the first case fails, `CompleteCheckpoints` is needed for this no more."""
    with servers(QUICK_COMPILER) as running:
        running.start_zookeeper()
        (bookie,) = running.start_bookies(1, {"ledgerStorageClass": storage, "flushInterval": FLUSH_MILLIS, "journalSyncData": "true"})
        ledgers = [SyntheticLedger(LEDGER, (bookie,), ENTRIES, ENTRY_BYTES)]
        with running.client() as client:
            write_metadata(client, LEDGERS_ROOT, ledgers)
        with open_catalog(running.zookeeper, LEDGERS_ROOT) as catalog:
            write_entries(ledgers, catalog.bookie_addresses())
        mark = running.folder / bookie / "ledgers/current/lastMark"
        marks: list[bytes] = []

        def idle() -> bool:
            marks.append(mark.read_bytes() if mark.exists() else b"")
            if len(marks[-1]) < MARK.size:
                return False  # it is being written
            _, offset = MARK.unpack(marks[-1])
            return offset > ENTRIES * ENTRY_BYTES and marks[-STEADY_LOOKS:] == [marks[-1]] * STEADY_LOOKS

        wait_until("all entries are flushed", idle, PATIENCE_SECONDS)
        assert answer_to(running, bookie, fence(LEDGER, ENTRIES - 1)) is ReadCode.OK
        wait_until("the journal is done with the fence", lambda: mark.read_bytes() != marks[-1], PATIENCE_SECONDS)
        running.processes[bookie].kill()
        running.restart_bookie(bookie)
        assert answer_to(running, bookie, add(LEDGER, ENTRIES)) is answer
