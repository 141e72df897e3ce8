"""Observes the authorities of a ZooKeeperCluster that others follow, or are to follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from herdkeeper.certificates.authority import Authority, expires_too_soon, expiry_of, name_of, successor_of
from herdkeeper.certificates.holders import is_of_another
from herdkeeper.certificates.issue import AUTHORITY_LIFE, KeyPair, Validity, fresh_key
from herdkeeper.clients.identities import held_by
from herdkeeper.clients.kubernetes import SECRETS, KubernetesReader, values_of_secret
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.time import text_of
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.authority_holders import OperatorsObjects, mounted_secrets, with_progress
from herdkeeper.zookeeper.authority_roll import is_successor_due
from herdkeeper.zookeeper.authority_state import AuthorityChange, AuthorityRoll, Begin, Expired, GiveUp, Outdated, Replace
from herdkeeper.zookeeper.issuers import Issuer, issuers
from herdkeeper.zookeeper.state import Ensemble

_OF_THE_OPERATOR = {names.MANAGED_BY_LABEL: names.MANAGER}
_PODS = (("v1", "Pod"),)


def observe_authority_rolls(
    ensemble: Ensemble, kept: Mapping[str, Authority | Unknown], kubernetes: KubernetesReader, now: datetime
) -> tuple[AuthorityRoll, ...]:
    """Returns the authorities. `kept` as in kept_authorities. An unreadable one is left out: observe_security reports it."""
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
            found.append(_behind_if_successor_ends_soon(with_progress(roll, around), issuer))
        elif roll.change is not None:
            found.append(roll)
    return tuple(found)


def _change(ensemble: Ensemble, issuer: Issuer, authority: Authority, now: datetime) -> AuthorityChange | None:
    """Returns what happens to an authority besides the steps of a roll, or None."""
    signing, following, wanted = authority.signing, authority.following, _wanted(ensemble, issuer, authority, now)
    if now >= authority.expires:
        successor = wanted or (None if following is None or expires_too_soon(following, now) else following)
        members, known = issuer.holders[0].secret, replace(authority, following=successor or following)
        held = held_by(issuer.holders, ensemble.objects).get(members, {})
        return Outdated(members) if is_of_another(held, known, now) else Expired(successor)
    if wanted is None or authority.former is not None:  # where another one signs already, it waits until that roll has ended
        return None
    if following is None:
        return None if wanted.certificate == signing.certificate else Begin(wanted)
    if wanted.certificate == following.certificate:
        return None
    return GiveUp() if wanted.certificate == signing.certificate else Replace(wanted)


def _wanted(ensemble: Ensemble, issuer: Issuer, authority: Authority, now: datetime) -> KeyPair | None:
    """Returns the authority in the user's Secret or, where the operator makes them, a new one when it is due."""
    if issuer.given_secret is not None:
        given = ensemble.given.get(issuer.secret)
        return given if isinstance(given, KeyPair) else None
    due = is_successor_due(ensemble.cluster, authority, now) if authority.following is None else expires_too_soon(authority.following, now)
    return successor_of(authority, issuer.name, fresh_key(), Validity(now, AUTHORITY_LIFE)) if due else None


def _behind_if_successor_ends_soon(roll: AuthorityRoll, issuer: Issuer) -> AuthorityRoll:
    """Returns the roll, which is behind if its successor expires too soon."""
    following = roll.authority.following
    if following is None or roll.change is not None or not expires_too_soon(following, roll.now):
        return roll
    end = text_of(expiry_of(following.certificate))
    return replace(roll, behind=f"{name_of(following.certificate)} expires at {end}: put another one into the Secret {issuer.given_secret}")


def _namespace(namespace: str, kubernetes: KubernetesReader) -> OperatorsObjects:
    found = kubernetes.labelled(namespace, _OF_THE_OPERATOR, (*SECRETS, *_PODS))
    secrets = {document["metadata"]["name"]: values_of_secret(document) for document in found.of_kind("Secret")}
    pods = tuple(pod for pod in found.of_kind("Pod") if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"))
    mounted = {secret: pod["metadata"]["name"] for pod in pods for secret in mounted_secrets(pod)}
    missing = {
        secret: pod for secret, pod in mounted.items() if secret not in secrets and kubernetes.secret(ObjectKey(namespace, secret)) is None
    }
    return OperatorsObjects(secrets, pods, missing)
