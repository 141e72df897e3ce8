"""Real servers with the operator's certificates for a stack, under the host names in them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from operators_certificates import ZOOKEEPER, bookkeeper_cluster, herddb_cluster, intermediate_authority, issued

from herdkeeper.clients.zookeeper import EnsembleSessions
from herdkeeper.shared.names import IDENTITY_VARIABLE, ObjectKey
from herdkeeper.sql.connection import Address, Connection
from herdkeeper_e2e.mutual_tls import ROLE, MountedSecret, StackSecrets
from herdkeeper_e2e.server_processes import CREDENTIALS, LEDGERS_ROOT, Servers, servers
from herdkeeper_jobs.bookkeeper.connection import BookieConnection, EntryRun
from herdkeeper_jobs.bookkeeper.metadata import open_catalog

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]
BOOKIES, NODES = bookkeeper_cluster(ROLE), herddb_cluster("db", ROLE)
MEMBER, BOOKIE = ZOOKEEPER.names.host(0), BOOKIES.names.host(0)
ANSWER_SECONDS, PATIENCE_SECONDS = 60.0, 120.0


NAMED = ZOOKEEPER.names
AUTHORITIES = {
    "the operator's authorities": {},
    "intermediate ones that are given": {
        NAMED.authority_secret: intermediate_authority("company 1"),
        NAMED.quorum_authority_secret: intermediate_authority("members 1"),
    },
}


@pytest.fixture(scope="module", params=AUTHORITIES)
def running(request: pytest.FixtureRequest) -> Iterator[tuple[Servers, Address]]:
    """A member, a bookie and a SQL node. The cluster's names resolve to this machine, for JVMs and for this process."""
    asked = socket.getaddrinfo

    def here(host: Any, *arguments: Any, **named: Any) -> Any:
        return asked("127.0.0.1" if host in (MEMBER, BOOKIE) else host, *arguments, **named)

    with servers() as made, pytest.MonkeyPatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", here)
        hosts, names = made.folder / "hosts", (MEMBER, BOOKIE, "localhost", socket.gethostname())
        hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in names))
        made.java_options += (f"-Djdk.net.hosts.file={hosts}",)
        made.zookeeper_host, made.bookie_host = MEMBER, BOOKIE
        mounted = {}
        for name, data in issued((BOOKIES, NODES), given=AUTHORITIES[request.param]).items():
            mounted[name] = MountedSecret(made.folder / "secrets" / name)
            mounted[name].write(data)
        member, bookies, readers, nodes = (
            mounted[name]
            for name in (
                *(ZOOKEEPER.names.clients_secret, BOOKIES.names.identity_secret),
                *(BOOKIES.names.readers_secret, NODES.names.identity_secret),
            )
        )
        made.secrets = StackSecrets(member, bookies, nodes, readers)
        patched.setenv(IDENTITY_VARIABLE, str(readers.folder))
        made.start_zookeeper()
        made.start_bookies(1)
        yield made, made.start_sql_node()


def test_rows_are_acknowledged_and_a_job_reads_their_log(running: tuple[Servers, Address]) -> None:
    started, sql = running
    with Connection.connect(sql, CREDENTIALS, timeout_seconds=PATIENCE_SECONDS) as connection:
        connection.execute("CREATE TABLE t (n int primary key)")
        for number in range(10):
            connection.execute(f"INSERT INTO t (n) VALUES ({number})")
    with open_catalog(started.zookeeper, LEDGERS_ROOT) as catalog:
        address, ledger = catalog.bookie_addresses()["bookie-0"], min(catalog.ledger_ids())
    assert address.host == BOOKIE
    with BookieConnection("bookie-0", address, ANSWER_SECONDS) as connection:
        read = [data for part in connection.read_runs(ledger, 0, 9) if isinstance(part, EntryRun) for data in part.entries]
    assert len(read) == 10


def test_the_operator_reads_the_metadata_with_its_own_certificate(running: tuple[Servers, Address]) -> None:
    started, _ = running
    secret = ObjectKey("demo", ZOOKEEPER.names.operator_secret)
    shown: list[ObjectKey] = []

    def read(asked: ObjectKey) -> Any:
        shown.append(asked)
        return MountedSecret(started.folder / "secrets" / asked.name).identity()

    ensembles = EnsembleSessions(read)
    try:
        assert "ledgers" in (ensembles.at(started.zookeeper, secret).children("/") or ())
    finally:
        ensembles.stop()
    assert set(shown) == {secret}
