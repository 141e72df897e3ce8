"""When a changed StatefulSet may be applied: a pod that does not serve at once, one that serves only while everything else does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from herdkeeper.domain.observed.objects import Json, Objects
from herdkeeper.domain.reason import Reason
from herdkeeper.plan.action import Apply, Wait
from herdkeeper.plan.intent import unsettled


@dataclass(frozen=True)
class Gate:
    """`closed_by` is why nothing of the stack may be disturbed now, None when it may."""

    closed_by: str | None


def roll(manifest: Json, objects: Objects, pods: Sequence[str], gate: Gate) -> Apply | Wait | None:
    """The StatefulSet's next step: apply it, wait for the rest of the stack, or nothing when it is as intended.

    `pods` are the pods that it makes. One that is not Ready already can't be disturbed, so its StatefulSet is applied whatever the rest
    does: a broken configuration could not be mended otherwise. A pod with a claim that somebody deleted is left alone: Kubernetes keeps
    such a volume only as long as the pod is there.
    """
    if going := _claims_being_deleted(manifest, objects, pods):
        return Wait(
            Reason.CLAIM_LOST,
            f"{' and '.join(going)} was deleted and is kept only as long as its pod runs, which therefore is not restarted: "
            "copy what it holds, or let another member take its place, before that pod stops",
        )
    apply = unsettled(manifest, objects)
    if apply is None or apply.new:
        return apply
    name = manifest["metadata"]["name"]
    if not all(objects.pod_ready(pod) for pod in pods) or gate.closed_by is None:
        return Apply(apply.manifest, new=False, reason=Reason.ROLLING)
    return Wait(Reason.WAITING_FOR_OTHERS, f"{name} is changed once nothing else of the stack is disturbed: {gate.closed_by}")


def _claims_being_deleted(manifest: Json, objects: Objects, pods: Sequence[str]) -> list[str]:
    """The claims of these pods that are on their way out, while a pod still holds them."""
    volumes = manifest["spec"]["template"]["spec"].get("volumes", [])
    mounted = [volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume]
    templates = [template["metadata"]["name"] for template in manifest["spec"].get("volumeClaimTemplates", [])]
    names = [*mounted, *(f"{template}-{pod}" for pod in pods for template in templates)]
    claims = {name: objects.get("PersistentVolumeClaim", name) for name in names}
    return [name for name, claim in claims.items() if claim is not None and claim["metadata"].get("deletionTimestamp")]
