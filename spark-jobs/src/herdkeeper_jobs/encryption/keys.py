"""The keys of Secrets, and the Fernet tokens that they seal: keys of files, and manifests.

A Secret is mounted as a folder of its name, with a file per key. The variable ENCRYPTION_KEYS lists such folders. Tasks read keys from
their own mounts, so what Spark passes around is sealed. Keys are read anew each time, since a Secret may change while a process runs. The
fingerprint beside a token identifies its key, whatever the key is called now.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from herdkeeper.protocol.encryption_key import NoKeyError, decode_key, fingerprint_of
from herdkeeper_jobs.errors import InvariantViolated, KeyUnusable

FOLDERS = "ENCRYPTION_KEYS"
"""Variable: folders with keys, separated by `:`."""
_MAKE_ONE = "make one with: openssl rand -base64 32"


@dataclass(frozen=True, slots=True)
class Key:
    """A key, its name in a Secret, and that Secret's name."""

    name: str
    secret: str
    content: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """Identifies the key without revealing it."""
        return fingerprint_of(self.content)

    def seal(self, content: bytes) -> str:
        """Returns a token that only this key opens."""
        return self._fernet().encrypt(content).decode()

    def open(self, token: str) -> bytes | None:
        """Returns the sealed content; None for a token of another key, or a changed one."""
        try:
            return self._fernet().decrypt(token)
        except InvalidToken:
            return None

    def _fernet(self) -> Fernet:
        return Fernet(base64.urlsafe_b64encode(self.content))


class SealedBy(BaseModel):
    """Which key sealed something."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore")

    key_name: str
    key_fingerprint: str

    @staticmethod
    def of(key: Key) -> SealedBy:
        """The record of this key."""
        return SealedBy(key_name=key.name, key_fingerprint=key.fingerprint)


@dataclass(frozen=True, slots=True)
class Keyring:
    """The keys of a process. `folders`: where they came from."""

    folders: tuple[Path, ...]
    keys: tuple[Key, ...]

    @staticmethod
    def of(environment: Mapping[str, str]) -> Keyring:
        """Reads the folders in the process's variables; empty without the variable. Raises KeyUnusable."""
        folders = tuple(Path(part) for part in environment.get(FOLDERS, "").split(":") if part)
        return Keyring(folders, tuple(key for folder in folders for key in _keys_in(folder)))

    def open(self, token: str, sealed_by: SealedBy, what: str) -> bytes:
        """Returns a token's content.

        Raises:
            KeyUnusable: the key is missing. Names `what`, the key, the searched Secrets and what to do.
            InvariantViolated: the key exists, and did not seal this.
        """
        for key in self.keys:
            if key.fingerprint == sealed_by.key_fingerprint:
                content = key.open(token)
                if content is None:
                    raise InvariantViolated(
                        f"{what} was changed: the key {key.name!r} of the Secret {key.secret} did not seal this content"
                    )
                return content
        named = f"{sealed_by.key_name!r} (fingerprint {sealed_by.key_fingerprint})"
        raise KeyUnusable(f"{what} is encrypted with the key {named}: {self._why_missing(sealed_by)}")

    def _why_missing(self, sealed_by: SealedBy) -> str:
        if not self.folders:
            return (
                "this job was given no keys. Name the Secret with the key in the destination's encryption.keysSecretRef. In a Tablespace's "
                "spec.bootstrap, that of files or archive may be added at any time. By hand: list the Secret's folder in the variable "
                f"{FOLDERS}"
            )
        secrets = " and ".join(folder.name for folder in self.folders)
        if any(key.name == sealed_by.key_name for key in self.keys):
            return f"the Secret {secrets} has another key of this name; put the old one back under any name, beside the new one"
        there = ", ".join(repr(key.name) for key in self.keys)
        return f"the Secret {secrets} has {there or 'no key'}; put that key back: existing files need it"


def keyring() -> Keyring:
    """Reads the current keys of this process. Raises KeyUnusable."""
    return Keyring.of(os.environ)


def key_at(path: Path) -> Key:
    """Returns the key for new files: a key's file, or a folder with only one key. Raises KeyUnusable, naming Secret and key."""
    if path.is_file():
        return _read(path)
    if not path.is_dir():
        raise KeyUnusable(f"the Secret {path.parent.name} has no key {path.name!r}: add it to the Secret; {_MAKE_ONE}")
    found = _keys_in(path)
    if len(found) == 1:
        return found[0]
    if not found:
        raise KeyUnusable(f"the Secret {path.name} has no key: add one; {_MAKE_ONE}")
    names = ", ".join(repr(key.name) for key in found)
    raise KeyUnusable(f"the Secret {path.name} has the keys {names}: name the key for new files in encryption.currentKey")


def writing_key(text: str) -> Key | None:
    """As `key_at` for a command line's argument, None if empty. This process and its tasks must be able to read with the key.

    Raises:
        KeyUnusable: it is missing, is no key, or is not among those that this process and its tasks read with.
    """
    if not text:
        return None
    key = key_at(Path(text))
    if key.fingerprint not in {other.fingerprint for other in keyring().keys}:
        raise KeyUnusable(f"--encrypt-with is {text!r}: list its folder in the variable {FOLDERS}, too, to read what is written")
    return key


def _keys_in(folder: Path) -> list[Key]:
    if not folder.is_dir():
        raise KeyUnusable(f"{FOLDERS} names {folder}, which is not a folder: mount the Secret there")
    # The kubelet's own files, which begin with two dots, put the others in place.
    return [_read(path) for path in sorted(folder.iterdir()) if not path.name.startswith(".") and path.is_file()]


def _read(path: Path) -> Key:
    try:
        return Key(path.name, path.parent.name, decode_key(path.read_text()))
    except (NoKeyError, UnicodeDecodeError) as error:
        why = str(error) if isinstance(error, NoKeyError) else "is no text"
        raise KeyUnusable(f"the key {path.name!r} of the Secret {path.parent.name} {why}; {_MAKE_ONE}") from error
