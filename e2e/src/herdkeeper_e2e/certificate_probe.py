"""Tests which clients the ports of a stack with certificates serve, and which certificates the servers show. Runs in a pod with the jobs'
image and a reader's certificate: `python3 -m herdkeeper_e2e.certificate_probe --ledgers-root PATH NODE…`, the hosts of SQL nodes.

With clients on standard input (JSON: for each name its `tls.crt`, `tls.key` and `ca.crt`) each of them, and one in plain text, tries each
port; one line of JSON for each. Without, one line for each server: its certificate's fingerprint. The SQL port requires a password instead
(herdkeeper_e2e.tls_probe).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import ssl
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

from herdkeeper.shared.names import (
    HERDDB_HTTP_PORT,
    HERDDB_SQL_PORT,
    IDENTITY_VARIABLE,
    ZOOKEEPER_CLIENT_PORT,
    ZOOKEEPER_ELECTION_PORT,
    ZOOKEEPER_LOOPBACK_PORT,
    ZOOKEEPER_SECURE_PORT,
)
from herdkeeper.tls.context import mutual_context
from herdkeeper.tls.identity import Identity, own_identity
from herdkeeper.tls.kazoo_handler import MutualTlsHandler
from herdkeeper_e2e.session import ZOOKEEPER
from herdkeeper_e2e.tls_probe import fingerprint, shown_certificate

if TYPE_CHECKING:
    from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress

PLAIN = "plain text"
PLAIN_COMMAND = b"srvr\n"
"""Of ZooKeeper, which its port in plain text answers."""
PLAIN_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n"
"""To a SQL node's HTTP port."""
SERVED = "served"
ANSWER_SECONDS = 5.0
"""A member that lets somebody in has answered long since."""


@dataclass(frozen=True)
class Tried:
    """What became of `who` at a port of a server: SERVED, or why not."""

    server: str
    port: str
    who: str
    outcome: str


@dataclass(frozen=True)
class Servers:
    """Host names of a stack's members and SQL nodes, and the addresses of its bookies with a ledger that one of them holds. `ledgers_root`
    is the root of the ledgers in ZooKeeper."""

    members: tuple[str, ...]
    bookies: Mapping[str, BookieAddress]
    ledger: int
    ledgers_root: str
    nodes: tuple[str, ...]


def find_servers(ledgers_root: str, nodes: list[str]) -> Servers:
    """As ZooKeeper tells."""
    from herdkeeper_jobs.bookkeeper.metadata import open_catalog  # in the jobs' image only

    address = os.environ[ZOOKEEPER]
    with open_catalog(address, ledgers_root) as catalog:
        bookies, ledger = catalog.bookie_addresses(), min(catalog.ledger_ids())
    return Servers(tuple(member.rpartition(":")[0] for member in address.split(",")), bookies, ledger, ledgers_root, tuple(nodes))


def everybody_tries(servers: Servers, people: Mapping[str, Identity]) -> Iterator[Tried]:
    """Each of them at each port."""
    for host in servers.members:
        yield Tried(host, "zookeeper", PLAIN, _plain(host, ZOOKEEPER_SECURE_PORT, PLAIN_COMMAND))
        yield Tried(host, "election", PLAIN, _plain(host, ZOOKEEPER_ELECTION_PORT, b"x" * 40))
        for port in (ZOOKEEPER_CLIENT_PORT, ZOOKEEPER_LOOPBACK_PORT):
            yield Tried(host, str(port), PLAIN, _plain(host, port, PLAIN_COMMAND))
        for who, identity in people.items():
            yield Tried(host, "zookeeper", who, _in_zookeeper(host, identity, servers.ledgers_root))
            yield Tried(host, "election", who, _in_an_election(host, identity))
    for bookie_id, address in servers.bookies.items():
        yield Tried(address.host, "bookie", PLAIN, _in_a_bookie(bookie_id, address, servers.ledger))
        for who, identity in people.items():
            with _being(identity):
                yield Tried(address.host, "bookie", who, _in_a_bookie(bookie_id, address, servers.ledger))
    for host in servers.nodes:
        yield Tried(host, "http", PLAIN, _plain(host, HERDDB_HTTP_PORT, PLAIN_REQUEST))


def certificates_of(servers: Servers) -> Iterator[tuple[str, str, str]]:
    """Host, port and the fingerprint of what is shown there, verified under that name; why nothing is where it can't be."""
    identity = _own()
    for host in servers.members:
        yield host, "zookeeper", _outcome(partial(shown_certificate, host, ZOOKEEPER_SECURE_PORT, identity.authorities))
    for address in servers.bookies.values():
        yield address.host, "bookie", _outcome(partial(_shown_by_a_bookie, address, identity))
    for host in servers.nodes:
        for port, number in (("sql", HERDDB_SQL_PORT), ("http", HERDDB_HTTP_PORT)):
            yield host, port, _outcome(partial(shown_certificate, host, number, identity.authorities))


