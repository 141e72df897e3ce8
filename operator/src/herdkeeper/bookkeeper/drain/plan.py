"""Drains bookies: turns the next step of each drain into actions.

First all draining bookies become read-only, so that copies don't go from one to the next. Then one after the other is emptied and retired.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from herdkeeper.bookkeeper.build.bookies import BookieIdentity, build_stopped_bookie
from herdkeeper.bookkeeper.drain import procedure
from herdkeeper.bookkeeper.drain.build import DrainSource, build_move, build_record, build_retirement, is_kept, kept_record
from herdkeeper.bookkeeper.drain.procedure import JobState
from herdkeeper.bookkeeper.drain.state import Drain, rounds_of
from herdkeeper.bookkeeper.state.bookies import BeingScanned, LedgerScan, good_for_seconds
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.bookkeeper.state.numbers import BookieNumbers
from herdkeeper.codecs.bookkeeper.share import Share
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Action, Annotate, Apply, CloseLedger, Create, SetBookieMode, Wait, deletions
from herdkeeper.planning.intent import with_intent
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json, Objects, label
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

CLAIM = "PersistentVolumeClaim"


def rescan_after_seconds(fleet: BookieFleet) -> float:
    """Returns the seconds until the next read of all ledgers. 0 while a drain makes progress, or waits for something that its status does
    not show yet. A slow scan is repeated less often. The end of a running one requeues the cluster.
    """
    if isinstance(fleet.scan, BeingScanned):
        return requeue.UNREAD
    status = fleet.cluster.status
    told = {bookie.number: bookie.drain.message for bookie in (status.bookies if status else ()) if bookie.drain}
    if not all(isinstance(drain.step, Wait) and told.get(drain.number) == drain.step.sentence for drain in fleet.drains):
        return 0.0
    if not isinstance(fleet.scan, LedgerScan):
        return requeue.UNREAD
    return max(0.0, good_for_seconds(fleet.scan.seconds) - fleet.scan.age_seconds)


def actions_of(fleet: BookieFleet, drain: Drain, source: DrainSource) -> tuple[Action, ...]:  # noqa: C901, PLR0911 - one line a step
    """Returns the actions of a drain's step; none if it waits."""
    if isinstance(drain.bookie, Unknown):
        return ()
    identity = BookieIdentity(drain.number, drain.bookie.bookie_id)
    cluster, named = fleet.sized, fleet.named
    match drain.step:
        case Wait() | procedure.Restart():  # a bookie that is not stopped is applied like any other
            return ()
        case procedure.MarkDraining():
            return _mark(fleet.objects, named.journal_claim(drain.number), fleet.now, Reason.DRAINING)
        case procedure.MakeReadOnly():
            return (SetBookieMode(identity.bookie_id, named.host(drain.number), True, fleet.token, Reason.DRAINING),)
        case procedure.Record(number, shares):
            return (Create(build_record(cluster, identity, number, shares)),)
        case procedure.Move(number):
            return (Create(build_move(cluster, identity, number, source)),)
        case procedure.CloseLedgers(shares):
            return close_orders(shares, fleet, Reason.DRAINING)
        case procedure.Stop():
            return (
                Apply(with_intent(build_stopped_bookie(cluster, identity, source.zookeeper_address)), new=False, reason=Reason.DRAINING),
            )
        case procedure.RetireIdentity():
            return (Create(build_retirement(cluster, identity, source)),)
        case procedure.DeleteClaims(claims):
            return deletions((fleet.objects.get(CLAIM, claim.name) for claim in claims), Reason.DRAINED)
        case procedure.RemoveTraces():
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
        if share.writer in database.known_nodes
    )


def cancel_drains(fleet: BookieFleet) -> tuple[Action, ...]:
    """Returns the actions that cancel drains of bookies that stay: stop their Jobs and make them writable. Also removes leftovers of
    finished drains, and the Job that removes the identity of a bookie that was stopped and is not any more: it would pass for the next one.

    The record of a round that has not succeeded is kept for the next drain: the Job may have moved ledgers that were not read back, and no
    metadata names the bookie for them any more.
    """
    numbers, named, metadata = fleet.numbers, fleet.named, fleet.known_metadata
    unproven = {
        named.drain_round(number, begun.number)
        for number in numbers.existing
        for begun in rounds_of(named, fleet.objects, number)
        if begun.job is not JobState.DONE
    }
    # Records first: one without its Job counts as unproven.
    left = [item for kind in ("ConfigMap", "Job") for item in fleet.objects.of_kind(kind) if _is_left(item, numbers)]
    running = (named.retire_job(number) for number in numbers.leaving if not fleet.is_stopped(number))
    left += [job for name in running if (job := fleet.objects.get("Job", name)) is not None]
    kept = [item for item in left if item["kind"] == "ConfigMap" and item["metadata"]["name"] in unproven]
    actions: list[Action] = list(deletions((item for item in left if item not in kept), Reason.REMOVED))
    actions += [Apply(kept_record(item), new=False, reason=Reason.DRAIN_TAKEN_BACK) for item in kept if not is_kept(item)]
    for number in numbers.staying:
        claim = fleet.objects.claims.get(named.journal_claim(number))
        if claim is None or names.DRAINING_ANNOTATION not in claim.annotations or fleet.is_stopped(number):
            continue
        bookie_id = fleet.ids[number][0]
        if bookie_id in metadata.read_only and fleet.objects.pod_ready(named.pod(number)):
            actions.append(SetBookieMode(bookie_id, named.host(number), False, fleet.token, Reason.DRAIN_TAKEN_BACK))
        elif bookie_id in metadata.writable and bookie_id not in metadata.read_only:
            actions += _mark(fleet.objects, claim.name, None, Reason.DRAIN_TAKEN_BACK)
    return tuple(actions)


def _is_left(item: Json, numbers: BookieNumbers) -> bool:
    leaving = {str(number) for number in numbers.leaving}
    return label(item, names.COMPONENT_LABEL) == names.DRAIN_COMPONENT and label(item, names.BOOKIE_LABEL) not in leaving


def _mark(objects: Objects, claim: str, value: str | None, reason: Reason) -> tuple[Action, ...]:
    found = objects.claims.get(claim)
    return () if found is None else (Annotate(CLAIM, claim, found.uid, {names.DRAINING_ANNOTATION: value}, reason),)
