"""Observes the authorities that a ZooKeeperCluster takes from Secrets of its user, such as those that cert-manager issues."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.certificates.authority import Authority
from herdkeeper.certificates.given_authority import are_related, given_authority, is_namesake
from herdkeeper.certificates.issue import KeyPair
from herdkeeper.clients.kubernetes import KubernetesReader
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.unknown import NotThereYet, Unknown
from herdkeeper.zookeeper.issuers import Issuer, issuers


def observe_given_authorities(
    cluster: ZooKeeperCluster, kept: Mapping[str, Authority | Unknown], kubernetes: KubernetesReader, now: datetime
) -> Mapping[str, KeyPair | Unknown]:
    """Returns each pair or, if it can't be an authority, why; by the operator's Secret that keeps it. `kept` as in kept_authorities."""
    clients, quorum = issuers(cluster)
    present = {secret: authority for secret, authority in kept.items() if isinstance(authority, Authority)}
    found = {
        issuer.secret: _read(issuer, present.get(issuer.secret), cluster.metadata.namespace, kubernetes, now)
        for issuer in (clients, quorum)
        if issuer.given_secret is not None
    }
    shared = _of_other_ensembles(cluster, kubernetes) if found else {}
    return {
        issuer.secret: shared.get(issuer.given_secret) or _apart(issuer, other, found, present, now)
        for issuer, other in ((clients, quorum), (quorum, clients))
        if issuer.given_secret is not None
    }


def _of_other_ensembles(cluster: ZooKeeperCluster, kubernetes: KubernetesReader) -> Mapping[str, Unknown]:
    """Returns the Secrets that other ZooKeeperClusters of the namespace name, each with why it can't be an authority of this one, too."""
    found: dict[str, Unknown] = {}
    for document in kubernetes.documents(ZooKeeperCluster, cluster.metadata.namespace):
        name, security = str(document["metadata"]["name"]), (document.get("spec") or {}).get("security") or {}
        given = [(security.get(field) or {}).get("secretName") for field in ("authority", "quorumAuthority")]
        found |= {
            secret: Unknown(
                f"the Secret {secret} is an authority of the ZooKeeperCluster {name}, too, so a certificate for one of them would count at "
                "the other one: make an authority for each"
            )
            for secret in given
            if secret is not None and name != cluster.metadata.name
        }
    return found


def _read(issuer: Issuer, present: Authority | None, namespace: str, kubernetes: KubernetesReader, now: datetime) -> KeyPair | Unknown:
    key = ObjectKey(namespace, str(issuer.given_secret))
    pair = _judged(issuer, kubernetes.recent_secret(key), now)
    if present is not None and isinstance(pair, KeyPair) and pair.certificate == present.signing.certificate:
        return pair
    # What the Secret had minutes ago must not begin to sign.
    return _judged(issuer, kubernetes.secret(key), now)


def _judged(issuer: Issuer, values: Mapping[str, str] | None, now: datetime) -> KeyPair | Unknown:
    if values is None:
        return NotThereYet(f"the Secret {issuer.given_secret} of {issuer.field} does not exist: create it, or leave the field out")
    try:
        return given_authority(values, now)
    except ValueError as error:
        return Unknown(f"the Secret {issuer.given_secret} of {issuer.field} {error}")


def _apart(
    issuer: Issuer, other: Issuer, found: Mapping[str, KeyPair | Unknown], present: Mapping[str, Authority], now: datetime
) -> KeyPair | Unknown:
    """Returns the pair, unless processes can't tell it from the authority that signs now, or its certificates from those of the other."""
    pair, own, others, given = found[issuer.secret], present.get(issuer.secret), present.get(other.secret), found.get(other.secret)
    if isinstance(pair, Unknown):
        return pair
    if own is not None and now < own.expires and is_namesake(pair, own.signing):
        return Unknown(
            f"the Secret {issuer.given_secret} of {issuer.field} has another key, or identifier of it, under the subject of the authority "
            "that signs now, and ZooKeeper can't trust both: give it another common name (cert-manager: a second Certificate, with "
            "another commonName and secretName)"
        )
    there = {
        other.secret: "" if others is None else f"{others.trusted}{others.distrusted or ''}",
        str(other.given_secret): given.certificate if isinstance(given, KeyPair) else "",
    }
    for secret, certificates in there.items():
        if certificates and are_related(pair.certificate, certificates):
            # whoever has a certificate of the quorum's authority is a member
            return Unknown(
                f"the Secret {issuer.given_secret} of {issuer.field} and the Secret {secret} have one key, or one has signed the other, so "
                "every client could be a member: make an authority with a key and an issuer of its own"
            )
    return pair
