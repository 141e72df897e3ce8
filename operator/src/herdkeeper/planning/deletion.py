"""What deletions of all kinds share: patience with an unreachable backend, and the order in which objects are deleted."""

from __future__ import annotations

import datetime
from typing import Any

from herdkeeper.api import Checkpoint
from herdkeeper.api.resource import Resource
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Plan, SetFinalizer, Wait, deletions
from herdkeeper.shared.conditions import READY, condition
from herdkeeper.shared.counted import counted
from herdkeeper.shared.dependents import Dependents
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.reason import Reason

_WORKLOADS = ("StatefulSet", "Deployment", "Job")
DONE = SetFinalizer(False, Reason.DATA_DELETED, "volumes and metadata are being deleted (deletionPolicy: Delete)")


PATIENCE_SECONDS = 120.0
"""How long an unreachable backend may delay a deletion, see `waited_seconds`. After that the deletion is given up with an event. Otherwise
a namespace whose ZooKeeper was deleted first could never be deleted."""


def waiting_for_users(users: Dependents) -> Plan | None:
    """Returns a plan that waits while other resources use the deleted one, or None."""
    if users.not_deleted:
        message = f"it is deleted once nothing refers to it: first delete {', '.join(users.not_deleted)}, or change the reference there"
        return Plan.waiting(Reason.WAITING_FOR_DEPENDENTS, message)
    if users.deleting:
        return Plan.waiting(
            Reason.WAITING_FOR_DEPENDENTS, f"these still need it to delete their data: {', '.join(users.deleting)}", requeue.SOON
        )
    return None


def waited_seconds(resource: Resource, now: datetime.datetime) -> float:
    """Returns for how many seconds a deletion has waited for an unreachable backend, by the condition Ready. 0 if it does not wait.

    The age of the deletion is no measure: servers take time to stop and dependents to finish. A backend that then fails for a moment must
    not be given up.
    """
    ready = condition(resource, READY)
    # Without the Secret of its store, a Checkpoint's files can't be reached.
    away = (Reason.UNREADABLE, Reason.WAITING_FOR_SECRET) if isinstance(resource, Checkpoint) else (Reason.UNREADABLE,)
    if resource.metadata.deletion_timestamp is None or ready is None or ready.reason not in away:
        return 0.0
    since = max(datetime.datetime.fromisoformat(text) for text in (resource.metadata.deletion_timestamp, ready.last_transition_time))
    return max(0.0, (now - since).total_seconds())


def plan_unreadable_deletion(error: str, age_seconds: float) -> Plan:
    """Returns the plan for a deleted resource with an unreadable spec. Its data stays. `age_seconds`: age of the deletion."""
    return wait_or_give_up(age_seconds, "what this resource made", f"its spec can't be read: {error}")


def take_down(objects: Objects, data_kinds: tuple[str, ...]) -> Plan | None:
    """Delete workloads, wait until no pod is left, then delete the objects that hold data. Returns None when all are gone."""
    workloads = [item for kind in _WORKLOADS for item in objects.of_kind(kind)]
    pods = objects.of_kind("Pod")
    if workloads or pods:
        message = f"{counted(len(pods), 'pod is', 'pods are')} stopping" if not workloads else "the servers are stopped"
        return _plan_deletes(workloads, message)
    data = [item for kind in data_kinds for item in objects.of_kind(kind)]
    held = counted(len(data), "volume claim or Secret is", "volume claims or Secrets are")
    return _plan_deletes(data, f"{held} being deleted") if data else None


def _plan_deletes(items: list[dict[str, Any]], message: str) -> Plan:
    return Plan(deletions(items, Reason.DELETING), Wait(Reason.DELETING, message), requeue.SOON)


def wait_or_give_up(waited: float, what: str, why: str) -> Plan:
    """Returns a plan that waits to delete `what` or, after PATIENCE_SECONDS, gives it up. `why` it can't be deleted yet."""
    if waited < PATIENCE_SECONDS:
        return Plan.waiting(Reason.UNREADABLE, f"{what} can't be deleted yet: {why}")
    return given_up(what, why)


def given_up(what: str, why: str) -> Plan:
    """Returns the plan that lets a deleted resource go, and leaves something behind."""
    return Plan((SetFinalizer(False, Reason.DELETION_GIVEN_UP, f"{what} was left behind: {why}"),))
