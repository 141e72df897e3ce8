"""A checkpoint of all tables, the largest too, is made while a writer and a reader go on. It holds what SQL has of the tables that rest,
and of the writer's table what the writer's history says of that moment, payloads included."""

from __future__ import annotations

import json

import pytest
from conftest import Stack, goes_in_the_end, say
from runs import SMALL, compared, made, own_volume, rows_in_files, the_same
from under_load import lost_nothing

from herdkeeper_e2e import built_images
from herdkeeper_e2e.history import wrong_between
from herdkeeper_e2e.nycflights import TABLES
from herdkeeper_e2e.tools_pod import ToolsPod
from herdkeeper_e2e.writer_process import WriterProcess

NAME, CLAIM = "beside-a-writer", "beside-a-writer-files"
WRITTEN, MARKS, ROWS = "written_beside", ("before the checkpoint", "after the checkpoint"), 50


def test_a_checkpoint_that_is_made_beside_a_writer_has_each_row_and_payload_of_its_moment(
    request: pytest.FixtureRequest, stack: Stack
) -> None:
    kubectl = stack.kubectl
    stack.tools.follow("loader", "--data", "/work/data", "--tables", "flights", say=say)
    place = own_volume(request, kubectl, CLAIM)
    goes_in_the_end(request, kubectl, "checkpoint", NAME)
    writer = WriterProcess(stack.tools, WRITTEN).acknowledges(ROWS)
    beside = writer.read_meanwhile()
    beside.acknowledges(1)

    writer.marked(MARKS[0])
    status = made(kubectl, "Checkpoint", NAME, tablespaceRef={"name": "flights"}, destination=place, job=SMALL)
    writer.marked(MARKS[1])
    writer.acknowledges(ROWS)
    beside.acknowledges(1)
    assert beside.violation() is None
    lost_nothing(writer)
    say(f"{status['rows']} rows; {beside.acknowledged} reads of all rows beside the writer")
    assert status["verified"].startswith("compared with follower")

    reader = ToolsPod(kubectl, f"{NAME}-reader", stack.tools.database, image=built_images.SPARK, claim=CLAIM)
    goes_in_the_end(request, kubectl, "pod", reader.name)
    reader.start()
    written = json.loads(reader.run("checkpoint_rows", "--table", WRITTEN))
    in_files = rows_in_files([table.name for table in TABLES])
    assert compared(reader, in_files) == the_same(in_files)
    assert written["altered"] == []
    assert wrong_between(writer.events(), MARKS, written["rows"]) is None
