"""A database of real servers on this machine, and what tests need of it besides SQL. No containers."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from herdkeeper.sql.connection import Address, Connection
from herdkeeper_e2e.server_processes import CREDENTIALS, HERD_ROOT, LEDGERS_ROOT, NODE, NODE_ID, TOKEN, Servers, leads, servers
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, open_catalog

_ORDER_SECONDS = 30
_SETTINGS = {
    # Locked rows are refused soon, not after half an hour.
    "server.tablemanager.writelocktimeout": 1,
    "server.tablemanager.readlocktimeout": 1,
    "server.bookkeeper.max.idle.time": 2000,
}


@dataclass(frozen=True)
class Database:
    """One SQL node with its log on one bookie."""

    servers: Servers
    address: Address

    @property
    def jdbc_url(self) -> str:
        """Through ZooKeeper, as `url` of a connection Secret."""
        return f"jdbc:herddb:zookeeper:{self.servers.zookeeper}{self.herd_root}"

    @property
    def jdbc_leader_url(self) -> str:
        """To the leader, as `leaderUrl`."""
        return f"jdbc:herddb:server:{self.address}"

    def connect(self, tablespace: str) -> Connection:
        """A connection to the leader."""
        return Connection.connect(self.address, CREDENTIALS, tablespace, timeout_seconds=60)

    @contextmanager
    def tablespace(self, name: str) -> Iterator[str]:
        """An empty tablespace, dropped after the block."""
        with Connection.connect(self.address, CREDENTIALS, timeout_seconds=60) as connection:
            connection.execute(f"CREATE TABLESPACE '{name}','leader:{NODE_ID}','replica:{NODE_ID}','wait:60000'")
        yield name
        with Connection.connect(self.address, CREDENTIALS, timeout_seconds=60) as connection:
            connection.execute(f"DROP TABLESPACE '{name}'")

    def close_ledger(self, tablespace: str) -> int:
        """Makes the leader close its ledger and continue in the next; returns the closed one's id."""
        request = urllib.request.Request(
            f"{self.servers.node_http}/tablespaces/{tablespace}/close-ledger", method="POST", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        with urllib.request.urlopen(request, timeout=_ORDER_SECONDS) as answer:
            return int(json.load(answer)["closed"])

    def kill_leader(self, tablespace: str) -> None:
        """A power cut: the node is killed, restarts, and leads again once it has rolled back open transactions."""
        self.servers.kill(NODE)
        self.servers.start_again(NODE, lambda: leads(self.address, tablespace))

    @contextmanager
    def catalog(self) -> Iterator[LedgerCatalog]:
        """The ledgers' metadata."""
        with open_catalog(self.servers.zookeeper, LEDGERS_ROOT) as catalog:
            yield catalog

    @property
    def herd_root(self) -> str:
        """HerdDB's root in ZooKeeper."""
        return HERD_ROOT


@contextmanager
def running_database(more: Mapping[str, int] = MappingProxyType({})) -> Iterator[Database]:
    """All servers, for the block; `more`: settings of the SQL node."""
    with servers() as running:
        running.start_zookeeper()
        running.start_bookies(1)
        yield Database(running, running.start_sql_node({**_SETTINGS, **more}))
