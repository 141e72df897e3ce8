"""A bookie that lost a disk: what is waited for, and that nothing of it goes while a ledger may need it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from situations import claim, live, objects, pods, quickstart, with_spec, with_status

from herdkeeper.bookkeeper.build.bookies import BookieIdentity, build_bookie
from herdkeeper.bookkeeper.plan.bookies import plan_bookkeeper
from herdkeeper.bookkeeper.plan.lost_bookie import NeedsLedgers, retire
from herdkeeper.bookkeeper.state.bookies import LedgerScan, LedgersMetadata, Marks, MetadataStore, Naming, RecoveryDelay
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.bookkeeper.state.lost_bookie import lost_bookie
from herdkeeper.bookkeeper.state.refusal import EMPTIED
from herdkeeper.codecs.bookkeeper.share import Place, Share
from herdkeeper.planning.actions import CloseLedger, Create, Delete, RemoveCookie, StartBookieAudit, Wait
from herdkeeper.shared import names
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

CLUSTER = with_spec(quickstart("BookKeeperCluster"), bookies=1)
STORE = MetadataStore("zk-0:2181", serving=True)
ROOT = "/demo/bk/ledgers"
OLD = "bk-bookie-0-aaaaaa"
OTHERS = frozenset({"bk-bookie-1-bbbbbb", "bk-bookie-2-cccccc", "bk-bookie-3-dddddd"})
METADATA = LedgersMetadata("an-instance", OTHERS, frozenset(), OTHERS | {OLD}, "an-auditor", under_replicated=True, marks=Marks(3, None))
NO_LEDGER = LedgerScan(7, 3, 3, {}, {bookie_id: Naming(7, 0, 3) for bookie_id in OTHERS})
CLAIMS = ("bk-bookie-0-journal", "bk-bookie-0-ledgers")
STATEFUL_SET = live([build_bookie(CLUSTER, BookieIdentity(0, OLD), STORE.address)])
DELETE_STATEFUL_SET = Delete("apps/v1", "StatefulSet", "bk-bookie-0", "uid-StatefulSet-bk-bookie-0", Reason.BOOKIE_RETIRED)


def claims(*kept, going=()):
    found = {}
    for name in (*kept, *going):
        found |= claim(name, **{names.BOOKIE_ID_ANNOTATION: OLD})
    for name in going:
        found[("PersistentVolumeClaim", name)]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return found


def naming(closed: int, still_open: int, largest: int = 3) -> LedgerScan:
    return replace(NO_LEDGER, naming={**NO_LEDGER.naming, OLD: Naming(closed, still_open, largest)})


EMPTIED_POD = pods(
    ["bk-bookie-0-0"],
    containerStatuses=[
        {"ready": False, "lastState": {"terminated": {"exitCode": EMPTIED, "message": "log\nrefused: both volumes are empty"}}}
    ],
)
ENDED_AT_NOON = {"terminated": {"exitCode": EMPTIED, "message": "refused: it is empty", "finishedAt": "2026-11-21T12:00:00Z"}}


def emptied_at_noon(unready_since: str):
    """Its pod found a volume empty at noon, and its process runs now."""
    unready = {"type": "Ready", "status": "False", "lastTransitionTime": unready_since}
    running = {"ready": False, "state": {"running": {}}, "lastState": ENDED_AT_NOON}
    return pods(["bk-bookie-0-0"], containerStatuses=[running], conditions=[unready])


PENDING_POD = pods(["bk-bookie-0-0"], phase="Pending")


def step(*parts, metadata=METADATA, scan=NO_LEDGER, cluster=CLUSTER):
    seen = BookieFleet(cluster, objects(*parts), STORE, metadata, ("eeeeee",), scan=scan)
    lost = lost_bookie(CLUSTER, 0, seen.objects, metadata)
    assert lost is not None
    return retire(seen, lost)


@pytest.mark.parametrize(
    ("situation", "parts", "why"),
    [
        ("both claims are gone", [STATEFUL_SET], "its claims bk-bookie-0-journal and bk-bookie-0-ledgers are gone"),
        ("one claim is gone", [STATEFUL_SET, claims(CLAIMS[1])], "its claim bk-bookie-0-journal is gone"),
        (
            "somebody deleted the claims of a bookie that does not serve",
            [STATEFUL_SET, claims(going=CLAIMS), PENDING_POD],
            "its claims bk-bookie-0-journal and bk-bookie-0-ledgers are being deleted",
        ),
        ("the entry point found a volume empty", [STATEFUL_SET, claims(*CLAIMS), EMPTIED_POD], "both volumes are empty"),
        ("only its cookie is left", [], "are gone"),
    ],
)
def test_a_lost_disk_is_recognised(situation, parts, why):
    lost = lost_bookie(CLUSTER, 0, objects(*parts), METADATA)
    assert lost is not None, situation
    assert lost.ids == (OLD,)
    assert why in lost.why


@pytest.mark.parametrize(
    ("situation", "parts", "metadata"),
    [
        ("it serves", [STATEFUL_SET, claims(*CLAIMS), pods(["bk-bookie-0-0"])], METADATA),
        ("it is away", [STATEFUL_SET, claims(*CLAIMS)], METADATA),
        ("it serves, though somebody deleted its claims", [STATEFUL_SET, claims(going=CLAIMS), pods(["bk-bookie-0-0"])], METADATA),
        ("it never was", [], replace(METADATA, cookies=OTHERS)),
        ("another number's cookie is there", [], replace(METADATA, cookies=frozenset({"bk-bookie-10-aaaaaa", "other-bookie-0-aaaaaa"}))),
    ],
)
def test_a_bookie_is_not_taken_for_lost(situation, parts, metadata):
    assert lost_bookie(CLUSTER, 0, objects(*parts), metadata) is None, situation


@pytest.mark.parametrize(("unready_since", "lost"), [("2026-11-21T11:59:50Z", True), ("2026-11-21T18:00:00Z", False)])
def test_a_bookie_that_served_since_a_volume_was_found_empty_is_not_lost_while_its_probe_fails(unready_since, lost):
    """Somebody put the volume right in place, and the next start found its data."""
    seen = objects(STATEFUL_SET, claims(*CLAIMS), emptied_at_noon(unready_since))
    assert (lost_bookie(CLUSTER, 0, seen, METADATA) is not None) is lost


@pytest.mark.parametrize(
    ("situation", "parts", "metadata", "expected"),
    [
        ("its pod and StatefulSet go first", [STATEFUL_SET, PENDING_POD], METADATA, DELETE_STATEFUL_SET),
        ("then, once nothing of it runs, its cookie", [], METADATA, RemoveCookie(STORE.address, ROOT, OLD)),
        ("claims that somebody deleted are let go with the pod", [STATEFUL_SET, claims(going=CLAIMS)], METADATA, DELETE_STATEFUL_SET),
    ],
)
def test_once_no_ledger_names_it_it_is_retired_step_by_step(situation, parts, metadata, expected):
    assert step(*parts, metadata=metadata) == expected, situation


def test_then_a_new_bookie_with_a_number_of_its_own_takes_its_place():
    three_and_a_new_one = with_spec(CLUSTER, bookies=4)
    seen = BookieFleet(three_and_a_new_one, objects(), STORE, replace(METADATA, cookies=OTHERS), ("eeeeee",), scan=NO_LEDGER)
    plan = plan_bookkeeper(seen, "herdkeeper/spark:0.2.0")
    made = [action.manifest["metadata"] for action in plan.actions if isinstance(action, Create)]
    assert [meta["name"] for meta in made] == ["bk-bookie-4-journal", "bk-bookie-4-ledgers"]
    assert {meta["annotations"][names.BOOKIE_ID_ANNOTATION] for meta in made} == {"bk-bookie-4-eeeeee"}


OFF = with_spec(CLUSTER, auto_recovery=CLUSTER.spec.auto_recovery.model_copy(update={"enabled": False}))


@pytest.mark.parametrize(
    ("situation", "parts", "changes", "reason", "told"),
    [
        ("ledgers name it", [STATEFUL_SET], {"scan": naming(5, 2)}, Reason.RECOVERING, "5 closed and 2 open ledgers still name"),
        (
            "only an open ledger names it",
            [STATEFUL_SET],
            {"scan": naming(0, 1)},
            Reason.RECOVERING,
            "0 closed and 1 open ledger still name",
        ),
        ("too few bookies are left to copy to", [STATEFUL_SET], {"scan": naming(5, 0, largest=4)}, Reason.RECOVERING, "raise spec.bookies"),
        ("the ledgers can't be read", [STATEFUL_SET], {"scan": Unknown("silent")}, Reason.UNREADABLE, "silent"),
        (
            "its session lives",
            [STATEFUL_SET],
            {"metadata": replace(METADATA, writable=OTHERS | {OLD})},
            Reason.RECOVERING,
            "still registered",
        ),
        ("nobody is auditor", [STATEFUL_SET], {"metadata": replace(METADATA, auditor=None)}, Reason.RECOVERING, "no auditor"),
        ("the spec has no autorecovery", [STATEFUL_SET], {"cluster": OFF}, Reason.CLAIM_LOST, "set spec.autoRecovery.enabled"),
        (
            "somebody switched autorecovery off",
            [STATEFUL_SET],
            {"metadata": replace(METADATA, replication_enabled=False)},
            Reason.CLAIM_LOST,
            "shell autorecovery -e",
        ),
        ("one claim is left", [STATEFUL_SET, claims(CLAIMS[1])], {}, Reason.CLAIM_LOST, "`kubectl delete pvc bk-bookie-0-ledgers -n demo`"),
        (
            "a finalizer keeps its claims",
            [claims(going=CLAIMS)],
            {},
            Reason.RECOVERING,
            "gone. If bk-bookie-0-journal, bk-bookie-0-ledgers stay, their finalizers",
        ),
        (
            "its disks are empty",
            [STATEFUL_SET, claims(*CLAIMS), EMPTIED_POD],
            {},
            Reason.CLAIM_LOST,
            "`kubectl delete pvc bk-bookie-0-journal bk-bookie-0-ledgers -n demo`",
        ),
    ],
)
def test_it_waits_and_says_for_what(situation, parts, changes, reason, told):
    waits = step(*parts, **changes)
    assert isinstance(waits, Wait), situation
    assert waits.reason is reason
    assert told in waits.message


def test_the_ledgers_are_read_only_when_the_rest_allows_it():
    assert step(STATEFUL_SET, scan=None) == NeedsLedgers()
    assert isinstance(step(STATEFUL_SET, scan=None, metadata=replace(METADATA, auditor=None)), Wait)
    assert isinstance(step(STATEFUL_SET, scan=None, metadata=replace(METADATA, marks=Marks(1000, None))), Wait)


def test_no_situation_takes_away_what_a_ledger_may_need():
    scans = (None, Unknown("unread"), NO_LEDGER, naming(1, 0), naming(0, 1))
    parts = (
        [],
        [STATEFUL_SET],
        [STATEFUL_SET, PENDING_POD],
        [STATEFUL_SET, EMPTIED_POD, claims(*CLAIMS)],
        [STATEFUL_SET, claims(CLAIMS[0])],
    )
    registered = (METADATA, replace(METADATA, writable=OTHERS | {OLD}), replace(METADATA, read_only=frozenset({OLD})))
    for scan, found, metadata in product(scans, parts, registered):
        if isinstance(step(*found, scan=scan, metadata=metadata), (Delete, RemoveCookie)):
            assert scan is NO_LEDGER
            assert metadata is METADATA
            assert not any(kind == "PersistentVolumeClaim" for part in found for kind, _ in part)


FOUR = with_status(with_spec(CLUSTER, bookies=4), next_bookie=4)
IDS = {0: OLD, 1: "bk-bookie-1-bbbbbb", 2: "bk-bookie-2-cccccc", 3: "bk-bookie-3-dddddd"}
LOST = {number: IDS[number] for number in (0, 1)}
DATABASE = quickstart("HerdDBCluster")
WRITER = "db-herddb-0"
MINUTES_AGO = RecoveryDelay(300, 7, changed_at=1_000_000.0)


def two_lost(scan, *, spares=0, emptied=(), **more):
    """Bookies 0 and 1 of four lost their claims, or found their volumes empty; as many new ones serve already."""
    numbers = (2, 3, *range(4, 4 + spares))
    ids = {number: IDS.get(number, f"bk-bookie-{number}-eeeeee") for number in numbers}
    kept = {}
    for number, bookie_id in {**ids, **{each: LOST[each] for each in emptied}}.items():
        for volume in ("journal", "ledgers"):
            kept |= claim(f"bk-bookie-{number}-{volume}", **{names.BOOKIE_ID_ANNOTATION: bookie_id})
    sets = live(build_bookie(FOUR, BookieIdentity(*identity), STORE.address) for identity in {**ids, **LOST}.items())
    metadata = LedgersMetadata(
        "an-instance", frozenset(ids.values()), frozenset(), frozenset({*ids.values(), *IDS.values()}), "an-auditor", under_replicated=False
    )
    found = objects(sets, kept, pods(f"bk-bookie-{number}-0" for number in numbers), EMPTIED_POD if emptied else {})
    seen = BookieFleet(FOUR, found, STORE, replace(metadata, **more), ("eeeeee",) * 4, scan=scan, now="1970-01-12T14:00:00Z")
    return plan_bookkeeper(seen, "herdkeeper/spark:0.2.0")


def told_of(closed, still_open, shares=None):
    named = {bookie_id: Naming(closed, still_open, 3) for bookie_id in (*LOST.values(), IDS[2])}
    return LedgerScan(closed + still_open, 3, 3, shares or {}, named if closed + still_open else {}, (DATABASE,))


def share(ledger_id, *, closed=False, writer=WRITER):
    return Share(ledger_id, (Place(0, 0),), closed, not closed, tablespace=None if writer is None else "herd", writer=writer)


def made(plan):
    return [action.manifest["metadata"]["name"] for action in plan.actions if isinstance(action, Create)]


def copied_sooner(plan):
    return [action for action in plan.actions if isinstance(action, (CloseLedger, StartBookieAudit))]


@pytest.mark.parametrize("scan", [None, Unknown("silent"), told_of(9, 1)], ids=["unread", "unreadable", "needed"])
def test_lost_bookies_are_replaced_at_once_under_new_numbers_while_ledgers_still_name_them(scan):
    plan = two_lost(scan)
    assert made(plan) == ["bk-bookie-4-journal", "bk-bookie-4-ledgers", "bk-bookie-5-journal", "bk-bookie-5-ledgers"]
    assert not [action for action in plan.actions if isinstance(action, (Delete, RemoveCookie))]


def test_what_all_lost_bookies_wait_for_is_told_together():
    plan = two_lost(told_of(9, 0))
    assert plan.wait is not None
    assert plan.wait.reason is Reason.RECOVERING
    for number in (0, 1):
        assert f"bookie {number} lost a disk" in plan.wait.message
    assert "2 are writable: others must start, or become writable" in plan.wait.message


def test_that_no_copy_of_entries_is_left_is_told_first_and_needs_a_person():
    plan = two_lost(replace(told_of(9, 0), uncopied=(7, 9)))
    assert plan.wait is not None
    assert plan.wait.reason is Reason.CLAIM_LOST
    assert plan.wait.message.startswith("2 ledgers have entries only on lost bookies (7, 9), which no bookie can copy")
    assert "bookie 1 lost a disk" in plan.wait.message


def test_open_ledgers_that_name_a_lost_bookie_are_closed_by_their_writers_as_soon_as_others_can_be_opened():
    shares = {IDS[0]: (share(7), share(8, closed=True)), IDS[1]: (share(7), share(9, writer=None), share(10, writer="a-stranger"))}
    assert copied_sooner(two_lost(told_of(9, 2, shares))) == []
    assert copied_sooner(two_lost(told_of(9, 2, shares), spares=1)) == [CloseLedger("db", WRITER, "herd", 7, Reason.RECOVERING)]


def test_ledgers_on_a_bookie_that_still_serves_without_a_claim_are_left_open_since_the_next_ones_would_be_there_too():
    shares = {IDS[0]: (share(7),), IDS[1]: (share(8),)}
    serving = frozenset({IDS[0], IDS[2], IDS[3]})
    assert copied_sooner(two_lost(told_of(9, 2, shares), writable=serving)) == [CloseLedger("db", WRITER, "herd", 8, Reason.RECOVERING)]


AUDIT = StartBookieAudit(STORE.address, ROOT, 300, 7, (IDS[0], IDS[1]))


@pytest.mark.parametrize(
    ("situation", "scan", "changes", "expected"),
    [
        ("nobody can come back", told_of(9, 0), {}, [AUDIT]),
        ("nothing names them", told_of(0, 0), {}, []),
        (
            "a ledger is open whose writer is not ours: to recover it would fence it",
            told_of(9, 1, {IDS[0]: (share(7, writer=None),)}),
            {},
            [],
        ),
        ("somebody else is away, and may come back", replace(told_of(9, 0), naming={**told_of(9, 0).naming, "x": Naming(1, 0, 3)}), {}, []),
        ("the auditor has marked ledgers", told_of(9, 0), {"under_replicated": True, "marks": Marks(3, None)}, []),
        ("it was asked a moment ago", told_of(9, 0), {"recovery_delay": replace(MINUTES_AGO, changed_at=1_000_750.0)}, []),
        ("another delay is due, which is written first", told_of(9, 0), {"recovery_delay": replace(MINUTES_AGO, seconds=10)}, []),
        ("no auditor has written a delay yet", told_of(9, 0), {"recovery_delay": None}, []),
        ("nobody is auditor", told_of(9, 0), {"auditor": None}, []),
        ("somebody switched autorecovery off", told_of(9, 0), {"replication_enabled": False}, []),
    ],
)
def test_the_auditor_is_asked_to_look_at_once_where_only_lost_bookies_are_away(situation, scan, changes, expected):
    assert copied_sooner(two_lost(scan, spares=2, **{"recovery_delay": MINUTES_AGO, **changes})) == expected, situation


def test_the_auditor_is_not_hurried_for_a_disk_that_was_found_empty_since_its_volume_may_come_back():
    lost = lost_bookie(CLUSTER, 0, objects(STATEFUL_SET, claims(*CLAIMS), EMPTIED_POD), METADATA)
    assert lost is not None
    assert not lost.for_good
    assert copied_sooner(two_lost(told_of(9, 0), spares=2, emptied=(0,), recovery_delay=MINUTES_AGO)) == []
