"""Whether a tablespace's replicas have the rows that its log says: the condition ReplicasVerified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from herdkeeper.api import Tablespace
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.tablespace.full_check import KnownCheck
from herdkeeper.herddb.tablespace.verdicts import Verdict, different, rebuilt
from herdkeeper.planning.summary import Health
from herdkeeper.shared import names
from herdkeeper.shared.reason import Reason


def replicas_verified(
    tablespace: Tablespace, record: TablespaceRecord, verdicts: Mapping[str, Verdict], check: KnownCheck | None
) -> Health:
    """True when each follower was equal when it was compared last. A leader can't be compared with the log: its rows are what that says
    next. But it may have got the leadership after it was found different, or differ from a follower that is equal. `check` is the last full
    check, None when there was none."""
    return _differing(record, verdicts) or _leader_in_doubt(tablespace, record, verdicts, check) or _equal(record, verdicts)


def _differing(record: TablespaceRecord, verdicts: Mapping[str, Verdict]) -> Health | None:
    different_ones = different(verdicts, verdicts)
    found = [verdict for verdict in different_ones if verdict.compared_with_log]
    if different_ones and not found:
        return _undecided(different_ones)
    shown = "; ".join(f"{verdict.node} {verdict.sentence}" for verdict in found)
    if record.leader in (verdict.node for verdict in found):
        help_ = (
            "it leads until another replica can: raise spec.replicas where there is none. A new copy is made from the log only while that "
            "has its beginning, later from this leader, with the same rows: then restore the last verified Checkpoint into a new Tablespace"
        )
        return Health("False", Reason.LEADER_DIFFERS, f"{shown}; {help_}")
    if again := [verdict.node for verdict in found if verdict.made_anew]:
        command = "kubectl annotate tablespace NAME " + " ".join(f"{names.SET_ASIDE_PREFIX}{node}-" for node in again)
        look = f"{' and '.join(again)} was made anew before: look into it, then `{command}` has it made anew once more"
        return Health("False", Reason.REBUILT_IN_VAIN, f"{shown}; {look}")
    return Health("False", Reason.REPLICA_DIFFERS, f"{shown}; it can't lead, and is rebuilt") if found else None


def _undecided(found: Sequence[Verdict]) -> Health:
    """Which copy is wrong is not known. A person may find out; what would be lost meanwhile is kept."""
    shown = "; ".join(f"{verdict.node} {verdict.sentence}" for verdict in found)
    help_ = (
        "it can't lead, and nothing is removed, since the leader may be the wrong one: create a Checkpoint with verify: Follower. A copy "
        "that differs from the log is made anew then; where it is equal, compare the leader's rows before the leader is restarted"
    )
    return Health("False", Reason.DIFFERS_FROM_LEADER, f"{shown}; {help_}")


def _leader_in_doubt(
    tablespace: Tablespace, record: TablespaceRecord, verdicts: Mapping[str, Verdict], check: KnownCheck | None
) -> Health | None:
    """The leader had other rows than a follower of which a Checkpoint says that it has those of the log."""
    if check is None or check.node != record.leader:
        return None
    for replica in check.replicas or ():
        verdict, anew = verdicts.get(replica.node), rebuilt(tablespace, replica.node)
        about_present_copy = anew is None or anew.until < check.after
        if replica.verdict == "Failed" and verdict is not None and verdict.equal and about_present_copy:
            tables = ", ".join(replica.different_tables or ())
            found = f"{check.node} leads, and had other rows than {replica.node} in {tables} at its full check of {check.started_at}"
            help_ = (
                "compare the leader's rows of these tables by SQL with that Checkpoint's before another node leads, or the leader is "
                "restarted. It is told until another full check"
            )
            return Health("False", Reason.DIFFERS_FROM_LEADER, f"{found}, though {replica.node} {verdict.sentence}: {help_}")
    return None


def _equal(record: TablespaceRecord, verdicts: Mapping[str, Verdict]) -> Health:
    followers = sorted(node for node in record.replicas if node != record.leader)
    if not followers:
        return Health("Unknown", Reason.NOT_VERIFIED, "there is no follower to compare with the log")
    if unchecked := [node for node in followers if node not in verdicts]:
        missing = f"{', '.join(unchecked)}: not compared with the log yet; a Checkpoint with verify: Follower compares one of them"
        return Health("Unknown", Reason.NOT_VERIFIED, missing)
    return Health("True", Reason.VERIFIED, "; ".join(f"{node} {verdicts[node].sentence}" for node in followers))
