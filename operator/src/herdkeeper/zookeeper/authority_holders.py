"""Decides which Secrets and pods have the present step of an authority that another one follows.

What counts are the Secrets themselves and the pods that mount them, of all resources in the namespace: everything of the operator's that
has something of the authority.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from herdkeeper.certificates.authority import Authority
from herdkeeper.certificates.holders import holds, is_behind
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json, is_ready
from herdkeeper.shared.time import moment_of
from herdkeeper.zookeeper.authority_state import AuthorityRoll


@dataclass(frozen=True)
class OperatorsObjects:
    """Secrets (their values, by name) and pods of the operator in a namespace. `missing`: absent Secrets, each with a pod that needs it."""

    secrets: Mapping[str, Mapping[str, str]]
    pods: tuple[Json, ...]
    missing: Mapping[str, str]


def with_progress(roll: AuthorityRoll, around: OperatorsObjects) -> AuthorityRoll:
    """Returns the roll with what is behind or, if nothing is, since when."""
    authority = roll.authority
    holders = {name for name, values in around.secrets.items() if holds(values, authority)}
    behind = next(_behind(authority, holders, around), None)
    if behind is not None or authority.everywhere_since is None:
        return replace(roll, behind=behind)
    return replace(roll, since=max((authority.everywhere_since, *_ready_since(authority.everywhere_since, holders, around))))


def _behind(authority: Authority, holders: set[str], around: OperatorsObjects) -> Iterator[str]:
    for secret, mounting in around.missing.items():
        yield f"the Secret {secret} is missing, which the pod {mounting} mounts"
    for name in sorted(holders):
        if is_behind(around.secrets[name], authority):
            yield f"the Secret {name} does not have it yet"
    for pod in around.pods:
        name = pod["metadata"]["name"]
        if _is_younger(pod, authority.everywhere_since):
            continue
        if holders & _read_as_variables(pod):
            yield f"the pod {name} reads its trusted certificates only at its start, and must end first"
        if holders & mounted_secrets(pod) and not is_ready(pod):
            yield f"the pod {name} is not Ready, so it may lack the Secret's present files"


def _ready_since(since: datetime, holders: set[str], around: OperatorsObjects) -> Iterator[datetime]:
    """When the pods that are older than this became Ready: one that was cut off has its files from then on only."""
    for pod in around.pods:
        if holders & mounted_secrets(pod) and not _is_younger(pod, since):
            for entry in pod.get("status", {}).get("conditions") or []:
                moment = moment_of(entry.get("lastTransitionTime")) if entry["type"] == "Ready" else None
                if moment is not None:
                    yield moment


def _is_younger(pod: Json, since: datetime | None) -> bool:
    """Whether a pod was made after all Secrets had the present state, so that it has begun with that."""
    made = moment_of(pod["metadata"].get("creationTimestamp"))
    return since is not None and made is not None and made > since


def mounted_secrets(pod: Json) -> set[str]:
    """The Secrets that a pod can't do without, as volumes."""
    sources = [volume["secret"] for volume in pod.get("spec", {}).get("volumes") or [] if "secret" in volume]
    return {source["secretName"] for source in sources if not source.get("optional")}


def _read_as_variables(pod: Json) -> set[str]:
    """The Secrets from which a pod has authorities in variables, which stay as they were when it started."""
    variables = [each for container in pod.get("spec", {}).get("containers") or [] for each in container.get("env") or []]
    references = [(each.get("valueFrom") or {}).get("secretKeyRef") or {} for each in variables]
    return {reference["name"] for reference in references if reference.get("key") == names.AUTHORITIES_KEY}
