"""A database whose tablespace is led and followed: where the stories of its leader and of its copies begin."""

from __future__ import annotations

import base64

from stage import ZOOKEEPER_ADDRESS, Stage

from herdkeeper.codecs.herddb.tablespace import TablespaceRecord, encode_tablespace, tablespace_path
from herdkeeper.shared.names import HerdDBNames, ObjectKey

HERDDB, TABLESPACE = "HerdDBCluster", "Tablespace"
INSTANCE = "an-instance"
NODES = ("db-herddb-0", "db-herddb-1")
RECORD = TablespaceRecord("a-uuid", "flights", NODES[0], NODES, 1, 30_000)


def serving_database(made: Stage) -> Stage:
    """A HerdDBCluster db of two serving nodes, and a Tablespace flights that the first one leads."""
    made.declare("BookKeeperCluster", "bk", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": 3})
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "serves", "observedGeneration": 1}
    log = {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "ledgersRoot": f"/{made.namespace}/bk/ledgers", "instanceId": INSTANCE}
    conditions = [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    made.set_status("BookKeeperCluster", "bk", {**log, "readyBookies": 3, "conditions": conditions})
    made.declare(HERDDB, "db", {"bookKeeperRef": {"name": "bk"}, "replicas": 2})
    made.settle(HERDDB, "db")
    for number in range(2):
        made.serve("db-herddb", number)
    made.ensemble.put(record_path(made), encode_tablespace(RECORD))
    made.nodes.herddb_holds(named(made), "flights", "a-uuid", ("leader", "follower"))
    made.nodes.tokens.add(base64.b64decode(made.found("Secret", "db-herddb-credentials")["data"]["token"]).decode())
    made.declare(TABLESPACE, "flights", {"herdDBRef": {"name": "db"}})
    made.settle(HERDDB, "db")
    return made


def named(stage: Stage) -> HerdDBNames:
    """The names of the database's objects."""
    return HerdDBNames(ObjectKey(stage.namespace, "db"))


def record_path(stage: Stage) -> str:
    """Where the tablespace's record is."""
    return tablespace_path(named(stage).herd_root, "flights")
