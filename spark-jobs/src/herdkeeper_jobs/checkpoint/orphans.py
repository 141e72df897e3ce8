"""What killed runs left behind: folders `data/<run>` that no manifest names go once they are old, at the end of a run that succeeded.

A run that goes on has no manifest yet either, so only its age tells that it is over: nothing in the folder was written for twice as long as
a job may take, and for a day at least, since clocks differ. Ages are looked at before manifests: what is committed between the two is too
young. While anything is unknown (a manifest that can't be read may name any file) nothing goes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

import structlog

from herdkeeper_jobs.checkpoint.errors import InvariantViolated
from herdkeeper_jobs.checkpoint.removal import named_files, sweep_runs, why_no_run_id
from herdkeeper_jobs.storage.stored_path import StoredPath, files_with_times

_log = structlog.get_logger()
LEAST_AGE_SECONDS = 86_400
_DEADLINES = 2
_OURS = re.compile(r"p-[0-9]+-[0-9]+-[0-9a-f]{8}(\.older)?\.parquet")
"""Names that tasks give to files, see `data_files`."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What went: runs, and their files and bytes; `unknown` says why nothing was looked at, or not all of it, and is empty else."""

    runs: tuple[str, ...] = ()
    files: int = 0
    bytes: int = 0
    unknown: str = ""

    @property
    def sentence(self) -> str:
        """For a status; empty when there was nothing."""
        if self.unknown:
            return f"what killed runs left, if anything, stays: {self.unknown}"
        return f"{self.files} files with {self.bytes} bytes of {len(self.runs)} killed runs were removed" if self.runs else ""


def least_age(deadline_seconds: float) -> float:
    """Seconds after which a run whose job may take so long is over, whatever became of it."""
    return max(LEAST_AGE_SECONDS, _DEADLINES * deadline_seconds)


def sweep_orphans(folder: StoredPath, own_run: str, before: float) -> Swept:
    """Removes the folders of runs in a tablespace's folder that no manifest there names, and in which nothing was written since `before`
    (seconds since 1970). Folders in which anything else than files of a run lies stay. Fails for nothing."""
    try:
        old = [run for run in _old_runs(folder, before) if run != own_run]
        if not old:
            return Swept()
        named = named_files(folder)
        runs_named = {path.parts[len(folder.parts) + 1] for path in named}  # folder/data/run
        orphans = tuple(run for run in old if run not in runs_named)
        files, size, _ = sweep_runs(folder, orphans, named)
    except (InvariantViolated, OSError, ValueError) as error:
        _log.warning("leftovers of killed runs stay", reason=str(error))
        return Swept(unknown=f"{type(error).__name__}: {error}" if isinstance(error, OSError) else str(error))
    if orphans:
        _log.info("leftovers of killed runs removed", runs=orphans, files=files, bytes=size)
    return Swept(orphans, files, size)


def _old_runs(folder: StoredPath, before: float) -> list[str]:
    """The runs that have files of theirs alone, all written before."""
    times: dict[str, list[float]] = {}
    strange: set[str] = set()
    for name, changed in files_with_times(folder / "data"):
        run, *below = PurePosixPath(name).parts
        times.setdefault(run, []).append(changed)
        if not below or _OURS.fullmatch(below[-1]) is None:
            strange.add(run)
    return sorted(run for run, changes in times.items() if max(changes) < before and run not in strange and why_no_run_id(run) is None)
