"""A file system of some megabytes that a test can fill to the last page."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

_BALLAST = "ballast"


@dataclass(frozen=True)
class SmallDisk:
    """Made by `small_disk`."""

    folder: Path

    def fill(self, left: int) -> None:
        """Leaves so many bytes, of whole pages."""
        found = os.statvfs(self.folder)
        with (self.folder / _BALLAST).open("wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, found.f_bavail * found.f_frsize - left)

    def give_room(self) -> None:
        (self.folder / _BALLAST).unlink()


@contextmanager
def small_disk(folder: Path, mebibytes: int) -> Iterator[SmallDisk]:
    """Skips the test where nothing can be mounted."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs"]
    mounted = subprocess.run(["mount", *options, str(folder)], check=False, capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"a full disk needs a tmpfs of its own, and mount is refused here (it needs root): {mounted.stderr.strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
