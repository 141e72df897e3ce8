"""Observes the authorities that a ZooKeeperCluster takes from Secrets of its user, such as those that cert-manager issues."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.certificates.given_authority import given_authority, has_same_key, is_namesake
from herdkeeper.certificates.issue import KeyPair
from herdkeeper.clients.identities import readable_authority
from herdkeeper.clients.kubernetes import KubernetesReader, values_of_secret
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.issuers import Issuer, issuers


def observe_given_authorities(
    cluster: ZooKeeperCluster, objects: Objects, kubernetes: KubernetesReader, now: datetime
) -> Mapping[str, KeyPair | Unknown]:
    """Returns each pair or, if it can't be an authority, why; by the operator's Secret that keeps it."""
    asked = [issuer for issuer in issuers(cluster) if issuer.given is not None]
    found = {issuer.secret: _judged(issuer, cluster.metadata.namespace, kubernetes, now) for issuer in asked}
    pairs = [pair for pair in found.values() if isinstance(pair, KeyPair)]
    if len(pairs) > 1 and has_same_key(*pairs):
        # whoever has a certificate of the quorum's authority is a member
        why = f"the Secrets {' and '.join(str(issuer.given) for issuer in asked)} have one key, so every client would be a member: make two"
        return dict.fromkeys(found, Unknown(why))
    return {issuer.secret: _distinguishable(issuer, found[issuer.secret], objects) for issuer in asked}


def _judged(issuer: Issuer, namespace: str, kubernetes: KubernetesReader, now: datetime) -> KeyPair | Unknown:
    values = kubernetes.recent_secret(ObjectKey(namespace, str(issuer.given)))
    if values is None:
        return Unknown(f"the Secret {issuer.given} of {issuer.field} does not exist: create it, or leave the field out")
    try:
        return given_authority(values, now)
    except ValueError as error:
        return Unknown(f"the Secret {issuer.given} of {issuer.field} {error}")


def _distinguishable(issuer: Issuer, pair: KeyPair | Unknown, objects: Objects) -> KeyPair | Unknown:
    """Returns the pair, unless processes can't tell it from the authority that signs now."""
    document = objects.get("Secret", issuer.secret)
    authority = None if document is None else readable_authority(issuer.secret, values_of_secret(document))
    if isinstance(pair, Unknown) or authority is None or isinstance(authority, Unknown) or not is_namesake(pair, authority.signing):
        return pair
    return Unknown(
        f"the Secret {issuer.given} of {issuer.field} has another key, or identifier of it, under the subject of the authority that signs now, and ZooKeeper "
        "can't trust both: give it another common name (cert-manager: a second Certificate, with another commonName and secretName)"
    )
