"""Drains bookies: turns each drain's observed state into its next step, and the step into actions.

First all draining bookies become read-only, so that copies don't go from one to the next. Then one after the other is emptied and retired.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import assert_never

from herdkeeper.bookkeeper.build.bookies import BookieIdentity, build_stopped_bookie
from herdkeeper.bookkeeper.drain.build import (
    DrainSource,
    build_move,
    build_record,
    build_retirement,
    is_kept,
    kept_record,
)
from herdkeeper.bookkeeper.drain.procedure import (
    CloseLedgers,
    ClusterState,
    DeleteClaims,
    DrainingBookie,
    JobState,
    MakeReadOnly,
    MarkDraining,
    Mode,
    Move,
    Record,
    RemoveTraces,
    Restart,
    RetireIdentity,
    Round,
    Step,
    Stop,
    next_step,
)
from herdkeeper.bookkeeper.plan.gate import lacking_copies
from herdkeeper.bookkeeper.state.bookies import LedgerScan, LedgersMetadata
from herdkeeper.bookkeeper.state.claims import claims_of
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.bookkeeper.state.numbers import BookieNumbers
from herdkeeper.codecs.bookkeeper.placement import PlacementRule
from herdkeeper.codecs.bookkeeper.share import Share
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Action, Annotate, Apply, CloseLedger, Create, SetBookieMode, Wait, deletions
from herdkeeper.planning.intent import with_intent
from herdkeeper.shared import names
from herdkeeper.shared.known_nodes import known_nodes
from herdkeeper.shared.names import BookKeeperNames
from herdkeeper.shared.objects import Json, Objects, job_ended
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

CLAIM = "PersistentVolumeClaim"


@dataclass(frozen=True)
class Drain:
    """A draining bookie: what was observed of it, and its next step."""

    number: int
    bookie: DrainingBookie | Unknown
    step: Step


def drains(fleet: BookieFleet) -> tuple[Drain, ...]:
    """Returns all draining bookies, the one being emptied first."""
    bookies = {number: _draining_bookie(fleet, number) for number in fleet.numbers.leaving}
    ordered = sorted(bookies, key=lambda number: _order(number, bookies[number]))
    cluster_state = _cluster_state(fleet)
    return tuple(_drain(number, bookies, cluster_state, turn) for turn, number in enumerate(ordered))


def rescan_after_seconds(fleet: BookieFleet, leaving: tuple[Drain, ...]) -> float:
    """Returns the seconds until the next read of all ledgers. 0 while a drain makes progress, or waits for something that its status does
    not show yet. A slow scan is repeated less often.
    """
    status = fleet.cluster.status
    told = {bookie.number: bookie.drain.message for bookie in (status.bookies if status else ()) if bookie.drain}
    if not all(isinstance(drain.step, Wait) and told.get(drain.number) == drain.step.sentence for drain in leaving):
        return 0.0
    if not isinstance(fleet.scan, LedgerScan):
        return requeue.UNREAD
    return max(0.0, fleet.scan.good_for_seconds - fleet.scan.age_seconds)


def actions_of(fleet: BookieFleet, drain: Drain, source: DrainSource) -> tuple[Action, ...]:  # noqa: C901, PLR0911 - one line a step
    """Returns the actions of a drain's step; none if it waits."""
    if isinstance(drain.bookie, Unknown):
        return ()
    identity = BookieIdentity(drain.number, drain.bookie.bookie_id)
    cluster, named = fleet.sized, fleet.named
    match drain.step:
        case Wait() | Restart():  # a bookie that is not stopped is applied like any other
            return ()
        case MarkDraining():
            return _mark(fleet.objects, named.journal_claim(drain.number), fleet.now, Reason.DRAINING)
        case MakeReadOnly():
            return (SetBookieMode(identity.bookie_id, named.host(drain.number), read_only=True, reason=Reason.DRAINING),)
        case Record(number, shares):
            return (Create(build_record(cluster, identity, number, shares)),)
        case Move(number):
            return (Create(build_move(cluster, identity, number, source)),)
        case CloseLedgers(shares):
            return close_orders(shares, fleet, Reason.DRAINING)
        case Stop():
            return (
                Apply(with_intent(build_stopped_bookie(cluster, identity, source.zookeeper_address)), new=False, reason=Reason.DRAINING),
            )
        case RetireIdentity():
            return (Create(build_retirement(cluster, identity, source)),)
        case DeleteClaims(claims):
            return deletions((fleet.objects.get(CLAIM, claim.name) for claim in claims), Reason.DRAINED)
        case RemoveTraces():
            return deletions((fleet.objects.get("StatefulSet", named.stateful_set(drain.number)),), Reason.DRAINED)
        case _:
            assert_never(drain.step)


