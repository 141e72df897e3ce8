"""What a job reports to the operator in its container's termination message.

The kubelet keeps at most 4096 bytes of it. So `to_json` drops items of the long list, last first, until the rest fits, and counts them.
Keys are camelCase, so that the operator can copy them into a status. `from_json` ignores unknown keys (of a newer job image) and refuses
missing ones by name.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar, Self, assert_never

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from herdkeeper.protocol.audit_finding import AuditDepth, Finding
from herdkeeper.protocol.faults import faults_of

MAX_TERMINATION_MESSAGE_BYTES = 4096
_MAX_MESSAGE_CHARACTERS = 500
_CONFIG = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")
_adapter: Callable[[type], TypeAdapter[Any]] = cache(TypeAdapter)


class SummaryError(ValueError):
    """A termination message is not a valid summary. The message names the field."""


class JobOutcome(StrEnum):
    """How a job ended. Each outcome has an exit code, which the Job's podFailurePolicy reads."""

    SUCCEEDED = "Succeeded"
    ALREADY_DONE = "AlreadyDone"
    PAUSED = "Paused"
    """It has not finished, and resumes when started again. Only for audits."""
    CONFIGURATION_REFUSED = "ConfigurationRefused"
    RETRYABLE = "Retryable"
    INVARIANT_VIOLATED = "InvariantViolated"

    @property
    def exit_code(self) -> int:
        """0 done or paused; 2 refused by configuration (a retry is useless); 3 worth a retry; 42 an invariant was violated: never retry."""
        match self:
            case JobOutcome.SUCCEEDED | JobOutcome.ALREADY_DONE | JobOutcome.PAUSED:
                return 0
            case JobOutcome.CONFIGURATION_REFUSED:
                return 2
            case JobOutcome.RETRYABLE:
                return 3
            case JobOutcome.INVARIANT_VIOLATED:
                return 42
            case _:
                assert_never(self)


@dataclass(frozen=True, slots=True)
class TableSummary:
    """One table of a checkpoint."""

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    name: str
    rows: int
    bytes: int
    """Size of its Parquet files."""
    digest: str
    """The order-free digest over stored keys and values, as hexadecimal text."""


@dataclass(frozen=True, slots=True)
class FollowerComparison:
    """The result of comparing a follower's tables with the fold of the log, at the LSN (`ledger_id`, `entry_id`)."""

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    follower: str
    """host:port of the node's HTTP endpoint, as given to the job."""
    tablespace_uuid: str
    ledger_id: int
    entry_id: int
    different_tables: tuple[str, ...] = ()
    """Tables that differ, by name; empty if the follower equals the log."""
    different_tables_total: int = 0
    """Their number, including those that did not fit."""


@dataclass(frozen=True, slots=True)
class _JobSummary:
    """What all of them report."""

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    run_id: str
    outcome: JobOutcome
    message: str = ""
    """One sentence for people; on failure: what failed and what to do."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Raises SummaryError naming a missing or invalid field."""
        try:
            found: Self = _adapter(cls).validate_json(text)
        except ValidationError as error:
            raise SummaryError(f"not a job summary: {faults_of(error, 'summary')}") from error
        return found

    def _longest_that_fits(self, keep: Callable[[int], Self], items: int) -> str:
        """Binary search for the most items whose JSON fits; the size grows with their number."""

        def encoded(count: int) -> bytes:
            return _adapter(type(self)).dump_json(keep(count), by_alias=True, exclude_none=True)

        most = bisect_right(range(1, items + 1), MAX_TERMINATION_MESSAGE_BYTES, key=lambda count: len(encoded(count)))
        fitting = encoded(most)
        if len(fitting) > MAX_TERMINATION_MESSAGE_BYTES:
            raise SummaryError(f"a summary without any items has {len(fitting)} bytes, the limit is {MAX_TERMINATION_MESSAGE_BYTES}")
        return fitting.decode()


