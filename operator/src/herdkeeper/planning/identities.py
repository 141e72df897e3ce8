"""Secrets with certificates. They are written before the pods that mount them, and checked again when the next renewal is due."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace

from herdkeeper.certificates.holders import DueSecrets
from herdkeeper.certificates.settings import zookeeper_client_options
from herdkeeper.planning import pods as pod
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Apply, Plan, Wait, soonest
from herdkeeper.planning.intent import with_intent
from herdkeeper.planning.network_policies import Servers
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json
from herdkeeper.shared.reason import Reason

LONGEST_SECONDS = 86400.0
"""Certificates are checked at least daily."""
FOLDER = "/identity"
"""Where a pod's own certificate is mounted."""
_VOLUME = "identity"


@dataclass(frozen=True)
class PodIdentity:
    """How a pod presents its certificate: volumes, mounts and variables."""

    volumes: tuple[Json, ...] = ()
    mounts: tuple[Json, ...] = ()
    variables: tuple[Json, ...] = ()


def java_identity(secret: str | None, variable: str = "JVM_OPTIONS") -> PodIdentity:
    """Returns the identity of a JVM that connects to ZooKeeper and reads its options from `variable`. Without a Secret it presents none."""
    return _identity(secret, variable, " ".join(zookeeper_client_options(FOLDER)))


def python_identity(secret: str | None) -> PodIdentity:
    """Returns the identity of a program of herdkeeper_jobs. Without a Secret it presents none."""
    return _identity(secret, names.IDENTITY_VARIABLE, FOLDER)


def _identity(secret: str | None, variable: str, value: str) -> PodIdentity:
    if secret is None:
        return PodIdentity()
    # The pod's group may read it, and all processes of the pod are in the group.
    volume = {"name": _VOLUME, "secret": {"secretName": secret, "defaultMode": 0o440}}
    mount = {"name": _VOLUME, "mountPath": FOLDER, "readOnly": True}
    return PodIdentity((volume,), (mount,), ({"name": variable, "value": value},))


def with_identities(plan: Plan, owner: Servers, due: DueSecrets) -> Plan:
    """Returns a plan that writes the resource's due Secrets first. A Secret that can't be made becomes the reason to wait, unless there is
    one already; what waits for a Secret waits for this.
    """
    written = tuple(
        Apply(
            with_intent(secret_of(pod.metadata(owner, owner.names.COMPONENT, change.holder.secret), change.data)),
            new=change.new,
            reason=Reason.CREATING if change.new else Reason.UPDATING,
        )
        for change in due.changes
    )
    hides = plan.wait is not None and plan.wait.reason is not Reason.WAITING_FOR_SECRET
    wait = Wait(Reason.INVALID_SECRET, due.obstacle) if due.obstacle is not None and not hides else plan.wait
    renewal = None if due.next_seconds is None else min(due.next_seconds, LONGEST_SECONDS)
    again = soonest(plan.requeue_after_seconds, requeue.BLOCKED if due.obstacle is not None else None, renewal)
    return replace(plan, actions=(*written, *plan.actions), wait=wait, requeue_after_seconds=again)


def secret_of(metadata: Json, data: Mapping[str, str]) -> Json:
    """Returns a Secret with this text, in base64 like the API server: `stringData` could never be compared with the stored object."""
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": encoded}
