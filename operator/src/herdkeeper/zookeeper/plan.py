"""Plans a ZooKeeper ensemble: password, claims, objects, outdated pods, membership, annotations of claims.

An empty member may vote only while the whole ensemble is new (docs/decisions/0101). Claims are created with founded="false", and become
"true" once their member has voted. A later claim, of a lost or a new member, is unfounded among founded ones, so its member joins without a
vote. Pods follow the committed membership, never the spec: a member is listed before its pod exists, and unlisted before its pod is
deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.codecs.zookeeper.membership import Membership, decode_membership, version_of
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Action, Annotate, Apply, Create, Delete, Plan, Wait, deletions
from herdkeeper.planning.intent import settle, unsettled
from herdkeeper.planning.rolling import Gate, moving, restart
from herdkeeper.shared import names
from herdkeeper.shared.lost_node import unreachable
from herdkeeper.shared.objects import Json
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.shared.volumes import Claim
from herdkeeper.zookeeper.build import (
    Ensemble,
    build_authority,
    build_zookeeper,
    build_zookeeper_claim,
    build_zookeeper_secret,
    first_membership,
)
from herdkeeper.zookeeper.membership import change, leader_of, observers_of, unlisted_follower, voters_of, why_not_in_step
from herdkeeper.zookeeper.state import ZooKeeperObserved

CLAIM = "PersistentVolumeClaim"
Claims = Mapping[int, Claim]
"""The existing claims, by member number."""


def plan_zookeeper(cluster: ZooKeeperCluster, seen: ZooKeeperObserved) -> Plan:
    """Returns the plan for a ZooKeeperCluster that is not being deleted."""
    named = cluster.names
    claims = _claims(cluster, seen)
    if founded_before(cluster, seen) and names.FOUNDED not in _marks(claims):
        return Plan.waiting(
            Reason.DATA_LOST,
            "no volume claim of the founded ensemble is left. An empty ensemble would make BookKeeper delete every ledger. Restore "
            "the claims from a backup, or delete this resource and create a new one",
            requeue.BLOCKED,
        )
    members = range(pods_of(cluster, seen))
    if (wait := _claim_of_another_ensemble(cluster, claims, len(members))) is not None:
        return Plan((), wait, requeue.BLOCKED)
    if (unsecured := _before_certificates(cluster, seen, claims)) is not None:
        return unsecured
    password = seen.password or seen.fresh_password
    membership = _initial_membership(cluster, seen, len(members))
    follower = unlisted_follower(cluster, membership) if membership.version > 0 else None
    read_at_start = seen.security.read_at_start if seen.security is not None else {}
    ensemble = Ensemble(len(members), membership, follower, _founding(claims), password, read_at_start)
    origin = next((found for claim in claims.values() if (found := claim.annotations.get(names.ENSEMBLE_ANNOTATION))), cluster.metadata.uid)
    *others, stateful_set = build_zookeeper(cluster, ensemble)
    actions: list[Action] = list(settle((build_zookeeper_secret(cluster, password),), seen.objects))
    actions += [Create(build_zookeeper_claim(cluster, number, origin)) for number in members if number not in claims]
    actions += [_adopt(cluster, number, origin, claims[number]) for number in members if _is_foreign(cluster, claims.get(number))]
    actions += settle(others, seen.objects)
    if (apply := unsettled(stateful_set, seen.objects)) is not None:
        actions.append(apply)  # OnDelete: it touches no existing pod
    step: tuple[Action, ...] | Wait = _restarts(cluster, seen, stateful_set) if apply is None else ()
    if not actions and step == ():
        step = _when_settled(cluster, seen, claims)
    serving = all(seen.objects.pod_ready(named.pod(number)) for number in members)
    again = None if serving and step == () else requeue.PENDING
    return Plan(tuple(actions), step, again) if isinstance(step, Wait) else Plan((*actions, *step), requeue_after_seconds=again)


def _before_certificates(cluster: ZooKeeperCluster, seen: ZooKeeperObserved, claims: Claims) -> Plan | None:
    """Returns the plan before an ensemble's certificates: create its authorities, once. They are kept with the volumes, and their existence
    shows how the ensemble was founded. A resource that was deleted and created again finds them.
    """
    named = cluster.names
    secrets = (named.authority_secret, named.quorum_authority_secret)
    there = [name for name in secrets if seen.objects.get("Secret", name) is not None]
    if seen.security is None:
        if not there:
            return None
        why = f"spec.security.mode is Insecure, but the ensemble was founded with TLS (its Secret {there[0]} exists): set TLS"
        return Plan.waiting(Reason.INVALID_SPEC, why, requeue.BLOCKED)
    if seen.security.identities.obstacle is not None:
        # a certificate that a restarting member needs may be missing, so none is restarted
        return Plan.waiting(Reason.INVALID_SECRET, seen.security.identities.obstacle, requeue.BLOCKED)
    if len(there) == len(secrets):
        return None
    if not _founding(claims):
        missing = next(name for name in secrets if name not in there)
        why = (
            f"spec.security.mode is TLS, but the Secret {missing} of the authority is missing: restore it from a backup. An ensemble "
            "that was founded without certificates can't change: set Insecure"
        )
        return Plan.waiting(Reason.INVALID_SECRET, why, requeue.BLOCKED)
    made = (build_authority(cluster, name, data) for name, data in seen.security.fresh_authorities.items())
    return Plan(tuple(Create(manifest) for manifest in made), requeue_after_seconds=requeue.NEXT_STEP)


def founded_before(cluster: ZooKeeperCluster, seen: ZooKeeperObserved) -> bool:
    """Returns whether the members have voted once, by the status or the members' configuration."""
    config_map = seen.objects.get("ConfigMap", cluster.names.config_map) or {}
    told = (config_map.get("data") or {}).get(names.FOUNDING_KEY) == "false"
    return told or (cluster.status is not None and bool(cluster.status.founded))


