"""The subjects of a stack's certificates, by role, and the certificates that clusters need if their ensemble requires them."""

from __future__ import annotations

from herdkeeper.api import BookKeeperCluster, HerdDBCluster
from herdkeeper.certificates.holders import Holder
from herdkeeper.certificates.issue import Subject

OPERATOR = Subject("operator")
ANY = "*"
"""In place of a name where access is granted: any name."""


def bookies(bookkeeper: str) -> Subject:
    """Bookies and autorecovery of a BookKeeperCluster, and the jobs that do their work: drains and repairs."""
    return Subject(f"bookies.{bookkeeper}", bookkeeper)


def readers(bookkeeper: str) -> Subject:
    """All other jobs, and applications that read the log."""
    return Subject(f"readers.{bookkeeper}", bookkeeper)


def sql_nodes(herddb: str, bookkeeper: str) -> Subject:
    """SQL nodes of a HerdDBCluster whose log is in this BookKeeperCluster."""
    return Subject(f"nodes.{herddb}", bookkeeper)


def bookkeeper_holders(cluster: BookKeeperCluster) -> tuple[Holder, ...]:
    """Returns the holders: bookies with those who do their work, and readers. Bookies admit every authorized user of the cluster."""
    named, name = cluster.names, cluster.metadata.name
    hosts = frozenset({f"*.{named.service}.{cluster.metadata.namespace}.svc"})
    return (Holder(named.identity_secret, bookies(name), hosts), Holder(named.readers_secret, readers(name)))


def sql_nodes_holder(cluster: HerdDBCluster) -> Holder:
    """SQL nodes: clients of ensemble and bookies, and servers of SQL under their own names and those of leaders' Services.

    `*.<namespace>.svc` covers Services alone: the names of pods have one label more.
    """
    named, namespace = cluster.names, cluster.metadata.namespace
    hosts = frozenset({f"*.{named.nodes_service}.{namespace}.svc", f"*.{namespace}.svc"})
    return Holder(named.identity_secret, sql_nodes(cluster.metadata.name, cluster.spec.book_keeper_ref.name), hosts)
