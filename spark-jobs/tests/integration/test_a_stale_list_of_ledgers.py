"""A member of ZooKeeper that still takes itself for the leader answers a bookie's search for deleted ledgers, with the list of before."""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from threading import Thread
from urllib.request import Request, urlopen

import pytest
from synthetic_ledgers import SyntheticLedger, write_entries, write_metadata
from waits import wait_until

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.protocol import ReadCode
from herdkeeper_e2e.control_plane import REPOSITORY
from herdkeeper_e2e.free_ports import free_ports
from herdkeeper_e2e.mutual_tls import LOOPBACK
from herdkeeper_e2e.server_processes import LEDGERS_ROOT, QUICK_COMPILER, Servers, servers
from herdkeeper_jobs.bookkeeper.connection import BookieConnection
from herdkeeper_jobs.bookkeeper.metadata import open_catalog

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
BOOKIE, MEMBERS, ENTRIES, ENTRY_BYTES = "bookie-0", 3, 3, 200
OLD, NEW = 1, 2
"""Ledgers from before and after the election."""
PATIENCE_SECONDS, SESSION_MILLIS = 120, 40_000
PING = re.compile(rb"\x00\x00\x00\x05.{8}\xff{8}", re.DOTALL)
"""Of a leader to a follower: `Leader.PING`, a zxid, and neither data nor identities (QuorumPacket in zookeeper.jute)."""
QUIET = REPOSITORY / "images/zookeeper/conf/logback.xml"
STOCK = "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage"
GUARDED = "io.herdkeeper.bookie.GuardedLedgerStorage"


class Link:
    """Between the followers and a member that leads them. Once it is cut, the followers know so, and the leader does not."""

    def __init__(self, leader: int) -> None:
        self._leader, self._cut, self.unheard = leader, False, bytearray()
        self._to_leader: list[socket.socket] = []
        self._to_followers: list[socket.socket] = []
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        Thread(target=self._serve, daemon=True).start()

    def cut(self) -> None:
        self._cut = True
        _end(self._to_followers)

    def mend(self) -> None:
        """The leader learns that nobody follows it."""
        _end(self._to_leader)
        self._cut = False

    def _serve(self) -> None:
        while True:
            follower, _ = self._listener.accept()
            try:
                leader = socket.create_connection((LOOPBACK, self._leader))
            except OSError:  # it does not lead
                follower.close()
                continue
            self._to_followers.append(follower)  # before the question whether it is cut, which comes behind the end of all of these
            self._to_leader.append(leader)
            if self._cut:
                _end([follower, leader])
                continue
            Thread(target=self._ask, args=(follower, leader), daemon=True).start()
            Thread(target=self._tell, args=(leader, follower), daemon=True).start()

    def _ask(self, follower: socket.socket, leader: socket.socket) -> None:
        with suppress(OSError):
            while some := follower.recv(1 << 16):
                leader.sendall(some)
        if not self._cut:
            _end([leader])

    def _tell(self, leader: socket.socket, follower: socket.socket) -> None:
        with suppress(OSError):
            while some := leader.recv(1 << 16):
                if self._cut:
                    self.unheard.extend(some)
                else:
                    follower.sendall(some)
        _end([follower])


