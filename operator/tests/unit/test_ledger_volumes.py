"""Bookies with several ledger volumes: all of them, or none, are a bookie's."""

from __future__ import annotations

from dataclasses import replace

import pytest
from situations import claim, live, objects, pods, quickstart, with_spec

from herdkeeper.api.bookkeeper_cluster import LedgerVolumes
from herdkeeper.bookkeeper.build.bookies import BookieIdentity, Founded, build_bookie, build_bookie_claims, build_bookies_shared
from herdkeeper.bookkeeper.plan.bookies import plan_bookkeeper
from herdkeeper.bookkeeper.plan.volume_growth import grow_claims
from herdkeeper.bookkeeper.state.bookies import LedgerScan, LedgersMetadata, MetadataStore, Naming
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.bookkeeper.state.lost_bookie import lost_bookie
from herdkeeper.planning.actions import Create, Delete, Resize
from herdkeeper.shared.names import BOOKIE_ID_ANNOTATION, DRAINING_ANNOTATION, RETIRING_ANNOTATION, BookKeeperNames, ObjectKey
from herdkeeper.shared.reason import Reason

CLUSTER = with_spec(quickstart("BookKeeperCluster"), bookies=1, ledgers=LedgerVolumes(size="20Gi", volumes=3))
STORE = MetadataStore("zk-0:2181", serving=True)
IDENTITY = BookieIdentity(0, "bk-bookie-0-aaaaaa")
NAMES = ("bk-bookie-0-journal", "bk-bookie-0-ledgers", "bk-bookie-0-ledgers-1", "bk-bookie-0-ledgers-2")
METADATA = LedgersMetadata("an-instance", frozenset({IDENTITY.bookie_id}), frozenset(), frozenset({IDENTITY.bookie_id}), "a", False)
NEW = replace(METADATA, writable=frozenset(), cookies=frozenset(), auditor=None)
STATEFUL_SET = live([build_bookie(CLUSTER, IDENTITY, STORE.address)])


def claims(*claim_names: str, **more: str):
    return [claim(name, **{BOOKIE_ID_ANNOTATION: IDENTITY.bookie_id, **more}) for name in claim_names]


def seen(*parts, metadata=METADATA, cluster=CLUSTER, **more):
    return BookieFleet(cluster, objects(*parts), STORE, metadata, ("aaaaaa",), **more)


def test_each_ledger_volume_has_a_claim_a_folder_and_a_directory():
    made = build_bookie_claims(CLUSTER, IDENTITY)
    assert tuple(each["metadata"]["name"] for each in made) == NAMES
    assert {each["metadata"]["annotations"][BOOKIE_ID_ANNOTATION] for each in made} == {IDENTITY.bookie_id}
    template = build_bookie(CLUSTER, IDENTITY, STORE.address)["spec"]["template"]["spec"]
    mounted = {each["name"]: each["mountPath"] for each in template["containers"][0]["volumeMounts"]}
    bound = {each["name"]: each["persistentVolumeClaim"]["claimName"] for each in template["volumes"] if "persistentVolumeClaim" in each}
    folders = {bound[name]: mounted[name] for name in bound}
    assert folders == dict(zip(NAMES, ("/journal", "/ledgers", "/ledgers-1", "/ledgers-2"), strict=True))
    environment = {each["name"]: each["value"] for each in template["containers"][0]["env"]}
    assert environment["LEDGER_VOLUMES"] == "/ledgers /ledgers-1 /ledgers-2"
    (config_map, *_) = build_bookies_shared(CLUSTER, STORE.address, Founded("an-instance", frozenset(), frozenset()))
    lines = config_map["data"]["bk_server.conf"].splitlines()
    assert "ledgerDirectories=/ledgers/ledgers,/ledgers-1/ledgers,/ledgers-2/ledgers" in lines
    assert "readOnlyModeOnAnyDiskFullEnabled=true" in lines


def test_the_number_in_the_name_of_any_claim_is_the_bookies():
    named = BookKeeperNames(ObjectKey("demo", "bk"))
    assert {named.number_of(name) for name in NAMES} == {0}
    assert named.number_of("bk-bookie-0-ledgers-x") is None


@pytest.mark.parametrize("there", range(4))
def test_a_new_bookie_that_was_cut_off_after_any_claim_gets_the_rest_under_the_same_identity(there):
    plan = plan_bookkeeper(seen(*claims(*NAMES[:there]), metadata=NEW), "jobs:1")
    made = [step.manifest for step in plan.actions if isinstance(step, Create)]
    assert [each["metadata"]["name"] for each in made] == list(NAMES[there:])
    assert {each["metadata"]["annotations"][BOOKIE_ID_ANNOTATION] for each in made} == {IDENTITY.bookie_id}


