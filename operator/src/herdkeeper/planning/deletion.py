"""What deletions of all kinds share: patience with a silent backend, objects that go before others."""

from __future__ import annotations

import datetime
from typing import Any

from herdkeeper.api import Checkpoint
from herdkeeper.api.resource import Resource
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Plan, SetFinalizer, deletions
from herdkeeper.shared.conditions import READY, condition
from herdkeeper.shared.dependents import Dependents
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.reason import Reason

_WORKLOADS = ("StatefulSet", "Deployment", "Job")
DONE = SetFinalizer(False, Reason.DATA_DELETED, "volumes and metadata are being deleted (deletionPolicy: Delete)")


PATIENCE_SECONDS = 120.0
"""How long a backend that can't be reached may hold up a deletion, see `waited_seconds`. Then it is given up with an event: else no
namespace could be deleted whose ZooKeeper went first."""


def waiting_for_users(users: Dependents) -> Plan | None:
    """Why a deleted resource stays as it is for now; None when nobody uses it any more."""
    if users.not_deleted:
        message = f"it is deleted once nothing refers to it: delete {', '.join(users.not_deleted)} first, or change the reference there"
        return Plan.waiting(Reason.WAITING_FOR_DEPENDENTS, message)
    if users.deleting:
        return Plan.waiting(
            Reason.WAITING_FOR_DEPENDENTS, f"these still delete their data with its help: {', '.join(users.deleting)}", requeue.SOON
        )
    return None


def waited_seconds(resource: Resource, now: datetime.datetime) -> float:
    """How long a deletion has been waiting for a backend that can't be reached, as the condition Ready tells; 0 while it does not wait.

    The deletion's own age says nothing: stopping servers and waiting for dependents take their time, and after that a backend that is
    silent for a moment must not be given up.
    """
    ready = condition(resource, READY)
    # A Checkpoint's files can't be reached without the Secret of their store.
    away = (Reason.UNREADABLE, Reason.WAITING_FOR_SECRET) if isinstance(resource, Checkpoint) else (Reason.UNREADABLE,)
    if resource.metadata.deletion_timestamp is None or ready is None or ready.reason not in away:
        return 0.0
    since = max(datetime.datetime.fromisoformat(text) for text in (resource.metadata.deletion_timestamp, ready.last_transition_time))
    return max(0.0, (now - since).total_seconds())


def plan_unreadable_deletion(error: str, age_seconds: float) -> Plan:
    """What becomes of a deleted resource whose stored spec can't be read: nothing of its data is touched. `age_seconds`: the deletion's."""
    return patiently(age_seconds, "what this resource made", f"its spec can't be read: {error}")


def take_down(objects: Objects, data_kinds: tuple[str, ...]) -> Plan | None:
    """Delete workloads, wait until no pod is left, then delete what holds data; None when all of it is gone."""
    workloads = [item for kind in _WORKLOADS for item in objects.of_kind(kind)]
    pods = objects.of_kind("Pod")
    if workloads or pods:
        message = f"{len(pods)} pods are stopping" if not workloads else "the servers are stopped"
        return _plan_deletes(workloads, message)
    data = [item for kind in data_kinds for item in objects.of_kind(kind)]
    return _plan_deletes(data, f"{len(data)} volume claims or Secrets are being deleted") if data else None


def _plan_deletes(items: list[dict[str, Any]], message: str) -> Plan:
    waiting = Plan.waiting(Reason.DELETING, message, requeue.SOON)
    return Plan(deletions(items, Reason.DELETING), waiting.wait, waiting.requeue_after_seconds)


def patiently(waited: float, what: str, why: str) -> Plan:
    if waited < PATIENCE_SECONDS:
        return Plan.waiting(Reason.UNREADABLE, f"{what} can't be deleted yet: {why}")
    return Plan((SetFinalizer(False, Reason.DELETION_GIVEN_UP, f"{what} was left behind: {why}"),))
