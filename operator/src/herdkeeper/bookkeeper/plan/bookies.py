"""Plans a BookKeeper cluster: metadata root, claims with their identities, bookies one by one, autorecovery, drains."""

from __future__ import annotations

from collections.abc import Iterable

from herdkeeper.api import BookKeeperCluster
from herdkeeper.bookkeeper.build.bookies import (
    BookieIdentity,
    Founded,
    build_autorecovery,
    build_bookie,
    build_bookie_claims,
    build_bookies_shared,
)
from herdkeeper.bookkeeper.build.racks import build_racks
from herdkeeper.bookkeeper.drain.build import DrainSource
from herdkeeper.bookkeeper.drain.plan import Drain, actions_of, cancelled, drains, rescan_after_seconds
from herdkeeper.bookkeeper.drain.procedure import DrainingBookie, Restart, Stop, later_steps
from herdkeeper.bookkeeper.plan.gate import Stack, restart_order, why_not_restart, why_others_unhealthy
from herdkeeper.bookkeeper.plan.lost_bookie import NeedsLedgers, Step, retire_all
from herdkeeper.bookkeeper.plan.missing_cookie import restored_cookie
from herdkeeper.bookkeeper.plan.placement_check import placement_check_due
from herdkeeper.bookkeeper.plan.volume_growth import grow_claims, with_claimed_sizes
from herdkeeper.bookkeeper.state.bookies import BookKeeperObserved, LedgerScan, LedgersMetadata, MetadataAbsent, MetadataStore, StoreMissing
from herdkeeper.bookkeeper.state.claims import claims_of, known_instance_id, volumes_found
from herdkeeper.bookkeeper.state.numbers import BookieNumbers, bookie_numbers, ids_that_served
from herdkeeper.bookkeeper.state.racks import racks_of
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Action, Create, Delete, FormatLedgersRoot, Plan, SetRecoveryDelay, Wait, deletions
from herdkeeper.planning.intent import settle, unsettled
from herdkeeper.planning.rolling import Gate, kept_alive, moving, outdated_pods, restart
from herdkeeper.shared import names
from herdkeeper.shared.lost_node import unreachable
from herdkeeper.shared.objects import Json, Objects, annotation
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

CLAIM = "PersistentVolumeClaim"


def plan_bookkeeper(cluster: BookKeeperCluster, seen: BookKeeperObserved, jobs_image: str) -> Plan:
    """Returns the plan for bookies that stay and bookies that drain. `jobs_image` reads back moved ledgers."""
    if isinstance(seen.store, StoreMissing):
        return Plan.waiting(seen.store.reason, seen.store.why)
    if isinstance(seen.metadata, Unknown):
        return Plan.waiting(Reason.UNREADABLE, seen.metadata.why)
    if isinstance(seen.metadata, MetadataAbsent):
        return _without_metadata(cluster, seen.objects, seen.store)
    before = known_instance_id(cluster, seen.objects)
    if before not in (None, seen.metadata.instance_id):
        return Plan.waiting(
            Reason.METADATA_LOST,
            f"{cluster.names.ledgers_root} belongs to another BookKeeper cluster ({seen.metadata.instance_id}), and these volumes to "
            f"{before}: connect the ensemble with their metadata; otherwise the bookies would delete all ledgers that this one does "
            "not know",
            requeue.BLOCKED,
        )
    return _with_metadata(cluster, seen, seen.metadata, DrainSource(seen.store.address, jobs_image))


def _without_metadata(cluster: BookKeeperCluster, objects: Objects, store: MetadataStore) -> Plan:
    """Create a root only if neither a root nor a bookie's volume exists: another instance id would make the volumes unusable."""
    root = cluster.names.ledgers_root
    claims = [claim["metadata"]["name"] for claim in objects.of_kind(CLAIM)]
    if claims or known_instance_id(cluster, objects) is not None:
        return Plan.waiting(
            Reason.METADATA_LOST,
            f"ZooKeeper has no {root}, although this cluster had volumes or an instance id before "
            f"({', '.join(claims) or 'no claims now'}): connect the ensemble with its metadata, or delete the old claims and this "
            "resource, and create it again",
            requeue.BLOCKED,
        )
    if not store.serving:
        return Plan.waiting(Reason.WAITING_FOR_ZOOKEEPER, "not all members of the ensemble serve yet")
    return Plan((FormatLedgersRoot(store.address, root),), requeue_after_seconds=requeue.NEXT_STEP)


