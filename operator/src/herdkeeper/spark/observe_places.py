"""Observes what jobs need of a place: the Secrets that open an object store, the keys of its files, and who works there."""

from __future__ import annotations

from collections.abc import Sequence

from herdkeeper.api import Checkpoint
from herdkeeper.api.job import Destination, Encryption, ObjectStore
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.kubernetes import Unreadable, values_of_secret
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.objects import Json
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.unknown import Unknown
from herdkeeper.spark.encryption_keys import why_keys_unusable
from herdkeeper.spark.object_store import StoreSecrets, needed_of_secrets, store_secrets
from herdkeeper.spark.work import CheckpointWork, work_of

_WORK = (("batch/v1", "Job"), ("v1", "Pod"))


def observe_store(store: ObjectStore | None, namespace: str, field: str, reader: ClusterReader) -> Problem | None:
    """Returns why the store of a place can't be opened. None if it can, or without a store. `field` is the prefix of the place's fields."""
    seen = observe_store_secrets(store, namespace, field, reader)
    return seen if isinstance(seen, Problem) else None


def observe_store_secrets(store: ObjectStore | None, namespace: str, field: str, reader: ClusterReader) -> StoreSecrets | Problem | None:
    """Returns the Secrets that open a store, or why they don't. None without a store."""
    if store is None:
        return None
    named = sorted({secret for _, secret, _ in needed_of_secrets(store)})
    found = {secret: reader.kubernetes.document("v1", "Secret", ObjectKey(namespace, secret)) for secret in named}
    secrets = {secret: None if document is None else values_of_secret(document) for secret, document in found.items()}
    uids = {secret: str(document["metadata"]["uid"]) for secret, document in found.items() if document is not None}
    return store_secrets(store, secrets, uids, f"{field}objectStore")


def observe_keys(encryption: Encryption | None, field: str, reader: ClusterReader, *, namespace: str, writes: bool) -> Problem | None:
    """Returns why nothing can be read (`writes`: or written) with the keys named at `field`. None if possible, or without keys."""
    if encryption is None:
        return None
    values = reader.kubernetes.secret(ObjectKey(namespace, encryption.keys_secret_ref.name))
    return why_keys_unusable(encryption, values, field, writes=writes)


def observe_destination(
    destination: Destination | None, field: str, reader: ClusterReader, *, namespace: str, writes: bool
) -> Problem | None:
    """The same for a place with the field prefix `field`, and its store, if any."""
    if destination is None:
        return None
    return observe_store(destination.object_store, namespace, field, reader) or observe_keys(
        destination.encryption, f"{field}encryption", reader, namespace=namespace, writes=writes
    )


def observe_checkpoints(documents: Sequence[Json], reader: ClusterReader) -> tuple[Checkpoint, ...] | Unknown:
    """Returns the Checkpoints that may share or need files; Unknown if one can't be read, unless it failed: that has no manifest."""
    found = [reader.kubernetes.model(Checkpoint, document) for document in documents]
    without = [isinstance(each, Unreadable) and each.rest.status is not None and each.rest.status.phase == "Failed" for each in found]
    return reader.kubernetes.models(Checkpoint, (document for document, left in zip(documents, without, strict=True) if not left))


def observe_work(namespace: str, reader: ClusterReader) -> tuple[CheckpointWork, ...]:
    """Returns the activity of all Checkpoints of a namespace."""
    return tuple(work for item in reader.kubernetes.made_for(Checkpoint.KIND, namespace, _WORK) for work in work_of(item))
