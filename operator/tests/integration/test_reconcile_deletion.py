"""What a deleted resource takes with it: under Retain nothing that holds data, under Delete servers, volumes, metadata, in this order."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from kubernetes.dynamic import DynamicClient
from played_ensemble import PlayedEnsembles
from stage import CLAIM, ZOOKEEPER_ADDRESS, Json, Stage

from herdkeeper.clients import kubernetes as reading
from herdkeeper.clients.counters import READY
from herdkeeper.clients.kubernetes import parsed
from herdkeeper.clients.kubernetes_writer import RefusedError
from herdkeeper.codecs.bookkeeper.layout import LedgerLayout, ledger_path
from herdkeeper.codecs.herddb.ledgers import ledgers_path
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord, encode_tablespace, replicas_path, tablespace_path
from herdkeeper.engine.execute_metadata import LAYOUT
from herdkeeper.engine.key import Key
from herdkeeper.engine.reconcile import has_data_to_delete
from herdkeeper.engine.result import Outcome
from herdkeeper.planning import deletion
from herdkeeper.planning.actions import Delete
from herdkeeper.protocol.log_pin import BEGIN, CHECKPOINT, decode_log_pin, log_pin_path, log_pins_path
from herdkeeper.shared import names
from herdkeeper.shared.names import BookKeeperNames, HerdDBNames, ObjectKey, ZooKeeperNames
from herdkeeper.shared.reason import Reason

ZOOKEEPER, BOOKKEEPER, HERDDB, TABLESPACE = "ZooKeeperCluster", "BookKeeperCluster", "HerdDBCluster", "Tablespace"
MADE_UP = "0b9cbd6c-3a44-4a8e-8d4a-1a7b7c1f0f5e"
OTHER = "5d1e6f0a-9c57-4be0-8a44-5b0f6a2f6f11"


def ensemble(stage: Stage, policy: str) -> Stage:
    """A ZooKeeperCluster zk of one serving member."""
    stage.declare(ZOOKEEPER, "zk", {"replicas": 1, "deletionPolicy": policy})
    stage.settle(ZOOKEEPER, "zk")
    stage.serve("zk-zookeeper", 0)
    stage.nodes.zookeeper_serves(ZooKeeperNames(ObjectKey(stage.namespace, "zk")), ("standalone",))
    stage.settle(ZOOKEEPER, "zk")
    return stage


def bookies(stage: Stage, policy: str) -> Stage:
    """A BookKeeperCluster bk of two serving bookies."""
    stage.declare(BOOKKEEPER, "bk", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": 2, "deletionPolicy": policy})
    stage.settle(BOOKKEEPER, "bk")
    for number in range(2):
        stage.serve_bookie(bookies_named(stage), number)
    stage.settle(BOOKKEEPER, "bk")
    return stage


def database(stage: Stage, policy: str) -> Stage:
    """A HerdDBCluster db of one node with its claim, and two tablespaces' logs: one of the ledgers 7 and 8, one of the ledger 9."""
    log = {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "ledgersRoot": f"/{stage.namespace}/bk/ledgers"}
    stage.declare(BOOKKEEPER, "bk", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": 3})
    stage.set_status(BOOKKEEPER, "bk", {**log, "readyBookies": 3})
    stage.declare(HERDDB, "db", {"bookKeeperRef": {"name": "bk"}, "replicas": 1, "deletionPolicy": policy})
    stage.settle(HERDDB, "db")
    (template,) = stage.found("StatefulSet", "db-herddb")["spec"]["volumeClaimTemplates"]
    claim = {**template, "apiVersion": "v1", "kind": CLAIM, "metadata": {**template["metadata"], "name": "data-db-herddb-0"}}
    stage.of(CLAIM).create(body=claim, namespace=stage.namespace)  # as the StatefulSet's controller makes it
    stage.ensemble.put(f"{log['ledgersRoot']}/LAYOUT", LAYOUT)
    for tablespace, ledgers in ((MADE_UP, [7, 8]), (OTHER, [9])):
        for ledger in ledgers:
            stage.ensemble.put(ledger_znode(stage, ledger), ledger_of(tablespace))
        listed = {"activeLedgers": ledgers, "ledgersTimestamps": ledgers, "firstLedger": ledgers[0], "zkVersion": 0}
        stage.ensemble.put(ledgers_path(herd_root(stage), tablespace), json.dumps(listed).encode())
        stage.ensemble.put(f"{replicas_path(herd_root(stage), tablespace)}/db-herddb-0")
        stage.ensemble.put(f"{log_pins_path(herd_root(stage), tablespace)}/replica-db-herddb-0")
    return stage


def bookies_named(stage: Stage) -> BookKeeperNames:
    return BookKeeperNames(ObjectKey(stage.namespace, "bk"))


def herd_root(stage: Stage) -> str:
    return HerdDBNames(ObjectKey(stage.namespace, "db")).herd_root


def ledger_znode(stage: Stage, ledger: int) -> str:
    return f"/{stage.namespace}/bk/ledgers{ledger_path(LedgerLayout.HIERARCHICAL, ledger)}"


def ledger_of(tablespace: str) -> bytes:
    """The metadata of a ledger that HerdDB opened for a tablespace, in BookKeeper's format 2."""
    lines = ("quorumSize: 3", "ensembleSize: 3", "length: 0", "lastEntryId: -1", "state: OPEN", "ackQuorumSize: 2", "digestType: CRC32C")
    custom = f'customMetadata {{ key: "tablespaceuuid" value: "{tablespace}" }}'
    segment = 'segment { ensembleMember: "a" ensembleMember: "b" ensembleMember: "c" firstEntryId: 0 }'
    return "\n".join(("BookieMetadataFormatVersion\t2", *lines, segment, custom)).encode()


def finalizers(stage: Stage, kind: str, name: str) -> list[str]:
    return list(stage.found(kind, name)["metadata"].get("finalizers") or [])


def claims(stage: Stage) -> dict[str, bool]:
    """Each claim, and whether it is being deleted."""
    return {name: "deletionTimestamp" in item["metadata"] for (kind, name), item in stage.made().items() if kind == CLAIM}


def ready_gauges(labels: tuple[str, str, str]) -> list[float]:
    samples = [sample for metric in READY.collect() for sample in metric.samples]
    return [sample.value for sample in samples if tuple(sample.labels.values()) == labels]


def reconcile_until_gone(stage: Stage, kind: str, name: str) -> None:
    for _ in range(20):
        if stage.reconcile(kind, name).outcome is Outcome.GONE:
            return
        stage.let_claims_go()
    raise AssertionError(f"{kind} {name} is not gone: {stage.found(kind, name)['status']['message']}")


MADE: list[tuple[str, str, Callable[[Stage, str], Stage], str]] = [
    (ZOOKEEPER, "zk", ensemble, "zk-zookeeper-0"),
    (BOOKKEEPER, "bk", bookies, "bk-bookie-0-0"),
    (HERDDB, "db", database, ""),
]
each_cluster = pytest.mark.parametrize(("kind", "name", "make", "pod"), MADE, ids=[kind for kind, _, _, _ in MADE])


@each_cluster
def test_under_retain_a_deleted_resource_is_gone_at_once_and_its_data_stays(
    stage: Stage, kind: str, name: str, make: Callable[[Stage, str], Stage], pod: str
) -> None:
    make(stage, "Retain")
    before, znodes = claims(stage), dict(stage.ensemble.znodes)
    assert (finalizers(stage, kind, name), bool(before)) == ([], True)
    owned = {name for (made, name), item in stage.made().items() if made in (CLAIM, "Secret") and "ownerReferences" in item["metadata"]}
    assert owned <= {"bk-bookie-token"}
    stage.delete(kind, name)
    assert stage.live(kind, name) is None
    assert stage.reconcile(kind, name).outcome is Outcome.GONE
    assert (claims(stage), stage.ensemble.znodes) == (before, znodes)


@each_cluster
def test_under_delete_a_finalizer_holds_the_resource(
    stage: Stage, kind: str, name: str, make: Callable[[Stage, str], Stage], pod: str
) -> None:
    make(stage, "Delete")
    assert finalizers(stage, kind, name) == [names.FINALIZER]
    stage.delete(kind, name)
    assert stage.live(kind, name) is not None


@each_cluster
def test_a_policy_that_becomes_delete_in_the_moment_of_the_deletion_counts(
    stage: Stage, kind: str, name: str, make: Callable[[Stage, str], Stage], pod: str
) -> None:
    make(stage, "Retain")
    stage.patch(kind, name, {"spec": {"deletionPolicy": "Delete"}})
    last, clients = stage.found(kind, name), stage.clients()
    stage.delete(kind, name)
    if pod:
        stage.delete("Pod", pod)
    if kind == BOOKKEEPER:
        stage.end_bookies(BookKeeperNames(ObjectKey(stage.namespace, name)))
    assert (stage.live(kind, name), bool(claims(stage))) == (None, True)
    key = Key(kind, stage.namespace, name)
    assert has_data_to_delete(key, last)
    clients.reader.deleted.add(key, last)
    for _ in range(20):
        if stage.reconcile(kind, name, clients).outcome is Outcome.GONE:
            break
        stage.let_claims_go()
    assert claims(stage) == {}
    assert stage.events(name)[-1]["reason"] == "DataDeleted"
    assert clients.reader.deleted.get(key) is None


def test_a_resource_of_the_same_name_keeps_what_a_deleted_one_would_have_taken_along(stage: Stage) -> None:
    ensemble(stage, "Retain")
    stage.patch(ZOOKEEPER, "zk", {"spec": {"deletionPolicy": "Delete"}})
    last, clients, key = stage.found(ZOOKEEPER, "zk"), stage.clients(), Key(ZOOKEEPER, stage.namespace, "zk")
    stage.delete(ZOOKEEPER, "zk")
    clients.reader.deleted.add(key, last)
    stage.declare(ZOOKEEPER, "zk", {"replicas": 1})
    before = claims(stage)
    for _ in range(3):
        stage.reconcile(ZOOKEEPER, "zk", clients)
    assert claims(stage) == before
    assert clients.reader.deleted.get(key) is None


@pytest.mark.parametrize(
    ("situation", "change", "departs"),
    [
        ("its data goes with it", {}, True),
        ("its data stays", {"spec": {"deletionPolicy": "Retain"}}, False),
        ("its finalizer was there: all is done", {"metadata": {"finalizers": [names.FINALIZER]}}, False),
        ("it was paused", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: "true"}}}, False),
    ],
)
def test_only_a_deletion_that_overtook_the_finalizer_is_made_up_for(stage: Stage, situation: str, change: Json, departs: bool) -> None:
    stage.declare(ZOOKEEPER, "zk", {"replicas": 1, "deletionPolicy": "Delete"})
    stage.patch(ZOOKEEPER, "zk", change)
    assert has_data_to_delete(Key(ZOOKEEPER, stage.namespace, "zk"), stage.found(ZOOKEEPER, "zk")) is departs, situation


