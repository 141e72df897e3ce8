"""How the SQL port of a HerdDBCluster is encrypted, and the observation of the Secret with its certificate."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from herdkeeper.api import HerdDBCluster
from herdkeeper.api.herddb_cluster import Tls
from herdkeeper.herddb.state.log_store import LogStore
from herdkeeper.shared.reason import Reason


@dataclass(frozen=True)
class TlsUsable:
    """SQL nodes can use the Secret until its certificate expires. `authorities` (its `ca.crt`, PEM certificates) verify them."""

    secret: str
    authorities: str
    expires: datetime.datetime | None = field(default=None, compare=False)


@dataclass(frozen=True)
class TlsUnusable:
    """It does not exist, lacks a key, or does not let clients verify the nodes."""

    reason: Reason
    why: str


def tls_of(cluster: HerdDBCluster, log: LogStore) -> Tls | None:
    """Returns what is declared, or follows from the stack: where servers refuse plain text, SQL nodes do so with their own certificate."""
    if cluster.spec.tls is None and log.asks_for_certificates and not log.plaintext:
        return Tls(secret_name=cluster.names.identity_secret)
    return cluster.spec.tls
