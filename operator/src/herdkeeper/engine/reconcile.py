"""The table of contents: observe -> validate -> build and plan -> execute -> summarize, for each kind of resource.

Called by a worker of engine/queue.py with one key at a time. Reads fresh, remembers nothing: whatever is cut off here is planned again
from what is then true.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any

import structlog

from herdkeeper.api import (
    KINDS,
    BookKeeperCluster,
    Checkpoint,
    HerdDBCluster,
    ReplicationAudit,
    ScheduledCheckpoint,
    ScheduledReplicationAudit,
    Tablespace,
    ZooKeeperCluster,
)
from herdkeeper.api.resource import Resource
from herdkeeper.bookkeeper.deletion import plan_bookkeeper_deletion
from herdkeeper.bookkeeper.observe.bookies import observe_bookkeeper, observe_ledgers
from herdkeeper.bookkeeper.plan.bookies import plan_bookkeeper
from herdkeeper.bookkeeper.state.bookies import BookKeeperObserved
from herdkeeper.bookkeeper.status.bookies import summarize_bookkeeper
from herdkeeper.bookkeeper.validate import bookkeeper_refusals
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.counters import LIVE_LOOKS
from herdkeeper.clients.counters import READY as READY_GAUGE
from herdkeeper.clients.deleted_resources import DeletedResource
from herdkeeper.clients.kubernetes import Unreadable, parsed
from herdkeeper.clients.object_cache import ObjectCache
from herdkeeper.engine.execute import Clients, LiveReadsNeededError, execute
from herdkeeper.engine.finalizer import finalizer_step
from herdkeeper.engine.gauges.audits import LAST_AUDITS
from herdkeeper.engine.gauges.conditions import CONDITIONS
from herdkeeper.engine.gauges.drills import forget_drill, show_drill
from herdkeeper.engine.gauges.figures import show_figures
from herdkeeper.engine.gauges.logs import forget_log, show_log
from herdkeeper.herddb.deletion import plan_herddb_deletion
from herdkeeper.herddb.log.in_time import log_standings
from herdkeeper.herddb.observe.cluster import observe_herddb
from herdkeeper.herddb.plan.cluster import plan_herddb
from herdkeeper.herddb.status.cluster import summarize_herddb
from herdkeeper.herddb.tablespace.deletion import plan_tablespace_deletion
from herdkeeper.herddb.tablespace.observe import observe_tablespace
from herdkeeper.herddb.tablespace.plan import plan_tablespace
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.herddb.tablespace.status import summarize_tablespace
from herdkeeper.herddb.tablespace.status_full_check import newly_failed, newly_missed
from herdkeeper.herddb.tablespace.validate import tablespace_refusals
from herdkeeper.herddb.validate import herddb_refusals
from herdkeeper.jobs.drill.plan import plan_scheduled_checkpoint
from herdkeeper.jobs.drill.status import drill_ended, drill_sentence
from herdkeeper.jobs.observe import observe_audit, observe_checkpoint
from herdkeeper.jobs.plan import plan_audit, plan_checkpoint
from herdkeeper.jobs.removal.plan import plan_removal
from herdkeeper.jobs.schedule.observe import observe_schedule
from herdkeeper.jobs.schedule.plan import plan_schedule
from herdkeeper.jobs.schedule.status import summarize_scheduled_audit, summarize_scheduled_checkpoint
from herdkeeper.jobs.status import summarize_audit, summarize_checkpoint
from herdkeeper.jobs.validate import audit_refusals, checkpoint_refusals, schedule_refusals
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import BarPromotion, Plan, SetFinalizer, Wait
from herdkeeper.planning.deletion import plan_unreadable_deletion, waited_seconds, waiting_for_users
from herdkeeper.planning.identities import with_identities
from herdkeeper.planning.network_policies import with_network_policies
from herdkeeper.planning.pruning import safe_from_pruning
from herdkeeper.planning.refusal import Refusal, unreadable_refusals
from herdkeeper.planning.status import Failed, planned, refused_status, status_document, stored_status
from herdkeeper.planning.summary import Summary
from herdkeeper.settings import Settings
from herdkeeper.shared import names
from herdkeeper.shared.conditions import FIELDS_READ, LOG_REPLAYABLE, LOG_USED_IN_TIME, READY, REPLICAS_VERIFIED, USERS_IN_FORCE, condition
from herdkeeper.shared.dependents import NO_DEPENDENTS, Dependents
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.paused import paused_by
from herdkeeper.shared.reason import Reason
from herdkeeper.zookeeper.deletion import plan_zookeeper_deletion
from herdkeeper.zookeeper.observe import observe_zookeeper
from herdkeeper.zookeeper.plan import plan_zookeeper
from herdkeeper.zookeeper.state import ZooKeeperObserved
from herdkeeper.zookeeper.status import summarize_zookeeper
from herdkeeper.zookeeper.validate import zookeeper_refusals

logger = structlog.get_logger()

KIND_OF: Mapping[str, type[Resource]] = {kind.KIND: kind for kind in KINDS}

UNWATCHED_SECONDS = 60.0
"""How often a resource is looked at that rests on objects of which no watch tells, such as a user's own Secret."""