@pytest.mark.parametrize(("before", "departs"), [("Delete", False), ("Retain", True)])
def test_data_stays_if_somebody_takes_the_finalizer_off_and_goes_if_it_came_too_late_beside_anothers(
    stage: Stage, before: str, departs: bool
) -> None:
    ensemble(stage, before)
    others = ["example.com/theirs", *finalizers(stage, ZOOKEEPER, "zk")]
    stage.patch(ZOOKEEPER, "zk", {"metadata": {"finalizers": others}, "spec": {"deletionPolicy": "Delete"}})
    stage.delete(ZOOKEEPER, "zk")
    stage.reconcile(ZOOKEEPER, "zk")
    stage.patch(ZOOKEEPER, "zk", {"metadata": {"finalizers": others[:1]}})
    assert has_data_to_delete(Key(ZOOKEEPER, stage.namespace, "zk"), stage.found(ZOOKEEPER, "zk")) is departs
    assert claims(stage) == {"data-zk-zookeeper-0": False}


@each_cluster
def test_a_finalizer_goes_when_the_policy_becomes_retain_and_others_stay(
    stage: Stage, kind: str, name: str, make: Callable[[Stage, str], Stage], pod: str
) -> None:
    make(stage, "Delete")
    stage.patch(kind, name, {"metadata": {"finalizers": ["example.com/theirs", names.FINALIZER]}, "spec": {"deletionPolicy": "Retain"}})
    stage.settle(kind, name)
    assert finalizers(stage, kind, name) == ["example.com/theirs"]