def close_orders(shares: Iterable[Share], fleet: BookieFleet, reason: Reason) -> tuple[CloseLedger, ...]:
    """Returns orders to SQL nodes of the namespace to close ledgers and open the next."""
    return tuple(
        CloseLedger(database.metadata.name, str(share.writer), str(share.tablespace), share.ledger_id, reason)
        for share in shares
        if share.tablespace is not None
        for database in fleet.databases
        if share.writer in known_nodes(database)
    )


def cancelled(fleet: BookieFleet) -> tuple[Action, ...]:
    """Returns the actions that cancel drains of bookies that stay: stop their Jobs and make them writable. Also removes leftovers of
    finished drains.

    The record of a round that has not succeeded is kept for the next drain: the Job may have moved ledgers that were not read back, and no
    metadata names the bookie for them any more.
    """
    numbers, named, metadata = fleet.numbers, fleet.named, fleet.known
    unproven = {
        named.drain_round(number, begun.number)
        for number in numbers.existing
        for begun in _rounds(named, fleet.objects, number)
        if begun.job is not JobState.DONE
    }
    # Records first: one without its Job counts as unproven.
    left = [item for kind in ("ConfigMap", "Job") for item in fleet.objects.of_kind(kind) if _is_left(item, numbers)]
    kept = [item for item in left if item["kind"] == "ConfigMap" and item["metadata"]["name"] in unproven]
    actions: list[Action] = list(deletions((item for item in left if item not in kept), Reason.REMOVED))
    actions += [Apply(kept_record(item), new=False, reason=Reason.DRAIN_TAKEN_BACK) for item in kept if not is_kept(item)]
    for number in numbers.staying:
        claim = fleet.objects.claims.get(named.journal_claim(number))
        if claim is None or names.DRAINING_ANNOTATION not in claim.annotations or fleet.is_stopped(number):
            continue
        bookie_id = fleet.ids[number][0]
        if bookie_id in metadata.read_only and fleet.objects.pod_ready(named.pod(number)):
            actions.append(SetBookieMode(bookie_id, named.host(number), read_only=False, reason=Reason.DRAIN_TAKEN_BACK))
        elif bookie_id in metadata.writable and bookie_id not in metadata.read_only:
            actions += _mark(fleet.objects, claim.name, None, Reason.DRAIN_TAKEN_BACK)
    return tuple(actions)


def _drain(number: int, bookies: dict[int, DrainingBookie | Unknown], cluster_state: ClusterState | Unknown, turn: int) -> Drain:
    bookie = bookies[number]
    others = tuple(
        other.bookie_id
        for other in bookies.values()
        if isinstance(other, DrainingBookie) and other.number != number and other.mode is Mode.WRITABLE
    )
    step = next_step(bookie, replace(cluster_state, also_leaving=others) if isinstance(cluster_state, ClusterState) else cluster_state)
    if turn > 0 and not isinstance(step, Wait | MarkDraining | MakeReadOnly):
        step = Wait(Reason.WAITING_FOR_OTHERS, "another bookie is drained first")
    return Drain(number, bookie, step)


def _order(number: int, bookie: DrainingBookie | Unknown) -> tuple[bool, bool, bool, int]:
    """Sort key: continue what has started, then take the highest number. A bookie that is away blocks no other."""
    if isinstance(bookie, Unknown):
        return (True, True, True, -number)
    away = bookie.mode is Mode.GONE and not bookie.scaled_to_zero
    return (away, not bookie.scaled_to_zero, not bookie.rounds, -number)


def _draining_bookie(fleet: BookieFleet, number: int) -> DrainingBookie | Unknown:
    named, objects, metadata, ids = fleet.named, fleet.objects, fleet.known, fleet.ids[number]
    if len(ids) != 1:
        return Unknown(f"bookie {number} has {len(ids)} identities ({', '.join(ids)}), so it is not clear which one to drain")
    if not isinstance(fleet.scan, LedgerScan):
        return fleet.scan or Unknown("ledgers were not scanned")
    (bookie_id,) = ids
    claims = [claim for claim in claims_of(fleet.cluster, number, objects).values() if claim is not None]
    pod = named.pod(number)
    return DrainingBookie(
        number=number,
        bookie_id=bookie_id,
        mode=_mode(bookie_id, metadata),
        marked=any(names.DRAINING_ANNOTATION in claim.annotations for claim in claims),
        answers=objects.pod_ready(pod),
        pod_present=objects.get("Pod", pod) is not None,
        scaled_to_zero=fleet.is_stopped(number),
        shares=fleet.scan.shares.get(bookie_id, ()),
        rounds=_rounds(named, objects, number),
        cookie=bookie_id in metadata.cookies,
        retirement=_job_state(objects, named.retire_job(number)),
        claims=tuple(claims),
        own_writers=frozenset(node for database in fleet.databases for node in known_nodes(database)),
    )


