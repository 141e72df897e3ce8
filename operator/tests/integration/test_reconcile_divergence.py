"""A follower that a Checkpoint found different from the log, on the real API server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sql_database import HERDDB, INSTANCE, NODES, RECORD, TABLESPACE, named, record_path, serving_database
from stage import Stage, nothing_written

from herdkeeper.codecs.herddb.tablespace import decode_tablespace, encode_tablespace
from herdkeeper.engine.result import Outcome
from herdkeeper.protocol.verification import alone
from herdkeeper.shared.names import HERDDB_HTTP_PORT

CHECKPOINT = "Checkpoint"
MARK = f"set-aside.herdkeeper.io/{NODES[1]}"
SPEC = {"tablespaceRef": {"name": "flights"}, "destination": {"persistentVolumeClaim": {"claimName": "checkpoints"}}}


@pytest.fixture
def stage(stage: Stage) -> Stage:
    made = serving_database(stage)
    made.settle(TABLESPACE, "flights")
    return made


def compared(stage: Stage, name: str, entry: int, *different_tables: str) -> None:
    """A Checkpoint ended, and had compared the second node's copy."""
    stage.declare(CHECKPOINT, name, SPEC)
    comparison: dict[str, Any] = {"node": NODES[1], "tablespaceUuid": "a-uuid", "lsn": {"ledgerId": 7, "entryId": entry}}
    comparison |= {"result": "Different", "differentTables": list(different_tables)} if different_tables else {"result": "Equal"}
    phase = "Failed" if different_tables else "Succeeded"
    stage.set_status(CHECKPOINT, name, {"phase": phase, "completedAt": "2026-01-01T00:00:00Z", "comparison": comparison})


def set_aside(stage: Stage) -> list[str]:
    """The orders to move a copy aside that were done: node and path."""
    parts = (url.removeprefix("http://").partition("/") for url in stage.nodes.orders if "/set-aside" in url)
    return [f"{host.partition('.')[0]} /{path}" for host, _, path in parts]


def verdicts(stage: Stage) -> dict[str, str]:
    return {replica["node"]: replica["verdict"] for replica in stage.found(TABLESPACE, "flights")["status"]["replicas"]}


def test_what_a_checkpoint_found_out_is_the_replicas_verdict_also_when_the_checkpoint_is_gone(stage: Stage) -> None:
    assert stage.condition(TABLESPACE, "flights", "ReplicasVerified") == ("Unknown", "NotVerified")
    compared(stage, "first", 9)
    stage.settle(TABLESPACE, "flights")
    assert stage.condition(TABLESPACE, "flights", "ReplicasVerified") == ("True", "Verified")
    assert verdicts(stage) == {NODES[0]: "NotChecked", NODES[1]: "Equal"}
    stage.delete(CHECKPOINT, "first")
    with nothing_written(stage):
        stage.reconcile(TABLESPACE, "flights")

    compared(stage, "second", 12, "airports")
    stage.reconcile(TABLESPACE, "flights")
    assert verdicts(stage)[NODES[1]] == "Different"
    assert stage.condition(TABLESPACE, "flights", "ReplicasVerified") == ("False", "ReplicaDiffers")
    (told,) = [event["message"] for event in stage.events("flights") if event["type"] == "Warning"]
    assert told.startswith(f"{NODES[1]} had other rows than the log at LSN 7,12 (Checkpoint second) in airports")


def on_list(stage: Stage) -> tuple[str, ...]:
    found = stage.ensemble.read(record_path(stage))
    assert found is not None
    return decode_tablespace(found[0]).replicas


def test_a_follower_that_differs_is_taken_off_moved_aside_made_anew_and_found_equal(stage: Stage) -> None:
    compared(stage, "first", 12, "airports")
    stage.reconcile(TABLESPACE, "flights")
    assert on_list(stage) == NODES[:1]
    stage.reconcile(TABLESPACE, "flights")  # its node still runs the copy
    assert set_aside(stage) == []
    assert on_list(stage) == NODES[:1]

    stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", ("leader",))
    stage.nodes.documents[f"http://{named(stage).host(1)}:{HERDDB_HTTP_PORT}/tablespaces"] = []
    stage.reconcile(TABLESPACE, "flights")
    assert set_aside(stage) == [f"{NODES[1]} /tablespaces/flights/set-aside?uuid=a-uuid"]
    assert stage.found(TABLESPACE, "flights")["metadata"]["annotations"][MARK] == "7,12 of a-uuid"
    stage.reconcile(TABLESPACE, "flights")
    assert on_list(stage) == NODES
    stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", ("leader", "follower"))
    stage.settle(TABLESPACE, "flights")
    assert verdicts(stage) == {NODES[0]: "NotChecked", NODES[1]: "NotChecked"}
    assert len(set_aside(stage)) == 1

    compared(stage, "second", 15)
    stage.settle(TABLESPACE, "flights")
    assert verdicts(stage)[NODES[1]] == "Equal"
    assert stage.condition(TABLESPACE, "flights", "ReplicasVerified") == ("True", "Verified")
    assert stage.found(TABLESPACE, "flights")["metadata"]["annotations"][MARK] == "7,12 verified of a-uuid"
    told = [event["reason"] for event in stage.events("flights")]
    assert {"ReplicaDiffers", "ReplicaSetAside", "ReplicasChanged", "ReplicaRebuilt"} <= set(told)


