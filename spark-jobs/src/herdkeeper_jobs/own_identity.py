"""The certificate that identifies a job to ZooKeeper and to bookies; all of its processes use the same one."""

from __future__ import annotations

import os

from herdkeeper.shared.names import IDENTITY_VARIABLE
from herdkeeper.tls.identity import MountedIdentity
from herdkeeper.tls.kazoo_handler import MutualTlsHandler


def own_identity() -> MountedIdentity | None:
    """Reads the process's environment. None if servers require no certificate and use plain text."""
    folder = os.environ.get(IDENTITY_VARIABLE)
    return MountedIdentity(folder) if folder else None


def own_handler() -> MutualTlsHandler | None:
    """The handler for a KazooClient of this process; None: kazoo's default."""
    identity = own_identity()
    return None if identity is None else MutualTlsHandler(identity)
