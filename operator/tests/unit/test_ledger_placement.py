"""Ledgers whose copies are in too few racks: which they are, when they are looked for, and what the status keeps of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from situations import objects, pods, with_spec, with_status
from test_plan_bookkeeper import CLUSTER, HEALTHY, IDENTITIES, JOBS_IMAGE, PODS, STORE, TOKENS, claims, settled

from herdkeeper.api.bookkeeper_cluster import PlacementCheck
from herdkeeper.bookkeeper.plan.bookies import plan_bookkeeper
from herdkeeper.bookkeeper.state.bookies import BeingScanned, LedgerScan
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.bookkeeper.status import summarize_bookkeeper
from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata, LedgerState, Segment
from herdkeeper.codecs.bookkeeper.placement import PlacementBreaches, PlacementRule, breaks_placement
from herdkeeper.codecs.bookkeeper.striping import has_entries_only_on
from herdkeeper.shared.names import ZONE_LABEL
from herdkeeper.shared.node import Node
from herdkeeper.shared.unknown import Unknown

RACKS = {"a1": "a", "a2": "a", "a3": "a", "b1": "b", "b2": "b", "c1": "c"}
TWO, THREE = PlacementRule(RACKS, 2, 3), PlacementRule(RACKS, 3, 3)


def ledger(*segments: tuple[int, tuple[str, ...]], write_quorum: int = 2, last: int | None = 99) -> LedgerMetadata:
    state, size = LedgerState.OPEN if last is None else LedgerState.CLOSED, len(segments[0][1])
    return LedgerMetadata(7, size, write_quorum, 2, state, None, last, tuple(Segment(first, bookies) for first, bookies in segments))


@pytest.mark.parametrize(
    ("situation", "metadata", "rule", "breaks"),
    [
        ("two racks", ledger((0, ("a1", "b1"))), TWO, False),
        ("one rack", ledger((0, ("a1", "a2"))), TWO, True),
        ("one rack is all that the rule asks for", ledger((0, ("a1", "a2"))), replace(TWO, minimum=1), False),
        ("one rack is all there is", ledger((0, ("a1", "a2"))), replace(TWO, possible=1), False),
        ("one copy can't be in two racks", ledger((0, ("a1", "a2")), write_quorum=1), TWO, False),
        ("striped: each write set is spread", ledger((0, ("a1", "b1", "a2", "b2"))), TWO, False),
        ("striped: one write set is not", ledger((0, ("a1", "a2", "b1", "b2"))), TWO, True),
        ("striped: the write set around the end is not", ledger((0, ("a1", "b1", "a2"))), TWO, True),
        ("three racks for three copies", ledger((0, ("a1", "b1", "c1")), write_quorum=3), THREE, False),
        ("two racks for three copies", ledger((0, ("a1", "b1", "b2")), write_quorum=3), THREE, True),
        ("two racks are possible", ledger((0, ("a1", "b1", "b2")), write_quorum=3), replace(THREE, possible=2), False),
        ("an earlier segment is not spread", ledger((0, ("a1", "a2")), (50, ("a1", "b1"))), TWO, True),
        ("an empty segment is not spread", ledger((0, ("a1", "a2")), (0, ("a1", "b1"))), TWO, False),
        ("a last segment without entries is not spread", ledger((0, ("a1", "b1")), (50, ("a1", "a2")), last=49), TWO, False),
        ("a closed ledger without entries", ledger((0, ("a1", "a2")), last=-1), TWO, False),
        (
            "the write set that is not spread has no entry",
            ledger((0, ("b1", "a1", "a2")), write_quorum=2, last=0),
            TWO,
            False,
        ),
        ("an open ledger's last segment may get entries", ledger((0, ("a1", "b1")), (50, ("a1", "a2")), last=None), TWO, True),
        ("the rack of one is not known", ledger((0, ("a1", "gone"))), TWO, False),
    ],
)
def test_each_write_set_must_be_in_as_many_racks_as_the_rule_asks_for_and_is_possible(situation, metadata, rule, breaks):
    assert breaks_placement(metadata, rule) is breaks, situation


@pytest.mark.parametrize(
    ("situation", "metadata", "only_there"),
    [
        ("one copy is elsewhere", ledger((0, ("a1", "b1"))), False),
        ("both copies are there", ledger((0, ("a1", "a2"))), True),
        ("striped: one write set is there", ledger((0, ("a1", "a2", "b1"))), True),
        ("striped: none is", ledger((0, ("a1", "b1", "a2", "b2"))), False),
        ("that write set has no entry", ledger((0, ("b1", "a1", "a2")), last=0), False),
        ("an earlier segment is there", ledger((0, ("a1", "a2")), (50, ("a1", "b1")), last=None), True),
        ("of an open ledger's last segment nobody knows the entries", ledger((0, ("a1", "b1")), (50, ("a1", "a2")), last=None), False),
        ("a closed ledger without entries", ledger((0, ("a1", "a2")), last=-1), False),
    ],
)
def test_a_ledger_has_entries_only_on_some_bookies(situation, metadata, only_there):
    assert has_entries_only_on(metadata, frozenset({"a1", "a2"})) is only_there, situation


def test_only_the_first_ledgers_are_named():
    assert PlacementBreaches.of(range(30, 0, -1)) == PlacementBreaches(30, tuple(range(1, 11)))


NOW, SOON, LATER = "2026-11-21T12:00:00Z", "2026-11-21T12:10:00Z", "2026-11-21T13:00:00Z"
ZONES = {f"worker-{number}": Node(f"worker-{number}", {ZONE_LABEL: f"zone-{number % 2}"}) for number in range(4)}
BROKEN = PlacementBreaches(2, (4, 9))
SCAN = LedgerScan(30, 3, 3, {}, {}, seconds=0.5, breaches=BROKEN)
FOUND = {"checkedAt": NOW, "nextCheckAt": SOON, "ledgers": 2, "firstLedgers": [4, 9]}


ONE_RACK = with_spec(CLUSTER, placement=CLUSTER.spec.placement.model_copy(update={"min_racks_per_write_quorum": 1}))


def seen(scan=None, machines=ZONES, now=NOW):
    running = pods(PODS)
    for number, name in enumerate(PODS):
        running["Pod", name]["spec"] = {"nodeName": f"worker-{number}"}
    return BookieFleet(
        CLUSTER, objects(settled(), *claims(0, 1, 2, 3), running), STORE, HEALTHY, TOKENS, machines=machines, scan=scan, now=now
    )


ONE_ZONE_AWAY = replace(HEALTHY, writable=frozenset(identity.bookie_id for identity in IDENTITIES if identity.number % 2))
UNCHANGED = {**FOUND, "checkedAt": "2026-11-21T11:55:00Z", "nextCheckAt": "2026-11-21T12:05:00Z"}


def after(**fields):
    """The cluster with what its status told before."""
    check = PlacementCheck(**{"checked_at": "2026-11-21T11:55:00Z", "next_check_at": "2026-11-21T12:05:00Z", **fields})
    return with_status(CLUSTER, placement_check=check, instance_id="an-instance")


@pytest.mark.parametrize(
    ("situation", "cluster", "observed", "due"),
    [
        ("never before", CLUSTER, seen(), True),
        ("not yet again", after(ledgers=2), seen(), False),
        ("again", after(ledgers=2), seen(now="2026-11-21T12:05:00Z"), True),
        ("a clock was ahead", after(ledgers=2, checked_at="2036-01-01T00:00:00Z", next_check_at="2036-01-01T00:10:00Z"), seen(), True),
        ("the ledgers were read just now", CLUSTER, seen(SCAN), False),
        ("a zone is away", CLUSTER, replace(seen(), metadata=ONE_ZONE_AWAY), True),
        ("one zone is all there is", CLUSTER, seen(machines=dict.fromkeys(ZONES, ZONES["worker-0"])), False),
        (
            "the spec asks for one rack",
            ONE_RACK,
            seen(),
            False,
        ),
        ("metadata can't be read", CLUSTER, replace(seen(), metadata=Unknown("silence")), False),
    ],
)
def test_the_ledgers_are_read_for_it_at_most_each_ten_minutes_and_only_where_racks_are(situation, cluster, observed, due):
    assert plan_bookkeeper(replace(observed, cluster=cluster), JOBS_IMAGE).needs_ledgers is due, situation


@pytest.mark.parametrize(
    ("situation", "cluster", "observed", "told"),
    [
        ("not looked at", CLUSTER, seen(), None),
        ("found", CLUSTER, seen(SCAN), FOUND),
        ("reading took long", CLUSTER, seen(replace(SCAN, seconds=36.0)), {**FOUND, "nextCheckAt": LATER}),
        (
            "too many ledgers",
            CLUSTER,
            seen(Unknown("there are 300000 ledgers")),
            {"checkedAt": NOW, "nextCheckAt": SOON, "message": "there are 300000 ledgers"},
        ),
        ("the ledgers are being scanned", CLUSTER, seen(BeingScanned.after("4 of 9")), None),
        ("a zone is away", after(ledgers=2, first_ledgers=(4, 9)), replace(seen(SCAN), metadata=ONE_ZONE_AWAY), UNCHANGED),
        ("one rack is all there is now", after(ledgers=2), seen(machines=dict.fromkeys(ZONES, ZONES["worker-0"])), None),
        ("something else is found, by a drain's scan", after(ledgers=1, first_ledgers=(4,)), seen(SCAN), FOUND),
    ],
)
def test_the_status_tells_how_many_ledgers_break_the_rule_and_which(situation, cluster, observed, told):
    assert summarize_bookkeeper(replace(observed, cluster=cluster)).fields["placementCheck"] == told, situation


@pytest.mark.parametrize("scan", [None, SCAN, Unknown("silence")])
def test_what_was_found_before_stays_until_the_next_check_finds_something_else(scan):
    before = after(ledgers=2, first_ledgers=(4, 9))
    told = summarize_bookkeeper(replace(seen(scan), cluster=before)).fields["placementCheck"]
    assert told == {**FOUND, "checkedAt": "2026-11-21T11:55:00Z", "nextCheckAt": "2026-11-21T12:05:00Z"}


def test_bookies_of_one_zone_name_in_two_regions_stand_in_two_racks():
    region = "topology.kubernetes.io/region"
    regions = {name: Node(name, {ZONE_LABEL: "zone-a", region: f"region-{name[-1]}"}) for name in ZONES}
    assert plan_bookkeeper(seen(machines=regions), JOBS_IMAGE).needs_ledgers
