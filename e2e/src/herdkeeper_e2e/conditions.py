"""Reads an object's health: conditions of custom resources, readiness of pods. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from herdkeeper.plugin.stack_tree import condition, label
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.waiting import Pending

__all__ = ["all_ready", "condition", "label", "message_of", "not_ready_reason", "pod_problem", "unfinished_reason", "unsettled_reason"]


def not_ready_reason(item: Object) -> str | None:
    """Returns why a custom resource is not Ready for its current generation, or None."""
    return _why_not(item, "Ready", lambda ready: ready["status"] == "True")


def unsettled_reason(item: Object) -> str | None:
    """Returns why a custom resource is not Ready and settled for its current generation, or None."""
    return _why_not(item, "Progressing", lambda progressing: progressing["reason"] == "Settled")


def message_of(item: Object | None, name: str, reason: str) -> str | Pending:
    """Returns the message of a condition, once there is such an object and its condition has this reason."""
    told = None if item is None else condition(item, name)
    return str(told["message"]) if told is not None and told["reason"] == reason else Pending(f"{name}: {told}")


def _why_not(item: Object, name: str, wished: Callable[[Object], bool]) -> str | None:
    told = condition(item, name)
    if told is None:
        return f"no {name} condition yet"
    if told.get("observedGeneration", 0) < item["metadata"].get("generation", 0):
        return "the operator has not seen the present generation yet"
    return None if wished(told) else f"{told['reason']}: {told['message']}"


def unfinished_reason(item: Object) -> str | None:
    """Returns why a Checkpoint or ReplicationAudit is not Succeeded, or None."""
    status = item.get("status", {})
    phase = status.get("phase", "no phase yet")
    return None if phase == "Succeeded" else f"{phase}" + (f": {status['message']}" if status.get("message") else "")


def pod_problem(pod: Object) -> str | None:
    """Returns why a pod does not serve. None if it is Ready or has completed."""
    status = pod.get("status", {})
    if status.get("phase") == "Succeeded":
        return None
    ready = condition(pod, "Ready")
    if ready is not None and ready["status"] == "True":
        return None
    for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        state = container.get("state", {})
        if "waiting" in state:
            return f"{container['name']} waits: {state['waiting'].get('reason', '?')} {state['waiting'].get('message', '')}".strip()
        if "terminated" in state and state["terminated"].get("exitCode", 0) != 0:
            ended = state["terminated"]
            return f"{container['name']} ended with code {ended['exitCode']}: {ended.get('message') or ended.get('reason', '?')}"
    for name in ("PodScheduled", "ContainersReady"):
        entry = condition(pod, name)
        if entry is not None and entry["status"] != "True":
            return f"{entry.get('reason', name)}: {entry.get('message', '')}".strip()
    return f"phase {status.get('phase', 'unknown')}"


def all_ready(items: Sequence[Object], expected: int) -> Sequence[Object] | Pending:
    """Returns the resources if all `expected` ones are Ready, else the first that is not, in the order of their dependencies."""
    if len(items) < expected:
        return Pending(f"{len(items)} of {expected} resources exist")
    waiting = [item for item in sorted(items, key=_layer) if not_ready_reason(item) is not None]
    if not waiting:
        return items
    others = f"; after it {', '.join(label(item) for item in waiting[1:])}" if waiting[1:] else ""
    return Pending(f"{label(waiting[0])}: {not_ready_reason(waiting[0])}{others}")


def _layer(item: Object) -> int:
    layers = ("ZooKeeperCluster", "BookKeeperCluster", "HerdDBCluster", "Tablespace")
    return layers.index(item["kind"]) if item["kind"] in layers else len(layers)
