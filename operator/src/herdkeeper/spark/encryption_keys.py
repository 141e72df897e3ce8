"""The observation of the Secret with a destination's encryption keys."""

from __future__ import annotations

from collections.abc import Mapping

from herdkeeper.api.job import Encryption
from herdkeeper.protocol.encryption_key import NoKeyError, decode_key
from herdkeeper.shared.reason import Reason
from herdkeeper.spark.object_store import StoreUnusable

_FORM = "32 random bytes as base64, e.g. of `openssl rand -base64 32`"


def why_keys_unusable(encryption: Encryption, values: Mapping[str, str] | None, field: str, *, writes: bool) -> StoreUnusable | None:
    """Returns why nothing can be read (`writes`: or written) with the keys named at `field`, or None.

    `values` are the Secret's, None if it does not exist.
    """
    why = (
        _why_absent(encryption, values) if not values else _why_no_key(values) or (_why_none_chosen(encryption, values) if writes else None)
    )
    named = f"{field}.keysSecretRef.name is {encryption.keys_secret_ref.name}"
    return None if why is None else StoreUnusable(Reason.WAITING_FOR_SECRET, f"{named}: {why}")


def _why_absent(encryption: Encryption, values: Mapping[str, str] | None) -> str:
    named = "a key" if encryption.current_key is None else f"the key {encryption.current_key}"
    return (
        f"the Secret does not exist; create it with {named}: {_FORM}" if values is None else f"that Secret is empty; add {named}: {_FORM}"
    )


def _why_no_key(values: Mapping[str, str]) -> str | None:
    for name, value in sorted(values.items()):
        try:
            decode_key(value)
        except NoKeyError as error:
            return f"its entry {name} {error}; give {_FORM}"
    return None


def _why_none_chosen(encryption: Encryption, values: Mapping[str, str]) -> str | None:
    current, there = encryption.current_key, ", ".join(sorted(values))
    if current is None:
        return None if len(values) == 1 else f"that Secret has several keys ({there}); name the key for new files in currentKey"
    return None if current in values else f"that Secret lacks the key {current}, which currentKey names, and has {there}; add it: {_FORM}"
