"""Checkpoint: the tables of a tablespace at an LSN, outside of the cluster."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from herdkeeper.api.job import PLACES, Destination, JobStatus, SparkJob, place_rules, unchanged_job
from herdkeeper.api.pods import pods_rules
from herdkeeper.api.resource import (
    AGE_COLUMN,
    NAME_RULES,
    STATUS_COLUMN,
    DeletionPolicy,
    Model,
    PrinterColumn,
    Quantity,
    Reference,
    Resource,
    Rule,
    formatted,
    least_memory,
    unchanged,
    unchanged_optional,
)
from herdkeeper.api.schedule import Duration

Moment = Annotated[
    str,
    Field(
        max_length=40,
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$",
        json_schema_extra={"format": "date-time"},
        examples=["2026-11-21T14:30:00Z"],
    ),
]
"""A time with its offset (RFC 3339)."""
FULL_EVERY = "7d"
"""Of a Checkpoint that does not say."""


class Lsn(Model):
    """A position in the log."""

    ledger_id: int = Field(ge=0, description="Ledger.")
    entry_id: int = Field(ge=0, description="Entry.")


class Target(Model):
    """A moment of the log. One of `lsn` and `timestamp`."""

    lsn: Lsn | None = Field(None, description="Exactly the commits up to this position of the log.")
    timestamp: Moment | None = Field(
        None,
        description="RFC 3339 with an offset, to the millisecond. The log up to the first entry that its leader stamped later, without it.",
    )


class CheckpointSpec(Model):
    """What is checkpointed. Immutable, except for deletionPolicy."""

    tablespace_ref: Reference = Field(description="The Tablespace.")
    target: Target | None = Field(None, description="The moment that the checkpoint holds; now, the last confirmed entry, when absent.")
    mode: Literal["Auto", "Full", "Incremental"] = Field(
        "Auto",
        description="What it is made from. Full: the whole log. Incremental: the newest checkpoint at the destination that is verified "
        "and whole, and the log behind it; the whole log when there is none. Auto: Incremental, but the whole log again once `fullEvery` "
        "is over, as long as bookies have it. "
        "Where neither is to be had, and no target is named, both begin with the tables of a follower that another one, or an earlier "
        "Checkpoint, proves.",
    )
    full_every: Duration = Field(
        FULL_EVERY,
        description="With mode Auto: a chain of checkpoints that were made from one another begins anew from the whole log after so many "
        "minutes, hours or days (`36h`, `7d`). No effect once the beginning of the log is gone.",
    )
    destination: Destination = Field(description="Where Parquet files and the manifest go.")
    verify: Literal["Follower", "Reread"] = Field(
        "Follower",
        description="Follower: compared with a follower's digest at the same LSN, and re-read. For a target in the past the same log is "
        "folded on to where a follower is, and compared there. "
        "Reread: re-read only, e.g. when there is no follower.",
    )
    bytes_per_second_per_bookie: Quantity | None = Field(
        None, description="Most bytes per second read from one bookie; unlimited when absent."
    )
    job: SparkJob = Field(SparkJob(), description="How the Spark job runs.")
    deletion_policy: DeletionPolicy = Field(
        "Retain",
        description="Delete: when this resource is deleted, its manifest and its files at the destination are deleted once nothing else"
        " needs them.",
    )


class TableStatus(Model):
    """One table of the checkpoint."""

    name: str = Field(description="The table.")
    rows: int = Field(description="Rows.")


class ComparisonStatus(Model):
    """A follower that was compared with the log."""

    node: str = Field(description="The SQL node.")
    tablespace_uuid: str = Field(description="Identity of the tablespace inside HerdDB.")
    lsn: Lsn = Field(description="Where both were compared.")
    result: Literal["Equal", "Different"] = Field(
        description="Equal: all tables have the same rows as the log. Different: some tables don't."
    )
    different_tables: tuple[str, ...] | None = Field(None, description="The tables with other rows, as far as they are known.")
    different_tables_total: int | None = Field(None, description="How many there are.")


class CheckpointStatus(JobStatus):
    """What became of it."""

    lsn: Lsn | None = Field(None, description="The checkpoint holds exactly the commits up to here.")
    lsn_timestamp: str | None = Field(
        None, description="When the entry there was written, by its leader's clock.", json_schema_extra={"format": "date-time"}
    )
    latest_timestamp: str | None = Field(
        None,
        description="The latest time of all entries up to there, by their leaders' clocks, which differ: the first time that a checkpoint "
        "can be of that is made from this one.",
        json_schema_extra={"format": "date-time"},
    )
    manifest: str | None = Field(None, description="Path of the manifest at the destination.")
    reused: bool | None = Field(
        None,
        description="True when a manifest at this LSN existed already, from another Checkpoint or an earlier attempt. The content was"
        " compared with it. Mode and source of the log are those of that manifest.",
    )
    report: str | None = Field(
        None,
        description="Path at the destination of an HTML report about all checkpoints of the tablespace there. Each Checkpoint writes it"
        " again. Absent when writing failed; the message has the reason.",
    )
    base: Lsn | None = Field(
        None, description="LSN of the checkpoint that it was made from, with the log behind it. Absent: from the whole log."
    )
    base_follower: str | None = Field(
        None, description="The SQL node whose tables at that LSN were the base, because there was no checkpoint. Absent otherwise."
    )
    restart_lsn: Lsn | None = Field(
        None,
        description="A later checkpoint that is made from this one reads the log from here on: where the oldest open transaction began.",
    )
    entries_read: int | None = Field(None, description="Entries of the log that were read.")
    tables: tuple[TableStatus, ...] = Field((), description="Rows per table.")
    rows: int | None = Field(None, description="Rows in all.")
    bytes: int | None = Field(None, description="Bytes written.")
    encrypted_with: str | None = Field(
        None, description="Name that the key had which it is encrypted with: it has to stay in the Secret. Absent for one in the clear."
    )
    open_transactions: int | None = Field(None, description="Transactions that were open at the LSN; their changes are not in it.")
    verified: str | None = Field(None, description="How it was verified.")
    comparison: ComparisonStatus | None = Field(
        None, description="Result of the comparison with a follower, also when the Checkpoint failed because of it."
    )


_MADE_ONCE = "the job may have read it already; create a new Checkpoint"


class Checkpoint(Resource):
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
        STATUS_COLUMN,
        AGE_COLUMN,
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
            message="spec.target names no moment, or two: set one of spec.target.lsn and spec.target.timestamp, or remove it for now",
            message_expression=formatted(
                "spec.target names %s: set one of spec.target.lsn and spec.target.timestamp, or remove it for now",
                "has(self.target.lsn) ? 'two moments' : 'no moment'",
            ),
            field_path=".target",
        ),
        *place_rules("destination"),
        least_memory("job.resources.memory", 1024),
        least_memory("job.executors.memory", 256),
        *pods_rules("job.pods"),
        *NAME_RULES,
    )

    spec: CheckpointSpec
    status: CheckpointStatus | None = None

    @property
    def is_over(self) -> bool:
        """Whether its run has ended, as its status tells."""
        return self.status is not None and self.status.phase in ("Succeeded", "Failed")

    @property
    def place(self) -> str:
        """Identity of the destination: equal for two Checkpoints with the same one."""
        return self.spec.destination.place

    @property
    def manifest(self) -> str | None:
        """Path of its manifest at the destination, as far as its status tells."""
        return self.status.manifest if self.status is not None else None
