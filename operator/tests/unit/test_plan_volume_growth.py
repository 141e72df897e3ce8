"""Claims follow the sizes in the spec where their volumes can."""

from __future__ import annotations

import pytest
from situations import objects, quickstart, with_spec

from herdkeeper.api.bookkeeper_cluster import LedgerVolumes
from herdkeeper.bookkeeper.plan.volume_growth import grow_claims
from herdkeeper.bookkeeper.state.bookies import LedgersMetadata, MetadataStore
from herdkeeper.bookkeeper.state.claims import with_claimed_sizes
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.planning.actions import Resize, Wait
from herdkeeper.shared.names import BOOKIE_ID_ANNOTATION
from herdkeeper.shared.quantity import bytes_of
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.shared.volumes import Claim

NAME = "bk-bookie-0-ledgers"
CLUSTER = with_spec(quickstart("BookKeeperCluster"), ledgers=LedgerVolumes(size="40Gi"))


def claim(size: str, storage_class: str | None = "fast", **rest):
    spec = {"resources": {"requests": {"storage": size}}, **({"storageClassName": storage_class} if storage_class else {})}
    metadata = {"name": NAME, "uid": "its-uid", **rest.pop("metadata", {})}
    status = {"phase": "Bound", **rest.pop("status", {})}
    return {("PersistentVolumeClaim", NAME): {"metadata": metadata, "spec": spec, "status": status}}


def steps(found, cookies=frozenset(), **expandable):
    metadata = LedgersMetadata("an-instance", frozenset(), frozenset(), cookies, None, under_replicated=False)
    seen = BookieFleet(CLUSTER, objects(found), MetadataStore("zk:2181", True), metadata, ("aaaaaa",), expandable=expandable)
    return grow_claims(seen, 0)


def test_a_claim_that_asks_for_less_is_grown_by_uid_where_its_class_allows_it():
    assert steps(claim("20Gi"), fast=True) == (Resize(NAME, "its-uid", "40Gi"),)


@pytest.mark.parametrize("size", ["40Gi", "40960Mi", "42949672960"])
def test_a_claim_that_asks_for_as_much_is_left_alone_however_it_is_written(size):
    assert steps(claim(size)) == ()


@pytest.mark.parametrize(
    ("situation", "found", "expandable", "reason", "told"),
    [
        ("its class can't", claim("20Gi"), {"fast": False}, Reason.INVALID_SPEC, "set spec.ledgers.size back to 20Gi"),
        ("it has no class", claim("20Gi", None), {}, Reason.INVALID_SPEC, "it has no StorageClass"),
        ("its class was not read", claim("20Gi"), {}, Reason.UNREADABLE, "was not read"),
        ("its class can't be read", claim("20Gi"), {"fast": Unknown("Forbidden")}, Reason.UNREADABLE, "Forbidden"),
        ("it would have to shrink", claim("50Gi"), {"fast": True}, Reason.INVALID_SPEC, "volumes can't shrink; set 50Gi"),
        (
            "its volume did not grow, and has as much",
            claim("1024Ti", status={"capacity": {"storage": "40Gi"}}),
            {"fast": True},
            Reason.INVALID_SPEC,
            "takes a request back only to more than the volume has: set 41Gi or more",
        ),
        (
            "its volume did not grow, and has more than it may be",
            claim("40961Mi", status={"capacity": {"storage": "40Gi"}}),
            {"fast": True},
            Reason.INVALID_SPEC,
            "volumes can't shrink; set 40961Mi",
        ),
        (
            "its volume is being grown",
            claim("40Gi", status={"capacity": {"storage": "20Gi"}, "conditions": [{"type": "FileSystemResizePending", "status": "True"}]}),
            {},
            Reason.RESIZING,
            "FileSystemResizePending",
        ),
    ],
)
def test_it_waits_and_says_why(situation, found, expandable, reason, told):
    (step,) = steps(found, **expandable)
    assert isinstance(step, Wait), situation
    assert step.reason is reason
    assert told in step.message