def _with_metadata(cluster: BookKeeperCluster, seen: BookKeeperObserved, metadata: LedgersMetadata, source: DrainSource) -> Plan:
    if other := _other_volumes(cluster, seen, metadata):
        return other
    numbers = bookie_numbers(cluster, seen.objects, metadata)
    identities, steps = _identities(cluster, numbers, seen)
    cluster = with_claimed_sizes(cluster, numbers.wanted, seen.objects)
    racks = racks_of(cluster, seen.objects, seen.nodes)
    founded = Founded(metadata.instance_id, metadata.cookies, ids_that_served(cluster.names, seen.objects, metadata))
    shared = build_bookies_shared(cluster, source.zookeeper_address, founded)
    steps += settle((*shared, build_racks(cluster, racks)), seen.objects)
    steps += _recovery_delay(cluster, source.zookeeper_address, metadata)
    leaving = drains(cluster, seen, metadata)
    running = _still_running(leaving)
    cookies = (restored_cookie(cluster, identity, seen, metadata) for identity in (*identities, *running))
    steps += [step for step in cookies if step is not None]
    stack = Stack(cluster, seen, metadata, (*numbers.wanted, *(identity.number for identity in running)))
    rolled = _stateful_set_steps(restart_order([*identities, *running], racks, stack.named, metadata), stack, source)
    autorecovery = build_autorecovery(cluster, source.zookeeper_address, racks)
    steps += [*_autorecovery(autorecovery, stack, rolled), *rolled, *cancelled(cluster, seen, metadata)]
    for drain in leaving:
        steps += actions_of(cluster, seen, drain, source)
        steps += [drain.step] if isinstance(drain.step, Wait) else []
    steps += retire_all(numbers.lost, cluster, seen, metadata)
    waits = [step for step in steps if isinstance(step, Wait)]
    busy = waits or leaving or numbers.lost or not _all_writable(identities, metadata)
    actions = tuple(step for step in steps if not isinstance(step, (Wait, NeedsLedgers)))
    return Plan(
        actions,
        waits[0] if waits else None,
        _requeue_after_seconds(cluster, seen, leaving, acting=bool(actions)) if busy else None,
        later=tuple(step for drain in leaving if isinstance(drain.bookie, DrainingBookie) for step in later_steps(drain.bookie)),
        blockers=tuple(wait.sentence for wait in waits),
        needs_ledgers=NeedsLedgers() in steps
        or _from_cached_scan(seen, actions)
        or (seen.scan is None and placement_check_due(cluster, seen)),
    )


def _from_cached_scan(seen: BookKeeperObserved, actions: tuple[Action, ...]) -> bool:
    """A cached scan is good enough to wait, not to act."""
    return bool(actions) and isinstance(seen.scan, LedgerScan) and seen.scan.age_seconds > 0


def _other_volumes(cluster: BookKeeperCluster, seen: BookKeeperObserved, metadata: LedgersMetadata) -> Plan | None:
    """Returns a wait if volumes remain from a resource with another number of them: the rule on changes can't detect that."""
    wanted, found = cluster.spec.ledgers.volumes, volumes_found(cluster, seen.objects, metadata.cookies)
    if found in (None, wanted):
        return None
    return Plan.waiting(
        Reason.INVALID_SPEC,
        f"spec.ledgers.volumes is {wanted}, but each bookie has {found} ledger volumes, and a bookie starts only with the directories"
        f" in its cookie; set {found}",
        requeue.BLOCKED,
    )


def _requeue_after_seconds(cluster: BookKeeperCluster, seen: BookKeeperObserved, leaving: tuple[Drain, ...], *, acting: bool) -> float:
    """Reading all ledgers every few seconds would be too expensive. Events requeue the key earlier."""
    if leaving:
        return requeue.PENDING if acting else max(requeue.PENDING, rescan_after_seconds(cluster, seen, leaving))
    return requeue.PENDING if seen.scan is None or acting else requeue.UNREAD


def _identities(cluster: BookKeeperCluster, numbers: BookieNumbers, seen: BookKeeperObserved) -> tuple[list[BookieIdentity], list[Step]]:
    """Returns the identities of the bookies that should run, and what their claims need."""
    identities: list[BookieIdentity] = []
    steps: list[Step] = []
    for number in numbers.wanted:
        token = seen.fresh_tokens[numbers.new.index(number)] if number in numbers.new else None
        found = _identity(cluster, number, seen.objects, token)
        if isinstance(found, BookieIdentity):
            identities.append(found)
            steps += [*_missing_claims(cluster, found, seen.objects), *grow_claims(cluster, number, seen)]
        else:
            steps.append(found)
    return identities, steps


def _still_running(leaving: tuple[Drain, ...]) -> list[BookieIdentity]:
    """Returns the draining bookies whose StatefulSets are kept up to date: all that are not stopped, before or now."""
    return [
        BookieIdentity(drain.number, drain.bookie.bookie_id)
        for drain in leaving
        if isinstance(drain.bookie, DrainingBookie)
        and drain.bookie.claims
        and (isinstance(drain.step, Restart) or not (isinstance(drain.step, Stop) or drain.bookie.scaled_to_zero))
    ]


