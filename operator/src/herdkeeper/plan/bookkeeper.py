"""The next steps of a BookKeeper cluster: metadata root, claims with their identities, bookies one by one, autorecovery, who leaves."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import BookKeeperCluster
from herdkeeper.build.bookkeeper import BookieIdentity, build_autorecovery, build_bookie, build_bookie_claims, build_bookies_shared
from herdkeeper.build.drain import DrainSource
from herdkeeper.build.racks import build_racks
from herdkeeper.domain import names
from herdkeeper.domain.bookie_numbers import BookieNumbers, bookie_numbers
from herdkeeper.domain.names import BookKeeperNames, ObjectKey
from herdkeeper.domain.observed.bookkeeper import BookKeeperObserved, LedgersMetadata, MetadataAbsent, MetadataStore, StoreMissing
from herdkeeper.domain.observed.objects import Objects, annotation, pod_trouble
from herdkeeper.domain.racks import racks_of
from herdkeeper.domain.reason import Reason
from herdkeeper.domain.unknown import Unknown
from herdkeeper.plan.action import Action, Create, Delete, FormatLedgersRoot, Plan, SetRecoveryDelay, Wait
from herdkeeper.plan.drain import Leaving, Restart, Stop, later_steps
from herdkeeper.plan.intent import settle
from herdkeeper.plan.leaving_bookies import Drain, actions_of, drains, taken_back
from herdkeeper.plan.rolling import Gate, roll

CLAIM = "PersistentVolumeClaim"
LOOK_AGAIN_SECONDS = 5.0


def plan_bookkeeper(cluster: BookKeeperCluster, seen: BookKeeperObserved, jobs_image: str) -> Plan:
    """What to do now for bookies that shall live, and for those that shall leave. `jobs_image` reads back what moved."""
    if isinstance(seen.store, StoreMissing):
        return Plan.waiting(seen.store.reason, seen.store.why)
    if isinstance(seen.metadata, Unknown):
        return Plan.waiting(Reason.UNREADABLE, seen.metadata.why)
    if isinstance(seen.metadata, MetadataAbsent):
        return _without_metadata(cluster, seen.objects, seen.store)
    before = cluster.status.instance_id if cluster.status is not None else None
    if before not in (None, seen.metadata.instance_id):
        return Plan.waiting(
            Reason.METADATA_LOST,
            f"{_names(cluster).ledgers_root} is another BookKeeper cluster's ({seen.metadata.instance_id}), these volumes are of "
            f"{before}: connect the ensemble that keeps their metadata, before bookies delete the ledgers that this one does not know",
            60,
        )
    return _with_metadata(cluster, seen, seen.metadata, DrainSource(seen.store.address, jobs_image))


def _without_metadata(cluster: BookKeeperCluster, objects: Objects, store: MetadataStore) -> Plan:
    """A root is made only where neither a root nor a bookie's volume is: another instance id would make the volumes unusable."""
    root = _names(cluster).ledgers_root
    claims = [claim["metadata"]["name"] for claim in objects.of_kind(CLAIM)]
    if claims or (cluster.status is not None and cluster.status.instance_id):
        return Plan.waiting(
            Reason.METADATA_LOST,
            f"ZooKeeper has no {root}, though this cluster had volumes or an instance id before ({', '.join(claims) or 'no claims now'}): "
            "connect the ensemble that keeps its metadata, or delete the old claims and this resource and create it anew",
            60,
        )
    if not store.serving:
        return Plan.waiting(Reason.WAITING_FOR_ZOOKEEPER, "not all members of the ensemble serve yet")
    return Plan((FormatLedgersRoot(store.address, root),), look_again_seconds=0.5)


