"""When a changed pod template may reach its pods: always one at a time, and one that serves only while everything else does.

Who serves is told by the servers: a bookie is registered, a member of ZooKeeper and a SQL node have a role. A probe that fails says only
that Kubernetes sends it nobody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from herdkeeper.planning.actions import Apply, Delete, Wait, deletions
from herdkeeper.planning.intent import unsettled
from herdkeeper.shared.objects import STARTING, Json, Objects, pod_trouble
from herdkeeper.shared.reason import Reason


@dataclass(frozen=True)
class Gate:
    """`closed_by` is why nothing of the stack may be disrupted now, None when it may. `unreachable` are pods that hang on a node that is
    down, with the reason to leave each alone: such a pod may serve, whatever Kubernetes thinks, and can't be mended anyway.
    `serving` are pods that serve, by what the servers say. `moving` is why not even a pod that does not serve may be restarted now.
    """

    closed_by: str | None
    unreachable: Mapping[str, str] = field(default_factory=dict)
    serving: frozenset[str] = frozenset()
    moving: str | None = None


def roll(manifest: Json, objects: Objects, pods: Sequence[str], gate: Gate) -> Apply | Wait | None:
    """The StatefulSet's next step: apply it, wait for the rest of the stack, or nothing when it is as intended.

    `pods` are the pods that it makes. One that is not Ready already can't be disrupted, so its StatefulSet is applied whatever the rest
    does: a broken configuration could not be mended otherwise. A pod with a claim that somebody deleted is left alone: Kubernetes keeps
    such a volume only as long as the pod is there.
    """
    if (wait := kept_alive(manifest, objects, pods)) is not None:
        return wait
    apply = unsettled(manifest, objects)
    if apply is None or apply.new:
        return apply
    name = manifest["metadata"]["name"]
    if hanging := [gate.unreachable[pod] for pod in pods if pod in gate.unreachable]:
        return Wait(Reason.WAITING_FOR_OTHERS, f"{name} is changed once its node is back, or the pod is gone: {hanging[0]}")
    if not all(objects.pod_ready(pod) for pod in pods) or gate.closed_by is None:
        return Apply(apply.manifest, new=False, reason=Reason.ROLLING)
    return Wait(Reason.WAITING_FOR_OTHERS, f"{name} is changed once no other server of the stack is disrupted: {gate.closed_by}")


def kept_alive(manifest: Json, objects: Objects, pods: Sequence[str]) -> Wait | None:
    """A wait when one of these pods has a claim that somebody deleted: Kubernetes keeps such a volume only as long as the pod is there."""
    volumes = manifest["spec"]["template"]["spec"].get("volumes", [])
    mounted = [volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume]
    templates = [template["metadata"]["name"] for template in manifest["spec"].get("volumeClaimTemplates", [])]
    names = [*mounted, *(f"{template}-{pod}" for pod in pods for template in templates)]
    claims = {name: objects.get("PersistentVolumeClaim", name) for name in names}
    going = [name for name, claim in claims.items() if claim is not None and claim["metadata"].get("deletionTimestamp")]
    if not going:
        return None
    return Wait(
        Reason.CLAIM_LOST,
        f"{' and '.join(going)} was deleted, and Kubernetes keeps it only while its pod runs, so the pod is not restarted: copy its"
        f" data, or replace the member, before the pod stops",
    )


def restart(manifest: Json, objects: Objects, pods: Sequence[str], gate: Gate) -> tuple[Delete, ...] | Wait:
    """The pod to delete of a StatefulSet with the strategy OnDelete, so that it is made anew from its present template.

    `pods` are in the order in which those that serve may be restarted. One that does not serve goes first and waits for nothing but the
    last one: nothing is lost with it, and a broken template could not be mended otherwise. One that is not Ready holds up whatever is
    Ready, though it serves; it holds up nothing that is not Ready either, or a probe that fails everywhere could never be mended. As with
    `roll`, a pod with a claim that somebody deleted is left alone.
    """
    if all(objects.get("Pod", pod) is None for pod in pods):
        return ()
    name = manifest["metadata"]["name"]
    if objects.revision(name) is None:
        return Wait(Reason.ROLLING, f"the controller of {name} has not seen its present template yet")
    outdated = outdated_pods(name, objects, pods)
    if not outdated:
        return ()
    if (wait := kept_alive(manifest, objects, outdated)) is not None:
        return wait
    if (step := restart_idle(outdated, objects, gate)) is not None:
        return step
    next_one = sorted(outdated, key=objects.pod_ready)[0]
    unreachable = next((gate.unreachable[pod] for pod in outdated if pod in gate.unreachable), None)
    unready = (pod for pod in pods if objects.pod_ready(next_one) and not objects.pod_ready(pod))
    unwell = next((f"{pod} serves and is not Ready" for pod in unready), None)
    return _restarted(next_one, objects, gate.closed_by or unreachable or unwell)


def outdated_pods(stateful_set: str, objects: Objects, pods: Sequence[str]) -> list[str]:
    """The pods of another revision than the StatefulSet's present one; none while its controller has not seen its present template."""
    revision = objects.revision(stateful_set)
    return [pod for pod in pods if objects.outdated(pod, revision)] if revision else []


def restart_idle(outdated: Sequence[str], objects: Objects, gate: Gate) -> tuple[Delete, ...] | Wait | None:
    """The first of these pods that does not serve, to be deleted, or why that waits; None when all of them serve."""
    idle = (pod for pod in outdated if not (objects.pod_ready(pod) or pod in gate.serving or pod in gate.unreachable))
    first = next(idle, None)
    return _restarted(first, objects, gate.moving) if first is not None else None


def _restarted(pod: str, objects: Objects, closed_by: str | None) -> tuple[Delete, ...] | Wait:
    if closed_by is not None:
        return Wait(Reason.WAITING_FOR_OTHERS, f"{pod} is restarted once no other server of the stack is disrupted: {closed_by}")
    return deletions((objects.get("Pod", pod),), Reason.ROLLING)


def moving(objects: Objects, stateful_sets: Mapping[str, str], unreachable: Mapping[str, str]) -> str | None:
    """Which pod is being made anew; None when none is. `stateful_sets` are the names of the pods' StatefulSets, by pod.

    One whose process runs is not waited for: several may need one another to serve, as the members of a quorum do. Nor is one that waits
    for what its present template will not get.
    """
    for name, stateful_set in stateful_sets.items():
        pod, revision = objects.get("Pod", name), objects.revision(stateful_set)
        if name in unreachable or revision is None:
            continue
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return f"{name} is being recreated"
        pending = pod.get("status", {}).get("phase") == "Pending" and pod_trouble(pod) == STARTING
        if pending and not objects.outdated(name, revision):
            return f"{name} is starting"
    return None
