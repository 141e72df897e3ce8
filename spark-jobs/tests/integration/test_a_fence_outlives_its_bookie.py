"""What fences a ledger is on a real bookie's disk before its journal forgets it: otherwise an earlier leader could write again."""

from __future__ import annotations

import pytest
from plain_requests import add, answer_to, fence
from synthetic_ledgers import SyntheticLedger, write_entries, write_metadata
from waits import wait_until

from herdkeeper.codecs.bookkeeper.protocol import ReadCode
from herdkeeper_e2e.server_processes import LEDGERS_ROOT, QUICK_COMPILER, servers
from herdkeeper_jobs.bookkeeper.metadata import open_catalog

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]
LEDGER, ENTRIES = 1, 100
PATIENCE_SECONDS, FLUSH_MILLIS, STEADY_LOOKS = 120, 200, 20
STOCK = "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage"
GUARDED = "io.herdkeeper.bookie.GuardedLedgerStorage"


@pytest.mark.parametrize(("storage", "answer"), [(STOCK, ReadCode.OK), (GUARDED, ReadCode.FENCED)], ids=["BookKeeper's own", "the image's"])
def test_a_ledger_stays_fenced_after_a_bookie_is_killed_that_had_nothing_else_to_write(storage: str, answer: ReadCode) -> None:
    """If the first case fails, `CompleteCheckpoints` is needed for this no more."""
    with servers(QUICK_COMPILER) as running:
        running.start_zookeeper()
        (bookie,) = running.start_bookies(1, {"ledgerStorageClass": storage, "flushInterval": FLUSH_MILLIS})
        ledgers = [SyntheticLedger(LEDGER, (bookie,), ENTRIES, 200)]
        with running.client() as client:
            write_metadata(client, LEDGERS_ROOT, ledgers)
        with open_catalog(running.zookeeper, LEDGERS_ROOT) as catalog:
            write_entries(ledgers, catalog.bookie_addresses())
        mark = running.folder / bookie / "ledgers/current/lastMark"
        marks: list[bytes] = []

        def idle() -> bool:
            marks.append(mark.read_bytes() if mark.exists() else b"")
            return bool(marks[-1]) and marks[-STEADY_LOOKS:] == [marks[-1]] * STEADY_LOOKS

        wait_until("all entries are flushed", idle, PATIENCE_SECONDS)
        assert answer_to(running, bookie, fence(LEDGER, ENTRIES - 1)) is ReadCode.OK
        wait_until("the journal is done with the fence", lambda: mark.read_bytes() != marks[-1], PATIENCE_SECONDS)
        running.processes[bookie].kill()
        running.restart_bookie(bookie)
        assert answer_to(running, bookie, add(LEDGER, ENTRIES)) is answer