SHOWN_AGAIN_SECONDS = 15.0
"""How often a plan that is shown instead of executed is made anew."""


@dataclass(frozen=True)
class Key:
    """A resource: its kind, namespace and name."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"


def locks_of(stacks_of: Callable[[Key], frozenset[Hashable]], key: Key) -> frozenset[Hashable]:
    """The locks of a reconcile. Resources of one stack share a lock, because only one server of it may be disrupted at a time: each
    reconcile sees the result of the one before. Checkpoints of a namespace share one, too: none starts to write while another one is
    being removed. `stacks_of` names the stack of a cluster."""
    if key.kind == Checkpoint.KIND:
        return frozenset({(key.kind, key.namespace)})
    disrupts = key.kind in (ZooKeeperCluster.KIND, BookKeeperCluster.KIND, HerdDBCluster.KIND)
    return frozenset({key, *(("stack", stack) for stack in stacks_of(key))} if disrupts else {key})


class Outcome(Enum):
    """How a reconcile ended."""

    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"
    GONE = "gone"


@dataclass(frozen=True)
class Result:
    """`requeue_after_seconds` is None when only an event or the resync shall bring the key back; after a failure, when only its back-off
    shall."""

    outcome: Outcome
    requeue_after_seconds: float | None = None


@dataclass(frozen=True)
class Steps:
    """How one kind is reconciled. Each function takes the resource and what was seen of it; `plan_deletion` also the seconds that it has
    waited for a silent backend, and is None for kinds without data of their own. `observe_ledgers` adds to what
    was seen what a plan needs rarely."""

    observe: Callable[[Any, ClusterReader], Any]
    refusals: Callable[[Any, Any], tuple[Refusal, ...]]
    plan: Callable[[Any, Any], Plan]
    summarize: Callable[[Any, Any], Summary]
    plan_deletion: Callable[[Any, Any, float], Plan] | None = None
    observe_ledgers: Callable[[Any, Any, ClusterReader], Any] | None = None


def steps_by_kind(settings: Settings) -> Mapping[str, Steps]:
    """The rooms, in the order in which a reconcile walks through them."""
    return {
        ZooKeeperCluster.KIND: Steps(
            observe_zookeeper,
            lambda cluster, seen: zookeeper_refusals(cluster, seen.voters),
            partial(_with_additions, partial(_with_identities, plan_zookeeper, names.ZOOKEEPER_COMPONENT), settings.namespace),
            summarize_zookeeper,
            plan_zookeeper_deletion,
        ),
        BookKeeperCluster.KIND: Steps(
            observe_bookkeeper,
            lambda cluster, _: bookkeeper_refusals(cluster),
            partial(
                _with_additions,
                partial(_with_identities, partial(_with_image, plan_bookkeeper, settings.images.spark), names.BOOKIE_COMPONENT),
                settings.namespace,
            ),
            summarize_bookkeeper,
            plan_bookkeeper_deletion,
            observe_ledgers,
        ),
        HerdDBCluster.KIND: Steps(
            observe_herddb,
            lambda cluster, seen: herddb_refusals(cluster, seen.bookkeeper),
            partial(_with_additions, partial(_with_identities, plan_herddb, names.HERDDB_COMPONENT), settings.namespace),
            summarize_herddb,
            plan_herddb_deletion,
        ),
        Tablespace.KIND: Steps(
            _observe_tablespace,
            lambda tablespace, seen: tablespace_refusals(tablespace, seen.herddb, seen.others),
            partial(_with_image, plan_tablespace, settings.images.spark),
            summarize_tablespace,
            plan_tablespace_deletion,
        ),
        Checkpoint.KIND: Steps(
            observe_checkpoint,
            lambda checkpoint, seen: checkpoint_refusals(checkpoint, seen.tablespace),
            partial(_with_image, plan_checkpoint, settings.images.spark),
            summarize_checkpoint,
            lambda checkpoint, seen, waited: plan_removal(checkpoint, seen, settings.images.spark, waited),
        ),
        ScheduledCheckpoint.KIND: Steps(
            observe_schedule,
            lambda schedule, _: schedule_refusals(schedule),
            partial(_with_image, plan_scheduled_checkpoint, settings.images.spark),
            summarize_scheduled_checkpoint,
        ),
        ReplicationAudit.KIND: Steps(
            observe_audit,
            lambda audit, _: audit_refusals(audit),
            partial(_with_image, plan_audit, settings.images.spark),
            summarize_audit,
        ),
        ScheduledReplicationAudit.KIND: Steps(
            observe_schedule,
            lambda schedule, _: schedule_refusals(schedule),
            plan_schedule,
            summarize_scheduled_audit,
        ),
    }


def reconcile(key: Key, steps: Steps, clients: Clients, cache: ObjectCache | None = None) -> Result:
    """Bring one resource a step nearer to what it declares. Raises ApiException when the API server does not answer.

    First it is looked at as the watches told of it. Where nothing is to be done, the API server is asked for nothing; else the look is made
    again from live reads: nothing is done that only the cache says.
    """
    if cache is None:
        return _reconcile(key, steps, clients)
    source = clients.reader.kubernetes.watched(cache)
    reader = replace(clients.reader, kubernetes=clients.reader.kubernetes.over(source))
    try:
        result = _reconcile(key, steps, replace(clients, reader=reader, read_only=True))
    except LiveReadsNeededError:
        LIVE_LOOKS.labels(key.kind).inc()
        return _reconcile(key, steps, clients)
    if not source.unwatched or result.outcome is Outcome.GONE:
        return result
    return replace(result, requeue_after_seconds=min(UNWATCHED_SECONDS, result.requeue_after_seconds or UNWATCHED_SECONDS))


def _reconcile(key: Key, steps: Steps, clients: Clients) -> Result:
    found = clients.reader.kubernetes.resource(KIND_OF[key.kind], ObjectKey(key.namespace, key.name))
    deleted = clients.reader.deleted.get(key)
    if found is not None:
        clients.reader.deleted.forget(key)
    match found:
        case None if deleted is not None:
            return _reconcile_deleted(key, deleted, steps, clients)
        case None:
            return _gone(key)
        case Unreadable(_, error, rest):
            return _reconcile_unreadable(rest, unreadable_refusals(error), clients)
        case Resource():
            return _reconcile_resource(found, steps, clients)


def _reconcile_resource(resource: Resource, steps: Steps, clients: Clients) -> Result:
    deleting = resource.metadata.deletion_timestamp is not None
    if deleting and names.FINALIZER not in resource.metadata.finalizers:
        return _gone(_key(resource))  # Kubernetes takes the rest; what has no owner stays
    seen = steps.observe(resource, clients.reader)
    if not deleting and (refusals := steps.refusals(resource, seen)):
        return _refuse(resource, refusals, clients)
    plan = _plan(resource, seen, steps)
    if plan.needs_ledgers and steps.observe_ledgers is not None:
        clients.require_live_reads()
        seen = steps.observe_ledgers(resource, seen, clients.reader)
        plan = _plan(resource, seen, steps)
    summary = steps.summarize(resource, seen)
    summary = replace(summary, fields={**summary.fields, **plan.notes})
    if isinstance(resource, ReplicationAudit) and seen.bookkeeper is not None:
        LAST_AUDITS.show(resource, summary.fields)
    if isinstance(resource, ScheduledCheckpoint):
        show_drill(resource, summary.fields.get("lastDrill"))
    if isinstance(resource, Tablespace):
        show_log(resource, seen.standings)
    if resource.metadata.annotations.get(names.PLAN_ANNOTATION) == "true" and not deleting:
        summary = replace(summary, fields={**summary.fields, "plan": planned(plan)})
        plan = _shown(plan)
    failed = execute(resource, plan, clients)
    if deleting and failed is None and any(isinstance(action, SetFinalizer) for action in plan.actions):
        return _gone(_key(resource))
    _write_status(resource, status_document(resource, summary, plan, failed, _now()), clients)
    return _result(plan, failed)


def has_data_to_delete(key: Key, document: dict[str, Any]) -> bool:
    """Whether a deleted resource's data must still be deleted, because it had no finalizer yet."""
    metadata = document["metadata"]
    if key.kind == Checkpoint.KIND or names.FINALIZER in (metadata.get("finalizers") or []):
        return False  # the Job that removes a Checkpoint's files goes with the Checkpoint
    found = parsed(KIND_OF[key.kind], document)
    return (
        not isinstance(found, Unreadable)
        and getattr(found.spec, "deletion_policy", "Retain") == "Delete"
        and paused_by(found.metadata) is None
    )


