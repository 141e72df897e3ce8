"""The flow of one reconcile: observe -> refuse, or plan -> execute -> status. engine/kinds.py has the steps of each kind.

A worker of engine/queue.py calls it with one key at a time. It keeps nothing in memory: after an interruption the next reconcile plans
again from a new observation.
"""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import structlog

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.api.resource import Resource
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.clients.counters import LIVE_RECONCILES
from herdkeeper.clients.counters import READY as READY_GAUGE
from herdkeeper.clients.deleted_resources import DeletedResource
from herdkeeper.clients.kubernetes import Unreadable, parsed
from herdkeeper.clients.object_cache import ObjectCache
from herdkeeper.engine.execute import Clients, LiveReadsNeededError, execute
from herdkeeper.engine.gauges.conditions import CONDITIONS
from herdkeeper.engine.gauges.figures import show_figures
from herdkeeper.engine.key import Key
from herdkeeper.engine.kinds import KIND_OF, Steps
from herdkeeper.engine.news import news_of
from herdkeeper.engine.result import Outcome, Result
from herdkeeper.herddb.tablespace.deletion import keeps_log
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Plan, SetFinalizer, Wait
from herdkeeper.planning.deletion import given_up, plan_unreadable_deletion, waited_seconds, waiting_for_users
from herdkeeper.planning.refusal import Refusal, unreadable_refusals
from herdkeeper.planning.status import Failed, planned, refused_status, status_document, stored_status
from herdkeeper.shared import names
from herdkeeper.shared.conditions import READY
from herdkeeper.shared.dependents import NO_DEPENDENTS, Dependents
from herdkeeper.shared.paused import paused_by, stops
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import text_of_now
from herdkeeper.zookeeper.state import Ensemble

logger = structlog.get_logger()

UNWATCHED_SECONDS = 60.0
"""Interval of reconciles of a resource that depends on objects without a watch, such as a user's own Secret."""

SHOWN_AGAIN_SECONDS = 15.0
"""Interval for planning again while the plan is shown instead of executed."""


def reconcile(key: Key, steps: Steps, clients: Clients, cache: ObjectCache | None = None) -> Result:
    """Bring one resource a step nearer to what it declares. Raises ApiException if the API server does not answer.

    It observes the resource from the cache first. If there is an action to do, it observes again with live reads, since the cache may be
    outdated.
    """
    if cache is None:
        return _reconcile(key, steps, clients)
    source = clients.reader.kubernetes.watched(cache)
    reader = replace(clients.reader, kubernetes=clients.reader.kubernetes.over(source))
    try:
        result = _reconcile(key, steps, replace(clients, reader=reader, read_only=True))
    except LiveReadsNeededError:
        LIVE_RECONCILES.labels(key.kind).inc()
        return _reconcile(key, steps, clients)
    if not source.unwatched or result.outcome is Outcome.GONE:
        return result
    return replace(result, requeue_after_seconds=min(UNWATCHED_SECONDS, result.requeue_after_seconds or UNWATCHED_SECONDS))


def _reconcile(key: Key, steps: Steps, clients: Clients) -> Result:
    deleted = clients.reader.deleted.get(key)  # before the resource is read, which may be deleted meanwhile
    found = clients.reader.kubernetes.resource(KIND_OF[key.kind], key.object_key)
    if found is not None and deleted is not None:
        clients.reader.deleted.forget(key, deleted)
    match found:
        case None if deleted is not None:
            return _reconcile_deleted(key, deleted, steps, clients)
        case None:
            return _gone(key, steps)
        case Unreadable(_, error, rest):
            return _reconcile_unreadable(rest, unreadable_refusals(error), steps, clients)
        case Resource():
            return _reconcile_resource(found, steps, clients)


def _reconcile_resource(resource: Resource, steps: Steps, clients: Clients) -> Result:
    deleting = resource.metadata.deletion_timestamp is not None
    if deleting and names.FINALIZER not in resource.metadata.finalizers:
        return _gone(Key.of(resource), steps)  # Kubernetes deletes what it owns; objects without an owner stay
    seen = steps.observe(resource, clients.reader)
    if not deleting and (refusals := steps.refusals(seen)):
        steps.show_gauges(seen, stored_status(resource))  # also with a refused spec, metrics show what is observed
        if paused_by(resource.metadata.annotations) is None:
            execute(resource, _plan_refused(resource, seen, steps), clients)
        return _refuse(resource, refusals, clients)
    plan = _plan(resource, seen, steps)
    if plan.needs_ledgers and steps.observe_ledgers is not None:
        clients.require_live_reads()
        seen = steps.observe_ledgers(seen, clients.reader)
        plan = _plan(resource, seen, steps)
    if stops(resource.metadata.annotations.get(names.PLAN_ANNOTATION)):
        plan = _shown(plan)
    summary = steps.summarize(seen, plan.decided_fields)
    summary = replace(summary, fields={**summary.fields, **plan.decided_fields})
    steps.show_gauges(seen, summary.fields)
    failed = execute(resource, plan, clients)
    if deleting and failed is not None and failed.for_good:
        plan = given_up("its data", failed.message)  # otherwise its namespace could never be deleted
        failed = execute(resource, plan, clients)
    if deleting and failed is None and any(isinstance(action, SetFinalizer) for action in plan.actions):
        return _gone(Key.of(resource), steps)
    _write_status(resource, status_document(resource, summary, plan, failed, text_of_now()), clients)
    return _result(plan, failed)


