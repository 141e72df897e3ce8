"""ReplicationAudit: proof that every entry has its replicas."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from herdkeeper.api.job import JobStatus, SparkJob, VolumeDestination, unchanged_job
from herdkeeper.api.pods import pods_rules
from herdkeeper.api.resource import (
    AGE_COLUMN,
    NAME_RULES,
    STATUS_COLUMN,
    Model,
    PrinterColumn,
    Quantity,
    Reference,
    Resource,
    Rule,
    least_memory,
    unchanged,
    unchanged_optional,
)

LedgerId = Annotated[int, Field(ge=0)]
BookieId = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^-,\s][^,\s]*$", examples=["bk-bookie-2"])]
LedgerStateName = Literal["Open", "InRecovery", "Closed"]
TimeOfDay = Annotated[str, Field(max_length=5, pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", examples=["22:00"])]
"""Hours and minutes of a day of 24 hours."""
RepairMode = Literal["Report", "DryRun", "Repair"]


class TablespaceOfDatabase(Model):
    """A tablespace, by its name in SQL."""

    herd_db_ref: Reference = Field(alias="herdDBRef", description="The HerdDBCluster that it is, or was, in. The resource may be gone.")
    name: str = Field(max_length=128, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="Name of the tablespace in SQL, e.g. `default`.")


class LedgerRange(Model):
    """Ledgers by their ids."""

    first: LedgerId = Field(description="The first id.")
    last: LedgerId = Field(description="The last id, which is included.")


class LedgerFilter(Model):
    """Which ledgers are audited. What is absent is met by every ledger."""

    tablespaces: tuple[TablespaceOfDatabase, ...] = Field(
        (), max_length=50, description="In the log of one of these. A name that does not exist fails the audit."
    )
    states: tuple[LedgerStateName, ...] = Field((), max_length=3, description="In one of these states when its metadata is read.")
    bookies: tuple[BookieId, ...] = Field(
        (), max_length=100, description="One of these is in an ensemble of the ledger. An id that BookKeeper does not know fails the audit."
    )
    ledger_ranges: tuple[LedgerRange, ...] = Field(
        (), max_length=100, description="With an id in one of these, or among those of `spec.ledgers`."
    )


class Window(Model):
    """Hours of the day. When clocks change, a skipped time counts as the same instant later on, and of a repeated time the first one
    counts."""

    from_: TimeOfDay = Field(alias="from", description="When it opens, e.g. `22:00`.")
    to: TimeOfDay = Field(
        description="When it closes, e.g. `05:00`; on the next day when that is not after `from`. At least 30 minutes after that."
    )
    time_zone: str = Field("UTC", min_length=1, max_length=64, description="Time zone of both, by its IANA name, e.g. `Europe/Rome`.")


class ReplicationAuditSpec(Model):
    """What is audited. Immutable, except for the hours of `window`."""

    book_keeper_ref: Reference = Field(description="The BookKeeperCluster.")
    depth: Literal["Light", "Deep"] = Field(
        "Deep",
        description="Deep: every entry is read from every bookie that should hold it, and its digest is verified. Light: of each bookie's "
        "share of a ledger only the ends are read, and a few entries between them, others in each run. Where one of these is not good, all "
        "of the share is read. Both look at metadata and placement.",
    )
    ledgers: tuple[LedgerId, ...] = Field((), max_length=1000, description="Only these ledgers; all of the cluster when empty.")
    filter: LedgerFilter | None = Field(None, description="Only ledgers that meet all of its conditions, and `ledgers`.")
    bytes_per_second_per_bookie: Quantity | None = Field(
        None, description="Most bytes per second read from one bookie; unlimited when absent."
    )
    window: Window | None = Field(
        None,
        description="Reads in these hours only. Outside of them the audit is Paused, its Job has ended, and another one goes on from there "
        "when the window opens. A portion of the ledgers that was begun is read to its end, which takes about a minute where "
        "`bytesPerSecondPerBookie` is set. Needs `destination`, where what is done is kept. `job.deadlineSeconds` counts from when the "
        "window closes. Its hours may change: a Job that runs reads until the end that it was made with, then the new ones count. A paused "
        "audit goes on at once where these are open.",
    )
    repair: RepairMode = Field(
        "Report",
        description="Report: findings are reported. DryRun: also what Repair would do about each; nothing is written. "
        "Repair: missing entries of closed ledgers are written again from a replica whose digest was verified, under BookKeeper's "
        "replication lock, and read back. Damaged ones are left behind: BookKeeper's client copies all that their bookie has of the ledger "
        "to another bookie, which there must be.",
    )
    destination: VolumeDestination | None = Field(
        None,
        description="Where the run is added to the Parquet tables of the audits' history, with all findings, and where its report is "
        "written; the status has a summary in any case. A run with one goes on from there when its pod is killed; without, it begins anew.",
    )
    job: SparkJob = Field(SparkJob(), description="How the Spark job runs.")

    @property
    def chooses_ledgers(self) -> bool:
        """Whether it is not about the whole cluster."""
        return bool(self.ledgers) or self.filter not in (None, LedgerFilter())


class SeverityCounts(Model):
    """Findings by how urgent they are, also those that `findings` has no room for."""

    critical: int = Field(0, description="Fewer good copies than the ack quorum.")
    under_replicated: int = Field(0, description="Fewer than the write quorum, on a closed ledger.")
    at_risk: int = Field(0, description="Copies in fewer racks than the cluster wants, and has.")
    pending: int = Field(0, description="Fewer than the write quorum, on a ledger that is being written.")
    unknown: int = Field(0, description="Entries that could not be read.")
    low: int = Field(0, description="Nothing is missing or damaged: ledgers that no log lists, or contradicting numbers of a writer.")


class FindingStatus(Model):
    """A run of entries of one ledger that one bookie should hold and does not, or holds damaged or otherwise than others, or whose copies
    are in too few racks."""

    kind: str = Field(description="What is wrong, e.g. Missing or CorruptDigest.")
    severity: str = Field(description="How bad it is.")
    ledger_id: int | None = Field(None, description="Ledger; absent where a whole bookie is meant.")
    first_entry: int | None = Field(None, description="First entry; absent where a whole ledger is meant.")
    last_entry: int | None = Field(None, description="Last entry.")
    bookie_id: str | None = Field(None, description="Bookie; absent where a ledger's metadata or placement is meant.")
    repair: str | None = Field(None, description="What became of it: Repaired, Refused or Failed; after a dry run WouldRepair or Refused.")
    repair_detail: str | None = Field(
        None, description="How many entries were, or would be, written or copied; or why it was refused, or failed."
    )


class ReplicationAuditStatus(JobStatus):
    """What was found."""

    resumes_at: str | None = Field(None, description="When a Paused audit resumes.", json_schema_extra={"format": "date-time"})
    ledger_filter: str | None = Field(None, description="Which ledgers it was asked for; absent for all of the cluster.")
    ledgers: int | None = Field(None, description="Ledgers audited; for a Paused audit so far, as the fields below.")
    entries: int | None = Field(None, description="Entries audited.")
    replicas: int | None = Field(None, description="Replicas of entries that were read and verified.")
    replicas_unread: int | None = Field(None, description="Of a light audit: replicas that were not read, since a sample of them is good.")
    bytes: int | None = Field(None, description="Bytes read.")
    replicas_unknown: int | None = Field(None, description="Replicas that could not be read.")
    findings_total: int | None = Field(None, description="Findings in all.")
    report: str | None = Field(None, description="Path of the report for people (HTML) at the destination.")
    findings_by_severity: SeverityCounts | None = Field(None, description="Findings in all, by severity.")
    findings: tuple[FindingStatus, ...] = Field((), description="The first findings.")
    replicas_repaired: int | None = Field(
        None, description="Replicas of entries that are whole again: written, or copied to another bookie, and read back."
    )
    replicas_repairable: int | None = Field(
        None,
        description="After a dry run: replicas that Repair would write, or have copied elsewhere, from one that was verified just now.",
    )
    findings_not_repaired: int | None = Field(
        None, description="Findings about entries that Repair left, or after a dry run would leave, as they are."
    )


def audit_rules(parent: str = "") -> tuple[Rule, ...]:
    """What the API server refuses of an audit's spec, or of the part of a spec that is one, e.g. `template.`."""
    return (
        Rule(
            rule=f"!has(self.{parent}window) || has(self.{parent}destination)",
            message=f"spec.{parent}window needs spec.{parent}destination: progress is kept there when the window closes",
            field_path=f".{parent}window",
        ),
        Rule(
            rule=f"!has(self.{parent}window) || self.{parent}window.from != self.{parent}window.to",
            message=f"spec.{parent}window opens when it closes: leave it out to read at any time, or change one of from and to",
            field_path=f".{parent}window",
        ),
        Rule(
            rule=f"!has(self.{parent}filter) || !has(self.{parent}filter.ledgerRanges) || "
            f"self.{parent}filter.ledgerRanges.all(each, each.first <= each.last)",
            message=f"spec.{parent}filter.ledgerRanges has one whose first is above its last: exchange them",
            field_path=f".{parent}filter.ledgerRanges",
        ),
    )