def _with_metadata(cluster: BookKeeperCluster, seen: BookKeeperObserved, metadata: LedgersMetadata, source: DrainSource) -> Plan:
    actions: list[Action] = []
    waits: list[Wait] = []
    numbers = bookie_numbers(cluster, seen.objects, metadata.cookies)
    identities, missing, lost = _identities(cluster, numbers, seen)
    actions += missing
    waits += lost
    racks = racks_of(cluster, seen.objects, seen.nodes)
    actions += settle((*build_bookies_shared(cluster, source.zookeeper_address), build_racks(cluster, racks)), seen.objects)
    autorecovery = build_autorecovery(cluster, source.zookeeper_address, racks)
    if metadata.cookies:  # an auditor that finds no bookie at all ends itself
        actions += settle(autorecovery, seen.objects)
    actions += _surplus_autorecovery(cluster, seen.objects) if not autorecovery else ()
    actions += _recovery_delay(cluster, source.zookeeper_address, metadata)
    leaving = drains(cluster, seen, metadata)
    running = _still_running(leaving)
    stack = _Stack(seen, metadata, (*numbers.wanted, *(identity.number for identity in running)))
    changed, waiting = _rolled(cluster, [*identities, *running], stack, source)
    actions += changed
    waits += waiting
    actions += taken_back(cluster, seen, metadata)
    for drain in leaving:
        actions += actions_of(cluster, seen, drain, source)
        waits += [drain.step] if isinstance(drain.step, Wait) else []
    unsettled = waits or leaving or not _all_writable(identities, metadata)
    return Plan(
        tuple(actions),
        waits[0] if waits else None,
        LOOK_AGAIN_SECONDS if unsettled else None,
        later=tuple(step for drain in leaving if isinstance(drain.bookie, Leaving) for step in later_steps(drain.bookie)),
        blockers=tuple(f"{wait.reason}: {wait.message}" for wait in waits),
    )


def _identities(
    cluster: BookKeeperCluster, numbers: BookieNumbers, seen: BookKeeperObserved
) -> tuple[list[BookieIdentity], list[Action], list[Wait]]:
    """Who the bookies are that shall live, the claims that they lack, and those of which that must not be decided here."""
    identities: list[BookieIdentity] = []
    actions: list[Action] = []
    waits: list[Wait] = []
    for number in numbers.wanted:
        token = seen.fresh_tokens[numbers.new.index(number)] if number in numbers.new else None
        found = _identity(cluster, number, seen, token)
        if isinstance(found, Wait):
            waits.append(found)
        else:
            identities.append(found[0])
            actions += found[1]
    return identities, actions, waits


def _still_running(leaving: tuple[Drain, ...]) -> list[BookieIdentity]:
    """The leaving bookies whose StatefulSets are kept as those of the others: all that were not stopped, and are not stopped now."""
    return [
        BookieIdentity(drain.number, drain.bookie.bookie_id)
        for drain in leaving
        if isinstance(drain.bookie, Leaving)
        and drain.bookie.claims
        and (isinstance(drain.step, Restart) or not (isinstance(drain.step, Stop) or drain.bookie.scaled_to_zero))
    ]


@dataclass(frozen=True)
class _Stack:
    """What must be undisturbed before a serving bookie is restarted. `numbers` are the bookies that run, or shall."""

    seen: BookKeeperObserved
    metadata: LedgersMetadata
    numbers: tuple[int, ...]


def _rolled(
    cluster: BookKeeperCluster, identities: list[BookieIdentity], stack: _Stack, source: DrainSource
) -> tuple[list[Action], list[Wait]]:
    """The StatefulSets that differ from what they shall be: one serving bookie at a time."""
    actions: list[Action] = []
    waits: list[Wait] = []
    rolled = False
    for identity in identities:
        manifest = build_bookie(cluster, identity, source.zookeeper_address)
        closed_by = "another bookie was changed just now" if rolled else _why_not_disturb(cluster, identity, stack)
        step = roll(manifest, stack.seen.objects, [_names(cluster).pod(identity.number)], Gate(closed_by))
        if isinstance(step, Wait):
            waits.append(step)
        elif step is not None:
            actions.append(step)
            rolled = rolled or not step.new
    return actions, waits


