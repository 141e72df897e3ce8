"""A database of real servers on this machine, and what a test asks of it besides SQL. No containers."""

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
    # What another transaction has locked is refused soon, not after half an hour.
    "server.tablemanager.writelocktimeout": 1,
    "server.tablemanager.readlocktimeout": 1,
    "server.bookkeeper.max.idle.time": 2000,
}


@dataclass(frozen=True)
class Database:
    """One SQL node, whose log is on one bookie."""

    servers: Servers
    address: Address

    def connect(self, tablespace: str) -> Connection:
        """A connection to the leader."""
        return Connection.connect(self.address, CREDENTIALS, tablespace, timeout_seconds=60)

    @contextmanager
    def tablespace(self, name: str) -> Iterator[str]:
        """An empty tablespace, which goes with the block."""
        with Connection.connect(self.address, CREDENTIALS, timeout_seconds=60) as connection:
            connection.execute(f"CREATE TABLESPACE '{name}','leader:{NODE_ID}','replica:{NODE_ID}','wait:60000'")
        yield name
        with Connection.connect(self.address, CREDENTIALS, timeout_seconds=60) as connection:
            connection.execute(f"DROP TABLESPACE '{name}'")

    def close_ledger(self, tablespace: str) -> int:
        """The leader closes the ledger that it writes, and goes on in the next; returns the closed one's id."""
        request = urllib.request.Request(
            f"{self.servers.node_http}/tablespaces/{tablespace}/close-ledger", method="POST", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        with urllib.request.urlopen(request, timeout=_ORDER_SECONDS) as answer:
            return int(json.load(answer)["closed"])

    def kill_leader(self, tablespace: str) -> None:
        """Power cut: the node ends without a word, comes back, and leads again as soon as it has rolled back what was open."""
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
    """All servers, which end with the block; `more` are settings of the SQL node."""
    with servers() as running:
        running.start_zookeeper()
        running.start_bookies(1)
        yield Database(running, running.start_sql_node({**_SETTINGS, **more}))
