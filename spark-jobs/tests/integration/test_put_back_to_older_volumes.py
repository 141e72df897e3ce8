"""All servers are put back to older copies of their files, as from snapshots of volumes, and write the lost LSNs anew."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from real_database import Database, running_database
from test_changes_on_real_bookies import options

from herdkeeper.protocol.job_summary import CheckpointSummary
from herdkeeper_e2e.server_processes import NODE, leads
from herdkeeper_jobs.checkpoint.origin import Mode
from herdkeeper_jobs.checkpoint.reading import open_manifest
from herdkeeper_jobs.checkpoint.run import CheckpointRequest, run_checkpoint
from herdkeeper_jobs.checkpoint.target import TargetRequest
from herdkeeper_jobs.datasource import BookKeeperDataSource
from herdkeeper_jobs.datasource.schema import CHANGES
from herdkeeper_jobs.datasource.stream import ChangeStreamReader
from herdkeeper_jobs.errors import CheckpointRefused

_NAME = "back"
_SERVERS = ("zookeeper", "bookie-0", NODE)


def at_rest(database: Database) -> None:
    """Ends all servers at once."""
    for server in reversed(_SERVERS):
        database.servers.kill(server)


def begin_again(database: Database) -> None:
    """Starts them with the files that are there, and waits for the tablespace's leader. A bookie ends that gets no session in 10 s, so it
    begins once the member serves."""
    servers = database.servers
    servers.run("zookeeper", servers.commands["zookeeper"])
    servers.restart_bookie("bookie-0")
    servers.start_again(NODE, lambda: leads(database.address, _NAME))


def copy_volumes(database: Database, copies: Path) -> None:
    at_rest(database)
    shutil.copytree(database.servers.folder, copies)
    begin_again(database)


def put_back(database: Database, copies: Path) -> None:
    at_rest(database)
    shutil.rmtree(database.servers.folder)
    shutil.copytree(copies, database.servers.folder)
    begin_again(database)


def insert(database: Database, notes: list[str]) -> None:
    with database.connect(_NAME) as connection:
        for note in notes:
            connection.execute("INSERT INTO t (note) VALUES (?)", (note,))


def checkpoint(spark: SparkSession, database: Database, place: Path, run_id: str) -> CheckpointSummary:
    database.close_ledger(_NAME)
    with database.catalog() as catalog:
        request = CheckpointRequest(database.herd_root, _NAME, TargetRequest(), place, run_id, Mode.INCREMENTAL)
        return run_checkpoint(lambda: spark, catalog, request)


def test_a_checkpoint_of_the_lost_time_is_no_base_and_the_one_before_it_is(spark: SparkSession, tmp_path: Path) -> None:
    place, copies = tmp_path / "checkpoints", tmp_path / "copies"
    place.mkdir()
    with running_database() as database, database.tablespace(_NAME):
        with database.connect(_NAME) as connection:
            connection.execute("CREATE TABLE t (id long primary key auto_increment, note string)")
        insert(database, ["before"])
        before = checkpoint(spark, database, place, "before")
        copy_volumes(database, copies)
        insert(database, ["lost"] * 3)
        lost = checkpoint(spark, database, place, "lost")
        assert (lost.base_ledger_id, lost.base_entry_id) == (before.ledger_id, before.entry_id), "nothing was put back yet"

        put_back(database, copies)
        insert(database, ["anew"] * 9)
        after = checkpoint(spark, database, place, "after")
        assert f"not from {Path(lost.manifest).stem}: the log has another entry at its LSN" in after.message
        assert (after.base_ledger_id, after.base_entry_id) == (before.ledger_id, before.entry_id)
        notes = open_manifest(place / after.manifest).load("t")["note"].to_pylist()
        assert sorted(notes) == ["anew"] * 9 + ["before"]


def read_all(database: Database, offset: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """The operations behind an offset, and the offset behind them, as a query reads that starts there."""
    stream = BookKeeperDataSource(options(database, _NAME)).simpleStreamReader(CHANGES)
    assert isinstance(stream, ChangeStreamReader)
    operations: list[str] = []
    while True:
        changes, end = stream.read(offset)
        if end == offset:
            return operations, end
        operations += [name for batch in changes for name in batch.column("operation").to_pylist()]
        offset = end


def test_a_stream_of_the_lost_time_does_not_go_on_in_the_log_that_is_written_anew(tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    with running_database() as database, database.tablespace(_NAME):
        with database.connect(_NAME) as connection:
            connection.execute("CREATE TABLE t (id long primary key auto_increment, note string)")
        given, before = read_all(database, {})
        copy_volumes(database, copies)
        insert(database, ["lost"] * 3)
        lost, end = read_all(database, before)
        assert "INSERT" in lost

        put_back(database, copies)
        insert(database, ["anew"] * 9)
        with pytest.raises(CheckpointRefused, match=f"has read up to {end['position']}, and the log has another entry there now"):
            read_all(database, end)
        database.close_ledger(_NAME)
        anew, _ = read_all(database, before)
        assert given + anew == ["CREATE_TABLE", *["INSERT"] * 9], "from before the copies it goes on"
