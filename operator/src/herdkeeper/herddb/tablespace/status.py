"""Derives the status of a tablespace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from herdkeeper.api import Tablespace
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.log.status_archive import archive_fields, log_archived, remembered_archive
from herdkeeper.herddb.log.status_readers import log_released, log_used_in_time, stream_fields
from herdkeeper.herddb.state.cluster import VersionedRecord
from herdkeeper.herddb.state.nodes import staying_nodes
from herdkeeper.herddb.tablespace.full_check import newest_check
from herdkeeper.herddb.tablespace.plan_restore import refuse_existing
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.herddb.tablespace.status_blocked import statements_blocked
from herdkeeper.herddb.tablespace.status_full_check import full_check_fields
from herdkeeper.herddb.tablespace.status_replay import log_replayable
from herdkeeper.herddb.tablespace.status_replicas import replicas_verified
from herdkeeper.herddb.tablespace.status_restore import restore_fields, restore_health
from herdkeeper.herddb.tablespace.verdicts import Verdict, different, replicas_of, verdicts_in_force, verdicts_on
from herdkeeper.planning.summary import Health, Summary
from herdkeeper.shared import names
from herdkeeper.shared.conditions import REPLICAS_VERIFIED
from herdkeeper.shared.counted import counted
from herdkeeper.shared.lsn import lsn_fields
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown


def summarize_tablespace(seen: TablespaceObserved) -> Summary:
    """Returns Ready if its leader leads without hanging statements, and as many replicas as declared are settled."""
    tablespace = seen.tablespace
    before = tablespace.made_uuid
    answer = tablespace.metadata.annotations.get(names.SWITCHOVER_ANSWER_ANNOTATION)
    checked = full_check_fields(seen)
    fields: dict[str, Any] = {"tablespaceName": tablespace.sql_name, "uuid": before, "lastSwitchover": answer, "fullCheck": checked}
    if not isinstance(seen.record, VersionedRecord):
        fields |= remembered_archive(tablespace)
        if isinstance(seen.record, Unknown):
            unreadable = Health("Unknown", Reason.UNREADABLE, seen.record.why)
            # verdicts are kept: a Checkpoint reports its result only once
            remembered = [{**replica.document(), "role": "unknown"} for replica in replicas_of(tablespace)]
            return Summary(unreadable, {**fields, "replicas": remembered}, {REPLICAS_VERIFIED: unreadable})
        missing = Health("False", Reason.CREATING, "the tablespace does not exist yet")
        return Summary(missing, {**fields, "restore": restore_fields(seen)})
    record = seen.record.record
    if refuse_existing(tablespace, record) is not None:
        return Summary(Health("False", Reason.INVALID_SPEC, "another tablespace has its name"), fields)
    copies = [_copy(seen, node) for node in sorted(record.replicas)]
    settled = [copy for copy in copies if copy["ready"]]
    verdicts = verdicts_in_force(tablespace, record.uuid, seen.checkpoints, seen.nodes, seen.ledgers)
    fields |= {
        "uuid": before or record.uuid,
        "leader": record.leader,
        "replicas": [
            *({"node": copy["node"], "role": copy["role"], **_verdict(verdicts.get(copy["node"]))} for copy in copies),
            *_removed(record, verdicts),
        ],
        "readyReplicas": len(settled),
        **_for_clients(seen),
        "restore": restore_fields(seen),
        # in the place of a lost tablespace: what is archived is the lost one's
        **(archive_fields(seen, record.uuid) if before in (None, record.uuid) else remembered_archive(tablespace)),
        **stream_fields(seen),
    }
    blocked = statements_blocked(record, seen.replica_on(record.leader))
    health = _health(tablespace, record, copies, blocked)
    check = newest_check(tablespace, seen.nodes, record)
    verified = replicas_verified(tablespace, record, _about_present_nodes(verdicts, record, seen), check)
    released = log_released(seen.replica_on(record.leader))
    in_time = log_used_in_time(seen.standings)
    conditions = {REPLICAS_VERIFIED: verified, **released, **in_time, **log_archived(seen)}
    conditions |= log_replayable(record.name, record.uuid, seen.nodes)
    return Summary(restore_health(seen) or health, fields, conditions)


def _about_present_nodes(verdicts: Mapping[str, Verdict], record: TablespaceRecord, seen: TablespaceObserved) -> Mapping[str, Verdict]:
    """Without those of nodes that left the database: their files serve nobody, and are checked again when they come back."""
    if seen.herddb is None:
        return verdicts
    return verdicts_on(verdicts, (record.leader, *record.replicas, *staying_nodes(seen.herddb)))


def _removed(record: TablespaceRecord, verdicts: Mapping[str, Verdict]) -> list[dict[str, Any]]:
    """Replicas that differ and were removed. They are kept until set aside, whenever their node comes back."""
    off = different(verdicts, (node for node in verdicts if node not in record.replicas))
    return [{"node": verdict.node, "role": "removed", **_verdict(verdict)} for verdict in off]


def _verdict(verdict: Verdict | None) -> dict[str, Any]:
    if verdict is None:
        return {"verdict": "NotChecked"}
    known = {
        "verdict": "Equal" if verdict.equal else "Different",
        "verifiedLsn": lsn_fields(verdict.lsn),
        "verifiedAt": verdict.at,
        "verifiedBy": verdict.checkpoint,
        "differentTables": list(verdict.different_tables) or None,
    }
    return {key: value for key, value in known.items() if value is not None}


def _for_clients(seen: TablespaceObserved) -> dict[str, str]:
    """Returns what exists for clients, by status field."""
    named = seen.tablespace.names
    offered = {"leaderService": ("Service", named.leader_service), "connectionSecret": ("Secret", named.connection_secret)}
    return {field: name for field, (kind, name) in offered.items() if seen.objects.get(kind, name) is not None}


def _copy(seen: TablespaceObserved, node: str) -> dict[str, Any]:
    found = seen.replica_on(node)
    if found is None:
        return {"node": node, "role": "unknown", "ready": False, "trouble": "the node does not hold it yet"}
    if isinstance(found, Unknown):
        return {"node": node, "role": "unknown", "ready": False, "trouble": found.why}
    # The LSN moves with every write: in the status, each write of a client would cause one of the operator.
    return {"node": node, "role": found.role, "ready": found.ready, "trouble": found.last_error or found.role}


def _health(tablespace: Tablespace, record: TablespaceRecord, copies: list[dict[str, Any]], blocked: Health | None) -> Health:
    leads = any(copy["node"] == record.leader and copy["role"] == "leader" and copy["ready"] for copy in copies)
    if not leads:
        trouble = next((copy["trouble"] for copy in copies if copy["node"] == record.leader), "it is not a replica")
        return Health("False", Reason.NO_LEADER, f"{record.leader} is assigned leader but does not lead yet ({trouble})")
    if blocked is not None:
        return blocked
    wanted, settled = tablespace.spec.replicas, len([copy for copy in copies if copy["ready"]])
    if settled < wanted:
        shown = "; ".join(f"{copy['node']}: {copy['trouble']}" for copy in copies if not copy["ready"])
        more = f" ({shown})" if shown else ""
        return Health("False", Reason.REPLICAS_NOT_READY, f"{settled} of {counted(wanted, 'replica is', 'replicas are')} settled{more}")
    return Health("True", Reason.READY, f"{record.leader} leads, {counted(settled, 'replica is', 'replicas are')} settled")
