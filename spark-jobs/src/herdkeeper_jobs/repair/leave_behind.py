"""Moves all of a ledger's copies away from a bookie with damaged ones, under the lock of its replication.

relocation.py explains why nothing less lasts. Each damaged entry must first have a good replica, since BookKeeper's client would copy all
or nothing. It copies whichever replica has a right digest. So nothing moves in a ledger with copies that contradict each other: the wrong
content might then be on more bookies than the right one. Nor does anything while the bookie lacks an entry that may not be written there,
since the client would copy it all the same. Afterwards every moved copy is read back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from herdkeeper.codecs.bookkeeper.protocol import ReadCode
from herdkeeper.protocol.audit_finding import Finding, RepairOutcome
from herdkeeper_jobs.bookkeeper.connection import BookieUnreachableError
from herdkeeper_jobs.copies.check import check_copies
from herdkeeper_jobs.copies.holding import CopyState
from herdkeeper_jobs.copies.plan import AuditBudget, HoldingCheck, plan_tasks
from herdkeeper_jobs.repair.attempt import Attempt, Done, batches, ended, metadata_of, replicas_of
from herdkeeper_jobs.repair.bookkeeper_client import NotMovedError
from herdkeeper_jobs.repair.lock import LockLostError
from herdkeeper_jobs.repair.refusal import why_not
from herdkeeper_jobs.repair.relocation import Relocation, moved, relocation
from herdkeeper_jobs.repair.rewrite import NoGoodReplicaError, good_source, is_whole


def leave_behind(attempt: Attempt, findings: Sequence[Finding], lacking: Sequence[Finding]) -> list[Done]:
    """Returns the outcomes of all findings about damaged entries of the ledger, in order. `lacking`: findings about its missing entries
    that were not repaired."""
    refused = [why_not(finding, attempt.metadata.metadata) for finding in findings]
    rest = [finding for finding, why in zip(findings, refused, strict=True) if why is None]
    outcomes = iter(_leave_behind(attempt, rest, lacking) if rest else ())
    return [
        next(outcomes) if why is None else ended(finding, RepairOutcome.REFUSED, why)
        for finding, why in zip(findings, refused, strict=True)
    ]


def _leave_behind(attempt: Attempt, findings: Sequence[Finding], lacking: Sequence[Finding]) -> list[Done]:
    try:
        counts = [_with_good_replicas(attempt, finding) for finding in findings]
        for unread in _unread(attempt, findings):
            _with_good_replicas(attempt, unread)
        planned = _planned(attempt, findings, lacking)
        if isinstance(planned, str):
            return [ended(finding, RepairOutcome.REFUSED, planned) for finding in findings]
        what = f"{planned.copies} entries of the ledger on {' and '.join(planned.bookie_ids)}"
        if attempt.lock is None:
            outcome, detail = RepairOutcome.WOULD_REPAIR, f"{what} would be copied elsewhere"
        else:
            outcome, detail = RepairOutcome.REPAIRED, f"{what} were copied to {_move(attempt, planned)}"
    except NoGoodReplicaError as error:
        return [ended(finding, RepairOutcome.REFUSED, str(error)) for finding in findings]
    except (LockLostError, NotMovedError) as error:
        return [ended(finding, RepairOutcome.FAILED, str(error)) for finding in findings]
    return [ended(finding, outcome, f"{count} damaged entries: {detail}", count) for finding, count in zip(findings, counts, strict=True)]


def _unread(attempt: Attempt, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yields what the bookies failed to read: they may have the only right copies, and will be left behind with them."""
    bookie_ids = {finding.bookie_id for finding in findings}
    for finding in attempt.unread:
        if finding.bookie_id in bookie_ids and why_not(finding, attempt.metadata.metadata) is None:
            yield finding


