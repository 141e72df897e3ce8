"""A checkpoint of a real log without its beginning and without a base: it starts from a real follower's tables.

One leader and two followers. The story has all that affects a row's stored form: added and dropped columns, an auto-increment key, a
truncated table. Some transactions are committed, one is open.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from waits import wait_until

from herdkeeper.codecs.herddb.table import decode_table
from herdkeeper.sql.connection import Connection
from herdkeeper_e2e.server_processes import CREDENTIALS, HERD_ROOT, LEDGERS_ROOT, NODE_ID, TOKEN, Servers, servers
from herdkeeper_jobs.bookkeeper.metadata import open_catalog
from herdkeeper_jobs.checkpoint.follower_base import FollowerSource
from herdkeeper_jobs.checkpoint.reading import open_manifest
from herdkeeper_jobs.checkpoint.run import CheckpointRequest, run_checkpoint
from herdkeeper_jobs.checkpoint.target import TargetRequest
from herdkeeper_jobs.errors import CheckpointRefused
from herdkeeper_jobs.log_source import open_log
from herdkeeper_jobs.restore.rows import sql_rows

_LIMIT_SECONDS = 180
_RETENTION_MILLIS = 10_000
_SETTINGS = {
    "server.bookkeeper.ledgers.retention.period": _RETENTION_MILLIS,
    "server.checkpoint.period": _RETENTION_MILLIS // 2,
    "server.bookkeeper.max.idle.time": 1000,
}
_STORY = (
    "CREATE TABLE counted (id long primary key auto_increment, n string, gone int)",
    "CREATE TABLE pair (k int, j int, n string, primary key (k, j))",
    "CREATE TABLE emptied (k int primary key)",
    "CREATE UNIQUE INDEX by_n ON counted(n)",
    *(f"INSERT INTO counted(n,gone) VALUES('row{number}',{number})" for number in range(30)),
    *(f"INSERT INTO pair(k,j,n) VALUES({number},{-number},'row{number}')" for number in range(30)),
    *(f"INSERT INTO emptied(k) VALUES({number})" for number in range(5)),
    "ALTER TABLE counted DROP COLUMN gone",
    "ALTER TABLE counted ADD COLUMN later string",
    "UPDATE counted SET later='set' WHERE id=3",
    "DELETE FROM counted WHERE id=30",
    "DELETE FROM emptied",
)


@dataclass(frozen=True)
class Database:
    """The leader's connection to the tablespace, and the HTTP ports, host:port, the leader's first."""

    servers: Servers
    connection: Connection
    http: tuple[str, ...]

    def order(self, node: int, path: str) -> Any:
        request = urllib.request.Request(f"http://{self.http[node]}{path}", method="POST", headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def roles(self) -> list[str]:
        return [item["role"] for http in self.http for item in _tablespaces(http) if item["name"] == "story"]


def _tablespaces(http: str) -> Any:
    """A node's report on its tablespaces; empty while it can't read the metadata."""
    try:
        with urllib.request.urlopen(f"http://{http}/tablespaces", timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code != 503:
            raise
        return []


@contextmanager
def running() -> Iterator[Database]:
    with servers() as started:
        started.start_zookeeper()
        started.start_bookies(1)
        address = started.start_sql_node(_SETTINGS)
        others = [started.start_another_sql_node(number, _SETTINGS) for number in (1, 2)]
        with Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection:
            replicas = f"'replica:{NODE_ID},node-1,node-2','expectedreplicacount:1'"
            connection.execute(f"CREATE TABLESPACE 'story','leader:{NODE_ID}',{replicas},'wait:60000'")
        http = tuple(url.removeprefix("http://") for url in (started.node_http, *others))
        with Connection.connect(address, CREDENTIALS, "story", timeout_seconds=60) as connection:
            database = Database(started, connection, http)
            wait_until("one leads and two follow", lambda: database.roles() == ["leader", "follower", "follower"], _LIMIT_SECONDS)
            yield database


def counted(rows: Any) -> Counter[str]:
    return Counter(repr(list(row)) for row in rows)


def test_a_log_without_its_beginning_is_checkpointed_from_a_real_follower(spark: SparkSession, tmp_path: Path) -> None:
    assert "JAVA_HOME" in os.environ, "run this through e2e/bootstrap/run.sh"
    with running() as database, open_catalog(database.servers.zookeeper, LEDGERS_ROOT) as catalog:
        for statement in _STORY:
            database.connection.execute(statement)
        first = database.order(0, "/tablespaces/story/close-ledger")["closed"]
        database.connection.execute("INSERT INTO counted(n,later) VALUES('in the second ledger','x')")
        log = open_log(catalog, HERD_ROOT, "story")

        def is_dropped() -> bool:
            for node in (1, 2):  # what a follower's disk needs is kept
                database.order(node, "/tablespaces/story/checkpoint")
            left = log.first_left()
            return left is not None and left.ledger_id > first

        wait_until("the first ledger is dropped", is_dropped, _LIMIT_SECONDS)
        source = FollowerSource(database.http[1], TOKEN, database.http[2])
        asked = CheckpointRequest(HERD_ROOT, "story", TargetRequest(leader_http=database.http[0]), tmp_path, "run-1")
        with pytest.raises(CheckpointRefused, match=r"Raise spec.replicas .* begins with ledger"):
            run_checkpoint(lambda: spark, catalog, asked)

        with database.connection.transaction() as transaction:
            transaction.execute("INSERT INTO counted(n) VALUES('of a transaction')")
        summary = run_checkpoint(lambda: spark, catalog, replace(asked, follower=source))
        assert summary.base_follower == database.http[1]
        leader_counted = f"rows of each table counted at the leader {database.http[0]}"
        assert summary.verified == f"compared with follower {database.http[2]}; {leader_counted}"
        made = open_manifest(tmp_path / summary.manifest)
        tables = {table.name: table for table in made.manifest.tables}
        assert sorted(tables) == ["counted", "emptied", "pair"]
        assert tables["counted"].highest_auto_increment == 32
        assert [(index.name, index.unique) for index in made.manifest.indexes] == [("by_n", True)]
        for name, table in tables.items():
            definition = decode_table(bytes.fromhex(table.definition))
            loaded = [[row[column.name] for column in definition.columns] for row in made.load(name).to_pylist()]
            assert counted(loaded) == counted(sql_rows(definition, database.connection.stream(f"SELECT * FROM {name}", moment=int))), name

        database.connection.execute("INSERT INTO pair(k,j,n) VALUES(1000,1,'behind it')")
        again = CheckpointRequest(HERD_ROOT, "story", TargetRequest(None, database.http[0], database.http[1], TOKEN), tmp_path, "run-2")
        second = run_checkpoint(lambda: spark, catalog, again)
        assert (second.base_ledger_id, second.base_entry_id) == (summary.ledger_id, summary.entry_id)
        assert second.comparison is not None
        assert second.comparison.different_tables == (), "the follower whose tables it was equals what was made of them"
