"""Grows a bookie's claims to the sizes in the spec, if their StorageClass allows. Volumes never shrink, but a request is taken back while
its volume has not grown: Kubernetes allows that down to more than the volume has (by default since 1.32).

Kubernetes grows the file system while the pod runs. BookKeeper measures its disks again, and a bookie that was read-only with a full disk
becomes writable.
"""

from __future__ import annotations

from herdkeeper.bookkeeper.state.claims import claim_names, ledgers_claims
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.planning.actions import Resize, Wait
from herdkeeper.shared import names
from herdkeeper.shared.quantity import bytes_of
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.shared.volumes import Claim


def grow_claims(fleet: BookieFleet, number: int) -> tuple[Resize | Wait, ...]:
    """Returns what the claims of bookie `number` need, or why they can't grow."""
    cluster, named = fleet.cluster, fleet.named
    wanted = (
        ("spec.journal.size", named.journal_claim(number), cluster.spec.journal.size),
        *(("spec.ledgers.size", name, cluster.spec.ledgers.size) for name in ledgers_claims(cluster, number)),
    )
    claims = fleet.objects.claims
    steps = (_grow(path, claims[name], size, fleet) for path, name, size in wanted if name in claims)
    return tuple(step for step in steps if step is not None)


def _grow(path: str, claim: Claim, size: str, fleet: BookieFleet) -> Resize | Wait | None:
    name, stored, requested = claim.name, claim.size, claim.requested_bytes
    if requested is None or claim.going:
        return None
    if not claim.bound:
        return _unbound(path, claim, size, fleet) if bytes_of(size) < requested else None  # it can request more once it is bound
    if bytes_of(size) <= requested:
        return _growing(claim, requested) if bytes_of(size) == requested else _take_back(path, claim, size, requested)
    storage_class = claim.storage_class
    unread = Unknown(f"its StorageClass {storage_class} was not read")
    expandable = fleet.expandable.get(storage_class, unread) if storage_class else False
    if isinstance(expandable, Unknown):
        return Wait(Reason.UNREADABLE, f"whether the claim {name} can grow to {size} is not known: {expandable.why}")
    if not expandable:
        why = f"its StorageClass {storage_class} does not allow expansion" if storage_class else "it has no StorageClass"
        fix = f"set {path} back to {stored}, or allowVolumeExpansion on the class if its driver can"
        return Wait(Reason.INVALID_SPEC, f"{path} is {size}: the claim {name} has {stored} and can't grow, since {why}; {fix}")
    return Resize(name, claim.uid, size)


def _unbound(path: str, claim: Claim, size: str, fleet: BookieFleet) -> Wait | None:
    """Say how a claim without a volume gets a smaller one: a person may delete it while its bookie has never served."""
    number = fleet.named.number_of_claim(claim.name)
    bookie_id = claim.annotations.get(names.BOOKIE_ID_ANNOTATION)
    if number is None or bookie_id is None or bookie_id in fleet.served_ids:
        return None  # without its annotation nobody knows whether the other claim has data
    command = f"kubectl delete pvc {' '.join(claim_names(fleet.cluster, number))} -n {fleet.cluster.metadata.namespace}"
    return Wait(
        Reason.INVALID_SPEC,
        f"{path} is {size}: the claim {claim.name} requests {claim.size} and has no volume yet, and Kubernetes changes no request before. "
        f"Bookie {number} has never served: delete its claims with `{command}`, and a new bookie takes its place",
    )


def _take_back(path: str, claim: Claim, size: str, requested: int) -> Resize | Wait:
    """Request less than before, or say why that can't be."""
    name, stored, capacity = claim.name, claim.size, claim.capacity_bytes
    if capacity is not None and capacity < bytes_of(size):
        return Resize(name, claim.uid, size)
    refused = f"{path} is {size}: the claim {name} has {stored} and volumes can't shrink"
    gib = bytes_of("1Gi")
    if capacity is None or (least := capacity // gib + 1) * gib >= requested:
        return Wait(Reason.INVALID_SPEC, f"{refused}; set {stored}")
    why = "its volume has not grown, but Kubernetes takes a request back only to more than the volume has"
    return Wait(Reason.INVALID_SPEC, f"{refused}; {why}: set {least}Gi or more")


def _growing(claim: Claim, requested: int) -> Wait | None:
    """Returns a wait while the volume grows. None once it has the requested size, or while there is no volume."""
    capacity = claim.capacity_bytes
    if capacity is None or capacity >= requested:
        return None
    return Wait(Reason.RESIZING, f"the volume of {claim.name} is growing ({claim.resizing or 'requested from its driver'})")
