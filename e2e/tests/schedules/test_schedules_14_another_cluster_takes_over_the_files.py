"""A second database, with its own root in ZooKeeper and its own log, gets the tables of the first from a checkpoint's files alone: its
resource is gone by then. Both have each row of the checkpoint, and what is written in one of them the other does not see."""

from __future__ import annotations

import json

import pytest
from conftest import TABLES, Stack, goes_in_the_end, say
from own_tablespace import API, SMALL

from herdkeeper_e2e import built_images
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.tablespaces import VERIFIED, wait_until_ready
from herdkeeper_e2e.tools_pod import Database, ToolsPod
from herdkeeper_e2e.volume_claim import volume_claim

SECOND, NAME, CLAIM, CHECKPOINT = "elsewhere", "flights-elsewhere", "taken-along", "taken-along"
PLACE = {"persistentVolumeClaim": {"claimName": CLAIM}}
FLIGHTS = "flights"
"""Of the tablespace, in the SQL of either database."""
NEW_AIRLINE = "INSERT INTO `airlines` (`carrier`, `name`) VALUES ('XX', 'Only Elsewhere')"
LOOK_FOR_IT = "SELECT name FROM airlines WHERE carrier = 'XX'"


def declared(kind: str, name: str, **spec: object) -> Object:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def files(request: pytest.FixtureRequest, stack: Stack) -> Object:
    """What was known of a checkpoint of the first database whose resource is gone, and whose files stay: its status."""
    goes_in_the_end(request, stack.kubectl, "persistentvolumeclaim", CLAIM, "--wait=false")
    goes_in_the_end(request, stack.kubectl, "checkpoint", CHECKPOINT)
    checkpoint = declared("Checkpoint", CHECKPOINT, tablespaceRef={"name": FLIGHTS}, destination=PLACE, job=SMALL)
    stack.kubectl.apply_all([volume_claim(CLAIM), checkpoint])
    status: Object = wait_until_succeeded(stack.kubectl, "checkpoint", CHECKPOINT, say)["status"]
    say(f"{status['message']}; {status['verified']}")
    stack.kubectl.run("delete", "checkpoint", CHECKPOINT)
    return status


@pytest.fixture(scope="module")
def restore(request: pytest.FixtureRequest, stack: Stack, files: Object) -> Object:
    """status.restore of the tablespace of the second database that was made of them."""
    first = stack.sql.get("herddbcluster", "db")["spec"]
    second = {field: first[field] for field in ("bookKeeperRef", "ledgers", "storage", "resources")}
    bootstrap = {"files": {**PLACE, "manifest": files["manifest"]}, "job": SMALL}
    goes_in_the_end(request, stack.kubectl, "herddbcluster", SECOND)
    goes_in_the_end(request, stack.kubectl, "tablespace", NAME)
    database = declared("HerdDBCluster", SECOND, **second, replicas=1, deletionPolicy="Delete")
    spec = {"herdDBRef": {"name": SECOND}, "tablespaceName": FLIGHTS, "replicas": 1, "deletionPolicy": "Delete", "bootstrap": bootstrap}
    stack.kubectl.apply_all([database, declared("Tablespace", NAME, **spec)])
    found: Object = wait_until_ready(stack.kubectl, NAME, say)["status"]["restore"]
    say(f"{found['rows']} rows in {found['durationSeconds']} s: {found['verified']}")
    return found


def reader(request: pytest.FixtureRequest, stack: Stack, database: Database) -> ToolsPod:
    """A pod that speaks SQL to the tablespace of one of the two, and mounts the volume."""
    name = f"reader-of{database.herd_root.replace('/', '-')}"
    goes_in_the_end(request, stack.kubectl, "pod", name)
    tools = ToolsPod(stack.kubectl, name, database, image=built_images.SPARK, claim=CLAIM)
    tools.start()
    return tools


def compared(tools: ToolsPod) -> dict[str, tuple[int, int, list[str]]]:
    """Per table its rows in SQL and in the checkpoint, and the first keys that differ: row by row, by a program without digests."""
    found = json.loads(tools.run("compare", "--tables", TABLES))
    return {name: (each["rows_in_sql"], each["rows_in_checkpoint"], each["differing"]) for name, each in found.items()}


def test_another_database_has_each_row_of_a_checkpoint_of_which_only_files_are_left(
    request: pytest.FixtureRequest, stack: Stack, files: Object, restore: Object
) -> None:
    assert stack.kubectl.get("checkpoint", CHECKPOINT) is None
    assert (restore["phase"], restore["rows"], restore["lsn"]) == ("Succeeded", files["rows"], files["lsn"])
    assert restore["manifest"] == files["manifest"]
    assert restore["verified"].endswith(VERIFIED)

    here, there = Database.of(stack.kubectl, "db", "bk", FLIGHTS), Database.of(stack.kubectl, SECOND, "bk", NAME)
    assert (here.tablespace, there.tablespace) == (FLIGHTS, FLIGHTS)
    assert here.herd_root != there.herd_root
    ours, theirs = reader(request, stack, here), reader(request, stack, there)
    rows = {table["name"]: table["rows"] for table in files["tables"]}
    whole: dict[str, tuple[int, int, list[str]]] = {name: (rows[name], rows[name], []) for name in TABLES.split(",")}
    assert compared(theirs) == whole
    assert compared(ours) == whole, "nobody writes in the first one meanwhile"

    theirs.run("query", NEW_AIRLINE)
    assert theirs.query(LOOK_FOR_IT) == [{"name": "Only Elsewhere"}]
    assert ours.query(LOOK_FOR_IT) == []
    stack.wait_until_ready()
