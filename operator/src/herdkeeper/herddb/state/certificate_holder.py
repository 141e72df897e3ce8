"""The certificate that a HerdDBCluster needs if its ensemble requires one."""

from __future__ import annotations

from herdkeeper.api import HerdDBCluster
from herdkeeper.certificates import roles
from herdkeeper.certificates.holders import Holder


def certificate_holder(cluster: HerdDBCluster) -> Holder:
    """SQL nodes: clients of ensemble and bookies, and servers of SQL under their own names and those of leaders' Services.

    `*.<namespace>.svc` covers Services alone: the names of pods have one label more.
    """
    named, namespace = cluster.names, cluster.metadata.namespace
    hosts = frozenset({f"*.{named.nodes_service}.{namespace}.svc", f"*.{namespace}.svc"})
    return Holder(named.identity_secret, roles.sql_nodes(cluster.metadata.name, cluster.spec.book_keeper_ref.name), hosts)
