"""How long the ledgers are left alone while drains are held up: reading all of them is not free."""

from __future__ import annotations

from dataclasses import replace

import pytest
from situations import objects, pods, with_spec, with_status
from test_plan_bookkeeper import CLUSTER, HEALTHY, IDENTITIES, JOBS_IMAGE, PODS, STORE, TOKENS, claims, settled

from herdkeeper.api.bookkeeper_cluster import BookieStatus, DrainStatus
from herdkeeper.bookkeeper.drain import state
from herdkeeper.bookkeeper.drain.procedure import Stop, next_step
from herdkeeper.bookkeeper.plan.bookies import plan_bookkeeper
from herdkeeper.bookkeeper.state.bookies import LedgerScan, Naming
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.bookkeeper.state.racks import Rack, format_racks
from herdkeeper.bookkeeper.status import summarize_bookkeeper
from herdkeeper.codecs.bookkeeper.share import Place, Share
from herdkeeper.planning.actions import Delete, Resize, Wait
from herdkeeper.shared.names import DRAINING_ANNOTATION, RACKS_KEY, ZONE_LABEL, BookKeeperNames, ObjectKey
from herdkeeper.shared.node import Node
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

LEAVING = IDENTITIES[3].bookie_id
OPEN = Share(42, (Place(0, 1),), closed=False, written=True, tablespace="flights")
SCAN = LedgerScan(7, 2, 2, {LEAVING: (OPEN,)}, {LEAVING: Naming(0, 1, 2)}, seconds=0.01)
READ_ONLY = replace(HEALTHY, writable=HEALTHY.writable - {LEAVING}, read_only=frozenset({LEAVING}))
SMALLER = with_spec(CLUSTER, bookies=3)


def seen(metadata=READ_ONLY, scan=SCAN):
    """Bookie 3 is read-only, and an open ledger holds it up."""
    marked = objects(settled(), *claims(0, 1, 2, 3), pods(PODS))
    marked.items["PersistentVolumeClaim", "bk-bookie-3-journal"]["metadata"]["annotations"][DRAINING_ANNOTATION] = "2026-01-01T00:00:00Z"
    return BookieFleet(SMALLER, marked, STORE, metadata, TOKENS, scan=scan)


def told(observed, before=None, message=None):
    """What is observed, with what the status said of the drain when it was looked at before."""
    (drain,) = (observed if before is None else before).drains
    text = drain.step.sentence if message is None else message
    bookie = BookieStatus(number=3, bookie_id=LEAVING, state="ReadOnly", drain=DrainStatus(message=text))
    return replace(observed, cluster=with_status(SMALLER, bookies=(bookie,), instance_id="an-instance"))


@pytest.mark.parametrize(
    ("situation", "scan", "before", "seconds"),
    [
        ("reading takes no time", SCAN, None, 5.0),
        ("reading takes a while", replace(SCAN, seconds=1.5), None, 30.0),
        ("reading takes long", replace(SCAN, seconds=20.0), None, 60.0),
        ("something else held it up before", replace(SCAN, seconds=20.0), "OpenLedgers: others", 5.0),
        ("it can't be read", Unknown("there are 300000 ledgers"), None, 30.0),
    ],
)
def test_a_drain_that_is_held_up_by_the_same_thing_is_looked_at_less_often(situation, scan, before, seconds):
    observed = seen(scan=scan)
    made = plan_bookkeeper(told(observed, message=before), JOBS_IMAGE)
    assert made.wait is not None
    assert made.requeue_after_seconds == pytest.approx(seconds), situation


@pytest.mark.parametrize("scan", [SCAN, replace(SCAN, shares={}), Unknown("there are 300000 ledgers"), None])
@pytest.mark.parametrize("metadata", [READ_ONLY, replace(READ_ONLY, under_replicated=True), replace(READ_ONLY, auditor=None)])
def test_the_status_tells_of_a_drain_what_the_plan_waits_for(metadata, scan):
    observed = seen(metadata, scan)
    (told_of,) = [bookie["drain"]["message"] for bookie in summarize_bookkeeper(observed).fields["bookies"] if "drain" in bookie]
    wait = plan_bookkeeper(observed, JOBS_IMAGE).wait
    assert told_of == ("no ledger names it: it is stopping" if wait is None else wait.sentence)


def test_no_drain_gets_on_while_the_auditor_has_marked_ledgers():
    emptied = replace(SCAN, shares={})
    (gets_on,), (waits,) = (seen(metadata, emptied).drains for metadata in (READ_ONLY, replace(READ_ONLY, under_replicated=True)))
    assert gets_on.step == Stop()
    assert waits.step == Wait(Reason.UNDER_REPLICATED, "ledgers are under-replicated; the drain continues once they are fully replicated")


def test_the_next_step_of_a_drain_is_decided_once_for_plan_and_status(monkeypatch):
    decided = []
    monkeypatch.setattr(state, "next_step", lambda bookie, rest: decided.append(bookie.number) or next_step(bookie, rest))
    observed = seen()
    plan_bookkeeper(observed, JOBS_IMAGE)
    summarize_bookkeeper(observed)
    assert decided == [3]


def test_a_drain_that_gets_on_is_looked_at_soon():
    observed = seen(metadata=HEALTHY, scan=replace(SCAN, seconds=20.0))
    assert plan_bookkeeper(told(observed, before=seen()), JOBS_IMAGE).requeue_after_seconds == 5.0


