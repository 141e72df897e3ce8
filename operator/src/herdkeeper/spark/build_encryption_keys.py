"""How encryption keys get into pods: each Secret is mounted as a folder of its name, so that programs can name it."""

from __future__ import annotations

from collections.abc import Sequence

from herdkeeper.api.job import Destination, Encryption
from herdkeeper.shared.objects import Json

_FOLDER = "/encryption"


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
    """Returns the mounts."""
    return [{"name": _volume(number), "mountPath": _mounted(secret), "readOnly": True} for number, secret in enumerate(secrets)]


def _mounted(secret: str) -> str:
    return f"{_FOLDER}/{secret}"


def _volume(number: int) -> str:
    return "encryption-keys" if number == 0 else f"encryption-keys-{number}"
