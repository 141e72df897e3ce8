"""Whose certificates a BookKeeperCluster needs, where its ensemble asks for them."""

from __future__ import annotations

from herdkeeper.api import BookKeeperCluster
from herdkeeper.certificates.holders import Holder
from herdkeeper.certificates.issue import Subject


def certificate_holders(cluster: BookKeeperCluster) -> tuple[Holder, ...]:
    """Bookies with autorecovery, and jobs that read the log. Bookies let in whoever may use this cluster."""
    named, name = cluster.names, cluster.metadata.name
    hosts = frozenset({f"*.{named.service}.{cluster.metadata.namespace}.svc"})
    return (
        Holder(named.identity_secret, Subject(f"bookies.{name}", name), hosts),
        Holder(named.readers_secret, Subject(f"readers.{name}", name)),
    )
