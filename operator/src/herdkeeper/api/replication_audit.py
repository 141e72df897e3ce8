"""ReplicationAudit: a proof that every entry has its replicas."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from herdkeeper.api.job import JobResource, JobStatus, SparkJob, VolumeDestination, job_rules, unchanged_job
from herdkeeper.api.resource import (
    NAME_RULES,
    Instant,
    Model,
    PrinterColumn,
    Quantity,
    Reference,
    Rule,
    refusal,
    unchanged,
    unchanged_optional,
)

LedgerId = Annotated[int, Field(ge=0)]
BookieId = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^-,\s][^,\s]*$", examples=["bk-bookie-2"])]
LedgerStateName = Literal["Open", "InRecovery", "Closed"]
TimeOfDay = Annotated[
    str,
    Field(
        max_length=5,
        pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$",
        examples=["22:00"],
        json_schema_extra=refusal("%s is no time of day: give hours and minutes, e.g. 22:00 or 06:30"),
    ),
]
"""Hours and minutes, 24-hour clock."""
RepairMode = Literal["Report", "DryRun", "Repair"]


class TablespaceOfDatabase(Model):
    """A tablespace, by its name in SQL."""

    herd_db_ref: Reference = Field(alias="herdDBRef", description="The tablespace's HerdDBCluster. The resource may be gone.")
    name: str = Field(max_length=128, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="Name of the tablespace in SQL, e.g. `default`.")


class LedgerRange(Model):
    """Ledgers by their ids."""

    first: LedgerId = Field(description="The first id.")
    last: LedgerId = Field(description="The last id, inclusive.")


class LedgerFilter(Model):
    """Which ledgers are audited. An absent condition matches every ledger."""

    tablespaces: tuple[TablespaceOfDatabase, ...] = Field(
        (), max_length=50, description="Ledgers in the log of one of these. An unknown name fails the audit."
    )
    states: tuple[LedgerStateName, ...] = Field((), max_length=3, description="Ledgers in one of these states when their metadata is read.")
    bookies: tuple[BookieId, ...] = Field(
        (), max_length=100, description="Ledgers with one of these bookies in an ensemble. An unknown bookie id fails the audit."
    )
    ledger_ranges: tuple[LedgerRange, ...] = Field(
        (), max_length=100, description="Ledgers with an id in one of these ranges, or in `spec.ledgers`."
    )


class Window(Model):
    """Daily hours. When clocks change, a skipped time means the same instant, and a repeated time its first occurrence."""

    from_: TimeOfDay = Field(alias="from", description="Opening time, e.g. `22:00`.")
    to: TimeOfDay = Field(
        description="Closing time, e.g. `05:00`; on the next day if it is not after `from`. At least 30 minutes after `from`."
    )
    time_zone: str = Field("UTC", min_length=1, max_length=64, description="Time zone of both, by its IANA name, e.g. `Europe/Rome`.")


class ReplicationAuditSpec(Model):
    """What is audited. Immutable, except for the hours of `window`."""

    book_keeper_ref: Reference = Field(description="The BookKeeperCluster.")
    depth: Literal["Light", "Deep"] = Field(
        "Deep",
        description="Deep: read every entry from every bookie that should hold it, and verify its digest. Light: of each bookie's "
        "share of a ledger, read only the ends and a few entries between them, different ones in each run; if one of them is bad, "
        "read the whole share. Both check metadata and placement.",
    )
    ledgers: tuple[LedgerId, ...] = Field((), max_length=1000, description="Only these ledgers; all of the cluster when empty.")
    filter: LedgerFilter | None = Field(None, description="Only ledgers that meet all of these conditions, and `ledgers`.")
    bytes_per_second_per_bookie: Quantity | None = Field(
        None, description="Maximum bytes per second read from one bookie; unlimited when absent."
    )
    window: Window | None = Field(
        None,
        description="Reads only in these hours. Outside of them the audit is Paused and its Job has ended; the next Job resumes when "
        "the window opens. A portion of the ledgers that was begun is still finished, which takes about a minute if "
        "`bytesPerSecondPerBookie` is set. Requires `destination`, where the progress is kept. `job.deadlineSeconds` counts from the "
        "closing time. The hours may change: a running Job keeps its old closing time, then the new hours apply. A paused audit "
        "resumes at once if the new window is open.",
    )
    repair: RepairMode = Field(
        "Report",
        description="Report: report findings. DryRun: also report what Repair would do about each; write nothing. Repair: write "
        "missing entries of closed ledgers again from a verified replica, under BookKeeper's replication lock, and read them back. "
        "Damaged entries are replaced: BookKeeper's client copies their bookie's share of the ledger to another bookie, which must "
        "exist.",
    )
    destination: VolumeDestination | None = Field(
        None,
        description="Where the run writes its report and adds all findings to the Parquet tables of the audits' history. The status "
        "always has a summary. With a destination, a run whose pod is killed resumes; without, it starts over.",
    )
    job: SparkJob = Field(SparkJob(), description="How the Spark job runs.")

    @property
    def chooses_ledgers(self) -> bool:
        """Whether it covers only a part of the cluster."""
        return bool(self.ledgers) or self.filter not in (None, LedgerFilter())


class SeverityCounts(Model):
    """Findings by severity, including those that `findings` has no room for."""

    critical: int = Field(0, description="Fewer good copies than the ack quorum.")
    under_replicated: int = Field(0, description="Fewer good copies than the write quorum, in a closed ledger.")
    at_risk: int = Field(0, description="Copies in fewer racks than the cluster requires and has.")
    pending: int = Field(0, description="Fewer good copies than the write quorum, in an open ledger.")
    unknown: int = Field(0, description="Entries that could not be read.")
    low: int = Field(0, description="Nothing is missing or damaged: ledgers that no log lists, or contradictory numbers of a writer.")


class FindingStatus(Model):
    """A run of entries of one ledger that one bookie lacks, or holds damaged or with other content. Or the copies of these entries are in
    too few racks.
    """

    kind: str = Field(description="What is wrong, e.g. Missing or CorruptDigest.")
    severity: str = Field(description="Severity of the finding.")
    ledger_id: int | None = Field(None, description="Ledger; absent if the finding is about a whole bookie.")
    first_entry: int | None = Field(None, description="First entry; absent if the finding is about a whole ledger.")
    last_entry: int | None = Field(None, description="Last entry.")
    bookie_id: str | None = Field(None, description="Bookie; absent if the finding is about metadata or placement.")
    repair: str | None = Field(
        None, description="Result of the repair: Repaired, Refused or Failed; after a dry run WouldRepair or Refused."
    )
    repair_detail: str | None = Field(
        None, description="How many entries were, or would be, written or copied; or why the repair was refused or failed."
    )


class ReplicationAuditStatus(JobStatus):
    """Result of the audit."""

    instance_id: str | None = Field(
        None,
        description="Instance id of the BookKeeper cluster that was audited. If the BookKeeperCluster's is another one, the audit was of "
        "an earlier cluster of its name.",
    )
    resumes_at: Instant | None = Field(None, description="When a Paused audit resumes.")
    ledger_filter: str | None = Field(None, description="Which ledgers were requested; absent for all of the cluster.")
    ledgers: int | None = Field(
        None, description="Ledgers audited. In a Paused audit, this and the fields below count what is done so far."
    )
    entries: int | None = Field(None, description="Entries audited.")
    replicas: int | None = Field(None, description="Replicas of entries that were read and verified.")
    replicas_unread: int | None = Field(None, description="In a light audit: replicas that were not read, because their sample is good.")
    bytes: int | None = Field(None, description="Bytes read.")
    replicas_unknown: int | None = Field(None, description="Replicas that could not be read.")
    findings_total: int | None = Field(None, description="Number of findings.")
    report: str | None = Field(None, description="Path of the HTML report at the destination.")
    findings_by_severity: SeverityCounts | None = Field(None, description="Number of findings, by severity.")
    findings: tuple[FindingStatus, ...] = Field((), description="The first findings.")
    replicas_repaired: int | None = Field(
        None, description="Replicas of entries that were repaired: written, or copied to another bookie, and read back."
    )
    replicas_repairable: int | None = Field(
        None,
        description="After a dry run: replicas that Repair would write, or copy elsewhere, from a verified replica.",
    )
    findings_not_repaired: int | None = Field(None, description="Findings that Repair refused, or after a dry run would refuse.")


def audit_rules(parent: str = "") -> tuple[Rule, ...]:
    """Returns the rules for an audit's spec, or for a part of a spec that is one, e.g. `template.`."""
    return (
        Rule(
            rule=f"!has(self.{parent}window) || has(self.{parent}destination)",
            message=f"spec.{parent}window needs spec.{parent}destination: progress is kept there when the window closes",
            field_path=f".{parent}window",
        ),
        Rule(
            rule=f"!has(self.{parent}window) || self.{parent}window.from != self.{parent}window.to",
            message=f"spec.{parent}window opens when it closes: remove it to read at any time, or change from or to",
            field_path=f".{parent}window",
        ),
        Rule(
            rule=f"!has(self.{parent}filter) || !has(self.{parent}filter.ledgerRanges) || "
            f"self.{parent}filter.ledgerRanges.all(each, each.first <= each.last)",
            message=f"spec.{parent}filter.ledgerRanges has a range whose first is above its last: swap them",
            field_path=f".{parent}filter.ledgerRanges",
        ),
    )