@pytest.mark.parametrize("gone", range(4))
def test_a_bookie_that_lost_one_of_its_volumes_is_lost(gone):
    left = [name for name in NAMES if name != NAMES[gone]]
    found = objects(STATEFUL_SET, *claims(*left))
    lost = lost_bookie(CLUSTER, 0, found, METADATA)
    assert lost is not None
    assert (lost.why, lost.kept) == (f"its claim {NAMES[gone]} is gone", tuple(left))
    assert lost_bookie(CLUSTER, 0, objects(STATEFUL_SET, *claims(*NAMES), pods(["bk-bookie-0-0"])), METADATA) is None


@pytest.mark.parametrize("gone", range(4))
def test_the_only_bookie_of_a_cluster_may_lose_any_of_its_volumes(gone):
    left = [name for name in NAMES if name != NAMES[gone]]
    away = replace(METADATA, writable=METADATA.writable - {IDENTITY.bookie_id})
    needed = LedgerScan(1, 1, 1, {}, {IDENTITY.bookie_id: Naming(1, 0, 1)})
    plan = plan_bookkeeper(seen(STATEFUL_SET, *claims(*left), metadata=away, scan=needed), "jobs:1")
    assert plan.wait is not None
    assert plan.wait.reason is Reason.RECOVERING
    assert f"its claim {NAMES[gone]} is gone" in plan.wait.message


def test_each_ledger_volume_follows_the_size():
    larger = with_spec(CLUSTER, ledgers=LedgerVolumes(size="40Gi", volumes=3))
    bound = objects(*claims(*NAMES))
    for name in NAMES:
        size = {"resources": {"requests": {"storage": "20Gi" if "ledgers" in name else "5Gi"}}, "storageClassName": "fast"}
        bound.items["PersistentVolumeClaim", name] |= {"spec": size, "status": {"phase": "Bound"}}
    small = with_spec(larger, journal=larger.spec.journal.model_copy(update={"size": "5Gi"}))
    steps = grow_claims(replace(seen(), cluster=small, objects=bound, expandable={"fast": True}), 0)
    assert [(step.name, step.size) for step in steps if isinstance(step, Resize)] == [(name, "40Gi") for name in NAMES[1:]]


def test_a_drained_bookie_loses_all_its_volumes_by_uid():
    leaving = with_spec(CLUSTER, drain=(0,))
    stopped = live([build_bookie(CLUSTER, IDENTITY, STORE.address)])
    item = stopped["StatefulSet", "bk-bookie-0"]
    item["metadata"]["annotations"] = {**item["metadata"].get("annotations", {}), RETIRING_ANNOTATION: IDENTITY.bookie_id}
    item["spec"]["replicas"] = 0
    scan = LedgerScan(0, 0, 0, {}, {})
    retired = replace(METADATA, writable=frozenset(), cookies=frozenset())
    observed = seen(stopped, *claims(*NAMES, **{DRAINING_ANNOTATION: "2026-01-01T00:00:00Z"}), metadata=retired, scan=scan, cluster=leaving)
    assert len(observed.drains) == 1
    plan = plan_bookkeeper(observed, "jobs:1")
    deleted = [(step.name, step.uid) for step in plan.actions if isinstance(step, Delete) and step.kind == "PersistentVolumeClaim"]
    assert deleted == [(name, f"uid-{name}") for name in NAMES]


@pytest.mark.parametrize(
    ("situation", "volumes", "there", "metadata", "refused"),
    [
        ("as many as before", 3, NAMES, METADATA, False),
        ("fewer than a bookie that served has", 1, NAMES, METADATA, True),
        ("more than any bookie that served has", 3, NAMES[:2], METADATA, True),
        ("the claims of a new bookie are being made", 3, NAMES[:2], NEW, False),
        ("nothing stayed", 3, (), METADATA, False),
    ],
)
def test_volumes_that_stayed_from_a_resource_with_another_number_of_them_are_not_used(situation, volumes, there, metadata, refused):
    cluster = with_spec(CLUSTER, ledgers=LedgerVolumes(size="20Gi", volumes=volumes))
    plan = plan_bookkeeper(seen(*claims(*there), metadata=metadata, cluster=cluster), "jobs:1")
    told = plan.wait is not None and plan.wait.reason is Reason.INVALID_SPEC and "spec.ledgers.volumes" in plan.wait.message
    assert told is refused, situation
    assert not (refused and plan.actions)
