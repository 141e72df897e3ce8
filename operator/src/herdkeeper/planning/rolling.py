"""Decides when a changed pod template reaches its pods: one at a time, and a serving pod only while all others serve.

The servers tell who serves: a bookie is registered, a ZooKeeper member or a SQL node has a role. A failed probe only means that Kubernetes
routes no traffic to the pod.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from herdkeeper.planning.actions import Apply, Delete, Wait, deletions
from herdkeeper.planning.intent import needed_apply
from herdkeeper.shared.objects import STARTING, Json, Objects, pod_trouble, why_stopping
from herdkeeper.shared.reason import Reason


@dataclass(frozen=True)
class Gate:
    """Whether pods may be disrupted now.

    `closed_by` is why no pod of the stack may be disrupted, None if they may. `unreachable` are pods on a node that is down, with reasons
    to leave them alone: they may still serve, and a restart would not repair them. `serving` are the pods that serve, according to the
    servers. `being_recreated` is why not even an idle pod may be restarted.
    """

    closed_by: str | None
    unreachable: Mapping[str, str] = field(default_factory=dict)
    serving: frozenset[str] = frozenset()
    being_recreated: str | None = None


def roll(manifest: Json, objects: Objects, pods: Sequence[str], gate: Gate) -> Apply | Wait | None:
    """Returns the StatefulSet's next step: an apply, a wait for the rest of the stack, or None if it matches its intent.

    `pods` are the pods that it makes. If one of them is not Ready, the StatefulSet is applied at once: a wait would block the repair of a
    broken configuration. A pod with a deleted claim is left alone: Kubernetes keeps that volume only while the pod exists.
    """
    if (wait := wait_for_deleted_claim(manifest, objects, pods)) is not None:
        return wait
    apply = needed_apply(manifest, objects)
    if apply is None or apply.new:
        return apply
    name = manifest["metadata"]["name"]
    if hanging := [gate.unreachable[pod] for pod in pods if pod in gate.unreachable]:
        return Wait(Reason.WAITING_FOR_OTHERS, f"{name} is changed once the node is back or the pod is gone: {hanging[0]}")
    if not all(objects.pod_ready(pod) for pod in pods) or gate.closed_by is None:
        return Apply(apply.manifest, new=False, reason=Reason.ROLLING)
    return Wait(Reason.WAITING_FOR_OTHERS, f"{name} is changed once no other server of the stack is disrupted: {gate.closed_by}")


def wait_for_deleted_claim(manifest: Json, objects: Objects, pods: Sequence[str]) -> Wait | None:
    """Returns a wait if a claim of these pods was deleted: Kubernetes keeps such a volume only while its pod exists."""
    volumes = manifest["spec"]["template"]["spec"].get("volumes", [])
    mounted = [volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume]
    templates = [template["metadata"]["name"] for template in manifest["spec"].get("volumeClaimTemplates", [])]
    names = [*mounted, *(f"{template}-{pod}" for pod in pods for template in templates)]
    going = [name for name in names if name in objects.claims and objects.claims[name].going]
    if not going:
        return None
    return Wait(
        Reason.CLAIM_LOST,
        f"{' and '.join(going)} was deleted, and Kubernetes keeps it only while its pod runs. The pod is therefore not restarted: "
        "copy its data, or replace the member, before the pod stops",
    )


def restart(manifest: Json, objects: Objects, pods: Sequence[str], gate: Gate) -> tuple[Delete, ...] | Wait:
    """Returns the pod to delete of a StatefulSet with the strategy OnDelete, so that it is recreated from the current template.

    `pods` are in the order in which serving pods may be restarted. An idle pod is restarted first and waits only for the previous one:
    nothing is lost, and it may need the new template to start. A pod that is not Ready blocks restarts of Ready pods, even if it serves. It
    does not block others that are not Ready: a probe that fails everywhere must be repairable. As in `roll`, a pod with a deleted claim is
    left alone.
    """
    if all(objects.get("Pod", pod) is None for pod in pods):
        return ()
    name = manifest["metadata"]["name"]
    if objects.revision(name) is None:
        return Wait(Reason.ROLLING, f"the controller of {name} has not seen its current template yet")
    outdated = outdated_pods(name, objects, pods)
    if not outdated:
        return ()
    if (wait := wait_for_deleted_claim(manifest, objects, outdated)) is not None:
        return wait
    if (step := restart_idle(outdated, objects, gate)) is not None:
        return step
    next_one = min(outdated, key=objects.pod_ready)
    unreachable = next((gate.unreachable[pod] for pod in outdated if pod in gate.unreachable), None)
    unready = (pod for pod in pods if objects.pod_ready(next_one) and not objects.pod_ready(pod))
    unwell = next((f"{pod} is not Ready" for pod in unready), None)
    return _restart_step(next_one, objects, gate.closed_by or unreachable or unwell)


def outdated_pods(stateful_set: str, objects: Objects, pods: Sequence[str]) -> list[str]:
    """Returns the pods that were not made from the current template. Empty while the controller has not seen that template."""
    revision = objects.revision(stateful_set)
    return [pod for pod in pods if objects.outdated(pod, revision)] if revision else []


def restart_idle(outdated: Sequence[str], objects: Objects, gate: Gate) -> tuple[Delete, ...] | Wait | None:
    """Returns the deletion of the first pod that does not serve, why it waits, or None if all serve."""
    idle = (pod for pod in outdated if not (objects.pod_ready(pod) or pod in gate.serving or pod in gate.unreachable))
    first = next(idle, None)
    return _restart_step(first, objects, gate.being_recreated) if first is not None else None


def _restart_step(pod: str, objects: Objects, closed_by: str | None) -> tuple[Delete, ...] | Wait:
    if closed_by is not None:
        return Wait(Reason.WAITING_FOR_OTHERS, f"{pod} is restarted once no other server of the stack is disrupted: {closed_by}")
    return deletions((objects.get("Pod", pod),), Reason.ROLLING)


def being_recreated(objects: Objects, stateful_sets: Mapping[str, str], unreachable: Mapping[str, str]) -> str | None:
    """Returns which pod is being recreated, or None. `stateful_sets` maps pods to their StatefulSets.

    A pod whose process runs does not count: several may need each other to serve, like the members of a quorum. Nor does a pod that can't
    start from its current template.
    """
    for name, stateful_set in stateful_sets.items():
        pod, revision = objects.get("Pod", name), objects.revision(stateful_set)
        if name in unreachable or revision is None:
            continue
        if pod is None or why_stopping(pod):
            return f"{name} is being recreated"
        pending = pod.get("status", {}).get("phase") == "Pending" and pod_trouble(pod) == STARTING
        if pending and not objects.outdated(name, revision):
            return f"{name} is starting"
    return None
