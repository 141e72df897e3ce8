"""A stack with the operator's certificates and access lists as real servers, and what each role may do with its znodes."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NoAuthError, NoChildrenForEphemeralsError
from kazoo.security import ACL, Id, Permissions
from operators_certificates import ZOOKEEPER, bookkeeper_cluster, herddb_cluster, issued
from waits import wait_until

from herdkeeper.api import BookKeeperCluster, HerdDBCluster
from herdkeeper.certificates.access import SCHEME, herd_access, ledgers_access
from herdkeeper.clients.zookeeper import EnsembleError, EnsembleSessions, Znodes
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord, decode_tablespace, tablespace_path
from herdkeeper.engine.execute_metadata import create_herd_root, format_ledgers_root
from herdkeeper.protocol.log_archive import archive_progress_path, expiry_order_path
from herdkeeper.protocol.log_pin import SECOND_DISK, log_pin_path, log_pins_path, replica_pin, stream_pin
from herdkeeper.shared.names import IDENTITY_VARIABLE, ObjectKey
from herdkeeper.tls.kazoo_handler import MutualTlsHandler
from herdkeeper_e2e.mutual_tls import ROLE, MountedSecret, StackSecrets
from herdkeeper_e2e.server_processes import NODE_ID, Servers, servers

LOG, DATABASE = bookkeeper_cluster(ROLE), herddb_cluster("db", ROLE)
OTHER_LOG, OTHER_DATABASE = bookkeeper_cluster("other"), herddb_cluster("other-db", "other")
OPERATOR = ObjectKey("demo", ZOOKEEPER.names.operator_secret)
ROLES = {
    "bookies": LOG.names.identity_secret,
    "SQL nodes": DATABASE.names.identity_secret,
    "readers": LOG.names.readers_secret,
    "other bookies": OTHER_LOG.names.identity_secret,
    "other SQL nodes": OTHER_DATABASE.names.identity_secret,
    "other readers": OTHER_LOG.names.readers_secret,
}
OTHERS = tuple(role for role in ROLES if role.startswith("other"))
PATIENCE_SECONDS = 120.0
OPERATORS = [ACL(int(Permissions.ALL), Id(SCHEME, "CN=operator"))]


@dataclass(frozen=True)
class Stack:
    """A member, three bookies, autorecovery, and SQL nodes whose ledgers have two copies."""

    servers: Servers
    secrets: Mapping[str, MountedSecret]
    ensembles: EnsembleSessions

    @property
    def operator(self) -> Znodes:
        return self.ensembles.at(self.servers.zookeeper, OPERATOR)

    @contextmanager
    def session(self, secret: str) -> Iterator[KazooClient]:
        """With the certificate in a Secret."""
        client = KazooClient(hosts=self.servers.zookeeper, timeout=30.0, handler=MutualTlsHandler(self.secrets[secret].identity))
        client.start(timeout=PATIENCE_SECONDS)
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def found(self, log: BookKeeperCluster, database: HerdDBCluster) -> None:
        """The operator makes the roots."""
        ledgers, herd = ledgers_access(log.key), herd_access(database.key, log.metadata.name)
        self.act("the ledgers' root is there", lambda: format_ledgers_root(self.operator, log.names.ledgers_root, ledgers))
        self.act("HerdDB's root is there", lambda: create_herd_root(self.operator, database.names.herd_root, herd))

    def wait(self, what: str, true: Callable[[], bool]) -> None:
        """A member that does not answer in time is asked again: the machine may be busy."""

        def holds() -> bool:
            with suppress(EnsembleError):
                return true()
            return False

        wait_until(what, holds, PATIENCE_SECONDS, self.words)

    def act(self, what: str, act: Callable[[], None]) -> None:
        """What the operator does, once the member answers in time: the machine may be busy. What is there already is of another attempt."""

        def done() -> bool:
            try:
                act()
            except EnsembleError as error:
                return "NodeExists" in str(error)
            return True

        self.wait(what, done)

    def words(self) -> str:
        """The last ones of all servers."""
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-1500:]}" for log in self.servers.folder.glob("*.log"))

    @cached_property
    def uuid(self) -> str:
        """Of HerdDB's own tablespace."""
        return self.record()[0].uuid

    def record(self) -> tuple[TablespaceRecord, int]:
        """HerdDB's own tablespace, with its znode's version."""
        found: list[tuple[bytes, int]] = []

        def is_read() -> bool:
            znode = self.operator.read(tablespace_path(DATABASE.names.herd_root, "herd"))
            assert znode is not None
            found.append(znode)
            return True

        self.wait("the tablespace is read", is_read)
        return decode_tablespace(found[0][0]), found[0][1]