def _planned(attempt: Attempt, findings: Sequence[Finding], lacking: Sequence[Finding]) -> Relocation | str:
    """Returns what to move, or why it can't be moved."""
    if (other := attempt.contradiction) is not None:
        return f"entry {other.first_entry_id} on {other.bookie_id} contradicts other copies, and BookKeeper's client might copy a wrong one"
    bookie_ids = {finding.bookie_id for finding in findings if finding.bookie_id is not None}
    if (left := next((finding for finding in lacking if finding.bookie_id in bookie_ids), None)) is not None:
        which = f"entries {left.first_entry_id} to {left.last_entry_id}, which {left.bookie_id} lacks"
        return f"{which}, were not written, and BookKeeper's client might copy a wrong one"
    planned = relocation(attempt.metadata.metadata, bookie_ids, attempt.catalog.writable_bookies())
    if isinstance(planned, str):
        return planned
    if attempt.bookies.settings.move is None:
        return "damaged copies can't be repaired in place, and this program has no BookKeeper client to copy them elsewhere"
    # BookKeeper chooses among the targets, so each must be suitable.
    return next((why for why in (_why_not_to(attempt, planned, target) for target in planned.targets) if why is not None), planned)


def _why_not_to(attempt: Attempt, planned: Relocation, target: str) -> str | None:
    """Returns why a target is unsuitable. A bookie with some of the copies, unknown to the metadata, may have been left behind itself with
    a damaged record. One with other segments of the ledger lacks these copies."""
    ledger_id = planned.metadata.ledger_id
    try:
        connection = attempt.bookies.connection(target)
        if connection.read_last_entry(ledger_id).code is ReadCode.NO_LEDGER:
            return None
        for check in planned.for_target(target):
            for answer in connection.read_entries(ledger_id, check.striping.entries_at(check.position, check.entries)):
                if not answer.code.means_absent:
                    return (
                        f"the copies might go to {target}, which has old ones and answered {answer.code.name} to a read of entry"
                        f" {answer.entry_id}: it deletes what no metadata names within a day; repair it then"
                    )
    except BookieUnreachableError as error:
        attempt.bookies.drop(error)
        return f"the copies might go to a bookie that does not answer: {error}"
    return None


def _with_good_replicas(attempt: Attempt, finding: Finding) -> int:
    """Counts the finding's entries. Raises NoGoodReplicaError if no other bookie has an entry, or if one contradicts.

    The bookie's own copy is only compared by payload. A whole answer proves nothing: a read of the entry alone may give a newer record, a
    read after its neighbour the damaged one.
    """
    assert finding.bookie_id is not None
    metadata = attempt.metadata.metadata
    replicas = replicas_of(finding, metadata)
    count = 0
    for batch in batches(finding, metadata):
        for entry_id in batch:
            is_whole(attempt.bookies, replicas, finding.bookie_id, good_source(attempt.bookies, replicas, finding.bookie_id, entry_id))
        count += len(batch)
    return count


def _move(attempt: Attempt, planned: Relocation) -> str:
    """Moves the copies; returns their new bookies. Raises NotMovedError, LockLostError."""
    assert attempt.lock is not None
    assert attempt.bookies.settings.move is not None
    attempt.require_unchanged()
    attempt.bookies.settings.move(planned, attempt.bookies.addresses, attempt.lock.require_session)
    attempt.lock.require_held()
    after = metadata_of(attempt.catalog, planned.metadata.ledger_id)
    checks = moved(planned, None if after is None else after.metadata)
    if isinstance(checks, str):
        raise NotMovedError(f"BookKeeper's client reported that it moved the copies, but {checks}")
    _read_back(attempt, checks)
    return " and ".join(sorted({check.bookie_id for check in checks}))


def _read_back(attempt: Attempt, checks: Sequence[HoldingCheck]) -> None:
    """Raises NotMovedError, naming the first copy that is not whole."""
    settings = attempt.bookies.settings
    budget = AuditBudget(1, settings.bytes_per_second_per_bookie, settings.timeout_seconds)
    for task in plan_tasks(checks, attempt.bookies.addresses, budget):
        for holding in check_copies(task):
            if holding.state is not CopyState.VERIFIED:
                where = f"entries {holding.first}-{holding.last} on {holding.bookie_id}"
                raise NotMovedError(f"the copies were moved, but {where} are {holding.state.value} ({holding.detail})")