def has_data_to_delete(key: Key, document: dict[str, Any]) -> bool:
    """Returns whether a deleted resource's data must still be deleted, because it had no finalizer yet."""
    metadata, status = document["metadata"], document.get("status") or {}
    if key.kind == Checkpoint.KIND or names.FINALIZER in (metadata.get("finalizers") or []):
        return False  # Kubernetes deletes the Job that removes a Checkpoint's files together with the Checkpoint
    if metadata.get("deletionTimestamp") and status.get("observedGeneration") == metadata.get("generation"):
        return False  # the operator saw the deletion, so the finalizer was there in time: somebody took it off
    found = parsed(KIND_OF[key.kind], document)
    return (
        not isinstance(found, Unreadable)
        and getattr(found.spec, "deletion_policy", "Retain") == "Delete"
        and paused_by(found.metadata.annotations) is None
    )


def _reconcile_deleted(key: Key, deleted: DeletedResource, steps: Steps, clients: Clients) -> Result:
    """Delete the data of a resource that is already gone, as under a finalizer. There is no finalizer to remove.

    No such plan creates anything (test_model_deletion.py), so a namespace that is being deleted refuses none of its actions for good.
    """
    clients.require_live_reads()
    resource = parsed(KIND_OF[key.kind], deleted.document)
    if isinstance(resource, Unreadable) or steps.plan_deletion is None:
        clients.reader.deleted.forget(key, deleted)
        return _gone(key, steps)
    resource = resource.model_copy(update={"metadata": resource.metadata.model_copy(update={"deletion_timestamp": text_of_now()})})
    seen = steps.observe(resource, clients.reader)
    plan = waiting_for_users(_users(seen)) or steps.plan_deletion(seen, deleted.seconds)
    last = [action for action in plan.actions if isinstance(action, SetFinalizer)]
    failed = execute(resource, replace(plan, actions=tuple(action for action in plan.actions if action not in last)), clients)
    if failed is not None or not last:
        return _result(plan, failed)
    for action in last:
        clients.writer.event(resource, action.reason.value, action.message, "Warning" if action.reason.needs_person else "Normal")
    clients.reader.deleted.forget(key, deleted)
    return _gone(key, steps)


def _reconcile_unreadable(stub: Resource, refusals: tuple[Refusal, ...], steps: Steps, clients: Clients) -> Result:
    """Change nothing, except for the finalizer of a deleted resource: otherwise its namespace could never be deleted."""
    metadata = stub.metadata
    if metadata.deletion_timestamp is None:
        return _refuse(stub, refusals, clients)
    if names.FINALIZER not in metadata.finalizers:
        return _gone(Key.of(stub), steps)
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(metadata.deletion_timestamp)
    plan = plan_unreadable_deletion(refusals[0].sentence, age.total_seconds())
    if not plan.actions:
        return replace(_refuse(stub, refusals, clients), requeue_after_seconds=plan.requeue_after_seconds)
    return Result(Outcome.FAILED) if execute(stub, plan, clients) else _gone(Key.of(stub), steps)


def _plan(resource: Resource, seen: Any, steps: Steps) -> Plan:
    if stops(resource.metadata.annotations.get(names.PAUSED_ANNOTATION)):
        message = f"the annotation {names.PAUSED_ANNOTATION} stops every change; remove it to continue"
        return Plan(wait=Wait(Reason.PAUSED, message))
    users = _users(seen)
    if finalizer := finalizer_step(resource, users):
        return Plan((finalizer,), requeue_after_seconds=requeue.NOTED)
    if resource.metadata.deletion_timestamp is not None and steps.plan_deletion is not None:
        if waiting := waiting_for_users(users):
            return waiting
        return steps.plan_deletion(seen, waited_seconds(resource, datetime.datetime.now(datetime.UTC)))
    return steps.plan(seen)


