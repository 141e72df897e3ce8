"""A checkpoint of all tables, the largest too, is made while a writer and a reader go on. It holds what SQL has of the tables that rest,
and of the writer's table what the writer's history says of that moment, payloads included."""

from __future__ import annotations

import json

import pytest
from conftest import Stack, goes_in_the_end, say
from own_tablespace import API, SMALL

from herdkeeper_e2e import built_images
from herdkeeper_e2e.history import wrong_between
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.nycflights import TABLES, data_directory, read_rows
from herdkeeper_e2e.tools_pod import ToolsPod
from herdkeeper_e2e.volume_claim import volume_claim
from herdkeeper_e2e.writer_process import WriterProcess

NAME, CLAIM = "beside-a-writer", "beside-a-writer-files"
WRITTEN, MARKS, ROWS = "written_beside", ("before the checkpoint", "after the checkpoint"), 50


def test_a_checkpoint_that_is_made_beside_a_writer_has_each_row_and_payload_of_its_moment(
    request: pytest.FixtureRequest, stack: Stack
) -> None:
    kubectl = stack.kubectl
    stack.tools.follow("loader", "--data", "/work/data", "--tables", "flights", say=say)
    goes_in_the_end(request, kubectl, "persistentvolumeclaim", CLAIM, "--wait=false")
    goes_in_the_end(request, kubectl, "checkpoint", NAME)
    writer = WriterProcess(stack.tools, WRITTEN)
    writer.acknowledges(ROWS)
    beside = writer.read_meanwhile()
    beside.acknowledges(1)

    writer.marked(MARKS[0])
    spec = {"tablespaceRef": {"name": "flights"}, "destination": {"persistentVolumeClaim": {"claimName": CLAIM}}, "job": SMALL}
    documents = [volume_claim(CLAIM), {"apiVersion": API, "kind": "Checkpoint", "metadata": {"name": NAME}, "spec": spec}]
    kubectl.apply_all(documents)
    status = wait_until_succeeded(kubectl, "checkpoint", NAME, say)["status"]
    writer.marked(MARKS[1])
    writer.acknowledges(ROWS)
    beside.acknowledges(1)
    assert beside.violation() is None
    writer.stop()
    assert writer.read()["violation"] is None
    say(f"{status['rows']} rows in {status['durationSeconds']} s; {beside.acknowledged} reads of all rows beside the writer")
    assert status["verified"].startswith("compared with follower")

    reader = ToolsPod(kubectl, f"{NAME}-reader", stack.tools.database, image=built_images.SPARK, claim=CLAIM)
    goes_in_the_end(request, kubectl, "pod", reader.name)
    reader.start()
    compared = json.loads(reader.run("compare"))
    written = json.loads(reader.run("checkpoint_rows", "--table", WRITTEN))
    in_files = {table.name: sum(1 for _ in read_rows(table, data_directory())) for table in TABLES}
    assert {name: (found["rows_in_sql"], found["rows_in_checkpoint"], found["differing"]) for name, found in compared.items()} == {
        name: (rows, rows, []) for name, rows in in_files.items()
    }
    assert written["altered"] == []
    assert wrong_between(writer.events(), MARKS, written["rows"]) is None
