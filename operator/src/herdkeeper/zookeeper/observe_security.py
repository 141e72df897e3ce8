"""Looks at the certificates of a ZooKeeperCluster, as its Secrets hold them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.certificates.authority import Authority, authority_data, expiry_of, found_authority
from herdkeeper.certificates.holders import DueSecrets, Holder, due_secrets
from herdkeeper.certificates.issue import AUTHORITY_LIFE, CERTIFICATE_LIFE, Subject, Validity, fresh_key
from herdkeeper.clients.identities import held_by, readable_authority
from herdkeeper.clients.kubernetes import values_of_secret
from herdkeeper.shared import names
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.state import EnsembleSecurity


def observe_security(cluster: ZooKeeperCluster, objects: Objects) -> EnsembleSecurity:
    """Its two authorities: that of the client port, of servers and their clients; and that of the quorum, whose holders are members."""
    named, now = cluster.names, datetime.now(UTC)
    clients = Holder(named.clients_secret, Subject("zookeeper"), named.served_hosts)
    holders = {
        named.authority_secret: (clients, Holder(named.operator_secret, Subject("operator"))),
        named.quorum_authority_secret: (Holder(named.members_secret, Subject("member"), named.served_hosts),),
    }
    called = {named.authority_secret: "clients", named.quorum_authority_secret: "quorum"}
    stored = {name: _values(objects, name) for name in holders}
    found = {name: readable_authority(name, values) for name, values in stored.items() if values is not None}
    fresh = {
        name: authority_data(found_authority(f"{cluster.key.name} {called[name]}", fresh_key(), Validity(now, AUTHORITY_LIFE)))
        for name, values in stored.items()
        if values is None
    }
    held = held_by([holder for each in holders.values() for holder in each], objects)
    due = [_due(authority, holders[name], held, now) for name, authority in found.items()]
    after = {**held, **{change.holder.secret: change.data for each in due for change in each.changes}}
    seconds = [each.next_seconds for each in due if each.next_seconds is not None]
    return EnsembleSecurity(
        fresh_authorities=fresh,
        identities=DueSecrets(
            tuple(change for each in due for change in each.changes),
            next((each.obstacle for each in due if each.obstacle is not None), None),
            min(seconds, default=None),
        ),
        read_at_start={
            f"{secret}/{key}": after[secret][key]
            for secret, key in (
                (named.clients_secret, names.AUTHORITIES_KEY),
                (named.members_secret, names.AUTHORITIES_KEY),
                (named.members_secret, names.CERTIFICATE_KEY),
            )
            if secret in after and key in after[secret]
        },
        expires=min((expiry_of(authority) for authority in found.values() if not isinstance(authority, Unknown)), default=None),
    )


def _due(authority: Authority | Unknown, holders: Sequence[Holder], held: dict[str, dict[str, str]], now: datetime) -> DueSecrets:
    if isinstance(authority, Unknown):
        return DueSecrets(obstacle=authority.why)
    return due_secrets(holders, held, authority, fresh_key, Validity(now, CERTIFICATE_LIFE))


def _values(objects: Objects, secret: str) -> dict[str, str] | None:
    document = objects.get("Secret", secret)
    return None if document is None else values_of_secret(document)