def _plan_refused(resource: Resource, seen: Any, steps: Steps) -> Plan:
    """Its servers serve on, so a deletion of it waits for its users, too."""
    plan, users = steps.plan_refused(seen), _users(seen)
    finalizer = finalizer_step(resource, users) if users != NO_DEPENDENTS else None
    return replace(plan, actions=(finalizer, *plan.actions)) if finalizer is not None and finalizer.present else plan


def finalizer_step(resource: Resource, users: Dependents) -> SetFinalizer | None:
    """Returns the change that the finalizer needs, by deletionPolicy, pins and users of the resource. None if it needs none."""
    deletes = getattr(resource.spec, "deletion_policy", "Retain") == "Delete"
    used_by = (*users.not_deleted, *users.deleting)
    pins = isinstance(resource, Tablespace) and keeps_log(resource)
    wanted = deletes or pins or bool(used_by)
    present = names.FINALIZER in resource.metadata.finalizers
    if wanted == present or (wanted and resource.metadata.deletion_timestamp is not None):
        return None
    if deletes:
        return SetFinalizer(True, Reason.UPDATING, "deletionPolicy is Delete: data is deleted with this resource")
    if pins:
        return SetFinalizer(True, Reason.UPDATING, "spec.log keeps the log: it is released when this resource is deleted")
    if wanted:
        return SetFinalizer(True, Reason.UPDATING, f"{', '.join(used_by)} uses it: a deletion of this resource waits for that")
    return SetFinalizer(False, Reason.UPDATING, "deletionPolicy is Retain and nothing uses it: data stays when this resource is deleted")


def _users(seen: Any) -> Dependents:
    return seen.dependents if isinstance(seen, Ensemble | BookieFleet) else NO_DEPENDENTS


def _shown(plan: Plan) -> Plan:
    """Returns a plan that only shows its actions, and is made again after a while: its causes may change without an event."""
    message = f"the annotation {names.PLAN_ANNOTATION} stops every change; status.plan shows the planned steps; remove it to continue"
    again = max(plan.requeue_after_seconds or 0.0, SHOWN_AGAIN_SECONDS)
    return Plan(wait=Wait(Reason.PLANNED, message), requeue_after_seconds=again, decided_fields={"plan": planned(plan)})


def _gone(key: Key, steps: Steps) -> Result:
    """Remove the metrics of a resource that no longer exists: it must not count as not Ready."""
    READY_GAUGE.remove(key.kind, key.namespace, key.name)
    CONDITIONS.show(key.kind, key.namespace, key.name, ())
    show_figures(key.kind, key.namespace, key.name, {})
    steps.remove_gauges(key.object_key)
    return Result(Outcome.GONE)


def _refuse(resource: Resource, refusals: tuple[Refusal, ...], clients: Clients) -> Result:
    """Write the status, which is all that a refused spec changes."""
    _write_status(resource, refused_status(resource, refusals, text_of_now()), clients)
    return Result(Outcome.REFUSED)


def _write_status(resource: Resource, status: dict[str, Any], clients: Clients) -> None:
    """Write a status that differs from the stored one, with events for its news. Later reconciles depend on a status (`founded`,
    `instanceId`), so only a process that may act writes one.
    """
    key = Key.of(resource)
    ready = next(entry for entry in status["conditions"] if entry["type"] == READY)
    READY_GAUGE.labels(key.kind, key.namespace, key.name).set(ready["status"] == "True")
    CONDITIONS.show(key.kind, key.namespace, key.name, status["conditions"])
    show_figures(key.kind, key.namespace, key.name, status)
    if _comparable(stored_status(resource)) == _comparable(status) or not clients.may_act():
        return
    clients.require_live_reads()
    clients.writer.write_status(resource, status)
    for news in news_of(resource, status):
        clients.writer.event(resource, news.reason.value, news.message, "Warning" if news.warning else "Normal")
        log = logger.warning if news.warning else logger.info
        log(news.topic, reason=news.reason.value, message=news.message)


def _comparable(status: dict[str, Any]) -> dict[str, Any]:
    """Returns the status without empty values, which mean the same as absent ones."""
    return {name: value for name, value in status.items() if value not in ([], (), None)}


def _result(plan: Plan, failed: Failed | None) -> Result:
    if failed is None:
        return Result(Outcome.OK, _requeue_after_seconds(plan))
    return Result(Outcome.FAILED, None if failed.backs_off else plan.requeue_after_seconds)


def _requeue_after_seconds(plan: Plan) -> float | None:
    if plan.requeue_after_seconds is not None:
        return plan.requeue_after_seconds
    return requeue.SOON if plan.actions else None
