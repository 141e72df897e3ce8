"""The two authorities of a stack, and the certificates that each signs for its ZooKeeperCluster."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.certificates import roles
from herdkeeper.certificates.holders import Holder
from herdkeeper.certificates.issue import Subject


@dataclass(frozen=True)
class Issuer:
    """An authority: the operator's Secret with it, the name of those that the operator makes, and the holders whose certificates it signs.

    `given_secret` is the user's Secret that it is taken from, which the field `field` names. None: the operator makes it.
    """

    secret: str
    name: str
    holders: tuple[Holder, ...]
    field: str
    given_secret: str | None


def issuers(cluster: ZooKeeperCluster) -> tuple[Issuer, Issuer]:
    """Returns the authority of the client port (servers and their clients), and that of the quorum (members)."""
    named, name, security = cluster.names, cluster.metadata.name, cluster.spec.security
    client_port = Holder(named.clients_secret, Subject("zookeeper"), named.served_hosts)
    quorum = Holder(named.members_secret, Subject("member"), named.served_hosts)
    given = [None if each is None else each.secret_name for each in (security.authority, security.quorum_authority)]
    of_clients = (client_port, Holder(named.operator_secret, roles.OPERATOR))
    return (
        Issuer(named.authority_secret, f"{name} clients", of_clients, "spec.security.authority", given[0]),
        Issuer(named.quorum_authority_secret, f"{name} quorum", (quorum,), "spec.security.quorumAuthority", given[1]),
    )
