"""Observes the certificates of a ZooKeeperCluster in its Secrets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.certificates.authority import Authority, authority_data, expiry_of, first_authority
from herdkeeper.certificates.holders import DueSecrets, due_secrets
from herdkeeper.certificates.issue import AUTHORITY_LIFE, CERTIFICATE_LIFE, KeyPair, Validity, fresh_key
from herdkeeper.clients.identities import held_by, readable_authority
from herdkeeper.clients.kubernetes import values_of_secret
from herdkeeper.planning.actions import soonest
from herdkeeper.shared import names
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.unknown import NotThereYet, Unknown
from herdkeeper.zookeeper.build import CLIENTS_MOUNT, MEMBERS_MOUNT, starts_with
from herdkeeper.zookeeper.issuers import Issuer, issuers
from herdkeeper.zookeeper.state import EnsembleSecurity


def kept_authorities(cluster: ZooKeeperCluster, objects: Objects) -> Mapping[str, Authority | Unknown]:
    """Returns the authority in each of the operator's existing Secrets or, if it can't be read, why; by Secret."""
    there = {issuer.secret: objects.get("Secret", issuer.secret) for issuer in issuers(cluster)}
    return {name: readable_authority(name, values_of_secret(document)) for name, document in there.items() if document is not None}


def observe_security(
    cluster: ZooKeeperCluster,
    objects: Objects,
    kept: Mapping[str, Authority | Unknown],
    given: Mapping[str, KeyPair | Unknown],
    now: datetime,
) -> EnsembleSecurity:
    """Returns what the Secrets hold, and what is due. `kept` as in kept_authorities, `given` as in observe_given_authorities."""
    named = cluster.names
    fresh: dict[str, Mapping[str, str]] = {}
    expires: list[datetime] = []
    awaited: str | None = None
    due: list[DueSecrets] = []
    held: dict[str, Mapping[str, str]] = {}
    for issuer in issuers(cluster):
        held |= held_by(issuer.holders, objects)
        stored = kept.get(issuer.secret)
        authority = _founded(issuer, given.get(issuer.secret), now) if stored is None else stored
        if isinstance(authority, NotThereYet):
            awaited = authority.why
        elif isinstance(authority, Unknown):
            due.append(DueSecrets(obstacle=authority.why))
        elif stored is None:
            fresh[issuer.secret] = authority_data(authority)
        else:
            expires.append(authority.expires)
            due.append(due_secrets(issuer.holders, held, authority, fresh_key, Validity(now, CERTIFICATE_LIFE)))
    changes = tuple(change for each in due for change in each.changes)
    read_at_start = (
        (CLIENTS_MOUNT, named.clients_secret, names.AUTHORITIES_KEY),
        (MEMBERS_MOUNT, named.members_secret, names.AUTHORITIES_KEY),
        (MEMBERS_MOUNT, named.members_secret, names.CERTIFICATE_KEY),
    )

    def files(secrets: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
        return {f"{folder}/{key}": secrets[secret][key] for folder, secret, key in read_at_start if key in secrets.get(secret, {})}

    after = {**held, **{change.holder.secret: change.data for change in changes}}
    stateful_set = objects.get("StatefulSet", named.stateful_set)
    in_use = stateful_set is not None and starts_with(stateful_set, files(held))
    return EnsembleSecurity(
        awaited=awaited,
        fresh_authorities=fresh,
        identities=DueSecrets(
            changes,
            next((each.obstacle for each in due if each.obstacle is not None), None),
            soonest(*(each.next_seconds for each in due)),
        ),
        read_at_start=files(after),
        expires=min(expires, default=None),
        ended=_ended(held.get(named.members_secret, {}), now) if in_use else None,
    )


def _ended(members: Mapping[str, str], now: datetime) -> datetime | None:
    """Returns when the certificate that members show each other ended. None if it has not, or can't be read."""
    try:
        end = expiry_of(members.get(names.CERTIFICATE_KEY, ""))
    except ValueError:
        return None
    return end if now >= end else None


def _founded(issuer: Issuer, given: KeyPair | Unknown | None, now: datetime) -> Authority | Unknown:
    """Returns the first authority: the one that is given, or else one of the operator's."""
    if given is None:
        return first_authority(issuer.name, fresh_key(), Validity(now, AUTHORITY_LIFE))
    return given if isinstance(given, Unknown) else Authority(issuer.secret, 1, given)
