"""What the password of a ledger keeps from a client that reaches a bookie and can't read the ledger's metadata.

Only a real bookie with DbLedgerStorage shows where BookKeeper does not compare the key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from synthetic_ledgers import PASSWORD, SyntheticLedger, write_entries, write_metadata
from waits import wait_until

from herdkeeper.codecs.bookkeeper.entry import Entry, entry_digest, master_key
from herdkeeper.codecs.bookkeeper.metadata import DigestType
from herdkeeper.codecs.bookkeeper.protocol import MASTER_KEY_BYTES, ReadCode
from herdkeeper_e2e.server_processes import LEDGERS_ROOT, QUICK_COMPILER, Servers, servers
from herdkeeper_jobs.bookkeeper.connection import BookieConnection
from herdkeeper_jobs.bookkeeper.metadata import open_catalog

# The first test may have to build the jars of the images.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]
LEDGER, OTHERS, NEXT_LEDGER, ENTRY = 1, 2, 3, 7
LOG_OF_THE_IMAGE = Path(__file__).parents[3] / "images/bookkeeper/conf/log4j2.xml"
GUARDED = "io.herdkeeper.bookie.GuardedLedgerStorage"
PATIENCE_SECONDS, FLUSHES = 60, 4
ANOTHER_KEY, ZEROS = master_key(b"herddb"), bytes(MASTER_KEY_BYTES)


@dataclass(frozen=True)
class Bookie:
    """A bookie with one closed ledger."""

    servers: Servers
    name: str

    def write(self, key: bytes, ledger: int = LEDGER) -> ReadCode:
        """Writes an entry as recovery does, which is accepted in a closed ledger, too."""
        with open_catalog(self.servers.zookeeper, LEDGERS_ROOT) as catalog:
            address = catalog.bookie_addresses()[self.name]
        with BookieConnection(self.name, address, 15.0) as connection:
            data = entry_digest(DigestType.CRC32C).pack(Entry(ledger, ENTRY, ENTRY - 1, 6, b"forged"))
            return connection.recovery_add((ledger, ENTRY), key, data)

    def restart_without_the_ledger_in_its_journal(self) -> None:
        """What is replayed from the journal brings its key with it, and is replayed from the mark on. A flush may have begun before."""
        marks = set()

        def flushed_again_and_again() -> bool:
            assert self.write(master_key(PASSWORD), OTHERS) is ReadCode.OK
            mark = self.servers.folder / self.name / "ledgers/current/lastMark"
            marks.add(mark.read_bytes() if mark.exists() else b"")
            return len(marks) > FLUSHES

        wait_until("another ledger is flushed", flushed_again_and_again, PATIENCE_SECONDS)
        self.servers.restart_bookie(self.name)


@pytest.fixture(params=[GUARDED])
def bookie(request: pytest.FixtureRequest) -> Iterator[Bookie]:
    with servers((*QUICK_COMPILER, f"-Dlog4j2.configurationFile={LOG_OF_THE_IMAGE}")) as running:
        running.start_zookeeper()
        (name,) = running.start_bookies(1, {"ledgerStorageClass": request.param, "flushInterval": 500})
        ledgers = [SyntheticLedger(LEDGER, (name,), 100, 200)]
        with running.client() as client:
            write_metadata(client, LEDGERS_ROOT, ledgers)
        with open_catalog(running.zookeeper, LEDGERS_ROOT) as catalog:
            write_entries(ledgers, catalog.bookie_addresses())
        yield Bookie(running, name)


def test_a_bookie_tells_of_a_wrong_key_and_its_log_has_not_the_right_one(bookie: Bookie) -> None:
    assert bookie.write(ANOTHER_KEY) is ReadCode.UNAUTHORIZED
    log = (bookie.servers.folder / f"{bookie.name}.log").read_text()
    assert "Unauthorized access to ledger" in log
    signed = [byte - 256 if byte > 127 else byte for byte in master_key(PASSWORD)]
    assert str(signed) not in log


def test_a_bookie_takes_no_other_key_for_a_ledgers_not_even_after_a_restart(bookie: Bookie) -> None:
    assert (bookie.write(ANOTHER_KEY), bookie.write(ZEROS)) == (ReadCode.UNAUTHORIZED, ReadCode.UNAUTHORIZED)
    bookie.restart_without_the_ledger_in_its_journal()
    assert (bookie.write(ZEROS), bookie.write(ANOTHER_KEY)) == (ReadCode.IO_ERROR, ReadCode.IO_ERROR)
    assert bookie.write(master_key(PASSWORD)) is ReadCode.OK


@pytest.mark.parametrize("bookie", ["org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage"], indirect=True)
def test_a_bookie_of_an_earlier_image_that_took_a_key_of_zeros_starts_with_this_image_and_takes_the_right_one(bookie: Bookie) -> None:
    """If the first half fails, `GuardedLedgerStorage` is needed no more."""
    bookie.restart_without_the_ledger_in_its_journal()
    assert (bookie.write(ZEROS), bookie.write(master_key(PASSWORD))) == (ReadCode.OK, ReadCode.UNAUTHORIZED)
    bookie.write(ZEROS)
    bookie.servers.processes[bookie.name].kill()  # what is not flushed is replayed from the journal, with its key

    def upgrade(folder: Path) -> None:
        file = folder / "bk_server.conf"
        file.write_text(file.read_text().replace("org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage", GUARDED))

    bookie.servers.restart_bookie(bookie.name, upgrade)
    # Where a flush came between the two entries above, only the second one is replayed: without its key, so with the stored one.
    assert bookie.write(ZEROS) in (ReadCode.IO_ERROR, ReadCode.UNAUTHORIZED)
    assert bookie.write(master_key(PASSWORD)) is ReadCode.OK


def test_whoever_is_first_sets_the_key_of_a_ledger_that_is_still_to_come(bookie: Bookie) -> None:
    """A limit: the leader's next ledger fails there. Its log begins another one, and nothing that was acknowledged is lost."""
    assert bookie.write(ANOTHER_KEY, NEXT_LEDGER) is ReadCode.OK
    assert bookie.write(master_key(PASSWORD), NEXT_LEDGER) is ReadCode.UNAUTHORIZED
