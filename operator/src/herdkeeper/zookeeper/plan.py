"""Plans a ZooKeeper ensemble: password, claims, objects, outdated pods, membership, annotations of claims.

Only members of a new ensemble may vote with an empty disk (docs/decisions/0101). Pods follow the committed membership (0102).
"""

from __future__ import annotations

from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Action, Annotate, Apply, ChangeMembership, Create, Delete, Plan, Wait, deletions, soonest
from herdkeeper.planning.intent import adopted, needed_applies, needed_apply
from herdkeeper.planning.rolling import Gate, being_recreated, restart
from herdkeeper.shared import names
from herdkeeper.shared.lost_node import unreachable
from herdkeeper.shared.objects import Json
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.authority_roll import refusing_clients, replace_expired, roll_authorities
from herdkeeper.zookeeper.build import build_authority, build_zookeeper, build_zookeeper_claim, build_zookeeper_secret
from herdkeeper.zookeeper.membership import next_change, why_not_in_step
from herdkeeper.zookeeper.state import Ensemble, EnsembleSecurity

CLAIM = "PersistentVolumeClaim"


def plan_zookeeper(ensemble: Ensemble) -> Plan:
    """Returns the plan for a ZooKeeperCluster that is not being deleted."""
    if ensemble.founded_before and names.FOUNDED not in ensemble.marks.values():
        return Plan.waiting(
            Reason.DATA_LOST,
            "no volume claim of the founded ensemble is left. An empty ensemble would make BookKeeper delete every ledger. Restore "
            "the claims from a backup, or delete this resource and create a new one",
            requeue.BLOCKED,
        )
    if (wait := _claim_of_another_ensemble(ensemble)) is not None:
        return Plan((), wait, requeue.BLOCKED)
    if (unsecured := _before_certificates(ensemble)) is not None:
        return unsecured
    objects = ensemble.objects
    *others, stateful_set = build_zookeeper(ensemble)
    actions: list[Action] = list(needed_applies((build_zookeeper_secret(ensemble),), objects))
    # a quota may refuse the claim of a member that joins, for ever: then it can still leave
    wanted = ensemble.pods if ensemble.founding else [number for number in ensemble.pods if number in ensemble.declared]
    actions += [Create(build_zookeeper_claim(ensemble, number)) for number in wanted if number not in ensemble.claims]
    foreign = [number for number, claim in ensemble.claims.items() if ensemble.is_foreign(claim)]
    actions += [_adopt(ensemble, number) for number in foreign if number in ensemble.pods]
    actions += needed_applies(others, objects)
    if (apply := needed_apply(stateful_set, objects)) is not None:
        # it may be refused for long, and as long as no claim is marked, an empty member may vote
        marks = () if actions or apply.new else _due_marks(ensemble)
        actions += [*marks, apply]  # OnDelete: it touches no existing pod
    step: tuple[Action, ...] | Wait = _restarts(ensemble, stateful_set) if apply is None else ()
    if not actions and step == ():
        step = _when_settled(ensemble)
    elif not actions and isinstance(step, Wait):
        step = _change_for_restarts(ensemble) or step
    serving = all(map(ensemble.is_ready, ensemble.pods))
    again = None if serving and step == () else requeue.PENDING
    if ensemble.accepts_both and ensemble.plaintext_needed_by:
        again = soonest(again, requeue.UNREAD)
    settled = serving and not actions and step == () and _certificates_settled(ensemble)
    rolls = roll_authorities(ensemble, settled=settled)
    if ensemble.rolls:
        again = soonest(again, requeue.NEXT_STEP if rolls else requeue.UNREAD)
    if isinstance(step, Wait):
        return Plan((*actions, *rolls), step, again)
    return Plan((*actions, *step, *rolls), requeue_after_seconds=again)


def _certificates_settled(ensemble: Ensemble) -> bool:
    """Returns whether the ensemble is founded, no certificate of its own is due, and all its voters are known to be in step."""
    due = ensemble.identities
    if ensemble.founding or ensemble.voters is None or due.changes or due.obstacle is not None:
        return False
    return why_not_in_step(ensemble, ensemble.voters) is None