def test_volumes_are_deleted_only_after_the_last_server_stopped(stage: Stage) -> None:
    ensemble(stage, "Delete")
    stage.delete(ZOOKEEPER, "zk")
    for _ in range(3):
        stage.reconcile(ZOOKEEPER, "zk")
    assert stage.live("StatefulSet", "zk-zookeeper") is None
    assert claims(stage) == {"data-zk-zookeeper-0": False}
    stage.delete("Pod", "zk-zookeeper-0")
    stage.reconcile(ZOOKEEPER, "zk")
    assert claims(stage) == {"data-zk-zookeeper-0": True}


def test_the_resource_goes_only_after_its_volumes(stage: Stage) -> None:
    ensemble(stage, "Delete")
    stage.delete(ZOOKEEPER, "zk")
    stage.reconcile(ZOOKEEPER, "zk")
    stage.delete("Pod", "zk-zookeeper-0")
    for _ in range(3):
        stage.reconcile(ZOOKEEPER, "zk")
    assert (claims(stage), finalizers(stage, ZOOKEEPER, "zk")) == ({"data-zk-zookeeper-0": True}, [names.FINALIZER])
    assert stage.condition(ZOOKEEPER, "zk") == ("False", "Deleting")
    reconcile_until_gone(stage, ZOOKEEPER, "zk")
    assert (claims(stage), stage.live(ZOOKEEPER, "zk")) == ({}, None)
    assert stage.events("zk")[-1]["reason"] == "DataDeleted"


