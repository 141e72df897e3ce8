"""A bookie that lost a disk: its identity is retired once no ledger needs it; then its number is gone, and a new bookie is due.

No volume is deleted here, and nothing is put in a lost one's place while a ledger names it: somebody may still bring its volume back. The
proof is BookKeeper's metadata of all ledgers, open ones as well: autorecovery takes a bookie's name out of a segment only after its entries
are on another one. The cookie goes last: while it is there, the number lives, and what was cut off goes on.
"""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import BookKeeperCluster
from herdkeeper.domain.lost_bookie import LostBookie
from herdkeeper.domain.names import BookKeeperNames, ObjectKey
from herdkeeper.domain.observed.bookkeeper import BookKeeperObserved, LedgerScan, LedgersMetadata, MetadataStore
from herdkeeper.domain.reason import Reason
from herdkeeper.domain.unknown import Unknown
from herdkeeper.plan.action import Action, Delete, RemoveCookie, Wait

MARKS_TO_WAIT_FOR = 1000
"""With so many ledgers left to copy, reading the metadata of all of them would find what is known already."""


@dataclass(frozen=True)
class NeedsLedgers:
    """The step can't be decided without the metadata of all ledgers, which was not read yet."""


Step = Action | Wait | NeedsLedgers


def retire(lost: LostBookie, cluster: BookKeeperCluster, seen: BookKeeperObserved, metadata: LedgersMetadata) -> Step:
    """The one thing to do now for a lost bookie, or what it waits for."""
    if waits := _why_not_yet(lost, cluster, metadata):
        return waits
    scan = seen.scan
    if scan is None:
        return NeedsLedgers()
    if isinstance(scan, Unknown):
        return Wait(Reason.UNREADABLE, f"whether a ledger still needs bookie {lost.number} is not known: {scan.why}")
    if needed := _needed(lost, scan, metadata):
        return needed
    if lost.kept:
        return Wait(
            Reason.CLAIM_LOST,
            f"bookie {lost.number} lost a disk ({lost.why}) and no ledger needs it any more: `kubectl delete pvc {' '.join(lost.kept)} "
            f"-n {cluster.metadata.namespace}` gives up what is left of it, and a new bookie takes its place",
        )
    return _take_away(lost, cluster, seen, metadata)


def _why_not_yet(lost: LostBookie, cluster: BookKeeperCluster, metadata: LedgersMetadata) -> Wait | None:
    """What can be told without looking at ledgers."""
    what = f"bookie {lost.number} lost a disk ({lost.why})"
    registered = [bookie_id for bookie_id in lost.ids if bookie_id in metadata.writable | metadata.read_only]
    if registered:
        return Wait(Reason.RECOVERING, f"{what}, and {', '.join(registered)} is still registered: its session has to end first")
    if not cluster.spec.auto_recovery.enabled or not metadata.replication_enabled:
        how = "set spec.autoRecovery.enabled" if metadata.replication_enabled else "switch it on with BookKeeper's `shell autorecovery -e`"
        return Wait(Reason.CLAIM_LOST, f"{what} and autorecovery is off, so nothing copies what it held: {how}, or bring the volume back")
    if metadata.auditor is None:
        return Wait(Reason.RECOVERING, f"{what}; no auditor is elected yet that would have its entries copied")
    if metadata.marks.ledgers >= MARKS_TO_WAIT_FOR:
        return Wait(Reason.RECOVERING, f"{what}; {metadata.marks.ledgers} or more ledgers are being copied to other bookies")
    return None


def _needed(lost: LostBookie, scan: LedgerScan, metadata: LedgersMetadata) -> Wait | None:
    """Why the identity can't go: ledgers name it."""
    named = [scan.naming[bookie_id] for bookie_id in lost.ids if bookie_id in scan.naming]
    closed, still_open = sum(found.closed for found in named), sum(found.not_closed for found in named)
    if not named:
        return None
    largest = max(found.largest_ensemble for found in named)
    copied = f"{metadata.marks.ledgers} are marked for copying"
    if len(metadata.writable) < largest:
        copied = (
            f"they can't be copied, since an ensemble of {largest} needs as many writable bookies and {len(metadata.writable)} are left: "
            "raise spec.bookies, or bring one back"
        )
    return Wait(
        Reason.RECOVERING,
        f"bookie {lost.number} lost a disk ({lost.why}): {closed} closed and {still_open} open ledgers still name {', '.join(lost.ids)}; "
        f"{copied}; auditor {metadata.auditor}, delay {_delay(metadata)}",
    )


def _delay(metadata: LedgersMetadata) -> str:
    """The delay that the auditor obeys, in words."""
    delay = metadata.recovery_delay
    return "unknown" if delay is None or delay.seconds is None else f"{delay.seconds} s"


def _take_away(lost: LostBookie, cluster: BookKeeperCluster, seen: BookKeeperObserved, metadata: LedgersMetadata) -> Step:
    """Pod, then cookies; what comes after them is a new bookie's beginning."""
    key = ObjectKey(cluster.metadata.namespace, cluster.metadata.name)
    named = BookKeeperNames(key)
    stateful_set = seen.objects.get("StatefulSet", named.stateful_set(lost.number))
    if stateful_set is not None and not stateful_set["metadata"].get("deletionTimestamp"):
        meta = stateful_set["metadata"]
        return Delete("apps/v1", "StatefulSet", meta["name"], meta["uid"], Reason.BOOKIE_RETIRED)
    if stateful_set is not None or seen.objects.get("Pod", named.pod(lost.number)) is not None or lost.going:
        return Wait(Reason.RECOVERING, f"bookie {lost.number} is retired once its pod and its claims are gone")
    cookies = [bookie_id for bookie_id in lost.ids if bookie_id in metadata.cookies]
    if cookies and isinstance(seen.store, MetadataStore):
        return RemoveCookie(seen.store.address, named.ledgers_root, cookies[0])
    return Wait(Reason.RECOVERING, f"bookie {lost.number} is retired")
