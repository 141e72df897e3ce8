"""The status of a Checkpoint or a ReplicationAudit: the Job's state, and its driver's termination message."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any, assert_never

from herdkeeper.api import Checkpoint, ReplicationAudit
from herdkeeper.api.replication_audit import RepairMode
from herdkeeper.jobs.audit.state import AuditRun
from herdkeeper.jobs.state import CheckpointRun
from herdkeeper.planning.summary import Health, Summary
from herdkeeper.protocol.audit_finding import AuditDepth
from herdkeeper.protocol.job_summary import AuditSummary, CheckpointSummary, FollowerComparison, JobOutcome
from herdkeeper.shared.conditions import READY, condition
from herdkeeper.shared.names import HerdDBNames
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import text_of
from herdkeeper.spark.run import Run


def summarize_checkpoint(seen: CheckpointRun) -> Summary:
    """Returns the phase; of an ended run LSN, rows and bytes, too. Facts about it stay, even if it is deleted and its Job gone."""
    checkpoint = seen.checkpoint
    deleting = checkpoint.metadata.deletion_timestamp is not None
    if checkpoint.is_over or (deleting and checkpoint.status is not None and seen.run.job is None):
        summary = _kept(checkpoint)
    else:
        summary = _summary(seen.run, checkpoint_fields(seen.reported) if isinstance(seen.reported, CheckpointSummary) else {})
    return replace(summary, health=Health("False", Reason.DELETING, "its files are being removed")) if deleting else summary


def summarize_audit(seen: AuditRun) -> Summary:
    """Returns the phase, and what was audited and found; of a paused run so far. Facts about an ended run stay."""
    audit, run = seen.audit, seen.run
    if audit.is_over:
        return _kept(audit)
    if (opens := seen.resumes_at) is not None:
        return _paused(seen, opens)
    if seen.message_may_come:
        return _awaited(run)
    if (fault := seen.result_fault) is not None:
        return _unknown(audit, run, fault)
    return _summary(run, audit_fields(seen.reported, audit.spec.repair) if isinstance(seen.reported, AuditSummary) else {})


def _awaited(run: Run) -> Summary:
    fields = {name: value for name, value in run.fields.items() if name != "completedAt"}
    return Summary(
        Health("False", Reason.RUNNING, "the Job has ended; waiting for its driver's termination message"), {**fields, "phase": "Running"}
    )


def _unknown(audit: ReplicationAudit, run: Run, fault: str) -> Summary:
    """For a run that succeeded without a readable result: not a success, which would pass for a clean audit."""
    paused = ", as is whether it was done or paused" if audit.spec.window is not None else ""
    table = " and in the table audit_runs at its destination" if audit.spec.destination is not None else ""
    message = (
        f"its result is unknown{paused}: its Job succeeded, but its driver's termination message {fault}. See the log of its pod, if "
        f"it still exists (kubectl logs -n {audit.metadata.namespace} job/{run.fields['job']}){table}, and create another audit"
    )
    return Summary(Health("Unknown", Reason.RESULT_UNKNOWN, message), {**run.fields, "phase": "Failed", "failure": message})


def _paused(seen: AuditRun, opens: datetime.datetime) -> Summary:
    """The driver's report when it paused, if readable."""
    reported = seen.reported
    fields = audit_fields(reported, seen.audit.spec.repair) if isinstance(reported, AuditSummary) else {"message": "paused"}
    message = f"{fields.pop('message')}; it resumes at {text_of(opens)}"
    done = {name: value for name, value in seen.run.fields.items() if name != "completedAt"}
    everything = {**done, "phase": "Paused", "resumesAt": text_of(opens), **fields}
    return Summary(Health("False", Reason.WAITING_FOR_WINDOW, message), everything)


def checkpoint_fields(summary: CheckpointSummary) -> dict[str, Any]:
    """Returns status fields from the driver's summary."""
    return {
        "message": summary.message,
        "lsn": _lsn(summary.ledger_id, summary.entry_id),
        "lsnTimestamp": summary.lsn_timestamp or None,
        "latestTimestamp": summary.latest_timestamp or None,
        "manifest": summary.manifest or None,
        "reused": True if summary.outcome is JobOutcome.ALREADY_DONE else None,
        "report": summary.report or None,
        "base": _lsn(summary.base_ledger_id, summary.base_entry_id),
        "baseFollower": HerdDBNames.node_at(summary.base_follower) if summary.base_follower else None,
        "restartLsn": _lsn(summary.restart_ledger_id, summary.restart_entry_id),
        "entriesRead": summary.entries_read or None,
        "tables": [{"name": table.name, "rows": table.rows} for table in summary.tables] or None,
        "rows": summary.rows,
        "bytes": summary.bytes,
        "encryptedWith": summary.encrypted_with or None,
        "keyFingerprint": summary.key_fingerprint or None,
        "openTransactions": summary.open_transactions,
        "verified": summary.verified or None,
        "restorable": None if summary.restorable else False,
        "comparison": _comparison(summary.comparison) if summary.comparison is not None else None,
        "durationSeconds": round(summary.duration_seconds, 1),
    }