def _reconcile_deleted(key: Key, deleted: DeletedResource, steps: Steps, clients: Clients) -> Result:
    """The data of a resource that is gone already goes as it would have under its finalizer, which there is none of to take away."""
    clients.require_live_reads()
    resource = parsed(KIND_OF[key.kind], deleted.document)
    if isinstance(resource, Unreadable) or steps.plan_deletion is None:
        clients.reader.deleted.forget(key)
        return _gone(key)
    resource = resource.model_copy(update={"metadata": resource.metadata.model_copy(update={"deletion_timestamp": _now()})})
    seen = steps.observe(resource, clients.reader)
    plan = waiting_for_users(_users(seen)) or steps.plan_deletion(resource, seen, deleted.seconds)
    last = [action for action in plan.actions if isinstance(action, SetFinalizer)]
    failed = execute(resource, replace(plan, actions=tuple(action for action in plan.actions if action not in last)), clients)
    if failed is not None or not last:
        return _result(plan, failed)
    for action in last:
        clients.writer.event(resource, action.reason.value, action.message, "Warning" if action.reason.needs_person else "Normal")
    clients.reader.deleted.forget(key)
    return _gone(key)


def _reconcile_unreadable(stub: Resource, refusals: tuple[Refusal, ...], clients: Clients) -> Result:
    """Nothing is changed, but that a deleted one lets go of its finalizer: else its namespace could never be deleted."""
    metadata = stub.metadata
    if metadata.deletion_timestamp is None:
        return _refuse(stub, refusals, clients)
    if names.FINALIZER not in metadata.finalizers:
        return _gone(_key(stub))
    plan = plan_unreadable_deletion(refusals[0].sentence, _age_seconds(metadata.deletion_timestamp))
    if not plan.actions:
        return replace(_refuse(stub, refusals, clients), requeue_after_seconds=plan.requeue_after_seconds)
    return Result(Outcome.FAILED) if execute(stub, plan, clients) else _gone(_key(stub))


