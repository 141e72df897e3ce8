"""What a Checkpoint's run tells of its checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.protocol.job_summary import CheckpointSummary, FollowerComparison, JobOutcome, TableSummary
from herdkeeper_jobs.checkpoint.history_files import Published
from herdkeeper_jobs.manifests.manifest import CommittedManifest, Manifest
from herdkeeper_jobs.wal.moment import stamp

_MOST_OF_A_REASON = 150
"""Characters; the rest is in the pod's log."""


@dataclass(frozen=True, slots=True)
class Made:
    """A committed checkpoint. `left_out`: entries after it with a stamp at or before the requested time."""

    committed: CommittedManifest
    comparison: FollowerComparison | None
    left_out: int
    published: Published
    trouble: str = ""
    """What is wrong, e.g. rows that HerdDB's SQL refuses, and what to do; empty if nothing."""
    passed_over: str = ""
    """Newer checkpoints than its base, and why they are unusable; may be empty."""
    restorable: bool = True
    """Whether a restore would load it as it is, as far as known; `trouble` says why not."""


def summary_of(made: Made, run_id: str, seconds: float) -> CheckpointSummary:
    """Returns what the run tells. `seconds`: how long it took."""
    committed, left_out = made.committed, made.left_out
    manifest = committed.manifest
    by = manifest.verified.words
    done = "existed already" if committed.existed else "written"
    encrypted = "" if manifest.encryption is None else f", encrypted with the key {manifest.encryption.key_name!r}"
    stamped = "" if manifest.lsn_timestamp_millis is None else stamp(manifest.lsn_timestamp_millis)
    trouble = f"{made.trouble}; " if made.trouble else ""
    passed_over = f", not from {made.passed_over[:_MOST_OF_A_REASON]}" if made.passed_over else ""
    skewed = f"; {left_out} entries behind it are stamped at or before the time, and left out" if left_out else ""
    there = f"{len(manifest.open_transactions)} transactions open there{skewed}"
    report = made.published
    unreported = f"; the report was not written: {report.failure[:_MOST_OF_A_REASON]}" if report.failure else ""
    return CheckpointSummary(
        run_id=run_id,
        outcome=JobOutcome.ALREADY_DONE if committed.existed else JobOutcome.SUCCEEDED,
        message=f"{trouble}checkpoint at {manifest.lsn.lsn}{f' ({stamped})' if stamped else ''} {done}{encrypted}, "
        f"made from {_made_from(manifest)}{passed_over}; {by}; {there}{unreported}",
        instance_id=manifest.identity.instance_id,
        tablespace=manifest.identity.tablespace,
        tablespace_uuid=manifest.identity.tablespace_uuid,
        ledger_id=manifest.lsn.ledger_id,
        entry_id=manifest.lsn.entry_id,
        lsn_timestamp=stamped,
        latest_timestamp="" if manifest.latest_timestamp_millis is None else stamp(manifest.latest_timestamp_millis),
        manifest="/".join(committed.path.parts[-4:]),
        entries_read=manifest.entries_read,
        base_ledger_id=None if manifest.base is None else manifest.base.lsn.ledger_id,
        base_entry_id=None if manifest.base is None else manifest.base.lsn.entry_id,
        base_follower="" if manifest.base is None or manifest.base.follower is None else manifest.base.follower,
        open_transactions=len(manifest.open_transactions),
        restart_ledger_id=manifest.restart_lsn.ledger_id,
        restart_entry_id=manifest.restart_lsn.entry_id,
        verified=by,
        restorable=made.restorable,
        comparison=made.comparison,
        rows=sum(table.rows for table in manifest.tables),
        bytes=sum(table.bytes for table in manifest.tables),
        encrypted_with="" if manifest.encryption is None else manifest.encryption.key_name,
        key_fingerprint="" if manifest.encryption is None else manifest.encryption.key_fingerprint,
        report="" if report.failure else report.path,
        duration_seconds=round(seconds, 3),
        tables=tuple(TableSummary(table.name, table.rows, table.bytes, table.digest) for table in manifest.tables),
    )


def _made_from(manifest: Manifest) -> str:
    """The origin, for people."""
    if manifest.base is None:
        return "the whole log"
    begun = "the checkpoint" if manifest.base.follower is None else f"the tables of the follower {manifest.base.follower}"
    return f"{begun} at {manifest.base.lsn.lsn} and the log behind it"
