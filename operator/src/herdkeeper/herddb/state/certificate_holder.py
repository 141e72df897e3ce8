"""The certificate that a HerdDBCluster needs if its ensemble requires one."""

from __future__ import annotations

from herdkeeper.api import HerdDBCluster
from herdkeeper.certificates import roles
from herdkeeper.certificates.holders import Holder


def certificate_holder(cluster: HerdDBCluster) -> Holder:
    """SQL nodes: clients of ensemble and bookies. The certificate has their host names, too, so that `spec.tls` can name its Secret."""
    named, namespace = cluster.names, cluster.metadata.namespace
    hosts = frozenset({f"*.{named.nodes_service}.{namespace}.svc", f"{named.client_service}.{namespace}.svc"})
    return Holder(named.identity_secret, roles.sql_nodes(cluster.metadata.name, cluster.spec.book_keeper_ref.name), hosts)