def _plan(resource: Resource, seen: Any, steps: Steps) -> Plan:
    if resource.metadata.annotations.get(names.PAUSED_ANNOTATION) == "true":
        message = f"the annotation {names.PAUSED_ANNOTATION} stops every change; remove it to go on"
        return Plan(wait=Wait(Reason.PAUSED, message))
    users = _users(seen)
    if finalizer := finalizer_step(resource, users):
        return Plan((finalizer,), requeue_after_seconds=requeue.NOTED)
    if resource.metadata.deletion_timestamp is not None and steps.plan_deletion is not None:
        if waiting := waiting_for_users(users):
            return waiting
        return steps.plan_deletion(resource, seen, waited_seconds(resource, datetime.datetime.now(datetime.UTC)))
    plan: Plan = steps.plan(resource, seen)
    return plan


def _users(seen: Any) -> Dependents:
    return seen.dependents if isinstance(seen, ZooKeeperObserved | BookKeeperObserved) else NO_DEPENDENTS


def _shown(plan: Plan) -> Plan:
    """A plan of which nothing is executed; what it depends on may change without an event."""
    message = f"the annotation {names.PLAN_ANNOTATION} stops every change; status.plan shows the planned steps; remove it to continue"
    return Plan(wait=Wait(Reason.PLANNED, message), requeue_after_seconds=max(plan.requeue_after_seconds or 0.0, SHOWN_AGAIN_SECONDS))


