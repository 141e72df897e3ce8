"""Drains bookies: turns each drain's observed state into its next step, and the step into actions.

First all draining bookies become read-only, so that copies don't go from one to the next. Then one after the other is emptied and retired.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import assert_never

from herdkeeper.api import BookKeeperCluster, HerdDBCluster
from herdkeeper.bookkeeper.build.bookies import BookieIdentity, build_stopped_bookie
from herdkeeper.bookkeeper.drain.build import DrainSource, build_move, build_record, build_retirement
from herdkeeper.bookkeeper.drain.procedure import (
    Claim,
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
from herdkeeper.bookkeeper.state.bookies import BookKeeperObserved, LedgerScan, LedgersMetadata
from herdkeeper.bookkeeper.state.claims import claims_of
from herdkeeper.bookkeeper.state.identity import bookie_ids
from herdkeeper.bookkeeper.state.numbers import BookieNumbers, bookie_numbers, scaled_to_zero
from herdkeeper.bookkeeper.state.racks import racks_of, rule_of
from herdkeeper.codecs.bookkeeper.share import Share
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Action, Annotate, Apply, CloseLedger, Create, SetBookieMode, Wait, deletions
from herdkeeper.planning.intent import with_intent
from herdkeeper.shared import names
from herdkeeper.shared.known_nodes import known_nodes
from herdkeeper.shared.names import BookKeeperNames
from herdkeeper.shared.objects import Json, Objects, annotation, job_ended
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

CLAIM = "PersistentVolumeClaim"


@dataclass(frozen=True)
class Drain:
    """A draining bookie: what was observed of it, and its next step."""

    number: int
    bookie: DrainingBookie | Unknown
    step: Step


def drains(cluster: BookKeeperCluster, seen: BookKeeperObserved, metadata: LedgersMetadata) -> tuple[Drain, ...]:
    """Returns all draining bookies, the one being emptied first."""
    numbers = bookie_numbers(cluster, seen.objects, metadata)
    bookies = {number: _draining_bookie(cluster, seen, metadata, number) for number in numbers.leaving}
    cluster_state = _cluster_state(cluster, seen, metadata, numbers)
    ordered = sorted(numbers.leaving, key=lambda number: _order(number, bookies[number]))
    return tuple(_drain(number, bookies, cluster_state, turn) for turn, number in enumerate(ordered))


def rescan_after_seconds(cluster: BookKeeperCluster, seen: BookKeeperObserved, leaving: tuple[Drain, ...]) -> float:
    """Returns the seconds until the next read of all ledgers. 0 while a drain makes progress, or waits for something that its status does
    not show yet. A slow scan is repeated less often.
    """
    told = {bookie.number: bookie.drain.message for bookie in (cluster.status.bookies if cluster.status else ()) if bookie.drain}
    if not all(isinstance(drain.step, Wait) and told.get(drain.number) == drain.step.sentence for drain in leaving):
        return 0.0
    if not isinstance(seen.scan, LedgerScan):
        return requeue.UNREAD
    return max(0.0, seen.scan.good_for_seconds - seen.scan.age_seconds)


def actions_of(  # noqa: C901, PLR0911 - one line a step
    cluster: BookKeeperCluster, seen: BookKeeperObserved, drain: Drain, source: DrainSource
) -> tuple[Action, ...]:
    """Returns the actions of a drain's step; none if it waits."""
    if isinstance(drain.bookie, Unknown):
        return ()
    identity = BookieIdentity(drain.number, drain.bookie.bookie_id)
    named = cluster.names
    match drain.step:
        case Wait() | Restart():  # a bookie that is not stopped is applied like any other
            return ()
        case MarkDraining():
            return _mark(seen.objects, named.journal_claim(drain.number), seen.now, Reason.DRAINING)
        case MakeReadOnly():
            return (SetBookieMode(identity.bookie_id, named.host(drain.number), read_only=True, reason=Reason.DRAINING),)
        case Record(number, shares):
            return (Create(build_record(cluster, identity, number, shares)),)
        case Move(number):
            return (Create(build_move(cluster, identity, number, source)),)
        case CloseLedgers(shares):
            return close_orders(shares, seen, Reason.DRAINING)
        case Stop():
            return (
                Apply(with_intent(build_stopped_bookie(cluster, identity, source.zookeeper_address)), new=False, reason=Reason.DRAINING),
            )
        case RetireIdentity():
            return (Create(build_retirement(cluster, identity, source)),)
        case DeleteClaims(claims):
            return deletions((seen.objects.get(CLAIM, claim.name) for claim in claims), Reason.DRAINED)
        case RemoveTraces():
            return deletions((seen.objects.get("StatefulSet", named.stateful_set(drain.number)),), Reason.DRAINED)
        case _:
            assert_never(drain.step)


def close_orders(shares: Iterable[Share], seen: BookKeeperObserved, reason: Reason) -> tuple[CloseLedger, ...]:
    """Returns orders to SQL nodes of the namespace to close ledgers and open the next."""
    return tuple(
        CloseLedger(database.metadata.name, str(share.writer), str(share.tablespace), share.ledger_id, reason)
        for share in shares
        if share.tablespace is not None
        for database in _databases(seen)
        if share.writer in known_nodes(database)
    )