def _before_certificates(ensemble: Ensemble) -> Plan | None:
    """Returns the plan before an ensemble's certificates: create its authorities, once, and replace those that have expired. They are kept
    with the volumes, and their existence shows how the ensemble was founded. A resource that was deleted and created again finds them.
    """
    named, security = ensemble.named, ensemble.security
    if security is None:
        held = (named.authority_secret, named.quorum_authority_secret, named.clients_secret, named.members_secret)
        there = [name for name in held if ensemble.objects.get("Secret", name)]
        if not there:
            return None
        why = f"spec.security.mode is Insecure, but the ensemble has certificates (its Secret {there[0]} exists): set Permissive"
        return Plan.waiting(Reason.INVALID_SPEC, why, requeue.BLOCKED)
    if replaced := replace_expired(ensemble):
        return Plan(replaced, requeue_after_seconds=requeue.NEXT_STEP)
    if (obstructed := _obstructed(ensemble, security)) is not None:
        return obstructed
    if not security.fresh_authorities:
        return None
    made = (build_authority(ensemble.cluster, name, data) for name, data in security.fresh_authorities.items())
    return Plan(tuple(map(Create, made)), requeue_after_seconds=requeue.NEXT_STEP)


def _obstructed(ensemble: Ensemble, security: EnsembleSecurity) -> Plan | None:
    """Returns the plan while an authority is lost, or a Secret is unusable or not there yet. None if nothing is in the way."""
    lost = None if ensemble.founding else _why_no_new_authority(ensemble)
    told = [why for why in (lost, ensemble.identities.obstacle) if why is not None]
    if told:
        # a certificate that a restarting member needs may be missing, so none is restarted
        return Plan.waiting(Reason.INVALID_SECRET, ". ".join((*told, *filter(None, (security.awaited,)))), requeue.BLOCKED)
    return None if security.awaited is None else Plan.waiting(Reason.WAITING_FOR_SECRET, security.awaited, requeue.PENDING)


def _why_no_new_authority(ensemble: Ensemble) -> str | None:
    """Returns why an existing ensemble gets no authority in place of a missing one. None if it has neither one nor its certificates."""
    named, mode = ensemble.named, ensemble.cluster.spec.security.mode
    issued = {named.authority_secret: named.clients_secret, named.quorum_authority_secret: named.members_secret}
    there = {name for name in (*issued, *issued.values()) if ensemble.objects.get("Secret", name) is not None}
    lost = [name for name in issued if name not in there and (mode == "TLS" or issued[name] in there)]
    if not lost:
        return None
    missing = f"spec.security.mode is {mode}, but the Secret {lost[0]} of the authority is missing: restore it from a backup"
    if there & set(issued.values()):
        return missing
    return f"{missing}. If the ensemble never had certificates, set Permissive to get them, or Insecure to stay without"


def _restarts(ensemble: Ensemble, stateful_set: Json) -> tuple[Delete, ...] | Wait:
    """Restart pods of an old template: followers first, from the highest number down, the leader last."""
    named, objects = ensemble.named, ensemble.objects
    members = [named.pod(number) for number in sorted(ensemble.pods, key=lambda number: (number == ensemble.leader, -number))]
    voters = tuple(ensemble.pods) if ensemble.voters is None else ensemble.voters
    hanging = unreachable(objects, members, ensemble.machines)
    serving = frozenset(named.pod(number) for number, mode in ensemble.modes.items() if not isinstance(mode, Unknown))
    recreated = being_recreated(objects, dict.fromkeys(members, named.stateful_set), hanging)
    others = None if refusing_clients(ensemble) else ensemble.disruption  # which may need the members first
    gate = Gate(why_not_in_step(ensemble, voters) or others, hanging, serving, recreated)
    return restart(stateful_set, objects, members, gate)


def _when_settled(ensemble: Ensemble) -> tuple[Action, ...] | Wait:
    """Returns the annotations to update, or else the next membership change."""
    if ensemble.founding:
        return _due_marks(ensemble)
    if isinstance(ensemble.membership, Unknown):
        return Wait(Reason.UNREADABLE, ensemble.membership.why) if ensemble.modes else ()
    if steps := _due_marks(ensemble) or _delete_unneeded_claims(ensemble):  # a claim that was just marked is not as it was read
        return steps
    step = next_change(ensemble)
    return step if isinstance(step, Wait) else (() if step is None else (step,))


