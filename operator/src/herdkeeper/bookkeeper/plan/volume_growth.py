"""Grows a bookie's claims to the sizes in the spec, if their StorageClass allows. Claims never shrink.

Kubernetes grows the file system while the pod runs. BookKeeper measures its disks again, and a bookie that was read-only with a full disk
becomes writable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from herdkeeper.api import BookKeeperCluster
from herdkeeper.api.resource import VolumeClaim
from herdkeeper.bookkeeper.state.bookies import BookKeeperObserved
from herdkeeper.bookkeeper.state.claims import ledgers_claims
from herdkeeper.planning.actions import Resize, Wait
from herdkeeper.shared.objects import Json, Objects
from herdkeeper.shared.quantity import bytes_of
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.shared.volumes import capacity_bytes, requested_bytes


def grow_claims(cluster: BookKeeperCluster, number: int, seen: BookKeeperObserved) -> tuple[Resize | Wait, ...]:
    """Returns what the claims of bookie `number` need, or why they can't grow."""
    named = cluster.names
    wanted = (
        ("spec.journal.size", named.journal_claim(number), cluster.spec.journal.size),
        *(("spec.ledgers.size", name, cluster.spec.ledgers.size) for name in ledgers_claims(cluster, number)),
    )
    found = ((path, seen.objects.get("PersistentVolumeClaim", name), size) for path, name, size in wanted)
    steps = (_grow(path, claim, size, seen) for path, claim, size in found if claim is not None)
    return tuple(step for step in steps if step is not None)


def with_claimed_sizes(cluster: BookKeeperCluster, numbers: Sequence[int], objects: Objects) -> BookKeeperCluster:
    """Returns the cluster with the sizes that its claims request, the smallest where they differ. Files must be sized by existing volumes,
    not by sizes that can't be had. Sizes without a claim are the spec's.
    """
    named = cluster.names
    journals = [named.journal_claim(number) for number in numbers]
    ledgers = [name for number in numbers for name in ledgers_claims(cluster, number)]
    spec = cluster.spec
    sized = {
        "journal": _with_size(spec.journal, _smallest(journals, objects)),
        "ledgers": _with_size(spec.ledgers, _smallest(ledgers, objects)),
    }
    return cluster.model_copy(update={"spec": spec.model_copy(update=sized)})


def _smallest(claims: Iterable[str], objects: Objects) -> int | None:
    found = (objects.get("PersistentVolumeClaim", name) for name in claims)
    sizes = (requested_bytes(claim) for claim in found if claim is not None)
    return min((size for size in sizes if size is not None), default=None)


def _with_size(volume: VolumeClaim, size: int | None) -> VolumeClaim:
    return volume if size is None else volume.model_copy(update={"size": f"{size // 1024}Ki"})


def _grow(path: str, claim: Json, size: str, seen: BookKeeperObserved) -> Resize | Wait | None:
    name, requested = claim["metadata"]["name"], requested_bytes(claim)
    bound = (claim.get("status") or {}).get("phase") == "Bound"
    if requested is None or not bound or claim["metadata"].get("deletionTimestamp"):
        return None  # only bound claims can request more
    stored = claim["spec"]["resources"]["requests"]["storage"]
    if bytes_of(size) < requested:
        return Wait(Reason.INVALID_SPEC, f"{path} is {size}: the claim {name} has {stored} and volumes can't shrink; set {stored}")
    if bytes_of(size) == requested:
        return _growing(claim, requested)
    storage_class = claim["spec"].get("storageClassName")
    unread = Unknown(f"its StorageClass {storage_class} was not read")
    expandable = seen.expandable.get(storage_class, unread) if storage_class else False
    if isinstance(expandable, Unknown):
        return Wait(Reason.UNREADABLE, f"whether the claim {name} can grow to {size} is not known: {expandable.why}")
    if not expandable:
        why = f"its StorageClass {storage_class} does not allow expansion" if storage_class else "it has no StorageClass"
        fix = f"set {path} back to {stored}, or allowVolumeExpansion on the class if its driver can"
        return Wait(Reason.INVALID_SPEC, f"{path} is {size}: the claim {name} has {stored} and can't grow, since {why}; {fix}")
    return Resize(name, claim["metadata"]["uid"], size)


def _growing(claim: Json, requested: int) -> Wait | None:
    """Returns a wait while the volume grows. None once it has the requested size, or while there is no volume."""
    capacity = capacity_bytes(claim)
    if capacity is None or capacity >= requested:
        return None
    conditions = (claim.get("status") or {}).get("conditions") or []
    told = "; ".join(f"{entry['type']}: {entry.get('message', '')}".rstrip(": ") for entry in conditions if entry.get("status") == "True")
    return Wait(Reason.RESIZING, f"the volume of {claim['metadata']['name']} is growing ({told or 'requested from its driver'})")
