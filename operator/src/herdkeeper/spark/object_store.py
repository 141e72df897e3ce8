"""What was seen of the Secrets that an object store or a file system is opened with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from herdkeeper.api.job import FileSystem, ObjectStore
from herdkeeper.shared import names
from herdkeeper.shared.reason import Reason

ARCHIVE_FIELD = "spec.log.archive.destination."
"""Before what a Tablespace says of the place with its log's archive."""
Secrets = Mapping[str, Mapping[str, str] | None]
"""By name the values of Secrets, None for one that is not there."""
Store = ObjectStore | FileSystem
"""What is opened by its address."""


@dataclass(frozen=True)
class StoreUnusable:
    """A Secret is not there, or lacks a key: a pod that takes its variables from it would never start, or end without having done
    anything."""

    reason: Reason
    why: str


@dataclass(frozen=True)
class StoreSecrets:
    """All is there that a store is opened with. `values` are those that count, by Secret and key. With them is each Secret's uid, by its
    name: only who may read the Secret knows it, so nobody can try passwords on a hash of these."""

    values: Mapping[str, str] = field(repr=False)


def needed_of_secrets(store: Store) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Each Secret that the store is opened with: the field that names it, its name, and the keys that it must have; none where any may be
    there, and all of them count."""
    if isinstance(store, FileSystem):
        return () if store.options_secret_ref is None else (("optionsSecretRef", store.options_secret_ref.name, ()),)
    credentials = ("credentialsSecretRef", store.credentials_secret_ref.name, (names.ACCESS_KEY_ID_KEY, names.SECRET_ACCESS_KEY_KEY))
    if store.ca_secret_ref is None:
        return (credentials,)
    return (credentials, ("caSecretRef", store.ca_secret_ref.name, (names.AUTHORITIES_KEY,)))


def why_store_unusable(store: Store, secrets: Secrets, field: str) -> StoreUnusable | None:
    """Why the store can't be opened, which the resource names at `field`; None when all is there."""
    for name, secret, keys in needed_of_secrets(store):
        values = secrets.get(secret)
        named = f"{field}.{name}.name is {secret}"
        if values is None:
            return StoreUnusable(
                Reason.WAITING_FOR_SECRET, f"{named}: the Secret does not exist; create it with {' and '.join(keys) or 'the options'}"
            )
        if missing := [key for key in keys if not values.get(key)]:
            return StoreUnusable(Reason.WAITING_FOR_SECRET, f"{named}: that Secret lacks {' and '.join(missing)}; add it")
    return None


def store_secrets(store: Store, secrets: Secrets, uids: Mapping[str, str], field: str) -> StoreSecrets | StoreUnusable:
    """What the store is opened with, or why it can't be, as `why_store_unusable`. `uids` are the Secrets' by name."""
    unusable = why_store_unusable(store, secrets, field)
    if unusable is not None:
        return unusable
    needed = needed_of_secrets(store)
    found = ((secret, secrets.get(secret) or {}, keys) for _, secret, keys in needed)
    values = {f"{secret}/{key}": held[key] for secret, held, keys in found for key in keys or held}
    return StoreSecrets({**{secret: uids[secret] for _, secret, _ in needed}, **values})
