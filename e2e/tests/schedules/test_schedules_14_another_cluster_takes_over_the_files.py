"""A second database, with its own root in ZooKeeper and its own log, gets the tables of the first from a checkpoint's files alone: its
resource is gone by then. Both have each row of the checkpoint, and what is written in one of them the other does not see."""

from __future__ import annotations

import pytest
from conftest import Stack, goes_in_the_end, say
from own_tablespace import tablespace
from runs import SMALL, claimed, compared, loaded_rows, made, own_volume, the_same

from herdkeeper_e2e import built_images
from herdkeeper_e2e.kubectl import Object, resource
from herdkeeper_e2e.tablespaces import VERIFIED, wait_until_ready
from herdkeeper_e2e.tools_pod import Database, ToolsPod

SECOND, NAME, CLAIM, CHECKPOINT = "elsewhere", "flights-elsewhere", "taken-along", "taken-along"
FLIGHTS = "flights"
"""Of the tablespace, in the SQL of either database."""
NEW_AIRLINE = "INSERT INTO `airlines` (`carrier`, `name`) VALUES ('XX', 'Only Elsewhere')"
LOOK_FOR_IT = "SELECT name FROM airlines WHERE carrier = 'XX'"


@pytest.fixture(scope="module")
def files(request: pytest.FixtureRequest, stack: Stack) -> Object:
    """What was known of a checkpoint of the first database whose resource is gone, and whose files stay: its status."""
    place = own_volume(request, stack.kubectl, CLAIM)
    goes_in_the_end(request, stack.kubectl, "checkpoint", CHECKPOINT)
    status = made(stack.kubectl, "Checkpoint", CHECKPOINT, tablespaceRef={"name": FLIGHTS}, destination=place, job=SMALL)
    stack.kubectl.run("delete", "checkpoint", CHECKPOINT)
    return status


@pytest.fixture(scope="module")
def restore(request: pytest.FixtureRequest, stack: Stack, files: Object) -> Object:
    """status.restore of the tablespace of the second database that was made of them."""
    first = stack.sql.get("herddbcluster", "db")["spec"]
    second = {field: first[field] for field in ("bookKeeperRef", "ledgers", "storage", "resources")}
    bootstrap = {"files": {**claimed(CLAIM), "manifest": files["manifest"]}, "job": SMALL}
    goes_in_the_end(request, stack.kubectl, "herddbcluster", SECOND)
    goes_in_the_end(request, stack.kubectl, "tablespace", NAME)
    database = resource("HerdDBCluster", SECOND, **second, replicas=1, deletionPolicy="Delete")
    there = tablespace(NAME, herdDBRef={"name": SECOND}, tablespaceName=FLIGHTS, replicas=1, bootstrap=bootstrap)
    stack.kubectl.apply_all([database, there])
    found: Object = wait_until_ready(stack.kubectl, NAME, say)["status"]["restore"]
    say(f"{found['rows']} rows in {found['durationSeconds']} s: {found['verified']}")
    return found


def reader(request: pytest.FixtureRequest, stack: Stack, database: Database) -> ToolsPod:
    """A pod that speaks SQL to the tablespace of one of the two, and mounts the volume."""
    name = f"reader-of{database.herd_root.replace('/', '-')}"
    goes_in_the_end(request, stack.kubectl, "pod", name)
    return ToolsPod(stack.kubectl, name, database, image=built_images.SPARK, claim=CLAIM).start()


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
    rows = loaded_rows(files)
    assert compared(theirs, rows) == the_same(rows)
    assert compared(ours, rows) == the_same(rows), "nobody writes in the first one meanwhile"

    theirs.run("query", NEW_AIRLINE)
    assert theirs.query(LOOK_FOR_IT) == [{"name": "Only Elsewhere"}]
    assert ours.query(LOOK_FOR_IT) == []
    stack.wait_until_ready()
