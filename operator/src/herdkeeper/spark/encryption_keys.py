"""The Secrets with encryption keys: what makes one unusable, and how they get into pods. Each is mounted as a folder of its name, so that
programs can name it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from herdkeeper.api.job import Destination, Encryption
from herdkeeper.protocol.encryption_key import NoKeyError, decode_key, fingerprint_of
from herdkeeper.shared.objects import Json
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason

_FOLDER = "/encryption"
_FORM = "32 random bytes as base64, e.g. of `openssl rand -base64 32`"


def why_keys_unusable(encryption: Encryption, values: Mapping[str, str] | None, field: str, *, writes: bool) -> Problem | None:
    """Returns why nothing can be read (`writes`: or written) with the keys named at `field`, or None. `values`: the Secret's, if any."""
    why = (
        _why_absent(encryption, values) if not values else _why_no_key(values) or (_why_none_chosen(encryption, values) if writes else None)
    )
    named = f"{field}.keysSecretRef.name is {encryption.keys_secret_ref.name}"
    return None if why is None else Problem(Reason.WAITING_FOR_SECRET, f"{named}: {why}")


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


def fingerprints(values: Mapping[str, str]) -> dict[str, str]:
    """Returns the fingerprint of each key in a Secret with these values, by name. What is no key has none."""
    found = {}
    for name, value in values.items():
        with suppress(NoKeyError):
            found[name] = fingerprint_of(decode_key(value))
    return found


def secrets_of(*destinations: Destination | None) -> tuple[str, ...]:
    """Returns the Secrets with keys that places name, each once."""
    named = (place.encryption.keys_secret_ref.name for place in destinations if place is not None and place.encryption is not None)
    return tuple(dict.fromkeys(named))


def encrypts(destination: Destination) -> tuple[str, ...]:
    """Returns the arguments that tell herdkeeper_jobs.{checkpoint,archive,restore}.cli the key for new files; none without encryption."""
    return () if destination.encryption is None else ("--encrypt-with", _current_key(destination.encryption))


def _current_key(encryption: Encryption) -> str:
    """Returns the mounted file, or the folder if the key is the only one."""
    folder = _mounted(encryption.keys_secret_ref.name)
    return folder if encryption.current_key is None else f"{folder}/{encryption.current_key}"


def variables(secrets: Sequence[str]) -> tuple[Json, ...]:
    """Returns what herdkeeper_jobs.encryption.keys reads, in every process that reads or writes files."""
    return ({"name": "ENCRYPTION_KEYS", "value": ":".join(map(_mounted, secrets))},) if secrets else ()


def volumes(secrets: Sequence[str]) -> list[Json]:
    """The pod's group may read them, and all processes of the pod are in the group."""
    return [{"name": _volume(number), "secret": {"secretName": secret, "defaultMode": 0o440}} for number, secret in enumerate(secrets)]


def mounts(secrets: Sequence[str]) -> list[Json]:
    return [{"name": _volume(number), "mountPath": _mounted(secret), "readOnly": True} for number, secret in enumerate(secrets)]


def _mounted(secret: str) -> str:
    return f"{_FOLDER}/{secret}"


def _volume(number: int) -> str:
    return "encryption-keys" if number == 0 else f"encryption-keys-{number}"