_MADE_ONCE = "the job may have read it already; create a new ReplicationAudit"
"""Of everything but the window: each part of a run that paused must go by the same."""


class ReplicationAudit(Resource):
    """An audit."""

    KIND: ClassVar[str] = "ReplicationAudit"
    PLURAL: ClassVar[str] = "replicationaudits"
    SHORT_NAME: ClassVar[str] = "raudit"
    SUMMARY: ClassVar[str] = "An audit by Spark that every entry of every ledger is on each bookie that should hold it, undamaged."
    COLUMNS: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="Phase", type="string", json_path=".status.phase"),
        PrinterColumn(name="Ledgers", type="integer", json_path=".status.ledgers"),
        PrinterColumn(name="Entries", type="integer", json_path=".status.entries"),
        PrinterColumn(name="Findings", type="integer", json_path=".status.findingsTotal"),
        STATUS_COLUMN,
        AGE_COLUMN,
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
            message="spec.window can't be added or removed: a run can pause or can't, from its start on; change its hours, or create a"
            " new ReplicationAudit",
            field_path=".window",
        ),
        *audit_rules(),
        least_memory("job.resources.memory", 1024),
        least_memory("job.executors.memory", 256),
        *pods_rules("job.pods"),
        *NAME_RULES,
    )

    spec: ReplicationAuditSpec
    status: ReplicationAuditStatus | None = None

    @property
    def is_over(self) -> bool:
        """Whether its run has ended, as its status tells."""
        return self.status is not None and self.status.phase in ("Succeeded", "Failed")
