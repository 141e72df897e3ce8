"""The certificate by which a job is known to ZooKeeper and to bookies: the same one in all of its processes."""

from __future__ import annotations

import os

from herdkeeper.shared.names import IDENTITY_VARIABLE
from herdkeeper.tls.identity import MountedIdentity
from herdkeeper.tls.kazoo_handler import MutualTlsHandler


def own_identity() -> MountedIdentity | None:
    """As the process's environment says; None where servers ask for no certificate and are spoken to in plain text."""
    folder = os.environ.get(IDENTITY_VARIABLE)
    return MountedIdentity(folder) if folder else None


def own_handler() -> MutualTlsHandler | None:
    """What a KazooClient of this process connects with; None: kazoo's own way."""
    identity = own_identity()
    return None if identity is None else MutualTlsHandler(identity)