def _shown_by_a_bookie(address: BookieAddress, identity: Identity) -> str:
    from herdkeeper_jobs.bookkeeper.start_tls import encrypted

    with (
        socket.create_connection((address.host, address.port), ANSWER_SECONDS) as opened,
        encrypted(opened, identity, address.host) as stream,
    ):
        return fingerprint(stream.getpeercert(binary_form=True) or b"")


def _plain(host: str, port: int, said: bytes) -> str:
    """SERVED where anything is answered to it."""

    def ask() -> str:
        with socket.create_connection((host, port), ANSWER_SECONDS) as opened:
            opened.sendall(said)
            return SERVED if opened.recv(1) else "closed"

    return _outcome(ask)


def _in_zookeeper(host: str, identity: Identity, ledgers_root: str) -> str:
    """SERVED where it sees the root of the ledgers, which each certificate of the stack may read."""
    handler = MutualTlsHandler(lambda: identity)
    client = KazooClient(hosts=f"{host}:{ZOOKEEPER_SECURE_PORT}", timeout=10.0, handler=handler)
    try:
        client.start(timeout=ANSWER_SECONDS)
        return SERVED if client.exists(ledgers_root) is not None else "no root"
    except KazooTimeoutError as error:
        return handler.refused or str(error)
    finally:
        client.stop()
        client.close()


def _in_an_election(host: str, identity: Identity) -> str:
    """SERVED where a member waits for what the other one says first, a few seconds long. TLS 1.3: a refusal comes behind the handshake."""

    def ask() -> str:
        with (
            socket.create_connection((host, ZOOKEEPER_ELECTION_PORT), ANSWER_SECONDS) as opened,
            mutual_context(identity).wrap_socket(opened, server_hostname=host) as stream,
        ):
            stream.settimeout(ANSWER_SECONDS)
            with contextlib.suppress(TimeoutError):
                stream.recv(1)
            return SERVED

    return _outcome(ask)


def _in_a_bookie(bookie_id: str, address: BookieAddress, ledger: int) -> str:
    """As who this process is. A bookie that does not hold the ledger serves, too."""
    from herdkeeper.codecs.bookkeeper.protocol import ReadCode
    from herdkeeper_jobs.bookkeeper.connection import BookieConnection, BookieUnreachableError

    try:
        with BookieConnection(bookie_id, address, ANSWER_SECONDS) as connection:
            code = next(connection.read_entries(ledger, [0])).code
    except BookieUnreachableError as error:
        return error.reason
    return SERVED if code is ReadCode.OK or code.means_absent else code.name


def _outcome(ask: Callable[[], str]) -> str:
    try:
        return ask()
    except (OSError, ssl.SSLError) as error:
        return str(error) or type(error).__name__


@contextlib.contextmanager
def _being(identity: Identity | None) -> Iterator[None]:
    """This process is somebody else; None: nobody."""
    before = os.environ.pop(IDENTITY_VARIABLE, None)
    with tempfile.TemporaryDirectory() as folder:
        if identity is not None:
            files = {"tls.crt": identity.certificate, "tls.key": identity.key, "ca.crt": identity.authorities}
            for name, text in files.items():
                Path(folder, name).write_text(text)
            os.environ[IDENTITY_VARIABLE] = folder
        try:
            yield
        finally:
            os.environ.pop(IDENTITY_VARIABLE, None)
            if before is not None:
                os.environ[IDENTITY_VARIABLE] = before


def _own() -> Identity:
    identity = own_identity()
    if identity is None:
        raise LookupError(f"{IDENTITY_VARIABLE} is not set: this pod has no certificate")
    return identity()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledgers-root", required=True)
    parser.add_argument("nodes", nargs="+", metavar="NODE")
    arguments = parser.parse_args()
    people = json.loads(sys.stdin.read() or "{}")
    servers = find_servers(arguments.ledgers_root, arguments.nodes)
    if people:
        identities = {who: Identity(files["tls.crt"], files["tls.key"], files["ca.crt"]) for who, files in people.items()}
        with _being(None):
            for tried in everybody_tries(servers, identities):
                print(json.dumps(asdict(tried)), flush=True)
        return
    for host, port, shown in certificates_of(servers):
        print(json.dumps({"server": host, "port": port, "certificate": shown}), flush=True)


if __name__ == "__main__":
    main()
