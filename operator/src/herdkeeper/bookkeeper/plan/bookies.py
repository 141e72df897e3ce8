"""Plans a BookKeeper cluster: metadata root, claims with their identities, bookies one by one, autorecovery, drains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from herdkeeper.bookkeeper.build.bookies import (
    BookieIdentity,
    Founded,
    build_autorecovery,
    build_bookie,
    build_bookie_claims,
    build_bookie_token,
    build_bookies_shared,
)
from herdkeeper.bookkeeper.build.racks import build_racks
from herdkeeper.bookkeeper.drain.build import DrainSource
from herdkeeper.bookkeeper.drain.plan import actions_of, cancel_drains, rescan_after_seconds
from herdkeeper.bookkeeper.drain.procedure import DrainingBookie, Restart, Stop, later_steps
from herdkeeper.bookkeeper.drain.state import Drain
from herdkeeper.bookkeeper.plan.gate import restart_order, why_bookies_unhealthy, why_not_restart, why_stack_unhealthy
from herdkeeper.bookkeeper.plan.lost_bookie import NeedsLedgers, Step, retire_lost
from herdkeeper.bookkeeper.plan.missing_cookie import restored_cookie
from herdkeeper.bookkeeper.plan.placement_check import placement_check_due
from herdkeeper.bookkeeper.plan.volume_growth import grow_claims
from herdkeeper.bookkeeper.state.bookies import LedgerScan, MetadataAbsent, MetadataStore
from herdkeeper.bookkeeper.state.claims import claims_of, known_instance_id, volumes_found
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.certificates.access import ledgers_access
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Apply, Create, Delete, FormatLedgersRoot, Plan, Resize, SetRecoveryDelay, Wait, deletions
from herdkeeper.planning.intent import adopted, needed_applies, needed_apply
from herdkeeper.planning.rolling import Gate, being_recreated, outdated_pods, restart, wait_for_deleted_claim
from herdkeeper.shared import names
from herdkeeper.shared.counted import counted
from herdkeeper.shared.lost_node import unreachable
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown


def plan_bookkeeper(fleet: BookieFleet, jobs_image: str) -> Plan:
    """Returns the plan for bookies that stay and bookies that drain. `jobs_image` reads back moved ledgers."""
    if isinstance(fleet.store, Problem):
        return Plan.waiting(fleet.store.reason, fleet.store.why)
    if isinstance(fleet.metadata, Unknown):
        return Plan.waiting(Reason.UNREADABLE, fleet.metadata.why)
    if isinstance(fleet.metadata, MetadataAbsent):
        return _without_metadata(fleet, fleet.store)
    before = known_instance_id(fleet.cluster, fleet.objects)
    if before not in (None, fleet.metadata.instance_id):
        return Plan.waiting(
            Reason.METADATA_LOST,
            f"{fleet.named.ledgers_root} belongs to another BookKeeper cluster ({fleet.metadata.instance_id}), and these volumes to "
            f"{before}: connect the ensemble with their metadata; otherwise the bookies would delete all ledgers that this one does "
            "not know",
            requeue.BLOCKED,
        )
    return _other_volumes(fleet) or _with_metadata(fleet, DrainSource(fleet.clients_address, jobs_image, fleet.store.address))


def _without_metadata(fleet: BookieFleet, store: MetadataStore) -> Plan:
    """Create a root only if neither a root nor a bookie's volume exists: another instance id would make the volumes unusable."""
    root = fleet.named.ledgers_root
    claims = fleet.objects.claims
    if claims or known_instance_id(fleet.cluster, fleet.objects) is not None:
        return Plan.waiting(
            Reason.METADATA_LOST,
            f"ZooKeeper has no {root}, although this cluster had volumes or an instance id before "
            f"({', '.join(claims) or 'no claims now'}): connect the ensemble with its metadata, or delete the old claims and this "
            "resource, and create it again",
            requeue.BLOCKED,
        )
    if not store.serving:
        return Plan.waiting(Reason.WAITING_FOR_ZOOKEEPER, "not all members of the ensemble serve yet")
    secure = names.secure_ensemble(store.address, fleet.cluster.metadata.namespace) is not None
    access = ledgers_access(fleet.cluster.key) if secure else None
    return Plan((FormatLedgersRoot(store.address, root, access),), requeue_after_seconds=requeue.NEXT_STEP)


