"""The condition ReplicasVerified: whether a tablespace's replicas match its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from herdkeeper.api import Tablespace
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.tablespace.full_check import KnownCheck
from herdkeeper.herddb.tablespace.verdicts import Verdict, contradicting, different
from herdkeeper.planning.summary import Health
from herdkeeper.shared import names
from herdkeeper.shared.reason import Reason


def replicas_verified(
    tablespace: Tablespace, record: TablespaceRecord, verdicts: Mapping[str, Verdict], check: KnownCheck | None
) -> Health:
    """True if each follower was equal in its last comparison.

    A leader can't be compared with the log, which follows from its rows. But it may have become leader after it was found different, or
    differ from a follower that is equal. `check` is the last full check, or None.
    """
    return _differing(tablespace, record, verdicts) or _leader_in_doubt(tablespace, record, verdicts, check) or _equal(record, verdicts)


def _differing(tablespace: Tablespace, record: TablespaceRecord, verdicts: Mapping[str, Verdict]) -> Health | None:
    different_ones = different(verdicts, verdicts)
    found = [verdict for verdict in different_ones if verdict.compared_with_log]
    if different_ones and not found:
        return _undecided(different_ones)
    shown = "; ".join(f"{verdict.node} {verdict.sentence}" for verdict in found)
    if record.leader in (verdict.node for verdict in found):
        help_ = (
            "it leads until another replica can: raise spec.replicas if there is none. A new replica is built from the log "
            "while that still has its beginning. Later it is built from this leader, with the same rows: then restore the last "
            "verified Checkpoint into a new Tablespace"
        )
        return Health("False", Reason.LEADER_DIFFERS, f"{shown}; {help_}")
    if again := [verdict.node for verdict in found if verdict.made_anew]:
        marks = " ".join(f"{names.SET_ASIDE_PREFIX}{node}-" for node in again)
        command = f"kubectl annotate tablespace {tablespace.key.name} {marks} -n {tablespace.key.namespace}"
        look = f"{' and '.join(again)} was rebuilt before: investigate, then rebuild it once more with `{command}`"
        return Health("False", Reason.REBUILT_IN_VAIN, f"{shown}; {look}")
    return Health("False", Reason.REPLICA_DIFFERS, f"{shown}; it can't lead, and is rebuilt") if found else None


def _undecided(found: Sequence[Verdict]) -> Health:
    """It is unknown which replica is wrong. A person may find out; until then nothing is deleted."""
    shown = "; ".join(f"{verdict.node} {verdict.sentence}" for verdict in found)
    help_ = (
        "it can't lead, and nothing is removed, since the leader may be wrong: create a Checkpoint with verify: Follower. A replica "
        "that differs from the log is then rebuilt. If it equals the log, compare the leader's rows before the leader is restarted"
    )
    return Health("False", Reason.DIFFERS_FROM_LEADER, f"{shown}; {help_}")


def _leader_in_doubt(
    tablespace: Tablespace, record: TablespaceRecord, verdicts: Mapping[str, Verdict], check: KnownCheck | None
) -> Health | None:
    """The leader differed from a follower that matched the log in a Checkpoint."""
    if check is None or check.leader != record.leader:
        return None
    if (replica := contradicting(check, tablespace, record.uuid, verdicts)) is not None:
        tables = ", ".join(replica.different_tables or ())
        found = f"{check.leader} leads, and had other rows than {replica.node} in {tables} at its full check of {check.started_at}"
        help_ = (
            "compare the leader's rows of these tables by SQL with that Checkpoint's before another node leads, or the leader is "
            "restarted. This stays until another full check"
        )
        equal = verdicts[replica.node].sentence
        return Health("False", Reason.DIFFERS_FROM_LEADER, f"{found}, although {replica.node} {equal}: {help_}")
    return None


def _equal(record: TablespaceRecord, verdicts: Mapping[str, Verdict]) -> Health:
    followers = sorted(node for node in record.replicas if node != record.leader)
    if not followers:
        return Health("Unknown", Reason.NOT_VERIFIED, "there is no follower to compare with the log")
    if unchecked := [node for node in followers if node not in verdicts]:
        missing = f"{', '.join(unchecked)}: not compared with the log yet; a Checkpoint with verify: Follower compares one of them"
        return Health("Unknown", Reason.NOT_VERIFIED, missing)
    return Health("True", Reason.VERIFIED, "; ".join(f"{node} {verdicts[node].sentence}" for node in followers))
