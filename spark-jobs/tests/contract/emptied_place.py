"""Takes away what a test has put somewhere."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import assert_never

from herdkeeper_jobs.storage.object_path import ObjectPath
from herdkeeper_jobs.storage.stored_path import StoredPath


def remove_below(folder: StoredPath) -> None:
    """Removes all that is in a folder, and the folder, as far as that succeeds."""
    match folder:
        case Path():
            shutil.rmtree(folder, ignore_errors=True)
        case ObjectPath():
            with contextlib.suppress(OSError):
                for path in folder.below():
                    path.unlink()
        case _:
            assert_never(folder)
