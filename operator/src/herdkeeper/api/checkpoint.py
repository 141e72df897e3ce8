"""Checkpoint: the tables of a tablespace at an LSN, outside the cluster."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from herdkeeper.api.job import PLACES, Destination, JobResource, JobStatus, SparkJob, job_rules, place_rules, unchanged_job
from herdkeeper.api.resource import (
    NAME_RULES,
    DeletionPolicy,
    Instant,
    Model,
    PrinterColumn,
    Quantity,
    Reference,
    Rule,
    formatted,
    refusal,
    unchanged,
    unchanged_optional,
)
from herdkeeper.api.schedule import Duration

_LEAP_YEAR = r"([1-9][0-9](0[48]|[2468][048]|[13579][26])|([2468][048]|[13579][26])00)"
_DATE = (
    r"([1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    rf"|{_LEAP_YEAR}-02-29)"
)

Moment = Annotated[
    str,
    Field(
        max_length=40,
        pattern=rf"^{_DATE}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{{1,9}})?"
        r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$",
        json_schema_extra=refusal("%s is no moment: write date, time and offset: add Z, or an offset such as +01:00"),
        examples=["2026-11-21T14:30:00Z"],
    ),
]
"""A time with an offset (RFC 3339)."""
FULL_EVERY = "7d"
"""Default of a Checkpoint."""


class Lsn(Model):
    """A position in the log."""

    ledger_id: int = Field(ge=0, description="Ledger.")
    entry_id: int = Field(ge=0, description="Entry.")

    @property
    def position(self) -> tuple[int, int]:
        """Ledger and entry id, which compare as positions do."""
        return self.ledger_id, self.entry_id


class Target(Model):
    """A moment of the log: one of `lsn` and `timestamp`."""

    lsn: Lsn | None = Field(None, description="Exactly the commits up to this position of the log.")
    timestamp: Moment | None = Field(
        None,
        description=(
            "RFC 3339 with an offset, to the millisecond. The log is read up to, but without, the first entry that its leader "
            "stamped later."
        ),
    )


class CheckpointSpec(Model):
    """What is checkpointed. Immutable, except for deletionPolicy."""

    tablespace_ref: Reference = Field(description="The Tablespace.")
    target: Target | None = Field(None, description="The moment that the checkpoint holds. Absent: now, that is the last confirmed entry.")
    mode: Literal["Auto", "Full", "Incremental"] = Field(
        "Auto",
        description="What the checkpoint is made from. Full: the whole log. Incremental: the newest verified and complete checkpoint "
        "at the destination, plus the log after it; the whole log if there is none. Auto: Incremental, but from the whole log again "
        "after `fullEvery`, as long as bookies have it. If there is neither a checkpoint nor the whole log, and no target is set, "
        "Incremental and Auto start from a follower's tables. Another follower or an earlier Checkpoint must prove these.",
    )
    full_every: Duration = Field(
        FULL_EVERY,
        description="With mode Auto: after so many minutes, hours or days (`36h`, `7d`) the next checkpoint is made from the whole log "
        "again. No effect once the beginning of the log is gone.",
    )
    destination: Destination = Field(description="Where the Parquet files and the manifest are written.")
    verify: Literal["Follower", "Reread"] = Field(
        "Follower",
        description="Follower: compare it with a follower's digest at the same LSN, and reread it. For a target in the past, the log "
        "is folded further, up to a follower's position, and compared there. Reread: only reread it, e.g. if there is no follower.",
    )
    bytes_per_second_per_bookie: Quantity | None = Field(
        None, description="Maximum bytes per second read from one bookie; unlimited when absent."
    )
    job: SparkJob = Field(SparkJob(), description="How the Spark job runs.")
    deletion_policy: DeletionPolicy = Field(
        "Retain",
        description="Delete: after this resource is deleted, its manifest and files at the destination are deleted once nothing else "
        "needs them.",
    )


class TableStatus(Model):
    """One table of the checkpoint."""

    name: str = Field(description="The table.")
    rows: int = Field(description="Rows.")


class ComparisonStatus(Model):
    """A follower that was compared with the log."""

    node: str = Field(description="The SQL node.")
    tablespace_uuid: str = Field(description="Identity of the tablespace inside HerdDB.")
    lsn: Lsn = Field(description="LSN of the comparison.")
    result: Literal["Equal", "Different"] = Field(
        description="Equal: all tables have the same rows as the log. Different: some tables don't."
    )
    different_tables: tuple[str, ...] | None = Field(None, description="The differing tables, as far as they are known.")
    different_tables_total: int | None = Field(None, description="Number of differing tables.")


class CheckpointStatus(JobStatus):
    """Result of the checkpoint."""

    lsn: Lsn | None = Field(None, description="The checkpoint holds exactly the commits up to here.")
    lsn_timestamp: Instant | None = Field(None, description="When the entry there was written, by its leader's clock.")
    latest_timestamp: Instant | None = Field(
        None,
        description="The latest time of all entries up to there, by their leaders' clocks, which may differ. A checkpoint made from "
        "this one can't have an earlier target.",
    )
    manifest: str | None = Field(None, description="Path of the manifest at the destination.")
    reused: bool | None = Field(
        None,
        description="True if a manifest at this LSN already existed, from another Checkpoint or an earlier attempt. The contents were "
        "compared. Mode and source of the log are those of that manifest.",
    )
    report: str | None = Field(
        None,
        description="Path of an HTML report about all checkpoints of the tablespace at the destination. Each Checkpoint rewrites it. "
        "Absent if writing failed; the message has the reason.",
    )
    base: Lsn | None = Field(None, description="LSN of its base checkpoint. Absent: made from the whole log.")
    base_follower: str | None = Field(
        None, description="The SQL node whose tables at that LSN were the base, for lack of a checkpoint. Absent otherwise."
    )
    restart_lsn: Lsn | None = Field(
        None,
        description="A checkpoint made from this one reads the log from here on, where the oldest open transaction began.",
    )
    entries_read: int | None = Field(None, description="Log entries that were read.")
    tables: tuple[TableStatus, ...] = Field((), description="Rows per table.")
    rows: int | None = Field(None, description="Total rows.")
    bytes: int | None = Field(None, description="Bytes written.")
    encrypted_with: str | None = Field(
        None, description="Name of its encryption key, which must stay in the Secret. Absent if it is not encrypted."
    )
    key_fingerprint: str | None = Field(None, description="Fingerprint of that key, by which it is found under any name.")
    open_transactions: int | None = Field(None, description="Transactions that were open at the LSN; their changes are not in it.")
    verified: str | None = Field(None, description="How the checkpoint was verified.")
    restorable: bool | None = Field(
        None, description="False if no restore can load it as it is: `message` says why, and what to do. Absent otherwise."
    )
    comparison: ComparisonStatus | None = Field(
        None, description="Result of the comparison with a follower, even if the Checkpoint failed because of it."
    )


_MADE_ONCE = "the job may have read it already; create a new Checkpoint"


class Checkpoint(JobResource):
    """A checkpoint."""

    KIND: ClassVar[str] = "Checkpoint"
    PLURAL: ClassVar[str] = "checkpoints"
    SHORT_NAME: ClassVar[str] = "ckpt"
    SUMMARY: ClassVar[str] = "The tables of a tablespace at an LSN, folded from the log by Spark into Parquet files with a manifest."
    COLUMNS: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="Phase", type="string", json_path=".status.phase"),
        PrinterColumn(name="Ledger", type="integer", json_path=".status.lsn.ledgerId"),
        PrinterColumn(name="Entry", type="integer", json_path=".status.lsn.entryId"),
        # not a date: kubectl would show its age
        PrinterColumn(name="Moment", type="string", json_path=".status.lsnTimestamp", priority=1),
        PrinterColumn(name="Rows", type="integer", json_path=".status.rows"),
        PrinterColumn(name="Key", type="string", json_path=".status.encryptedWith", priority=1),
    )
    RULES: ClassVar[tuple[Rule, ...]] = (
        unchanged("tablespaceRef", "SELF.tablespaceRef.name", _MADE_ONCE),
        *(unchanged(field, f"SELF.{field}", _MADE_ONCE) for field in ("mode", "fullEvery", "verify")),
        unchanged_optional("bytesPerSecondPerBookie", "SELF.bytesPerSecondPerBookie", _MADE_ONCE),
        unchanged_optional("target", None, _MADE_ONCE),
        *(unchanged_optional(f"destination.{part}", None, _MADE_ONCE) for part in (*PLACES, "encryption")),
        *unchanged_job(_MADE_ONCE),
        Rule(
            rule="!has(self.target) || has(self.target.lsn) != has(self.target.timestamp)",
            message=(
                "spec.target has no moment, or two: set one of spec.target.lsn and spec.target.timestamp, or remove spec.target for "
                "the present"
            ),
            message_expression=formatted(
                "spec.target has %s: set one of spec.target.lsn and spec.target.timestamp, or remove spec.target for the present",
                "has(self.target.lsn) ? 'two moments' : 'no moment'",
            ),
            field_path=".target",
        ),
        *place_rules("destination"),
        *job_rules("job"),
        *NAME_RULES,
    )

    spec: CheckpointSpec
    status: CheckpointStatus | None = None

    @property
    def place(self) -> str:
        """Identity of the destination: equal for two Checkpoints with the same one."""
        return self.spec.destination.place

    @property
    def manifest(self) -> str | None:
        """Path of its manifest at the destination, if its status has one."""
        return self.status.manifest if self.status is not None else None
