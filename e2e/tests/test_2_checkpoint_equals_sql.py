"""A checkpoint by Spark holds exactly the rows that SQL has at its LSN."""

from __future__ import annotations

import json

from conftest import TABLES, Stack, say

from herdkeeper_e2e import built_images
from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.nycflights import TABLES as ALL_TABLES
from herdkeeper_e2e.nycflights import data_directory, read_rows
from herdkeeper_e2e.tools_pod import ToolsPod


def test_each_row_is_in_the_checkpoint_once_and_its_digest_is_the_follower_s_at_that_lsn(stack: Stack) -> None:
    kubectl = stack.kubectl
    kubectl.apply(REPOSITORY / "examples/checkpoint.yaml")
    checkpoint = wait_until_succeeded(kubectl, "checkpoint", "flights-1", say)
    status = checkpoint["status"]
    say(f"{status['rows']} rows, {status['bytes']} bytes in {status['durationSeconds']} s: {status['message']}")

    # the job compares each table's order-free digest with a follower that is held at the same LSN, and fails where they differ
    assert checkpoint["spec"]["verify"] == "Follower"
    assert status["verified"].startswith("compared with follower")
    assert status["openTransactions"] == 0

    reader = ToolsPod(kubectl, "checkpoint-reader", stack.tools.database, image=built_images.SPARK, claim="checkpoints")
    reader.start()
    compared = json.loads(reader.run("compare", "--tables", TABLES))
    kubectl.run("delete", "pod", reader.name)
    in_files = {table.name: sum(1 for _ in read_rows(table, data_directory())) for table in ALL_TABLES if table.name in TABLES.split(",")}
    assert {name: (found["rows_in_sql"], found["rows_in_checkpoint"], found["differing"]) for name, found in compared.items()} == {
        name: (rows, rows, []) for name, rows in in_files.items()
    }
    assert {table["name"]: table["rows"] for table in status["tables"]}.items() >= in_files.items()