def _change_for_restarts(ensemble: Ensemble) -> tuple[Action, ...]:
    """Returns the next membership change, if there is a pod that is not declared, or not listed: restarts may wait for it for ever. Not of
    an ensemble that is being founded. While others of the stack are disrupted, only if such a pod is not Ready.
    """
    waited_for = [number for number in ensemble.pods if number not in ensemble.declared or number not in ensemble.listed]
    if ensemble.disruption is not None:
        waited_for = [number for number in waited_for if not ensemble.is_ready(number)]
    change = next_change(ensemble) if waited_for and not ensemble.founding else None
    return (change,) if isinstance(change, ChangeMembership) else ()


def _due_marks(ensemble: Ensemble) -> tuple[Annotate, ...]:
    """Returns updates of outdated annotations: of all members once a new ensemble serves; later of those that serve, or have left."""
    if ensemble.founding:
        serving = all(map(ensemble.is_ready, ensemble.pods))
        return tuple(_mark(ensemble, number, names.FOUNDED, Reason.FOUNDED) for number in ensemble.pods) if serving else ()
    if isinstance(ensemble.membership, Unknown):
        return ()
    marks = ensemble.marks
    voting = (number for number in ensemble.voters or () if marks.get(number, names.FOUNDED) != names.FOUNDED)
    left = (number for number, mark in marks.items() if mark == names.FOUNDED and number not in ensemble.listed)
    return (
        *(_mark(ensemble, number, names.FOUNDED, Reason.FOUNDED) for number in voting if ensemble.is_ready(number)),
        *(_mark(ensemble, number, names.LEFT, Reason.LEFT) for number in left),
    )


def _delete_unneeded_claims(ensemble: Ensemble) -> tuple[Action, ...]:
    """With deletionPolicy Delete: delete the claims of members that left, once their pods are gone. The remaining ones have all data."""
    if ensemble.cluster.spec.deletion_policy != "Delete":
        return ()
    objects, needed = ensemble.objects, {*ensemble.listed, *ensemble.declared}
    left = [number for number in ensemble.claims if number not in needed and objects.get("Pod", ensemble.named.pod(number)) is None]
    return deletions((objects.get(CLAIM, ensemble.named.claim(number)) for number in left), Reason.LEFT)


def _mark(ensemble: Ensemble, number: int, mark: str, reason: Reason) -> Annotate:
    claim = ensemble.claims[number]
    return Annotate(CLAIM, claim.name, claim.uid, {names.FOUNDED_ANNOTATION: mark}, reason)


def _claim_of_another_ensemble(ensemble: Ensemble) -> Wait | None:
    """Returns a wait for a claim with another ensemble's data: its member would mix two histories."""
    claims, named = ensemble.claims, ensemble.named
    origins = {number: claims[number].annotations.get(names.ENSEMBLE_ANNOTATION) for number in ensemble.pods if number in claims}
    known = [origin for number, origin in origins.items() if origin and ensemble.marks[number] == names.FOUNDED]
    strange = next((number for number, origin in origins.items() if known and origin and origin != known[0]), None)
    if strange is None:
        return None
    return Wait(
        Reason.CLAIM_OF_ANOTHER,
        f"the volume claim {named.claim(strange)} holds data of another ensemble with the same name: delete it and its pod "
        f"(kubectl delete pvc/{named.claim(strange)} pod/{named.pod(strange)} -n {ensemble.cluster.key.namespace}); the member then "
        "starts empty",
    )


def _adopt(ensemble: Ensemble, number: int) -> Apply:
    """Give a claim the labels and annotations that the operator would have created it with. Its own annotations stay."""
    claim, manifest = ensemble.claims[number], build_zookeeper_claim(ensemble, number)
    metadata = manifest["metadata"]
    kept = {name: claim.annotations.get(name, value) for name, value in metadata["annotations"].items()}
    return adopted({**manifest, "metadata": {**metadata, "annotations": kept}}, claim)