def pods_of(cluster: ZooKeeperCluster, seen: ZooKeeperObserved) -> int:
    """Returns how many pods should run: one per member of the committed membership, up to the highest, and one for an unlisted follower.

    If the membership can't be read, one per claim whose member has voted, and no pod is removed. While an ensemble is founded, the number
    stays as declared when its StatefulSet was created: a later member might vote with an empty disk.
    """
    claims = _claims(cluster, seen)
    stateful_set = seen.objects.get("StatefulSet", cluster.names.stateful_set)
    voted = [number for number, claim in claims.items() if claim.annotations.get(names.FOUNDED_ANNOTATION) == names.FOUNDED]
    if not voted and stateful_set is None:
        return cluster.spec.replicas
    if voted and isinstance(seen.membership, Membership):
        follower = unlisted_follower(cluster, seen.membership)
        listed = (*voters_of(seen.membership), *observers_of(seen.membership))
        return max(listed if follower is None else (*listed, follower)) + 1
    there = 0 if stateful_set is None else int(stateful_set["spec"]["replicas"])
    made = next(number for number in range(names.ZOOKEEPER_MOST_MEMBERS + 1) if number not in claims)
    return max(there, max(voted) + 1 if voted else made)


def _initial_membership(cluster: ZooKeeperCluster, seen: ZooKeeperObserved, pods: int) -> Membership:
    """Returns the initial membership of a member whose volume has no newer one: the committed one, as last read."""
    if not _founding(_claims(cluster, seen)):
        if isinstance(seen.membership, Membership):
            return seen.membership
        if (last := last_read(seen.objects.get("ConfigMap", cluster.names.config_map))) is not None:
            return last
    return first_membership(cluster, range(pods))


def last_read(config_map: Json | None) -> Membership | None:
    """Returns the committed membership last written to a ConfigMap. None if it has none, or somebody changed it."""
    data = (config_map or {}).get("data") or {}
    files = {version: text for name, text in data.items() if (version := version_of(name)) is not None}
    try:
        return decode_membership(f"{files[max(files)]}version={max(files):x}\n".encode()) if files else None
    except MalformedDataError:
        return None


def _restarts(cluster: ZooKeeperCluster, seen: ZooKeeperObserved, stateful_set: Json) -> tuple[Delete, ...] | Wait:
    """Restart pods of an old template: followers first, from the highest number down, the leader last."""
    named, leader, pods = cluster.names, leader_of(seen), int(stateful_set["spec"]["replicas"])
    order = sorted(range(pods), key=lambda number: (number == leader, -number))
    voters = tuple(range(pods)) if isinstance(seen.membership, Unknown) else voters_of(seen.membership)
    members = [named.pod(number) for number in order]
    hanging = unreachable(seen.objects, members, seen.machines)
    serving = frozenset(named.pod(number) for number, mode in seen.modes.items() if not isinstance(mode, Unknown))
    on_the_way = moving(seen.objects, dict.fromkeys(members, named.stateful_set), hanging)
    gate = Gate(why_not_in_step(cluster, seen, voters) or seen.disruption, hanging, serving, on_the_way)
    return restart(stateful_set, seen.objects, members, gate)


def _when_settled(cluster: ZooKeeperCluster, seen: ZooKeeperObserved, claims: Claims) -> tuple[Action, ...] | Wait:
    """Returns the annotations to update, or else the next membership change."""
    named = cluster.names
    if _founding(claims):
        serving = all(seen.objects.pod_ready(named.pod(number)) for number in claims)
        return tuple(_mark(cluster, claims, number, names.FOUNDED, Reason.FOUNDED) for number in claims) if serving else ()
    if isinstance(seen.membership, Unknown):
        return Wait(Reason.UNREADABLE, seen.membership.why) if seen.modes else ()
    if marks := (*_mark_claims(cluster, seen, seen.membership, claims), *_delete_unneeded_claims(cluster, seen, seen.membership, claims)):
        return marks
    step = change(cluster, seen)
    return step if isinstance(step, Wait) else (() if step is None else (step,))


