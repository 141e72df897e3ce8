"""How the options of file systems come into pods: each Secret is mounted as a folder of its name, for each process to open them itself."""

from __future__ import annotations

from herdkeeper.api.job import Destination, FileSystem
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json

_FOLDER = "/file-systems"


def secrets_of(*destinations: Destination | None) -> tuple[str, ...]:
    """The Secrets with options that places name, each once."""
    there = (place.file_system for place in destinations if place is not None and place.file_system is not None)
    return tuple(dict.fromkeys(found.options_secret_ref.name for found in there if found.options_secret_ref is not None))


def variables(file_system: FileSystem, prefix: str = "") -> tuple[Json, ...]:
    """What herdkeeper_jobs.storage.file_system reads; `prefix` goes before the variable's name."""
    if file_system.options_secret_ref is None:
        return ()
    return ({"name": f"{prefix}{names.FILE_SYSTEM_OPTIONS_VARIABLE}", "value": _mounted(file_system.options_secret_ref.name)},)


def volumes(secrets: tuple[str, ...]) -> list[Json]:
    """Readable by the pod's group, which its processes have."""
    return [{"name": _volume(number), "secret": {"secretName": secret, "defaultMode": 0o440}} for number, secret in enumerate(secrets)]


def mounts(secrets: tuple[str, ...]) -> list[Json]:
    """Where they are."""
    return [{"name": _volume(number), "mountPath": _mounted(secret), "readOnly": True} for number, secret in enumerate(secrets)]


def _mounted(secret: str) -> str:
    return f"{_FOLDER}/{secret}"


def _volume(number: int) -> str:
    return "file-system-options" if number == 0 else f"file-system-options-{number}"
