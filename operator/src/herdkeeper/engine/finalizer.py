"""When a resource has a finalizer: while its policy is Delete, while somebody uses it, or while pins keep its log."""

from __future__ import annotations

from herdkeeper.api import Tablespace
from herdkeeper.api.resource import Resource
from herdkeeper.herddb.tablespace.deletion import keeps_log
from herdkeeper.planning.actions import SetFinalizer
from herdkeeper.shared import names
from herdkeeper.shared.dependents import Dependents
from herdkeeper.shared.reason import Reason


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