@pytest.mark.parametrize("expandable", [True, False])
def test_a_request_is_taken_back_by_uid_while_its_volume_has_not_grown(expandable):
    assert steps(claim("1024Ti", status={"capacity": {"storage": "20Gi"}}), fast=expandable) == (Resize(NAME, "its-uid", "40Gi"),)


def test_a_claim_that_has_no_volume_yet_is_left_alone():
    assert steps(claim("20Gi", status={"phase": "Pending"}), fast=True) == ()


@pytest.mark.parametrize(
    ("marks", "served", "told"),
    [
        ({BOOKIE_ID_ANNOTATION: "bk-bookie-0-aaaaaa"}, frozenset(), True),
        ({BOOKIE_ID_ANNOTATION: "bk-bookie-0-aaaaaa"}, frozenset({"bk-bookie-0-aaaaaa"}), False),
        ({}, frozenset(), False),
    ],
)
def test_a_claim_that_no_volume_is_large_enough_for_is_told_with_the_way_out_unless_its_bookie_may_have_served(marks, served, told):
    found = claim("1024Ti", metadata={"annotations": marks}, status={"phase": "Pending"})
    waits = steps(found, served)
    assert [wait.reason for wait in waits] == ([Reason.INVALID_SPEC] if told else [])
    assert all("`kubectl delete pvc bk-bookie-0-journal bk-bookie-0-ledgers -n demo`" in wait.message for wait in waits)


def test_a_claim_on_its_way_out_is_left_alone():
    assert steps(claim("20Gi", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), fast=True) == ()


@pytest.mark.parametrize(
    ("text", "expected"), [("20Gi", 20 * 1024**3), ("20G", 20 * 1000**3), ("1.5Gi", 3 * 512 * 1024**2), ("7", 7), ("many", None)]
)
def test_kubernetes_quantities_are_read(text, expected):
    found = Claim.of(next(iter(claim(text, status={"capacity": {"storage": text}}).values())))
    assert (found.requested_bytes, found.capacity_bytes) == (expected, expected)


def test_files_are_sized_by_what_a_volume_has_until_it_has_grown():
    there = claim("40Gi", status={"capacity": {"storage": "20Gi"}})
    assert bytes_of(with_claimed_sizes(CLUSTER, (0,), objects(there)).spec.ledgers.size) == 20 * 1024**3


def test_files_of_bookies_that_leave_still_fit_while_larger_ones_take_their_places():
    """They serve until there are enough others, which a quota may refuse. With the journals of a larger disk they would fill theirs."""
    metadata = LedgersMetadata("an-instance", frozenset(), frozenset(), frozenset({"bk-bookie-0-aaaaaa"}), None, under_replicated=False)
    replaced = with_spec(CLUSTER, bookies=1, drain=(0,))
    journal = {**claim("1Gi")["PersistentVolumeClaim", NAME], "metadata": {"name": "bk-bookie-0-journal", "uid": "another"}}
    there = objects(claim("2Gi"), {("PersistentVolumeClaim", "bk-bookie-0-journal"): journal})
    sized = BookieFleet(replaced, there, MetadataStore("zk:2181", True), metadata, ("bbbbbb",)).sized.spec
    assert (bytes_of(sized.journal.size), bytes_of(sized.ledgers.size)) == (1024**3, 2 * 1024**3)


def test_files_are_sized_by_the_smallest_claim_that_is_there_and_not_by_what_the_spec_asks_for():
    there = {
        ("PersistentVolumeClaim", f"bk-bookie-{number}-ledgers"): claim(size)[("PersistentVolumeClaim", NAME)]
        for number, size in ((0, "30Gi"), (1, "20Gi"))
    }
    sized = with_claimed_sizes(CLUSTER, (0, 1, 2), objects(there)).spec
    assert bytes_of(sized.ledgers.size) == 20 * 1024**3
    assert (sized.journal, CLUSTER.spec.ledgers.size) == (CLUSTER.spec.journal, "40Gi")
