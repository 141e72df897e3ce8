"""The status of a restore: the Job's state, its driver's termination message, and the load's progress."""

from __future__ import annotations

from typing import Any, assert_never

from herdkeeper.api import Tablespace
from herdkeeper.herddb.tablespace.plan_restore import RestoreFiles, files_of, restore_run
from herdkeeper.herddb.tablespace.state import RestoreProgress, TablespaceObserved
from herdkeeper.planning.summary import Health
from herdkeeper.protocol.job_summary import JobOutcome, RestoreSummary
from herdkeeper.shared import names
from herdkeeper.shared.counted import counted
from herdkeeper.shared.reason import Reason
from herdkeeper.spark.job_run import root_of
from herdkeeper.spark.run import Run


def restore_fields(seen: TablespaceObserved) -> dict[str, Any] | None:
    """Returns status.restore; None without a restore, or before its begin, which the plan notes (herddb/tablespace/plan_restore.py)."""
    tablespace, before = seen.tablespace, seen.tablespace.restore
    if tablespace.spec.bootstrap is None:
        return None
    if not tablespace.is_restoring:
        return None if before is None else before.document()
    run, said = _run(seen)
    if before is None and run.job is None:
        return None
    files = files_of(seen)
    fields = {"phase": run.phase, **run.fields, **(files.fields if isinstance(files, RestoreFiles) else {}), **_rows(seen)}
    if before is not None and "rowsLoaded" not in fields and run.phase == "Running":
        fields |= {"rowsLoaded": before.rows_loaded, "rows": before.rows}
    if run.phase == "Succeeded" and said is not None:
        known = said.ledger_id is not None and said.entry_id is not None
        fields |= {
            "lsn": {"ledgerId": said.ledger_id, "entryId": said.entry_id} if known else None,
            "lsnTimestamp": said.lsn_timestamp or None,
            "manifest": _restored_manifest(seen, said) or fields.get("manifest"),
            "rows": said.rows,
            "rowsLoaded": None,
            "verified": said.verified or None,
            "durationSeconds": round(said.duration_seconds, 1),
        }
    return {name: value for name, value in fields.items() if value is not None}


def restore_health(seen: TablespaceObserved) -> Health | None:
    """Returns why a tablespace is not Ready because of its restore. None if that is finished, or not declared."""
    if not seen.tablespace.is_restoring:
        return None
    run, said = _run(seen)
    match run.phase:
        case "Pending":
            return Health("False", Reason.RESTORING, f"the restore has not started: {run.message}")
        case "Running":
            return Health("False", Reason.RESTORING, _sentence(seen))
        case "Failed":
            return Health("False", Reason.RESTORE_FAILED, f"the restore failed: {(said or run).message}; {_advice(seen.tablespace, said)}")
        case "Succeeded":
            return None
        case _:
            assert_never(run.phase)


def _sentence(seen: TablespaceObserved) -> str:
    match seen.progress:
        case RestoreProgress(loaded, rows) if loaded >= rows:
            return f"all {rows} rows are loaded and are being compared with the checkpoint"
        case RestoreProgress(loaded, rows):
            return f"{loaded} of {counted(rows, 'row is', 'rows are')} loaded"
        case _ if seen.tablespace.spec.bootstrap is not None and seen.tablespace.spec.bootstrap.target is not None:
            return "the checkpoint of that moment is being made from the archive of the log; then its rows are loaded"
        case _:
            return "rows are being loaded from the checkpoint"


def _advice(tablespace: Tablespace, said: RestoreSummary | None) -> str:
    """Advice for a person. It names deletion only if nothing but this restore wrote."""
    job = names.job_name(tablespace.key, names.RESTORE_COMPONENT)
    if said is not None and said.outcome is JobOutcome.INVARIANT_VIOLATED:
        return "delete this Tablespace with deletionPolicy Delete, which drops the loaded rows, and create it again once the cause is fixed"
    again = f"once the cause is fixed, delete the Job {job}: the next one continues where it stopped"
    refused = said is not None and said.outcome is JobOutcome.CONFIGURATION_REFUSED
    if refused and tablespace.restored_moment is not None:
        return f"for another moment, delete this Tablespace with deletionPolicy Delete and create one with that; {again}"
    return again


def _run(seen: TablespaceObserved) -> tuple[Run, RestoreSummary | None]:
    run = restore_run(seen)
    said = run.reported(RestoreSummary.from_json)
    return run, said if isinstance(said, RestoreSummary) else None


def _restored_manifest(seen: TablespaceObserved, said: RestoreSummary) -> str | None:
    """Returns the manifest path of the restored moment's checkpoint, if it is not the named one."""
    files = files_of(seen)
    if not isinstance(files, RestoreFiles) or seen.tablespace.restored_moment is None:
        return None
    return said.manifest.removeprefix(f"{root_of(files.destination)}/") or None


def _rows(seen: TablespaceObserved) -> dict[str, int]:
    progress = seen.progress
    return {"rowsLoaded": progress.loaded, "rows": progress.rows} if isinstance(progress, RestoreProgress) else {}
