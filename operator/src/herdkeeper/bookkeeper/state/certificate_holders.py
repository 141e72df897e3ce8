"""The certificates that a BookKeeperCluster needs if its ensemble requires them."""

from __future__ import annotations

from herdkeeper.api import BookKeeperCluster
from herdkeeper.certificates.holders import Holder
from herdkeeper.certificates.issue import Subject


def certificate_holders(cluster: BookKeeperCluster) -> tuple[Holder, ...]:
    """Returns the holders: bookies with autorecovery, and jobs that read the log. Bookies admit every authorized user of the cluster."""
    named, name = cluster.names, cluster.metadata.name
    hosts = frozenset({f"*.{named.service}.{cluster.metadata.namespace}.svc"})
    return (
        Holder(named.identity_secret, Subject(f"bookies.{name}", name), hosts),
        Holder(named.readers_secret, Subject(f"readers.{name}", name)),
    )