def _end(connections: list[socket.socket]) -> None:
    for connection in connections:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def start_ensemble(running: Servers) -> tuple[dict[str, str], dict[str, Link]]:
    """Three members: the address of each by its process's name, and the link by which the others follow it."""
    ports = iter(free_ports(3 * MEMBERS))
    clients, quorum, election = ([next(ports) for _ in range(MEMBERS)] for _ in range(3))
    links = [Link(port) for port in quorum]
    for number, port in enumerate(clients, 1):
        folder = running.folder / f"member-{number}"
        folder.mkdir()
        (folder / "myid").write_text(f"{number}\n")
        voters = "".join(
            f"server.{voter}={LOOPBACK}:{quorum[voter - 1] if voter == number else links[voter - 1].port}:{election[voter - 1]}\n"
            for voter in range(1, MEMBERS + 1)
        )
        # A leader gives a silent follower up after the syncLimit of five minutes.
        (folder / "zoo.cfg").write_text(
            f"dataDir={folder}\ntickTime=2000\ninitLimit=30\nsyncLimit=150\nclientPort={port}\nclientPortAddress={LOOPBACK}\n"
            f"admin.enableServer=false\n4lw.commands.whitelist=srvr\nmaxClientCnxns=0\n{voters}"
        )
        command = ("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(folder / "zoo.cfg"))
        running._start(
            f"member-{number}", ["-Xmx96m", "-Dzookeeper.forceSync=no", f"-Dlogback.configurationFile={QUIET}"], "zookeeper", command
        )
    names = [f"member-{number}" for number in range(1, MEMBERS + 1)]
    return {name: f"{LOOPBACK}:{port}" for name, port in zip(names, clients, strict=True)}, dict(zip(names, links, strict=True))


def leader_of(addresses: dict[str, str]) -> str | None:
    for name, address in addresses.items():
        host, port = address.split(":")
        with suppress(OSError), socket.create_connection((host, int(port)), 5) as asked:
            asked.sendall(b"srvr")
            if b"Mode: leader" in b"".join(iter(lambda: asked.recv(4096), b"")):
                return name
    return None


def elected(addresses: dict[str, str]) -> str:
    found: list[str] = []

    def leads() -> bool:
        found[:] = filter(None, [leader_of(addresses)])
        return found != []

    wait_until("a member leads", leads, PATIENCE_SECONDS)
    return found[0]


def collect(port: int, method: str) -> bytes:
    with urlopen(Request(f"http://{LOOPBACK}:{port}/api/v1/bookie/gc", method=method)) as answer:
        return bytes(answer.read())


def code_of(address: BookieAddress, ledger: int) -> ReadCode:
    with BookieConnection(BOOKIE, address, 30.0) as connection:
        return next(iter(connection.read_entries(ledger, [0]))).code


@pytest.mark.parametrize("storage", [STOCK, GUARDED], ids=["BookKeeper's own", "the image's"])
def test_a_bookie_keeps_a_ledger_that_its_member_of_zookeeper_does_not_know_of(storage: str) -> None:
    """If the first case fails, `NeededLedgers` is needed no more."""
    with servers(QUICK_COMPILER) as running:
        addresses, links = start_ensemble(running)
        stale = elected(addresses)
        others = {name: address for name, address in addresses.items() if name != stale}
        running.zookeeper = addresses[stale]
        (http,) = free_ports(1)
        running.start_bookies(
            1,
            {
                "ledgerStorageClass": storage,
                "flushInterval": 200,
                "zkTimeout": SESSION_MILLIS,
                "gcWaitTime": 1_800_000,
                "httpServerEnabled": "true",
                "httpServerClass": "org.apache.bookkeeper.http.vertx.VertxHttpServer",
                "httpServerPort": http,
            },
        )
        with open_catalog(running.zookeeper, LEDGERS_ROOT) as catalog:
            bookies = catalog.bookie_addresses()
        old, new = (SyntheticLedger(number, (BOOKIE,), ENTRIES, ENTRY_BYTES) for number in (OLD, NEW))
        with running.client() as client:
            write_metadata(client, LEDGERS_ROOT, [old])
        write_entries([old], bookies)

        links[stale].cut()
        elected(others)
        running.zookeeper = ",".join(others.values())
        with running.client() as client:
            write_metadata(client, LEDGERS_ROOT, [new])
        write_entries([new], bookies)
        collect(http, "PUT")
        if storage == GUARDED:
            wait_until("it asks a majority", lambda: PING.sub(b"", bytes(links[stale].unheard)) != b"", PATIENCE_SECONDS)
            links[stale].mend()
            wait_until("it has collected", lambda: b"false" in collect(http, "GET"), PATIENCE_SECONDS)
            log = (running.folder / f"{BOOKIE}.log").read_text(errors="replace")
            assert f"ledger {NEW} is in the metadata: the list that it was not in is older" in log
        else:
            wait_until("it is deleted", lambda: code_of(bookies[BOOKIE], NEW) is not ReadCode.OK, PATIENCE_SECONDS)
        assert (code_of(bookies[BOOKIE], NEW) is ReadCode.OK) == (storage == GUARDED)
        assert code_of(bookies[BOOKIE], OLD) is ReadCode.OK