def _stateful_set_steps(identities: list[BookieIdentity], stack: Stack, source: DrainSource) -> list[Step]:
    """Returns the StatefulSets to apply, which touches no existing pod, and at most one pod to recreate."""
    steps: list[Step] = []
    objects = stack.seen.objects
    pods = {stack.named.pod(each.number): stack.named.stateful_set(each.number) for each in identities}
    hanging = unreachable(objects, pods, stack.seen.nodes)
    serving = frozenset(pod for each in identities if stack.is_registered(each.number) and (pod := stack.named.pod(each.number)))
    for identity in identities:
        manifest, pod = build_bookie(stack.cluster, identity, source.zookeeper_address), stack.named.pod(identity.number)
        if (first := kept_alive(manifest, objects, [pod]) or unsettled(manifest, objects)) is not None:
            steps.append(first)
            continue
        if not outdated_pods(pods[pod], objects, [pod]):
            continue
        restarted = "another bookie is being restarted" if _restarts(steps) else None
        gate = Gate(restarted or why_not_restart(identity, stack), hanging, serving, restarted or moving(objects, pods, hanging))
        step = restart(manifest, objects, [pod], gate)
        if step and stack.seen.scan is None and (objects.pod_ready(pod) or pod in serving):
            steps.append(NeedsLedgers())
        steps += [step] if isinstance(step, Wait) else step
    return steps


def _restarts(steps: Iterable[Step]) -> bool:
    return any(isinstance(step, Delete) and step.kind == "Pod" for step in steps)


def _autorecovery(manifests: tuple[Json, ...], stack: Stack, rolled: Iterable[Step]) -> tuple[Step, ...]:
    """ConfigMap and Deployment. Its pods restart one by one, and only while no bookie does, so that copying continues where it is needed
    most.
    """
    objects = stack.seen.objects
    if not manifests:
        return _surplus_autorecovery(stack.cluster, objects)
    if not stack.metadata.cookies:  # an auditor that finds no bookie exits
        return ()
    *others, deployment = manifests
    steps: tuple[Step, ...] = settle(others, objects)
    change = unsettled(deployment, objects)
    if change is None:
        return steps
    live = objects.get("Deployment", deployment["metadata"]["name"]) or {}
    runs = (live.get("status", {}).get("readyReplicas") or 0) >= deployment["spec"]["replicas"]
    closed_by = "a bookie is being restarted" if _restarts(rolled) else why_others_unhealthy(stack, None)
    if change.new or not runs or closed_by is None:
        return (*steps, change)
    name = deployment["metadata"]["name"]
    return (*steps, Wait(Reason.WAITING_FOR_OTHERS, f"{name} is changed once no bookie is disrupted: {closed_by}"))


def _identity(cluster: BookKeeperCluster, number: int, objects: Objects, token: str | None) -> BookieIdentity | Wait:
    """Returns the identity of bookie `number` from its claims, or why it is undecidable. `token`: the bookie is new."""
    named = cluster.names
    claims = claims_of(cluster, number, objects)
    ids = {annotation(claim, names.BOOKIE_ID_ANNOTATION) for claim in claims.values() if claim is not None}
    if len(ids) > 1 or None in ids:
        shown = " and ".join(sorted(str(found) for found in ids))
        return Wait(
            Reason.CLAIM_LOST,
            (f"the claims {' and '.join(claims)} have different bookie ids ({shown}), so they don't belong to one bookie"),
        )
    return BookieIdentity(number, str(next(iter(ids)) if ids else named.bookie_id(number, str(token))))


def _missing_claims(cluster: BookKeeperCluster, identity: BookieIdentity, objects: Objects) -> tuple[Create, ...]:
    """Returns the claims that a new bookie lacks."""
    manifests = build_bookie_claims(cluster, identity)
    return tuple(Create(manifest) for manifest in manifests if objects.get(CLAIM, manifest["metadata"]["name"]) is None)


def _all_writable(identities: list[BookieIdentity], metadata: LedgersMetadata) -> bool:
    return all(identity.bookie_id in metadata.writable for identity in identities)


def _recovery_delay(cluster: BookKeeperCluster, zookeeper_address: str, metadata: LedgersMetadata) -> tuple[SetRecoveryDelay, ...]:
    """Only the first auditor copies the delay from its configuration. A changed delay must be written."""
    seconds, found = cluster.spec.auto_recovery.lost_bookie_recovery_delay_seconds, metadata.recovery_delay
    if found is None or found.seconds == seconds:
        return ()
    return (SetRecoveryDelay(zookeeper_address, cluster.names.ledgers_root, seconds, found.version),)


def _surplus_autorecovery(cluster: BookKeeperCluster, objects: Objects) -> tuple[Delete, ...]:
    """Returns the deletions of autorecovery that the spec disabled."""
    named = cluster.names
    found = (objects.get("Deployment", named.autorecovery), objects.get("ConfigMap", named.autorecovery))
    return deletions(found, Reason.REMOVED)