def test_a_resource_that_is_gone_is_not_counted_as_one_that_is_not_ready(stage: Stage) -> None:
    ensemble(stage, "Delete")
    labels = (ZOOKEEPER, stage.namespace, "zk")
    assert ready_gauges(labels) == [1]
    stage.delete(ZOOKEEPER, "zk")
    stage.delete("Pod", "zk-zookeeper-0")
    reconcile_until_gone(stage, ZOOKEEPER, "zk")
    assert ready_gauges(labels) == []


def test_a_claim_is_not_deleted_in_the_place_of_an_older_one_of_its_name(stage: Stage) -> None:
    ensemble(stage, "Retain")
    stale = Delete("v1", CLAIM, "data-zk-zookeeper-0", OTHER, Reason.DELETING)
    with pytest.raises(RefusedError, match="UID"):
        stage.clients().writer.delete(stage.namespace, stale)
    assert claims(stage) == {"data-zk-zookeeper-0": False}


def test_deleted_bookies_take_their_metadata_with_them_and_nobody_elses(stage: Stage) -> None:
    bookies(stage, "Delete")
    stage.ensemble.put(f"/{stage.namespace}/another/ledgers/INSTANCEID", b"theirs")
    stage.delete(BOOKKEEPER, "bk")
    stage.reconcile(BOOKKEEPER, "bk")
    stage.end_bookies(bookies_named(stage))
    root = bookies_named(stage).ledgers_root
    stage.reconcile(BOOKKEEPER, "bk")
    assert f"{root}/INSTANCEID" in stage.ensemble.znodes, "metadata goes after the volumes that need it"
    reconcile_until_gone(stage, BOOKKEEPER, "bk")
    another = f"/{stage.namespace}/another"
    assert set(stage.ensemble.znodes) == {"/", f"/{stage.namespace}", another, f"{another}/ledgers", f"{another}/ledgers/INSTANCEID"}
    assert claims(stage) == {}


