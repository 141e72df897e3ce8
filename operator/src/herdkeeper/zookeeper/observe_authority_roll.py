"""Observes the authorities of a ZooKeeperCluster that others follow, or are to follow."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from herdkeeper.certificates.authority import Authority, successor_of
from herdkeeper.certificates.issue import AUTHORITY_LIFE, KeyPair, Validity, fresh_key
from herdkeeper.clients.kubernetes import SECRETS, KubernetesReader, values_of_secret
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.authority_holders import OperatorsObjects, mounted_secrets, under_way
from herdkeeper.zookeeper.authority_roll import begins
from herdkeeper.zookeeper.issuers import Issuer, issuers
from herdkeeper.zookeeper.state import AuthorityChange, AuthorityRoll, Begin, Ensemble, GiveUp, Instead

_OF_THE_OPERATOR = {names.MANAGED_BY_LABEL: names.MANAGER}
_PODS = (("v1", "Pod"),)


def observe_authority_rolls(
    ensemble: Ensemble, kept: Mapping[str, Authority | Unknown], kubernetes: KubernetesReader, now: datetime
) -> tuple[AuthorityRoll, ...]:
    """Returns the authorities. `kept` as in kept_authorities. An unreadable one is left out: observe_security tells of it."""
    found: list[AuthorityRoll] = []
    around: OperatorsObjects | None = None
    for issuer in issuers(ensemble.cluster):
        secret, authority = issuer.secret, kept.get(issuer.secret)
        document = ensemble.objects.get("Secret", secret)
        if document is None or authority is None or isinstance(authority, Unknown):
            continue
        version = str(document["metadata"].get("resourceVersion", ""))
        roll = AuthorityRoll(secret, version, authority, now, _change(ensemble, issuer, authority, now))
        if authority.is_rolling:
            around = around or _namespace(ensemble.cluster.metadata.namespace, kubernetes)
            found.append(under_way(roll, around))
        elif roll.change is not None:
            found.append(roll)
    return tuple(found)


def _change(ensemble: Ensemble, issuer: Issuer, authority: Authority, now: datetime) -> AuthorityChange | None:
    """Returns what is to become of an authority. Once another one signs, nothing is changed until the roll has ended."""
    given = ensemble.given.get(issuer.secret)
    if authority.former is not None:
        return None
    if isinstance(given, KeyPair):
        signs, follows = (pair is not None and given.certificate == pair.certificate for pair in (authority.signing, authority.following))
        if authority.following is None:
            return None if signs else Begin(given)
        return None if follows else GiveUp() if signs else Instead(given)
    if authority.following is not None or issuer.given_secret is not None or not begins(ensemble.cluster, authority, now):
        return None
    return Begin(successor_of(authority, issuer.name, fresh_key(), Validity(now, AUTHORITY_LIFE)))


def _namespace(namespace: str, kubernetes: KubernetesReader) -> OperatorsObjects:
    found = kubernetes.labelled(namespace, _OF_THE_OPERATOR, (*SECRETS, *_PODS))
    secrets = {document["metadata"]["name"]: values_of_secret(document) for document in found.of_kind("Secret")}
    pods = tuple(pod for pod in found.of_kind("Pod") if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"))
    mounted = {secret: pod["metadata"]["name"] for pod in pods for secret in mounted_secrets(pod)}
    missing = {
        secret: pod for secret, pod in mounted.items() if secret not in secrets and kubernetes.secret(ObjectKey(namespace, secret)) is None
    }
    return OperatorsObjects(secrets, pods, missing)
