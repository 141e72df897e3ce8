"""Keeps the report of a tablespace's checkpoints beside them: `<destination>/<INSTANCEID>/<tablespace uuid>/report.html`.

Each report is made anew from manifests and file names; it has no state.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from herdkeeper_jobs.archive.parts import WholeLog
from herdkeeper_jobs.archive.window import Window, recovery_window
from herdkeeper_jobs.checkpoint.history import MOST_CHECKPOINTS, Listing, Recorded, Unreadable, WindowUnknown, checkpoint_history
from herdkeeper_jobs.checkpoint.history_report import render_history
from herdkeeper_jobs.errors import InvariantViolated
from herdkeeper_jobs.manifests.manifest import Identity, Outline, manifest_path, manifests_in, read_outline, report_path
from herdkeeper_jobs.storage.stored_path import StoredPath, asked_of_each, names_below, replace_file

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Published:
    """The report's path below the destination, or why it was not written; the other one is empty."""

    path: str = ""
    failure: str = ""


def publish_history(whole: WholeLog, folder: StoredPath, now_millis: int) -> Published:
    """Renders a tablespace's history and replaces its report. Never raises: a report must not fail a checkpoint."""
    path = report_path(folder)
    try:
        history = checkpoint_history(whole.identity, read_listing(folder, whole.identity, MOST_CHECKPOINTS), _window(whole, folder))
        replace_file(path, render_history(history, now_millis).encode())
    except Exception as error:
        # Whatever the error, the checkpoint is committed.
        _log.warning("report not written", path=str(path), error=str(error), kind=type(error).__name__)
        return Published(failure=f"{type(error).__name__}: {error}")
    return Published("/".join(path.parts[-3:]))


def read_listing(folder: StoredPath, identity: Identity, most: int) -> Listing:
    """Lists all manifests in a tablespace's folder and reads the newest `most` of them. Raises OSError if the folder can't be listed."""
    paths = manifests_in(folder)
    there = _data_files(folder)
    read = asked_of_each(paths[-most:], lambda path: _read(path, identity, there))
    return Listing(tuple(path.name for path in paths), tuple(found for found in read if found is not None))


def _data_files(folder: StoredPath) -> frozenset[str]:
    """The data files of all runs, named as in manifests. One listing is cheaper than a request per file."""
    return frozenset(f"data/{name}" for name in names_below(folder / "data"))


def _read(path: StoredPath, identity: Identity, there: frozenset[str]) -> Recorded | Unreadable | None:
    """Returns None if the manifest was removed meanwhile."""
    try:
        manifest = read_outline(path)
        _require_own(path, manifest, identity)
        # Check each unlisted file: a folder that could not be listed must not count as missing files.
        named = (file.path for file in manifest.files)
        missing = tuple(name for name in named if name not in there and not (path.parent.parent / name).is_file())
        if missing and not path.is_file():
            return None
        return Recorded.of(path.name, manifest, missing)
    except FileNotFoundError:
        return None
    except (InvariantViolated, OSError) as error:
        return Unreadable(path.name, str(error))


def _require_own(path: StoredPath, manifest: Outline, identity: Identity) -> None:
    if manifest.identity.path != identity.path:
        raise InvariantViolated(f"it belongs to {manifest.identity.path}")
    if manifest_path(path.parent.parent, manifest.lsn.lsn) != path:
        raise InvariantViolated(f"its content is of {manifest.lsn.lsn}")


def _window(whole: WholeLog, folder: StoredPath) -> Window | WindowUnknown | None:
    try:
        return recovery_window(whole, folder)
    except (InvariantViolated, OSError) as error:
        return WindowUnknown(str(error))
