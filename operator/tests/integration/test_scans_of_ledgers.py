"""All ledgers of a cluster are scanned in a real ZooKeeper, which is killed and cut off meanwhile."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from kazoo.client import KazooClient

from herdkeeper.bookkeeper.observe import ledgers as module
from herdkeeper.bookkeeper.observe.bookies import read_ledgers_metadata
from herdkeeper.bookkeeper.observe.ledgers import LedgerScans, ScanRequest
from herdkeeper.bookkeeper.state.bookies import BeingScanned, LedgerScan, LedgersMetadata
from herdkeeper.clients import paged_reads
from herdkeeper.clients.paged_reads import PagedReads
from herdkeeper.clients.zookeeper import EnsembleError, EnsembleSessions, Znodes
from herdkeeper.codecs.bookkeeper.layout import decode_layout, ledger_path
from herdkeeper.codecs.bookkeeper.placement import PlacementRule
from herdkeeper.engine.execute_metadata import LAYOUT, format_ledgers_root
from herdkeeper_e2e.server_processes import LEDGERS_ROOT, Servers, servers
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

LEDGERS = 2500
PATIENCE_SECONDS = 120.0
ASKED = ScanRequest(("bookie-2",), (), PlacementRule({}, 1, 1))


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[Servers]:
    """One member with the metadata of many ledgers on three bookies. Every tenth is bookie-2's."""
    with servers() as running:
        running.start_zookeeper({"maxSessionTimeout": 60000})
        sessions = EnsembleSessions()
        format_ledgers_root(sessions.at(running.zookeeper), LEDGERS_ROOT)
        sessions.stop()
        with running.client() as client:
            for first in range(0, LEDGERS, 500):
                put(client, range(first, first + 500))
        yield running


def put(client: KazooClient, ledger_ids: range) -> None:
    for folder in sorted({path_of(ledger_id).rpartition("/")[0] for ledger_id in ledger_ids}):
        client.ensure_path(folder)
    transaction = client.transaction()
    for ledger_id in ledger_ids:
        transaction.create(path_of(ledger_id), metadata("bookie-0", "bookie-1" if ledger_id % 10 else "bookie-2"))
    assert not [each for each in transaction.commit() if isinstance(each, Exception)]


def path_of(ledger_id: int) -> str:
    return LEDGERS_ROOT + ledger_path(decode_layout(LAYOUT), ledger_id)


def metadata(*bookies: str) -> bytes:
    named = "".join(f'  ensembleMember: "{bookie_id}"\n' for bookie_id in bookies)
    sizes = f"quorumSize: {len(bookies)}\nensembleSize: {len(bookies)}\nackQuorumSize: 1\nlength: 10\nlastEntryId: 0\n"
    text = f'{sizes}state: CLOSED\nsegment {{\n{named}  firstEntryId: 0\n}}\ndigestType: CRC32C\npassword: ""\n'
    return f"BookieMetadataFormatVersion\t2\n{text}".encode()


class Counted:
    """Znodes whose reads of many are counted; before the one of number `at`, `happens` once, and after the first that fails `heals`."""

    def __init__(self, znodes: Znodes, pages: Pages) -> None:
        self._znodes, self._pages = znodes, pages
        self.read, self.children = znodes.read, znodes.children

    def read_many(self, paths: list[str]) -> tuple[bytes | None, ...]:
        self._pages.before()
        try:
            found = self._znodes.read_many(paths)
        except EnsembleError:
            self._pages.lost()
            raise
        self._pages.read += list(paths)
        return found


class Pages:
    """The scan's way to the ensemble, and the paths that were read."""

    def __init__(self, zookeeper: Servers, at: int, happens: Callable[[], None], heals: Callable[[], None]) -> None:
        self.sessions, self.address = EnsembleSessions(), zookeeper.zookeeper
        self.at, self.happens, self.heals, self.asked, self.failed = at, happens, heals, 0, 0
        self.read: list[str] = []

    def znodes(self) -> Counted:
        return Counted(self.sessions.at(self.address), self)

    def before(self) -> None:
        self.asked += 1
        if self.asked == self.at:
            self.happens()

    def lost(self) -> None:
        self.failed += 1
        if self.failed == 1:
            self.heals()


def scan_of(pages: Pages) -> LedgerScan:
    """The scan's result, however long it takes."""
    woken = threading.Event()
    scans = LedgerScans(PagedReads(wait_seconds=0.0), "here", LEDGERS_ROOT, pages.znodes, lambda _: woken.set())  # type: ignore[arg-type]
    first = scans.current(ASKED)
    assert isinstance(first, BeingScanned), first
    assert woken.wait(PATIENCE_SECONDS), scans.current(ASKED)
    found = scans.current(ASKED)
    assert isinstance(found, LedgerScan), found
    pages.sessions.stop()
    return found


@pytest.mark.parametrize("fault", ["none", "connection", "session", "member"])
def test_a_scan_goes_on_with_the_page_at_which_the_ensemble_was_lost(
    zookeeper: Servers, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(module, "PAGE", 200)
    monkeypatch.setattr(paged_reads, "AGAIN_SECONDS", 0.2)

    def happens() -> None:
        if fault == "member":
            zookeeper.kill("zookeeper")
        elif fault != "none":
            client = pages.sessions.at(pages.address)._session.client
            if fault == "session":
                pages.sessions.stop()
            else:
                zookeeper.pause("zookeeper")  # else the client may be back before the page is asked for
                client._connection._socket.shutdown(socket.SHUT_RDWR)
            wait_for("the client to notice", lambda: not client.connected or Pending("it is connected"), Limit(PATIENCE_SECONDS, 0.01))

    def heals() -> None:
        if fault == "member":
            zookeeper.run("zookeeper", zookeeper.commands["zookeeper"])
        elif fault == "connection":
            zookeeper.processes["zookeeper"].send_signal(signal.SIGCONT)

    pages = Pages(zookeeper, 7, happens, heals)
    found = scan_of(pages)
    assert (found.ledgers, len(found.shares["bookie-2"]), found.naming["bookie-1"].closed) == (LEDGERS, LEDGERS // 10, LEDGERS * 9 // 10)
    assert len(pages.read) == len(set(pages.read)) == LEDGERS, "no page was read twice, none was left out"
    assert (pages.failed > 0) is (fault != "none"), "and one of them was lost"


def test_a_registration_that_came_and_went_shows_though_all_is_as_before(zookeeper: Servers) -> None:
    sessions = EnsembleSessions()

    def seen() -> LedgersMetadata:
        found = read_ledgers_metadata(sessions.at(zookeeper.zookeeper), LEDGERS_ROOT)
        assert isinstance(found, LedgersMetadata)
        return found

    with zookeeper.client() as client:
        client.create(f"{LEDGERS_ROOT}/available/readonly/bookie-2", makepath=True)
        before = seen()
        assert seen() == before
        client.set(f"{LEDGERS_ROOT}/available/readonly/bookie-2", b"another address")
        assert seen() == before
        client.create(f"{LEDGERS_ROOT}/available/bookie-2")
        client.delete(f"{LEDGERS_ROOT}/available/bookie-2")
        after = seen()
    sessions.stop()
    assert (after.writable, after.read_only) == (before.writable, before.read_only)
    assert after != before
    assert max(after.registrations) > max(before.registrations)
