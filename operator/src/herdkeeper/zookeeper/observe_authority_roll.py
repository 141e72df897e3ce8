"""Observes whether an authority of a ZooKeeperCluster is due to be followed by another one, and who has taken up the present step.

What counts are the Secrets themselves and the pods that mount them, of all resources in the namespace: everything of the operator's that
has something of the authority.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from herdkeeper.certificates.authority import Authority, renewal_time, successor_of
from herdkeeper.certificates.holders import holds, is_behind
from herdkeeper.certificates.issue import AUTHORITY_LIFE, Validity, fresh_key
from herdkeeper.clients.identities import readable_authority
from herdkeeper.clients.kubernetes import SECRETS, KubernetesReader, values_of_secret
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.objects import Json, is_ready
from herdkeeper.shared.time import moment_of
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.state import AuthorityRoll, Ensemble

_OF_THE_OPERATOR = {names.MANAGED_BY_LABEL: names.MANAGER}
_PODS = (("v1", "Pod"),)


@dataclass(frozen=True)
class _Namespace:
    """Secrets (their values, by name) and pods of the operator's there; `missing` are Secrets that pods mount and that are not there."""

    secrets: Mapping[str, Mapping[str, str]]
    pods: tuple[Json, ...]
    missing: Mapping[str, str]


def observe_authority_rolls(ensemble: Ensemble, kubernetes: KubernetesReader, now: datetime) -> tuple[AuthorityRoll, ...]:
    """Returns the authorities that others follow, or are to follow. An unreadable one is left out: observe_security tells of it."""
    named, metadata = ensemble.named, ensemble.cluster.metadata
    asked = names.ROLL_AUTHORITIES_ANNOTATION in metadata.annotations
    found: list[AuthorityRoll] = []
    around: _Namespace | None = None
    for secret in (named.authority_secret, named.quorum_authority_secret):
        document = ensemble.objects.get("Secret", secret)
        authority = None if document is None else readable_authority(secret, values_of_secret(document))
        if document is None or authority is None or isinstance(authority, Unknown):
            continue
        version = str(document["metadata"].get("resourceVersion", ""))
        if not authority.is_rolling:
            if asked or now >= renewal_time(authority.signing.certificate):
                successor = successor_of(authority, fresh_key(), Validity(now, AUTHORITY_LIFE))
                found.append(AuthorityRoll(secret, version, authority, now, successor))
            continue
        around = around or _namespace(metadata.namespace, kubernetes)
        found.append(_under_way(AuthorityRoll(secret, version, authority, now), around))
    return tuple(found)


def _namespace(namespace: str, kubernetes: KubernetesReader) -> _Namespace:
    found = kubernetes.labelled(namespace, _OF_THE_OPERATOR, (*SECRETS, *_PODS))
    secrets = {document["metadata"]["name"]: values_of_secret(document) for document in found.of_kind("Secret")}
    pods = tuple(pod for pod in found.of_kind("Pod") if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"))
    mounted = {secret: pod["metadata"]["name"] for pod in pods for secret in _mounted(pod)}
    missing = {
        secret: pod for secret, pod in mounted.items() if secret not in secrets and kubernetes.secret(ObjectKey(namespace, secret)) is None
    }
    return _Namespace(secrets, pods, missing)


def _under_way(roll: AuthorityRoll, around: _Namespace) -> AuthorityRoll:
    """Returns the roll with who is behind or, if nobody is, since when."""
    authority = roll.authority
    holders = {name for name, values in around.secrets.items() if holds(values, authority)}
    behind = next(_behind(authority, holders, around), None)
    if behind is not None or authority.everywhere_since is None:
        return replace(roll, behind=behind)
    return replace(roll, since=max((authority.everywhere_since, *_ready_since(authority.everywhere_since, holders, around))))


def _behind(authority: Authority, holders: set[str], around: _Namespace) -> Iterator[str]:
    for secret, mounting in around.missing.items():
        yield f"the Secret {secret} is missing, which the pod {mounting} mounts"
    for name in sorted(holders):
        if is_behind(around.secrets[name], authority):
            yield f"the Secret {name} does not have it yet"
    for pod in around.pods:
        name = pod["metadata"]["name"]
        if _is_younger(pod, authority.everywhere_since):
            continue
        if holders & _read_at_start(pod):
            yield f"the pod {name} reads whom to trust only when it starts, and has to end first"
        if holders & _mounted(pod) and not is_ready(pod):
            yield f"the pod {name} is not Ready, so it may lack the Secret's present files"


def _ready_since(since: datetime, holders: set[str], around: _Namespace) -> Iterator[datetime]:
    """When the pods that are older than this became Ready: one that was cut off has its files from then on only."""
    for pod in around.pods:
        if holders & _mounted(pod) and not _is_younger(pod, since):
            for entry in pod.get("status", {}).get("conditions") or []:
                moment = moment_of(entry.get("lastTransitionTime")) if entry["type"] == "Ready" else None
                if moment is not None:
                    yield moment


def _is_younger(pod: Json, since: datetime | None) -> bool:
    """Whether a pod was made after all Secrets had the present state, so that it has begun with that."""
    made = moment_of(pod["metadata"].get("creationTimestamp"))
    return since is not None and made is not None and made > since


def _mounted(pod: Json) -> set[str]:
    """The Secrets that a pod can't do without, as volumes."""
    sources = [volume["secret"] for volume in pod.get("spec", {}).get("volumes") or [] if "secret" in volume]
    return {source["secretName"] for source in sources if not source.get("optional")}


def _read_at_start(pod: Json) -> set[str]:
    """The Secrets from which a pod has authorities in variables, which stay as they were when it started."""
    variables = [each for container in pod.get("spec", {}).get("containers") or [] for each in container.get("env") or []]
    references = [(each.get("valueFrom") or {}).get("secretKeyRef") or {} for each in variables]
    return {reference["name"] for reference in references if reference.get("key") == names.AUTHORITIES_KEY}
