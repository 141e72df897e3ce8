"""Reads the operator's certificates from their Secrets: its own, and which ones of a resource are due."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from herdkeeper.api.resource import Resource
from herdkeeper.certificates.authority import Authority, read_authority
from herdkeeper.certificates.holders import NOTHING_DUE, DueSecrets, Holder, due_secrets
from herdkeeper.certificates.issue import CERTIFICATE_LIFE, Validity, fresh_key
from herdkeeper.clients.kubernetes import SECRETS, KubernetesReader, values_of_secret
from herdkeeper.shared.names import AUTHORITIES_KEY, CERTIFICATE_KEY, PRIVATE_KEY_KEY, ObjectKey, ZooKeeperNames, secure_ensemble
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.unknown import Unknown
from herdkeeper.tls.identity import Identity


def read_identity(kubernetes: KubernetesReader, secret: ObjectKey) -> Identity:
    """Return the Secret's current content. Raises only OSError: any other error would end a session's thread, which never reconnects."""
    try:
        values = kubernetes.secret(secret) or {}
    except (ApiException, HTTPError) as error:
        raise OSError(f"the Secret {secret.name} in the namespace {secret.namespace} can't be read: {error}") from error
    missing = [key for key in (CERTIFICATE_KEY, PRIVATE_KEY_KEY, AUTHORITIES_KEY) if not values.get(key)]
    if missing:
        raise OSError(f"the Secret {secret.name} in the namespace {secret.namespace} lacks {' and '.join(missing)}")
    return Identity(values[CERTIFICATE_KEY], values[PRIVATE_KEY_KEY], values[AUTHORITIES_KEY])


def observe_identities(owner: Resource, holders: Sequence[Holder], zookeeper_address: str, kubernetes: KubernetesReader) -> DueSecrets:
    """Returns which Secrets of a resource on the ensemble at `host:port,host:port` are due; none if that requires no certificates."""
    ensemble = secure_ensemble(zookeeper_address, owner.metadata.namespace)
    if ensemble is None:
        return NOTHING_DUE
    authority = _authority(ensemble, kubernetes)
    if isinstance(authority, Unknown):
        return DueSecrets(obstacle=authority.why)
    held = held_by(holders, kubernetes.owned(owner.KIND, owner.key, SECRETS))
    return due_secrets(holders, held, authority, fresh_key, Validity(datetime.now(UTC), CERTIFICATE_LIFE))


def held_by(holders: Sequence[Holder], objects: Objects) -> dict[str, dict[str, str]]:
    """Returns the contents of the existing Secrets, by name."""
    found = {holder.secret: objects.get("Secret", holder.secret) for holder in holders}
    return {name: values_of_secret(document) for name, document in found.items() if document is not None}


def _authority(ensemble: ZooKeeperNames, kubernetes: KubernetesReader) -> Authority | Unknown:
    values = kubernetes.secret(ObjectKey(ensemble.key.namespace, ensemble.authority_secret))
    return readable_authority(ensemble.authority_secret, values)


def readable_authority(secret: str, values: dict[str, str] | None) -> Authority | Unknown:
    """Returns the authority in a Secret's values, or why it is missing or damaged."""
    if values is None:
        return Unknown(f"the Secret {secret} with the authority is missing: restore it from a backup")
    try:
        return read_authority(secret, values)
    except ValueError as error:
        return Unknown(f"the Secret {secret} with the authority can't be read: {error}; restore it from a backup")
