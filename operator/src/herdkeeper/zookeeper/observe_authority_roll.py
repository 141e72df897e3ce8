"""Observes the authorities of a ZooKeeperCluster that others follow, or are to follow."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from herdkeeper.certificates.authority import Authority, successor_of
from herdkeeper.certificates.issue import AUTHORITY_LIFE, KeyPair, Validity, fresh_key
from herdkeeper.clients.identities import readable_authority
from herdkeeper.clients.kubernetes import SECRETS, KubernetesReader, values_of_secret
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.authority_holders import OperatorsObjects, mounted_secrets, under_way
from herdkeeper.zookeeper.authority_roll import begins
from herdkeeper.zookeeper.issuers import Issuer, issuers
from herdkeeper.zookeeper.state import AuthorityRoll, Ensemble

_OF_THE_OPERATOR = {names.MANAGED_BY_LABEL: names.MANAGER}
_PODS = (("v1", "Pod"),)


def observe_authority_rolls(ensemble: Ensemble, kubernetes: KubernetesReader, now: datetime) -> tuple[AuthorityRoll, ...]:
    """Returns the authorities. An unreadable one is left out: observe_security tells of it."""
    found: list[AuthorityRoll] = []
    around: OperatorsObjects | None = None
    for issuer in issuers(ensemble.cluster):
        secret = issuer.secret
        document = ensemble.objects.get("Secret", secret)
        authority = None if document is None else readable_authority(secret, values_of_secret(document))
        if document is None or authority is None or isinstance(authority, Unknown):
            continue
        version = str(document["metadata"].get("resourceVersion", ""))
        if not authority.is_rolling:
            successor = _successor(ensemble, issuer, authority, now)
            if successor is not None:
                found.append(AuthorityRoll(secret, version, authority, now, successor))
            continue
        around = around or _namespace(ensemble.cluster.metadata.namespace, kubernetes)
        roll = under_way(AuthorityRoll(secret, version, authority, now), around)
        found.append(replace(roll, successor=_instead(ensemble, issuer, authority)))
    return tuple(found)


def _successor(ensemble: Ensemble, issuer: Issuer, authority: Authority, now: datetime) -> KeyPair | None:
    """Returns who is to follow: what is given, unless it signs already; of the operator's own ones a new one, when it is time."""
    given = ensemble.given.get(issuer.secret)
    if given is not None:
        return None if isinstance(given, Unknown) or given.certificate == authority.signing.certificate else given
    if issuer.given_secret is not None or not begins(ensemble.cluster, authority, now):
        return None
    return successor_of(authority, issuer.name, fresh_key(), Validity(now, AUTHORITY_LIFE))


def _instead(ensemble: Ensemble, issuer: Issuer, authority: Authority) -> KeyPair | None:
    """Returns what is given by now, if another one is to follow and does not sign yet."""
    given = ensemble.given.get(issuer.secret)
    if authority.following is None or not isinstance(given, KeyPair) or given.certificate == authority.following.certificate:
        return None
    return given


def _namespace(namespace: str, kubernetes: KubernetesReader) -> OperatorsObjects:
    found = kubernetes.labelled(namespace, _OF_THE_OPERATOR, (*SECRETS, *_PODS))
    secrets = {document["metadata"]["name"]: values_of_secret(document) for document in found.of_kind("Secret")}
    pods = tuple(pod for pod in found.of_kind("Pod") if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"))
    mounted = {secret: pod["metadata"]["name"] for pod in pods for secret in mounted_secrets(pod)}
    missing = {
        secret: pod for secret, pod in mounted.items() if secret not in secrets and kubernetes.secret(ObjectKey(namespace, secret)) is None
    }
    return OperatorsObjects(secrets, pods, missing)