def cancelled(cluster: BookKeeperCluster, seen: BookKeeperObserved, metadata: LedgersMetadata) -> tuple[Action, ...]:
    """Returns the actions that cancel drains of bookies that stay: stop their Jobs and make them writable. Also removes leftovers of
    finished drains.
    """
    numbers = bookie_numbers(cluster, seen.objects, metadata)
    named = cluster.names
    left = [item for kind in ("Job", "ConfigMap") for item in seen.objects.of_kind(kind) if _is_left(item, numbers)]
    actions: list[Action] = list(deletions(left, Reason.REMOVED))
    for number in numbers.staying:
        claim = seen.objects.get(CLAIM, named.journal_claim(number))
        if claim is None or annotation(claim, names.DRAINING_ANNOTATION) is None or scaled_to_zero(named, seen.objects, number):
            continue
        (bookie_id, *_) = sorted(bookie_ids(named, seen.objects, metadata.cookies, number))
        if bookie_id in metadata.read_only and seen.objects.pod_ready(named.pod(number)):
            actions.append(SetBookieMode(bookie_id, named.host(number), read_only=False, reason=Reason.DRAIN_TAKEN_BACK))
        elif bookie_id in metadata.writable and bookie_id not in metadata.read_only:
            actions += _mark(seen.objects, claim["metadata"]["name"], None, Reason.DRAIN_TAKEN_BACK)
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


def _draining_bookie(
    cluster: BookKeeperCluster, seen: BookKeeperObserved, metadata: LedgersMetadata, number: int
) -> DrainingBookie | Unknown:
    named, objects = cluster.names, seen.objects
    ids = bookie_ids(named, objects, metadata.cookies, number)
    if len(ids) != 1:
        return Unknown(f"bookie {number} has {len(ids)} identities ({', '.join(sorted(ids))}), so it is not clear which one to drain")
    if not isinstance(seen.scan, LedgerScan):
        return seen.scan or Unknown("ledgers were not scanned")
    (bookie_id,) = ids
    claims = [claim for claim in claims_of(cluster, number, objects).values() if claim is not None]
    pod = named.pod(number)
    return DrainingBookie(
        number=number,
        bookie_id=bookie_id,
        mode=_mode(bookie_id, metadata),
        marked=any(annotation(claim, names.DRAINING_ANNOTATION) is not None for claim in claims),
        answers=objects.pod_ready(pod),
        pod_present=objects.get("Pod", pod) is not None,
        scaled_to_zero=scaled_to_zero(named, objects, number),
        shares=seen.scan.shares.get(bookie_id, ()),
        rounds=_rounds(named, objects, number),
        cookie=bookie_id in metadata.cookies,
        retirement=_job_state(objects, named.retire_job(number)),
        claims=tuple(Claim(claim["metadata"]["name"], claim["metadata"]["uid"]) for claim in claims),
        own_writers=frozenset(node for database in seen.scan.databases for node in known_nodes(database)),
    )


def _databases(seen: BookKeeperObserved) -> tuple[HerdDBCluster, ...]:
    return seen.scan.databases if isinstance(seen.scan, LedgerScan) else ()


def _mode(bookie_id: str, metadata: LedgersMetadata) -> Mode:
    """While its mode changes, a bookie may be registered twice. It may then still receive writes."""
    if bookie_id in metadata.writable:
        return Mode.WRITABLE
    return Mode.READ_ONLY if bookie_id in metadata.read_only else Mode.GONE


def _cluster_state(
    cluster: BookKeeperCluster, seen: BookKeeperObserved, metadata: LedgersMetadata, numbers: BookieNumbers
) -> ClusterState | Unknown:
    if not isinstance(seen.scan, LedgerScan):
        return seen.scan or Unknown("ledgers were not scanned")
    named = cluster.names
    staying, leaving = (
        frozenset(bookie_id for number in group for bookie_id in bookie_ids(named, seen.objects, metadata.cookies, number))
        for group in (numbers.staying, numbers.leaving)
    )
    return ClusterState(
        writable=len((staying & metadata.writable) - metadata.read_only),
        largest_ensemble=seen.scan.largest_ensemble,
        under_replicated=metadata.under_replicated,
        autorecovery=_why_no_autorecovery(cluster, metadata),
        lacking=lacking_copies(seen.scan, metadata, but=leaving),
        too_few_racks=_too_few_racks(cluster, seen, metadata, staying & metadata.writable),
    )


def _too_few_racks(cluster: BookKeeperCluster, seen: BookKeeperObserved, metadata: LedgersMetadata, staying: frozenset[str]) -> str | None:
    """Bookies with an unknown rack don't count. If all bookies together are in too few racks, a drain makes that no worse."""
    rule = rule_of(cluster, racks_of(cluster, seen.objects, seen.nodes), metadata.cookies)
    left, wanted = {rule.racks[bookie_id] for bookie_id in staying if bookie_id in rule.racks}, min(rule.minimum, rule.possible)
    if len(left) >= wanted:
        return None
    return (
        f"the bookies that stay are in {len(left)} racks ({', '.join(sorted(left)) or 'none is known'}), and each entry needs copies in "
        f"{rule.minimum}: start a bookie in another rack, or lower spec.placement.minRacksPerWriteQuorum"
    )


def _why_no_autorecovery(cluster: BookKeeperCluster, metadata: LedgersMetadata) -> str | None:
    if not cluster.spec.auto_recovery.enabled:
        return "spec.autoRecovery.enabled is false"
    if not metadata.replication_enabled:
        return "autorecovery is disabled in BookKeeper's metadata (enable it with the shell's autorecovery -enable)"
    return "no auditor is elected" if metadata.auditor is None else None


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
    if state is JobState.FAILED:
        return Round(number, state, f"{message or 'its pods left no message'}; delete the Job {job} to try again")
    return Round(number, state, message)


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
    found = objects.get(CLAIM, claim)
    return () if found is None else (Annotate(CLAIM, claim, found["metadata"]["uid"], {names.DRAINING_ANNOTATION: value}, reason),)
