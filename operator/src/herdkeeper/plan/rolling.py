"""When a changed pod template may reach its pods: one that does not serve at once, one that serves only while everything else does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from herdkeeper.domain.observed.objects import Json, Objects
from herdkeeper.domain.reason import Reason
from herdkeeper.plan.action import Apply, Delete, Wait, deletions
from herdkeeper.plan.intent import unsettled


@dataclass(frozen=True)
class Gate:
    """`closed_by` is why nothing of the stack may be disturbed now, None when it may. `unreachable` are pods that hang on a node that is
    down, with the reason to leave each alone: such a pod may serve, whatever Kubernetes thinks, and can't be mended anyway."""

    closed_by: str | None
    unreachable: Mapping[str, str] = field(default_factory=dict)


def roll(manifest: Json, objects: Objects, pods: Sequence[str], gate: Gate) -> Apply | Wait | None:
    """The StatefulSet's next step: apply it, wait for the rest of the stack, or nothing when it is as intended.

    `pods` are the pods that it makes. One that is not Ready already can't be disturbed, so its StatefulSet is applied whatever the rest
    does: a broken configuration could not be mended otherwise. A pod with a claim that somebody deleted is left alone: Kubernetes keeps
    such a volume only as long as the pod is there.
    """
    if (wait := _kept_alive(manifest, objects, pods)) is not None:
        return wait
    apply = unsettled(manifest, objects)
    if apply is None or apply.new:
        return apply
    name = manifest["metadata"]["name"]
    if hanging := [gate.unreachable[pod] for pod in pods if pod in gate.unreachable]:
        return Wait(Reason.WAITING_FOR_OTHERS, f"{name} is changed once its node is back, or the pod is gone: {hanging[0]}")
    if not all(objects.pod_ready(pod) for pod in pods) or gate.closed_by is None:
        return Apply(apply.manifest, new=False, reason=Reason.ROLLING)
    return Wait(Reason.WAITING_FOR_OTHERS, f"{name} is changed once nothing else of the stack is disturbed: {gate.closed_by}")


def _kept_alive(manifest: Json, objects: Objects, pods: Sequence[str]) -> Wait | None:
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
        f"{' and '.join(going)} was deleted and is kept only as long as its pod runs, which therefore is not restarted: "
        "copy what it holds, or let another member take its place, before that pod stops",
    )


def restart(manifest: Json, objects: Objects, pods: Sequence[str], gate: Gate) -> tuple[Delete, ...] | Wait:
    """What must be deleted of a StatefulSet with the strategy OnDelete, so that its pods are made anew from its present template.

    `pods` are in the order in which those that serve may be restarted, one by one. Those that do not serve go at once: nothing is lost with
    them, and a broken template could not be mended otherwise. As with `roll`, a pod with a claim that somebody deleted is left alone.
    """
    if all(objects.get("Pod", pod) is None for pod in pods):
        return ()
    name = manifest["metadata"]["name"]
    revision = objects.revision(name)
    if revision is None:
        return Wait(Reason.ROLLING, f"the controller of {name} has not seen its present template yet")
    outdated = [pod for pod in pods if objects.outdated(pod, revision)]
    if not outdated:
        return ()
    if (wait := _kept_alive(manifest, objects, outdated)) is not None:
        return wait
    idle = [pod for pod in outdated if not objects.pod_ready(pod) and pod not in gate.unreachable]
    closed_by = gate.closed_by or next((gate.unreachable[pod] for pod in outdated if pod in gate.unreachable), None)
    if not idle and closed_by is not None:
        return Wait(Reason.WAITING_FOR_OTHERS, f"{outdated[0]} is restarted once nothing else of the stack is disturbed: {closed_by}")
    return deletions((objects.get("Pod", pod) for pod in (idle or outdated[:1])), Reason.ROLLING)