def test_a_claim_that_can_not_be_resized_has_the_ledgers_read_no_more_often():
    observed = seen(scan=replace(SCAN, seconds=20.0, to_act_by=False))
    there = dict(observed.objects.items)
    stored = there["PersistentVolumeClaim", "bk-bookie-0-ledgers"]
    spec = {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}
    there["PersistentVolumeClaim", "bk-bookie-0-ledgers"] = {**stored, "spec": spec, "status": {"phase": "Bound"}}
    made = plan_bookkeeper(told(replace(observed, objects=objects(there), expandable={"fast": True})), JOBS_IMAGE)
    assert [type(action) for action in made.actions] == [Resize]
    assert (made.needs_ledgers, made.requeue_after_seconds) == (False, pytest.approx(60.0))


def test_a_bookie_whose_stateful_set_somebody_deleted_while_its_identity_went_can_be_drained_again():
    """The operator starts it again. The ended Job would pass for the one that removes the identity which the bookie got back."""
    observed, job = seen(), {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "bk-bookie-3-retire", "uid": "its-uid"}}
    there = replace(observed, objects=objects(observed.objects.items, {("Job", "bk-bookie-3-retire"): job}))
    (removed,) = plan_bookkeeper(there, JOBS_IMAGE).actions
    assert isinstance(removed, Delete)
    assert (removed.kind, removed.uid) == ("Job", "its-uid")


@pytest.mark.parametrize(("now", "seconds"), [("2026-01-01T00:01:00Z", 20), ("2025-12-31T23:00:00Z", None)])
def test_how_long_a_drain_still_takes_is_left_open_where_clocks_differ(now, seconds):
    name, part = "bk-bookie-3-drain-1", replace(OPEN, closed=True, written=False, payload_bytes=100)
    record = {"metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"}, "data": {"bytes": "400"}}
    found = {("ConfigMap", name): {"kind": "ConfigMap", **record}, ("Job", name): {"kind": "Job", "metadata": {"name": name}}}
    observed = seen(scan=replace(SCAN, shares={LEAVING: (part,)}))
    observed = replace(observed, objects=objects(observed.objects.items, found), now=now)
    (told_of,) = [bookie["drain"] for bookie in summarize_bookkeeper(observed).fields["bookies"] if "drain" in bookie]
    assert told_of.get("secondsLeft") == seconds


ZONES = {0: "a", 1: "a", 2: "a", 3: "b"}


@pytest.mark.parametrize(
    ("situation", "zones", "minimum", "told"),
    [
        (
            "the only bookie of a zone leaves",
            ZONES,
            2,
            "the bookies that stay are in 1 rack (-/a), and each entry needs copies in 2",
        ),
        ("another one of the zone stays", {**ZONES, 2: "b"}, 2, None),
        ("one zone is enough", ZONES, 1, None),
        ("all are in one zone", dict.fromkeys(ZONES, "a"), 2, None),
        ("no rack is known", {}, 2, None),
    ],
)
def test_a_drain_asks_whether_the_racks_that_remain_satisfy_the_placement_rule(situation, zones, minimum, told):
    named, observed = BookKeeperNames(ObjectKey("demo", "bk")), seen()
    lines = format_racks({named.host(number): Rack(zone, None) for number, zone in zones.items()})
    stored = {("ConfigMap", named.racks_config_map): {"metadata": {"name": named.racks_config_map}, "data": {RACKS_KEY: lines}}}
    observed = replace(observed, objects=objects(observed.objects.items, stored))
    cluster = with_spec(SMALLER, placement=SMALLER.spec.placement.model_copy(update={"min_racks_per_write_quorum": minimum}))
    (drain,) = replace(observed, cluster=cluster).drains
    racks_missing = isinstance(drain.step, Wait) and drain.step.reason is Reason.TOO_FEW_RACKS
    assert racks_missing is (told is not None), situation
    assert told is None or told in drain.step.message


@pytest.mark.parametrize(
    ("situation", "zones", "minimum", "wait"),
    [
        ("two zones are left", {0: "a", 1: "b", 2: "a", 3: "b"}, 2, False),
        ("a node that was made anew has no zone yet", {0: "a", 1: None, 2: "a", 3: "b"}, 2, True),
        ("no node has a zone: each is a rack", {}, 2, False),
        ("the node of the bookie that leaves has no zone yet, and may be in another one", {0: "a", 1: "a", 2: "a"}, 2, True),
        ("one that stays has none: either two zones are left, or there was one only", {0: "a", 1: None, 2: "a", 3: "a"}, 2, False),
        ("one zone is enough, and no node of those that stay has one", {3: "a"}, 1, False),
    ],
)
def test_a_drain_takes_no_node_without_a_label_for_another_zone(situation, zones, minimum, wait):
    observed, machines = seen(), {}
    cluster = with_spec(SMALLER, placement=SMALLER.spec.placement.model_copy(update={"min_racks_per_write_quorum": minimum}))
    there = dict(observed.objects.items)
    for number, pod in enumerate(PODS):
        there["Pod", pod] = {**there["Pod", pod], "spec": {"nodeName": f"worker-{number}"}}
        machines[f"worker-{number}"] = Node(f"worker-{number}", {ZONE_LABEL: zones[number]} if zones.get(number) else {})
    (drain,) = replace(observed, cluster=cluster, objects=objects(there), machines=machines).drains
    assert (isinstance(drain.step, Wait) and drain.step.reason is Reason.TOO_FEW_RACKS) is wait, situation
