"""A restore into another BookKeeper cluster, into a tablespace of the same uuid; both clusters continue at one destination.

The test writes the uuid into HerdDB's record, since HerdDB draws it at random: only the INSTANCEID may distinguish the two logs.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from real_database import Database, running_database
from restored_twin import Twins, checkpoint_of, content, require_same, restore
from waits import wait_until

from herdkeeper.codecs.herddb.tablespace import TablespaceRecord, encode_tablespace, tablespace_path
from herdkeeper.protocol.job_summary import CheckpointSummary
from herdkeeper.sql.connection import Connection
from herdkeeper_e2e.server_processes import CREDENTIALS, NODE_ID, TOKEN, leads
from herdkeeper_jobs.checkpoint.origin import Mode
from herdkeeper_jobs.checkpoint.reading import open_manifest
from herdkeeper_jobs.checkpoint.run import CheckpointRequest, run_checkpoint
from herdkeeper_jobs.checkpoint.target import TargetRequest
from herdkeeper_jobs.manifests.manifest import manifests

_LEADS_SECONDS = 180
_NAME = "moved"
_TABLES = (
    "CREATE TABLE counted (id long primary key auto_increment, n string, place int)",
    "CREATE UNIQUE INDEX by_n ON counted (n)",
    "CREATE INDEX by_place ON counted (place)",
    *(f"INSERT INTO counted (n, place) VALUES ('row {number}', {number % 3})" for number in range(20)),
    "DELETE FROM counted WHERE id > 18",
)
_ROWS = 18


@contextmanager
def tablespace_with_uuid(database: Database, name: str, uuid: str) -> Iterator[Connection]:
    """An empty tablespace with a given uuid, dropped after the block."""
    record = TablespaceRecord(uuid, name, NODE_ID, (NODE_ID,), 1, 30_000)
    with database.servers.client() as client:
        client.create(tablespace_path(database.herd_root, name), encode_tablespace(record))
    wake = urllib.request.Request(
        f"{database.servers.node_http}/activator/wake", method="POST", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    urllib.request.urlopen(wake, timeout=30).close()
    wait_until(f"a leader of the tablespace {name}", lambda: leads(database.address, name), _LEADS_SECONDS)
    with database.connect(name) as connection:
        yield connection
    with Connection.connect(database.address, CREDENTIALS, timeout_seconds=60) as connection:
        connection.execute(f"DROP TABLESPACE '{name}'")


def gone_on(spark: SparkSession, database: Database, place: Path, run_id: str) -> CheckpointSummary:
    """A checkpoint of the tablespace, from a base if there is one."""
    database.close_ledger(_NAME)
    with database.catalog() as catalog:
        request = CheckpointRequest(database.herd_root, _NAME, TargetRequest(), place, run_id, Mode.INCREMENTAL)
        return run_checkpoint(lambda: spark, catalog, request)


def files_below(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_restore_into_another_cluster_is_the_same_and_its_checkpoints_neither_rest_on_the_first_nor_touch_it(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    with running_database() as old, old.tablespace(_NAME) as name, old.connect(name) as original:
        for statement in _TABLES:
            original.execute(statement)
        first = checkpoint_of(spark, old, name, tmp_path)
        uuid, instance = first.parents[1].name, first.parents[2].name
        before = files_below(first.parents[1])
        with old.catalog() as theirs, database.catalog() as ours:
            other = ours.instance_id
            assert instance == theirs.instance_id != other

        with tablespace_with_uuid(database, name, uuid) as restored:
            restore(spark, database, first, name)
            require_same(content(restored), content(original))
            twins = Twins(original, restored)
            assert twins.both("INSERT INTO counted (n, place) VALUES ('after', 0)") == 1
            assert twins.both("INSERT INTO counted (n, place) VALUES ('row 1', 0)") != 1, "the index is unique in either"
            assert len(twins.both_return("SELECT * FROM counted ORDER BY id")) == _ROWS + 1, "ids go on alike"
            require_same(content(restored), content(original))

            # The first checkpoint's position is earlier, so only the INSTANCEID keeps it from being a base.
            while database.close_ledger(name) <= open_manifest(first).manifest.lsn.ledger_id:
                restored.execute("UPDATE counted SET place = 1 WHERE id = 1")
            second = gone_on(spark, database, tmp_path, "second")
            assert second.manifest.split("/")[:2] == [other, uuid]
            assert (second.base_ledger_id, second.base_entry_id) == (None, None)
            restored.execute("INSERT INTO counted (n, place) VALUES ('since', 2)")
            third = gone_on(spark, database, tmp_path, "third")
            assert (third.base_ledger_id, third.base_entry_id) == (second.ledger_id, second.entry_id), "its own cluster's is one"

            assert files_below(first.parents[1]) == before, "the old cluster's files are as they were"
            assert sorted(manifests(tmp_path)) == sorted([first, tmp_path / second.manifest, tmp_path / third.manifest])
            rows = [open_manifest(path).load("counted").num_rows for path in (first, tmp_path / second.manifest, tmp_path / third.manifest)]
            assert rows == [_ROWS, _ROWS + 1, _ROWS + 2]