def _mark_claims(cluster: ZooKeeperCluster, seen: ZooKeeperObserved, membership: Membership, claims: Claims) -> tuple[Action, ...]:
    """Returns updates of outdated annotations: of members that vote and serve, and of members that left."""
    named, voters = cluster.names, voters_of(membership)
    listed = (*voters, *observers_of(membership), unlisted_follower(cluster, membership))
    marks = {number: claim.annotations.get(names.FOUNDED_ANNOTATION) for number, claim in claims.items()}
    voting = [
        number for number in voters if number in marks and marks[number] != names.FOUNDED and seen.objects.pod_ready(named.pod(number))
    ]
    left = [number for number, mark in marks.items() if mark == names.FOUNDED and number not in listed]
    return (
        *(_mark(cluster, claims, number, names.FOUNDED, Reason.FOUNDED) for number in voting),
        *(_mark(cluster, claims, number, names.LEFT, Reason.LEFT) for number in left),
    )


def _delete_unneeded_claims(
    cluster: ZooKeeperCluster, seen: ZooKeeperObserved, membership: Membership, claims: Claims
) -> tuple[Action, ...]:
    """With deletionPolicy Delete: delete the claims of members that left, once their pods are gone. The remaining members have all the
    data.
    """
    if cluster.spec.deletion_policy != "Delete":
        return ()
    listed = (*voters_of(membership), *observers_of(membership), *range(cluster.spec.replicas))
    gone = (number for number in claims if number not in listed and seen.objects.get("Pod", cluster.names.pod(number)) is None)
    return deletions((seen.objects.get(CLAIM, claims[number].name) for number in gone), Reason.LEFT)


def _mark(cluster: ZooKeeperCluster, claims: Claims, number: int, mark: str, reason: Reason) -> Annotate:
    return Annotate(CLAIM, cluster.names.claim(number), claims[number].uid, {names.FOUNDED_ANNOTATION: mark}, reason)


def _claim_of_another_ensemble(cluster: ZooKeeperCluster, claims: Claims, pods: int) -> Wait | None:
    """Returns a wait for a claim with another ensemble's data: its member would mix two histories."""
    origins = {number: claims[number].annotations.get(names.ENSEMBLE_ANNOTATION) for number in range(pods) if number in claims}
    voted = [number for number in origins if claims[number].annotations.get(names.FOUNDED_ANNOTATION) == names.FOUNDED]
    known = [origin for number in voted if (origin := origins[number])]
    strange = [number for number, origin in origins.items() if known and origin and origin != known[0]]
    if not strange:
        return None
    named = cluster.names
    return Wait(
        Reason.CLAIM_OF_ANOTHER,
        f"the volume claim {named.claim(strange[0])} holds data of another ensemble with the same name: delete it and its pod "
        f"(kubectl delete pvc/{named.claim(strange[0])} pod/{named.pod(strange[0])}); the member then starts empty",
    )


def _founding(claims: Claims) -> bool:
    return _marks(claims) <= {names.NEW}


def _marks(claims: Claims) -> set[str | None]:
    return {claim.annotations.get(names.FOUNDED_ANNOTATION) for claim in claims.values()}


def _claims(cluster: ZooKeeperCluster, seen: ZooKeeperObserved) -> Claims:
    found = {number: seen.objects.claims.get(cluster.names.claim(number)) for number in range(names.ZOOKEEPER_MOST_MEMBERS)}
    return {number: _as_adopted(cluster, claim) for number, claim in found.items() if claim is not None}


def _is_foreign(cluster: ZooKeeperCluster, claim: Claim | None) -> bool:
    """Returns whether the StatefulSet made this claim. It does so if it finds none, and sets neither annotations nor owner."""
    owner = {names.OWNER_KIND_LABEL: cluster.KIND, names.OWNER_NAME_LABEL: cluster.metadata.name}
    return claim is not None and not owner.items() <= claim.labels.items()


def _as_adopted(cluster: ZooKeeperCluster, claim: Claim) -> Claim:
    """Returns the claim as adopted: a new one."""
    if not _is_foreign(cluster, claim):
        return claim
    return replace(claim, annotations={**claim.annotations, names.FOUNDED_ANNOTATION: names.NEW})


def _adopt(cluster: ZooKeeperCluster, number: int, origin: str, claim: Claim) -> Apply:
    """Make the StatefulSet's claim what the operator would have created, if its uid still matches."""
    manifest = build_zookeeper_claim(cluster, number, origin)
    return Apply({**manifest, "metadata": {**manifest["metadata"], "uid": claim.uid}}, new=False, reason=Reason.CREATING)