def _with_metadata(fleet: BookieFleet, source: DrainSource) -> Plan:
    metadata, numbers = fleet.known_metadata, fleet.numbers
    identities, steps = _identities(fleet)
    founded = Founded(metadata.instance_id, metadata.cookies, fleet.served_ids)
    count = sum(map(fleet.is_to_run, numbers.existing))
    shared = build_bookies_shared(fleet.sized, fleet.zookeeper_address, founded, plaintext=fleet.plaintext, running=count)
    token = build_bookie_token(fleet.cluster, fleet.token)
    steps += needed_applies((token, *shared, build_racks(fleet.cluster, fleet.racks)), fleet.objects)
    steps += _recovery_delay(fleet)
    kept = _still_running(fleet.drains)
    cookies = (restored_cookie(fleet, identity) for identity in (*identities, *kept))
    steps += [step for step in cookies if step is not None]
    made = [identity for identity in identities if fleet.is_made(identity.number)]
    unmade = [identity for identity in identities if identity not in made]  # a quota may refuse them for ever
    running = (*filter(fleet.is_made, numbers.wanted), *(identity.number for identity in kept))
    rolled = _stateful_set_steps(fleet, running, restart_order(fleet, [*made, *kept]))
    steps += [*_autorecovery(fleet, running, rolled), *rolled, *cancel_drains(fleet)]
    for drain in fleet.drains:
        steps += actions_of(fleet, drain, source)
        steps += [drain.step] if isinstance(drain.step, Wait) else []
    steps += retire_lost(fleet)
    steps += _new_bookies(fleet, running, unmade)  # last, so that nothing waits for them
    steps += _autorecovery_restarts(fleet, running)
    waits = sorted((step for step in steps if isinstance(step, Wait)), key=lambda wait: not wait.reason.needs_person)
    busy = waits or fleet.drains or numbers.lost or not all(identity.bookie_id in metadata.writable for identity in identities)
    actions = tuple(step for step in steps if not isinstance(step, (Wait, NeedsLedgers)))
    # an older scan is good enough to wait, or to grow a volume, which may be refused for long; not to act
    acting = not all(isinstance(action, Resize) for action in actions)
    outdated = acting and isinstance(fleet.scan, LedgerScan) and not fleet.scan.to_act_by
    return Plan(
        actions,
        waits[0] if waits else None,
        _requeue_after_seconds(fleet, acting=acting) if busy else None,
        later=tuple(step for drain in fleet.drains if isinstance(drain.bookie, DrainingBookie) for step in later_steps(drain.bookie)),
        blockers=tuple(wait.sentence for wait in waits),
        needs_ledgers=NeedsLedgers() in steps or outdated or (fleet.scan is None and placement_check_due(fleet)),
    )


def _other_volumes(fleet: BookieFleet) -> Plan | None:
    """Returns a wait if volumes remain from a resource with another number of them: the rule on changes can't detect that."""
    wanted, found = fleet.cluster.spec.ledgers.volumes, volumes_found(fleet.cluster, fleet.objects, fleet.known_metadata.cookies)
    if found in (None, wanted):
        return None
    return Plan.waiting(
        Reason.INVALID_SPEC,
        f"spec.ledgers.volumes is {wanted}, but each bookie has {found} ledger volumes, and a bookie starts only with the directories"
        f" in its cookie; set {found}",
        requeue.BLOCKED,
    )


def _requeue_after_seconds(fleet: BookieFleet, *, acting: bool) -> float:
    """Reading all ledgers every few seconds would be too expensive. Events requeue the key earlier."""
    if fleet.drains:
        return requeue.PENDING if acting else max(requeue.PENDING, rescan_after_seconds(fleet))
    return requeue.PENDING if fleet.scan is None or acting else requeue.UNREAD


def _identities(fleet: BookieFleet) -> tuple[list[BookieIdentity], list[Step]]:
    """Returns the identities of the bookies that should run, and what their existing claims need."""
    identities: list[BookieIdentity] = []
    steps: list[Step] = []
    for number in fleet.numbers.wanted:
        found = _identity(fleet, number)
        if isinstance(found, BookieIdentity):
            identities.append(found)
            steps += [*_adopted_claims(fleet, found), *grow_claims(fleet, number)]
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


def _stateful_set_steps(fleet: BookieFleet, running: tuple[int, ...], identities: list[BookieIdentity]) -> list[Step]:
    """Returns the applies of StatefulSets, which touch no existing pod, and the deletion of at most one pod."""
    steps: list[Step] = []
    objects, named = fleet.objects, fleet.named
    pods = {named.pod(each.number): named.stateful_set(each.number) for each in identities}
    hanging = unreachable(objects, pods, fleet.machines)
    serving = frozenset(named.pod(each.number) for each in identities if fleet.is_registered(each.number))
    for identity in identities:
        manifest = build_bookie(fleet.sized, identity, fleet.zookeeper_address, plaintext=fleet.plaintext)
        pod = named.pod(identity.number)
        if (first := wait_for_deleted_claim(manifest, objects, [pod]) or needed_apply(manifest, objects)) is not None:
            steps.append(first)
            continue
        if not outdated_pods(pods[pod], objects, [pod]):
            continue
        restarted = "another bookie is being restarted" if _restarts(steps) else None
        closed_by = restarted or why_not_restart(fleet, running, identity)
        gate = Gate(closed_by, hanging, serving, restarted or being_recreated(objects, pods, hanging))
        step = restart(manifest, objects, [pod], gate)
        serves = objects.pod_ready(pod) or pod in serving
        if step and serves and fleet.scan is None and not (restarted or why_stack_unhealthy(fleet, running, identity)):
            steps.append(NeedsLedgers())
        steps += [step] if isinstance(step, Wait) else step
    return steps


