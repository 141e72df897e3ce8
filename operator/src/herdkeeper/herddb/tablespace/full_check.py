"""The full check of a tablespace: when it is due, its leader's report, and each follower's result.

The leader writes digests of its rows to the log, and each follower compares its own when it applies them. So a verdict belongs to a check
by its place in the log, after the check's beginning and not after its end. Clocks and older verdicts don't matter. A booting follower skips
the check, and an unreadable one reports nothing: neither has passed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from herdkeeper.api import Tablespace
from herdkeeper.api.checkpoint import Lsn
from herdkeeper.api.schedule import Timing
from herdkeeper.api.tablespace import CheckedReplica, CheckedTable, FullCheckStatus, FullCheckTimes, LogBoundary, UncheckedTable
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.state.cluster import FullCheck, NodeTablespace, NodeView
from herdkeeper.protocol.log_pin import BEGIN
from herdkeeper.shared.time import text_of_millis
from herdkeeper.shared.unknown import Unknown

NIGHT_HOURS = 6
"""The undeclared weekly times are between midnight and this hour."""

NodeViews = Mapping[str, NodeView | Unknown]


class KnownCheck(FullCheckStatus):
    """A check as in the status. `leader` reported it, and may no longer lead."""

    leader: str
    started_at: str

    @property
    def after(self) -> tuple[int, int]:
        """Its entries are in the log after this (ledger id, entry id)."""
        return BEGIN if self.after_lsn is None else self.after_lsn.position

    @property
    def until(self) -> tuple[int, int] | None:
        """The (ledger id, entry id) of its last entry so far. None before the first."""
        return None if self.until_lsn is None else self.until_lsn.position

    @property
    def identity(self) -> tuple[tuple[int, int], str, str]:
        """Identifies a check and orders checks by the log, since leaders' clocks differ."""
        return self.after, self.started_at, self.leader


def replica_of(nodes: NodeViews, node: str, record: TablespaceRecord) -> NodeTablespace | Unknown | None:
    view = nodes.get(node, Unknown(f"{node} is not Ready"))
    if isinstance(view, Unknown):
        return view
    return next((copy for copy in view if copy.uuid == record.uuid), None)


def remembered_check(tablespace: Tablespace) -> KnownCheck | None:
    """Returns the last check in the status."""
    status = tablespace.status.full_check if tablespace.status is not None else None
    if status is None or status.started_at is None or status.leader is None:
        return None
    return KnownCheck(**dict(status))


def timing_of(tablespace: Tablespace) -> Timing | None:
    """Returns when checks start by themselves, or None. Undeclared times differ, so that a fleet is not read all at once."""
    declared = tablespace.spec.full_check
    if declared.schedule is None and tablespace.spec.replicas < 2:
        return None
    return Timing(
        schedule=declared.schedule or _weekly_schedule(tablespace.metadata.uid),
        time_zone=declared.time_zone,
        suspend=declared.suspend,
        starting_deadline_seconds=declared.starting_deadline_seconds,
    )


def _weekly_schedule(uid: str) -> str:
    """Returns a weekly cron expression."""
    drawn = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8])
    day, minute = divmod(drawn % (7 * NIGHT_HOURS * 60), NIGHT_HOURS * 60)
    return f"{minute % 60} {minute // 60} * * {day}"


def declared_times(timing: Timing) -> str:
    """Returns what a schedule's times depend on, as in the status."""
    return f"{timing.schedule} ({timing.time_zone})"


def remembered_times(tablespace: Tablespace) -> FullCheckTimes | None:
    """Returns the status's times of the declared schedule. None if it has none, or those of another schedule."""
    status, timing = tablespace.status, timing_of(tablespace)
    times = status.full_check.schedule if status is not None and status.full_check is not None else None
    return times if times is not None and timing is not None and times.declared == declared_times(timing) else None


def unrecorded_check(tablespace: Tablespace, nodes: NodeViews, record: TablespaceRecord) -> KnownCheck | None:
    """Returns a check that a node reports and the status does not have yet."""
    told, before = reported_check(nodes, record), remembered_check(tablespace)
    return told if told is not None and (before is None or told.identity > before.identity) else None