def _gone(key: Key) -> Result:
    """A resource that is no more is not one that is not Ready."""
    with contextlib.suppress(KeyError):
        READY_GAUGE.remove(key.kind, key.namespace, key.name)
    CONDITIONS.show(key.kind, key.namespace, key.name, ())
    show_figures(key.kind, key.namespace, key.name, {})
    if key.kind == ScheduledCheckpoint.KIND:
        forget_drill(ObjectKey(key.namespace, key.name))
    if key.kind == Tablespace.KIND:
        forget_log(ObjectKey(key.namespace, key.name))
    if key.kind == BookKeeperCluster.KIND:
        LAST_AUDITS.forget(ObjectKey(key.namespace, key.name))
    return Result(Outcome.GONE)


def _key(resource: Resource) -> Key:
    return Key(resource.KIND, resource.metadata.namespace, resource.metadata.name)


def _refuse(resource: Resource, refusals: tuple[Refusal, ...], clients: Clients) -> Result:
    """Nothing is changed while a resource says what it must not say."""
    _write_status(resource, refused_status(resource, refusals, _now()), clients)
    return Result(Outcome.REFUSED)


def _write_status(resource: Resource, status: dict[str, Any], clients: Clients) -> None:
    """Write what differs from the stored status, and tell of a Ready that changed its reason. Later reconciles rest on a status (what was
    founded, which instance id), so only who may act writes one."""
    before = stored_status(resource)
    ready = next(entry for entry in status["conditions"] if entry["type"] == READY)
    key = _key(resource)
    READY_GAUGE.labels(key.kind, key.namespace, key.name).set(ready["status"] == "True")
    CONDITIONS.show(key.kind, key.namespace, key.name, status["conditions"])
    show_figures(key.kind, key.namespace, key.name, status)
    if _comparable(before) == _comparable(status) or not clients.may_act():
        return
    clients.require_live_reads()
    clients.writer.write_status(resource, status)
    was = condition(resource, READY)
    if was is None or (was.status, was.reason) != (ready["status"], ready["reason"]):
        kind = "Warning" if Reason(ready["reason"]).needs_person else "Normal"
        clients.writer.event(resource, ready["reason"], ready["message"], kind)
        logger.info("ready changed", status=ready["status"], reason=ready["reason"], message=ready["message"])
    for kind in (REPLICAS_VERIFIED, LOG_USED_IN_TIME, LOG_REPLAYABLE, FIELDS_READ):
        _report_condition(resource, status, kind, clients)
    _report_users(resource, status, clients)
    _report_drills(resource, before.get("lastDrill"), status.get("lastDrill"), clients)
    for failed in newly_failed(before.get("fullCheck"), status.get("fullCheck")):
        clients.writer.event(resource, Reason.FULL_CHECK_FAILED.value, failed, "Warning")
        logger.warning("full check failed", reason=Reason.FULL_CHECK_FAILED.value, message=failed)
    if (missed := newly_missed(before.get("fullCheck"), status.get("fullCheck"))) is not None:
        clients.writer.event(resource, Reason.TIME_MISSED.value, missed, "Normal")
        logger.info("full check missed", reason=Reason.TIME_MISSED.value, message=missed)


