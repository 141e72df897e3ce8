"""Real servers with the operator's certificates for a stack, under the host names in them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, ZooKeeperCluster
from herdkeeper.bookkeeper.state.certificate_holders import certificate_holders
from herdkeeper.certificates.authority import read_authority
from herdkeeper.certificates.holders import due_changes
from herdkeeper.certificates.issue import Validity, fresh_key
from herdkeeper.clients.zookeeper import Ensembles
from herdkeeper.herddb.state.certificate_holder import certificate_holder
from herdkeeper.planning.identities import secret_of
from herdkeeper.shared.names import IDENTITY_VARIABLE, ObjectKey
from herdkeeper.shared.objects import Objects
from herdkeeper.sql.connection import Address, Connection
from herdkeeper.zookeeper.observe_security import observe_security
from herdkeeper_e2e.mutual_tls import ROLE, MountedSecret, StackSecrets
from herdkeeper_e2e.server_processes import CREDENTIALS, LEDGERS_ROOT, Servers, servers
from herdkeeper_jobs.bookkeeper.connection import BookieConnection, EntryRun
from herdkeeper_jobs.bookkeeper.metadata import open_catalog

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]
META = {"namespace": "demo", "uid": "a-uid"}
ZOOKEEPER = ZooKeeperCluster.model_validate({"metadata": {**META, "name": "zk"}, "spec": {"security": {"mode": "TLS"}}})
BOOKIES = BookKeeperCluster.model_validate({"metadata": {**META, "name": ROLE}, "spec": {"zooKeeperRef": {"name": "zk"}}})
NODES = HerdDBCluster.model_validate({"metadata": {**META, "name": "db"}, "spec": {"bookKeeperRef": {"name": ROLE}}})
MEMBER, BOOKIE = ZOOKEEPER.names.host(0), BOOKIES.names.host(0)
ANSWER_SECONDS, PATIENCE_SECONDS = 10.0, 60.0


def issued() -> dict[str, dict[str, str]]:
    """The operator's Secrets of a new stack, by name."""
    fresh = observe_security(ZOOKEEPER, Objects({})).fresh_authorities
    stored = {("Secret", name): secret_of({"name": name}, data) for name, data in fresh.items()}
    members = observe_security(ZOOKEEPER, Objects(stored)).identities.changes
    authority = read_authority("zk", fresh[ZOOKEEPER.names.authority_secret])
    holders = (*certificate_holders(BOOKIES), certificate_holder(NODES))
    others = due_changes(holders, {}, authority, fresh_key, Validity(datetime.now(UTC), timedelta(days=1)))
    return {change.holder.secret: dict(change.data) for change in (*members, *others)}


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Servers, Address]]:
    """A member, a bookie and a SQL node. The cluster's names resolve to this machine, for JVMs and for this process."""
    asked = socket.getaddrinfo

    def here(host: Any, *arguments: Any, **named: Any) -> Any:
        return asked("127.0.0.1" if host in (MEMBER, BOOKIE) else host, *arguments, **named)

    with servers() as made, pytest.MonkeyPatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", here)
        hosts, names = made.folder / "hosts", (MEMBER, BOOKIE, "localhost", socket.gethostname())
        hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in names))
        made.java_options = (f"-Djdk.net.hosts.file={hosts}",)
        made.zookeeper_host, made.bookie_host = MEMBER, BOOKIE
        mounted = {}
        for name, data in issued().items():
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

    ensembles = Ensembles(read)
    try:
        assert "ledgers" in (ensembles.at(started.zookeeper, secret).children("/") or ())
    finally:
        ensembles.stop()
    assert set(shown) == {secret}
