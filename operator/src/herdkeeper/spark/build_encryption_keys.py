"""How keys that files are encrypted with come into pods: each Secret is mounted as a folder of its name, so that programs can name it."""

from __future__ import annotations

from collections.abc import Sequence

from herdkeeper.api.job import Destination, Encryption
from herdkeeper.shared.objects import Json

_FOLDER = "/encryption"


def secrets_of(*destinations: Destination | None) -> tuple[str, ...]:
    """The Secrets with keys that places name, each once."""
    named = (place.encryption.keys_secret_ref.name for place in destinations if place is not None and place.encryption is not None)
    return tuple(dict.fromkeys(named))


def encrypts(destination: Destination) -> tuple[str, ...]:
    """What tells herdkeeper_jobs.{checkpoint,archive,restore}.cli which key new files get; nothing where they get none."""
    return () if destination.encryption is None else ("--encrypt-with", _current_key(destination.encryption))


def _current_key(encryption: Encryption) -> str:
    """The mounted file, or the folder where it is alone."""
    folder = _mounted(encryption.keys_secret_ref.name)
    return folder if encryption.current_key is None else f"{folder}/{encryption.current_key}"


def variables(secrets: Sequence[str]) -> tuple[Json, ...]:
    """What herdkeeper_jobs.encryption.keys reads, in every process that reads or writes files."""
    return ({"name": "ENCRYPTION_KEYS", "value": ":".join(map(_mounted, secrets))},) if secrets else ()


def volumes(secrets: Sequence[str]) -> list[Json]:
    """Readable by the pod's group, which its processes have."""
    return [{"name": _volume(number), "secret": {"secretName": secret, "defaultMode": 0o440}} for number, secret in enumerate(secrets)]


def mounts(secrets: Sequence[str]) -> list[Json]:
    """Where they are."""
    return [{"name": _volume(number), "mountPath": _mounted(secret), "readOnly": True} for number, secret in enumerate(secrets)]


def _mounted(secret: str) -> str:
    return f"{_FOLDER}/{secret}"


def _volume(number: int) -> str:
    return "encryption-keys" if number == 0 else f"encryption-keys-{number}"