def _identity(
    cluster: BookKeeperCluster, number: int, seen: BookKeeperObserved, token: str | None
) -> tuple[BookieIdentity, tuple[Create, ...]] | Wait:
    """Who bookie `number` is, by its claims, and the claims that it lacks; or why that must not be decided here. `token`: it is new."""
    named = _names(cluster)
    claims = {name: seen.objects.get(CLAIM, name) for name in (named.journal_claim(number), named.ledgers_claim(number))}
    ids = {annotation(claim, names.BOOKIE_ID_ANNOTATION) for claim in claims.values() if claim is not None}
    missing = [name for name, claim in claims.items() if claim is None]
    if len(ids) > 1 or None in ids:
        shown = " and ".join(sorted(str(found) for found in ids))
        return Wait(Reason.CLAIM_LOST, f"the claims {' and '.join(claims)} carry different bookie ids ({shown}): they are not one bookie's")
    if missing and token is None and _was_there(named, number, seen):
        return Wait(
            Reason.CLAIM_LOST,
            f"bookie {number} served before and its claim {' and '.join(missing)} is gone: what it held is copied by autorecovery from the "
            "other bookies; an empty volume under its identity would lose entries, so nothing is made in its place in this version",
        )
    bookie_id = next(iter(ids)) if ids else named.bookie_id(number, str(token))
    identity = BookieIdentity(number, str(bookie_id))
    manifests = build_bookie_claims(cluster, identity)
    return identity, tuple(Create(manifest) for manifest in manifests if manifest["metadata"]["name"] in missing)


def _was_there(named: BookKeeperNames, number: int, seen: BookKeeperObserved) -> bool:
    cookies = seen.metadata.cookies if isinstance(seen.metadata, LedgersMetadata) else ()
    return seen.objects.get("StatefulSet", named.stateful_set(number)) is not None or any(
        named.number_of(cookie) == number for cookie in cookies
    )


def _why_not_disturb(cluster: BookKeeperCluster, identity: BookieIdentity, stack: _Stack) -> str | None:
    """Why no serving bookie may be restarted now: the rest of the stack must serve, and every entry have its replicas."""
    seen = stack.seen
    if isinstance(seen.store, MetadataStore) and not seen.store.serving:
        return "not all ZooKeeper members serve"
    if not stack.metadata.replication_enabled:
        return (
            "somebody switched autorecovery off in the metadata: what is lost would not be copied; switch it on with "
            f"`kubectl exec {_names(cluster).pod(0)} -- /opt/bookkeeper/entrypoint.sh shell autorecovery -e`"
        )
    if stack.metadata.under_replicated:
        return "ledgers are under-replicated"
    named = _names(cluster)
    for number in stack.numbers:
        pod = seen.objects.get("Pod", named.pod(number))
        if number != identity.number and not seen.objects.pod_ready(named.pod(number)):
            return f"{named.pod(number)} is not Ready ({pod_trouble(pod)})"
        if number != identity.number and not seen.objects.rolled_out(named.stateful_set(number)):
            return f"{named.stateful_set(number)} is still being rolled out"
    return None


def _all_writable(identities: list[BookieIdentity], metadata: LedgersMetadata) -> bool:
    return all(identity.bookie_id in metadata.writable for identity in identities)


def _recovery_delay(cluster: BookKeeperCluster, zookeeper_address: str, metadata: LedgersMetadata) -> tuple[SetRecoveryDelay, ...]:
    """The first auditor copies the delay from its configuration, and none does later: a changed one has to be written."""
    seconds, found = cluster.spec.auto_recovery.lost_bookie_recovery_delay_seconds, metadata.recovery_delay
    if found is None or found.seconds == seconds:
        return ()
    return (SetRecoveryDelay(zookeeper_address, _names(cluster).ledgers_root, seconds, found.version),)


def _surplus_autorecovery(cluster: BookKeeperCluster, objects: Objects) -> tuple[Delete, ...]:
    """The objects of autorecovery that the spec switched off."""
    named = _names(cluster)
    found = (objects.get("Deployment", named.autorecovery), objects.get("ConfigMap", named.autorecovery_config_map))
    return tuple(
        Delete(item["apiVersion"], item["kind"], item["metadata"]["name"], item["metadata"]["uid"], Reason.REMOVED)
        for item in found
        if item is not None and not item["metadata"].get("deletionTimestamp")
    )


def _names(cluster: BookKeeperCluster) -> BookKeeperNames:
    return BookKeeperNames(ObjectKey(cluster.metadata.namespace, cluster.metadata.name))
