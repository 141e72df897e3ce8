"""A repair's lock beside BookKeeper's own auditor and replication worker, which find and copy what a lost bookie held."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from synthetic_ledgers import SyntheticLedger, write_entries, write_metadata
from waits import wait_until

from herdkeeper.codecs.bookkeeper.underreplication import MARK, MARK_DEPTH, marks_path
from herdkeeper_e2e.server_processes import AUTORECOVERY, LEDGERS_ROOT, Servers, servers
from herdkeeper_jobs.bookkeeper.metadata import VersionedMetadata, open_catalog
from herdkeeper_jobs.repair.lock import replication_lock

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
LOCKED, FREE = 1, 2
KEPT, SPARE, LOST_FIRST, LOST_THEN = (f"bookie-{number}" for number in range(4))
PATIENCE_SECONDS = 120


@dataclass(frozen=True)
class Stage:
    """Four bookies with two ledgers that share one bookie, and an idle autorecovery daemon."""

    servers: Servers
    client: KazooClient

    def bookies(self, ledger_id: int) -> tuple[str, ...]:
        """The bookies of a ledger in its current metadata."""
        with open_catalog(self.servers.zookeeper, LEDGERS_ROOT) as catalog:
            read = catalog.read_ledger_metadata(ledger_id)
        assert isinstance(read, VersionedMetadata)
        return read.metadata.segments[0].bookies

    def wait_until(self, what: str, true: Callable[[], bool]) -> None:
        """Fails with autorecovery's last output."""

        def words() -> str:
            return f"autorecovery says:\n{(self.servers.folder / f'{AUTORECOVERY}.log').read_text(errors='replace')[-2000:]}"

        wait_until(what, true, PATIENCE_SECONDS, words)

    def is_marked(self, ledger_id: int) -> bool:
        """Whether the auditor has marked the ledger."""
        folders = [marks_path(LEDGERS_ROOT)]
        for _ in range(MARK_DEPTH):
            folders = [f"{folder}/{name}" for folder in folders for name in self._children(folder)]
        marks = [name for folder in folders for name in self._children(folder)]
        return any(MARK.fullmatch(name) and int(name.removeprefix("urL")) == ledger_id for name in marks)

    def _children(self, path: str) -> list[str]:
        try:
            return list(self.client.get_children(path))
        except NoNodeError:  # the mark is gone
            return []


@pytest.fixture
def stage() -> Iterator[Stage]:
    with servers() as running:
        running.start_zookeeper()
        running.start_bookies(4)
        with running.client() as client:
            ledgers = [SyntheticLedger(LOCKED, (KEPT, LOST_FIRST), 20, 100), SyntheticLedger(FREE, (KEPT, LOST_THEN), 20, 100)]
            write_metadata(client, LEDGERS_ROOT, ledgers)
            with open_catalog(running.zookeeper, LEDGERS_ROOT) as catalog:
                write_entries(ledgers, catalog.bookie_addresses())
            running.start_autorecovery()
            yield Stage(running, client)


def test_a_replication_worker_passes_a_ledger_by_while_a_repair_holds_its_lock_and_copies_it_then(stage: Stage) -> None:
    with replication_lock(stage.client, LEDGERS_ROOT, LOCKED, "a test") as lock:
        stage.servers.stop_bookie(LOST_FIRST)
        stage.wait_until("the auditor has marked the first ledger", lambda: stage.is_marked(LOCKED))
        # One worker handles the marked ledgers one after the other.
        stage.servers.stop_bookie(LOST_THEN)
        stage.wait_until("another ledger is copied", lambda: stage.bookies(FREE) == (KEPT, SPARE))
        assert stage.bookies(LOCKED) == (KEPT, LOST_FIRST)
        assert stage.is_marked(LOCKED)
        lock.require_held()
    stage.wait_until("the ledger is copied as well", lambda: stage.bookies(LOCKED) == (KEPT, SPARE))