def bars(stage: Stage) -> list[str]:
    """The orders that were done about leading by itself: node and path."""
    parts = (url.removeprefix("http://").partition("/") for url in stage.nodes.orders if "bar?" in url)
    return [f"{host.partition('.')[0]} /{path}" for host, _, path in parts]


def test_a_follower_that_differs_is_kept_from_leading_by_itself_until_it_is_found_equal(stage: Stage) -> None:
    stage.nodes.herddb_tells(named(stage), 0, ready=False, role="booting")
    stage.nodes.herddb_tells(named(stage), 1, barred=False)
    compared(stage, "first", 12, "airports")
    stage.reconcile(TABLESPACE, "flights")
    assert bars(stage) == [f"{NODES[1]} /tablespaces/flights/bar?uuid=a-uuid&until=7,12"]
    assert on_list(stage) == NODES  # nobody leads yet
    stage.nodes.herddb_tells(named(stage), 1, barred=True)
    stage.reconcile(TABLESPACE, "flights")
    assert len(bars(stage)) == 1

    compared(stage, "second", 15)
    stage.reconcile(TABLESPACE, "flights")
    assert bars(stage)[1:] == [f"{NODES[1]} /tablespaces/flights/unbar?uuid=a-uuid&until=7,12"]
    stage.nodes.herddb_tells(named(stage), 1, barred=False)
    stage.reconcile(TABLESPACE, "flights")
    assert len(bars(stage)) == 2
    told = [event["reason"] for event in stage.events("flights")]
    assert {"ReplicaBarred", "ReplicaNotBarred"} <= set(told)


def test_a_node_that_refuses_to_be_barred_keeps_its_copy_no_longer_on_the_list(stage: Stage) -> None:
    stage.nodes.herddb_tells(named(stage), 1, barred=False)
    compared(stage, "first", 12, "airports")
    stage.nodes.tokens.clear()
    assert stage.reconcile(TABLESPACE, "flights").outcome is Outcome.FAILED
    assert bars(stage) == []
    assert on_list(stage) == NODES[:1]


def test_an_order_to_move_a_copy_aside_that_is_refused_is_repeated_before_the_node_gets_a_copy(stage: Stage) -> None:
    compared(stage, "first", 12, "airports")
    stage.reconcile(TABLESPACE, "flights")
    stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", ("leader",))
    stage.nodes.documents[f"http://{named(stage).host(1)}:{HERDDB_HTTP_PORT}/tablespaces"] = []
    tokens = set(stage.nodes.tokens)
    stage.nodes.tokens.clear()
    assert stage.reconcile(TABLESPACE, "flights").outcome is Outcome.FAILED
    assert on_list(stage) == NODES[:1]
    assert MARK not in stage.found(TABLESPACE, "flights")["metadata"].get("annotations", {})
    stage.nodes.tokens |= tokens
    stage.reconcile(TABLESPACE, "flights")
    stage.reconcile(TABLESPACE, "flights")
    assert on_list(stage) == NODES


def test_a_leader_that_was_found_different_as_a_follower_is_relieved_and_then_made_anew(stage: Stage) -> None:
    compared(stage, "first", 12, "airports")
    path = record_path(stage)
    stage.ensemble.put(path, encode_tablespace(replace(RECORD, leader=NODES[1])))  # HerdDB's own failover knows no verdicts
    stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", ("follower", "leader"))
    stage.reconcile(TABLESPACE, "flights")
    assert stage.condition(TABLESPACE, "flights", "ReplicasVerified") == ("False", "LeaderDiffers")
    assert on_list(stage) == NODES
    stage.reconcile(HERDDB, "db")
    found = stage.ensemble.read(path)
    assert found is not None
    assert decode_tablespace(found[0]).leader == NODES[0]
    stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", ("leader", "follower"))
    stage.reconcile(TABLESPACE, "flights")
    assert on_list(stage) == NODES[:1]


def test_a_checkpoint_is_compared_with_another_follower_than_the_one_whose_tables_the_last_one_begins_with(stage: Stage) -> None:
    replicas = [{**replica, "ready": True} for replica in stage.found(TABLESPACE, "flights")["status"]["replicas"]]
    stage.set_status(TABLESPACE, "flights", {"replicas": [*replicas, {**replicas[1], "node": "db-herddb-2"}]})
    own, other = (f"{named(stage).host(number)}:{HERDDB_HTTP_PORT}" for number in (1, 2))

    def asked(name: str) -> str:
        stage.declare(CHECKPOINT, name, SPEC)
        stage.reconcile(CHECKPOINT, name)
        given = stage.found("Job", f"{name}-checkpoint")["spec"]["template"]["spec"]["containers"][0]["args"]
        return str(given[given.index("--verify-against") + 1])

    assert asked("first") == own
    made = {"lsn": {"ledgerId": 7, "entryId": 9}, "manifest": f"{INSTANCE}/a-uuid/manifests/7-9.json", "verified": alone(own)}
    stage.set_status(CHECKPOINT, "first", {"phase": "Succeeded", **made})
    assert asked("second") == other
