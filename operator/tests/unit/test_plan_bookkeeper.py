"""Bookies: one metadata root, one identity per pair of disks, one disturbance at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from situations import claim, live, objects, pods, quickstart, with_spec, with_status

from herdkeeper.api.bookkeeper_cluster import AutoRecovery, Placement
from herdkeeper.bookkeeper.build.bookies import (
    BookieIdentity,
    Founded,
    build_autorecovery,
    build_bookie,
    build_bookie_token,
    build_bookies_shared,
    build_stopped_bookie,
)
from herdkeeper.bookkeeper.build.racks import build_racks
from herdkeeper.bookkeeper.drain.build import DrainSource, build_move, build_record
from herdkeeper.bookkeeper.plan.bookies import plan_bookkeeper
from herdkeeper.bookkeeper.plan.gate import restart_order
from herdkeeper.bookkeeper.state.bookies import LedgerScan, LedgersMetadata, MetadataAbsent, MetadataStore, Naming, RecoveryDelay
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.bookkeeper.state.racks import Rack
from herdkeeper.certificates.access import ledgers_access
from herdkeeper.codecs.bookkeeper.share import Place, Share
from herdkeeper.planning.actions import Apply, Create, Delete, FormatLedgersRoot, RemoveCookie, SetBookieMode, SetRecoveryDelay, Wait
from herdkeeper.shared import names
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

CLUSTER = quickstart("BookKeeperCluster")
STORE = MetadataStore("zk-0:2181", serving=True)
TOKENS = ("aaaaaa", "bbbbbb", "cccccc", "dddddd")
IDENTITIES = tuple(BookieIdentity(number, f"bk-bookie-{number}-{token}") for number, token in enumerate(TOKENS))
IDS = frozenset(identity.bookie_id for identity in IDENTITIES)
PODS = [f"bk-bookie-{number}-0" for number in range(4)]
HEALTHY = LedgersMetadata("an-instance", IDS, frozenset(), IDS, "bk-autorecovery-0", under_replicated=False)
WITHOUT_0 = replace(HEALTHY, writable=IDS - {IDENTITIES[0].bookie_id})
NEW = replace(HEALTHY, writable=frozenset(), cookies=frozenset(), auditor=None)


def claims(*numbers: int, kinds=("journal", "ledgers")):
    annotations = {number: {names.BOOKIE_ID_ANNOTATION: IDENTITIES[number].bookie_id} for number in numbers}
    found = [claim(f"bk-bookie-{number}-{kind}", **annotations[number]) for number in numbers for kind in kinds]
    for (made,) in map(dict.values, found):
        made["metadata"]["labels"] = names.labels(names.BOOKIE_COMPONENT, "BookKeeperCluster", "bk")
    return found


def settled(cluster=CLUSTER):
    racks = build_racks(cluster, {})
    made = [
        build_bookie_token(cluster, ""),
        *build_bookies_shared(cluster, STORE.address, Founded("an-instance", IDS, IDS)),
        racks,
        *build_autorecovery(cluster, STORE.address, {}),
    ]
    return live([*made, *(build_bookie(cluster, identity, STORE.address) for identity in IDENTITIES)])


JOBS_IMAGE = "herdkeeper/spark:0.2.0"


def ledgers(open_ensemble: int, naming: dict[str, Naming] | None = None) -> LedgerScan:
    return LedgerScan(7, open_ensemble, open_ensemble, {}, naming or {})


def plan(*parts, cluster=CLUSTER, metadata=HEALTHY, store=STORE, scan=ledgers(0), disruption=None):  # noqa: B008 - it never changes
    """What is planned once the ledgers were looked at, where that is needed."""
    seen = BookieFleet(cluster, objects(*parts), store, metadata, TOKENS, disruption=disruption)
    made = plan_bookkeeper(seen, JOBS_IMAGE)
    return plan_bookkeeper(replace(seen, scan=scan), JOBS_IMAGE) if made.needs_ledgers else made


def names_of(plan, kind, action=Apply):
    return [step.manifest["metadata"]["name"] for step in plan.actions if isinstance(step, action) and step.manifest["kind"] == kind]


def test_without_an_ensemble_or_an_answer_of_it_nothing_is_done():
    for made in (plan(store=Problem(Reason.WAITING_FOR_ZOOKEEPER, "not there")), plan(metadata=Unknown("no answer"))):
        assert made.actions == ()
        assert made.wait is not None


def test_the_metadata_root_is_made_where_nothing_is_and_nothing_else_with_it():
    assert plan(metadata=MetadataAbsent()).actions == (FormatLedgersRoot(STORE.address, "/demo/bk/ledgers"),)


def test_on_an_ensemble_with_certificates_the_metadata_root_is_guarded():
    address = names.ZooKeeperNames(names.ObjectKey("demo", "zk")).address(3, names.ZOOKEEPER_SECURE_PORT)
    seen = plan(metadata=MetadataAbsent(), store=MetadataStore(address, serving=True))
    assert seen.actions == (FormatLedgersRoot(address, "/demo/bk/ledgers", ledgers_access(CLUSTER.key)),)


@pytest.mark.parametrize(
    ("situation", "parts", "cluster"),
    [
        ("a claim is left of an earlier life", claims(0, kinds=("journal",)), CLUSTER),
        ("the status knows an instance id", [], with_status(CLUSTER, instance_id="an-instance")),
    ],
)
def test_metadata_that_was_there_before_is_never_made_anew(situation, parts, cluster):
    made = plan(*parts, cluster=cluster, metadata=MetadataAbsent())
    assert made.actions == (), situation
    assert made.wait is not None
    assert made.wait.reason is Reason.METADATA_LOST


def test_bookies_are_not_started_with_the_metadata_of_another_cluster():
    made = plan(*claims(0, 1, 2, 3), cluster=with_status(CLUSTER, instance_id="the-first"))
    assert made.actions == ()
    assert made.wait is not None
    assert made.wait.reason is Reason.METADATA_LOST
    assert plan(*claims(0, 1, 2, 3), cluster=with_status(CLUSTER, instance_id="an-instance")).actions != ()


def test_without_its_status_the_bookies_own_objects_tell_whose_metadata_theirs_is():
    kept = {key: item for key, item in settled().items() if key[0] == "ConfigMap"}
    foreign = replace(HEALTHY, instance_id="another")
    for made in (plan(*claims(0, 1, 2, 3), kept, metadata=foreign), plan(kept, metadata=MetadataAbsent())):
        assert made.actions == ()
        assert made.wait is not None
        assert made.wait.reason is Reason.METADATA_LOST


def test_the_metadata_root_waits_until_the_whole_ensemble_serves():
    made = plan(metadata=MetadataAbsent(), store=replace(STORE, serving=False))
    assert made.actions == ()


def test_both_claims_of_a_new_bookie_carry_the_same_fresh_identity():
    made = plan(metadata=NEW)
    created = [step.manifest["metadata"] for step in made.actions if isinstance(step, Create)]
    assert len(created) == 8
    for identity in IDENTITIES:
        own = [item for item in created if item["name"].startswith(f"bk-bookie-{identity.number}-")]
        assert [item["annotations"][names.BOOKIE_ID_ANNOTATION] for item in own] == [identity.bookie_id] * 2


def test_a_quota_that_refuses_the_claims_of_a_new_bookie_holds_up_nothing_else():
    """Its claims come last, before its StatefulSet: a bookie with a StatefulSet and without claims would count as lost."""
    kept = settled()
    del kept["StatefulSet", "bk-bookie-2"]
    made = plan(
        *claims(0, 1, 2),
        {of: item for of, item in kept.items() if "bookie-3" not in of[1]},
        pods(PODS[:3]),
        metadata=replace(HEALTHY, writable=IDS - {IDENTITIES[3].bookie_id}, cookies=IDS - {IDENTITIES[3].bookie_id}),
    )
    shown = [step.manifest["metadata"]["name"] for step in made.actions if isinstance(step, (Create, Apply))]
    assert shown[-4:] == ["bk-bookie-2", "bk-bookie-3-journal", "bk-bookie-3-ledgers", "bk-bookie-3"]


def test_of_new_bookies_those_with_claims_start_first_since_a_quota_may_refuse_the_others():
    made = plan(*claims(1, 3), metadata=NEW)
    shown = [step.manifest["metadata"]["name"] for step in made.actions if isinstance(step, (Create, Apply))]
    first, second = (f"bk-bookie-{number}" for number in (4, 5))
    expected = ["bk-bookie-1", "bk-bookie-3"]
    expected += [first + "-journal", first + "-ledgers", first, second + "-journal", second + "-ledgers", second]
    assert shown[-8:] == expected


def test_a_pair_that_was_cut_off_after_the_first_claim_is_completed_with_that_claim_s_identity():
    annotated = claim("bk-bookie-0-journal", **{names.BOOKIE_ID_ANNOTATION: "bk-bookie-0-zzzzzz"})
    made = plan(annotated, metadata=NEW)
    completed = next(step.manifest for step in made.actions if isinstance(step, Create))
    assert completed["metadata"]["name"] == "bk-bookie-0-ledgers"
    assert completed["metadata"]["annotations"][names.BOOKIE_ID_ANNOTATION] == "bk-bookie-0-zzzzzz"


@pytest.mark.parametrize(
    ("situation", "parts", "metadata"),
    [
        ("its cookie is there", claims(1, 2, 3), WITHOUT_0),
        ("its StatefulSet is there", [*claims(1, 2, 3), settled()], replace(WITHOUT_0, cookies=IDS - {IDENTITIES[0].bookie_id})),
        ("one of its claims is gone", [*claims(1, 2, 3), *claims(0, kinds=("journal",)), settled()], WITHOUT_0),
    ],
)
def test_a_bookie_that_served_gets_no_empty_volume_while_ledgers_name_it(situation, parts, metadata):
    made = plan(*parts, metadata=metadata, scan=ledgers(3, {IDENTITIES[0].bookie_id: Naming(1, 0, 3)}))
    assert [name for name in names_of(made, "PersistentVolumeClaim", Create) if "bookie-0" in name] == [], situation
    assert not any(isinstance(step, (Delete, RemoveCookie)) for step in made.actions), situation
    assert made.wait is not None
    assert made.wait.reason is Reason.RECOVERING


def test_claims_of_two_different_bookies_are_not_joined():
    other = claim("bk-bookie-0-ledgers", **{names.BOOKIE_ID_ANNOTATION: "bk-bookie-0-zzzzzz"})
    made = plan(*claims(0, 1, 2, 3), other)
    assert made.wait is not None
    assert made.wait.reason is Reason.CLAIM_LOST
    assert "bk-bookie-0" not in names_of(made, "StatefulSet")


def test_autorecovery_starts_once_a_bookie_has_registered_since_an_auditor_without_bookies_ends_itself():
    assert names_of(plan(metadata=NEW), "Deployment") == []
    assert names_of(plan(*claims(0, 1, 2, 3)), "Deployment") == ["bk-autorecovery"]


def test_a_settled_cluster_gets_nothing():
    made = plan(*claims(0, 1, 2, 3), settled(), pods(PODS))
    assert (made.actions, made.wait, made.requeue_after_seconds) == ((), None, None)


CHANGED = with_spec(CLUSTER, image="herdkeeper/bookkeeper:0.3.0")


BEFORE, NOW = "bk-before", "bk-now"


def due(*numbers: int, cluster=CHANGED, **status: Any):
    """Bookies with StatefulSets as they shall be, and pods: those of these numbers made from the template before."""
    found = settled(cluster)
    for (kind, _), item in found.items():
        if kind == "StatefulSet":
            item["status"] = {"observedGeneration": 0, "updateRevision": NOW}
    made = pods(PODS, **status)
    for number, pod in enumerate(PODS):
        made["Pod", pod]["metadata"]["labels"] = {names.REVISION_LABEL: BEFORE if number in numbers else NOW}
    return {**found, **made}


def rolled(cluster=CHANGED, outdated=(0, 1, 2, 3), **seen):
    return plan(*claims(0, 1, 2, 3), due(*outdated, cluster=cluster), cluster=cluster, **seen)


def restarted(made) -> list[str]:
    return [step.name for step in made.actions if isinstance(step, Delete) and step.kind == "Pod"]


NOT_READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}


def with_pods(found, names_of_pods, **status: Any):
    """The same, with another status of these pods."""
    changed = {("Pod", name): {**found["Pod", name], "status": status} for name in names_of_pods}
    return plan(*claims(0, 1, 2, 3), {**found, **changed}, cluster=CHANGED, metadata=status_of(names_of_pods))


def status_of(away) -> LedgersMetadata:
    gone = {identity.bookie_id for identity in IDENTITIES if f"bk-bookie-{identity.number}-0" in away}
    return replace(HEALTHY, writable=IDS - gone)


def left_by_a_drain(how: str):
    """The record and the Job of the first round of a drain of bookie 3 that was taken back."""
    share = Share(9, (Place(0, 2),), closed=False, written=False)
    round_1 = live(
        (build_record(CLUSTER, IDENTITIES[3], 1, (share,)), build_move(CLUSTER, IDENTITIES[3], 1, DrainSource(STORE.address, JOBS_IMAGE)))
    )
    round_1["Job", "bk-bookie-3-drain-1"]["status"] = {"conditions": [{"type": how, "status": "True"}]} if how else {}
    return round_1


def test_of_a_drain_that_was_taken_back_the_record_stays_until_all_of_it_is_read_back_and_names_no_open_ledger():
    whole = (*claims(0, 1, 2, 3), settled(), pods(PODS))
    for how in ("Failed", ""):
        job, kept = plan(*whole, left_by_a_drain(how)).actions
        assert isinstance(job, Delete)
        assert isinstance(kept, Apply)
        assert (job.kind, kept.manifest["data"]["record"], kept.manifest["data"]["open"]) == ("Job", "9 0:2\n", "")
        assert kept.manifest["metadata"]["uid"] == "uid-ConfigMap-bk-bookie-3-drain-1"
        assert plan(*whole, {("ConfigMap", "bk-bookie-3-drain-1"): kept.manifest}).actions == ()
    proven = plan(*whole, left_by_a_drain("Complete")).actions
    assert [(action.kind, action.name) for action in proven if isinstance(action, Delete)] == [
        ("ConfigMap", "bk-bookie-3-drain-1"),
        ("Job", "bk-bookie-3-drain-1"),
    ]


def evictions(budget, pods_there: int, ready: int) -> int:
    """How many pods may be evicted, by Kubernetes' disruption controller. What may be unavailable it takes off the replicas of those
    StatefulSets of which there is a pod: here one each.
    """
    least, most_away = budget["spec"]["minAvailable"], budget["spec"]["maxUnavailable"]
    return max(0, ready - (pods_there - most_away if least is None else least))


@pytest.mark.parametrize(
    ("situation", "changes", "bookies"),
    [
        ("all are wanted", {}, 4),
        ("one leaves, and serves until all is moved", {"cluster": with_spec(CLUSTER, bookies=3)}, 4),
        ("of one no pod is made, such as for a quota", {"metadata": WITHOUT_0}, 4),
        ("a further one is not made yet", {"cluster": with_spec(CLUSTER, bookies=5)}, 4),
    ],
)
def test_no_bookie_may_be_evicted_beside_one_that_has_no_pod(situation, changes, bookies):
    found = {key: item for key, item in settled().items() if key[0] != "PodDisruptionBudget"}
    made = plan(*claims(0, 1, 2, 3), found, pods(PODS), **changes)
    (budget,) = (step.manifest for step in made.actions if isinstance(step, Apply) and step.manifest["kind"] == "PodDisruptionBudget")
    assert evictions(budget, bookies, bookies) == 1, situation
    assert evictions(budget, bookies - 1, bookies - 1) == 0, situation


def test_a_bookie_that_is_stopped_for_good_holds_up_no_eviction():
    fewer, found = with_spec(CLUSTER, bookies=3), settled()
    stopped = live([build_stopped_bookie(fewer, IDENTITIES[3], STORE.address)])
    made = plan(*claims(0, 1, 2, 3), {**found, **stopped}, pods(PODS[:3]), cluster=fewer, metadata=status_of(PODS[3:]))
    (budget,) = (step.manifest for step in made.actions if isinstance(step, Apply) and step.manifest["kind"] == "PodDisruptionBudget")
    assert evictions(budget, 3, 3) == 1
    assert evictions(budget, 2, 2) == 0


@pytest.mark.parametrize(("ready", "expected"), [(True, 1), (False, 0)])
def test_a_bookie_whose_drain_was_taken_back_is_made_writable_once_its_pod_answers(ready, expected):
    found = claims(0, 1, 2, 3)
    found[0]["PersistentVolumeClaim", "bk-bookie-0-journal"]["metadata"]["annotations"][names.DRAINING_ANNOTATION] = "2026-01-01T00:00:00Z"
    read_only = replace(WITHOUT_0, read_only=frozenset({IDENTITIES[0].bookie_id}))
    made = plan(*found, settled(), pods(PODS), {} if ready else pods(PODS[:1], **NOT_READY), metadata=read_only)
    orders = [action for action in made.actions if isinstance(action, SetBookieMode)]
    assert [(order.bookie_id, order.read_only) for order in orders] == [(IDENTITIES[0].bookie_id, False)] * expected


def test_a_claim_that_lost_its_labels_gets_them_back():
    bare, *others = claims(0, 1, 2, 3)
    bare["PersistentVolumeClaim", "bk-bookie-0-journal"]["metadata"]["labels"] = {}
    (labelled,) = plan(bare, *others, settled(), pods(PODS)).actions
    assert isinstance(labelled, Apply)
    assert (labelled.manifest["metadata"]["uid"], "spec" in labelled.manifest) == ("uid-bk-bookie-0-journal", False)
    assert labelled.manifest["metadata"]["labels"][names.OWNER_NAME_LABEL] == "bk"


def test_a_changed_template_is_stored_at_once_and_touches_no_bookie():
    made = plan(*claims(0, 1, 2, 3), settled(), pods(PODS), cluster=CHANGED)
    assert names_of(made, "StatefulSet") == [f"bk-bookie-{number}" for number in range(4)]
    assert restarted(made) == []
    strategies = {step.manifest["spec"]["updateStrategy"]["type"] for step in made.actions if step.manifest["kind"] == "StatefulSet"}
    assert strategies == {"OnDelete"}


def test_a_change_reaches_one_serving_bookie_at_a_time():
    made = rolled()
    assert restarted(made) == [PODS[0]]
    assert made.wait is not None
    assert made.wait.reason is Reason.WAITING_FOR_OTHERS


LARGER = with_spec(CHANGED, bookies=5)
FIFTH = BookieIdentity(4, "bk-bookie-4-eeeeee")


@pytest.mark.parametrize(
    ("situation", "kinds", "made", "expected"),
    [
        ("its claims are refused", (), False, ["bk-bookie-0-0"]),
        ("one of its claims is refused", ("journal",), False, ["bk-bookie-0-0"]),
        ("its StatefulSet is refused", ("journal", "ledgers"), False, ["bk-bookie-0-0"]),
        ("its pod is refused, and would take the place of the one that restarts", ("journal", "ledgers"), True, []),
    ],
)
def test_a_roll_goes_on_while_a_quota_refuses_to_make_a_new_bookie(situation, kinds, made, expected):
    parts = [claim(f"bk-bookie-4-{kind}", **{names.BOOKIE_ID_ANNOTATION: FIFTH.bookie_id}) for kind in kinds]
    stateful_set = live([build_bookie(LARGER, FIFTH, STORE.address)]) if made else {}
    found = plan(*claims(0, 1, 2, 3), *parts, due(0, 1, cluster=LARGER), stateful_set, cluster=LARGER)
    assert restarted(found) == expected, situation
    order = [type(step) for step in found.actions if isinstance(step, (Create, Delete)) or step.manifest["kind"] == "StatefulSet"]
    assert made or order == [Delete, *[Create] * (2 - len(kinds)), Apply], situation


def test_of_registered_bookies_none_of_which_is_ready_one_is_restarted_at_a_time():
    made = plan(*claims(0, 1, 2, 3), due(0, 1, 2, 3, **NOT_READY), cluster=CHANGED)
    assert restarted(made) == [PODS[0]]
    ensembles = plan(*claims(0, 1, 2, 3), due(0, 1, 2, 3, **NOT_READY), cluster=CHANGED, scan=ledgers(4))
    assert restarted(ensembles) == []


@pytest.mark.parametrize(
    ("situation", "status", "first"),
    [
        ("its process has ended", {"containerStatuses": [{"name": "bookie", "state": {"terminated": {"exitCode": 137}}}]}, 3),
        ("its pod was evicted", {"phase": "Failed"}, 3),
        ("its process runs", {"containerStatuses": [{"name": "bookie", "state": {"running": {}}}]}, 0),
        ("somebody's sidecar fails", {"containerStatuses": [{"name": "proxy", "state": {"waiting": {}}}]}, 0),
    ],
)
def test_no_bookie_is_restarted_beside_one_that_has_ended_and_is_still_registered(situation, status, first):
    found = due(0, 1, 2, 3, **NOT_READY)
    found["Pod", PODS[3]]["status"] = {**NOT_READY, **status}
    assert restarted(plan(*claims(0, 1, 2, 3), found, cluster=CHANGED)) == [PODS[first]], situation
    found["Pod", PODS[3]]["metadata"]["labels"] = {names.REVISION_LABEL: NOW}
    assert restarted(plan(*claims(0, 1, 2, 3), found, cluster=CHANGED)) == ([] if first else [PODS[0]]), situation


def test_a_bookie_that_is_ready_waits_for_a_registered_one_that_is_not():
    found = due(1)
    found["Pod", PODS[3]]["status"] = NOT_READY
    assert restarted(plan(*claims(0, 1, 2, 3), found, cluster=CHANGED)) == []


def test_what_does_not_serve_is_restarted_one_at_a_time_too():
    away = {"phase": "Pending", "containerStatuses": [{"name": "bookie", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}
    found = due(1, 2, 3)
    assert restarted(with_pods(found, PODS[1:], **away)) == [PODS[1]]
    being_made = {key: item for key, item in due(2, 3).items() if key != ("Pod", PODS[1])}
    assert restarted(with_pods(being_made, PODS[2:], **away)) == []


def test_a_bookie_on_a_bad_template_is_made_anew_once_that_is_put_right_and_those_that_serve_stay():
    bad = {"phase": "Pending", "containerStatuses": [{"name": "bookie", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}
    made = with_pods(due(2), [PODS[2]], **bad)
    assert restarted(made) == [PODS[2]]


@pytest.mark.parametrize(
    ("situation", "changes"),
    [
        ("ledgers are under-replicated", {"metadata": replace(HEALTHY, under_replicated=True)}),
        ("somebody switched autorecovery off", {"metadata": replace(HEALTHY, replication_enabled=False)}),
        ("no auditor is elected", {"metadata": replace(HEALTHY, auditor=None)}),
        ("not all ZooKeeper members serve", {"store": replace(STORE, serving=False)}),
        ("a ledger names a bookie that nobody marked as lost yet", {"scan": ledgers(3, {"bk-bookie-9-zzzzzz": Naming(1, 0, 3)})}),
        ("an open ledger's ensemble needs every bookie", {"scan": ledgers(4)}),
        ("the ledgers can't be read", {"scan": Unknown("ZooKeeper is silent")}),
        ("a SQL node restarts", {"scan": ledgers(3), "disruption": "db-herddb-1 is not Ready (starting)"}),
    ],
)
def test_no_serving_bookie_is_changed_while_the_stack_is_not_whole(situation, changes):
    made = rolled(**changes)
    assert restarted(made) == [], situation
    assert made.wait is not None
    assert made.wait.reason is Reason.WAITING_FOR_OTHERS


def test_a_roll_that_waits_for_copies_says_that_nobody_makes_them():
    off = with_spec(CHANGED, auto_recovery=AutoRecovery(enabled=False))
    made = rolled(cluster=off, metadata=replace(HEALTHY, under_replicated=True, auditor=None))
    assert made.wait is not None
    assert made.wait.message.endswith("ledgers are under-replicated, and nobody copies them: set spec.autoRecovery.enabled")


def test_no_bookie_is_restarted_while_one_that_lost_its_volumes_is_still_registered_and_ledgers_name_it():
    """Its session outlives it. The bookie that restarts may have the last copies, and the lost one takes no entries."""
    lost, other = IDENTITIES[3].bookie_id, IDENTITIES[1].bookie_id
    found = {key: item for key, item in due(0, 1, 2).items() if key != ("Pod", PODS[3])}
    for named, ensemble, expected in ((lost, 2, []), (other, 2, [PODS[0]]), (other, 3, [])):
        made = plan(*claims(0, 1, 2), found, cluster=CHANGED, scan=ledgers(ensemble, {named: Naming(1, 0, ensemble)}))
        assert restarted(made) == expected, (named, ensemble)


def test_what_needs_a_person_is_told_before_what_a_roll_or_a_volume_that_grows_waits_for():
    found = {key: item for key, item in due(0, 1, 2).items() if key != ("Pod", PODS[3])}
    parts = (*claims(0, 1, 2), *claims(3, kinds=("ledgers",)), found)
    without_3 = replace(HEALTHY, writable=IDS - {IDENTITIES[3].bookie_id})
    made = plan(*parts, cluster=CHANGED, metadata=without_3, disruption="db-herddb-1 is not Ready")
    assert [blocker.partition(":")[0] for blocker in made.blockers] == ["ClaimLost", *["WaitingForOthers"] * 3]
    assert made.wait is not None
    assert made.wait.reason is Reason.CLAIM_LOST


def test_a_drain_waits_while_a_bookie_that_lost_its_volumes_is_still_registered_and_ledgers_name_it():
    lost = IDENTITIES[0].bookie_id
    fewer = with_spec(CLUSTER, bookies=3, drain=(3,))
    found = {key: item for key, item in due().items() if key != ("Pod", PODS[0])}
    seen = objects(*claims(1, 2, 3), found)
    fleet = BookieFleet(fewer, seen, STORE, HEALTHY, TOKENS, scan=ledgers(1, {lost: Naming(1, 0, 1)}))
    (drain,) = fleet.drains
    assert isinstance(drain.step, Wait)
    assert f"1 ledger names bookies that are away or lost volumes ({lost})" in drain.step.message


def test_whoever_takes_the_risk_restarts_bookies_without_one_to_spare():
    bold = with_spec(CHANGED, roll_without_spare_bookie=True)
    assert restarted(rolled(bold, scan=ledgers(4))) == [PODS[0]]


ENFORCED = with_spec(CHANGED, placement=Placement(enforced=True))


@pytest.mark.parametrize(
    ("situation", "racks", "cluster", "expected"),
    [
        ("its zone has another one", "aabb", ENFORCED, [PODS[0]]),
        ("it is the only one of its zone, and each ledger must be in two", "abbb", ENFORCED, []),
        ("as well as possible is enough", "abbb", CHANGED, [PODS[0]]),
        ("a person takes the risk", "abbb", with_spec(ENFORCED, roll_without_spare_bookie=True), [PODS[0]]),
        ("all are in one zone, so that no ledger can be opened anyway", "aaaa", ENFORCED, [PODS[0]]),
    ],
)
def test_with_enforced_placement_no_bookie_is_restarted_in_whose_place_a_writer_finds_no_other(situation, racks, cluster, expected):
    hosts = {f"bk-bookie-{number}-0.bk-bookie.demo.svc": Rack(name, None) for number, name in enumerate(racks)}
    found = {**due(0, cluster=cluster), **live([build_racks(cluster, hosts)])}
    made = plan(*claims(0, 1, 2, 3), found, cluster=cluster, scan=ledgers(3))
    assert restarted(made) == expected, situation
    assert expected or (made.wait is not None and "in 1 rack (-/b), and spec.placement.enforced wants copies in 2" in made.wait.message)


def test_bookies_do_not_wait_for_sql_nodes_that_lack_bookies():
    bold = with_spec(CHANGED, roll_without_spare_bookie=True)
    made = rolled(bold, scan=ledgers(5), disruption="db-herddb-1 is not Ready (starting)")
    assert restarted(made) == [PODS[0]]


def test_the_ledgers_are_looked_at_only_for_a_step_that_needs_it():
    seen = BookieFleet(CLUSTER, objects(*claims(0, 1, 2, 3), settled(), pods(PODS)), STORE, HEALTHY, TOKENS)
    assert not plan_bookkeeper(seen, JOBS_IMAGE).needs_ledgers
    rolling = replace(seen, cluster=CHANGED, objects=objects(*claims(0, 1, 2, 3), due(0)))
    assert plan_bookkeeper(rolling, JOBS_IMAGE).needs_ledgers


@pytest.mark.parametrize(
    ("situation", "changes"),
    [
        ("another bookie is away", {"metadata": status_of([PODS[1]])}),
        ("ledgers are under-replicated", {"metadata": replace(HEALTHY, under_replicated=True)}),
        ("not all ZooKeeper members serve", {"store": replace(STORE, serving=False)}),
    ],
)
def test_the_ledgers_are_not_read_while_a_restart_waits_for_something_else(situation, changes):
    found = objects(*claims(0, 1, 2, 3), due(0, 2, 3))
    made = plan_bookkeeper(replace(BookieFleet(CHANGED, found, STORE, HEALTHY, TOKENS), **changes), JOBS_IMAGE)
    assert (made.needs_ledgers, restarted(made)) == (False, []), situation
    assert made.wait is not None


def test_bookies_are_restarted_rack_after_rack_and_those_that_are_read_only_last():
    racks = {f"bk-bookie-{number}-0.bk-bookie.demo.svc": Rack(name, None) for number, name in enumerate("baab")}
    read_only = replace(HEALTHY, writable=IDS - {IDENTITIES[1].bookie_id}, read_only=frozenset({IDENTITIES[1].bookie_id}))
    fleet = BookieFleet(CLUSTER, objects(settled(), live([build_racks(CLUSTER, racks)])), STORE, HEALTHY, TOKENS)
    assert [identity.number for identity in restart_order(fleet, IDENTITIES)] == [1, 2, 0, 3]
    assert [identity.number for identity in restart_order(replace(fleet, metadata=read_only), IDENTITIES)] == [2, 0, 3, 1]


def autorecovery_runs():
    found = settled()
    deployment = found[("Deployment", "bk-autorecovery")]
    return {**found, ("Deployment", "bk-autorecovery"): {**deployment, "status": {"readyReplicas": 1}}}


@pytest.mark.parametrize(
    ("situation", "parts", "changed"),
    [
        ("all bookies serve", [autorecovery_runs(), pods(PODS)], True),
        ("a bookie does not serve", [autorecovery_runs(), pods(PODS[1:])], False),
        ("autorecovery does not run", [settled(), pods(PODS[1:])], True),
    ],
)
def test_autorecovery_is_changed_while_no_bookie_is_disturbed(situation, parts, changed):
    auto = CLUSTER.spec.auto_recovery.model_copy(update={"bytes_per_second": "50Mi"})
    made = plan(*claims(0, 1, 2, 3), *parts, cluster=with_spec(CLUSTER, auto_recovery=auto))
    assert names_of(made, "Deployment") == (["bk-autorecovery"] if changed else []), situation


@pytest.mark.parametrize(
    ("situation", "status", "expected"),
    [
        ("its pods are as declared", {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}, None),
        ("there is none yet", {}, None),
        ("no node has room for the new one", {"replicas": 2, "updatedReplicas": 1, "readyReplicas": 1}, "no node has 64Gi"),
        ("a quota refuses the new one", {"replicas": 1, "readyReplicas": 1}, "no pod, see its controller's events"),
    ],
)
def test_autorecovery_whose_new_pod_does_not_start_is_told_while_the_old_one_goes_on(situation, status, expected):
    found = settled()
    found["Deployment", "bk-autorecovery"]["status"] = status
    unscheduled = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node has 64Gi"}]}
    new = pods(["bk-autorecovery-b"], phase="Pending", **unscheduled)
    new["Pod", "bk-autorecovery-b"]["metadata"]["labels"] = {names.COMPONENT_LABEL: names.AUTORECOVERY_COMPONENT}
    made = plan(*claims(0, 1, 2, 3), found, pods(PODS), new if status.get("replicas") == 2 else {})
    assert made.actions == (), situation
    assert (made.wait is None) == (expected is None), situation
    assert made.wait is None or (made.wait.reason, str(expected) in made.wait.message) == (Reason.ROLLING, True), situation


def test_a_new_pod_of_autorecovery_that_does_not_start_hides_no_bookie_that_does_not_serve():
    """A condition has one reason: what a plan waits for is told there instead of the bookie's trouble."""
    found = settled()
    found["Deployment", "bk-autorecovery"]["status"] = {"replicas": 2, "updatedReplicas": 1, "readyReplicas": 1}
    failing = pods(["bk-bookie-2-0"], conditions=[])
    assert plan(*claims(0, 1, 2, 3), found, pods(PODS), failing).wait is None


