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
    does: a broken configuration could not be mended otherwise.
    """
    apply = unsettled(manifest, objects)
    if apply is None or apply.new:
        return apply
    name = manifest["metadata"]["name"]
    if not all(objects.pod_ready(pod) for pod in pods) or gate.closed_by is None:
        return Apply(apply.manifest, new=False, reason=Reason.ROLLING)
    return Wait(Reason.WAITING_FOR_OTHERS, f"{name} is changed once nothing else of the stack is disturbed: {gate.closed_by}")
