"""Notes which attempts of runs write files, so that the files of killed ones go some time.

An attempt first creates the empty file `<tablespace folder>/attempts/<run>.<token>`; the names of all its files have the token. It removes
the note once a manifest names its files, or once they are removed. If a task fails, others may still write, so the note stays. A killed
driver may live on, on a node that was taken for lost, and commit yet. So only what is KEPT_MILLIS old goes, by the clock of the place, and
nothing that a manifest names. Files without a note stay: somebody may have moved the manifest of a whole checkpoint away.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from herdkeeper_jobs.checkpoint.removal import delete, named_files, remove_uncommitted, require_no_link
from herdkeeper_jobs.errors import InvariantViolated
from herdkeeper_jobs.manifests.manifest import CommittedManifest
from herdkeeper_jobs.manifests.run_id import why_no_run_id
from herdkeeper_jobs.storage.stored_path import (
    StoredPath,
    asked_of_each,
    modified_millis,
    names_below,
    names_from,
    remove_file,
    replace_file,
)

_log = structlog.get_logger()
KEPT_MILLIS = 30 * 24 * 3600 * 1000
"""No run takes so long."""
_NOTE = re.compile(r"(?P<run>.+)\.(?P<token>[0-9a-f]{8})")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a run to write files below `folder`/data/`run_id`; `token` is in their names, behind a `-`."""

    folder: StoredPath
    run_id: str
    token: str

    @staticmethod
    def begin(folder: StoredPath, run_id: str) -> Attempt:
        """Raises OSError if it can't be noted."""
        attempt = Attempt(folder, run_id, uuid.uuid4().hex[:8])
        replace_file(attempt._note, b"")
        return attempt

    def hands_out_tasks(self) -> None:
        """Notes that tasks write from now on, which may outlive a failure of the attempt. Raises OSError."""
        replace_file(self._note, b"tasks")

    @property
    def handed_out_tasks(self) -> bool:
        """Raises OSError."""
        return self._note.read_bytes() != b""

    def discard(self, files: Sequence[StoredPath]) -> None:
        """Tries to remove its files, of which no manifest names one. The note stays where some stay."""
        if remove_uncommitted(files):
            self.end()

    def end(self) -> None:
        """Removes the note: the files are committed, or gone. If that fails, it goes with the old ones."""
        with contextlib.suppress(OSError):
            remove_file(self._note)

    @property
    def files(self) -> list[StoredPath]:
        """What it has written so far. Raises OSError."""
        run = self.folder / "data" / self.run_id
        return [run / name for name in names_below(run) if f"-{self.token}" in name]

    @property
    def _note(self) -> StoredPath:
        return self.folder / "attempts" / f"{self.run_id}.{self.token}"


@contextlib.contextmanager
def noted(folder: StoredPath, run_id: str) -> Iterator[Attempt]:
    """An attempt, whose note stays unless the block fails before tasks write files."""
    attempt = Attempt.begin(folder, run_id)
    try:
        yield attempt
    except Exception:
        with contextlib.suppress(OSError):
            if not attempt.files and not attempt.handed_out_tasks:
                attempt.end()
        raise


def expire_attempts(folder: StoredPath, committed: CommittedManifest) -> int:
    """Deletes what attempts left that began long before a manifest was committed, and returns the number of files. Never raises: leftovers
    must not fail a checkpoint."""
    try:
        return _expired(folder, committed)
    except (OSError, InvariantViolated) as error:
        _log.warning("leftovers stay", reason=str(error))
        return 0


def _expired(folder: StoredPath, committed: CommittedManifest) -> int:
    noted = [found for name in names_from(folder / "attempts") if (found := _NOTE.fullmatch(name)) is not None]
    notes = [(folder / "attempts" / found[0], Attempt(folder, found["run"], found["token"])) for found in noted]
    began = asked_of_each([note for note, _ in notes], modified_millis)
    before = modified_millis(committed.path) - KEPT_MILLIS if notes else 0
    old = [attempt for (_, attempt), at in zip(notes, began, strict=True) if at < before and why_no_run_id(attempt.run_id) is None]
    if not old:
        return 0
    named = named_files(folder)
    if not named.issuperset(folder / file.path for file in committed.manifest.files):
        return 0  # the manifests were listed without this one, so others may be missing, too
    count = 0
    for attempt in old:
        for part in (folder.parent, folder, folder / "data", folder / "data" / attempt.run_id):
            require_no_link(part)
        removed, size = delete([path for path in attempt.files if path not in named])
        _log.info("files of a killed attempt are removed", run=attempt.run_id, files=removed, bytes=size)
        attempt.end()
        count += removed
        if isinstance(folder, Path):
            _remove_empty(folder / "data" / attempt.run_id)
    return count


def _remove_empty(run: Path) -> None:
    """Removes the empty folders of a run, and the run's own if nothing is left in it."""
    for place in (*run.glob("*"), run):
        with contextlib.suppress(OSError):
            place.rmdir()