def test_a_rate_above_what_bookkeeper_can_read_is_the_highest_that_it_can():
    """With 2Gi and more neither autorecovery nor a drain's Job would start."""
    auto = CLUSTER.spec.auto_recovery.model_copy(update={"bytes_per_second": "2Gi"})
    cluster = with_spec(CLUSTER, auto_recovery=auto)
    config, _ = build_autorecovery(cluster, STORE.address, {})
    assert "replicationRateByBytes=2147483647\n" in "".join(config["data"].values())
    job = build_move(cluster, IDENTITIES[3], 1, DrainSource(STORE.address, JOBS_IMAGE))
    assert job["spec"]["template"]["spec"]["initContainers"][0]["args"][-1] == "2147483647"


def test_a_bookie_that_does_not_serve_is_changed_first_and_the_others_wait_for_it():
    assert restarted(with_pods(due(0, 1, 2, 3), [PODS[2]], **NOT_READY)) == [PODS[2]]


@pytest.mark.parametrize(
    ("situation", "found", "expected"),
    [
        ("no auditor has copied it yet", None, ()),
        ("it is as declared", RecoveryDelay(300, 4), ()),
        ("it is another one", RecoveryDelay(0, 4), (SetRecoveryDelay(STORE.address, "/demo/bk/ledgers", 300, 4),)),
        ("it is no number", RecoveryDelay(None, 0), (SetRecoveryDelay(STORE.address, "/demo/bk/ledgers", 300, 0),)),
    ],
)
def test_the_declared_delay_is_written_where_auditors_read_it(situation, found, expected):
    made = plan(*claims(0, 1, 2, 3), settled(), pods(PODS), metadata=replace(HEALTHY, recovery_delay=found))
    assert made.actions == expected, situation


def test_autorecovery_that_the_spec_switched_off_is_removed_by_uid():
    off = with_spec(CLUSTER, auto_recovery=CLUSTER.spec.auto_recovery.model_copy(update={"enabled": False}))
    made = plan(*claims(0, 1, 2, 3), settled(), pods(PODS), cluster=off)
    assert {(step.kind, step.uid) for step in made.actions if isinstance(step, Delete)} == {
        ("Deployment", "uid-Deployment-bk-autorecovery"),
        ("ConfigMap", "uid-ConfigMap-bk-autorecovery"),
    }
