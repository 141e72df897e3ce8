"""Replaces a bookie that lost a disk: a new one starts at once, and the lost identity is retired last (docs/decisions/0203).

The proof is BookKeeper's metadata of all ledgers, including open ones: autorecovery replaces a bookie in a segment only after copying its
entries. Writers close open ledgers that name a lost bookie: they know the last entry, which may be unrecoverable otherwise.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from herdkeeper.bookkeeper.drain.plan import close_orders
from herdkeeper.bookkeeper.state.bookies import LedgerScan, LedgersMetadata, why_unread
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.bookkeeper.state.lost_bookie import LostBookie
from herdkeeper.planning.actions import Action, CloseLedger, RemoveCookie, StartBookieAudit, Wait, deletions
from herdkeeper.shared.counted import counted
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

MARKS_TO_WAIT_FOR = 1000
"""If so many ledgers are left to copy, a scan of all metadata would show nothing new."""
MOST_SHOWN = 10
AUDIT_SECONDS = 60.0
"""Seconds that the auditor gets before it is started again."""


@dataclass(frozen=True)
class NeedsLedgers:
    """The step needs the metadata of all ledgers, which was not read yet."""


Step = Action | Wait | NeedsLedgers


def retire_lost(fleet: BookieFleet) -> tuple[Step, ...]:
    """Returns the steps for all lost bookies. Their waits are reported together; one that needs a person determines the reason."""
    steps = [retire(fleet, each) for each in fleet.numbers.lost]
    waits = sorted((step for step in steps if isinstance(step, Wait)), key=lambda wait: not wait.reason.needs_person)
    if waits and isinstance(fleet.scan, LedgerScan) and fleet.scan.uncopied:
        waits = [_no_copy_left(fleet.scan.uncopied), *waits]
    told = (Wait(waits[0].reason, ". ".join(wait.message for wait in waits)),) if waits else ()
    return (*(step for step in steps if not isinstance(step, Wait)), *told, *_speed_up_replication(fleet))


def _speed_up_replication(fleet: BookieFleet) -> tuple[CloseLedger | StartBookieAudit, ...]:
    """Writers close open ledgers, then the auditor starts. Neither helps without writable bookies, or while a lost one serves."""
    scan, lost = fleet.scan, fleet.numbers.lost
    if not isinstance(scan, LedgerScan) or len(fleet.known_metadata.writable) < scan.open_ensemble:
        return ()
    ids = [bookie_id for each in lost for bookie_id in each.ids]
    still_open = {bookie_id: [share for share in scan.shares.get(bookie_id, ()) if not share.closed] for bookie_id in ids}
    serving = {bookie_id for each in lost for bookie_id in each.registered}
    to_close = {share.ledger_id: share for bookie_id in ids if bookie_id not in serving for share in still_open[bookie_id]}
    if orders := close_orders((to_close[ledger] for ledger in sorted(to_close)), fleet, Reason.RECOVERING):
        return orders
    return () if any(still_open.values()) else _audit_now(fleet)


def _audit_now(fleet: BookieFleet) -> tuple[StartBookieAudit, ...]:
    """The delay is for bookies that come back. If every missing bookie that ledgers name is lost for good, nothing is gained by waiting."""
    scan, metadata, delay, auto = fleet.scan, fleet.known_metadata, fleet.known_metadata.recovery_delay, fleet.cluster.spec.auto_recovery
    seconds = auto.lost_bookie_recovery_delay_seconds
    if not isinstance(scan, LedgerScan) or delay is None or delay.seconds != seconds:
        return ()
    never_back = {bookie_id for each in fleet.numbers.lost if each.for_good for bookie_id in each.ids}
    away = set(scan.naming) - metadata.registered
    no_auditor = not auto.enabled or not metadata.replication_enabled or metadata.auditor is None
    asked = datetime.datetime.fromisoformat(fleet.now).timestamp() - delay.changed_at < AUDIT_SECONDS
    if not away or not away <= never_back or no_auditor or metadata.under_replicated or asked:
        return ()
    return (StartBookieAudit(fleet.zookeeper_address, fleet.named.ledgers_root, seconds, delay.version, tuple(sorted(away))),)


def retire(fleet: BookieFleet, lost: LostBookie) -> Step:
    """Returns the one step for a lost bookie, or why it waits."""
    if waits := _why_not_retire(fleet, lost):
        return waits
    scan = fleet.scan
    if scan is None:
        return NeedsLedgers()
    if isinstance(scan, Unknown):
        return Wait(why_unread(scan), f"whether a ledger still needs bookie {lost.number} is not known: {scan.why}")
    if needed := _why_needed(fleet, lost, scan):
        return needed
    if lost.kept:
        return Wait(
            Reason.CLAIM_LOST,
            f"bookie {lost.number} lost a disk ({lost.why}) and no ledger needs it: delete its remaining claims with `kubectl delete "
            f"pvc {' '.join(lost.kept)} -n {fleet.cluster.metadata.namespace}`",
        )
    return _remove(fleet, lost)


def _why_not_retire(fleet: BookieFleet, lost: LostBookie) -> Wait | None:
    """Returns why it must not be retired, as far as known without the ledgers."""
    metadata = fleet.known_metadata
    what = f"bookie {lost.number} lost a disk ({lost.why})"
    if lost.registered:
        return Wait(
            Reason.RECOVERING, (f"{what}, and {', '.join(lost.registered)} is still registered: waiting for the end of its session")
        )
    if not fleet.cluster.spec.auto_recovery.enabled or not metadata.replication_enabled:
        how = "set spec.autoRecovery.enabled" if metadata.replication_enabled else "enable it with BookKeeper's `shell autorecovery -e`"
        return Wait(Reason.CLAIM_LOST, f"{what} and autorecovery is off, so its entries are not copied: {how}, or restore the volume")
    if metadata.auditor is None:
        return Wait(Reason.RECOVERING, f"{what}; no auditor is elected yet, so its entries are not copied")
    if metadata.marks.ledgers >= MARKS_TO_WAIT_FOR:
        return Wait(Reason.RECOVERING, f"{what}; {metadata.marks.ledgers} or more ledgers are being copied to other bookies")
    return None


def _why_needed(fleet: BookieFleet, lost: LostBookie, scan: LedgerScan) -> Wait | None:
    """Returns why the identity must stay: ledgers name it."""
    metadata = fleet.known_metadata
    named = [scan.naming[bookie_id] for bookie_id in lost.ids if bookie_id in scan.naming]
    closed, still_open = sum(found.closed for found in named), sum(found.not_closed for found in named)
    if not named:
        return None
    largest = max(found.largest_ensemble for found in named)
    copied = f"{counted(metadata.marks.ledgers, 'is', 'are')} marked for copying"
    if len(metadata.writable) < largest:
        enough = fleet.cluster.spec.bookies >= largest
        fix = "others must start, or become writable" if enough else f"raise spec.bookies to {largest} or more"
        copied = (
            f"they can't be copied{' yet' if enough else ''}, since an ensemble needs {counted(largest, 'writable bookie')}, "
            f"and {counted(len(metadata.writable), 'is', 'are')} writable: {fix}"
        )
    return Wait(
        Reason.RECOVERING,
        f"bookie {lost.number} lost a disk ({lost.why}): {closed} closed and {counted(still_open, 'open ledger')} still name "
        f"{', '.join(lost.ids)}; {copied}; auditor {metadata.auditor}, delay {_delay(metadata)}",
    )


def _no_copy_left(ledgers: tuple[int, ...]) -> Wait:
    """Returns what a person must know if all copies of an entry are lost: nothing copies them."""
    shown = ", ".join(map(str, ledgers[:MOST_SHOWN])) + (" …" if len(ledgers) > MOST_SHOWN else "")
    return Wait(
        Reason.CLAIM_LOST,
        f"{counted(len(ledgers), 'ledger has', 'ledgers have')} entries only on lost bookies ({shown}), which no bookie can copy: bring a "
        "lost volume back, or wait until the log's retention has dropped these ledgers (docs/how-to/lost-disk.md)",
    )


def _delay(metadata: LedgersMetadata) -> str:
    """The delay in force at the auditor, as text."""
    delay = metadata.recovery_delay
    return "unknown" if delay is None or delay.seconds is None else f"{delay.seconds} s"


def _remove(fleet: BookieFleet, lost: LostBookie) -> Step:
    """Remove the pod, then the cookies."""
    named = fleet.named
    stateful_set = fleet.objects.get("StatefulSet", named.stateful_set(lost.number))
    if going := deletions((stateful_set,), Reason.BOOKIE_RETIRED):
        return going[0]
    if stateful_set is not None or fleet.objects.get("Pod", named.pod(lost.number)) is not None or lost.going:
        kept = f". If {', '.join(lost.going)} stay, their finalizers name what keeps them" if lost.going else ""
        return Wait(Reason.RECOVERING, f"bookie {lost.number} is retired once its pod and its claims are gone{kept}")
    if cookies := [bookie_id for bookie_id in lost.ids if bookie_id in fleet.known_metadata.cookies]:
        return RemoveCookie(fleet.zookeeper_address, named.ledgers_root, cookies[0])
    return Wait(Reason.RECOVERING, f"bookie {lost.number} is retired")
