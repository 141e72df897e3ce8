"""Looks at the Secrets that an object store is opened with."""

from __future__ import annotations

from herdkeeper.api.job import ObjectStore
from herdkeeper.domain.names import ObjectKey
from herdkeeper.domain.observed.object_store import StoreSecrets, StoreUnusable, needed_of_secrets, store_secrets
from herdkeeper.observe.world import World


def observe_store(store: ObjectStore | None, namespace: str, field: str, world: World) -> StoreUnusable | None:
    """Why the store that a resource names at `field` can't be opened; None when it can, or when there is none to open."""
    seen = observe_store_secrets(store, namespace, field, world)
    return seen if isinstance(seen, StoreUnusable) else None


def observe_store_secrets(store: ObjectStore | None, namespace: str, field: str, world: World) -> StoreSecrets | StoreUnusable | None:
    """The same, and else what the store is opened with."""
    if store is None:
        return None
    named = {secret for _, secret, _ in needed_of_secrets(store)}
    secrets = {secret: world.kubernetes.secret(ObjectKey(namespace, secret)) for secret in sorted(named)}
    return store_secrets(store, secrets, field)
