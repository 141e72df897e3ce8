"""The certificates that a BookKeeperCluster needs if its ensemble requires them."""

from __future__ import annotations

from herdkeeper.api import BookKeeperCluster
from herdkeeper.certificates import roles
from herdkeeper.certificates.holders import Holder


def certificate_holders(cluster: BookKeeperCluster) -> tuple[Holder, ...]:
    """Returns the holders: bookies with those who do their work, and readers. Bookies admit every authorized user of the cluster."""
    named, name = cluster.names, cluster.metadata.name
    hosts = frozenset({f"*.{named.service}.{cluster.metadata.namespace}.svc"})
    return (
        Holder(named.identity_secret, roles.bookies(name), hosts),
        Holder(named.readers_secret, roles.readers(name)),
    )
