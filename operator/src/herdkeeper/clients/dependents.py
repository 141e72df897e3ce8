"""Observes which resources refer to one: those that use it, and those that still need it to delete their data."""

from __future__ import annotations

from herdkeeper.api.resource import Resource
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.shared import names
from herdkeeper.shared.dependents import Dependents
from herdkeeper.shared.references import referred_name


def observe_dependents(owner: Resource, kind: type[Resource], reader: ClusterReader) -> Dependents:
    """Returns those of one kind. They are read as stored: one with an invalid spec has servers that use the owner, too.

    One that is being deleted without the operator's finalizer needs nothing.
    """
    not_deleted, deleting = [], []
    for document in reader.kubernetes.documents(kind, owner.metadata.namespace):
        metadata = document["metadata"]
        if referred_name(kind.KIND, document.get("spec") or {}) != owner.metadata.name:
            continue
        if not metadata.get("deletionTimestamp"):
            not_deleted.append(f"{kind.KIND} {metadata['name']}")
        elif names.FINALIZER in (metadata.get("finalizers") or ()):
            deleting.append(f"{kind.KIND} {metadata['name']}")
    return Dependents(tuple(not_deleted), tuple(deleting))
