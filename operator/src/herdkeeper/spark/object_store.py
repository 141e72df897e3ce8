"""How an object store is opened: what was seen of its Secrets, and as which ServiceAccount pods run that have none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from herdkeeper.api.job import Destination, ObjectStore
from herdkeeper.shared import names
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason

ARCHIVE_FIELD = "spec.log.archive.destination."
"""Prefix of a Tablespace's fields about the place of its log's archive."""
Secrets = Mapping[str, Mapping[str, str] | None]
"""By name the values of Secrets, None for one that is not there."""
_OF_AZURE = {"azure.workload.identity/use": "true"}
"""By this label Azure's webhook knows the pods that it gives an identity."""


@dataclass(frozen=True)
class StoreSecrets:
    """Everything to open a store. `values` are the relevant ones, by Secret and key. They include each Secret's uid, by its name: only
    readers of the Secret know it, so a hash of the values can't be used to guess passwords.
    """

    values: Mapping[str, str] = field(repr=False)


def needed_of_secrets(store: ObjectStore) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Each Secret that the store is opened with: the field that names it, its name, and the keys that it must have."""
    needed = (
        ("credentialsSecretRef", store.credentials_secret_ref, keys_of(store)),
        ("caSecretRef", store.ca_secret_ref, (names.AUTHORITIES_KEY,)),
    )
    return tuple((named, reference.name, keys) for named, reference, keys in needed if reference is not None)


def keys_of(store: ObjectStore) -> tuple[str, ...]:
    """The keys that the Secret with the store's credentials must have."""
    return names.STORE_KEYS[store.scheme]


def why_store_unusable(store: ObjectStore, secrets: Secrets, field: str) -> Problem | None:
    """Returns why the store can't be opened, or None. `field` is where the resource names it. A pod without its Secret never starts."""
    for name, secret, keys in needed_of_secrets(store):
        values = secrets.get(secret)
        named = f"{field}.{name}.name is {secret}"
        if values is None:
            return Problem(Reason.WAITING_FOR_SECRET, f"{named}: the Secret does not exist; create it with {' and '.join(keys)}")
        if missing := [key for key in keys if not values.get(key)]:
            return Problem(Reason.WAITING_FOR_SECRET, f"{named}: that Secret lacks {' and '.join(missing)}; add it")
    return None


def store_secrets(store: ObjectStore, secrets: Secrets, uids: Mapping[str, str], field: str) -> StoreSecrets | Problem:
    """Returns what opens the store, or why nothing does. `uids` are the Secrets' by name."""
    if (unusable := why_store_unusable(store, secrets, field)) is not None:
        return unusable
    needed = needed_of_secrets(store)
    values = {f"{secret}/{key}": (secrets.get(secret) or {})[key] for _, secret, keys in needed for key in keys}
    return StoreSecrets({**{secret: uids[secret] for _, secret, _ in needed}, **values})


def service_account(*places: Destination | None) -> str | None:
    """The ServiceAccount by which the cloud knows the pods that open these places; None where all are opened without one."""
    return next((name for place in places if (name := _account(place)) is not None), None)


def identity_labels(*places: Destination | None) -> dict[str, str]:
    """The labels that these pods need for that."""
    stores = [place.object_store for place in places if place is not None and place.object_store is not None]
    return _OF_AZURE if any(store.scheme == "az" and store.service_account_name for store in stores) else {}


def why_two_accounts(place: Destination | None, archive: Destination | None, field: str) -> Problem | None:
    """Returns why no pod can open both places, or None: a pod runs as one ServiceAccount. `field` is the prefix of the second's fields."""
    one, other = _account(place), _account(archive)
    if one is None or other is None or one == other:
        return None
    return Problem(
        Reason.INVALID_SPEC,
        f"{field}objectStore.serviceAccountName is {other}, and that of the destination is {one}, but a pod runs as one ServiceAccount; "
        "name the same one, or a Secret at one of the two",
    )


def _account(place: Destination | None) -> str | None:
    return place.object_store.service_account_name if place is not None and place.object_store is not None else None
