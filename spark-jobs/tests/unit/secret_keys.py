"""A Secret with encryption keys, mounted as a folder that Spark's workers also find by their variable."""

from __future__ import annotations

import base64
import os
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from herdkeeper_jobs.encryption.keys import FOLDERS, Key, key_at

NAME = "backup-keys"
_mount = Path(tempfile.mkdtemp(prefix="herdkeeper-keys-")) / NAME


@dataclass(frozen=True)
class MountedSecret:
    folder: Path

    def add(self, name: str) -> Key:
        """Adds a new key."""
        (self.folder / name).write_text(base64.b64encode(secrets.token_bytes(32)).decode() + "\n")
        return key_at(self.folder / name)

    def put(self, key: Key, name: str | None = None) -> None:
        """Adds an existing key, under its own name or another one."""
        (self.folder / (name or key.name)).write_text(base64.urlsafe_b64encode(key.content).decode())

    def remove(self, name: str) -> None:
        (self.folder / name).unlink()


def announce() -> None:
    """Sets the variable. Call it before Spark starts: workers keep the variables of that time."""
    _mount.mkdir(parents=True, exist_ok=True)
    os.environ[FOLDERS] = str(_mount)


def mounted() -> Iterator[MountedSecret]:
    """The Secret, for one test."""
    yield MountedSecret(_mount)
    for path in _mount.iterdir():
        path.unlink()