@dataclass(frozen=True, slots=True)
class CheckpointSummary(_JobSummary):
    """The result of a checkpoint job's run. `ledger_id` and `entry_id` are the LSN; None if it ended before that was known."""

    instance_id: str = ""
    """INSTANCEID of the BookKeeper cluster, without which ledger ids mean nothing."""
    tablespace: str = ""
    tablespace_uuid: str = ""
    ledger_id: int | None = None
    entry_id: int | None = None
    lsn_timestamp: str = ""
    """When that entry was written, by its leader's clock (RFC 3339)."""
    latest_timestamp: str = ""
    """The latest time of all entries up to there; empty if unknown."""
    manifest: str = ""
    """Path of the manifest below the destination."""
    report: str = ""
    """Path of the report about all checkpoints of the tablespace, below the destination."""
    entries_read: int = 0
    """Entries of the log."""
    base_ledger_id: int | None = None
    """LSN of the base checkpoint; None if made from the whole log."""
    base_entry_id: int | None = None
    base_follower: str = ""
    """host:port of the follower whose tables at that LSN were the base instead; empty for a checkpoint."""
    open_transactions: int | None = None
    """Transactions that were open at the LSN."""
    restart_ledger_id: int | None = None
    """LSN from which the log is read for a checkpoint made from this one."""
    restart_entry_id: int | None = None
    verified: str = ""
    """How the written files were verified."""
    restorable: bool = True
    """Whether a restore would load it as it is, as far as known; `message` says why not."""
    comparison: FollowerComparison | None = None
    """This run's result about a follower, whether it succeeded or failed; None without a comparison."""
    encrypted_with: str = ""
    """Name of the encryption key; empty if not encrypted."""
    key_fingerprint: str = ""
    """Identifies that key under any name."""
    rows: int = 0
    bytes: int = 0
    duration_seconds: float = 0.0
    tables: tuple[TableSummary, ...] = ()
    tables_omitted: int = 0
    """Number of tables that did not fit."""

    def to_json(self) -> str:
        """Returns at most 4096 bytes of JSON; all counts are exact, whatever was dropped. Names of differing tables are dropped last."""
        short = replace(self, message=self.message[:_MAX_MESSAGE_CHARACTERS])
        comparison, tables = self.comparison, len(self.tables)
        different = comparison.different_tables if comparison is not None else ()

        def keep(count: int) -> CheckpointSummary:
            kept = max(0, count - len(different))
            told = replace(comparison, different_tables=different[:count]) if comparison is not None else None
            return replace(short, tables=short.tables[:kept], tables_omitted=self.tables_omitted + tables - kept, comparison=told)

        return self._longest_that_fits(keep, len(different) + tables)


@dataclass(frozen=True, slots=True)
class AuditSummary(_JobSummary):
    """The result of a replication audit's run. Findings are sorted by urgency, so that the least urgent are dropped."""

    instance_id: str = ""
    """INSTANCEID of the BookKeeper cluster: ledger ids mean nothing without it."""
    ledgers: int = 0
    open_ledgers: int = 0
    """How many of them were open, and so audited only up to their LAC."""
    entries: int = 0
    """Entries that should exist, each counted once."""
    copies_expected: int = 0
    """Copies that should exist: each entry counted once per bookie that should hold it."""
    copies_verified: int = 0
    """Copies that were read and whose digest matched."""
    copies_unread: int = 0
    """Copies that a light audit skipped: a sample of their neighbours on the same bookie is good."""
    depth: AuditDepth = AuditDepth.DEEP
    copies_unknown: int = 0
    """Copies that could not be checked, since a bookie did not answer or answered with an error."""
    bytes_read: int = 0
    """Bytes of entries received, including headers and digests."""
    duration_seconds: float = 0.0
    critical: int = 0
    """Findings of each severity, including omitted ones."""
    under_replicated: int = 0
    at_risk: int = 0
    pending: int = 0
    unknown: int = 0
    low: int = 0
    copies_repaired: int = 0
    """Copies that were written from a verified replica and read back."""
    not_repaired: int = 0
    """Findings that were to be repaired but are not; after a dry run, those that a repair would skip."""
    copies_repairable: int = 0
    """After a dry run: copies that a repair would write, or copy to another bookie."""
    ledger_filter: str = ""
    """Which ledgers were requested, as text; empty for all."""
    report: str = ""
    """Path of the report below the destination."""
    findings: tuple[Finding, ...] = ()
    findings_omitted: int = 0
    """Number of findings that did not fit."""

    def to_json(self) -> str:
        """Returns at most 4096 bytes of JSON; all counts are exact, whatever was dropped."""
        short = replace(self, message=self.message[:_MAX_MESSAGE_CHARACTERS], ledger_filter=self.ledger_filter[:_MAX_MESSAGE_CHARACTERS])

        def keep(count: int) -> AuditSummary:
            return replace(short, findings=short.findings[:count], findings_omitted=self.findings_omitted + len(self.findings) - count)

        return self._longest_that_fits(keep, len(self.findings))


@dataclass(frozen=True, slots=True)
class RestoreSummary(_JobSummary):
    """The result of a restore job's run. `ledger_id` and `entry_id` are the checkpoint's LSN; None if unreadable."""

    tablespace: str = ""
    manifest: str = ""
    """Path of the checkpoint's manifest; with a target, of the one that it found or made."""
    ledger_id: int | None = None
    entry_id: int | None = None
    lsn_timestamp: str = ""
    """When the entry there was written, by its leader's clock (RFC 3339)."""
    rows: int = 0
    """Rows of the tablespace at its verification."""
    rows_loaded: int = 0
    """Rows that this run loaded; others were loaded before."""
    tables: int = 0
    verified: str = ""
    """How the content was verified."""
    duration_seconds: float = 0.0

    def to_json(self) -> str:
        """Returns at most 4096 bytes of JSON."""
        return self._longest_that_fits(lambda _: replace(self, message=self.message[:_MAX_MESSAGE_CHARACTERS]), 0)
