"""Who a client is towards servers that ask for a certificate, and whom it trusts."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from herdkeeper.shared import names


@dataclass(frozen=True)
class Identity:
    """A certificate with those that signed it, its key, and the authorities that servers are verified by; each in PEM."""

    certificate: str
    key: str = field(repr=False)
    authorities: str


IdentityNow = Callable[[], Identity]
"""Gives the newest one: it is asked at each connection, so that a renewed certificate needs no restart. Raises OSError, ValueError."""


@dataclass(frozen=True)
class MountedIdentity:
    """The Identity of a mounted Secret. Can be pickled: executors have it mounted at the same place."""

    folder: str

    def __call__(self) -> Identity:
        """What is there now. Raises OSError, and UnicodeDecodeError (a ValueError)."""
        # A Secret's files change together, by a link; so they are read through where that leads.
        data = Path(self.folder, "..data")
        folder = data.resolve() if data.exists() else Path(self.folder)
        return Identity(*((folder / key).read_text() for key in (names.CERTIFICATE_KEY, names.PRIVATE_KEY_KEY, names.AUTHORITIES_KEY)))


def own_identity() -> MountedIdentity | None:
    """By which this process is known to ZooKeeper and to bookies, the same in all processes of a job: its environment says where it is.
    None where servers ask for no certificate and are spoken to in plain text."""
    folder = os.environ.get(names.IDENTITY_VARIABLE)
    return MountedIdentity(folder) if folder else None
