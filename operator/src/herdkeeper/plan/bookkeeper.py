"""The next steps of a BookKeeper cluster: metadata root, claims with their identities, bookies one by one, autorecovery."""

from __future__ import annotations

import re

from herdkeeper.api import BookKeeperCluster
from herdkeeper.build.bookkeeper import BookieIdentity, build_autorecovery, build_bookie, build_bookie_claims, build_bookies_shared
from herdkeeper.build.racks import build_racks
from herdkeeper.domain import names
from herdkeeper.domain.names import BookKeeperNames, ObjectKey
from herdkeeper.domain.observed.bookkeeper import BookKeeperObserved, LedgersMetadata, MetadataAbsent, MetadataStore, StoreMissing
from herdkeeper.domain.observed.objects import Objects, annotation, pod_trouble
from herdkeeper.domain.racks import racks_of
from herdkeeper.domain.reason import Reason
from herdkeeper.domain.unknown import Unknown
from herdkeeper.plan.action import Action, Create, Delete, FormatLedgersRoot, Plan, SetRecoveryDelay, Wait
from herdkeeper.plan.intent import settle
from herdkeeper.plan.rolling import Gate, roll

CLAIM = "PersistentVolumeClaim"


def plan_bookkeeper(cluster: BookKeeperCluster, seen: BookKeeperObserved) -> Plan:
    """What to do now for bookies that shall live."""
    if isinstance(seen.store, StoreMissing):
        return Plan.waiting(seen.store.reason, seen.store.why)
    if isinstance(seen.metadata, Unknown):
        return Plan.waiting(Reason.UNREADABLE, seen.metadata.why)
    if isinstance(seen.metadata, MetadataAbsent):
        return _without_metadata(cluster, seen.objects, seen.store)
    return _with_metadata(cluster, seen, seen.store, seen.metadata)


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


def _with_metadata(cluster: BookKeeperCluster, seen: BookKeeperObserved, store: MetadataStore, metadata: LedgersMetadata) -> Plan:
    actions: list[Action] = []
    waits: list[Wait] = []
    identities: list[BookieIdentity] = []
    for number in range(cluster.spec.bookies):
        found = _identity(cluster, number, seen, metadata)
        if isinstance(found, Wait):
            waits.append(found)
            continue
        identity, missing = found
        identities.append(identity)
        actions += missing
    racks = racks_of(cluster, seen.objects, seen.nodes)
    actions += settle((*build_bookies_shared(cluster, store.address), build_racks(cluster, racks)), seen.objects)
    autorecovery = build_autorecovery(cluster, store.address, racks)
    if metadata.cookies:  # an auditor that finds no bookie at all ends itself
        actions += settle(autorecovery, seen.objects)
    actions += _surplus_autorecovery(cluster, seen.objects) if not autorecovery else ()
    actions += _recovery_delay(cluster, store, metadata)
    rolled = False
    for identity in identities:
        manifest = build_bookie(cluster, identity, store.address)
        closed_by = "another bookie was changed just now" if rolled else _why_not_disturb(cluster, identity, seen, metadata)
        step = roll(manifest, seen.objects, [_names(cluster).pod(identity.number)], Gate(closed_by))
        if isinstance(step, Wait):
            waits.append(step)
        elif step is not None:
            actions.append(step)
            rolled = rolled or not step.new
    return Plan(tuple(actions), waits[0] if waits else None, 5 if waits or not _all_writable(identities, metadata) else None)


def _identity(
    cluster: BookKeeperCluster, number: int, seen: BookKeeperObserved, metadata: LedgersMetadata
) -> tuple[BookieIdentity, tuple[Create, ...]] | Wait:
    """Who bookie `number` is, by its claims, and the claims that it lacks; or why that must not be decided here."""
    named = _names(cluster)
    claims = {name: seen.objects.get(CLAIM, name) for name in (named.journal_claim(number), named.ledgers_claim(number))}
    ids = {annotation(claim, names.BOOKIE_ID_ANNOTATION) for claim in claims.values() if claim is not None}
    missing = [name for name, claim in claims.items() if claim is None]
    if len(ids) > 1 or None in ids:
        shown = " and ".join(sorted(str(found) for found in ids))
        return Wait(Reason.CLAIM_LOST, f"the claims {' and '.join(claims)} carry different bookie ids ({shown}): they are not one bookie's")
    was_there = seen.objects.get("StatefulSet", named.stateful_set(number)) is not None or _cookies_of(named, number, metadata)
    if missing and was_there:
        return Wait(
            Reason.CLAIM_LOST,
            f"bookie {number} served before and its claim {' and '.join(missing)} is gone: what it held is copied by autorecovery from the "
            "other bookies; an empty volume under its identity would lose entries, so nothing is made in its place in this version",
        )
    bookie_id = next(iter(ids)) if ids else named.bookie_id(number, seen.fresh_tokens[number])
    identity = BookieIdentity(number, str(bookie_id))
    manifests = build_bookie_claims(cluster, identity)
    return identity, tuple(Create(manifest) for manifest in manifests if manifest["metadata"]["name"] in missing)


def _cookies_of(named: BookKeeperNames, number: int, metadata: LedgersMetadata) -> bool:
    pattern = re.compile(re.escape(named.stateful_set(number)) + r"-[a-z0-9]{6,16}")
    return any(pattern.fullmatch(bookie_id) for bookie_id in metadata.cookies)


def _why_not_disturb(
    cluster: BookKeeperCluster, identity: BookieIdentity, seen: BookKeeperObserved, metadata: LedgersMetadata
) -> str | None:
    """Why no serving bookie may be restarted now: the rest of the stack must serve, and every entry have its replicas."""
    if isinstance(seen.store, MetadataStore) and not seen.store.serving:
        return "not all ZooKeeper members serve"
    if not metadata.replication_enabled:
        return (
            "somebody switched autorecovery off in the metadata: what is lost would not be copied; switch it on with "
            f"`kubectl exec {_names(cluster).pod(0)} -- /opt/bookkeeper/entrypoint.sh shell autorecovery -e`"
        )
    if metadata.under_replicated:
        return "ledgers are under-replicated"
    named = _names(cluster)
    for number in range(cluster.spec.bookies):
        pod = seen.objects.get("Pod", named.pod(number))
        if number != identity.number and not seen.objects.pod_ready(named.pod(number)):
            return f"{named.pod(number)} is not Ready ({pod_trouble(pod)})"
        if number != identity.number and not seen.objects.rolled_out(named.stateful_set(number)):
            return f"{named.stateful_set(number)} is still being rolled out"
    return None


def _all_writable(identities: list[BookieIdentity], metadata: LedgersMetadata) -> bool:
    return all(identity.bookie_id in metadata.writable for identity in identities)


def _recovery_delay(cluster: BookKeeperCluster, store: MetadataStore, metadata: LedgersMetadata) -> tuple[SetRecoveryDelay, ...]:
    """The first auditor copies the delay from its configuration, and none does later: a changed one has to be written."""
    seconds, found = cluster.spec.auto_recovery.lost_bookie_recovery_delay_seconds, metadata.recovery_delay
    if found is None or found.seconds == seconds:
        return ()
    return (SetRecoveryDelay(store.address, _names(cluster).ledgers_root, seconds, found.version),)


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
