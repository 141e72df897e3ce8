"""Observes the certificates of a ZooKeeperCluster in its Secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.certificates import roles
from herdkeeper.certificates.authority import Authority, authority_data, expiry_of, found_authority
from herdkeeper.certificates.holders import DueSecrets, Holder, due_secrets
from herdkeeper.certificates.issue import AUTHORITY_LIFE, CERTIFICATE_LIFE, Subject, Validity, fresh_key
from herdkeeper.clients.identities import held_by, readable_authority
from herdkeeper.clients.kubernetes import values_of_secret
from herdkeeper.shared import names
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.build import CLIENTS_MOUNT, MEMBERS_MOUNT
from herdkeeper.zookeeper.state import EnsembleSecurity


@dataclass(frozen=True)
class _Issuer:
    """An authority: its Secret, its name, and the holders whose certificates it signs."""

    secret: str
    name: str
    holders: tuple[Holder, ...]


def observe_security(cluster: ZooKeeperCluster, objects: Objects) -> EnsembleSecurity:
    """Returns what the Secrets hold, and what is due."""
    named, now = cluster.names, datetime.now(UTC)
    fresh: dict[str, Mapping[str, str]] = {}
    found: list[Authority] = []
    due: list[DueSecrets] = []
    held: dict[str, Mapping[str, str]] = {}
    for issuer in _issuers(cluster):
        held |= held_by(issuer.holders, objects)
        document = objects.get("Secret", issuer.secret)
        if document is None:
            fresh[issuer.secret] = authority_data(found_authority(issuer.name, fresh_key(), Validity(now, AUTHORITY_LIFE)))
            continue
        authority = readable_authority(issuer.secret, values_of_secret(document))
        if isinstance(authority, Unknown):
            due.append(DueSecrets(obstacle=authority.why))
            continue
        found.append(authority)
        due.append(due_secrets(issuer.holders, held, authority, fresh_key, Validity(now, CERTIFICATE_LIFE)))
    changes = tuple(change for each in due for change in each.changes)
    read_at_start = (
        (CLIENTS_MOUNT, named.clients_secret, names.AUTHORITIES_KEY),
        (MEMBERS_MOUNT, named.members_secret, names.AUTHORITIES_KEY),
        (MEMBERS_MOUNT, named.members_secret, names.CERTIFICATE_KEY),
    )
    after = {**held, **{change.holder.secret: change.data for change in changes}}
    return EnsembleSecurity(
        fresh_authorities=fresh,
        identities=DueSecrets(
            changes,
            next((each.obstacle for each in due if each.obstacle is not None), None),
            min((each.next_seconds for each in due if each.next_seconds is not None), default=None),
        ),
        read_at_start={f"{folder}/{key}": after[secret][key] for folder, secret, key in read_at_start if key in after.get(secret, {})},
        expires=min(map(expiry_of, found), default=None),
    )


def _issuers(cluster: ZooKeeperCluster) -> tuple[_Issuer, _Issuer]:
    """Returns the authority of the client port (servers and their clients), and that of the quorum (members)."""
    named, name = cluster.names, cluster.metadata.name
    client_port = Holder(named.clients_secret, Subject("zookeeper"), named.served_hosts)
    quorum = Holder(named.members_secret, Subject("member"), named.served_hosts)
    return (
        _Issuer(named.authority_secret, f"{name} clients", (client_port, Holder(named.operator_secret, roles.OPERATOR))),
        _Issuer(named.quorum_authority_secret, f"{name} quorum", (quorum,)),
    )