def _lsn(ledger_id: int | None, entry_id: int | None) -> dict[str, int] | None:
    return None if ledger_id is None or entry_id is None else {"ledgerId": ledger_id, "entryId": entry_id}


def _comparison(found: FollowerComparison) -> dict[str, Any]:
    different = found.different_tables_total > 0
    return {
        "node": HerdDBNames.node_at(found.follower),
        "tablespaceUuid": found.tablespace_uuid,
        "lsn": {"ledgerId": found.ledger_id, "entryId": found.entry_id},
        "result": "Different" if different else "Equal",
        **({"differentTables": list(found.different_tables), "differentTablesTotal": found.different_tables_total} if different else {}),
    }


def audit_fields(summary: AuditSummary, repair: RepairMode) -> dict[str, Any]:
    """Returns status fields from the driver's summary; `repair` is the mode of the audit. A run that ended early has nothing but its
    message: its counts of 0 would pass for a clean audit.
    """
    if summary.outcome.exit_code:
        return {"message": summary.message}
    findings = [
        {
            "kind": finding.kind.value,
            "severity": finding.severity.value,
            "ledgerId": finding.ledger_id,
            "firstEntry": finding.first_entry_id,
            "lastEntry": finding.last_entry_id,
            "bookieId": finding.bookie_id,
            "repair": finding.repair.value if finding.repair else None,
            "repairDetail": finding.repair_detail or None,
        }
        for finding in summary.findings
    ]
    return {
        "message": summary.message,
        "instanceId": summary.instance_id or None,
        "ledgerFilter": summary.ledger_filter or None,
        "ledgers": summary.ledgers,
        "entries": summary.entries,
        "replicas": summary.copies_verified,
        **({"replicasUnread": summary.copies_unread} if summary.depth is AuditDepth.LIGHT else {}),
        "bytes": summary.bytes_read,
        "durationSeconds": round(summary.duration_seconds, 1),
        **_repair_fields(summary, repair),
        "report": summary.report or None,
        "replicasUnknown": summary.copies_unknown,
        "findingsTotal": len(findings) + summary.findings_omitted,
        "findingsBySeverity": {
            "critical": summary.critical,
            "underReplicated": summary.under_replicated,
            "atRisk": summary.at_risk,
            "pending": summary.pending,
            "unknown": summary.unknown,
            "low": summary.low,
        },
        "findings": [{key: value for key, value in finding.items() if value is not None} for finding in findings] or None,
    }


def _repair_fields(summary: AuditSummary, repair: RepairMode) -> dict[str, int]:
    """Nothing for a paused run: it has not repaired yet."""
    if summary.outcome is JobOutcome.PAUSED:
        return {}
    match repair:
        case "Report":
            return {}
        case "DryRun":
            return {"replicasRepairable": summary.copies_repairable, "findingsNotRepaired": summary.not_repaired}
        case "Repair":
            return {"replicasRepaired": summary.copies_repaired, "findingsNotRepaired": summary.not_repaired}
        case _:
            assert_never(repair)


def _summary(run: Run, reported: dict[str, Any]) -> Summary:
    """`reported` are the fields of the driver's message, if readable. They count once the run has ended."""
    fields = reported if run.phase in ("Succeeded", "Failed") else {}
    message = str(fields.pop("message", "") or run.message)
    everything = {**run.fields, **fields}
    match run.phase:
        case "Succeeded":
            return Summary(Health("True", Reason.SUCCEEDED, message), everything)
        case "Failed":
            return Summary(Health("False", Reason.FAILED, message), {**everything, "failure": message})
        case "Running":
            return Summary(Health("False", Reason.RUNNING, message), everything)
        case "Pending":
            return Summary(Health("False", Reason.WAITING_FOR_PODS, message), everything)


def _kept(resource: Checkpoint | ReplicationAudit) -> Summary:
    """Facts about a run stay, whatever happens to its Job."""
    if resource.status is None:
        raise ValueError("nothing is known of a run without a status")
    fields = resource.status.document()
    message = str(fields.pop("message", ""))
    for name in ("conditions", "observedGeneration", "plan"):
        fields.pop(name, None)
    if resource.status.phase == "Succeeded":
        return Summary(Health("True", Reason.SUCCEEDED, message), fields)
    ready = condition(resource, READY)
    if ready is not None and ready.reason in (Reason.FAILED, Reason.RESULT_UNKNOWN):
        fields.setdefault("failure", message)  # of an earlier version
    message = fields.get("failure", message)
    if ready is not None and ready.reason == Reason.RESULT_UNKNOWN:
        return Summary(Health("Unknown", Reason.RESULT_UNKNOWN, message), fields)
    return Summary(Health("False", Reason.FAILED, message), fields)