def _mode(bookie_id: str, metadata: LedgersMetadata) -> Mode:
    """While its mode changes, a bookie may be registered twice. It may then still receive writes."""
    if bookie_id in metadata.writable:
        return Mode.WRITABLE
    return Mode.READ_ONLY if bookie_id in metadata.read_only else Mode.GONE


def _cluster_state(fleet: BookieFleet) -> ClusterState | Unknown:
    if not isinstance(fleet.scan, LedgerScan):
        return fleet.scan or Unknown("ledgers were not scanned")
    metadata = fleet.known
    staying, leaving = (
        frozenset(bookie_id for number in group for bookie_id in fleet.ids[number])
        for group in (fleet.numbers.staying, fleet.numbers.leaving)
    )
    return ClusterState(
        writable=len((staying & metadata.writable) - metadata.read_only),
        largest_ensemble=fleet.scan.largest_ensemble,
        under_replicated=metadata.under_replicated,
        autorecovery=_why_no_autorecovery(fleet),
        lacking=lacking_copies(fleet.scan, metadata, but=leaving),
        too_few_racks=_too_few_racks(fleet.placement_rule, staying & metadata.writable),
    )


def _too_few_racks(rule: PlacementRule, staying: frozenset[str]) -> str | None:
    """Bookies with an unknown rack don't count. If all bookies together are in too few racks, a drain makes that no worse."""
    left, wanted = {rule.racks[bookie_id] for bookie_id in staying if bookie_id in rule.racks}, min(rule.minimum, rule.possible)
    if len(left) >= wanted:
        return None
    return (
        f"the bookies that stay are in {len(left)} racks ({', '.join(sorted(left)) or 'none is known'}), and each entry needs copies in "
        f"{rule.minimum}: start a bookie in another rack, or lower spec.placement.minRacksPerWriteQuorum"
    )


def _why_no_autorecovery(fleet: BookieFleet) -> str | None:
    if not fleet.cluster.spec.auto_recovery.enabled:
        return "spec.autoRecovery.enabled is false"
    if not fleet.known.replication_enabled:
        return "autorecovery is disabled in BookKeeper's metadata (enable it with the shell's autorecovery -enable)"
    return "no auditor is elected" if fleet.known.auditor is None else None


def _rounds(named: BookKeeperNames, objects: Objects, number: int) -> tuple[Round, ...]:
    prefix = named.drain_round(number, 0).removesuffix("0")
    found = (
        item["metadata"]["name"].removeprefix(prefix)
        for item in objects.of_kind("ConfigMap")
        if item["metadata"]["name"].startswith(prefix)
    )
    rounds = sorted(int(text) for text in found if text.isdigit())
    return tuple(_round(objects, begun, named.drain_round(number, begun)) for begun in rounds)


def _round(objects: Objects, number: int, job: str) -> Round:
    state, message = _job_state(objects, job), _termination_message(objects, job)
    kept = is_kept(objects.get("ConfigMap", job) or {})
    if state is JobState.FAILED:
        return Round(number, state, f"{message or 'its pods left no message'}; delete the Job {job} to try again", kept)
    return Round(number, state, message, kept)


def _job_state(objects: Objects, name: str) -> JobState:
    job = objects.get("Job", name)
    if job is None:
        return JobState.ABSENT
    match job_ended(job):
        case "Complete":
            return JobState.DONE
        case "Failed":
            return JobState.FAILED
        case _:
            return JobState.RUNNING


def _termination_message(objects: Objects, name: str) -> str:
    """Returns the termination message of the last failed container of a Job's pods, or an empty string."""
    message = [
        str(ended["message"]).strip()
        for pod in objects.of_kind("Pod")
        if (pod["metadata"].get("labels") or {}).get("batch.kubernetes.io/job-name") == name
        for kind in ("initContainerStatuses", "containerStatuses")
        for container in pod.get("status", {}).get(kind) or []
        if (ended := container.get("state", {}).get("terminated") or {}).get("message") and ended.get("exitCode")
    ]
    return message[-1][-400:] if message else ""


def _is_left(item: Json, numbers: BookieNumbers) -> bool:
    labels = item["metadata"].get("labels") or {}
    number = labels.get(names.BOOKIE_LABEL)
    return labels.get(names.COMPONENT_LABEL) == names.DRAIN_COMPONENT and number not in {str(leaving) for leaving in numbers.leaving}


def _mark(objects: Objects, claim: str, value: str | None, reason: Reason) -> tuple[Action, ...]:
    found = objects.claims.get(claim)
    return () if found is None else (Annotate(CLAIM, claim, found.uid, {names.DRAINING_ANNOTATION: value}, reason),)