def reported_check(nodes: NodeViews, record: TablespaceRecord) -> KnownCheck | None:
    """Returns the newest check that a replica's node reports. The node may no longer lead."""
    copies = {node: replica_of(nodes, node, record) for node in (record.leader, *record.replicas)}
    told = [
        _reported(node, copy.full_check, record)
        for node, copy in copies.items()
        if isinstance(copy, NodeTablespace) and isinstance(copy.full_check, FullCheck)
    ]
    return max(told, key=lambda check: check.identity, default=None)


def runs(check: KnownCheck | None) -> bool:
    """Returns whether a reported check is still running."""
    return check is not None and check.completed_at is None and check.error is None


def newest_check(tablespace: Tablespace, nodes: NodeViews, record: TablespaceRecord) -> KnownCheck | None:
    """Returns the last known check, from the status and the nodes' reports, with each follower's known verdict."""
    before, told = remembered_check(tablespace), reported_check(nodes, record)
    if told is not None and (before is None or told.identity > before.identity):
        check = told
    elif told is not None and before is not None and told.identity == before.identity:
        check = told.model_copy(update={"replicas": before.replicas})
    elif before is not None:
        check = _perhaps_lost(before, nodes, record)
    else:
        return None
    answers = tuple(_answered(check, known, replica_of(nodes, known.node, record)) for known in check.replicas)
    return check.model_copy(update={"replicas": answers})


def waits_for_follower(check: KnownCheck, nodes: NodeViews, record: TablespaceRecord) -> bool:
    """Returns whether a reachable follower has not reached the check's end yet."""
    copies = [replica_of(nodes, replica.node, record) for replica in check.replicas if replica.verdict == "NotAnswered"]
    return any(
        isinstance(copy, NodeTablespace) and copy.lsn is not None and check.until is not None and copy.lsn < check.until for copy in copies
    )


def _reported(node: str, check: FullCheck, record: TablespaceRecord) -> KnownCheck:
    followers = sorted(follower for follower in record.replicas if follower != node)
    return KnownCheck(
        leader=node,
        started_at=text_of_millis(check.started_millis),
        completed_at=None if check.ended_millis is None else text_of_millis(check.ended_millis),
        writes_stopped_seconds=check.writes_stopped_millis / 1000,
        longest_writes_stopped_seconds=check.longest_stop_millis / 1000,
        tables=tuple(CheckedTable(name=name, writes_stopped_seconds=millis / 1000) for name, millis in check.tables),
        not_checked=tuple(UncheckedTable(name=name, why=why) for name, why in check.not_checked),
        replicas=tuple(CheckedReplica(node=follower, verdict="NotAnswered") for follower in followers),
        after_lsn=LogBoundary(ledger_id=check.after[0], entry_id=check.after[1]) if check.after > BEGIN else None,
        until_lsn=Lsn(ledger_id=check.until[0], entry_id=check.until[1]) if check.until is not None else None,
        error=check.error,
    )


def _perhaps_lost(check: KnownCheck, nodes: NodeViews, record: TablespaceRecord) -> KnownCheck:
    """A check that its own node does not know did not finish. A leader that can't be reached may still run it, or report it later."""
    if not runs(check):
        return check
    unreachable = isinstance(replica_of(nodes, check.leader, record), Unknown)
    if unreachable and check.leader == record.leader:
        return check
    why = "can't be reached, and no longer leads" if unreachable else "no longer knows the check: its process ended before the check did"
    return check.model_copy(update={"error": f"{check.leader} {why}"})


def _answered(check: KnownCheck, known: CheckedReplica, copy: NodeTablespace | Unknown | None) -> CheckedReplica:
    """Returns the node's result of this check, or else the remembered one."""
    if not isinstance(copy, NodeTablespace):
        return known
    tables = {table.name for table in check.tables}
    since = [verdict for verdict in copy.checks if verdict.table in tables and check.after < verdict.lsn]
    about = [verdict for verdict in since if check.until is None or verdict.lsn <= check.until]
    if failed := tuple(sorted(verdict.table for verdict in about if not verdict.passed)):
        return CheckedReplica(node=known.node, verdict="Failed", different_tables=failed)
    all_passed = bool(tables) and {verdict.table for verdict in about} >= tables
    if all_passed and check.completed_at is not None and check.error is None:
        return CheckedReplica(node=known.node, verdict="Passed")
    return known