@contextmanager
def guarded_ensemble() -> Iterator[Stack]:
    """A member in which the operator founded the roots of two stacks. The host names of the first one lead to this machine."""
    member, bookie, node = ZOOKEEPER.names.host(0), LOG.names.host(0), DATABASE.names.host(0)
    asked = socket.getaddrinfo

    def here(host: Any, *arguments: Any, **named: Any) -> Any:
        return asked("127.0.0.1" if host in (member, bookie, node) else host, *arguments, **named)

    with servers() as made, pytest.MonkeyPatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", here)
        hosts = made.folder / "hosts"
        hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in (member, bookie, "localhost", socket.gethostname())))
        made.java_options = (f"-Djdk.net.hosts.file={hosts}", "-XX:TieredStopAtLevel=1")
        made.zookeeper_host, made.bookie_host = member, bookie
        made.ledgers_root, made.herd_root = LOG.names.ledgers_root, DATABASE.names.herd_root
        mounted: dict[str, MountedSecret] = {}
        for name, data in issued((LOG, DATABASE), (OTHER_LOG, OTHER_DATABASE)).items():
            mounted[name] = MountedSecret(made.folder / "secrets" / name)
            mounted[name].write(data)
        held = (ZOOKEEPER.names.clients_secret, ROLES["bookies"], ROLES["SQL nodes"], OPERATOR.name)
        made.secrets = StackSecrets(*(mounted[name] for name in held))
        patched.setenv(IDENTITY_VARIABLE, str(mounted[ROLES["readers"]].folder))
        ensembles = EnsembleSessions(lambda secret: mounted[secret.name].identity())
        stack = Stack(made, mounted, ensembles)
        try:
            made.start_zookeeper()
            for log, database in ((LOG, DATABASE), (OTHER_LOG, OTHER_DATABASE)):
                stack.found(log, database)
            yield stack
        finally:
            ensembles.stop()


def allowed(client: KazooClient, path: str) -> str:
    """What a client may do with a znode, in letters: read, write, create below, delete, set access. Nothing changes: ZooKeeper asks for the
    right before it looks at the version, and what is created goes with the transaction."""
    attempts: dict[str, Callable[[], object]] = {
        "r": lambda: client.get(path),
        "w": lambda: client.set(path, b"", version=99999),
        "c": lambda: created_and_gone(client, path),
        "d": lambda: client.delete(path, version=99999),
        "a": lambda: client.set_acls(path, OPERATORS, version=99999),
    }
    return "".join(letter for letter, attempt in attempts.items() if (letter != "d" or path != "/") and is_allowed(attempt))