def _report_drills(resource: Resource, before: dict[str, Any] | None, after: dict[str, Any] | None, clients: Clients) -> None:
    """What became of a restore drill that has ended."""
    ended = drill_ended(before, after)
    if ended is None:
        return
    reason = Reason.DRILLED if ended["outcome"] == "Succeeded" else Reason.DRILL_FAILED
    clients.writer.event(resource, reason.value, drill_sentence(ended), "Warning" if reason.needs_person else "Normal")
    logger.info("restore drill ended", reason=reason.value, message=drill_sentence(ended))


def _report_condition(resource: Resource, status: dict[str, Any], kind: str, clients: Clients) -> None:
    """That it turned False, a replica differs or the log's retention nears, and that it is so no more. That nobody knows yet is no news."""
    was, now = condition(resource, kind), _entry(status, kind)
    before = was.status if was is not None else None
    if now is None or now["status"] == before or "False" not in (before, now["status"]):
        return
    clients.writer.event(resource, now["reason"], now["message"], "Warning" if now["status"] == "False" else "Normal")
    logger.warning("condition turned", condition=kind, status=now["status"], reason=now["reason"], message=now["message"])


def _report_users(resource: Resource, status: dict[str, Any], clients: Clients) -> None:
    """Whose login is not as its Secret says, and that all are. That nodes take changes up is part of each change, and no news."""
    was, entry = condition(resource, USERS_IN_FORCE), _entry(status, USERS_IN_FORCE)
    if entry is None or entry["reason"] == Reason.USERS_CHANGING or (was is not None and was.message == entry["message"]):
        return
    kind = "Normal" if entry["status"] == "True" else "Warning"
    clients.writer.event(resource, entry["reason"], entry["message"], kind)
    logger.info("users changed", status=entry["status"], reason=entry["reason"], message=entry["message"])


def _entry(status: dict[str, Any], kind: str) -> dict[str, Any] | None:
    return next((entry for entry in status["conditions"] if entry["type"] == kind), None)


def _comparable(status: dict[str, Any]) -> dict[str, Any]:
    """Without empty lists: whether one is stored as empty or not at all means the same."""
    return {name: value for name, value in status.items() if value not in ([], (), None)}


def _result(plan: Plan, failed: Failed | None) -> Result:
    if failed is None:
        return Result(Outcome.OK, _requeue_after_seconds(plan))
    # A node may refuse its bar for long; the copy that is made anew meanwhile is looked at all the same.
    barring = any(isinstance(action, BarPromotion) for action in plan.actions)
    return Result(Outcome.FAILED, plan.requeue_after_seconds if barring else None)


def _requeue_after_seconds(plan: Plan) -> float | None:
    if plan.requeue_after_seconds is not None:
        return plan.requeue_after_seconds
    return requeue.SOON if plan.actions else None


def _observe_tablespace(tablespace: Tablespace, reader: ClusterReader) -> TablespaceObserved:
    seen = observe_tablespace(tablespace, reader)
    return replace(seen, standings=log_standings(tablespace, seen))


def _with_image(plan: Callable[[Any, Any, str], Plan], image: str, resource: Any, seen: Any) -> Plan:
    return plan(resource, seen, image)


def _with_additions(plan: Callable[[Any, Any], Plan], operator_namespace: str, cluster: Any, seen: Any) -> Plan:
    return with_network_policies(safe_from_pruning(plan(cluster, seen), seen.objects), cluster, seen.objects, operator_namespace)


def _with_identities(plan: Callable[[Any, Any], Plan], component: str, cluster: Any, seen: Any) -> Plan:
    return with_identities(plan(cluster, seen), cluster, component, seen.identities)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _age_seconds(timestamp: str) -> float:
    return (datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(timestamp)).total_seconds()
