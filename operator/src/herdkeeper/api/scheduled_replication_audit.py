"""ScheduledReplicationAudit: ReplicationAudits on a schedule."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from herdkeeper.api.job import job_rules
from herdkeeper.api.replication_audit import ReplicationAuditSpec, audit_rules
from herdkeeper.api.resource import PrinterColumn, Resource, Rule
from herdkeeper.api.schedule import SCHEDULE_COLUMNS, SCHEDULE_RULES, Schedule, ScheduleStatus


class ScheduledReplicationAuditSpec(Schedule):
    """When audits are made, and of what."""

    successful_history_limit: int = Field(3, ge=1, le=100, description="How many completed audits are kept, whatever they found.")
    template: ReplicationAuditSpec = Field(description="The spec of each ReplicationAudit. A change applies to later ones.")


class ScheduledReplicationAuditStatus(ScheduleStatus):
    """What the schedule has done."""

    last_findings: int | None = Field(
        None, description="Findings of the newest completed audit of the BookKeeperCluster, not of an earlier one of its name."
    )
    instance_id: str | None = Field(None, description="Instance id of the BookKeeper cluster that `lastFindings` is of.")


class ScheduledReplicationAudit(Resource):
    """A schedule of audits."""

    KIND: ClassVar[str] = "ScheduledReplicationAudit"
    PLURAL: ClassVar[str] = "scheduledreplicationaudits"
    SHORT_NAME: ClassVar[str] = "sraudit"
    SUMMARY: ClassVar[str] = "Audits of a BookKeeperCluster on a schedule."
    COLUMNS: ClassVar[tuple[PrinterColumn, ...]] = (
        *SCHEDULE_COLUMNS,
        PrinterColumn(name="Findings", type="integer", json_path=".status.lastFindings"),
    )
    RULES: ClassVar[tuple[Rule, ...]] = (
        *audit_rules("template."),
        *job_rules("template.job"),
        *SCHEDULE_RULES,
    )

    spec: ScheduledReplicationAuditSpec
    status: ScheduledReplicationAuditStatus | None = None