def test_metadata_that_somebody_elses_bookies_use_is_left_alone(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two Kubernetes clusters, each with a bk in a namespace of this name, on one external ensemble."""
    bookies(stage, "Delete")
    stage.delete(BOOKKEEPER, "bk")
    stage.end_bookies(bookies_named(stage))
    stage.ensemble.put(f"{bookies_named(stage).ledgers_root}/available/bk-bookie-0-theirs")
    for _ in range(5):
        stage.reconcile(BOOKKEEPER, "bk")
        stage.let_claims_go()
    assert (claims(stage), finalizers(stage, BOOKKEEPER, "bk")) == ({}, [names.FINALIZER])
    assert "bk-bookie-0-theirs" in stage.found(BOOKKEEPER, "bk")["status"]["message"]
    monkeypatch.setattr(deletion, "PATIENCE_SECONDS", 0.0)
    reconcile_until_gone(stage, BOOKKEEPER, "bk")
    assert f"{bookies_named(stage).ledgers_root}/INSTANCEID" in stage.ensemble.znodes


def test_the_last_cluster_of_a_namespace_leaves_no_znode(stage: Stage) -> None:
    bookies(stage, "Delete")
    stage.delete(BOOKKEEPER, "bk")
    stage.end_bookies(bookies_named(stage))
    reconcile_until_gone(stage, BOOKKEEPER, "bk")
    assert set(stage.ensemble.znodes) == {"/"}


def test_a_deleted_database_takes_its_ledgers_its_password_and_its_volumes_with_it(stage: Stage) -> None:
    database(stage, "Delete")
    assert stage.live("Secret", "db-herddb-credentials") is not None
    stage.delete(HERDDB, "db")
    reconcile_until_gone(stage, HERDDB, "db")
    assert [path for path in stage.ensemble.znodes if path.startswith(f"/{stage.namespace}/db")] == []
    assert [ledger for ledger in (7, 8, 9) if ledger_znode(stage, ledger) in stage.ensemble.znodes] == []
    assert f"/{stage.namespace}/bk/ledgers/LAYOUT" in stage.ensemble.znodes
    assert (claims(stage), stage.live("Secret", "db-herddb-credentials")) == ({}, None)


def test_of_a_dropped_tablespace_its_log_is_deleted_and_no_other_log(stage: Stage) -> None:
    database(stage, "Retain")
    stage.declare(TABLESPACE, "flights", {"herdDBRef": {"name": "db"}, "replicas": 1, "deletionPolicy": "Delete"})
    stage.settle(TABLESPACE, "flights")
    stage.set_status(TABLESPACE, "flights", {"uuid": MADE_UP})
    stage.delete(TABLESPACE, "flights")
    reconcile_until_gone(stage, TABLESPACE, "flights")
    assert [ledger for ledger in (7, 8, 9) if ledger_znode(stage, ledger) in stage.ensemble.znodes] == [9]
    left = [path for path in stage.ensemble.znodes if MADE_UP in path or OTHER in path]
    heartbeats, pins = replicas_path(herd_root(stage), OTHER), log_pins_path(herd_root(stage), OTHER)
    of_nodes = [heartbeats, f"{heartbeats}/db-herddb-0", pins, f"{pins}/replica-db-herddb-0"]
    assert sorted(left) == sorted([ledgers_path(herd_root(stage), OTHER), *of_nodes])


def test_the_log_is_kept_for_checkpoints_while_the_resource_that_asks_for_it_is_there(stage: Stage) -> None:
    database(stage, "Retain")
    record = tablespace_path(herd_root(stage), "flights")
    stage.ensemble.put(record, encode_tablespace(TablespaceRecord(MADE_UP, "flights", "db-herddb-0", ("db-herddb-0",), 1, 30_000)))
    stage.declare(TABLESPACE, "flights", {"herdDBRef": {"name": "db"}, "replicas": 1, "log": {"keepUntilCheckpoint": True}})
    stage.settle(TABLESPACE, "flights")
    pin = log_pin_path(herd_root(stage), MADE_UP, CHECKPOINT)
    assert decode_log_pin(stage.ensemble.znodes[pin][0]) == BEGIN
    assert finalizers(stage, TABLESPACE, "flights") != []
    stage.delete(TABLESPACE, "flights")
    reconcile_until_gone(stage, TABLESPACE, "flights")
    assert (pin in stage.ensemble.znodes, record in stage.ensemble.znodes) == (False, True)


def test_of_a_list_that_is_older_than_the_bookkeeper_cluster_no_ledger_of_somebody_else_is_deleted(stage: Stage) -> None:
    """Ledger ids restart in a cluster that was made anew, and a database's root may have stayed behind from before."""
    database(stage, "Delete")
    stage.ensemble.put(ledger_znode(stage, 8), ledger_of("d4c7a7b8-5c4b-4a55-8a35-3b9f0d3f6a10"))
    stage.ensemble.put(ledger_znode(stage, 9), b"not of HerdDB")
    stage.delete(HERDDB, "db")
    reconcile_until_gone(stage, HERDDB, "db")
    assert [ledger for ledger in (7, 8, 9) if ledger_znode(stage, ledger) in stage.ensemble.znodes] == [8, 9]
    assert [path for path in stage.ensemble.znodes if path.startswith(f"/{stage.namespace}/db")] == []


@pytest.mark.parametrize("owner", [MADE_UP, OTHER])
def test_a_database_made_again_beside_another_bookkeeper_cluster_takes_nobodys_ledgers_for_its_own(stage: Stage, owner: str) -> None:
    """Its root stayed, and lists ledgers by ids that are others' there. Nodes would fence these, and replay their entries."""
    database(stage, "Retain")
    record = TablespaceRecord(MADE_UP, "flights", "db-herddb-0", ("db-herddb-0",), 1, 30_000)
    stage.ensemble.put(tablespace_path(herd_root(stage), "flights"), encode_tablespace(record))
    stage.delete(HERDDB, "db")
    stage.delete("StatefulSet", "db-herddb")  # as the garbage collector does
    stage.ensemble.put(ledger_znode(stage, 8), ledger_of(owner))
    stage.declare(HERDDB, "db", {"bookKeeperRef": {"name": "bk"}, "replicas": 1})
    stage.settle(HERDDB, "db")
    made = stage.live("StatefulSet", "db-herddb") is not None
    assert (made, stage.condition(HERDDB, "db")[1] == "InvalidSpec") == ((True, False) if owner == MADE_UP else (False, True))


def test_a_tablespace_that_was_never_made_goes_without_a_drop(stage: Stage) -> None:
    stage.declare(TABLESPACE, "flights", {"herdDBRef": {"name": "db"}, "deletionPolicy": "Delete"})
    stage.settle(TABLESPACE, "flights")
    stage.delete(TABLESPACE, "flights")
    stage.reconcile(TABLESPACE, "flights")
    assert stage.live(TABLESPACE, "flights") is None


def test_an_ensemble_waits_until_the_bookies_have_deleted_their_metadata_in_it(dynamic: DynamicClient, namespace: str) -> None:
    stage = ensemble(Stage(dynamic, namespace, PlayedEnsembles(ZooKeeperNames(ObjectKey(namespace, "zk")).address(1))), "Delete")
    stage.declare(BOOKKEEPER, "bk", {"zooKeeperRef": {"name": "zk"}, "bookies": 1, "deletionPolicy": "Delete"})
    stage.settle(BOOKKEEPER, "bk")
    stage.delete(ZOOKEEPER, "zk")
    stage.delete(BOOKKEEPER, "bk")
    stage.settle(ZOOKEEPER, "zk")
    assert stage.live("StatefulSet", "zk-zookeeper") is not None
    assert stage.condition(ZOOKEEPER, "zk", "Progressing") == ("True", "WaitingForDependents")
    stage.end_bookies(bookies_named(stage))
    reconcile_until_gone(stage, BOOKKEEPER, "bk")
    assert set(stage.ensemble.znodes) == {"/"}
    stage.delete("Pod", "zk-zookeeper-0")
    reconcile_until_gone(stage, ZOOKEEPER, "zk")


@pytest.mark.parametrize("refused", [False, True])
def test_an_ensemble_whose_policy_is_retain_goes_only_after_the_bookies_that_use_it(
    dynamic: DynamicClient, namespace: str, refused: bool
) -> None:
    stage = ensemble(Stage(dynamic, namespace, PlayedEnsembles(ZooKeeperNames(ObjectKey(namespace, "zk")).address(1))), "Retain")
    if refused:
        stage.patch(ZOOKEEPER, "zk", {"spec": {"config": {"dataDir": "/tmp"}}})
    stage.declare(BOOKKEEPER, "bk", {"zooKeeperRef": {"name": "zk"}, "bookies": 1})
    stage.settle(BOOKKEEPER, "bk")
    stage.settle(ZOOKEEPER, "zk")
    before = claims(stage)
    stage.delete(ZOOKEEPER, "zk")
    stage.settle(ZOOKEEPER, "zk")
    assert stage.live("StatefulSet", "zk-zookeeper") is not None
    assert stage.condition(ZOOKEEPER, "zk", "Progressing") == ("True", "WaitingForDependents")
    (progressing,) = [entry for entry in stage.found(ZOOKEEPER, "zk")["status"]["conditions"] if entry["type"] == "Progressing"]
    assert "first delete BookKeeperCluster bk" in progressing["message"]
    told = stage.found(ZOOKEEPER, "zk")["status"]["message"]
    assert told == f"it is being deleted: {progressing['message']}. An apply does not keep it: apply it again once it is gone"
    stage.delete(BOOKKEEPER, "bk")
    assert stage.live(BOOKKEEPER, "bk") is None
    reconcile_until_gone(stage, ZOOKEEPER, "zk")
    assert (stage.live(ZOOKEEPER, "zk"), claims(stage)) == (None, before)


def test_a_deletion_waits_for_a_silent_backend_and_gives_it_up_with_an_event(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    bookies(stage, "Delete")
    for number in range(2):
        stage.delete("StatefulSet", f"bk-bookie-{number}")
    stage.end_bookies(bookies_named(stage))
    stage.delete(BOOKKEEPER, "bk")
    stage.ensemble.silent = True
    for _ in range(5):
        stage.reconcile(BOOKKEEPER, "bk")
        stage.let_claims_go()
    assert (claims(stage), finalizers(stage, BOOKKEEPER, "bk")) == ({}, [names.FINALIZER])
    assert stage.condition(BOOKKEEPER, "bk") == ("Unknown", "Unreadable")
    monkeypatch.setattr(deletion, "PATIENCE_SECONDS", 0.0)
    reconcile_until_gone(stage, BOOKKEEPER, "bk")
    (told,) = [event for event in stage.events("bk") if event["reason"] == "DeletionGivenUp"]
    root = bookies_named(stage).ledgers_root
    assert (told["type"], root in told["message"]) == ("Warning", True)


def test_a_deleted_resource_that_can_not_be_read_goes_and_its_data_stays(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    ensemble(stage, "Delete")
    stage.delete(ZOOKEEPER, "zk")
    before = claims(stage)
    older_rules = {"replicas": "three"}
    monkeypatch.setattr(reading, "parsed", lambda kind, document: parsed(kind, {**document, "spec": {**document["spec"], **older_rules}}))
    stage.reconcile(ZOOKEEPER, "zk")
    assert stage.condition(ZOOKEEPER, "zk") == ("False", "InvalidSpec")
    assert finalizers(stage, ZOOKEEPER, "zk") == [names.FINALIZER]
    monkeypatch.setattr(deletion, "PATIENCE_SECONDS", 0.0)
    assert stage.reconcile(ZOOKEEPER, "zk").outcome is Outcome.GONE
    assert (stage.live(ZOOKEEPER, "zk"), claims(stage)) == (None, before)
    assert stage.events("zk")[-1]["reason"] == "DeletionGivenUp"


@pytest.mark.parametrize("mark", [names.PAUSED_ANNOTATION, names.PLAN_ANNOTATION])
def test_a_paused_resource_keeps_its_data_when_it_is_deleted_and_goes_once_it_is_not_paused(stage: Stage, mark: str) -> None:
    ensemble(stage, "Delete")
    stage.patch(ZOOKEEPER, "zk", {"metadata": {"annotations": {mark: "true"}}})
    stage.delete(ZOOKEEPER, "zk")
    stage.settle(ZOOKEEPER, "zk")
    assert stage.live("StatefulSet", "zk-zookeeper") is not None
    stage.patch(ZOOKEEPER, "zk", {"metadata": {"annotations": {mark: None}}})
    stage.delete("Pod", "zk-zookeeper-0")
    reconcile_until_gone(stage, ZOOKEEPER, "zk")


def test_data_goes_too_when_the_whole_namespace_is_deleted_and_takes_no_events_any_more(stage: Stage) -> None:
    bookies(stage, "Delete")
    stage.dynamic.resources.get(api_version="v1", kind="Namespace").delete(name=stage.namespace)
    stage.delete(BOOKKEEPER, "bk")
    stage.end_bookies(bookies_named(stage))
    told = len(stage.events("bk"))
    reconcile_until_gone(stage, BOOKKEEPER, "bk")
    assert (claims(stage), set(stage.ensemble.znodes)) == ({}, {"/"})
    assert len(stage.events("bk")) == told