def is_allowed(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except NoAuthError:
        return False
    except (BadVersionError, NoChildrenForEphemeralsError):
        pass
    return True


def created_and_gone(client: KazooClient, path: str) -> None:
    transaction = client.transaction()
    transaction.create(f"{path.rstrip('/')}/attack", b"")
    transaction.check(path, 99999)
    first = transaction.commit()[0]
    if isinstance(first, NoAuthError):
        raise first


def places(uuid: str, ledger: str) -> dict[str, str]:
    """Znodes of the first stack by what they are. `uuid` is that of HerdDB's own tablespace, `ledger` the path of a ledger's metadata."""
    ledgers, herd = LOG.names.ledgers_root, DATABASE.names.herd_root
    return {
        "/": "/",
        "the namespace": "/demo",
        "above the log": f"/demo/{ROLE}",
        "above the database": "/demo/db",
        "the ledgers' root": ledgers,
        "its identity": f"{ledgers}/INSTANCEID",
        "its layout": f"{ledgers}/LAYOUT",
        "registrations": f"{ledgers}/available",
        "a registration": f"{ledgers}/available/bookie-0",
        "read-only bookies": f"{ledgers}/available/readonly",
        "cookies": f"{ledgers}/cookies",
        "a cookie": f"{ledgers}/cookies/bookie-0",
        "autorecovery": f"{ledgers}/underreplication",
        "autorecovery's locks": f"{ledgers}/underreplication/locks",
        "a ledger": ledger,
        "HerdDB's root": herd,
        "a tablespace": tablespace_path(herd, "herd"),
        "a list of ledgers": f"{herd}/ledgers/{uuid}",
        "a SQL node": f"{herd}/nodes/{NODE_ID}",
        "a heartbeat": f"{herd}/replicas/{uuid}/{NODE_ID}",
        "pins": log_pins_path(herd, uuid),
        "a replica's pin": log_pin_path(herd, uuid, replica_pin(NODE_ID)),
        "a stream's pin": log_pin_path(herd, uuid, stream_pin("orders")),
        "the operator's pin": log_pin_path(herd, uuid, SECOND_DISK),
        "the archive's progress": archive_progress_path(herd, uuid),
        "the order to expire": expiry_order_path(herd, uuid),
    }


CHANGES, READS = "rwcd", "r"
TABLE = {
    # what: bookies, SQL nodes, readers
    "/": ("", "", ""),
    "the namespace": (READS, READS, READS),
    "above the log": ("", "", ""),
    "above the database": ("", "c", ""),
    "the ledgers' root": ("rwc", "rwc", READS),
    "its identity": (READS, READS, READS),
    "its layout": (READS, READS, READS),
    "registrations": (CHANGES, READS, READS),
    "a registration": (CHANGES, READS, READS),
    "read-only bookies": (CHANGES, READS, READS),
    "cookies": (CHANGES, READS, READS),
    "a cookie": (CHANGES, READS, READS),
    "autorecovery": (CHANGES, READS, READS),
    "autorecovery's locks": (CHANGES, READS, READS),
    "a ledger": (CHANGES, CHANGES, READS),
    "HerdDB's root": (READS, "rwc", READS),
    "a tablespace": (READS, CHANGES, READS),
    "a list of ledgers": (READS, CHANGES, READS),
    "a SQL node": (READS, CHANGES, READS),
    "a heartbeat": (READS, CHANGES, READS),
    "pins": (READS, CHANGES, CHANGES),
    "a replica's pin": (READS, CHANGES, CHANGES),
    "a stream's pin": (READS, CHANGES, CHANGES),
    "the operator's pin": (READS, READS, READS),
    "the archive's progress": (READS, READS, CHANGES),
    "the order to expire": (READS, READS, READS),
}


def everybody(stack: Stack, paths: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """What bookies, SQL nodes and readers may, by place; and what the other stack may: see the names of clusters, and nothing else."""
    found: dict[str, list[str]] = {what: [] for what in paths}
    for role, secret in ROLES.items():
        with stack.session(secret) as client:
            for what, path in paths.items():
                may = allowed(client, path)
                if role in OTHERS:
                    assert may == (READS if what == "the namespace" else ""), f"{role} may {may} {what} ({path})"
                else:
                    found[what].append(may)
    return {what: tuple(may) for what, may in found.items()}


def open_znodes(stack: Stack) -> list[str]:
    """Those of the stack that are not guarded."""
    found = []
    with stack.session(OPERATOR.name) as client:
        waiting = ["/demo"]
        while waiting:
            path = waiting.pop()
            may = {int(entry.perms) for entry in client.get_acls(path)[0] if entry.id.scheme != SCHEME}
            if may != ({int(Permissions.READ)} if path == "/demo" else set()):
                found.append(path)
            waiting += [f"{path}/{name}" for name in client.get_children(path)]
    return found
