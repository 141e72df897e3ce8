"""A member of ZooKeeper that led before it was paused answers a bookie's search for deleted ledgers, with the list of before."""

from __future__ import annotations

import signal
import socket
from contextlib import suppress
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
QUIET = REPOSITORY / "images/zookeeper/conf/logback.xml"
STOCK = "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage"
GUARDED = "io.herdkeeper.bookie.GuardedLedgerStorage"


def start_ensemble(running: Servers) -> dict[str, str]:
    """Three members; returns the address of each by its process's name."""
    ports = iter(free_ports(3 * MEMBERS))
    clients = [next(ports) for _ in range(MEMBERS)]
    voters = "".join(f"server.{number}={LOOPBACK}:{next(ports)}:{next(ports)}\n" for number in range(1, MEMBERS + 1))
    addresses = {}
    for number, port in enumerate(clients, 1):
        folder = running.folder / f"member-{number}"
        folder.mkdir()
        (folder / "myid").write_text(f"{number}\n")
        (folder / "zoo.cfg").write_text(
            f"dataDir={folder}\ntickTime=2000\ninitLimit=30\nsyncLimit=2\nclientPort={port}\nclientPortAddress={LOOPBACK}\n"
            f"admin.enableServer=false\n4lw.commands.whitelist=srvr\nmaxClientCnxns=0\n{voters}"
        )
        command = ("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(folder / "zoo.cfg"))
        running._start(
            f"member-{number}", ["-Xmx96m", "-Dzookeeper.forceSync=no", f"-Dlogback.configurationFile={QUIET}"], "zookeeper", command
        )
        addresses[f"member-{number}"] = f"{LOOPBACK}:{port}"
    return addresses


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
        addresses = start_ensemble(running)
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

        running.pause(stale)
        elected(others)
        running.zookeeper = ",".join(others.values())
        with running.client() as client:
            write_metadata(client, LEDGERS_ROOT, [new])
        write_entries([new], bookies)
        collect(http, "PUT")
        wait_until("it collects", lambda: b"true" in collect(http, "GET"), PATIENCE_SECONDS)
        running.processes[stale].send_signal(signal.SIGCONT)
        wait_until("it has collected", lambda: b"false" in collect(http, "GET"), PATIENCE_SECONDS)

        if storage == GUARDED:
            log = (running.folder / f"{BOOKIE}.log").read_text(errors="replace")
            assert f"ledger {NEW} is in the metadata: the list that it was not in is older" in log
        else:
            wait_until("it is deleted", lambda: code_of(bookies[BOOKIE], NEW) is not ReadCode.OK, PATIENCE_SECONDS)
        assert (code_of(bookies[BOOKIE], NEW) is ReadCode.OK) == (storage == GUARDED)
        assert code_of(bookies[BOOKIE], OLD) is ReadCode.OK
