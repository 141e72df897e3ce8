"""Places one row change after the other: the plain version of `wal.batch_place`, and its tests' oracle."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from herdkeeper_jobs.wal.log_state import StartingPoint
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.timeline import Timeline, is_in_no_transaction, names_no_table


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a row change belongs: the table's index in `Timeline.tables`, and the LSN at which it applies."""

    table: int
    applied: Lsn


def place(timeline: Timeline, lsn: Lsn, transaction_id: int, table: str) -> Placement | None:
    """Returns where a row change applies, None if it is not part of the final state.

    Raises:
        LogInconsistentError: its transaction never began, or its table does not exist outside of one.
    """
    if timeline.start is not None and not needs(timeline.start, lsn, transaction_id):
        return None
    if transaction_id <= 0:
        applied: Lsn | None = lsn
        uuid = _meaning(timeline, table, bisect_right(_changes(timeline, table), lsn))
        if uuid is None:
            raise names_no_table(lsn, table)
    else:
        applied = _commit(timeline, lsn, transaction_id)
        # the name's meaning just before the COMMIT, whose own DROP TABLEs come last
        uuid = None if applied is None else _meaning(timeline, table, bisect_left(_changes(timeline, table), applied))
    if applied is None or uuid is None or uuid not in timeline.positions or _passed_over(timeline, uuid, transaction_id, applied):
        return None
    truncated = timeline.truncated.get(uuid)
    if truncated is not None and applied < truncated:
        return None
    return Placement(timeline.positions[uuid], applied)


def needs(start: StartingPoint, lsn: Lsn, transaction_id: int) -> bool:
    """Whether an entry has an effect: it is later, or belongs to a transaction that was open at the start."""
    if lsn > start.at:
        return True
    begins = {transaction.transaction_id: transaction.begin for transaction in start.state.transactions}
    begin = begins.get(transaction_id) if transaction_id > 0 else None
    return begin is not None and lsn > begin


def _passed_over(timeline: Timeline, uuid: str, transaction_id: int, applied: Lsn) -> bool:
    if transaction_id <= 0 or uuid not in timeline.made:
        return False
    maker, committed = timeline.made[uuid]
    return transaction_id != maker and applied < committed


def _changes(timeline: Timeline, table: str) -> tuple[Lsn, ...]:
    return timeline.names[table][0] if table in timeline.names else ()


def _meaning(timeline: Timeline, table: str, changes: int) -> str | None:
    return timeline.names[table][1][changes - 1] if changes else None


def _commit(timeline: Timeline, lsn: Lsn, transaction_id: int) -> Lsn | None:
    spans = timeline.spans
    begun = [place for place, identity in enumerate(spans.ids) if identity == transaction_id and spans.begins[place] <= lsn]
    if not begun or (spans.ended[begun[-1]] and lsn > spans.ends[begun[-1]]):
        raise is_in_no_transaction(lsn, transaction_id)
    return spans.ends[begun[-1]] if spans.committed[begun[-1]] else None