_MADE_ONCE = "the job may have read it already; create a new ReplicationAudit"
"""For everything but the window: all parts of a paused run must use the same settings."""


class ReplicationAudit(JobResource):
    """An audit."""

    KIND: ClassVar[str] = "ReplicationAudit"
    PLURAL: ClassVar[str] = "replicationaudits"
    SHORT_NAME: ClassVar[str] = "raudit"
    SUMMARY: ClassVar[str] = "An audit by Spark of whether each bookie holds every entry that it should, undamaged."
    COLUMNS: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="Phase", type="string", json_path=".status.phase"),
        PrinterColumn(name="Ledgers", type="integer", json_path=".status.ledgers"),
        PrinterColumn(name="Entries", type="integer", json_path=".status.entries"),
        PrinterColumn(name="Findings", type="integer", json_path=".status.findingsTotal"),
    )
    RULES: ClassVar[tuple[Rule, ...]] = (
        unchanged("bookKeeperRef", "SELF.bookKeeperRef.name", _MADE_ONCE),
        *(unchanged(field, f"SELF.{field}", _MADE_ONCE) for field in ("depth", "repair")),
        *(unchanged_optional(field, None, _MADE_ONCE) for field in ("ledgers", "filter")),
        unchanged_optional("bytesPerSecondPerBookie", "SELF.bytesPerSecondPerBookie", _MADE_ONCE),
        unchanged_optional("destination", "SELF.destination.persistentVolumeClaim.claimName", _MADE_ONCE),
        *unchanged_job(_MADE_ONCE),
        Rule(
            rule="has(self.window) == has(oldSelf.window)",
            message="spec.window can't be added or removed: a run is started with or without pauses; change its hours, or create a new "
            "ReplicationAudit",
            field_path=".window",
        ),
        *audit_rules(),
        *job_rules("job"),
        *NAME_RULES,
    )

    spec: ReplicationAuditSpec
    status: ReplicationAuditStatus | None = None