def _restarts(steps: Iterable[Step]) -> bool:
    return any(isinstance(step, Delete) and step.kind == "Pod" for step in steps)


def _autorecovery(fleet: BookieFleet, running: tuple[int, ...], rolled: Iterable[Step]) -> tuple[Step, ...]:
    """ConfigMap and Deployment. Its pods restart one by one, and only while no bookie does: then copying is needed most."""
    objects, named = fleet.objects, fleet.named
    manifests = build_autorecovery(fleet.sized, fleet.clients_address, fleet.racks)
    if not manifests:
        return deletions((objects.get("Deployment", named.autorecovery), objects.get("ConfigMap", named.autorecovery)), Reason.REMOVED)
    if not fleet.known_metadata.cookies:  # an auditor that finds no bookie exits
        return ()
    *others, deployment = manifests
    steps: tuple[Step, ...] = needed_applies(others, objects)
    change = needed_apply(deployment, objects)
    if change is None:
        return steps
    live = objects.get("Deployment", named.autorecovery) or {}
    runs = (live.get("status", {}).get("readyReplicas") or 0) >= deployment["spec"]["replicas"]
    closed_by = "a bookie is being restarted" if _restarts(rolled) else why_bookies_unhealthy(fleet, running, None)
    if change.new or not runs or closed_by is None:
        return (*steps, change)
    return (*steps, Wait(Reason.WAITING_FOR_OTHERS, f"{named.autorecovery} is changed once no bookie is disrupted: {closed_by}"))


def _autorecovery_restarts(fleet: BookieFleet, running: tuple[int, ...]) -> tuple[Wait, ...]:
    """Returns a wait while pods of autorecovery run that have not the current template: new ones may never start. Nothing waits for it.
    A bookie that does not serve is worse, and Ready would tell this instead.
    """
    name = fleet.named.autorecovery
    status = (fleet.objects.get("Deployment", name) or {}).get("status", {})
    old = (status.get("replicas") or 0) - (status.get("updatedReplicas") or 0)
    if old <= 0 or why_bookies_unhealthy(fleet, running, None) is not None:
        return ()
    still = f"{counted(old, 'pod')} of {name} still {'runs' if old == 1 else 'run'} with an earlier template"
    return (Wait(Reason.ROLLING, f"{still}; the next one: {fleet.trouble_of_autorecovery}"),)


def _identity(fleet: BookieFleet, number: int) -> BookieIdentity | Wait:
    """Returns the identity of a bookie from its claims, or a fresh one for a new bookie; or why it is undecidable."""
    claims = claims_of(fleet.cluster, number, fleet.objects)
    ids = {claim.annotations.get(names.BOOKIE_ID_ANNOTATION) for claim in claims.values() if claim is not None}
    if len(ids) > 1 or None in ids:
        shown = " and ".join(sorted(str(found) for found in ids))
        return Wait(
            Reason.CLAIM_LOST,
            (f"the claims {' and '.join(claims)} have different bookie ids ({shown}), so they don't belong to one bookie"),
        )
    token = fleet.fresh_tokens[fleet.numbers.new.index(number)] if number in fleet.numbers.new else None
    return BookieIdentity(number, str(next(iter(ids)) if ids else fleet.named.bookie_id(number, str(token))))


def _adopted_claims(fleet: BookieFleet, identity: BookieIdentity) -> Iterator[Apply]:
    """Yields the labels that somebody removed from a claim, or did not restore."""
    for manifest in build_bookie_claims(fleet.cluster, identity):
        claim = fleet.objects.claims.get(manifest["metadata"]["name"])
        if claim is not None and not claim.is_made_for(fleet.cluster.KIND, fleet.cluster.metadata.name):
            yield adopted(manifest, claim)


def _missing_claims(fleet: BookieFleet, identity: BookieIdentity) -> tuple[Create, ...]:
    """Returns the claims that a bookie lacks which is to be made."""
    claims = fleet.objects.claims
    return tuple(Create(each) for each in build_bookie_claims(fleet.cluster, identity) if each["metadata"]["name"] not in claims)


def _new_bookies(fleet: BookieFleet, running: tuple[int, ...], identities: list[BookieIdentity]) -> Iterator[Step]:
    """Yields the claims that bookies lack, and the StatefulSets, which need them. Those with claims come first: others' may be refused."""
    missing = [(_missing_claims(fleet, identity), identity) for identity in identities]
    for claims, identity in sorted(missing, key=lambda each: bool(each[0])):
        yield from (*claims, *_stateful_set_steps(fleet, running, [identity]))


def _recovery_delay(fleet: BookieFleet) -> tuple[SetRecoveryDelay, ...]:
    """Only the first auditor copies the delay from its configuration. A changed delay must be written."""
    seconds, found = fleet.cluster.spec.auto_recovery.lost_bookie_recovery_delay_seconds, fleet.known_metadata.recovery_delay
    if found is None or found.seconds == seconds:
        return ()
    return (SetRecoveryDelay(fleet.zookeeper_address, fleet.named.ledgers_root, seconds, found.version),)
