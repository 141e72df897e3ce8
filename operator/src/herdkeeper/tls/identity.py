"""A client's identity towards servers that require a certificate, and its trusted authorities."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from herdkeeper.shared import names


@dataclass(frozen=True)
class Identity:
    """A certificate with its chain, its key, and the authorities to verify servers; each in PEM."""

    certificate: str
    key: str = field(repr=False)
    authorities: str


IdentityNow = Callable[[], Identity]
"""Returns the newest identity, at each connection: a renewed certificate needs no restart. Raises OSError, ValueError."""


@dataclass(frozen=True)
class MountedIdentity:
    """The Identity in a mounted Secret. Picklable: executors have it mounted at the same path."""

    folder: str

    def __call__(self) -> Identity:
        """Returns the current content. Raises OSError, and UnicodeDecodeError (a ValueError)."""
        # A Secret's files change together by a link, so they are read through its target.
        data = Path(self.folder, "..data")
        folder = data.resolve() if data.exists() else Path(self.folder)
        return Identity(*((folder / key).read_text() for key in (names.CERTIFICATE_KEY, names.PRIVATE_KEY_KEY, names.AUTHORITIES_KEY)))


def own_identity() -> MountedIdentity | None:
    """By which this process is known to ZooKeeper and to bookies, the same in all processes of a job: its environment says where it is.
    None where servers ask for no certificate and are spoken to in plain text."""
    folder = os.environ.get(names.IDENTITY_VARIABLE)
    return MountedIdentity(folder) if folder else None
